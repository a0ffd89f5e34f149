//! Moving the LOCAL files of a data directory to the backend, for a store whose records have come to PostgreSQL.
//!
//! # Purpose
//! Several servers need LOCAL bytes that all of them reach. So each file whose bytes are in the data directory goes,
//! whatever its state, and what is there of replaced files goes away. `migrate` moves READY files alone, and one
//! organization at a time, but beside a server that runs.
//!
//! # Crash safety
//! A file is moved as by a migration: its copy is noted, put, verified by its digest, and then one transaction makes
//! it the blob of the record. What is left is what the records say, so a run that was stopped is started again.
//! Meanwhile the store can be used as it is: by a server on the same directory that says it is the only one.

use std::path::Path;
use std::sync::Arc;

use super::Progress;
use crate::domain::config::StoreConfig;
use crate::domain::damage::DamagedRow;
use crate::domain::error::Result;
use crate::domain::report::WorkFailure;

/// The outcome of a move of files to the backend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedFiles {
    /// Files moved by this run.
    pub files: u64,
    /// Bytes of the moved files.
    pub bytes: u64,
    /// True if nothing of the store is left in the data directory: any number of servers can start.
    pub is_complete: bool,
    /// Files that could not be moved, damaged records included; a later run attempts them again.
    pub failed: u64,
    /// The first files that failed, 100 at most.
    pub failures: Vec<WorkFailure>,
    /// The first records that cannot be read, 100 at most: where their bytes are is not known.
    pub damaged: Vec<DamagedRow>,
}

/// Moves all files whose bytes are in the data directory `dir` to the backend of LOCAL that `config` names, which
/// also names the PostgreSQL database that has their records. Reports files, and bytes beside them.
///
/// No server may run, on this directory or on that database: [`ErrorKind::Locked`] or [`ErrorKind::Unusable`].
/// `Unusable` as well if there is no such directory, no backend, or no PostgreSQL database.
///
/// [`ErrorKind::Locked`]: crate::ErrorKind::Locked
/// [`ErrorKind::Unusable`]: crate::ErrorKind::Unusable
#[cfg(feature = "postgres")]
pub async fn copy_files(
    dir: &Path,
    config: &StoreConfig,
    progress: Arc<dyn Progress>,
) -> Result<CopiedFiles> {
    moving::move_all(dir, config, progress).await
}

/// Refuses: the program was built without the feature `postgres`.
#[cfg(not(feature = "postgres"))]
pub async fn copy_files(_: &Path, _: &StoreConfig, _: Arc<dyn Progress>) -> Result<CopiedFiles> {
    Err(super::records_copy::without_postgres())
}

#[cfg(feature = "postgres")]
mod moving {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::task::{JoinError, JoinSet};

    use super::CopiedFiles;
    use crate::FileStore;
    use crate::domain::clock::Timestamp;
    use crate::domain::config::{MetadataPlace, StoreConfig};
    use crate::domain::damage::DamagedRow;
    use crate::domain::error::{Error, ErrorKind, Result};
    use crate::domain::id::FileId;
    use crate::domain::provider::ProviderCode;
    use crate::domain::record::FileRecord;
    use crate::metadata::{PurgeClaimed, WalkedFile};
    use crate::service::relocate::Moved;
    use crate::storage::DataDir;
    use crate::worker::Progress;
    use crate::worker::failures::{Audience, Failures, LISTED};
    use crate::worker::lane::while_renewing;
    use crate::worker::sync::meter;

    /// Records looked at in one query.
    const PAGE: usize = 200;

    /// The most dropped blobs whose grace period is ended at once. Those of the last minutes alone wait for it.
    const WAITING: usize = 100_000;

    pub(super) async fn move_all(
        dir: &Path,
        config: &StoreConfig,
        progress: Arc<dyn Progress>,
    ) -> Result<CopiedFiles> {
        let store = open(dir, config).await?;
        let moved = Run::new(&store, progress)?.all().await;
        store.close().await;
        moved
    }

    /// Opens the store as the only server, which is what a private directory asks for. Nobody reads from the directory
    /// meanwhile, so that what is moved goes at once.
    async fn open(dir: &Path, config: &StoreConfig) -> Result<FileStore> {
        if !DataDir::exists(dir) {
            return Err(unusable(format!("there is no data directory {}", dir.display())));
        }
        let mut config = config.clone();
        let MetadataPlace::Postgres(place) = &mut config.metadata else {
            return Err(unusable("the configuration names no PostgreSQL database"));
        };
        place.only_server = true;
        config.blob_grace = Duration::ZERO;
        FileStore::builder(dir).config(config).as_guest().open().await
    }

