//! Creates a snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::destination;
use super::gather::{Content, Gathered, Gathering, Outcome};
use super::vouching::Vouching;
use super::{BATCH, Backups, batches_at_once, note_fault};
use crate::FileStore;
use crate::domain::config::BackupPlace;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::SnapshotId;
use crate::domain::report::backup::{BackupOptions, BackupReport, SnapshotBytes, SnapshotInfo};
use crate::metadata::sqlite::{NamedBytes, SnapshotDatabase};
use crate::storage::backup::{
    Destination, Draft, Manifest, ManifestWriter, RunKind, Stored, blocking,
};
use crate::tasks;
use crate::tasks::step::{Step, reached};
use crate::worker::running::lane::{LEASE, while_renewing};
use crate::worker::running::progress::Progress;

const BACKING_UP: &str = "taking a snapshot";

/// The number of batches that wait to be processed.
const BATCHES_AHEAD: usize = 4;

/// Takes a snapshot. See [`Admin::backup`](crate::worker::Admin::backup).
pub(in crate::worker) async fn create(
    store: &FileStore,
    backups: &Backups,
    options: BackupOptions,
    progress: Arc<dyn Progress>,
) -> Result<BackupReport> {
    let id = SnapshotId::generate(store.inner().now());
    let claimed = backups.claim(id, RunKind::Create).await?;
    let made = make_snapshot(store, &claimed, id, options, progress).await;
    claimed.release().await;
    made
}

async fn make_snapshot(
    store: &FileStore,
    destination: &Arc<dyn Destination>,
    id: SnapshotId,
    options: BackupOptions,
    progress: Arc<dyn Progress>,
) -> Result<BackupReport> {
    if options.bytes == SnapshotBytes::HardLinked
        && let BackupPlace::Provider(_) = destination.place()
    {
        let message = "a snapshot at a provider cannot share files with the data directory";
        return Err(Error::invalid("hard_links", message));
    }
    destination::note(store, &**destination).await?;

    let hold = Hold::take(store, id).await?;
    let run = Run { store, destination, options, hold: &hold };
    let made = while_renewing(run.make(id, progress), || hold.renew()).await;

    // One that is not released ends with its lease.
    if let Err(error) = hold.release().await {
        tracing::warn!(error = %error.chain(), "the hold of a snapshot ends with its lease");
    }
    made
}

/// A hold that keeps the bytes in the snapshot from being removed.
struct Hold<'a> {
    store: &'a FileStore,
    name: String,
    /// True once the hold was found to have ended.
    is_lost: AtomicBool,
    is_released: AtomicBool,
}

impl<'a> Hold<'a> {
    async fn take(store: &'a FileStore, id: SnapshotId) -> Result<Self> {
        let (name, now) = (id.to_string(), store.inner().now());
        store.inner().metadata.take_hold(&name, now, now.plus(LEASE)).await?;
        reached(Step::HoldTaken);
        Ok(Self { store, name, is_lost: AtomicBool::default(), is_released: AtomicBool::default() })
    }

    async fn renew(&self) {
        if let Err(error) = self.renewed().await {
            tracing::warn!(error = %error.chain(), "the hold of a snapshot could not be renewed");
        }
    }

    async fn renewed(&self) -> Result<()> {
        let (metadata, now) = (&self.store.inner().metadata, self.store.inner().now());
        // By the clock of another server, which removes what is not held, it may have ended before.
        let latest = now.plus(metadata.company().clocks_apart());
        if !metadata.renew_hold(&self.name, latest, now.plus(LEASE)).await? {
            self.is_lost.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Checks that the hold is still valid.
    async fn confirm(&self) -> Result<()> {
        self.renewed().await?;
        if self.is_lost.load(Ordering::Relaxed) {
            let message = "the snapshot paused longer than its lease, and its contents might be removed: take the snapshot again";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        Ok(())
    }

    async fn release(&self) -> Result<()> {
        self.is_released.store(true, Ordering::Relaxed);
        self.store.inner().metadata.release_hold(&self.name).await
    }
}

impl Drop for Hold<'_> {
    /// Releases the hold of a cancelled run. Without a runtime, the hold ends with its lease.
    fn drop(&mut self) {
        if self.is_released.load(Ordering::Relaxed) || Handle::try_current().is_err() {
            return;
        }
        let (inner, name) = (Arc::clone(self.store.inner()), self.name.clone());
        tasks::spawn(async move { inner.metadata.release_hold(&name).await.ok() });
    }
}

/// One run.
struct Run<'a> {
    store: &'a FileStore,
    destination: &'a Arc<dyn Destination>,
    options: BackupOptions,
    hold: &'a Hold<'a>,
}

impl Run<'_> {
    async fn make(&self, id: SnapshotId, progress: Arc<dyn Progress>) -> Result<BackupReport> {
        self.destination.clear().await?;
        let scratch = self.store.data_dir().scratch();
        let draft = Arc::new(self.destination.begin(id, &scratch).await?);
        let (manifest, files) = self.begin(&draft).await?;
        progress.accepted();
        progress.start(Some(files));

        let mut report = BackupReport::new(manifest.info().clone());
        let manifest = self.gather(&draft, manifest, &mut report, &*progress).await?;
        self.hold.confirm().await?;

        let (info, file) = blocking(BACKING_UP, move || manifest.finish()).await?;
        self.destination.finish(&draft, file).await?;
        report.snapshot = info;
        Ok(report)
    }

