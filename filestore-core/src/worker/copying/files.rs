//! Moves the LOCAL files of a data directory to the backend, for a store with records in PostgreSQL.
//!
//! # Purpose
//! Several servers need LOCAL bytes that all of them can reach. This run therefore moves all files in the
//! data directory, in any state, and removes the replaced blobs there. `migrate` is different: it moves only
//! READY files of one organization, while a server runs.
//!
//! # Crash safety
//! Each file is moved like in a migration. A write intent is recorded, the copy is put and verified by its
//! digest, and one transaction makes it the blob of the record. The remaining work follows from the records,
//! so a stopped run can be started again. In between, a server on the same directory can use the store if it
//! is declared the only server.

use std::path::Path;
use std::sync::Arc;

use crate::domain::config::StoreConfig;
use crate::domain::error::Result;
use crate::domain::file::damage::DamagedRow;
use crate::domain::report::WorkFailure;
use crate::worker::Progress;

/// The result of moving files to the backend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedFiles {
    /// The number of files that this run moved.
    pub files: u64,
    /// The size of the moved files, in bytes.
    pub bytes: u64,
    /// True if the data directory no longer contains files. Any number of servers can then start.
    pub is_complete: bool,
    /// The number of files that could not be moved, including damaged records. A later run tries again.
    pub failed: u64,
    /// The first failed files, at most 100.
    pub failures: Vec<WorkFailure>,
    /// The first unreadable records, at most 100. The location of their bytes is unknown.
    pub damaged: Vec<DamagedRow>,
}

/// Moves all files in the data directory `dir` to the backend of LOCAL in `config`. `config` must also name
/// the PostgreSQL database with the records. Progress counts files and bytes.
///
/// No server can run on this directory or this database, otherwise the call returns [`ErrorKind::Locked`] or
/// [`ErrorKind::Unusable`]. Also returns `Unusable` if there is no such directory, no backend, or no
/// PostgreSQL database.
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

/// Returns an error, because the program was built without the feature `postgres`.
#[cfg(not(feature = "postgres"))]
pub async fn copy_files(_: &Path, _: &StoreConfig, _: Arc<dyn Progress>) -> Result<CopiedFiles> {
    Err(super::records::without_postgres())
}

#[cfg(feature = "postgres")]
mod moving {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::task::{JoinError, JoinSet};

    use super::CopiedFiles;
    use crate::FileStore;
    use crate::domain::config::{MetadataPlace, StoreConfig};
    use crate::domain::error::{Error, ErrorKind, Result};
    use crate::domain::file::damage::DamagedRow;
    use crate::domain::file::record::FileRecord;
    use crate::domain::id::FileId;
    use crate::domain::provider::ProviderCode;
    use crate::domain::report::PurgeOptions;
    use crate::domain::time::clock::Timestamp;
    use crate::metadata::{PurgeClaimed, WalkedFile};
    use crate::service::providers::relocate::Moved;
    use crate::storage::DataDir;
    use crate::worker::running::failures::{Audience, Failures, LISTED};
    use crate::worker::running::lane::while_renewing;
    use crate::worker::sync::meter;
    use crate::worker::{Progress, purge};

    /// The number of records in one query.
    const PAGE: usize = 200;

    /// The maximum number of replaced blobs whose grace period is ended at once. Only blobs of the last
    /// minutes wait for their grace period.
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

    /// Opens the store as the only server, which a private directory requires. No reader uses the directory,
    /// so moved bytes are removed at once.
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
        /// The name of the run in the write intents of its copies.
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
            purge::run_files(&self.store, &local, &PurgeOptions::default(), &|| false).await?;
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
                let page = metadata.inspection().organizations(&after, PAGE).await?;
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

        /// Moves every file in the data directory, several at a time.
        async fn move_each(&mut self, local: &ProviderCode) -> Result<()> {
            let at_once = self.store.config().sync.concurrency;
            let mut moves: JoinSet<Outcome> = JoinSet::new();
            let mut after = Some(String::new());

            while let Some(behind) = after {
                let page =
                    self.store.inner().metadata.inspection().walk_files(&behind, PAGE).await?;
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

        /// Returns the record of a file in the data directory. Records a file that cannot be moved.
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

        /// Records an unreadable record. The walk has logged it.
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

        /// Removes bytes in the data directory that no record refers to.
        async fn remove_dropped(&self, local: &ProviderCode) -> Result<()> {
            purge::run_dropped(&self.store, local, &|| false).await?;

            let inner = self.store.inner();
            let ever = Timestamp::from_millis(i64::MAX);
            for waiting in inner.metadata.due_blobs(local, ever, WAITING).await? {
                inner.metadata.postpone_blob(&waiting, inner.now()).await?;
            }
            purge::run_dropped(&self.store, local, &|| false).await
        }
    }

    /// Renews the write intents of a run. After a failure, the next renewal tries again.
    async fn renew_notes(store: &FileStore, owner: &str) {
        let inner = store.inner();
        if let Err(error) = inner.metadata.renew_writes(owner, inner.now()).await {
            tracing::warn!(error = %error.chain(), "a move of files could not renew its notes");
        }
    }
}

/// These tests need a server. `tests/services/postgres/run` starts one.
#[cfg(all(test, feature = "postgres"))]
mod tests;