    fn unusable(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unusable, message)
    }

    type Outcome = (FileId, u64, Result<Moved>);

    struct Run {
        store: FileStore,
        backend: ProviderCode,
        /// The name of the run in the notes of its copies.
        owner: String,
        progress: Arc<dyn Progress>,
        copied: CopiedFiles,
        failures: Failures,
    }

    impl Run {
        fn new(store: &FileStore, progress: Arc<dyn Progress>) -> Result<Self> {
            let backend = store.providers().backend().cloned();
            let backend = backend.ok_or_else(|| {
                unusable("the configuration names no local.backend to which the files go")
            })?;
            Ok(Self {
                store: store.clone(),
                backend,
                owner: store.inner().metadata.run_name(),
                progress,
                copied: CopiedFiles::default(),
                failures: Failures::of(Audience::Caller),
            })
        }

        async fn all(mut self) -> Result<CopiedFiles> {
            let local = ProviderCode::local();
            let total = self.count(&local).await?;
            self.progress.accepted();
            self.progress.start(Some(total));

            // The bytes of one that the purge has claimed may be gone: it ends what it began.
            self.store.purge_files_of(&local, &|| false).await?;
            let (store, owner) = (self.store.clone(), self.owner.clone());
            while_renewing(self.move_each(&local), || renew_notes(&store, &owner)).await?;
            self.remove_dropped(&local).await?;

            let metadata = &self.store.inner().metadata;
            self.copied.is_complete = metadata.blobs_at(&local, 1).await?.is_empty()
                && !metadata.keeps_dropped(&local).await?;
            let mut copied = self.copied;
            let (listed, failed) = self.failures.into_parts();
            copied.failures = listed;
            copied.failed += failed;
            Ok(copied)
        }

        /// Counts the files in the data directory.
        async fn count(&self, local: &ProviderCode) -> Result<u64> {
            let metadata = &self.store.inner().metadata;
            let (mut files, mut after) = (0, String::new());
            loop {
                let page = metadata.organizations(&after, PAGE).await?;
                let Some(last) = page.last() else { return Ok(files) };
                after.clone_from(last);

                // What is no id has no file that could be read.
                for organization in page.iter().filter_map(|id| id.parse().ok()) {
                    let holdings = metadata.holdings(&organization).await?;
                    let here = holdings.iter().filter(|holding| holding.provider == *local);
                    files += here.map(|holding| holding.files).sum::<u64>();
                }
            }
        }

        /// Moves every file that is in the data directory, several at a time.
        async fn move_each(&mut self, local: &ProviderCode) -> Result<()> {
            let at_once = self.store.config().sync.concurrency;
            let mut moves: JoinSet<Outcome> = JoinSet::new();
            let mut after = Some(String::new());

            while let Some(behind) = after {
                let page = self.store.inner().metadata.walk_files(&behind, PAGE).await?;
                after = page.next;
                for walked in page.files {
                    let Some(record) = self.record_to_move(walked, local) else { continue };
                    if moves.len() >= at_once {
                        self.note(moves.join_next().await);
                    }
                    self.begin(&mut moves, record);
                }
            }

            while let Some(moved) = moves.join_next().await {
                self.note(Some(moved));
            }
            Ok(())
        }

        /// Returns the record of a file that is in the data directory; notes one that cannot be moved.
        fn record_to_move(
            &mut self,
            walked: WalkedFile,
            local: &ProviderCode,
        ) -> Option<FileRecord> {
            match walked {
                WalkedFile::Sound(record, _) if record.blob.provider != *local => None,
                WalkedFile::Sound(record, PurgeClaimed::No) => Some(*record),
                WalkedFile::Sound(record, PurgeClaimed::Yes) => {
                    let error = Error::new(ErrorKind::Conflict, "the purge has not ended with it");
                    self.failures.note(record.file_id, &error);
                    None
                }
                WalkedFile::Damaged { file_id, reason } => {
                    self.note_damaged(&file_id, &reason);
                    None
                }
            }
        }

        /// Notes a record that cannot be read. The walk has logged it.
        fn note_damaged(&mut self, file_id: &str, reason: &str) {
            self.copied.failed += 1;
            if self.copied.damaged.len() < LISTED {
                let row = DamagedRow::new(format!("file {file_id}"), &reason);
                self.copied.damaged.push(row);
            }
        }

        fn begin(&self, moves: &mut JoinSet<Outcome>, record: FileRecord) {
            let (store, backend, owner) =
                (self.store.clone(), self.backend.clone(), self.owner.clone());
            let meter = meter(&store, &self.progress);
            moves.spawn(async move {
                let moved = store.inner().rehouse_blob(&record, &backend, &owner, meter).await;
                (record.file_id, record.blob.size_bytes, moved)
            });
        }

        fn note(&mut self, outcome: Option<Result<Outcome, JoinError>>) {
            match outcome {
                Some(Ok((_, bytes, Ok(Moved::Done)))) => {
                    self.progress.advance(1);
                    self.copied.files += 1;
                    self.copied.bytes += bytes;
                }
                // Expired, or removed, by this process itself.
                Some(Ok((_, _, Ok(Moved::Lost)))) | None => {}
                Some(Ok((file, _, Err(error)))) => {
                    tracing::warn!(file_id = %file, error = %error.chain(), "a file could not be moved");
                    self.failures.note(file, &error);
                }
                Some(Err(lost)) => tracing::error!(%lost, "a move broke off"),
            }
        }

        /// Removes the bytes in the data directory that no record refers to any more.
        async fn remove_dropped(&self, local: &ProviderCode) -> Result<()> {
            self.store.remove_dropped_of(local, &|| false).await?;

            let inner = self.store.inner();
            let ever = Timestamp::from_millis(i64::MAX);
            for waiting in inner.metadata.due_blobs(local, ever, WAITING).await? {
                inner.metadata.postpone_blob(&waiting, inner.now()).await?;
            }
            self.store.remove_dropped_of(local, &|| false).await
        }
    }

    /// Renews the notes of a run. If that fails now it may succeed at the next time.
    async fn renew_notes(store: &FileStore, owner: &str) {
        let inner = store.inner();
        if let Err(error) = inner.metadata.renew_writes(owner, inner.now()).await {
            tracing::warn!(error = %error.chain(), "a move of files could not renew its notes");
        }
    }
}

/// They need a server: `tests/services/postgres/run` starts one.
#[cfg(all(test, feature = "postgres"))]
mod tests;
