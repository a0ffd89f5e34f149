//! Snapshots at a provider.
//!
//! ```text
//! .filestore-backup/marker                          the version of the format, and the id of the place
//! .filestore-backup/blobs/<2 digits>/<sha-256>.<run>  bytes, by their digest and by the run that stored them
//! .filestore-backup/damaged/<sha-256>.<run>         a note that these bytes were found to be others
//! .filestore-backup/snapshots/<id>.sqlite3          the copy of the database
//! .filestore-backup/snapshots/<id>.jsonl            what the snapshot consists of, see `manifest`
//! .filestore-backup/snapshots/<id>.revoked          a note that a run was taken for dead, see `lease`
//! .filestore-backup/runs/<run>.<kind>.<store>.<n>   a run under way, see `lease`
//! ```
//!
//! The id of a run that creates a snapshot is the snapshot's id. A manifest names the run that stored
//! each content. A name is never reused for other bytes.
//!
//! # Crash safety
//! A snapshot exists once its manifest exists, which is stored last. Each object is complete or absent, and
//! is verified like a blob. Contents of interrupted runs are found by listing them. A later run reads and
//! compares them before it uses them.
//!
//! # Locking
//! See `lease`.
//!
//! | module | contents |
//! |---|---|
//! | `names` | the names of objects |
//! | `marker` | the identity of the destination |
//! | `lease` | separation of runs without a lock |
//! | `object_reader` | an object that is read like a file |
//! | `contents` | finding, storing and reading contents |
//! | `sweep` | removing contents |
//! | `look` | searches for purge receipts |

mod names;
mod marker;
mod lease;
mod object_reader;
mod contents;
mod sweep;
mod look;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use self::contents::Shards;
use self::lease::Lease;
use self::names::{ContentName, Part, SNAPSHOTS};
use self::object_reader::ObjectReader;
use super::blocking;
use super::content::{Found, FoundHow, OnDisk, Stored, Wanted};
use super::copy::{self, Copying};
use super::destination::{Destination, Removed, RunClaim, RunKind};
use super::draft::{DatabaseFile, Draft, Scratch};
use super::files::{BACKING_UP, READING};
use super::manifest::Manifest;
use super::opened::{Opened, pieces};
use super::restored::RestoredDirectory;
use crate::domain::config::BackupPlace;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::{DestinationId, SnapshotId};
use crate::domain::report::backup::{BlobProblem, SnapshotBytes};
use crate::domain::time::clock::Timestamp;
use crate::storage::{ByteStream, Cloud, LocalStore};
use crate::tasks::step::{Step, reached};

pub use self::look::{look_for_at, present_at_provider};

/// The snapshots at a provider. Clones share the claim.
#[derive(Debug, Clone)]
pub struct BackupBucket {
    cloud: Cloud,
    /// The run of this clone.
    run: Option<Arc<Run>>,
}

/// A current run.
struct Run {
    id: SnapshotId,
    kind: RunKind,
    /// The lease. `None` for a run that only reads, with keys that cannot write.
    lease: Option<Lease>,
    damaged: OnceCell<Mutex<HashSet<ContentName>>>,
    shards: Shards,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl BackupBucket {
    fn run(&self) -> Result<&Run> {
        let run = self.run.as_deref();
        run.ok_or_else(|| Error::internal(READING, "the destination was not claimed"))
    }

    /// Lists the parts of snapshots.
    async fn parts(&self) -> Result<Vec<(SnapshotId, Part, Option<Timestamp>)>> {
        let listed = self.cloud.list_objects(SNAPSHOTS).await?;
        let parts = listed.into_iter().filter_map(|object| {
            let (id, part) = Part::parse(&object.name)?;
            Some((id, part, object.modified_at))
        });
        Ok(parts.collect())
    }

    /// Stores a file, and returns its description.
    async fn put_file(&self, name: String, file: File) -> Result<()> {
        let (file, found) = blocking(BACKING_UP, move || {
            let found = copy::digest(&file, &mut Vec::new());
            Ok((file, found.map_err(|error| Error::io(BACKING_UP, error))?))
        })
        .await?;
        // Digested with pread, which leaves the file at its beginning; a manifest was written to its end.
        let file = rewound(file)?;
        self.cloud.put_object(&name, found.size_bytes, found.sha256, pieces(file)).await
    }
}

fn rewound(mut file: File) -> Result<File> {
    use std::io::Seek;
    file.rewind().map_err(|error| Error::io(BACKING_UP, error))?;
    Ok(file)
}

#[async_trait]
impl Destination for BackupBucket {
    fn place(&self) -> BackupPlace {
        BackupPlace::Provider(self.cloud.code().clone())
    }

