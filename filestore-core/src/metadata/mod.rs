//! Metadata: all SQL behind one trait.
//!
//! [`Metadata`] contains all database operations of the use cases and workers. Each method is one
//! transaction, or one read from one snapshot. No transaction handle leaves an engine. Every change of a file
//! is a compare-and-set on the state from which it was decided ([`Expected`]). If a caller loses a race, it
//! gets this result and decides again. `contract` is the test suite for every engine.
//!
//! # Commit point
//! A call that returns `Ok` is durable, unless the engine was opened with
//! [`Durability::Process`](crate::domain::config::Durability). Blobs that it names must have been durable
//! before. A write that fails with [`StorageFull`], [`DatabaseFull`] or [`Busy`] committed nothing. After any
//! other error, the outcome is unknown. After [`OutcomeUnknown`], the write can even be committed later
//! ([`Upkeep::outcomes_known`]).
//!
//! [`StorageFull`]: crate::domain::error::ErrorKind::StorageFull
//! [`DatabaseFull`]: crate::domain::error::ErrorKind::DatabaseFull
//! [`Busy`]: crate::domain::error::ErrorKind::Busy
//! [`OutcomeUnknown`]: crate::domain::error::ErrorKind::OutcomeUnknown

mod types;
mod resumable;
#[cfg_attr(
    not(feature = "webhooks"),
    expect(dead_code, reason = "a build without webhooks sends nothing")
)]
mod webhook;
mod groups;
mod servers;
mod inspection;
mod stored;
mod events;
mod damaged_rows;
mod paging;
pub mod sqlite;
#[cfg(feature = "postgres")]
pub mod copying;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(test)]
pub mod contract;

pub use events::{EventBody, LogBounds, LogOrder, LogPart, LogRange, LogSwitch, LoggedEvent};
pub use groups::{
    Backlog, Bindings, Dropped, Erasures, EventLog, Explaining, Files, Holdings, Holds,
    Idempotency, Intents, Keys, Leases, Listing, Organizations, Purges, Receipts, Resumables,
    Signing, Syncs, Upkeep, Webhooks,
};
pub use inspection::{
    CheckName, CheckRun, DriftedTotal, Inspection, Mend, MendLocation, MendedRow, NamedBlob,
    PurgeClaimed, Referrer, Referrers, Runs, Total, Totals, Walk, WalkedFile, WalkedFiles,
};
pub use resumable::{
    FinishUpload, UploadChange, UploadChanged, UploadCreated, UploadLimits, UploadPart, UploadRow,
};
pub use servers::{Company, SecretsVersion, Servers, ShownWork};
pub use types::{
    AfterFailure, BindingOutcome, BindingSeen, Claims, DroppedBlob, DueBlob, DueFiles, Expected,
    Holding, IdempotencyEntry, InsertFiles, Inserted, KeyChange, KeyOutcome, Lease, ListedFiles,
    PurgeBacklog, PurgeClaim, Purged, StoredKey, StoredSecret, SyncClaim, SyncCounts, UpdateFile,
    Updated, WriteIntent, Writes,
};

pub(crate) use webhook::MOST_FAILURES;
pub use webhook::{
    ClaimedLane, FailureRow, LaneSave, LaneSaved, Requeued, Retried, RetriedFailure, WebhookChange,
    WebhookMade, WebhookRow,
};

use crate::tasks;

/// All database operations of a store: groups that every engine implements, and two optional parts.
///
/// | group | methods |
/// |---|---|
/// | [`Files`] | look-up, insert, change, placeholders, usage |
/// | [`Listing`] | listings by filter, page by page |
/// | [`Organizations`] | organizations and sub-systems, with their totals |
/// | [`Idempotency`] | remembered replies |
/// | [`Resumables`] | resumable uploads |
/// | [`Bindings`] | look-up, creation, change |
/// | [`Keys`] | reading all, creation, change, uses |
/// | [`Signing`] | secrets that sign URLs, completed signed uploads |
/// | [`Purges`] | expiry, claims of deleted files, their end |
/// | [`Dropped`] | replaced blobs |
/// | [`Receipts`] | purge receipts |
/// | [`Explaining`] | a file with the work that waits for it |
/// | [`Syncs`] | settling, claims of files to copy, queueing, counts |
/// | [`Intents`] | objects on their way to a provider |
/// | [`Holdings`] | the holders of files |
/// | [`Leases`] | the terms of claims, and of waits after failures |
/// | [`Backlog`] | counts of waiting work |
/// | [`Holds`] | protection of the data in running snapshots |
/// | [`Erasures`] | eras of organizations, and leftovers of erasures |
/// | [`EventLog`] | the log of events: reading, waiting, forgetting |
/// | [`Webhooks`] | webhooks, their lanes and failures |
/// | [`Upkeep`] | settings, health and closing |
///
/// # Claims
/// A claim has a [`Lease`]. Until the lease ends, no other run gets the same row. After that, the row can be
/// claimed again. The owner's name identifies the run (`run_name`). A call by another owner changes nothing.
pub trait Metadata:
    Files
    + Listing
    + Organizations
    + Idempotency
    + Resumables
    + Bindings
    + Keys
    + Signing
    + Purges
    + Dropped
    + Receipts
    + Explaining
    + Syncs
    + Intents
    + Holdings
    + Leases
    + Backlog
    + Holds
    + Erasures
    + EventLog
    + Webhooks
    + Upkeep
{
    /// Returns the operations for checks of the store.
    fn inspection(&self) -> &dyn Inspection;

    /// Returns the operations for several servers. `None` if this process uses the database alone.
    fn servers(&self) -> Option<&dyn Servers>;
}

impl dyn Metadata + '_ {
    /// Returns the name under which this server owns the files on its disk. A restart keeps the name. Empty if no
    /// other server uses the database.
    pub fn server_name(&self) -> String {
        let name = self.servers().map(Servers::run_name).unwrap_or_default();
        name.split('.').next().unwrap_or_default().to_owned()
    }

    /// Returns whether other processes can work on the store at the same time.
    pub fn company(&self) -> Company {
        self.servers().map_or(Company::Alone, Servers::company)
    }

    /// Returns a new, unique name for a run, as the owner of its claims.
    pub fn run_name(&self) -> String {
        self.servers().map_or_else(tasks::random_name, Servers::run_name)
    }
}

/// The groups, for tests that call an engine by its type.
#[cfg(test)]
pub(crate) mod prelude {
    pub(crate) use super::{
        Backlog as _, Dropped as _, EventLog as _, Files as _, Holds as _, Leases as _,
        Listing as _, Metadata as _, Purges as _, Syncs as _, Upkeep as _,
    };
}
