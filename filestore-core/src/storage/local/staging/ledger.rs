//! Limits the bytes that are staged without a commit: running uploads, and complete uploads before their
//! commit.
//!
//! # Purpose
//! Quotas do not count such bytes yet. If a provider is down, clients that upload again and again would fill
//! the disk for everyone. Files and bytes are therefore limited, in total and for each uploader. Uploads
//! beyond a limit get [`ErrorKind::Busy`].
//!
//! The uploader is the organization. Before the organization is known, the uploader is the sender: the key,
//! or the address if there are no keys. One uploader can use at most half of the total, so that others can
//! always upload. Half of the total fits the largest batch.
//!
//! # Locking
//! One lock, held for a few additions.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::domain::config::Limits;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{KeyId, OrganizationId};

/// The pause, in seconds, before a client retries.
const RETRY_AFTER_SECS: u64 = 5;

/// The limits for staged bytes without a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StagedLimits {
    all: Tally,
    uploader: Tally,
}

/// The party whose share staged bytes take.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Uploader {
    /// The organization of the future file.
    Organization(OrganizationId),
    /// The sender's API key, while the organization is not known.
    Key(KeyId),
    /// The sender's address, if there are no keys.
    Address(IpAddr),
    /// Unknown. All such uploads share the limit of one uploader.
    Unknown,
}

impl From<&Limits> for StagedLimits {
    /// Reads the configured limits. A batch or a file of the maximum size always fits, and fits a second time
    /// for another uploader.
    fn from(limits: &Limits) -> Self {
        let (files, bytes) =
            (limits.max_batch_items, limits.max_batch_size.max(limits.max_file_size));
        let all = Tally {
            files: limits.staged_files.max(files.saturating_mul(2)),
            bytes: limits.staged_bytes.max(bytes.saturating_mul(2)),
        };

        Self {
            all,
            uploader: Tally {
                files: limits.staged_files_per_organization.min(all.files / 2).max(files),
                bytes: limits.staged_bytes_per_organization.min(all.bytes / 2).max(bytes),
            },
        }
    }
}

/// A number of files, and the sum of their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) files: usize,
    pub(crate) bytes: u64,
}

impl Tally {
    fn plus(self, more: Self) -> Self {
        Self { files: self.files + more.files, bytes: self.bytes.saturating_add(more.bytes) }
    }

    fn minus(self, less: Self) -> Self {
        Self { files: self.files - less.files, bytes: self.bytes - less.bytes }
    }

    fn fits(self, limit: Self) -> bool {
        self.files <= limit.files && self.bytes <= limit.bytes
    }
}

/// The count of staged bytes without a commit.
#[derive(Debug)]
pub(crate) struct StagedLedger {
    limits: RwLock<StagedLimits>,
    staged: Mutex<Staged>,
}

#[derive(Debug, Default)]
struct Staged {
    all: Tally,
    uploaders: HashMap<Uploader, Tally>,
}

impl StagedLedger {
    /// Begins with a count of 0.
    pub(crate) fn new(limits: StagedLimits) -> Arc<Self> {
        Arc::new(Self { limits: RwLock::new(limits), staged: Mutex::default() })
    }

    /// Counts another file of `uploader`. [`ErrorKind::Busy`] if this exceeds a limit.
    pub(crate) fn begin(self: &Arc<Self>, uploader: Uploader) -> Result<StagedShare> {
        let mut share = StagedShare { ledger: Arc::clone(self), uploader, taken: Tally::default() };
        share.take(Tally { files: 1, bytes: 0 })?;
        Ok(share)
    }

    /// Returns the total limit.
    pub(crate) fn limit(&self) -> Tally {
        self.limits.read().all
    }

    /// Changes the limits. Staged bytes stay, even if they exceed the new limits.
    pub(crate) fn limit_to(&self, limits: StagedLimits) {
        *self.limits.write() = limits;
    }

    /// Returns the current count.
    pub(crate) fn staged(&self) -> Tally {
        self.staged.lock().all
    }
}