    async fn identify(&self, _: Timestamp) -> Result<DestinationId> {
        marker::read(&self.cloud).await?.ok_or_else(|| marker::missing(&self.cloud))
    }

    /// A reading run continues without a lease if it cannot write. After a disaster, only the keys of a
    /// reader might be available.
    async fn claim(&self, run: RunClaim) -> Result<Arc<dyn Destination>> {
        let lease = match Lease::take(&self.cloud, run).await {
            Ok(lease) => Some(lease),
            Err(error)
                if run.kind == RunKind::Restore
                    && error.kind() == ErrorKind::ProviderUnavailable =>
            {
                tracing::warn!(error = %error.chain(), "a snapshot is read without a lease: do not prune until the read ends");
                None
            }
            Err(error) => return Err(error),
        };
        let run = Run {
            id: run.id,
            kind: run.kind,
            lease,
            damaged: OnceCell::new(),
            shards: Shards::default(),
        };
        Ok(Arc::new(Self { cloud: self.cloud.clone(), run: Some(Arc::new(run)) }))
    }

    async fn confirm(&self) -> Result<()> {
        match &self.run()?.lease {
            Some(lease) => lease.confirm().await,
            None => self.identify(Timestamp::from_millis(0)).await.map(drop),
        }
    }

    async fn release(&self) {
        if let Some(lease) = self.run.as_ref().and_then(|run| run.lease.as_ref()) {
            lease.release().await;
        }
    }

    async fn snapshots(&self) -> Result<Vec<SnapshotId>> {
        let parts = self.parts().await?;
        let all =
            |wanted| parts.iter().filter(move |(_, part, _)| *part == wanted).map(|(id, ..)| *id);
        let revoked: HashSet<_> = all(Part::Revoked).collect();
        Ok(all(Part::Manifest).filter(|id| !revoked.contains(id)).collect())
    }

    async fn manifest(&self, id: SnapshotId) -> Result<Manifest> {
        let object = ObjectReader::open(&self.cloud, Part::Manifest.object(id)).await?;
        let object = object.ok_or_else(|| Error::not_found("the snapshot"))?;
        blocking(READING, move || Manifest::open(object)).await
    }

    async fn begin(&self, id: SnapshotId, scratch: &Path) -> Result<Draft> {
        let parent = scratch.to_owned();
        let scratch = blocking(BACKING_UP, move || Scratch::make(&parent, id)).await?;
        let (database, manifest) =
            (scratch.file("metadata.sqlite3"), scratch.file("manifest.jsonl"));
        reached(Step::SnapshotBegun);
        Ok(Draft { id, database, manifest, _scratch: Some(scratch) })
    }

    async fn finish(&self, draft: &Draft, manifest: File) -> Result<()> {
        let (path, id) = (draft.database.clone(), draft.id);
        let database = blocking(BACKING_UP, move || {
            File::open(path).map_err(|error| Error::io(BACKING_UP, error))
        });
        self.put_file(Part::Database.object(id), database.await?).await?;
        reached(Step::DatabaseTaken);

        self.confirm().await?;
        self.put_file(Part::Manifest.object(id), manifest).await?;
        reached(Step::SnapshotFinished);
        if self.cloud.object_size(&Part::Revoked.object(id)).await?.is_none() {
            return Ok(());
        }
        let message = "the snapshot paused longer than its lease, and its contents might be removed: take the snapshot again";
        Err(Error::new(ErrorKind::Conflict, message))
    }

