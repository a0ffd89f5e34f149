//! Migration: an organization's files follow its binding while they are served.
//!
//! The target is the provider of the active binding, or LOCAL without one, so that new files go there
//! already. Each file is copied, verified and flipped in one transaction; its old bytes stay for the
//! grace. What is left is what the records say, so a run can be stopped at any time and begun again.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::StreamExt;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use super::failure;
use super::progress::Progress;
use super::sync::meter;
use crate::FileStore;
use crate::api::{
    MigrateHolding, MigratePlan, MigrateReport, MigrateRunning, MigrateStatus, MigrateVerifyReport,
};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::domain::status::{Status, SyncStatus};
use crate::metadata::{Holding, ListFilter, Scope};
use crate::service::moving::{Moved, Pace};

/// Files looked at in one query.
const PAGE: usize = 200;
/// How often a run begins again with what changed under it.
const PASSES: usize = 5;

/// The migrations under way.
#[derive(Default)]
pub(crate) struct Migrations(Mutex<HashMap<OrganizationId, Arc<Running>>>);

/// A migration under way.
struct Running {
    target: ProviderCode,
    files: AtomicU64,
    bytes: AtomicU64,
    /// Set by [`FileStore::migrate_stop`].
    stop: AtomicBool,
}

/// Ends the entry of a migration, however it ends.
struct Entry {
    store: FileStore,
    organization: OrganizationId,
    running: Arc<Running>,
}

impl Entry {
    fn begin(store: &FileStore, organization: &OrganizationId, target: &ProviderCode) -> Result<Self> {
        let mut all = store.inner().migrations.0.lock();
        if all.contains_key(organization) {
            let message = format!("a migration of organization {organization} is under way");
            return Err(Error::new(ErrorKind::Conflict, message).with_field("organizationId"));
        }
        let running = Arc::new(Running {
            target: target.clone(),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        all.insert(organization.clone(), Arc::clone(&running));
        Ok(Self { store: store.clone(), organization: organization.clone(), running })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.store.inner().migrations.0.lock().remove(&self.organization);
    }
}

/// How a migration is to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MigrateOptions {
    /// No more than that many bytes are read in a second, by all its copies together.
    pub bytes_per_second: Option<u64>,
}

impl FileStore {
    /// What a migration of the organization to `to` would move; changes nothing. Errors as
    /// [`migrate_run`](Self::migrate_run), but for a target that takes no files: the plan says so.
    pub async fn migrate_plan(&self, organization: i64, to: &ProviderCode) -> Result<MigratePlan> {
        let organization = self.migration_of(organization, to).await?;
        let mut plan = MigratePlan { to: to.to_string(), ..MigratePlan::default() };
        for holding in self.inner().metadata.holdings(&organization).await? {
            if holding.status != Status::Ready {
                plan.stay_files += holding.files;
                plan.stay_bytes += holding.bytes;
            } else if holding.provider == *to {
                plan.there_files += holding.files;
                plan.there_bytes += holding.bytes;
            } else {
                plan.move_files += holding.files;
                plan.move_bytes += holding.bytes;
                plan.from.push(self.holding(&holding));
            }
        }
        plan.refused = self.check_target(to).err().map(|error| error.to_string());
        Ok(plan)
    }

    /// Moves the organization's READY files to `to`, several at a time, until none is elsewhere or
    /// `stop` says so; then the copies under way are finished. Progress counts files, and bytes beside
    /// them.
    ///
    /// `Conflict` if the organization is bound to another provider or a migration of it is under way;
    /// `ProviderUnavailable` or `ProviderInactive` if `to` takes no files.
    pub async fn migrate_run(
        &self,
        organization: i64,
        to: &ProviderCode,
        options: MigrateOptions,
        stop: &(dyn Fn() -> bool + Sync),
        progress: Arc<dyn Progress>,
    ) -> Result<MigrateReport> {
        let organization = self.migration_of(organization, to).await?;
        self.check_target(to)?;
        let entry = Entry::begin(self, &organization, to)?;
        let running = Arc::clone(&entry.running);
        let stop: &(dyn Fn() -> bool + Sync) = &|| stop() || running.stop.load(Ordering::Relaxed);
        let left = self.elsewhere(&organization, to).await?;
        progress.start(Some(left.files));
        let pace = options.bytes_per_second.map(|rate| Arc::new(Pace::new(rate)));
        let mut run = Run { entry, pace, progress, report: MigrateReport::default() };
        for _ in 0..PASSES {
            if run.pass(stop).await? == 0 || stop() {
                break;
            }
        }
        let left = self.elsewhere(&organization, to).await?;
        run.report.left_files = left.files;
        run.report.left_bytes = left.bytes;
        run.report.stopped = stop();
        Ok(run.report)
    }

