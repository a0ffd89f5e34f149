//! The blobs at one CLOUD provider, through OpenDAL.
//!
//! # Purpose
//! Puts are verified before they count, reads never end short, "removed" means absent, and a
//! presigned URL grants reading one object and nothing else. Errors name the provider and what was
//! being done; no credential, signed URL or option value is in them.
//!
//! Keys are written once. Where the provider supports it, a put is made "if absent", so that a
//! retry after a lost reply cannot overwrite anything.
//!
//! OpenDAL speaks the providers' protocols: signatures, error codes and retries of many services
//! are not what this project exists for. Around OpenDAL stands what it leaves out: verification,
//! intents of what was begun, and presigning that grants one object.
//!
//! # Crash safety
//! None of its own. A put that fails or is cut off may leave an object under its key (an unfinished
//! multipart upload is aborted). Callers write an intent before the put and remove the key when the
//! put comes to nothing.
//!
//! | module | what it does |
//! |---|---|
//! | `open` | turns configuration into a layered operator |
//! | `observe` | logs requests without their queries; reads the provider's clock |
//! | `tls` | cryptography and trust for those requests |
//! | `fault` | turns OpenDAL's errors into ours, without secrets |
//! | `breaker` | lets operations fail at once while the provider does not answer |
//! | `store` | the provider as a [`BlobStore`](crate::storage::BlobStore) |
//! | `gate`, `memory`, `turns` | bound what runs at once and the memory of puts, with an end to each wait |
//! | `threads` | runs the `fs` service on threads of its own |
//! | `put`, `parts`, `verify` | stores in one request or in parts, then proves the arrival |
//! | `marker` | makes sure that a provider is the place that the records mean |
//! | `leftovers` | removes what a killed write leaves at an `fs` provider |
//! | `uploads`, `s3_uploads` | lists and aborts uploads in parts that nobody finished |
//! | `transport` | sends requests and times their silence |
//! | `probe` | finds out once how an S3 provider treats checksums and conditions |
//! | `probe_objects` | removes what probes and checks stored |
//! | `read` | reads ranges as streams |
//! | `presign`, `azure_sas` | makes URLs that grant one object |
//! | `check` | tries a provider out for an administrator |
//! | `inspect` | looks at what a provider holds: lengths, names |
//! | `objects` | stores, reads, lists and removes what snapshots are made of |
//! | `durable` | fsyncs directories, which the `fs` service leaves out |
//! | `simulated` | in tests: objects in memory, behind faults |

mod open;
mod observe;
mod tls;
mod fault;
mod breaker;
mod store;
mod gate;
mod memory;
mod turns;
mod threads;
mod put;
mod parts;
mod verify;
mod probe;
mod probe_objects;
mod marker;
mod leftovers;
mod uploads;
#[cfg(feature = "s3")]
mod s3_uploads;
mod transport;
mod read;
mod presign;
#[cfg(feature = "azblob")]
mod azure_sas;
mod check;
mod inspect;
mod objects;
mod durable;
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

use self::breaker::{Breakers, Direction};
use self::fault::Faults;
use self::marker::Identity;
use self::memory::Memory;
use self::observe::RemoteClock;
use self::presign::Presigner;
use self::probe::Probing;
use self::threads::Threads;
use self::turns::Turns;
use self::uploads::Uploads;
use crate::domain::clock::{Clock, Timestamp};
use crate::domain::error::{Error, Result};
use crate::domain::provider::{ProviderCode, ProviderConfig};
use crate::domain::provider_health::ProviderHealth;

pub use self::check::{CheckOutcome, CheckStep, ProviderCheck};
pub use self::inspect::Listing;
pub use self::marker::MarkerLedger;
pub(super) use self::open::unusable;
pub use self::presign::{PresignMethod, PresignRequest, Presigned};
pub use self::uploads::{UnfinishedUpload, UploadsPage, UploadsPlace};
#[cfg(any(test, feature = "internals"))]
pub use simulated::{SimulatedProviders, Weather};

/// Time that the sweep of a staging directory may take beyond that of an operation.
const SWEEP_TIME: Duration = Duration::from_mins(10);

/// Rate at which a disk writes at least: an `fs` provider has as much time for a file.
const SLOWEST_DISK_BYTES_PER_SECOND: u64 = 1 << 20;

/// A provider of location CLOUD. Cheap to clone.
#[derive(Clone)]
pub struct Cloud {
    inner: Arc<Inner>,
}