    /// Copies the database and begins the manifest. Also returns the number of records in the snapshot.
    async fn begin(&self, draft: &Arc<Draft>) -> Result<(ManifestWriter, u64)> {
        let metadata = &self.store.inner().metadata;
        let created_at = self.store.inner().now();
        metadata.snapshot_to(&draft.database).await?;
        reached(Step::RecordsCopied);

        let copied = Arc::clone(draft);
        let (last_row, files) = blocking(BACKING_UP, move || {
            let copy = SnapshotDatabase::open(&copied.database)?;
            Ok((copy.last_row()?, copy.count()?))
        })
        .await?;
        metadata.narrow_hold(&self.hold.name, last_row).await?;

        let (draft, options, store) = (Arc::clone(draft), self.options, self.store.id());
        let manifest = blocking(BACKING_UP, move || {
            let copy = draft.digest_database()?;
            let mut info = SnapshotInfo::empty(draft.id, store, created_at, options);
            info.database_bytes = copy.size_bytes;
            ManifestWriter::begin(draft.make_manifest()?, info, copy.sha256)
        })
        .await?;
        Ok((manifest, files))
    }

    /// Gathers all contents, several batches at a time, and writes them to the manifest in order.
    async fn gather(
        &self,
        draft: &Arc<Draft>,
        mut manifest: ManifestWriter,
        report: &mut BackupReport,
        progress: &dyn Progress,
    ) -> Result<ManifestWriter> {
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let (copied, newest) = (Arc::clone(draft), self.newest().await?);
        let naming = tasks::blocking(move || name_contents(newest, &copied, &sender));

        let run = Arc::new(Gathering {
            store: self.store.clone(),
            draft: Arc::clone(draft),
            destination: Arc::clone(self.destination),
            options: self.options,
        });
        let batches = futures_util::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|batch| (batch, receiver))
        });
        let starting = move |batch| tasks::spawn(Arc::clone(&run).gather(batch));
        let mut gathered = batches.map(starting).buffered(batches_at_once()).boxed();

        while let Some(batch) = gathered.next().await {
            let batch = batch.map_err(|lost| Error::internal(BACKING_UP, lost))??;
            count(&batch, report, progress);
            manifest = blocking(BACKING_UP, move || {
                for gathered in &batch {
                    manifest.add(&gathered.entry(), gathered.content.records)?;
                }
                Ok(manifest)
            })
            .await?;
        }
        let damaged = naming.await.map_err(|lost| Error::internal(BACKING_UP, lost))??;
        manifest.note_damaged_records(damaged);
        Ok(manifest)
    }

    /// Opens the manifest of the newest finished snapshot. If the manifest cannot be read, the run does not
    /// use it.
    async fn newest(&self) -> Result<Option<Manifest>> {
        let Some(id) = self.destination.snapshots().await?.into_iter().next_back() else {
            return Ok(None);
        };
        match self.destination.manifest(id).await {
            Err(error) if error.kind() == ErrorKind::ProviderUnavailable => Err(error),
            manifest => Ok(manifest.ok()),
        }
    }
}

/// Adds the results of a batch to the report.
fn count(batch: &[Gathered], report: &mut BackupReport, progress: &dyn Progress) {
    for Gathered { content, outcome } in batch {
        progress.advance(content.records);
        match *outcome {
            Outcome::Copied(_) => {
                report.copied += 1;
                report.copied_bytes += content.expected.size_bytes;
                progress.add_bytes(content.expected.size_bytes);
            }
            Outcome::Reused(_) => report.reused += 1,
            Outcome::Elsewhere => {}
            Outcome::Damaged(problem) => {
                let file_id = content.first().file_id;
                tracing::error!(%file_id, problem = problem.as_str(), "a snapshot lacks the bytes of a file");
                note_fault(&mut report.faults, content.expected, Some(file_id), problem);
            }
        }
    }
}

/// Sends all contents that the snapshot names, in the order of their digests. Returns the number of
/// unreadable records. Blocks. Ends early if the receiver is gone.
fn name_contents(
    newest: Option<Manifest>,
    draft: &Draft,
    sender: &mpsc::Sender<Vec<Content>>,
) -> Result<u64> {
    let mut finished = Vouching::new(newest);
    let mut naming = Naming { batch: Vec::with_capacity(BATCH), sender };

    let damaged = SnapshotDatabase::open(&draft.database)?.each_named(&mut |bytes| {
        let is_same = naming.batch.last().is_some_and(|last| last.expected.sha256 == bytes.sha256);
        if is_same {
            naming.batch.last_mut().expect("it was looked at").add(bytes);
            return Ok(());
        }
        let vouched = finished.find(bytes.sha256);
        naming.add(bytes, vouched)
    })?;
    if damaged > 0 {
        tracing::error!(damaged, "a snapshot lacks the bytes of files with damaged records");
    }
    naming.send()?;
    Ok(damaged)
}

/// A sender of contents in batches.
struct Naming<'a> {
    batch: Vec<Content>,
    sender: &'a mpsc::Sender<Vec<Content>>,
}

impl Naming<'_> {
    /// Adds a content that differs from the previous one. Sends a full batch now, because all records of its
    /// last content are known.
    fn add(&mut self, bytes: NamedBytes, vouched: Option<Stored>) -> Result<()> {
        if self.batch.len() == BATCH {
            self.send()?;
        }
        self.batch.push(Content::new(bytes, vouched));
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        self.sender.blocking_send(batch).map_err(|_| {
            // The run has failed, and says why.
            Error::new(ErrorKind::Conflict, "the snapshot broke off")
        })
    }
}
