//! The blobs at one CLOUD provider, through OpenDAL.
//!
//! # Purpose
//! Puts are verified before they count, reads never end short, and "removed" means absent. A presigned URL
//! grants reading one object and has no other rights. Errors name the provider and the operation, but contain
//! no credential, no signed URL and no option value.
//!
//! Keys are written once. If the provider supports it, a put has the condition "if absent". A retry after a
//! lost reply can then not overwrite an object.
//!
//! OpenDAL implements the providers' protocols: signatures, error codes and retries. This module adds
//! verification, write intents, and presigned URLs for a single object.
//!
//! # Crash safety
//! This module does not recover from crashes itself. A put that fails or is cut off can leave an object under
//! its key. An unfinished multipart upload is aborted. Callers write an intent before the put, and remove the
//! key if the put fails.
//!
//! | folder | module | task |
//! |---|---|---|
//! | `opening` | `open` | turns configuration into a layered operator |
//! | `opening` | `observe` | logs requests without their queries, and reads the provider's clock |
//! | `opening` | `fault` | converts OpenDAL's errors to ours, without secrets |
//! | `opening` | `transport` | sends requests and times their silence |
//! | `line` | `breaker` | makes operations fail at once while the provider does not answer |
//! | `line` | `gate`, `memory`, `turns` | limit concurrency and the memory of puts, with a limit for each wait |
//! | `line` | `threads` | runs the `fs` service on separate threads |
//! | `object` | `store` | implements [`BlobStore`](crate::storage::BlobStore) for the provider |
//! | `object` | `put`, `parts`, `verify` | store in one request or in parts, and verify the result |
//! | `object` | `read` | reads ranges as streams |
//! | `object` | `inspect` | lists names and lengths of the provider's objects |
//! | `object` | `objects` | stores, reads, lists and removes objects of snapshots |
//! | `object` | `durable` | syncs directories, which the `fs` service omits |
//! | `upload` | `leftovers` | removes the leftovers of killed writes at an `fs` provider |
//! | `upload` | `uploads`, `s3_uploads` | list and abort unfinished multipart uploads |
//! | `signing` | `presign`, `azure_sas` | create URLs that grant one object |
//! | `identity` | `marker` | checks that a bucket or disk belongs to the store's records |
//! | `identity` | `probe` | tests once how an S3 provider handles checksums and conditions |
//! | `identity` | `probe_objects` | removes the objects of probes and checks |
//! | `identity` | `check` | tests a provider for an administrator |
//! | | `simulated` | in tests: objects in memory, behind simulated faults |

mod opening;
mod line;
mod object;
mod upload;
mod signing;
mod identity;
#[cfg(any(test, feature = "internals"))]
mod simulated;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::future::BoxFuture;
use opendal::Operator;
use tokio::sync::oneshot;

use self::identity::marker::Identity;
use self::identity::probe::Probing;
use self::line::breaker::{Breakers, Direction};
use self::line::memory::Memory;
use self::line::threads::Threads;
use self::line::turns::Turns;
use self::opening::Client;
use self::opening::fault::Faults;
use self::opening::remote_clock::RemoteClock;
use self::signing::presign::Presigner;
use self::upload::uploads::Uploads;
use crate::domain::error::{Error, Result};
use crate::domain::provider::health::ProviderHealth;
use crate::domain::provider::{ProviderCode, ProviderConfig};
use crate::domain::time::clock::{Clock, Timestamp};
use crate::storage::CloudCapabilities;

pub use self::object::inspect::Listing;
#[cfg(any(test, feature = "internals"))]
pub use simulated::{SimulatedProviders, Weather};

/// The additional time limit for sweeping a staging directory, beyond that of an operation.
const SWEEP_TIME: Duration = Duration::from_mins(10);

/// The minimum write rate of a disk. The rate determines how much time an `fs` provider has for a file.
const SLOWEST_DISK_BYTES_PER_SECOND: u64 = 1 << 20;

/// A provider of location CLOUD. Cheap to clone.
#[derive(Clone)]
pub struct Cloud {
    inner: Arc<Inner>,
}