    /// Where the organization's files are, and whether a migration is under way.
    pub async fn migrate_status(&self, organization: i64) -> Result<MigrateStatus> {
        let number = organization;
        let organization = OrganizationId::of_binding(number)?;
        let running = self.inner().migrations.0.lock().get(&organization).map(|running| MigrateRunning {
            to: running.target.to_string(),
            files: running.files.load(Ordering::Relaxed),
            bytes: running.bytes.load(Ordering::Relaxed),
        });
        let bound = self.inner().metadata.active_binding(number).await?;
        let holdings = self.inner().metadata.holdings(&organization).await?;
        Ok(MigrateStatus {
            organization_id: number,
            bound_to: bound.map(|binding| binding.provider.to_string()),
            holdings: holdings.iter().map(|holding| self.holding(holding)).collect(),
            running,
        })
    }

    /// Tells the migration of the organization that is under way to stop: it finishes its copies and
    /// returns its report to whoever runs it. False if none is under way.
    pub fn migrate_stop(&self, organization: i64) -> Result<bool> {
        let organization = OrganizationId::of_binding(organization)?;
        let all = self.inner().migrations.0.lock();
        let Some(running) = all.get(&organization) else { return Ok(false) };
        running.stop.store(true, Ordering::Relaxed);
        Ok(true)
    }

    /// Reads every READY file of the organization that `to` holds and compares its digest with the
    /// record's. Progress counts files, and bytes beside them.
    pub async fn migrate_verify(
        &self,
        organization: i64,
        to: &ProviderCode,
        progress: Arc<dyn Progress>,
    ) -> Result<MigrateVerifyReport> {
        let organization = OrganizationId::of_binding(organization)?;
        let mut report = MigrateVerifyReport::default();
        let held = self.inner().metadata.holdings(&organization).await?;
        let ready = held.iter().filter(|holding| holding.status == Status::Ready);
        progress
            .start(Some(ready.filter(|holding| holding.provider == *to).map(|holding| holding.files).sum()));
        let filter = ListFilter {
            organization_id: Some(organization),
            status: Some(Status::Ready),
            ..ListFilter::default()
        };
        let mut before = None;
        let mut checks = JoinSet::new();
        loop {
            let page = self.inner().metadata.list_files(&filter, &Scope::All, before, PAGE).await?;
            let Some(last) = page.last() else { break };
            before = Some(last.file_id);
            for record in page {
                if record.blob.provider != *to {
                    report.elsewhere += 1;
                    continue;
                }
                if checks.len() >= self.config().sync.concurrency {
                    note(&mut report, checks.join_next().await, &progress)?;
                }
                checks.spawn(check(self.clone(), record, Arc::clone(&progress)));
            }
        }
        while let Some(checked) = checks.join_next().await {
            note(&mut report, Some(checked), &progress)?;
        }
        Ok(report)
    }

    /// The organization as files name it, if `to` is where its new files go.
    async fn migration_of(&self, organization: i64, to: &ProviderCode) -> Result<OrganizationId> {
        let (organization, bound) = match self.bound(organization).await {
            Err(error) if error.kind() == ErrorKind::NoActiveBinding && to.is_local() => {
                return OrganizationId::of_binding(organization);
            }
            bound => bound?,
        };
        if bound == *to {
            return Ok(organization);
        }
        let message = format!("organization {organization} is bound to {bound}: bind it to {to} first");
        Err(Error::new(ErrorKind::Conflict, message).with_field("to").with_allowed([bound.as_str()]))
    }

