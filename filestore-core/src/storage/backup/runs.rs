//! The runs of this process on a directory of snapshots.
//!
//! # Locking
//! The lock of the directory excludes other processes. Within this process, a run that changes the directory
//! runs alone, and runs that only read can run at the same time. A claim lasts until the last clone of its
//! directory is dropped. If a cancelled run still has work on the blocking pool, this work keeps the claim.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::domain::error::{Error, ErrorKind, Result};

/// Whether a run changes the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// The run changes the directory.
    Alone,
    /// The run only reads.
    Beside,
}

/// The current runs.
#[derive(Debug, Default)]
pub(super) struct Runs(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_one_alone: bool,
    beside: usize,
}

/// The right of a current run. Dropping it gives the right back.
#[derive(Debug)]
pub(super) struct Claim {
    runs: Arc<Runs>,
    sharing: Sharing,
}

impl Claim {
    /// Claims a directory for a run. `Locked` while another run excludes this run.
    pub(super) fn take(runs: &Arc<Runs>, sharing: Sharing, path: &Path) -> Result<Self> {
        let mut state = runs.0.lock();
        let is_free = match sharing {
            Sharing::Alone => !state.is_one_alone && state.beside == 0,
            Sharing::Beside => !state.is_one_alone,
        };
        if !is_free {
            let message = format!("another run works on the snapshots in {}", path.display());
            return Err(Error::new(ErrorKind::Locked, message));
        }

        match sharing {
            Sharing::Alone => state.is_one_alone = true,
            Sharing::Beside => state.beside += 1,
        }
        Ok(Self { runs: Arc::clone(runs), sharing })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = self.runs.0.lock();
        match self.sharing {
            Sharing::Alone => state.is_one_alone = false,
            Sharing::Beside => state.beside -= 1,
        }
    }
}
