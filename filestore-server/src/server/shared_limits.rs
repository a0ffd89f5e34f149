//! Limits of requests that several servers share: what clients use is told from server to server.
//!
//! # Bound
//! No request asks the database. A server tells once in [`PAUSE`], and one that tells is heard within another pause; until
//! then each lets a client in as if it were alone. So a client that asks all of N servers at once may have N quotas in
//! the first two seconds, and owes what was too much afterwards. While the database is away each server counts for itself.

use std::sync::Arc;
use std::time::Duration;

use filestore_core::FileStore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::request::call::App;

/// The pause between two words.
const PAUSE: Duration = Duration::from_secs(1);

/// Begins to tell other servers, and to hear them; nothing where there can be no others. It ends when it is dropped.
pub(super) fn share(store: &FileStore, app: &Arc<App>) -> JoinSet<()> {
    let mut sharing = JoinSet::new();
    if store.may_have_company() {
        sharing.spawn(go_on(store.clone(), Arc::clone(app)));
    }
    sharing
}

async fn go_on(store: FileStore, app: Arc<App>) {
    loop {
        sleep(PAUSE).await;
        if app.limits.count_requests() {
            exchange(&store, &app).await;
        }
    }
}

async fn exchange(store: &FileStore, app: &App) {
    match store.exchange_uses(app.limits.take_uses()).await {
        Ok(uses) => app.limits.note_uses(&uses),
        // The log says elsewhere that the database is away.
        Err(error) => {
            tracing::debug!(error = %error.chain(), "other servers were not told of limits");
        }
    }
}