impl Staged {
    fn of(&self, uploader: &Uploader) -> Tally {
        self.uploaders.get(uploader).copied().unwrap_or_default()
    }

    fn put(&mut self, uploader: &Uploader, tally: Tally) {
        if tally == Tally::default() {
            self.uploaders.remove(uploader);
        } else {
            self.uploaders.insert(uploader.clone(), tally);
        }
    }
}

/// The share of one staged file. Dropping it returns the share.
#[derive(Debug)]
pub(crate) struct StagedShare {
    ledger: Arc<StagedLedger>,
    uploader: Uploader,
    taken: Tally,
}

impl StagedShare {
    /// Counts `bytes` more. If this exceeds a limit, counts nothing and returns [`ErrorKind::Busy`].
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<()> {
        self.take(Tally { files: 0, bytes })
    }

    fn take(&mut self, more: Tally) -> Result<()> {
        let limits = *self.ledger.limits.read();
        let mut staged = self.ledger.staged.lock();

        let all = staged.all.plus(more);
        let own = staged.of(&self.uploader).plus(more);
        if !all.fits(limits.all) {
            return Err(refused("the service", all, limits.all));
        }
        if !own.fits(limits.uploader) {
            return Err(refused(self.uploader.name(), own, limits.uploader));
        }

        staged.all = all;
        staged.put(&self.uploader, own);
        self.taken = self.taken.plus(more);
        Ok(())
    }

    /// Assigns the file to `organization`. [`ErrorKind::Busy`] if this exceeds the organization's limit.
    pub(crate) fn belong_to(&mut self, organization: &OrganizationId) -> Result<()> {
        let after = Uploader::Organization(organization.clone());
        if self.uploader == after {
            return Ok(());
        }

        let limit = self.ledger.limits.read().uploader;
        let mut staged = self.ledger.staged.lock();
        let own = staged.of(&after).plus(self.taken);
        if !own.fits(limit) {
            return Err(refused(after.name(), own, limit));
        }

        let left = staged.of(&self.uploader).minus(self.taken);
        staged.put(&self.uploader, left);
        staged.put(&after, own);
        self.uploader = after;
        Ok(())
    }
}

impl Drop for StagedShare {
    fn drop(&mut self) {
        let mut staged = self.ledger.staged.lock();
        staged.all = staged.all.minus(self.taken);
        let own = staged.of(&self.uploader).minus(self.taken);
        staged.put(&self.uploader, own);
    }
}

impl Uploader {
    fn name(&self) -> &'static str {
        match self {
            Self::Organization(_) => "the organization",
            Self::Key(_) => "the key, in files that were sent before their organization,",
            Self::Address(_) => "the address, in files that were sent before their organization,",
            Self::Unknown => "whoever sends a file before its organization",
        }
    }
}

