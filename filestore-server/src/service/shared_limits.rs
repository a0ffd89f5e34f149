//! Rate limits that several servers share. Servers report their clients' requests to each other.
//!
//! # Bounds
//! Requests never query the database for this. A server reports once in [`PAUSE`], and others read the report
//! within another pause. Until then, each server admits a client as if it were alone. A client that uses all
//! N servers at once can therefore use N quotas in the first two seconds, and gets less afterwards. While the
//! database is down, each server counts alone.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::sleep;

use crate::state::App;

/// The pause between two reports.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts the exchange with other servers, if there can be any. The exchange ends with the state.
pub(super) fn share(app: &Arc<App>) {
    if app.store.shared().may_have_company() {
        app.sharing.lock().spawn(go_on(Arc::downgrade(app)));
    }
}

async fn go_on(app: Weak<App>) {
    loop {
        sleep(PAUSE).await;
        let Some(app) = app.upgrade() else { return };
        if app.limits.count_requests() {
            exchange(&app).await;
        }
    }
}

async fn exchange(app: &App) {
    match app.store.shared().exchange_uses(app.limits.take_uses()).await {
        Ok(uses) => app.limits.note_uses(&uses),
        // The log says elsewhere that the database is away.
        Err(error) => {
            tracing::debug!(error = %error.chain(), "other servers were not told of limits");
        }
    }
}