    async fn remove(&self, id: SnapshotId) -> Result<()> {
        self.cloud.remove_object(&Part::Manifest.object(id)).await?;
        reached(Step::SnapshotUnnamed);
        self.cloud.remove_object(&Part::Database.object(id)).await
    }

    /// Only a prune knows that there are no other runs.
    async fn clear(&self) -> Result<()> {
        match self.run()? {
            Run { kind: RunKind::Prune, lease: Some(lease), .. } => self.clear_for(lease).await,
            _ => Ok(()),
        }
    }

    async fn open_database(&self, id: SnapshotId) -> Result<Option<Opened>> {
        let name = Part::Database.object(id);
        let Some(size_bytes) = self.cloud.object_size(&name).await? else { return Ok(None) };
        Ok(self.cloud.read_object(&name, size_bytes).await?.map(Opened::Stream))
    }

    async fn database_file(&self, id: SnapshotId, scratch: &Path) -> Result<DatabaseFile> {
        let opened = self.open_database(id).await?;
        let opened =
            opened.ok_or_else(|| Error::not_found("the snapshot's copy of the database"))?;
        let (parent, run) = (scratch.to_owned(), self.run()?.id);
        let (scratch, path, file) = blocking(READING, move || {
            let scratch = Scratch::make(&parent, run)?;
            let path = scratch.file("metadata.sqlite3");
            let file = super::files::new_file(&path).map_err(|error| Error::io(READING, error))?;
            Ok((scratch, path, file))
        })
        .await?;
        opened.copy_to(file).await?;
        Ok(DatabaseFile { path, _scratch: Some(scratch) })
    }

    async fn find(&self, wanted: Vec<Wanted>, _: SnapshotBytes) -> Result<Vec<Option<Found>>> {
        let run = self.run()?;
        contents::each(wanted, |wanted| async move {
            let stored = self.find_one(run, wanted).await?;
            Ok(stored.map(|stored| Found { stored, how: FoundHow::Reused }))
        })
        .await
    }

    async fn take_files(
        &self,
        local: &LocalStore,
        wanted: Vec<OnDisk>,
        _: SnapshotBytes,
    ) -> Result<Vec<Result<Stored, BlobProblem>>> {
        let run = self.run()?;
        contents::each(wanted, |wanted| self.take_file(run, local, wanted)).await
    }

    async fn receive(&self, expected: Copying, bytes: ByteStream) -> Result<Option<Stored>> {
        self.put_content(self.run()?, expected, bytes).await
    }

    async fn open(&self, content: Stored) -> Result<Option<Opened>> {
        self.open_content(self.run()?, content).await
    }

    async fn digest(&self, contents: Vec<Stored>) -> Vec<Result<Option<Copying>>> {
        let digested = contents::each(contents, |content| async move {
            let digest = async {
                match self.open(content).await? {
                    Some(opened) => opened.digest().await.map(Some),
                    None => Ok(None),
                }
            };
            Ok(digest.await)
        });
        digested.await.expect("a failure is one content's")
    }

    async fn set_aside(&self, content: Stored) -> Result<bool> {
        let run = self.run()?;
        let Some(name) = self.name_of(run, content).await? else { return Ok(false) };
        self.cloud.put_text(&name.damage_note(), "these bytes are others\n".to_owned()).await?;
        self.damaged(run).await?.lock().insert(name);
        Ok(true)
    }

    async fn restore(
        &self,
        to: &Arc<RestoredDirectory>,
        blobs: Vec<(BlobKey, Stored)>,
    ) -> Result<Vec<Option<bool>>> {
        contents::each(blobs, |(key, content)| self.restore_one(to, key, content)).await
    }

    async fn sweep(&self, removed: Removed) -> Result<()> {
        self.sweep_contents(self.run()?, &*removed).await
    }
}
