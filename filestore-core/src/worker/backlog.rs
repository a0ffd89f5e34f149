//! The backlog: what waits for each provider.

use crate::FileStore;
use crate::domain::backlog::ProviderBacklog;
use crate::domain::error::Result;

impl FileStore {
    /// Counts what waits for each provider; those for which nothing waits are left out.
    pub(crate) async fn backlog(&self) -> Result<Vec<ProviderBacklog>> {
        let now = self.inner().now();
        self.inner().metadata.backlog(now.minus(self.config().purge_grace), now).await
    }
}
