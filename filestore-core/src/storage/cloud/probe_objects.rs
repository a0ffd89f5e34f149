//! Objects that belong to no file: what probes and checks store to try a provider out.
//!
//! # Crash safety
//! Each is removed by who stored it, and again and again where that fails. What a killed process
//! left is removed by the next one, which goes by the time in its name.

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use super::Cloud;
use super::breaker::Direction;
use crate::domain::clock::Clock;
use crate::domain::error::Result;
use crate::domain::id::BlobId;
use crate::tasks;

/// Directory of these objects.
const DIRECTORY: &str = ".filestore-check/";

/// Pause after the first round of removals that failed; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause between two rounds, like that of the breakers.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Age from which an object is taken for what a killed process left.
const LEFT_AFTER: Duration = Duration::from_hours(1);

/// Most objects of killed processes that one process removes.
const MAX_LEFT: usize = 1000;

/// The objects that this process has to remove.
#[derive(Default)]
pub(super) struct ProbeObjects {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    paths: Vec<String>,
    has_looked: bool,
    is_removing: bool,
}

impl ProbeObjects {
    /// Notes an object that the next request may store.
    pub(super) fn note(&self, path: &str) {
        self.state.lock().paths.push(path.to_owned());
    }

    /// Forgets an object that is absent.
    pub(super) fn forget(&self, path: &str) {
        self.state.lock().paths.retain(|noted| noted != path);
    }

    fn noted(&self) -> Vec<String> {
        self.state.lock().paths.clone()
    }

    /// Takes the part of the one that removes; `false` if another has it.
    fn begin(&self) -> bool {
        !std::mem::replace(&mut self.state.lock().is_removing, true)
    }

    /// Gives the part back and returns `true`, unless there is something left to do.
    fn end(&self) -> bool {
        let mut state = self.state.lock();
        state.is_removing = !state.paths.is_empty() || !state.has_looked;
        !state.is_removing
    }
}

impl Cloud {
    /// Removes what a probe stored, before those who wait for the probe go on. What stays, and what
    /// killed processes left, is removed in the background.
    pub(super) async fn tidy_after_probe(&self) {
        let limit = self.inner.timeout + self.inner.io_timeout;
        // What is not done by then is still noted.
        _ = timeout(limit, self.remove_probes()).await;
        self.begin_to_remove_probes();
    }

    /// Removes the noted objects in the background, until they are absent or nobody uses the
    /// provider any longer.
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

    /// Removes the noted objects. Those that stay are tried again in the next round.
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

    /// Notes what killed processes left, once.
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

    /// Lists the objects that killed processes left.
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

/// Tells whether the path is that of an object which belongs to no file.
pub(super) fn is_probe(path: &str) -> bool {
    path.starts_with(DIRECTORY)
}

/// Makes a path that no other probe uses.
pub(super) fn probe_path() -> String {
    format!("{DIRECTORY}{}", BlobId::generate(Clock::system().now()))
}
