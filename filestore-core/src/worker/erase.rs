//! Erases an organization: the rights of its keys, its files with all bytes, its bindings, remembered replies
//! and totals. Blanks its events.
//!
//! # Purpose
//! One receipt lists the removals, and confirms that every place was checked. Files are erased in the
//! ordinary way: they are deleted, and the purge claims them, confirms that their bytes are absent, and then
//! removes their records. Only the grace period is skipped.
//!
//! # Preventing a return
//! An erasure ends the *era* of its organization, at its start and before each search for leftovers. An
//! insert names the era in which its work began, and its transaction refuses an earlier era. This stops
//! running uploads of any sender, uploads with an older signed URL, and files of an older snapshot. Eras are
//! numbers and not times, so that no clock decides.
//!
//! Remembered replies end with the era. Deleted files are due at once, and cannot be restored. A replace, a
//! sync and a move need no era. Each is a compare-and-set on a record that the erasure has marked. If the
//! change fails, the object goes to `blob_gc`.
//!
//! # Events
//! The erased files have no events. All earlier events of the organization become blank. At the end of a complete
//! erasure comes one event for the administrator.
//!
//! # Crash safety
//! Each step is derived from the remaining data, so a run that was stopped or killed can be started again. A
//! setting for each organization contains the numbers of earlier runs.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::FileStore;
use crate::domain::access::scope::Scope;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::event::{EventDetails, EventKind};
use crate::domain::file::listing::ListFilter;
use crate::domain::file::status::PurgeStatus;
use crate::domain::id::{KeyId, OrganizationId};
use crate::domain::report::erasure::{EraseReceipt, ErasedPlace, MayReturn, Removed};
use crate::domain::report::receipt::DeletedBy;
use crate::domain::report::{PurgeOptions, PurgeWhen};
use crate::domain::time::clock::Timestamp;
use crate::metadata::Company;
use crate::service::clear_ended;
use crate::storage::Cloud;
use crate::storage::stores::Holder;
use crate::tasks::step::{Step, reached};

use super::purge;
use super::running::lane;
use super::running::progress::Progress;

/// The number of files deleted in one round.
const PAGE: usize = 500;

/// The number of events blanked in one transaction.
const EVENTS: usize = 2000;

/// The number of purge rounds. These rounds cover files that became due in the meantime or were claimed by
/// another run.
const ROUNDS: usize = 10;

/// The total time for which an erasure waits for other purge runs.
const PATIENCE: Duration = Duration::from_secs(10);

/// The wait for a purge of another server.
const A_WHILE: Duration = Duration::from_secs(1);

/// Erases an organization. Ends when everything that can be removed now is removed, or when `stop` returns
/// true.
pub(crate) async fn run(
    store: &FileStore,
    organization: &OrganizationId,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &dyn Progress,
) -> Result<EraseReceipt> {
    let mut erasure = Erasure::begin(store, organization).await?;
    progress.accepted();
    progress
        .start(Some(erasure.store.scoped(&Scope::All).usage(organization).await?.total().files));

    erasure.take_rights().await?;
    erasure.end_era().await?;
    erasure.save().await?;
    let patient_until = store.inner().clock.monotonic() + PATIENCE;
    for _ in 0..ROUNDS {
        erasure.delete_files(stop, progress).await?;
        erasure.end_era().await?;
        erasure.purge(stop).await?;
        if stop() || erasure.is_without_files().await? {
            break;
        }
        erasure.await_other_purges(patient_until).await;
    }

    if !stop() {
        // What comes from here on, although it began during the erasure, is refused.
        erasure.end_era().await?;
        erasure.forget().await?;
        erasure.save().await?;
    }
    erasure.receipt().await
}

struct Erasure<'a> {
    store: &'a FileStore,
    organization: &'a OrganizationId,
    started_at: Timestamp,
    removed: Removed,
    revoked: BTreeSet<KeyId>,
    narrowed: BTreeSet<KeyId>,
}

