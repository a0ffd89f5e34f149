//! The readers that wait for events.

use rusqlite::Connection;
use tokio::sync::watch;

use crate::metadata::sqlite::tables::events;

/// Tells waiting readers the position of the newest event, after its commit. Costs nothing while nobody waits.
pub(in crate::metadata::sqlite) struct Followers {
    newest: watch::Sender<u64>,
}

impl Followers {
    pub(in crate::metadata::sqlite) fn new() -> Self {
        Self { newest: watch::Sender::new(0) }
    }

    /// Begins to wait. Commits from now on are told. Earlier commits are visible.
    pub(in crate::metadata::sqlite) fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Reports a commit. Called by the writer alone.
    pub(super) fn committed(&self, sql: &Connection) {
        if self.newest.receiver_count() == 0 {
            return;
        }
        match events::newest(sql) {
            Ok(Some((position, _))) => {
                self.newest
                    .send_if_modified(|newest| std::mem::replace(newest, position) != position);
            }
            Ok(None) => {}
            // Waiting readers learn of the next commit.
            Err(fault) => tracing::warn!(error = %fault, "the newest event could not be read"),
        }
    }
}