/// Returns the error for an upload that would raise the bytes of `whose` to `wanted`.
fn refused(whose: &str, wanted: Tally, limit: Tally) -> Error {
    let (unit, limit) = if wanted.files > limit.files {
        ("files", limit.files as u64)
    } else {
        ("bytes", limit.bytes)
    };
    let message = format!("{whose} has as many {unit} of unfinished uploads as it may: {limit}");
    Error::new(ErrorKind::Busy, message).with_limit(limit).with_retry_after_secs(RETRY_AFTER_SECS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::clock::Timestamp;

    fn ledger() -> Arc<StagedLedger> {
        StagedLedger::new(StagedLimits {
            all: Tally { files: 4, bytes: 100 },
            uploader: Tally { files: 2, bytes: 60 },
        })
    }

    fn organization(name: &str) -> OrganizationId {
        name.parse().unwrap()
    }

    fn of(name: &str) -> Uploader {
        Uploader::Organization(organization(name))
    }

    #[test]
    fn an_organization_takes_its_part_and_leaves_the_rest_to_others() {
        let ledger = ledger();
        let mut one = ledger.begin(of("acme")).unwrap();
        one.grow(60).unwrap();
        let full = one.grow(1).unwrap_err();
        assert_eq!((full.kind(), full.details().limit), (ErrorKind::Busy, Some(60)));
        assert_eq!(full.details().retry_after_secs, Some(RETRY_AFTER_SECS));

        let _two = ledger.begin(of("acme")).unwrap();
        assert_eq!(ledger.begin(of("acme")).unwrap_err().details().limit, Some(2));

        let mut theirs = ledger.begin(of("other")).unwrap();
        theirs.grow(40).unwrap();
        assert_eq!(theirs.grow(1).unwrap_err().details().limit, Some(100));
        assert_eq!(ledger.staged(), Tally { files: 3, bytes: 100 });
    }

    #[test]
    fn what_is_dropped_gives_its_room_back() {
        let ledger = ledger();
        for _ in 0..10 {
            let mut share = ledger.begin(Uploader::Unknown).unwrap();
            share.grow(50).unwrap();
            share.belong_to(&organization("acme")).unwrap();
            share.belong_to(&organization("acme")).unwrap();
            share.grow(10).unwrap();
        }
        assert_eq!(ledger.staged(), Tally::default());
        assert!(ledger.staged.lock().uploaders.is_empty());
    }

    #[test]
    fn bytes_count_for_an_organization_as_soon_as_it_is_known() {
        let ledger = ledger();
        let acme = organization("acme");
        let mut unknown = ledger.begin(Uploader::Unknown).unwrap();
        unknown.grow(50).unwrap();
        let mut known = ledger.begin(of("acme")).unwrap();
        known.grow(20).unwrap();
        assert_eq!(unknown.belong_to(&acme).unwrap_err().kind(), ErrorKind::Busy);
        drop(known);
        unknown.belong_to(&acme).unwrap();
    }

    #[test]
    fn files_without_an_organization_leave_the_rest_to_those_with_one() {
        let ledger = ledger();
        let mut unknown = ledger.begin(Uploader::Unknown).unwrap();
        unknown.grow(60).unwrap();
        assert_eq!(unknown.grow(1).unwrap_err().details().limit, Some(60));

        let mut known = ledger.begin(of("acme")).unwrap();
        known.grow(40).unwrap();
        unknown.belong_to(&organization("other")).unwrap();
        let mut next = ledger.begin(Uploader::Unknown).unwrap();
        assert_eq!(next.grow(1).unwrap_err().details().limit, Some(100));
    }

    #[test]
    fn senders_whose_organization_is_not_known_yet_have_room_of_their_own() {
        let ledger = ledger();
        let address = |text: &str| Uploader::Address(text.parse().unwrap());
        let mut one = ledger.begin(address("192.0.2.1")).unwrap();
        one.grow(60).unwrap();
        let full = one.grow(1).unwrap_err();
        assert!(full.message().starts_with("the address"), "{full}");
        let mut other = ledger.begin(address("192.0.2.2")).unwrap();
        other.grow(30).unwrap();
        other.belong_to(&organization("acme")).unwrap();

        let mut by_key = ledger.begin(Uploader::Key(KeyId::generate(Timestamp::now()))).unwrap();
        drop(one);
        by_key.grow(60).unwrap();
        assert!(by_key.grow(1).unwrap_err().message().starts_with("the key"));
    }

    #[test]
    fn the_largest_batch_of_two_holders_fits_whatever_is_configured() {
        let limits =
            Limits { staged_bytes: 1, staged_files_per_organization: 1, ..Limits::default() };
        let staged = StagedLimits::from(&limits);
        assert_eq!(staged.all.bytes, 2 * limits.max_batch_size);
        assert_eq!(staged.uploader.bytes, limits.max_batch_size);
        assert_eq!(staged.uploader.files, limits.max_batch_items);

        let limits = Limits { staged_files_per_organization: usize::MAX, ..limits };
        let staged = StagedLimits::from(&limits);
        assert_eq!(staged.uploader.files, staged.all.files / 2);
    }
}