struct Inner {
    code: ProviderCode,
    scheme: Scheme,
    /// Used only through [`Cloud::ask`].
    operator: Operator,
    memory: Memory,
    turns: Turns,
    /// The provider's own threads, which the `fs` service needs.
    threads: Option<Threads>,
    faults: Arc<Faults>,
    breakers: Arc<Breakers>,
    /// The store's clock.
    now: Clock,
    opened_at: Timestamp,
    presigner: Presigner,
    /// The root of the `fs` service's files.
    directory: Option<PathBuf>,
    clock: Arc<RemoteClock>,
    /// True once a reply showed that removed objects are kept as older versions.
    keeps_versions: Arc<AtomicBool>,
    identity: Identity,
    /// Client for requests that must not be signed again. None for a disk and for memory.
    http: Option<Client>,
    timeout: Duration,
    io_timeout: Duration,
    attempts: usize,
    /// The minimum read rate, in bytes per second. 0 means no minimum.
    min_read_rate: u64,
    probing: Arc<Probing>,
    /// The list of unfinished uploads, if the service and its keys allow it.
    uploads: Uploads,
}

/// The protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    S3,
    #[cfg(feature = "azblob")]
    Azblob,
    #[cfg(feature = "gcs")]
    Gcs,
    Fs,
    Memory,
}

impl Cloud {
    /// Opens the provider without sending a request. `Unusable` if an option is wrong. The message names the
    /// provider and the option.
    pub(super) fn open(config: &ProviderConfig, clock: &Clock) -> Result<Self> {
        opening::open::open(config, clock)
    }

    /// Refuses the configurations that [`open`](Self::open) refuses, and creates nothing.
    pub(super) fn check_config(config: &ProviderConfig, clock: &Clock) -> Result<()> {
        opening::open::check(config, clock)
    }

    /// Returns the provider's code.
    pub fn code(&self) -> &ProviderCode {
        &self.inner.code
    }

    /// Returns the capabilities of the provider that are known so far.
    pub fn capabilities(&self) -> CloudCapabilities {
        let stored = self.inner.operator.info().capability();
        let probed = self.inner.probing.found();

        CloudCapabilities {
            presigns: !matches!(self.inner.presigner, Presigner::Nobody),
            overrides_disposition: self.inner.presigner.overrides(),
            stores_disposition: stored.write_with_content_disposition,
            checks_checksums: probed.map(|probed| probed.checks_checksums),
            puts_if_absent: probed.map(|probed| probed.puts_if_absent),
        }
    }

    /// Returns the maximum time after which an abandoned write can still arrive: its wait for a turn, and all
    /// its attempts.
    pub(super) fn late_write_limit(&self) -> Duration {
        if self.inner.scheme == Scheme::Memory {
            return Duration::ZERO;
        }
        let attempts = u32::try_from(self.inner.attempts).unwrap_or(u32::MAX);
        self.inner.timeout.saturating_add(self.inner.io_timeout.saturating_mul(attempts))
    }

    /// Returns the provider's health.
    pub fn health(&self) -> ProviderHealth {
        self.inner.breakers.health()
    }

    /// Returns true if the provider accepts a put or a removal now.
    pub fn may_try(&self) -> bool {
        self.health().writes.may_try(self.inner.now.now())
    }

