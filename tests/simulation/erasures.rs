//! An administrator who erases organizations while everything else goes on, and the oracle of the receipts.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use filestore_core::admin::{EraseReceipt, NoProgress};
use filestore_core::internals::storage::SimulatedProviders;
use filestore_core::internals::tasks::simulation;
use filestore_core::{
    BlobId, Clock, ErrorKind, FileStore, ListFilter, ListRequest, OrganizationNumber, Timestamp,
};

use super::check::{all_records, files_below};
use super::client::{pause, some_organization};
use super::model::{Fate, Model};
use super::world::PROVIDERS;

/// The erasures after which there must be a complete one: replaced blobs stay listed for a while.
const ATTEMPTS: usize = 12;

/// Erases organizations, and checks each receipt.
pub(crate) struct Eraser<'a> {
    pub(crate) store: &'a FileStore,
    pub(crate) clock: &'a Clock,
    pub(crate) model: &'a RefCell<Model>,
    pub(crate) providers: &'a SimulatedProviders,
    /// The directory of the blobs.
    pub(crate) blobs: PathBuf,
    /// Only says that it erased.
    pub(crate) is_skipped: bool,
}

impl Eraser<'_> {
    /// Erases one organization after the other, for ever. A third of the erasures is stopped after a while.
    pub(crate) async fn run(&self) {
        loop {
            pause(120, 1800).await;
            let questions = match simulation::below(3) {
                0 => simulation::below(12),
                _ => u64::MAX,
            };
            self.erase(some_organization(), questions).await;
        }
    }

    /// Erases an organization, and stops when the erasure asks if it has to for the time after `questions`.
    /// Returns true if the receipt says that nothing is left.
    pub(crate) async fn erase(&self, organization: OrganizationNumber, questions: u64) -> bool {
        let asked = AtomicU64::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= questions;
        let began_at = self.clock.now();
        let number = self.model.borrow_mut().begin_erasure(organization);
        simulation::note(|| format!("{began_at} erases {organization}"));

        if self.is_skipped {
            self.model.borrow_mut().end_erasure(number, true);
            return true;
        }
        let admin = self.store.admin();
        let outcome = admin.erase_organization(&organization.into(), &stop, &NoProgress).await;
        let is_complete = match &outcome {
            Ok(receipt) => receipt.is_complete,
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::Internal, "{}", error.chain());
                false
            }
        };
        simulation::note(|| format!("{organization} is erased: {is_complete}"));
        self.model.borrow_mut().end_erasure(number, is_complete);
        if let Ok(receipt) = outcome {
            self.check(organization, began_at, &receipt).await;
        }
        is_complete
    }

    /// Checks that a receipt is true, at the moment at which it is given.
    async fn check(
        &self,
        organization: OrganizationNumber,
        began_at: Timestamp,
        receipt: &EraseReceipt,
    ) {
        assert_eq!(receipt.organization, organization.into());
        assert_eq!(receipt.is_complete, receipt.places.iter().all(|place| place.is_absent));
        let begun = self.model.borrow().begun_for(organization);
        assert!(receipt.removed.files <= begun, "{receipt:?} of {begun} files");
        for place in receipt.places.iter().filter(|place| !place.is_absent) {
            let is_named = receipt.may_return.iter().any(|one| one.place == place.place);
            assert!(is_named && !place.detail.is_empty(), "{place:?} is not named: {receipt:?}");
        }
        if !receipt.is_complete {
            return;
        }

        for code in PROVIDERS {
            let objects = self.providers.objects(&code.parse().unwrap()).await;
            expect_none_before(began_at, organization, objects, code);
        }
        let blobs = files_below(&self.blobs, "");
        expect_none_before(began_at, organization, blobs, "the disk");

        let moment = self.model.borrow_mut().next_moment();
        let mut filter = ListFilter::default();
        filter.organization_id = Some(organization.into());
        for record in all_records(self.store, ListRequest::new(filter)).await {
            let model = self.model.borrow();
            let fate = model.fate(model.origin_of(&record.original_name), moment);
            assert_ne!(fate, Fate::Erased, "{record:?} outlived its erasure");
        }
    }
}

/// Expects no bytes of the organization that are older than its erasure.
fn expect_none_before(
    began_at: Timestamp,
    organization: OrganizationNumber,
    keys: impl IntoIterator<Item = String>,
    place: &str,
) {
    let prefix = format!("{organization}/");
    for key in keys.into_iter().filter(|key| key.starts_with(&prefix)) {
        let id: BlobId = key.rsplit('/').next().unwrap().parse().unwrap();
        let is_older = id.made_at() < began_at;
        assert!(!is_older, "{place} has {key} after the complete erasure of {began_at}");
    }
}

/// Ends all erasures that were killed, stopped or not complete.
pub(crate) async fn finish(eraser: &Eraser<'_>) {
    let left = eraser.model.borrow().half_erased();
    for organization in left {
        let mut is_complete = false;
        for _ in 0..ATTEMPTS {
            is_complete = eraser.erase(organization, u64::MAX).await;
            if is_complete {
                break;
            }
            pause(600, 1200).await;
        }
        assert!(is_complete, "{organization} cannot be erased on a calm day");
    }
}