    /// The organization as files name it, and the provider it is bound to.
    pub(super) async fn bound(&self, organization: i64) -> Result<(OrganizationId, ProviderCode)> {
        let id = OrganizationId::of_binding(organization)?;
        match self.inner().metadata.active_binding(organization).await? {
            Some(binding) => Ok((id, binding.provider)),
            None => Err(Error::new(
                ErrorKind::NoActiveBinding,
                format!("organization {organization} has no active binding"),
            )
            .with_field("organizationId")),
        }
    }

    fn check_target(&self, to: &ProviderCode) -> Result<()> {
        if to.is_local() { Ok(()) } else { self.providers().cloud_for_new(to).map(drop) }
    }

    fn holding(&self, holding: &Holding) -> MigrateHolding {
        let known = holding.provider.is_local() || self.providers().get(&holding.provider).is_some();
        MigrateHolding {
            provider_code: holding.provider.to_string(),
            status: holding.status.to_string(),
            files: holding.files,
            bytes: holding.bytes,
            available: known,
        }
    }

    async fn elsewhere(&self, organization: &OrganizationId, to: &ProviderCode) -> Result<Amount> {
        let mut left = Amount::default();
        for holding in self.inner().metadata.holdings(organization).await? {
            if holding.status == Status::Ready && holding.provider != *to {
                left.files += holding.files;
                left.bytes += holding.bytes;
            }
        }
        Ok(left)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    files: u64,
    bytes: u64,
}

struct Run {
    entry: Entry,
    pace: Option<Arc<Pace>>,
    progress: Arc<dyn Progress>,
    report: MigrateReport,
}

type Outcome = (FileId, u64, Result<Moved>);

impl Run {
    /// Looks at every file that is elsewhere, once; returns how many changed under it.
    async fn pass(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<u64> {
        let store = self.entry.store.clone();
        let at_once = store.config().sync.concurrency;
        let mut moves: JoinSet<Outcome> = JoinSet::new();
        let (mut after, mut changed) = (None, 0);
        self.report.failures.clear();
        'pages: loop {
            let (organization, target) = (&self.entry.organization, &self.entry.running.target);
            let page = store.inner().metadata.files_elsewhere(organization, target, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.file_id);
            for record in page {
                if stop() {
                    break 'pages;
                }
                // The sync worker has it, and takes it to the same place.
                if record.state.sync() == SyncStatus::Syncing {
                    changed += 1;
                    continue;
                }
                if moves.len() >= at_once {
                    changed += self.note(moves.join_next().await);
                }
                self.begin(&mut moves, record);
            }
        }
        while let Some(moved) = moves.join_next().await {
            changed += self.note(Some(moved));
        }
        Ok(changed)
    }

    fn begin(&self, moves: &mut JoinSet<Outcome>, record: FileRecord) {
        let store = self.entry.store.clone();
        let running = Arc::clone(&self.entry.running);
        let meter = meter(&store, &self.progress).at(self.pace.clone());
        moves.spawn(async move {
            let moved = store.inner().move_blob(&record, &running.target, meter).await;
            if matches!(moved, Ok(Moved::Done)) {
                store.inner().traffic.add_file();
                running.files.fetch_add(1, Ordering::Relaxed);
                running.bytes.fetch_add(record.blob.size_bytes, Ordering::Relaxed);
            }
            (record.file_id, record.blob.size_bytes, moved)
        });
    }

