//! The erasure of an organization: what was removed, and where it was checked that nothing is left.

use super::clock::Timestamp;
use super::error::Result;
use super::id::{KeyId, OrganizationId, StoreId};

/// The report of an erasure of an organization: what was removed, and what was found left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EraseReceipt {
    /// The organization.
    pub organization: OrganizationId,
    /// The store that it was erased from.
    pub store_id: StoreId,
    /// The instant at which the first run of the erasure began.
    pub started_at: Timestamp,
    /// The instant of this receipt.
    pub ended_at: Timestamp,
    /// True if every place was looked at and nothing of the organization found. Else another run goes on.
    pub is_complete: bool,
    /// Files that were removed, by all runs.
    pub removed: Removed,
    /// Keys that named this organization only, and are revoked.
    pub keys_revoked: Vec<KeyId>,
    /// Keys that named others too, and do not reach this organization any more.
    pub keys_narrowed: Vec<KeyId>,
    /// The places that were looked at, and what was found there.
    pub places: Vec<ErasedPlace>,
}

/// The numbers of what an erasure has removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// Files, with their variants.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Bindings, terminated ones included.
    pub bindings: u64,
    /// Remembered replies to uploads with an idempotency key.
    pub replies: u64,
}

/// A place that an erasure has looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErasedPlace {
    /// The place: the code of a holder, `database`, `keys`, `quarantine`.
    pub place: String,
    /// True if nothing of the organization is there.
    pub is_absent: bool,
    /// The find, or the reason why the place could not be looked at; empty if nothing is there.
    pub detail: String,
}

impl ErasedPlace {
    pub(crate) fn new(place: impl Into<String>, left: Option<String>) -> Self {
        Self { place: place.into(), is_absent: left.is_none(), detail: left.unwrap_or_default() }
    }

    /// Describes a place by the blobs that were counted there, or by the reason why none were.
    pub(crate) fn counted(place: impl Into<String>, left: Result<u64>) -> Self {
        let detail = match left {
            Ok(0) => None,
            Ok(count) => Some(format!("{count} blobs")),
            Err(error) => Some(format!("it could not be looked at: {error}")),
        };
        Self::new(place, detail)
    }
}

/// The rows that are left of an organization in the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftInDatabase {
    /// Records, damaged ones included.
    pub files: u64,
    /// Dropped blobs.
    pub dropped: u64,
    /// Notes of writes.
    pub notes: u64,
    /// Bindings.
    pub bindings: u64,
    /// Remembered replies.
    pub replies: u64,
}

impl LeftInDatabase {
    /// Describes what is left; `None` if nothing is.
    pub(crate) fn describe(self) -> Option<String> {
        let Self { files, dropped, notes, bindings, replies } = self;
        let all = [
            (files, "files"),
            (dropped, "dropped blobs, which stay noted until their grace period is over"),
            (notes, "notes of writes"),
            (bindings, "bindings"),
            (replies, "remembered replies"),
        ];
        let left: Vec<_> = all
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        (!left.is_empty()).then(|| left.join(", "))
    }
}
