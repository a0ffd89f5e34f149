//! The blobs at one CLOUD provider, through OpenDAL.
//!
//! Purpose: puts are verified before they count, reads never end short, "removed" means absent, and a
//! presigned URL grants reading one object and nothing else. Errors name the provider and what was
//! being done; no credential, signed URL or option value is in them.
//!
//! Keys are written once. Where the store can, a put is made "if absent", so that a reply that got
//! lost and was retried cannot overwrite anything.
//!
//! Crash safety: none of its own. A put that fails or is cut off may leave an object under its key (an
//! unfinished multipart upload is aborted). Callers write an intent before the put and remove the
//! key when it comes to nothing.
//!
//! | module | what it does |
//! |---|---|
//! | `open` | from configuration to a layered operator |
//! | `observe` | requests in the log without their queries; the provider's clock |
//! | `tls` | cryptography and trust for those requests |
//! | `fault` | OpenDAL's errors as ours, without secrets |
//! | `budget` | bounds the memory of all puts |
//! | `put`, `parts`, `verify` | storing: in one request or in parts, then proof that it arrived |
//! | `probe` | what an S3 store does with checksums and conditions, tried out once |
//! | `read` | ranges as streams |
//! | `presign`, `azure_sas` | URLs that grant one object |
//! | `check` | trying a provider out |
//! | `durable` | what the `fs` service leaves out: fsync of directories |

mod open;
mod observe;
mod tls;
mod fault;
mod budget;
mod put;
mod parts;
mod verify;
mod probe;
mod read;
mod presign;
#[cfg(feature = "azblob")]
mod azure_sas;
mod durable;
mod check;
mod store;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opendal::Operator;
use tokio::sync::{OnceCell, Semaphore};

use self::fault::Faults;
use self::observe::RemoteClock;
use self::presign::Presigner;
use self::probe::Probed;
use crate::domain::error::{Error, Result};
use crate::domain::provider::{ProviderCode, ProviderConfig};

pub(super) use self::budget::PutBudget;
pub use self::check::{CheckOutcome, CheckStep, ProviderCheck};
pub(super) use self::open::unusable;
pub use self::presign::{PresignRequest, Presigned};

/// Bytes that all puts of a registry together hold in memory.
pub(super) const PUT_MEMORY_BYTES: usize = 32 << 20;

/// A provider of location CLOUD. Cheap to clone.
#[derive(Clone)]
pub struct Cloud {
    inner: Arc<Inner>,
}

struct Inner {
    code: ProviderCode,
    scheme: Scheme,
    /// For everything but reads: waits when `concurrency` operations run.
    operator: Operator,
    /// For reads, which last as long as their reader wants. They have `reads` instead, so that slow
    /// readers cannot keep a put waiting, nor two providers each other.
    reading: Operator,
    reads: Arc<Semaphore>,
    budget: PutBudget,
    faults: Arc<Faults>,
    presigner: Presigner,
    /// Where the `fs` service keeps its files.
    directory: Option<PathBuf>,
    clock: Arc<RemoteClock>,
    /// A bare client, for requests that must not be signed.
    http: reqwest::Client,
    timeout: Duration,
    probed: OnceCell<Probed>,
}

/// The kinds of service there are.
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

/// What a provider can do for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloudCapabilities {
    /// Readers can be sent to it with a URL that grants one object.
    pub presigns: bool,
    /// Such a URL can say another type and disposition than what was stored.
    pub overrides_disposition: bool,
    /// A disposition is stored with the object.
    pub stores_disposition: bool,
    /// It refuses a put whose bytes do not fit their checksum. `None`: not tried yet.
    pub checks_checksums: Option<bool>,
    /// It refuses a put to a key that exists. `None`: not tried yet.
    pub puts_if_absent: Option<bool>,
}

impl Cloud {
    /// Opens the provider; `Unusable` names it and the option at fault. Talks to nobody.
    pub(super) fn open(config: &ProviderConfig, budget: &PutBudget) -> Result<Self> {
        open::open(config, budget.clone())
    }

    /// Its code.
    pub fn code(&self) -> &ProviderCode {
        &self.inner.code
    }

    /// What it can do.
    pub fn capabilities(&self) -> CloudCapabilities {
        let stored = self.inner.operator.info().capability();
        let probed = self.inner.probed.get();
        CloudCapabilities {
            presigns: !matches!(self.inner.presigner, Presigner::Nobody),
            overrides_disposition: self.inner.presigner.overrides(),
            stores_disposition: stored.write_with_content_disposition,
            checks_checksums: probed.map(|probed| probed.checks_checksums),
            puts_if_absent: probed.map(|probed| probed.puts_if_absent),
        }
    }

    /// Removes the object; `Ok` only when it is confirmed absent.
    async fn remove_path(&self, path: &str) -> Result<()> {
        const REMOVING: &str = "removing a blob";
        self.inner.operator.delete(path).await.map_err(|error| self.fault(REMOVING, &error))?;
        // Asked with GET, not HEAD: without the reply's body a missing bucket looks like a missing
        // object, and bytes that are out of sight would count as gone.
        match self.inner.operator.read_with(path).range(0..1).await {
            Err(error) if fault::is_missing_object(&error) => {}
            Err(error) if error.kind() == opendal::ErrorKind::RangeNotSatisfied => {
                return Err(self.broken(REMOVING, "it is still there"));
            }
            Err(error) => return Err(self.fault(REMOVING, &error)),
            Ok(_) => return Err(self.broken(REMOVING, "it is still there")),
        }
        durable::flush(self.inner.directory.as_deref(), path).await
    }

    fn fault(&self, doing: &str, error: &opendal::Error) -> Error {
        self.inner.faults.of(doing, error)
    }

    /// The provider answered, and the answer cannot be right.
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