    /// Counts an outcome; 1 if the file changed meanwhile.
    fn note(&mut self, outcome: Option<Result<Outcome, tokio::task::JoinError>>) -> u64 {
        match outcome {
            Some(Ok((_, bytes, Ok(Moved::Done)))) => {
                self.progress.advance(1);
                self.report.moved_files += 1;
                self.report.moved_bytes += bytes;
                0
            }
            Some(Ok((_, _, Ok(Moved::Lost)))) => 1,
            Some(Ok((file, _, Err(error)))) => {
                tracing::warn!(file_id = %file, error = %error.chain(), "a file could not be moved");
                self.report.failures.push(failure(file, &error));
                0
            }
            Some(Err(lost)) => {
                tracing::error!(%lost, "a move broke off");
                1
            }
            None => 0,
        }
    }
}

type Checked = (FileId, u64, Result<bool>);

/// Whether the bytes that are held for `record` are its own.
async fn check(store: FileStore, record: FileRecord, progress: Arc<dyn Progress>) -> Checked {
    let compare = async {
        let mut bytes = store.inner().blob_bytes(&record.blob).await?;
        let (mut hasher, mut size) = (Sha256::new(), 0);
        while let Some(chunk) = bytes.next().await {
            let chunk = chunk?;
            size += chunk.len() as u64;
            hasher.update(&chunk);
            progress.add_bytes(chunk.len() as u64);
        }
        let sum: [u8; 32] = hasher.finalize().into();
        Ok((size, sum) == (record.blob.size_bytes, record.blob.sha256.0))
    };
    let outcome = match compare.await {
        // Replaced, moved or deleted since it was listed.
        Err(_) | Ok(false) if has_changed(&store, &record).await => Ok(true),
        outcome => outcome,
    };
    (record.file_id, record.blob.size_bytes, outcome)
}

async fn has_changed(store: &FileStore, record: &FileRecord) -> bool {
    let now = store.inner().metadata.file(record.file_id, &Scope::All).await;
    matches!(now, Ok(now) if now.as_ref().is_none_or(|now| now.blob.key != record.blob.key || now.state.is_deleted()))
}

fn note(
    report: &mut MigrateVerifyReport,
    checked: Option<Result<Checked, tokio::task::JoinError>>,
    progress: &Arc<dyn Progress>,
) -> Result<()> {
    let Some(checked) = checked else { return Ok(()) };
    let (file, bytes, outcome) = checked.map_err(|lost| Error::internal("verifying a file", lost))?;
    progress.advance(1);
    report.checked_files += 1;
    report.checked_bytes += bytes;
    match outcome {
        Ok(true) => {}
        Ok(false) => {
            let error = Error::new(ErrorKind::Internal, "the stored bytes are damaged");
            report.failures.push(failure(file, &error));
        }
        Err(error) => report.failures.push(failure(file, &error)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::AtomicUsize;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::domain::binding::NewBinding;
    use crate::domain::config::StoreConfig;
    use crate::domain::provider::ProviderConfig;
    use crate::service::NewUpload;
    use crate::worker::NoProgress;

    fn disk() -> ProviderCode {
        "disk".parse().unwrap()
    }

    /// A store whose organization 7 is bound to the directory `disk` beside it.
    async fn bound(home: &Path) -> FileStore {
        let root = home.join("disk").to_str().unwrap().to_owned();
        let provider = ProviderConfig::new(disk(), "fs").with_option("root", root);
        let mut config = StoreConfig { providers: vec![provider], ..StoreConfig::default() };
        config.blob_grace = Duration::ZERO;
        config.sync.concurrency = 2;
        let store = FileStore::builder(home.join("data")).config(config).open().await.unwrap();
        let binding = NewBinding {
            organization_id: 7,
            organization_name: "x".into(),
            provider: disk(),
            sync_enabled: true,
        };
        if store.list_bindings(Some(7)).await.unwrap().is_empty() {
            store.create_binding(binding).await.unwrap();
        }
        store
    }

    async fn upload(store: &FileStore, bytes: &[u8]) -> FileId {
        let new = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
        store.upload(new, bytes).await.unwrap().file_id
    }

    fn objects(home: &Path) -> usize {
        fn files(dir: &Path) -> usize {
            let entries = std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
            entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
        }
        files(&home.join("disk"))
    }

    #[tokio::test]
    async fn a_run_that_is_stopped_goes_on_where_it_was() {
        let home = tempfile::tempdir().unwrap();
        let store = bound(home.path()).await;
        for number in 0..10 {
            upload(&store, format!("file {number}").as_bytes()).await;
        }
        let asked = AtomicUsize::new(0);
        let after_four = || asked.fetch_add(1, Ordering::SeqCst) >= 4;
        let options = MigrateOptions::default();
        let disk = disk();
        let run = store.migrate_run(7, &disk, options, &after_four, Arc::new(NoProgress));
        let report = run.await.unwrap();
        assert!(report.stopped);
        assert_eq!((report.moved_files, report.left_files), (4, 6));
        store.close().await;
        drop(store);

        let store = bound(home.path()).await;
        let report = store.migrate_run(7, &disk, options, &|| false, Arc::new(NoProgress)).await.unwrap();
        assert_eq!((report.moved_files, report.left_files, report.stopped), (6, 0, false));
        assert_eq!(objects(home.path()), 10);
    }

    #[tokio::test]
    async fn one_organization_has_one_migration_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let store = bound(home.path()).await;
        upload(&store, b"bytes").await;
        let organization = "7".parse().unwrap();
        let entry = Entry::begin(&store, &organization, &disk()).unwrap();
        let options = MigrateOptions::default();
        let second = store.migrate_run(7, &disk(), options, &|| false, Arc::new(NoProgress)).await;
        assert_eq!(second.unwrap_err().kind(), ErrorKind::Conflict);
        assert!(store.migrate_status(7).await.unwrap().running.is_some());
        drop(entry);
        assert!(store.migrate_status(7).await.unwrap().running.is_none());
        store.migrate_run(7, &disk(), options, &|| false, Arc::new(NoProgress)).await.unwrap();
    }

    #[tokio::test]
    async fn a_rate_holds_copies_back() {
        let home = tempfile::tempdir().unwrap();
        let store = bound(home.path()).await;
        for _ in 0..3 {
            upload(&store, &[7; 10_000]).await;
        }
        let began = Instant::now();
        let options = MigrateOptions { bytes_per_second: Some(100_000) };
        store.migrate_run(7, &disk(), options, &|| false, Arc::new(NoProgress)).await.unwrap();
        // The third file may only begin when the first two are paid for: no machine is faster.
        assert!(began.elapsed() >= Duration::from_millis(200));
    }

    #[tokio::test]
    async fn damaged_bytes_are_found_and_not_moved_home() {
        let home = tempfile::tempdir().unwrap();
        let store = bound(home.path()).await;
        let id = upload(&store, b"as it was").await;
        store.sync_run(Arc::new(NoProgress)).await.unwrap();
        let key = store.record(id, &Scope::All).await.unwrap().blob.key.clone();
        std::fs::write(home.path().join("disk").join(key.as_str()), b"as it is!").unwrap();

        let report = store.migrate_verify(7, &disk(), Arc::new(NoProgress)).await.unwrap();
        assert_eq!(report.failures[0].file_id, id.to_string());
        let change = crate::domain::binding::BindingChange {
            provider: Some(ProviderCode::local()),
            ..crate::domain::binding::BindingChange::default()
        };
        store.update_binding(7, change).await.unwrap();
        let options = MigrateOptions::default();
        let local = ProviderCode::local();
        let run = store.migrate_run(7, &local, options, &|| false, Arc::new(NoProgress));
        let report = run.await.unwrap();
        assert_eq!((report.moved_files, report.left_files, report.failures.len()), (0, 1, 1));
        assert_eq!(store.record(id, &Scope::All).await.unwrap().blob.key, key);
        assert_eq!(std::fs::read_dir(store.data_dir().path().join("staging")).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn what_a_crash_left_at_a_provider_is_removed_after_the_next_start() {
        use crate::domain::clock::Timestamp;
        use crate::domain::id::BlobId;
        use crate::metadata::WriteIntent;

        let home = tempfile::tempdir().unwrap();
        let store = bound(home.path()).await;
        let id = upload(&store, b"bytes").await;
        let record = store.record(id, &Scope::All).await.unwrap();
        let key = record.blob.key.sibling(BlobId::generate(Timestamp::now()));
        let intent = WriteIntent {
            file_id: id,
            provider: disk(),
            key: key.clone(),
            begun_at: Timestamp::now().minus(Duration::from_secs(1)),
        };
        // As far as a copy gets before its record refers to it.
        store.inner().metadata.begin_writes(vec![intent]).await.unwrap();
        let source = store.inner().blob_bytes(&record.blob).await.unwrap();
        store.inner().put_object(&record, &disk(), &key, source).await.unwrap();
        store.close().await;
        drop(store);
        assert_eq!(objects(home.path()), 1);

        let store = bound(home.path()).await;
        let report = store.purge_run(&NoProgress).await.unwrap();
        assert_eq!(report.removed_at.get("disk"), Some(&1));
        assert_eq!(objects(home.path()), 0);
        assert_eq!(store.read(id, &Scope::All).await.unwrap(), "bytes");
    }
}
