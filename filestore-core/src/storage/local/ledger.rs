//! The room for bytes that are staged without a commit: uploads being received, and whole ones whose
//! commit is not done.
//!
//! # Purpose
//! Such bytes lie on the disk before any quota counts them. Clients that upload again and again while
//! their provider is down would fill the disk for everybody. So files and bytes are bounded, in total
//! and for each organization, and what does not fit is refused with [`ErrorKind::Busy`].
//!
//! # Locking
//! One lock, held for some additions.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::domain::config::Limits;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::OrganizationId;

/// Pause in seconds that a client is asked to make before it retries.
const RETRY_AFTER_SECS: u64 = 5;

/// Bounds of what is staged without a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StagedLimits {
    all: Tally,
    organization: Tally,
}

impl From<&Limits> for StagedLimits {
    /// Takes the configured bounds; a whole batch, or a file, of the largest size always fits.
    fn from(limits: &Limits) -> Self {
        let (files, bytes) =
            (limits.max_batch_items, limits.max_batch_size.max(limits.max_file_size));
        let at_least =
            |tally: Tally| Tally { files: tally.files.max(files), bytes: tally.bytes.max(bytes) };

        Self {
            all: at_least(Tally { files: limits.staged_files, bytes: limits.staged_bytes }),
            organization: at_least(Tally {
                files: limits.staged_files_per_organization,
                bytes: limits.staged_bytes_per_organization,
            }),
        }
    }
}

/// A number of files and the sum of their bytes.
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

/// The count of what is staged without a commit.
#[derive(Debug)]
pub(crate) struct StagedLedger {
    limits: RwLock<StagedLimits>,
    staged: Mutex<Staged>,
}

#[derive(Debug, Default)]
struct Staged {
    all: Tally,
    /// By organization. Uploads whose organization is not known yet share the entry `None`, and so the
    /// room of one organization.
    organizations: HashMap<Option<OrganizationId>, Tally>,
}

impl StagedLedger {
    /// Begins with nothing staged.
    pub(crate) fn new(limits: StagedLimits) -> Arc<Self> {
        Arc::new(Self { limits: RwLock::new(limits), staged: Mutex::default() })
    }

    /// Counts one more file, of `organization` if that is known already. [`ErrorKind::Busy`] if there is
    /// no room for it.
    pub(crate) fn begin(
        self: &Arc<Self>,
        organization: Option<&OrganizationId>,
    ) -> Result<StagedShare> {
        let mut share = StagedShare {
            ledger: Arc::clone(self),
            organization: organization.cloned(),
            taken: Tally::default(),
        };
        share.take(Tally { files: 1, bytes: 0 })?;
        Ok(share)
    }

    /// Returns how much may be staged.
    pub(crate) fn limit(&self) -> Tally {
        self.limits.read().all
    }

    /// Changes how much may be staged. What is staged already stays, also where it is more.
    pub(crate) fn limit_to(&self, limits: StagedLimits) {
        *self.limits.write() = limits;
    }

    /// Returns how much is staged now.
    pub(crate) fn staged(&self) -> Tally {
        self.staged.lock().all
    }
}

impl Staged {
    fn of(&self, organization: Option<&OrganizationId>) -> Tally {
        self.organizations.get(&organization.cloned()).copied().unwrap_or_default()
    }

    fn put(&mut self, organization: Option<&OrganizationId>, tally: Tally) {
        let organization = organization.cloned();
        if tally == Tally::default() {
            self.organizations.remove(&organization);
        } else {
            self.organizations.insert(organization, tally);
        }
    }
}

/// The part of the room that one staged file takes. Dropping it gives the part back.
#[derive(Debug)]
pub(crate) struct StagedShare {
    ledger: Arc<StagedLedger>,
    organization: Option<OrganizationId>,
    taken: Tally,
}

impl StagedShare {
    /// Counts `bytes` more. [`ErrorKind::Busy`], and nothing is counted, if there is no room for them.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<()> {
        self.take(Tally { files: 0, bytes })
    }

    fn take(&mut self, more: Tally) -> Result<()> {
        let limits = *self.ledger.limits.read();
        let mut staged = self.ledger.staged.lock();

        let all = staged.all.plus(more);
        let own = staged.of(self.organization.as_ref()).plus(more);
        if !all.fits(limits.all) {
            return Err(refused("the service", all, limits.all));
        }
        if !own.fits(limits.organization) {
            return Err(refused(holder(self.organization.as_ref()), own, limits.organization));
        }

        staged.all = all;
        staged.put(self.organization.as_ref(), own);
        self.taken = self.taken.plus(more);
        Ok(())
    }

    /// Counts the file as one of `organization`, once that is known. [`ErrorKind::Busy`] if the
    /// organization has no room for it.
    pub(crate) fn belong_to(&mut self, organization: &OrganizationId) -> Result<()> {
        if self.organization.as_ref() == Some(organization) {
            return Ok(());
        }

        let limit = self.ledger.limits.read().organization;
        let after = Some(organization.clone());
        let mut staged = self.ledger.staged.lock();
        let own = staged.of(after.as_ref()).plus(self.taken);
        if !own.fits(limit) {
            return Err(refused(holder(after.as_ref()), own, limit));
        }

        let left = staged.of(self.organization.as_ref()).minus(self.taken);
        staged.put(self.organization.as_ref(), left);
        staged.put(after.as_ref(), own);
        self.organization = after;
        Ok(())
    }
}