impl<'a> Erasure<'a> {
    /// Begins an erasure, or continues with the numbers of an unfinished erasure.
    async fn begin(store: &'a FileStore, organization: &'a OrganizationId) -> Result<Self> {
        let settings = store.inner().metadata.settings().await?;
        let mut erasure = Self {
            store,
            organization,
            started_at: store.inner().now(),
            removed: Removed::default(),
            revoked: BTreeSet::new(),
            narrowed: BTreeSet::new(),
        };
        match settings.get(&erasure.setting()) {
            Some(text) => erasure.read(text),
            None => erasure.count_deleted().await?,
        }
        Ok(erasure)
    }

    /// Counts the files that were deleted before the erasure and are erased with it.
    async fn count_deleted(&mut self) -> Result<()> {
        let filter = ListFilter {
            organization_id: Some(self.organization.clone()),
            purge_status: Some(PurgeStatus::SystemPurge),
            ..ListFilter::default()
        };
        let (metadata, mut after) = (&self.store.inner().metadata, None);
        loop {
            let page = metadata.list_files(&filter, &Scope::All, after.as_ref(), PAGE).await?;
            self.removed.files += page.records.len() as u64;
            let sizes = page.records.iter().map(|record| record.blob.size_bytes);
            self.removed.bytes += sizes.sum::<u64>();
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    fn setting(&self) -> String {
        format!("erased:{}", self.organization)
    }

    /// Reads the numbers of earlier runs.
    fn read(&mut self, text: &str) {
        let mut words = text.split(' ');
        let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let started_at: u64 = number();
        self.started_at = Timestamp::from_millis(i64::try_from(started_at).unwrap_or(0));
        self.removed =
            Removed { files: number(), bytes: number(), bindings: number(), replies: number() };

        let ids = |list: &str| list.split(',').filter_map(|id| id.parse().ok()).collect();
        self.revoked = words.next().map(ids).unwrap_or_default();
        self.narrowed = words.next().map(ids).unwrap_or_default();
    }

    /// Stores the numbers for a later run.
    async fn save(&self) -> Result<()> {
        let Removed { files, bytes, bindings, replies } = self.removed;
        let ids = |ids: &BTreeSet<KeyId>| {
            ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        let (revoked, narrowed) = (ids(&self.revoked), ids(&self.narrowed));
        let started_at = self.started_at.as_millis();
        let text =
            format!("{started_at} {files} {bytes} {bindings} {replies} {revoked} {narrowed}");
        self.store.inner().metadata.put_settings([(self.setting(), text)].into()).await
    }

    /// Removes the organization from every key, so that clients cannot add files in the meantime. A key
    /// without other organizations is revoked.
    async fn take_rights(&mut self) -> Result<()> {
        for key in self.store.keys().list() {
            let Scope::Organizations(list) = &*key.organizations else { continue };
            if key.revoked_at.is_some() || !list.contains(self.organization) {
                continue;
            }

            let rest: Vec<_> =
                list.iter().filter(|one| *one != self.organization).cloned().collect();
            if rest.is_empty() {
                self.store.keys().revoke(key.id).await?;
                self.revoked.insert(key.id);
            } else {
                self.store.keys().narrow(key.id, Scope::Organizations(rest)).await?;
                self.narrowed.insert(key.id);
            }
            reached(Step::RightTaken);
        }
        Ok(())
    }

    /// Deletes all files that are not deleted yet.
    async fn delete_files(
        &mut self,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<()> {
        let filter = ListFilter {
            organization_id: Some(self.organization.clone()),
            ..ListFilter::default()
        };
        let mut after = None;
        while !stop() {
            let metadata = &self.store.inner().metadata;
            let page = metadata.list_files(&filter, &Scope::All, after.as_ref(), PAGE).await?;
            let ids: Vec<_> = page.records.iter().map(|record| record.file_id).collect();

            let files = self.store.scoped(&Scope::All).deleting_as(&DeletedBy::Erasure);
            for deleted in files.delete_many(&ids).await {
                match deleted {
                    Ok(record) => {
                        self.removed.files += 1;
                        self.removed.bytes += record.blob.size_bytes;
                        progress.advance(1);
                    }
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            self.save().await?;

            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Refuses work that began before now, and makes all deleted files due.
    async fn end_era(&mut self) -> Result<()> {
        let inner = self.store.inner();
        self.removed.replies += inner.metadata.end_era(self.organization, inner.now()).await?;
        reached(Step::EraEnded);
        Ok(())
    }

    /// Purges deleted files at every holder, without their grace period.
    async fn purge(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let options =
            PurgeOptions { when: PurgeWhen::Now, organization: Some(self.organization.clone()) };
        for holder in lane::holders(self.store) {
            purge::run_files(self.store, &holder, &options, stop).await?;
            purge::run_dropped(self.store, &holder, stop).await?;
        }
        Ok(())
    }

    /// Waits until another purge run that may have claimed files of the organization has ended. Does not wait
    /// if there is none. The ends of runs on other servers are not visible, so the wait for them has a fixed
    /// length.
    async fn await_other_purges(&self, until: Duration) {
        let inner = self.store.inner();
        let left = until.saturating_sub(inner.clock.monotonic());
        match inner.background.purging.listen() {
            Some(mut ended) => drop(timeout(left, ended.notified()).await),
            None if inner.metadata.company() == Company::Others => sleep(left.min(A_WHILE)).await,
            None => {}
        }
    }

    async fn is_without_files(&self) -> Result<bool> {
        let left = self.store.inner().metadata.left_of(self.organization).await?;
        Ok(left.files == 0)
    }

    /// Removes the organization's data in the database, except files.
    async fn forget(&mut self) -> Result<()> {
        clear_ended(self.store).await?;
        let metadata = &self.store.inner().metadata;
        let forgotten = metadata.forget_organization(self.organization).await?;
        reached(Step::OrganizationForgotten);
        self.removed.bindings += forgotten.bindings;
        self.removed.replies += forgotten.replies;
        self.blank_events().await?;
        self.forget_webhooks().await
    }

    /// Removes the organization's webhooks, and its events that wait for others. Lanes that read events before they
    /// were blank store none of them. What such a lane has under way is still sent.
    async fn forget_webhooks(&self) -> Result<()> {
        let inner = self.store.inner();
        inner.metadata.forget_webhooks_of(self.organization).await?;
        #[cfg(feature = "webhooks")]
        inner.webhooks.wanted.notify();
        Ok(())
    }

    /// Removes everything from the organization's events, except position and time. The cursors of readers stay
    /// valid.
    async fn blank_events(&self) -> Result<()> {
        let metadata = &self.store.inner().metadata;
        loop {
            let blanked = metadata.blank_events(self.organization, EVENTS).await?;
            reached(Step::EventsBlanked);
            if blanked < EVENTS as u64 {
                return Ok(());
            }
        }
    }

    /// Writes the only event of a complete erasure.
    async fn tell(&self) {
        let details = EventDetails {
            files: Some(self.removed.files),
            bytes: Some(self.removed.bytes),
            ..EventDetails::default()
        };
        let organization = Some(self.organization.clone());
        let inner = self.store.inner();
        inner.note_event(EventKind::OrganizationErased, organization, details).await;
    }

    /// Checks every place, and reports removals and leftovers.
    async fn receipt(self) -> Result<EraseReceipt> {
        let inner = self.store.inner();
        let left = inner.metadata.left_of(self.organization).await?;
        let mut places = vec![ErasedPlace::new("database", left.describe()), self.keys()];
        for holder in lane::holders(self.store) {
            let left = match inner.stores.holder(&holder) {
                Ok(Holder::Disk(disk)) => disk.left_of(self.organization.as_str()).await,
                Ok(Holder::Cloud(cloud)) => self.left_at(&cloud).await,
                Err(error) => Err(error),
            };
            places.push(ErasedPlace::counted(holder.as_str(), left));
        }
        let quarantined = inner.stores.local().left_in_quarantine(self.organization.as_str()).await;
        places.push(ErasedPlace::counted("quarantine", quarantined));
        let may_return = self.may_return(&places).await?;
        let is_complete = places.iter().all(|place| place.is_absent);
        if is_complete {
            self.tell().await;
        }

        Ok(EraseReceipt {
            organization: self.organization.clone(),
            store_id: inner.metadata.store_id(),
            started_at: self.started_at,
            ended_at: inner.now(),
            is_complete,
            removed: self.removed,
            keys_revoked: self.revoked.into_iter().collect(),
            keys_narrowed: self.narrowed.into_iter().collect(),
            places,
            may_return,
        })
    }

    /// Lists the places from which data of the organization can still return.
    async fn may_return(&self, places: &[ErasedPlace]) -> Result<Vec<MayReturn>> {
        let inner = self.store.inner();
        let (now, config) = (inner.now(), inner.config());
        let mut all = Vec::new();

        let signing = self.store.signing();
        if !signing.secrets().is_empty() {
            let window_ends = now.plus(signing.cacheable_for(now.plus(config.signing.window)));
            let detail = "caches that keep replies to signed URLs, until the window ends";
            all.push(MayReturn::new("shared caches", Some(window_ends), detail));
        }

        let holders = lane::holders(self.store);
        if holders.iter().any(|holder| matches!(inner.stores.holder(holder), Ok(Holder::Cloud(_))))
        {
            let detail = "issued redirects still return the copies in a provider cache";
            let until = now.plus(config.presign_ttl);
            all.push(MayReturn::new("presigned URLs", Some(until), detail));
        }
        if inner.metadata.company() == Company::Others {
            let detail = "copies of unfinished uploads on the disks of other servers, until their next upkeep or start";
            all.push(MayReturn::new("staging of other servers", None, detail));
        }
        for place in places.iter().filter(|place| !place.is_absent) {
            let detail =
                "the place is not empty, or could not be looked at: erase the organization again";
            all.push(MayReturn::new(&place.place, None, detail));
        }
        for place in self.store.inner().destinations.places(&config.backup_destinations).await? {
            let detail = "snapshots that were taken before: prune them. After a restore of all of one, erase the organization again";
            all.push(MayReturn::new(format!("backup {place}"), None, detail));
        }
        Ok(all)
    }

    fn keys(&self) -> ErasedPlace {
        let names_it = |list: &Vec<OrganizationId>| list.contains(self.organization);
        let all = self.store.keys().list();
        let left = all.iter().filter(|key| {
            key.revoked_at.is_none()
                && matches!(&*key.organizations, Scope::Organizations(list) if names_it(list))
        });
        let count = left.count();
        ErasedPlace::new("keys", (count > 0).then(|| format!("{count} keys name it")))
    }

    /// Counts objects of the organization at a provider with the store's marker.
    async fn left_at(&self, cloud: &Cloud) -> Result<u64> {
        if !cloud.was_used().await? {
            return Ok(0);
        }
        cloud.check_marker().await?;
        let mut listing = cloud.list_below(self.organization.as_str()).await?;
        let mut left = 0;
        while let Some(page) = listing.page().await? {
            left += page.len() as u64;
        }
        cloud.check_marker().await?;
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::domain::access::key::{KeyScope, NewKey};
    use crate::domain::access::signed_url::UploadPermit;
    use crate::domain::config::StoreConfig;
    use crate::domain::provider::binding::NewBinding;
    use crate::domain::provider::{ProviderCode, ProviderConfig};
    use crate::domain::report::fsck::FsckOptions;
    use crate::metadata::{DueFiles, Lease, Purged};
    use crate::service::{ListRequest, NewUpload, UploadClaims};
    use crate::worker::NoProgress;

    const LONG: Duration = Duration::from_hours(1);

    async fn open(path: &Path) -> FileStore {
        let root = path.join("disk").to_str().unwrap().to_owned();
        let disk = ProviderConfig::new("disk".parse().unwrap(), "fs").with_option("root", root);
        let mut config = StoreConfig { providers: vec![disk], ..StoreConfig::default() };
        config.purge_grace = Duration::from_hours(24 * 30);
        FileStore::builder(path.join("data")).config(config).open().await.unwrap()
    }

    async fn upload(store: &FileStore, organization: &str, count: u32) {
        for number in 0..count {
            let new = NewUpload::new(organization.parse().unwrap(), "docs".parse().unwrap());
            store.upload(new, format!("file {number:03}").as_bytes()).await.unwrap();
        }
        store.inner().uploads.publishing.idle().await;
    }

    async fn bind(store: &FileStore, number: i64) {
        let binding = NewBinding {
            organization: number.try_into().unwrap(),
            organization_name: "x".into(),
            provider: "disk".parse().unwrap(),
            sync_enabled: false,
        };
        store.bindings().create(binding).await.unwrap();
    }

    async fn key(store: &FileStore, organizations: &[&str]) -> KeyId {
        let list = organizations.iter().map(|one| one.parse().unwrap()).collect();
        let new = NewKey::new("test", Scope::Organizations(list), [KeyScope::Read]);
        store.keys().create(new).await.unwrap().0.id
    }

    fn files_below(directory: &Path) -> usize {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
    }

    async fn erase(store: &FileStore, organization: &str) -> EraseReceipt {
        let organization = organization.parse().unwrap();
        store.admin().erase_organization(&organization, &|| false, &NoProgress).await.unwrap()
    }

    #[tokio::test]
    async fn an_organization_goes_from_every_place_and_its_neighbour_stays() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        upload(&store, "7", 3).await;
        bind(&store, 7).await;
        upload(&store, "7", 2).await;
        let deleted =
            store.scoped(&Scope::All).list(&ListRequest::default()).await.unwrap().items[0].file_id;
        store.scoped(&Scope::All).delete(deleted).await.unwrap();
        bind(&store, 77).await;
        upload(&store, "77", 2).await;
        let (own, shared) = (key(&store, &["7"]).await, key(&store, &["7", "77"]).await);
        let other = key(&store, &["77"]).await;

        let receipt = erase(&store, "7").await;
        assert!(receipt.is_complete, "{receipt:?}");
        let expected = Removed { files: 5, bytes: 40, bindings: 1, replies: 0 };
        assert_eq!(receipt.removed, expected);
        assert_eq!((receipt.keys_revoked, receipt.keys_narrowed), (vec![own], vec![shared]));
        let places: Vec<_> = receipt.places.iter().map(|one| one.place.as_str()).collect();
        assert_eq!(places, ["database", "keys", "LOCAL", "disk", "quarantine"]);

        assert!(!dir.path().join("data/blobs/7").exists());
        assert_eq!(files_below(&dir.path().join("disk/7")), 0);
        let usage = |name: &str| {
            let (store, name) = (store.clone(), name.parse().unwrap());
            async move { store.scoped(&Scope::All).usage(&name).await.unwrap().total().files }
        };
        assert_eq!((usage("7").await, usage("77").await), (0, 2));
        let keys = store.keys().list();
        let key = |id| keys.iter().find(|key| key.id == id).unwrap();
        assert!(key(own).revoked_at.is_some() && key(other).revoked_at.is_none());
        let rest = Scope::Organizations(vec!["77".parse().unwrap()]);
        assert_eq!((&*key(shared).organizations, &*key(other).organizations), (&rest, &rest));

        let check =
            store.admin().fsck(FsckOptions::default(), &|| false, &NoProgress).await.unwrap();
        assert!(check.is_clean(), "{check:?}");
        store.close().await;
        drop(store);
        let store = open(dir.path()).await;
        let keys = store.keys().list();
        assert!(keys.iter().any(|key| key.id == shared && *key.organizations == rest));
        store.close().await;
    }

    #[tokio::test]
    async fn an_erasure_that_was_stopped_goes_on_after_a_restart_with_its_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        upload(&store, "7", 30).await;
        let looks = AtomicU32::new(0);
        let stop = || looks.fetch_add(1, Ordering::Relaxed) > 0;
        let organization = "7".parse().unwrap();
        let stopped =
            store.admin().erase_organization(&organization, &stop, &NoProgress).await.unwrap();
        assert!(!stopped.is_complete && !stopped.places[0].is_absent, "{stopped:?}");
        assert_eq!(stopped.removed.files, 30);
        store.close().await;
        drop(store);

        let store = open(dir.path()).await;
        upload(&store, "7", 1).await;
        let receipt = erase(&store, "7").await;
        assert!(receipt.is_complete, "{receipt:?}");
        assert_eq!((receipt.removed.files, receipt.removed.bytes), (31, 31 * 8));
        assert_eq!(receipt.started_at, stopped.started_at);
        store.close().await;
    }

    #[tokio::test]
    async fn an_erasure_waits_for_what_another_run_of_the_purge_has_claimed() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        upload(&store, "7", 1).await;
        let file =
            store.scoped(&Scope::All).list(&ListRequest::default()).await.unwrap().items[0].file_id;
        store.scoped(&Scope::All).delete(file).await.unwrap();

        let inner = store.inner();
        let (working, now) = (inner.background.purging.begin(), inner.now());
        let lease = Lease { owner: "another", now, until: now.plus(Duration::from_mins(10)) };
        let local = ProviderCode::local();
        let claims = inner
            .metadata
            .claim_purges(lease, &local, DueFiles::marked_before(now), 10)
            .await
            .unwrap();
        assert_eq!(claims.len(), 1);

        let other = async {
            while !inner.background.purging.is_listened_to() {
                tokio::task::yield_now().await;
            }
            let blob = dir.path().join("data/blobs").join(claims[0].record.blob.key.as_str());
            std::fs::remove_file(blob).unwrap();
            inner.metadata.finish_purges("another", &[Purged::of(file)], now).await.unwrap();
            drop(working);
        };
        let (receipt, ()) = tokio::join!(erase(&store, "7"), other);
        assert!(receipt.is_complete, "{receipt:?}");
        store.close().await;
    }

    #[tokio::test]
    async fn what_cannot_be_looked_at_is_no_absence() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        bind(&store, 7).await;
        upload(&store, "7", 2).await;
        std::fs::rename(dir.path().join("disk"), dir.path().join("away")).unwrap();
        std::fs::create_dir(dir.path().join("disk")).unwrap();

        let receipt = erase(&store, "7").await;
        let at_disk = receipt.places.iter().find(|one| one.place == "disk").unwrap();
        assert!(!receipt.is_complete && at_disk.detail.contains("could not be looked at"));
        store.close().await;
        drop(store);

        std::fs::remove_dir(dir.path().join("disk")).unwrap();
        std::fs::rename(dir.path().join("away"), dir.path().join("disk")).unwrap();
        let store = open(dir.path()).await;
        let receipt = erase(&store, "7").await;
        assert!(receipt.is_complete && receipt.removed.files == 2, "{receipt:?}");
        store.close().await;
    }

    #[tokio::test]
    async fn an_upload_that_began_before_an_erasure_is_refused_whoever_sends_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        let new = || NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
        let era = store.uploads().era();
        let begun = async |era, bytes: &'static str| {
            let mut session = store.uploads().begun_in(era).begin_unclaimed();
            session.write(bytes.into()).await.unwrap();
            session
        };
        let session = begun(era, "before").await;
        let permit = UploadPermit::new("n", store.inner().now().plus(LONG)).unwrap();
        let signed = UploadClaims::new("7".parse().unwrap()).with_permit(permit.signed_in(era));
        let mut signed_before = begun(era, "signed").await;
        signed_before.claim(signed.clone()).await.unwrap();

        assert!(erase(&store, "7").await.is_complete);
        let late = session.commit(new()).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Conflict);
        let late = begun(era, "later").await.commit(new()).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Conflict, "the request began before");

        let refused = store.uploads().begin(signed).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::SignatureInvalid);
        let refused = signed_before.commit(new()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::SignatureInvalid);
        assert!(erase(&store, "7").await.removed.files == 0, "nothing came");

        store.upload(new(), &b"anew"[..]).await.unwrap();
        store.close().await;
        drop(store);
        let store = open(dir.path()).await;
        let mut session = store.uploads().begun_in(era).begin_unclaimed();
        session.write("late".into()).await.unwrap();
        assert!(session.commit(new()).await.is_err(), "after a restart");
        store.close().await;
    }

    #[tokio::test]
    async fn what_an_erasure_could_not_remove_yet_is_not_restored() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        bind(&store, 7).await;
        upload(&store, "7", 2).await;
        let all = store.scoped(&Scope::All).list(&ListRequest::default()).await.unwrap().items;
        store.scoped(&Scope::All).delete(all[0].file_id).await.unwrap();
        std::fs::rename(dir.path().join("disk"), dir.path().join("away")).unwrap();
        std::fs::create_dir(dir.path().join("disk")).unwrap();

        let receipt = erase(&store, "7").await;
        assert!(!receipt.is_complete);
        assert!(receipt.may_return.iter().any(|one| one.place == "disk"), "{receipt:?}");
        for file in all {
            let refused = store.scoped(&Scope::All).restore(file.file_id).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::AlreadyPurging);
        }
        store.close().await;
    }
}
