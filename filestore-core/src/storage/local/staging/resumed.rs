//! Staged files that outlive their request: those of resumable uploads.
//!
//! A row of the database owns such a file, and says how much of it may be told. A request opens the file at that
//! offset and goes on in a [`StagingWriter`], which leaves the file when it is dropped.
//!
//! # Crash safety
//! Bytes past the row's offset were told to nobody. They are cut off when the file is opened, before anything is
//! written: after a failed write-back the kernel may hold pages as clean that no disk has, and what is written
//! again makes them dirty.

use std::fs::File;
use std::io::Read;
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{AtFlags, Mode, OFlags, ftruncate, openat, statat};
use rustix::io::Errno;
use sha2::Digest;
use tokio::sync::oneshot;

use super::digest_state::DigestState;
use super::staged::{Received, StagedBlob, StagedName};
use super::{Receiving, STAGING, Sink, StagingWriter, sync_staging};
use crate::domain::config::Durability;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::media::SNIFF_BYTES;
use crate::domain::id::{BlobId, Sha256};
use crate::storage::local::durable::sync;
use crate::storage::local::pool::{self, DropOnPool};
use crate::storage::local::{LocalStore, Shared};
use crate::tasks::step::{Step, reached};

/// A place in a staged file: how many bytes it has up to there, and what is known of them.
#[derive(Clone, Default)]
pub struct StagedPoint {
    /// Byte count.
    pub size_bytes: u64,
    /// The state of their SHA-256; `None` if it has to be made again from the disk.
    pub digest: Option<DigestState>,
    /// The first bytes, from which the type is detected.
    pub head: Bytes,
}

impl StagedPoint {
    /// Reads a stored point: the number of bytes, the state of their digest, and the first bytes.
    pub fn of(size_bytes: u64, digest: &[u8], head: &[u8]) -> Self {
        Self {
            size_bytes,
            digest: DigestState::from_bytes(digest),
            head: Bytes::copy_from_slice(head),
        }
    }
}

impl LocalStore {
    /// Makes an empty staged file that a row owns. When this returns, its name is durable.
    pub async fn make_resumable(&self, blob_id: BlobId) -> Result<()> {
        self.check_space().await?;
        let (synced, name_is_durable) = oneshot::channel();
        let made = self.on_pool(STAGING, move |shared| {
            match StagedName::create(shared, blob_id) {
                Ok((mut name, _file)) => name.leave(),
                // Another request for the same upload was faster.
                Err(_) if length(shared, blob_id)?.is_some() => {}
                Err(error) => return Err(error),
            }
            sync_staging(shared, synced);
            Ok(())
        });
        made.await?;

        let synced = name_is_durable.await.map_err(|lost| Error::internal(STAGING, lost))?;
        synced.map_err(|error| Error::io("syncing the staging directory", error))
    }

    /// Opens a staged file at `point` to write up to `max_bytes`, and cuts off what is behind. A file without
    /// bytes that is not there is made again.
    ///
    /// `RecordDamaged` if the file has fewer bytes than the point.
    pub async fn resume(
        &self,
        blob_id: BlobId,
        point: StagedPoint,
        max_bytes: u64,
    ) -> Result<StagingWriter> {
        self.check_space().await?;
        if point.size_bytes == 0 && self.staged_bytes(blob_id).await?.is_none() {
            self.make_resumable(blob_id).await?;
        }
        let size_bytes = point.size_bytes;
        let receiving =
            self.on_pool(STAGING, move |shared| Receiving::resume(shared, blob_id, &point)).await?;

        let mut writer = StagingWriter::new(Arc::clone(&self.shared), blob_id, max_bytes);
        writer.size_bytes = size_bytes;
        writer.sink = Sink::written(DropOnPool::new(receiving), Vec::new());
        Ok(writer)
    }

    /// Returns the length of a staged file; `None` if it is not there.
    pub async fn staged_bytes(&self, blob_id: BlobId) -> Result<Option<u64>> {
        self.on_pool(STAGING, move |shared| length(shared, blob_id)).await
    }

    /// Returns a whole staged file that a row owns, for a commit. Dropping the blob leaves the file.
    pub fn adopt(
        &self,
        blob_id: BlobId,
        size_bytes: u64,
        sha256: Sha256,
        head: Bytes,
    ) -> StagedBlob {
        let name = StagedName::owned_elsewhere(&self.shared, blob_id);
        Received { size_bytes, sha256, head }.named(name)
    }
}