struct Inner {
    code: ProviderCode,
    scheme: Scheme,
    /// Asked through [`Cloud::ask`] only.
    operator: Operator,
    memory: Memory,
    turns: Turns,
    /// Threads of the provider's own, which the `fs` service needs.
    threads: Option<Threads>,
    faults: Arc<Faults>,
    breakers: Arc<Breakers>,
    /// The store's clock.
    now: Clock,
    opened_at: Timestamp,
    presigner: Presigner,
    /// Root of the `fs` service's files.
    directory: Option<PathBuf>,
    clock: Arc<RemoteClock>,
    /// True once a reply told that removed objects are kept as older versions.
    keeps_versions: Arc<AtomicBool>,
    identity: Identity,
    /// Bare client, for requests that must not be signed.
    http: reqwest::Client,
    timeout: Duration,
    io_timeout: Duration,
    attempts: usize,
    /// Bytes per second that a reader must take; 0 for any.
    min_read_rate: u64,
    probing: Arc<Probing>,
    /// Lists unfinished uploads, where the service and its keys allow that.
    uploads: Uploads,
}

/// Kind of service that a provider speaks.
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

/// Capabilities of a provider, as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloudCapabilities {
    /// Presigned URLs that grant reading one object.
    pub presigns: bool,
    /// Presigned URLs that choose another type and disposition than what was stored.
    pub overrides_disposition: bool,
    /// Objects keep the disposition that was stored with them.
    pub stores_disposition: bool,
    /// Puts whose bytes do not fit their checksum are refused. `None` until the first put.
    pub checks_checksums: Option<bool>,
    /// Puts to a key that exists are refused. `None` until the first put.
    pub puts_if_absent: Option<bool>,
}

impl Cloud {
    /// Opens the provider without a request to it. `Unusable` names the provider and the option at
    /// fault.
    pub(super) fn open(config: &ProviderConfig, clock: &Clock) -> Result<Self> {
        open::open(config, clock)
    }

    /// Returns the provider's code.
    pub fn code(&self) -> &ProviderCode {
        &self.inner.code
    }

    /// Returns what the provider can do, as far as known by now.
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

    /// Returns the longest time for which a write that was given up may still arrive: its wait for a
    /// turn, and all its attempts.
    pub(super) fn late_write_limit(&self) -> Duration {
        if self.inner.scheme == Scheme::Memory {
            return Duration::ZERO;
        }
        let attempts = u32::try_from(self.inner.attempts).unwrap_or(u32::MAX);
        self.inner.timeout.saturating_add(self.inner.io_timeout.saturating_mul(attempts))
    }

    /// Describes how the provider answers.
    pub fn health(&self) -> ProviderHealth {
        self.inner.breakers.health()
    }

    /// Tells whether a put or a removal would be let through to the provider now.
    pub fn may_try(&self) -> bool {
        self.health().writes.may_try(self.inner.now.now())
    }

    /// Asks the provider, and tells the breaker whether there was an answer. A refusal is one.
    async fn ask<T: Send + 'static>(
        &self,
        direction: Direction,
        asking: impl Future<Output = opendal::Result<T>> + Send + 'static,
    ) -> opendal::Result<T> {
        self.ask_long(direction, 0, asking).await
    }

    /// Asks as [`ask`](Self::ask) does, for something that moves `bytes`.
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

    /// Reads something as a part of an operation in `direction`: silence counts against the operation,
    /// but an answer tells only that the provider can be read. If it closed the breaker of writes,
    /// a provider that answers to no write would be asked for ever.
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

    /// Tells the breaker of `asked` about an answer, or that of `concerned` about silence.
    fn take_note<T>(&self, asked: Direction, concerned: Direction, outcome: &opendal::Result<T>) {
        match outcome {
            Err(error) if observe::is_cancelled(error) => {}
            Err(error) if fault::is_outage(error) => {
                // What answers next may be another place.
                self.inner.identity.forget();
                if concerned == Direction::Write && open::is_overload(error) {
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

    /// Asks with something that is used again afterwards: a writer, a stream. Lost if the asking
    /// was given up.
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

    /// Removes the object; `Ok` only when it is confirmed absent.
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
            Err(error) if fault::is_missing_object(&error) => {}
            outcome => outcome.map_err(|error| self.fault(REMOVING, &error))?,
        }

        // Asked with GET, not HEAD: without the reply's body a missing bucket looks like a missing
        // object, and bytes that are out of sight would count as gone.
        let (operator, at) = (self.inner.operator.clone(), path.to_owned());
        let look = async move { operator.read_with(&at).range(0..1).await };
        match self.ask(Direction::Read, look).await {
            Err(error) if fault::is_missing_object(&error) => {}
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

    /// Makes the names of an object durable, where the service does not.
    async fn flush(&self, path: &str) -> Result<()> {
        match (&self.inner.threads, &self.inner.directory) {
            (Some(threads), Some(root)) => durable::flush(threads, root, path).await,
            _ => Ok(()),
        }
    }

    /// Turns an error of OpenDAL into one that names the provider and what was being done.
    fn fault(&self, doing: &str, error: &opendal::Error) -> Error {
        self.inner.faults.of(doing, error)
    }

    /// Makes the error for an answer of the provider that cannot be right.
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
