//! Objects of probes and checks. These objects belong to no file.
//!
//! # Crash safety
//! The code that stores an object also removes it, and retries after a failure. The next process removes the
//! leftovers of a killed process, which it recognizes by the time in their names.

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use crate::domain::error::Result;
use crate::domain::id::BlobId;
use crate::domain::time::clock::Clock;
use crate::storage::cloud::Cloud;
use crate::storage::cloud::line::breaker::Direction;
use crate::tasks;

/// The directory of these objects.
const DIRECTORY: &str = ".filestore-check/";

/// The pause after the first failed round of removals. The pause doubles with each round.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause between two rounds, the same as for breakers.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The age at which an object counts as a leftover of a killed process.
const LEFT_AFTER: Duration = Duration::from_hours(1);

/// The maximum number of leftovers that a process removes.
const MAX_LEFT: usize = 1000;

/// The objects that this process must remove.
#[derive(Default)]
pub(in crate::storage::cloud) struct ProbeObjects {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    paths: Vec<String>,
    has_looked: bool,
    is_removing: bool,
}

impl ProbeObjects {
    /// Records an object that the next request can store.
    pub(in crate::storage::cloud) fn note(&self, path: &str) {
        self.state.lock().paths.push(path.to_owned());
    }

    /// Removes an absent object from the list.
    pub(in crate::storage::cloud) fn forget(&self, path: &str) {
        self.state.lock().paths.retain(|noted| noted != path);
    }

    fn noted(&self) -> Vec<String> {
        self.state.lock().paths.clone()
    }

    /// Takes the role of the remover. Returns `false` if another task has it.
    fn begin(&self) -> bool {
        !std::mem::replace(&mut self.state.lock().is_removing, true)
    }

    /// Gives the role back. Returns `false` if there are still objects to remove.
    fn end(&self) -> bool {
        let mut state = self.state.lock();
        state.is_removing = !state.paths.is_empty() || !state.has_looked;
        !state.is_removing
    }
}

impl Cloud {
    /// Removes the objects of a probe before the waiting callers continue. A background task removes the
    /// rest, and the leftovers of killed processes.
    pub(super) async fn tidy_after_probe(&self) {
        let limit = self.inner.timeout + self.inner.io_timeout;
        // What is not done by then is still noted.
        _ = timeout(limit, self.remove_probes()).await;
        self.begin_to_remove_probes();
    }

    /// Removes the recorded objects in the background, until they are absent or the provider is no longer
    /// used.
    pub(super) fn begin_to_remove_probes(&self) {
        if !self.inner.probing.objects.begin() {
            return;
        }

        let inner = Arc::downgrade(&self.inner);
        tasks::spawn(async move {
            let mut pause = FIRST_PAUSE;
            // Between two rounds the provider may go.
            while let Some(inner) = inner.upgrade() {
                let cloud = Self { inner };
                cloud.look_for_left_probes().await;
                cloud.remove_probes().await;
                if cloud.inner.probing.objects.end() {
                    break;
                }

                drop(cloud);
                sleep(pause).await;
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        });
    }

    /// Removes the recorded objects. Objects that remain are retried in the next round.
    async fn remove_probes(&self) {
        let objects = &self.inner.probing.objects;
        for path in objects.noted() {
            match self.remove_path(&path).await {
                Ok(()) => objects.forget(&path),
                Err(error) => {
                    tracing::debug!(provider = %self.code(), path, error = %error.chain(), "a probe object stays for now");
                }
            }
        }
    }

    /// Records the leftovers of killed processes, once.
    async fn look_for_left_probes(&self) {
        let objects = &self.inner.probing.objects;
        if objects.state.lock().has_looked {
            return;
        }

        let left = match self.left_probes().await {
            Ok(left) => left,
            // Not everyone who may write may list as well.
            Err(error) if self.inner.breakers.check(Direction::Read).is_ok() => {
                tracing::debug!(provider = %self.code(), error = %error.chain(), "probe objects were not listed");
                Vec::new()
            }
            Err(_) => return,
        };

        let mut state = objects.state.lock();
        state.paths.extend(left);
        state.has_looked = true;
    }

    /// Lists the leftovers of killed processes.
    async fn left_probes(&self) -> Result<Vec<String>> {
        const LISTING: &str = "listing probe objects";

        let _admission = self.inner.breakers.admit(Direction::Read)?;
        let operator = self.inner.operator.clone();
        let list = async move {
            let mut lister = operator.lister_with(DIRECTORY).limit(MAX_LEFT).await?;
            let mut paths = Vec::new();
            while paths.len() < MAX_LEFT
                && let Some(entry) = lister.try_next().await?
            {
                paths.push(entry.path().to_owned());
            }
            Ok(paths)
        };

        let listed: std::result::Result<_, opendal::Error> = self.ask(Direction::Read, list).await;
        let mut paths = listed.map_err(|error| self.fault(LISTING, &error))?;
        let before = self.inner.opened_at.minus(LEFT_AFTER);
        paths.retain(|path| {
            let id = path.strip_prefix(DIRECTORY).and_then(|id| id.parse::<BlobId>().ok());
            id.is_some_and(|id| id.made_at() < before)
        });
        Ok(paths)
    }
}

/// Returns true if the object at this path belongs to no file.
pub(in crate::storage::cloud) fn is_probe(path: &str) -> bool {
    path.starts_with(DIRECTORY)
}

/// Returns a path that no other probe uses.
pub(super) fn probe_path() -> String {
    format!("{DIRECTORY}{}", BlobId::generate(Clock::system().now()))
}
