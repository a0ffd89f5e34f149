//! The erasure of an organization.

use std::fmt;
use std::str::FromStr;

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{KeyId, OrganizationId, StoreId};
use crate::domain::time::clock::Timestamp;

/// The number of the last erasure that was known when some work began.
///
/// Each erasure of an organization stores a new number, which is greater than all numbers before.
/// Work from an earlier era can no longer store data of that organization. The number is about the
/// time in milliseconds since 1970, so an era never repeats, even after you restore an older
/// snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Era(i64);

impl Era {
    /// Converts a stored number.
    pub const fn from_number(number: i64) -> Self {
        Self(number)
    }

    /// Returns the number to store.
    pub const fn number(self) -> i64 {
        self.0
    }

    /// Returns the era of an erasure at `now`. `self` is the last era so far.
    #[must_use]
    pub(crate) fn next(self, now: Timestamp) -> Self {
        Self(self.0.max(now.as_millis()).saturating_add(1))
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Era {
    type Err = Error;

    /// Reads decimal digits.
    fn from_str(text: &str) -> Result<Self> {
        let is_plain = text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_plain);
        number.map(Self).ok_or_else(|| Error::invalid("era", "an era is a decimal number"))
    }
}

/// Creates the error for work that an erasure has ended.
pub(crate) fn erased() -> Error {
    let message = "the organization was erased after this request began: nothing was stored";
    Error::new(ErrorKind::Conflict, message).with_field("organization_id")
}

/// Creates the error for a signed upload to an organization that was erased later.
pub(crate) fn erased_since_signed() -> Error {
    let message = "the organization was erased after this URL was signed";
    Error::new(ErrorKind::SignatureInvalid, message).with_field("era")
}

/// An erasure receipt: removed data, and remaining data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EraseReceipt {
    /// Organization.
    pub organization: OrganizationId,
    /// Store id.
    pub store_id: StoreId,
    /// First run's start time.
    pub started_at: Timestamp,
    /// Receipt time.
    pub ended_at: Timestamp,
    /// True if filestore checked every place and found no data of the organization. If false, run
    /// the erasure again.
    pub is_complete: bool,
    /// Removed data, of all runs.
    pub removed: Removed,
    /// Revoked keys: keys for this organization only.
    pub keys_revoked: Vec<KeyId>,
    /// Keys that lost this organization and keep other organizations.
    pub keys_narrowed: Vec<KeyId>,
    /// Checked places, with the results.
    pub places: Vec<ErasedPlace>,
    /// Places that can still return data, although the erasure is complete.
    pub may_return: Vec<MayReturn>,
}

/// A place that can still return an erased organization's data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MayReturn {
    /// Place: `shared caches`, `presigned URLs`, a provider code, or `backup` and a destination.
    pub place: String,
    /// Time from which the place returns no data. `None` if no time limit exists.
    pub until: Option<Timestamp>,
    /// The reason, and how to end it.
    pub detail: String,
}

impl MayReturn {
    pub(crate) fn new(
        place: impl Into<String>,
        until: Option<Timestamp>,
        detail: impl Into<String>,
    ) -> Self {
        Self { place: place.into(), until, detail: detail.into() }
    }
}

/// The amount of removed data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// Files. Their variants are removed too.
    pub files: u64,
    /// Total file size, in bytes.
    pub bytes: u64,
    /// Bindings, with ended bindings.
    pub bindings: u64,
    /// Replies to uploads with an idempotency key.
    pub replies: u64,
}

/// A place that an erasure has checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErasedPlace {
    /// Place: a provider code, `LOCAL`, `database`, `keys` or `quarantine`.
    pub place: String,
    /// True if the place contains no data of the organization.
    pub is_absent: bool,
    /// Remaining data, or the reason why the check failed. Empty if `is_absent` is true.
    pub detail: String,
}

impl ErasedPlace {
    pub(crate) fn new(place: impl Into<String>, left: Option<String>) -> Self {
        Self { place: place.into(), is_absent: left.is_none(), detail: left.unwrap_or_default() }
    }

    /// Describes a place by its number of blobs, or by the reason why they could not be counted.
    pub(crate) fn counted(place: impl Into<String>, left: Result<u64>) -> Self {
        let detail = match left {
            Ok(0) => None,
            Ok(count) => Some(format!("{count} blobs")),
            Err(error) => Some(format!("it could not be looked at: {error}")),
        };
        Self::new(place, detail)
    }
}

/// An organization's remaining rows in the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftInDatabase {
    /// Records, with damaged records.
    pub files: u64,
    /// Replaced blobs.
    pub dropped: u64,
    /// Write intents.
    pub notes: u64,
    /// Bindings.
    pub bindings: u64,
    /// Replies for idempotency keys.
    pub replies: u64,
    /// Resumable uploads.
    pub uploads: u64,
    /// Events, except those of existing files, and those about earlier erasures.
    pub events: u64,
    /// Webhooks, and events that wait for webhooks or failed.
    pub webhooks: u64,
}

impl LeftInDatabase {
    /// Describes the remaining rows. `None` if there are none.
    pub(crate) fn describe(self) -> Option<String> {
        let Self { files, dropped, notes, bindings, replies, uploads, events, webhooks } = self;
        let all = [
            (files, "files"),
            (dropped, "replaced blobs, which stay listed until their grace period ends"),
            (notes, "write intents"),
            (bindings, "bindings"),
            (replies, "remembered replies"),
            (uploads, "resumable uploads"),
            (events, "events"),
            (webhooks, "webhooks or their waiting events"),
        ];
        let left: Vec<_> = all
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        (!left.is_empty()).then(|| left.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_era_is_later_than_the_one_before_and_than_its_time() {
        let at = Timestamp::from_millis;
        let first = Era::default().next(at(100));
        assert_eq!(first.number(), 101);
        // Also where the clock stands still, or goes back.
        assert!(first.next(at(100)) > first && first.next(at(5)) > first);
        assert!(first.next(at(1000)) > Era::from_number(1000));
    }

    #[test]
    fn an_era_is_written_in_digits() {
        assert_eq!("17".parse::<Era>().unwrap().to_string(), "17");
        for bad in ["", "-1", "+1", "1.5", "99999999999999999999"] {
            assert!(bad.parse::<Era>().is_err(), "{bad}");
        }
    }
}