/// Returns the length of a staged file; `None` if it is not there. Blocks.
fn length(shared: &Shared, blob_id: BlobId) -> Result<Option<u64>> {
    match statat(&shared.staging, blob_id.to_string(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(u64::try_from(stat.st_size).unwrap_or(0))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(Error::io(STAGING, error.into())),
    }
}

impl StagingWriter {
    /// Makes what was written so far durable, and says where it ends. The upload goes on.
    ///
    /// After an error nothing since the last checkpoint can be trusted, and the writer cannot go on.
    pub async fn checkpoint(&mut self) -> Result<StagedPoint> {
        self.flush(Flush::Durably).await
    }

    /// Writes what is in memory, without making it durable, and says where it ends.
    pub async fn point(&mut self) -> Result<StagedPoint> {
        self.flush(Flush::No).await
    }

    /// Waits for the block that is being written. Call this before another writer may continue the file: a late
    /// block would land behind the bytes of that writer.
    pub async fn quiet(&mut self) -> Result<()> {
        self.sink = match self.settle().await? {
            (Some(file), spare) => Sink::written(file, spare),
            (None, _) => Sink::Unopened,
        };
        Ok(())
    }

    async fn flush(&mut self, flush: Flush) -> Result<StagedPoint> {
        let (file, _) = self.settle().await?;
        let last = mem::take(&mut self.filling);
        let (shared, blob_id) = (Arc::clone(&self.shared), self.blob_id);
        let work = move || {
            let mut file = Receiving::open_or(file, shared, blob_id)?;
            if !last.is_empty() {
                file.append(&last)?;
            }
            if flush == Flush::Durably {
                file.make_durable()?;
            }
            let point = file.point();
            Ok((DropOnPool::new(file), point))
        };
        let (file, point) = pool::run(STAGING, work).await?;

        self.sink = Sink::written(file, Vec::new());
        self.pace.begin_block();
        Ok(point)
    }
}

impl Sink {
    /// The state of a file whose last block is written.
    fn written(file: DropOnPool<Receiving>, spare: Vec<u8>) -> Self {
        let (done, written) = oneshot::channel();
        done.send(Ok((file, spare))).ok();
        Self::Writing(written)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    Durably,
    No,
}

impl Receiving {
    /// Opens a staged file that a row owns, cut to `point`. Blocks.
    fn resume(shared: &Arc<Shared>, blob_id: BlobId, point: &StagedPoint) -> Result<Self> {
        let name = StagedName::owned_elsewhere(shared, blob_id);
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file: File = openat(&shared.staging, blob_id.to_string(), flags, Mode::empty())
            .map(File::from)
            .map_err(|error| Error::io("opening a staged blob", error.into()))?;
        let length = file.metadata().map_err(|error| Error::io(STAGING, error))?.len();
        if length < point.size_bytes {
            let message = format!("bytes of the upload are missing: {}", point.size_bytes - length);
            return Err(Error::new(ErrorKind::RecordDamaged, message));
        }
        if length > point.size_bytes {
            ftruncate(&file, point.size_bytes).map_err(|error| Error::io(STAGING, error.into()))?;
            reached(Step::StagedFileCut);
        }

        let hasher = match point.digest.clone() {
            Some(state) => state.into_hasher(),
            None => hash(&file)?,
        };
        Ok(Self {
            shared: Arc::clone(shared),
            name,
            file: Some(file),
            hasher,
            head: point.head.clone(),
            size_bytes: point.size_bytes,
            written_back: point.size_bytes,
        })
    }

    fn make_durable(&mut self) -> Result<()> {
        if self.shared.durability == Durability::Full {
            sync(self.file()?).map_err(|error| Error::io("syncing an upload", error))?;
            reached(Step::CheckpointSynced);
        }
        Ok(())
    }

    fn point(&self) -> StagedPoint {
        StagedPoint {
            size_bytes: self.size_bytes,
            digest: Some(DigestState::of(self.hasher.clone())),
            head: self.head.clone(),
        }
    }

    /// Takes the first bytes of a block into the head, until that is full.
    pub(super) fn extend_head(&mut self, block: &[u8]) {
        let missing = SNIFF_BYTES.saturating_sub(self.head.len());
        if missing == 0 || block.is_empty() {
            return;
        }
        let mut head = self.head.to_vec();
        head.extend_from_slice(&block[..block.len().min(missing)]);
        self.head = head.into();
    }
}

/// Hashes a file from its beginning.
fn hash(mut file: &File) -> Result<sha2::Sha256> {
    use std::io::{Seek, SeekFrom};

    let mut hasher = sha2::Sha256::new();
    let mut block = vec![0; 256 << 10];
    file.seek(SeekFrom::Start(0)).map_err(|error| Error::io(STAGING, error))?;
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(hasher),
            Ok(read) => hasher.update(&block[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io(STAGING, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::clock::Timestamp;
    use crate::storage::contract::content;
    use crate::storage::{DataDir, LocalOptions};

    fn open() -> (tempfile::TempDir, LocalStore) {
        let dir = tempfile::tempdir().unwrap();
        let options = LocalOptions {
            durability: Durability::Full,
            reserve_bytes: 0,
            concurrent_uploads: 4,
            memory_bytes: 0,
            open_files: 0,
        };
        let data = DataDir::open(&dir.path().join("data")).unwrap();
        let store = LocalStore::open(&data, options).unwrap();
        (dir, store)
    }

    fn digest(bytes: &[u8]) -> Sha256 {
        Sha256(sha2::Sha256::digest(bytes).into())
    }

    #[tokio::test]
    async fn a_file_goes_on_at_its_checkpoint_and_forgets_what_is_behind() {
        let (dir, store) = open();
        let bytes = content(1_000_000);
        let id = BlobId::generate(Timestamp::now());
        store.make_resumable(id).await.unwrap();

        let mut point = StagedPoint::default();
        for (from, to, lost) in [(0, 3, 50_000), (3, 400_001, 10), (400_001, 1_000_000, 0)] {
            let mut writer = store.resume(id, point, u64::MAX).await.unwrap();
            writer.write(Bytes::copy_from_slice(&bytes[from..to])).await.unwrap();
            point = writer.checkpoint().await.unwrap();
            assert_eq!(point.size_bytes, to as u64);
            writer.write(Bytes::from(vec![0xEE; lost])).await.unwrap();
            writer.point().await.unwrap();
        }

        let state = point.digest.unwrap();
        assert_eq!(state.digest(), digest(&bytes));
        assert_eq!(point.head, bytes[..SNIFF_BYTES]);
        let path = dir.path().join("data/staging").join(id.to_string());
        assert_eq!(std::fs::read(path).unwrap(), bytes);
    }

    #[tokio::test]
    async fn a_lost_digest_is_made_again_from_the_disk() {
        let (_dir, store) = open();
        let id = BlobId::generate(Timestamp::now());
        let mut writer = store.resume(id, StagedPoint::default(), 100).await.unwrap();
        writer.write("hello, ".into()).await.unwrap();
        let point = writer.checkpoint().await.unwrap();
        drop(writer);

        let mut writer =
            store.resume(id, StagedPoint { digest: None, ..point }, 100).await.unwrap();
        writer.write("world".into()).await.unwrap();
        let point = writer.checkpoint().await.unwrap();
        assert_eq!(point.digest.unwrap().digest(), digest(b"hello, world"));
    }

    #[tokio::test]
    async fn a_file_with_too_few_bytes_is_refused() {
        let (_dir, store) = open();
        let id = BlobId::generate(Timestamp::now());
        store.make_resumable(id).await.unwrap();
        let point = StagedPoint { size_bytes: 5, ..StagedPoint::default() };
        let refused = store.resume(id, point, 100).await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::RecordDamaged);
        assert_eq!(store.staged_bytes(id).await.unwrap(), Some(0));
    }

    #[tokio::test]
    async fn an_adopted_blob_leaves_its_file_when_it_is_dropped() {
        let (dir, store) = open();
        let id = BlobId::generate(Timestamp::now());
        let mut writer = store.resume(id, StagedPoint::default(), 100).await.unwrap();
        writer.write("whole".into()).await.unwrap();
        writer.checkpoint().await.unwrap();
        drop(writer);

        let mut blob = store.adopt(id, 5, digest(b"whole"), "whole".into());
        blob.lend();
        blob.release();
        drop(blob);
        // The drop of a file that is not left would run on the pool.
        store.check().await.unwrap();
        assert!(dir.path().join("data/staging").join(id.to_string()).exists());
    }
}
