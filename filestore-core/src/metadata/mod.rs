//! Metadata: all SQL behind one trait.
//!
//! [`Metadata`] offers all that the use cases and workers need of a database. Each method is one
//! transaction, or one read from one snapshot; no transaction handle leaves an engine. Every change
//! of a file is a compare-and-set on the state it was decided from ([`Expected`]), so a caller that
//! lost a race learns of it and decides again. `contract` is the suite that every engine passes.
//!
//! # Commit point
//! A call that returns `Ok` is durable (unless the engine was opened with
//! [`Durability::Process`](crate::domain::config::Durability)). Blobs named in it were durable before.
//! A write that fails with [`StorageFull`], [`DatabaseFull`] or [`Busy`] committed nothing; after any other
//! error it may have been committed or not. After [`OutcomeUnknown`] it may also be committed yet
//! ([`Upkeep::outcomes_known`]).
//!
//! [`StorageFull`]: crate::domain::error::ErrorKind::StorageFull
//! [`DatabaseFull`]: crate::domain::error::ErrorKind::DatabaseFull
//! [`Busy`]: crate::domain::error::ErrorKind::Busy
//! [`OutcomeUnknown`]: crate::domain::error::ErrorKind::OutcomeUnknown

mod types;
mod files;
mod bindings;
mod keys;
mod purges;
mod syncs;
mod intents;
mod signatures;
mod holds;
mod servers;
mod upkeep;
mod inspection;
mod stored;
mod damaged_rows;
mod paging;
pub mod sqlite;
#[cfg(feature = "postgres")]
pub mod copying;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(test)]
pub mod contract;

pub use bindings::Bindings;
pub use files::Files;
pub use holds::Holds;
pub use inspection::{
    CheckName, CheckRun, DriftedTotal, Inspection, MendLocation, MendedRow, NamedBlob,
    PurgeClaimed, Referrer, Total, WalkedFile, WalkedFiles,
};
pub use intents::Intents;
pub use keys::Keys;
pub use purges::Purges;
pub use servers::{Company, SecretsVersion, Servers, ShownWork};
pub use signatures::Signatures;
pub use syncs::Syncs;
pub use types::{
    AfterFailure, BindingOutcome, BindingSeen, DroppedBlob, DueBlob, Expected, Holding,
    IdempotencyEntry, InsertFiles, Inserted, KeyChange, KeyOutcome, Lease, ListedFiles,
    PurgeBacklog, PurgeClaim, Purged, StoredKey, StoredSecret, SyncClaim, SyncCounts, UpdateFile,
    Updated, WriteIntent, Writes,
};
pub use upkeep::Upkeep;

/// All that a store needs of a database, in eleven groups.
///
/// | group | methods |
/// |---|---|
/// | [`Files`] | look-up, listing, insert, change, placeholders, remembered replies, usage |
/// | [`Bindings`] | look-up, creation, change |
/// | [`Keys`] | reading all, creation, change, uses |
/// | [`Purges`] | expiry, claims of deleted files, dropped blobs, receipts |
/// | [`Syncs`] | settling, claims of files to copy, queueing, counts |
/// | [`Intents`] | objects on their way to a provider, and the holders of files |
/// | [`Signatures`] | secrets that sign URLs, signed uploads that were made |
/// | [`Holds`] | what snapshots under way keep from being removed |
/// | [`Servers`] | who else works on the database: what is left of those that are gone, what one does at a time |
/// | [`Upkeep`] | settings, health and closing |
/// | [`Inspection`] | what checks of the store ask |
///
/// # Claims
/// A claim carries a [`Lease`]: until it ends no other run gets the same row, and after it the row can
/// be claimed again. Its owner tells runs apart ([`Servers::run_name`]); a call of another owner changes nothing.
pub trait Metadata:
    Files
    + Bindings
    + Keys
    + Purges
    + Syncs
    + Intents
    + Signatures
    + Holds
    + Servers
    + Upkeep
    + Inspection
{
}

impl<E> Metadata for E where
    E: Files
        + Bindings
        + Keys
        + Purges
        + Syncs
        + Intents
        + Signatures
        + Holds
        + Servers
        + Upkeep
        + Inspection
{
}

/// The groups, for tests that call an engine by its type.
#[cfg(test)]
pub(crate) mod prelude {
    pub(crate) use super::{
        Files as _, Holds as _, Intents as _, Purges as _, Syncs as _, Upkeep as _,
    };
}