    /// Sends an operation, and reports to the breaker if the provider answered. A refusal is an answer.
    async fn ask<T: Send + 'static>(
        &self,
        direction: Direction,
        asking: impl Future<Output = opendal::Result<T>> + Send + 'static,
    ) -> opendal::Result<T> {
        self.ask_long(direction, 0, asking).await
    }

    /// Sends an operation that moves `bytes`, like [`ask`](Self::ask).
    async fn ask_long<T: Send + 'static>(
        &self,
        direction: Direction,
        bytes: u64,
        asking: impl Future<Output = opendal::Result<T>> + Send + 'static,
    ) -> opendal::Result<T> {
        let outcome = self.run(bytes, asking).await;
        self.take_note(direction, direction, &outcome);
        outcome
    }

    /// Reads as a part of an operation in `direction`. Silence counts against this operation. An answer
    /// proves only that the provider can be read. If an answer closed the breaker of writes, the store would
    /// ask a provider without write access forever.
    async fn ask_within<T: Send + 'static>(
        &self,
        direction: Direction,
        reading: impl Future<Output = opendal::Result<T>> + Send + 'static,
    ) -> opendal::Result<T> {
        let outcome = self.run(0, reading).await;
        self.take_note(Direction::Read, direction, &outcome);
        outcome
    }

    async fn run<T: Send + 'static>(
        &self,
        bytes: u64,
        asking: impl Future<Output = opendal::Result<T>> + Send + 'static,
    ) -> opendal::Result<T> {
        match &self.inner.threads {
            None => asking.await,
            Some(threads) => {
                let extra = Duration::from_secs(bytes / SLOWEST_DISK_BYTES_PER_SECOND);
                threads.run(asking, extra).await.flatten()
            }
        }
    }

    /// Reports an answer to the breaker of `asked`, or silence to the breaker of `concerned`.
    fn take_note<T>(&self, asked: Direction, concerned: Direction, outcome: &opendal::Result<T>) {
        match outcome {
            Err(error) if opening::cancelling::is_cancelled(error) => {}
            Err(error) if opening::fault::is_outage(error) => {
                // What answers next may be another place.
                self.inner.identity.forget();
                if concerned == Direction::Write && opening::open::is_overload(error) {
                    self.inner.turns.sends.narrow();
                }
                self.inner.breakers.failed(concerned, self.inner.faults.text(error));
            }
            Ok(_) | Err(_) => {
                if asked == Direction::Write {
                    self.inner.turns.sends.widen();
                }
                self.inner.breakers.answered(asked);
            }
        }
    }

    /// Sends an operation with a value that is used again, for example a writer or a stream. The value is
    /// lost if the operation is abandoned.
    async fn ask_with<S: Send + 'static, T: Send + 'static>(
        &self,
        direction: Direction,
        bytes: u64,
        mut with: S,
        asking: impl for<'a> FnOnce(&'a mut S) -> BoxFuture<'a, opendal::Result<T>> + Send + 'static,
    ) -> (Option<S>, opendal::Result<T>) {
        let (give, mut given) = oneshot::channel();
        let asking = async move {
            let outcome = asking(&mut with).await;
            // Nobody takes it back if the asking was given up.
            _ = give.send(with);
            outcome
        };

        let outcome = self.ask_long(direction, bytes, asking).await;
        (given.try_recv().ok(), outcome)
    }

    /// Removes the object. `Ok` only if it is confirmed absent.
    async fn remove_path(&self, path: &str) -> Result<()> {
        const REMOVING: &str = "removing a blob";

        self.inner.breakers.check(Direction::Write)?;
        let turn = self.inner.turns.removals.pass(1, self.request_patience()).await;
        let _turn = turn.map_err(|waited| self.busy("removals", waited))?;
        let _admission = self.inner.breakers.admit(Direction::Write)?;

        self.confirm_identity(path, Direction::Write).await?;
        let (operator, at) = (self.inner.operator.clone(), path.to_owned());
        let removed = self.ask(Direction::Write, async move { operator.delete(&at).await }).await;
        match removed {
            // Another removal was faster. (OpenDAL's `fs` looks first and unlinks then.)
            Err(error) if opening::fault::is_missing_object(&error) => {}
            outcome => outcome.map_err(|error| self.fault(REMOVING, &error))?,
        }

        // Asked with GET, not HEAD: without the reply's body a missing bucket looks like a missing
        // object, and bytes that are out of sight would count as gone.
        let (operator, at) = (self.inner.operator.clone(), path.to_owned());
        let look = async move { operator.read_with(&at).range(0..1).await };
        match self.ask(Direction::Read, look).await {
            Err(error) if opening::fault::is_missing_object(&error) => {}
            Err(error) if error.kind() == opendal::ErrorKind::RangeNotSatisfied => {
                return Err(self.broken(REMOVING, "it is still there"));
            }
            Err(error) => return Err(self.fault(REMOVING, &error)),
            Ok(_) => return Err(self.broken(REMOVING, "it is still there")),
        }

        // An empty directory under a mount that went away has no object either.
        self.confirm_identity(path, Direction::Write).await?;
        self.flush(path).await
    }

    /// Makes the names of an object durable, if the service does not.
    async fn flush(&self, path: &str) -> Result<()> {
        match (&self.inner.threads, &self.inner.directory) {
            (Some(threads), Some(root)) => object::durable::flush(threads, root, path).await,
            _ => Ok(()),
        }
    }

    /// Converts an error of OpenDAL to an error with the provider and the operation.
    fn fault(&self, doing: &str, error: &opendal::Error) -> Error {
        self.inner.faults.of(doing, error)
    }

    /// Returns the error for an answer of the provider that cannot be right.
    fn broken(&self, doing: &str, problem: impl Into<String>) -> Error {
        self.inner.faults.broken(doing, problem.into())
    }
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cloud")
            .field("code", &self.inner.code)
            .field("scheme", &self.inner.scheme)
            .finish()
    }
}
