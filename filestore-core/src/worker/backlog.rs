//! The backlog: the work that waits for each provider.

use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::provider::backlog::ProviderBacklog;

/// Counts the waiting work of each provider. Providers without waiting work are omitted.
pub(crate) async fn count(store: &FileStore) -> Result<Vec<ProviderBacklog>> {
    let now = store.inner().now();
    store.inner().metadata.backlog(now.minus(store.config().purge_grace), now).await
}