impl Drop for StagedShare {
    fn drop(&mut self) {
        let mut staged = self.ledger.staged.lock();
        staged.all = staged.all.minus(self.taken);
        let own = staged.of(self.organization.as_ref()).minus(self.taken);
        staged.put(self.organization.as_ref(), own);
    }
}

fn holder(organization: Option<&OrganizationId>) -> &'static str {
    match organization {
        Some(_) => "the organization",
        None => "whoever sends a file before its organization",
    }
}

/// Makes the refusal of what would make `whose` staged bytes `wanted`.
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

    fn ledger() -> Arc<StagedLedger> {
        StagedLedger::new(StagedLimits {
            all: Tally { files: 4, bytes: 100 },
            organization: Tally { files: 2, bytes: 60 },
        })
    }

    fn organization(name: &str) -> OrganizationId {
        name.parse().unwrap()
    }

    #[test]
    fn an_organization_takes_its_part_and_leaves_the_rest_to_others() {
        let ledger = ledger();
        let (acme, other) = (organization("acme"), organization("other"));
        let mut one = ledger.begin(Some(&acme)).unwrap();
        one.grow(60).unwrap();
        let full = one.grow(1).unwrap_err();
        assert_eq!((full.kind(), full.details().limit), (ErrorKind::Busy, Some(60)));
        assert_eq!(full.details().retry_after_secs, Some(RETRY_AFTER_SECS));

        let _two = ledger.begin(Some(&acme)).unwrap();
        assert_eq!(ledger.begin(Some(&acme)).unwrap_err().details().limit, Some(2));

        let mut theirs = ledger.begin(Some(&other)).unwrap();
        theirs.grow(40).unwrap();
        assert_eq!(theirs.grow(1).unwrap_err().details().limit, Some(100));
        assert_eq!(ledger.staged(), Tally { files: 3, bytes: 100 });
    }

    #[test]
    fn what_is_dropped_gives_its_room_back() {
        let ledger = ledger();
        for _ in 0..10 {
            let mut share = ledger.begin(None).unwrap();
            share.grow(50).unwrap();
            share.belong_to(&organization("acme")).unwrap();
            share.belong_to(&organization("acme")).unwrap();
            share.grow(10).unwrap();
        }
        assert_eq!(ledger.staged(), Tally::default());
        assert!(ledger.staged.lock().organizations.is_empty());
    }

    #[test]
    fn bytes_count_for_an_organization_as_soon_as_it_is_known() {
        let ledger = ledger();
        let acme = organization("acme");
        let mut unknown = ledger.begin(None).unwrap();
        unknown.grow(50).unwrap();
        let mut known = ledger.begin(Some(&acme)).unwrap();
        known.grow(20).unwrap();
        assert_eq!(unknown.belong_to(&acme).unwrap_err().kind(), ErrorKind::Busy);
        drop(known);
        unknown.belong_to(&acme).unwrap();
    }

    #[test]
    fn files_without_an_organization_leave_the_rest_to_those_with_one() {
        let ledger = ledger();
        let mut unknown = ledger.begin(None).unwrap();
        unknown.grow(60).unwrap();
        assert_eq!(unknown.grow(1).unwrap_err().details().limit, Some(60));

        let mut known = ledger.begin(Some(&organization("acme"))).unwrap();
        known.grow(40).unwrap();
        unknown.belong_to(&organization("other")).unwrap();
        let mut next = ledger.begin(None).unwrap();
        assert_eq!(next.grow(1).unwrap_err().details().limit, Some(100));
    }

    #[test]
    fn the_largest_batch_fits_whatever_is_configured() {
        let limits =
            Limits { staged_bytes: 1, staged_files_per_organization: 1, ..Limits::default() };
        let staged = StagedLimits::from(&limits);
        assert_eq!(staged.all.bytes, limits.max_batch_size);
        assert_eq!(staged.organization.files, limits.max_batch_items);
    }
}
