//! Staging: receives a blob durably before a record names it.
//!
//! Chunks are collected in a buffer. The blocking pool writes and hashes a full buffer while the next buffer
//! is filled. The speed of the upload decides on the size of a buffer, and whether the file stays open
//! between two buffers (`turn`). An upload that fits into one buffer needs a single task on the pool, at
//! [`StagingWriter::finish`]: create, write, hash, fsync, and its part in the directory's fsync.
//!
//! # Crash safety
//! A file is unlinked when its value is dropped. An upload that fails or is cancelled therefore leaves no
//! file. A crash leaves a staged file without a record, and the next start unlinks it.

pub(super) mod staged;
pub(super) mod ledger;
pub(super) mod turn;
pub(super) mod group_sync;
pub(super) mod digest_state;
pub(super) mod resumed;

use std::fs::File;
use std::io::Write;
use std::mem;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use sha2::Digest;
use tokio::sync::oneshot;

use super::Shared;
use super::durable::sync;
use super::pool::{DropOnPool, DropsFiles};
use super::staging::group_sync::Lead;
use super::staging::ledger::StagedShare;
use super::staging::staged::{Received, StagedBlob, StagedName};
use super::staging::turn::Pace;
use crate::domain::config::Durability;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{BlobId, Sha256};
use crate::domain::report::erasure::Era;
use crate::tasks;
use crate::tasks::step::{Call, Step, attempt, reached};

/// The bytes of a large upload that can wait in the page cache before write-back starts. The fsync at the end
/// then has little left to do (at 256 MiB: 10 ms instead of 90).
#[cfg(target_os = "linux")]
const WRITE_BACK_BYTES: u64 = 8 << 20;

/// An upload in progress. Uses at most two buffers of 256 KiB. A slow upload uses one buffer of 16 KiB.
pub struct StagingWriter {
    shared: Arc<Shared>,
    blob_id: BlobId,
    max_bytes: u64,
    size_bytes: u64,
    filling: Vec<u8>,
    sink: Sink,
    /// The upload's share of the limit for staged bytes, if it is counted.
    share: Option<StagedShare>,
    /// The era in which the upload began.
    era: Era,
    /// The speed of the upload, and the turn of a fast upload. The finished blob does not need a turn.
    pace: Pace,
}

/// The file's state.
enum Sink {
    /// The upload has no file yet, because no buffer was full.
    Unopened,
    /// The pool writes a buffer, and then returns the file and the buffer.
    Writing(oneshot::Receiver<Result<(DropOnPool<Receiving>, Vec<u8>)>>),
    /// A write failed, or the wait for a write was cancelled.
    Failed,
}

impl StagingWriter {
    pub(super) fn new(shared: Arc<Shared>, blob_id: BlobId, max_bytes: u64) -> Self {
        Self {
            pace: shared.turns.pace(),
            shared,
            blob_id,
            max_bytes,
            size_bytes: 0,
            filling: Vec::new(),
            sink: Sink::Unopened,
            share: None,
            era: Era::default(),
        }
    }

    /// Sets the era in which the upload began.
    #[must_use]
    pub(crate) fn begun_in(mut self, era: Era) -> Self {
        self.era = era;
        self
    }

    /// Counts the upload's bytes in `share`, until the finished blob is dropped or kept.
    #[must_use]
    pub(crate) fn counted_in(mut self, share: StagedShare) -> Self {
        self.share = Some(share);
        self
    }

    /// Counts the bytes so far.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Adds `chunk`. Waits only if two buffers are full.
    ///
    /// Returns [`ErrorKind::TooLarge`] (field `file`) if there are more bytes than allowed. Returns
    /// [`ErrorKind::Busy`] if the limit for staged bytes is reached, and [`ErrorKind::StorageFull`] if the
    /// disk is full. After an error, or after a call whose future was dropped, the upload cannot continue.
    /// Drop the upload.
    pub async fn write(&mut self, mut chunk: Bytes) -> Result<()> {
        let size = self.size_bytes.saturating_add(chunk.len() as u64);
        if size > self.max_bytes {
            self.sink = Sink::Failed;
            return Err(too_large(self.max_bytes));
        }

        self.size_bytes = size;
        while !chunk.is_empty() {
            let filled = self.filling.len();
            let block = self.pace.block_bytes(filled);
            let room = block - filled;
            if room == 0 && filled > 0 {
                self.hand_over().await?;
                continue;
            }
            let part = chunk.len().min(room);
            self.make_room(part, block);
            self.filling.extend_from_slice(&chunk[..part]);
            chunk.advance(part);
        }
        Ok(())
    }

    /// Doubles the buffer up to the size of a block, so that the start of an upload uses little memory.
    fn make_room(&mut self, part: usize, block: usize) {
        let needed = self.filling.len() + part;
        if needed > self.filling.capacity() {
            let capacity = needed.max(self.filling.capacity() * 2).min(block);
            self.filling.reserve_exact(capacity - self.filling.len());
        }
    }

    /// Counts the bytes before they are written.
    fn count(&mut self) -> Result<()> {
        let bytes = self.filling.len() as u64;
        self.share.as_mut().map_or(Ok(()), |share| share.grow(bytes))
    }

    /// Passes the full buffer to the pool, after the previous buffer is written.
    async fn hand_over(&mut self) -> Result<()> {
        // A part of the chunk is taken already, so the same chunk cannot come again.
        self.count().inspect_err(|_| self.sink = Sink::Failed)?;
        let (file, spare) = self.settle().await?;
        let has_turn = self.pace.has_turn();
        let block = mem::replace(&mut self.filling, if has_turn { spare } else { Vec::new() });

        let (done, written) = oneshot::channel();
        let (shared, blob_id) = (Arc::clone(&self.shared), self.blob_id);
        tasks::blocking(move || {
            let outcome = Receiving::open_or(file, shared, blob_id).and_then(|mut file| {
                file.append(&block)?;
                file.start_write_back()?;
                let mut spare = block;
                spare.clear();
                if !has_turn {
                    file.put_down();
                    spare = Vec::new();
                }
                Ok((DropOnPool::new(file), spare))
            });
            done.send(outcome).ok();
        });

        self.sink = Sink::Writing(written);
        self.pace.begin_block();
        Ok(())
    }

    /// Waits for the buffer that is being written. Returns the file, if there is one, and the buffer.
    async fn settle(&mut self) -> Result<(Option<DropOnPool<Receiving>>, Vec<u8>)> {
        match mem::replace(&mut self.sink, Sink::Failed) {
            Sink::Unopened => Ok((None, Vec::new())),
            Sink::Writing(written) => {
                let (file, spare) =
                    written.await.map_err(|lost| Error::internal(STAGING, lost))??;
                Ok((Some(file), spare))
            }
            Sink::Failed => Err(Error::internal(STAGING, "an earlier write of this upload failed")),
        }
    }

    /// Makes the blob durable under its staged name. On failure, the file is removed.
    ///
    /// File and directory are synced in parallel, and the directory's fsync is shared with other uploads. The
    /// name exists since the file was created, so neither fsync must wait for the other.
    pub async fn finish(mut self) -> Result<StagedBlob> {
        self.count()?;
        let (file, _) = self.settle().await?;
        let last = mem::take(&mut self.filling);

        let (done, sealed) = oneshot::channel();
        let (synced, name_is_durable) = oneshot::channel();
        let (shared, blob_id) = (Arc::clone(&self.shared), self.blob_id);
        tasks::blocking(move || {
            let outcome =
                Receiving::open_or(file, Arc::clone(&shared), blob_id).and_then(|mut file| {
                    sync_staging(&shared, synced);
                    file.append(&last)?;
                    file.seal()
                });
            // If nobody waits any more the blob drops, and its file with it.
            done.send(outcome).ok();
        });

        let mut blob = sealed.await.unwrap_or_else(|lost| Err(Error::internal(STAGING, lost)))?;
        blob.share = self.share.take();
        blob.era = self.era;
        let error = match name_is_durable.await {
            Ok(Ok(())) => return Ok(blob),
            Ok(Err(error)) => Error::io("syncing the staging directory", error),
            Err(lost) => Error::internal(STAGING, lost),
        };

        // Unlinked before the caller hears of the failure.
        blob.discard().await;
        Err(error)
    }
}

pub(super) const STAGING: &str = "staging an upload";

fn too_large(limit: u64) -> Error {
    Error::new(ErrorKind::TooLarge, format!("the file has more bytes than {limit}"))
        .with_field("file")
        .with_limit(limit)
}

/// Joins the fsync of the staging directory. Returns at once. The fsync runs in parallel to the caller's own.
pub(super) fn sync_staging(shared: &Arc<Shared>, synced: oneshot::Sender<std::io::Result<()>>) {
    match shared.durability {
        Durability::Full => {
            // A failed send means that nobody waits any more.
            let lead = shared.staging_sync.join(move |outcome| _ = synced.send(outcome));
            if lead == Lead::IsYours {
                let leading = Leading { shared: Arc::clone(shared), has_led: false };
                tasks::blocking(move || leading.lead());
            }
        }
        Durability::Process => _ = synced.send(Ok(())),
    }
}

/// The duty to lead the fsyncs of the staging directory. If the runtime ends first, the next upload leads.
struct Leading {
    shared: Arc<Shared>,
    has_led: bool,
}

impl Leading {
    fn lead(mut self) {
        self.shared.staging_sync.lead();
        self.has_led = true;
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        if !self.has_led {
            self.shared.staging_sync.give_up();
        }
    }
}

/// A staged file, on the blocking pool or on the way there.
struct Receiving {
    shared: Arc<Shared>,
    name: StagedName,
    /// The open file. `None` between two blocks of an upload without a turn.
    file: Option<File>,
    hasher: sha2::Sha256,
    head: Bytes,
    size_bytes: u64,
    written_back: u64,
}

impl DropsFiles for Receiving {
    fn drops_files(&self) -> bool {
        true
    }
}

impl Receiving {
    /// Continues with the file, or creates a file for the first bytes.
    fn open_or(
        file: Option<DropOnPool<Self>>,
        shared: Arc<Shared>,
        blob_id: BlobId,
    ) -> Result<Self> {
        match file {
            Some(file) => Ok(file.take()),
            None => Self::create(shared, blob_id),
        }
    }

    fn create(shared: Arc<Shared>, blob_id: BlobId) -> Result<Self> {
        let (name, file) = StagedName::create(&shared, blob_id)?;
        Ok(Self {
            shared,
            name,
            file: Some(file),
            hasher: sha2::Sha256::new(),
            head: Bytes::new(),
            size_bytes: 0,
            written_back: 0,
        })
    }

    /// Writes and hashes a block. Checks the free space first, because running uploads must not use space
    /// that was freed for a delete.
    fn append(&mut self, block: &[u8]) -> Result<()> {
        self.shared.space.look()?;
        attempt(Call::Write).map_err(|error| Error::io(STAGING, error.into()))?;
        self.file()?.write_all(block).map_err(|error| Error::io(STAGING, error))?;
        reached(Step::StagedBlockWritten);
        self.hasher.update(block);

        self.extend_head(block);
        self.size_bytes += block.len() as u64;
        Ok(())
    }

    /// Returns the file. Opens it again if it was closed. Writes go to its end.
    fn file(&mut self) -> Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.name.open_to_append()?,
        };
        Ok(self.file.insert(file))
    }

    /// Closes the file until the next block.
    fn put_down(&mut self) {
        self.file = None;
    }

    /// Starts to write dirty pages, without waiting. On Linux, `POSIX_FADV_DONTNEED` does this. The call
    /// drops only clean pages, and therefore none of the new bytes.
    #[cfg(target_os = "linux")]
    fn start_write_back(&mut self) -> Result<()> {
        let dirty = self.size_bytes - self.written_back;
        if dirty < WRITE_BACK_BYTES || self.shared.durability == Durability::Process {
            return Ok(());
        }

        let (offset, length) = (self.written_back, std::num::NonZeroU64::new(dirty));
        rustix::fs::fadvise(self.file()?, offset, length, rustix::fs::Advice::DontNeed).ok();
        self.written_back = self.size_bytes;
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    fn start_write_back(&mut self) -> Result<()> {
        self.written_back = self.size_bytes;
        Ok(())
    }

    /// Syncs the file. A failure is final, because the kernel may have dropped the unwritten pages.
    fn seal(mut self) -> Result<StagedBlob> {
        if self.shared.durability == Durability::Full {
            sync(self.file()?).map_err(|error| Error::io("syncing an upload", error))?;
            reached(Step::StagedFileSynced);
        }

        let received = Received {
            size_bytes: self.size_bytes,
            sha256: Sha256(self.hasher.finalize().into()),
            head: self.head,
        };
        Ok(received.named(self.name))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sha2::Sha256 as Hasher;

    use super::super::staging::turn::{LARGE_BLOCK_BYTES, SMALL_BLOCK_BYTES};
    use super::*;
    use crate::domain::time::clock::{Clock, ManualClock, Timestamp};
    use crate::storage::contract::content;
    use crate::storage::{DataDir, LocalOptions, LocalStore};

    struct Home {
        _dir: tempfile::TempDir,
        store: LocalStore,
        clock: ManualClock,
    }

    impl Home {
        /// A store with so many turns, whose time stands still.
        fn with_turns(concurrent_uploads: usize) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let clock = ManualClock::at(Timestamp::from_millis(0));
            let options = LocalOptions {
                durability: Durability::Process,
                reserve_bytes: 0,
                concurrent_uploads,
                memory_bytes: 0,
                open_files: 0,
            };
            let data_dir = DataDir::open(dir.path()).unwrap();
            let store = LocalStore::open_with(&data_dir, options, &clock.clock()).unwrap();
            Self { _dir: dir, store, clock }
        }

        async fn stage(&self) -> StagingWriter {
            let id = BlobId::generate(Clock::system().now());
            self.store.stage(id, u64::MAX).await.unwrap()
        }

        fn free_turns(&self) -> usize {
            self.store.shared.turns.free()
        }
    }

    /// Tells whether the file of the upload stays open between two writes.
    async fn holds_its_file(writer: &mut StagingWriter) -> bool {
        let (file, spare) = writer.settle().await.unwrap();
        let file = file.expect("a block was written").take();
        let is_open = file.file.is_some();

        let (done, written) = oneshot::channel();
        done.send(Ok((DropOnPool::new(file), spare))).ok().unwrap();
        writer.sink = Sink::Writing(written);
        is_open
    }

    #[tokio::test]
    async fn a_buffer_grows_with_the_upload_and_no_further_than_a_block() {
        let home = Home::with_turns(1);
        let mut writer = home.stage().await;
        assert_eq!(writer.filling.capacity(), 0, "an idle upload holds no buffer");
        writer.write(Bytes::from_static(&[7; 1000])).await.unwrap();
        assert!(writer.filling.capacity() < 8192);
        assert_eq!(home.free_turns(), 1, "a few bytes take no turn");

        for _ in 0..300 {
            writer.write(Bytes::from_static(&[7; 10_000])).await.unwrap();
            assert!(writer.filling.capacity() <= LARGE_BLOCK_BYTES);
        }
        assert_eq!(home.free_turns(), 0);
        assert!(holds_its_file(&mut writer).await);
        assert_eq!(writer.finish().await.unwrap().size_bytes, 3_001_000);
        assert_eq!(home.free_turns(), 1, "a batch could wait for itself otherwise");
    }

    #[tokio::test]
    async fn an_upload_that_trickles_takes_no_turn_and_holds_little() {
        let home = Home::with_turns(1);
        let mut writer = home.stage().await;
        for _ in 0..100 {
            home.clock.advance(Duration::from_secs(1));
            writer.write(Bytes::from_static(&[7; 1127])).await.unwrap();
            assert!(writer.filling.capacity() <= SMALL_BLOCK_BYTES);
            assert_eq!(home.free_turns(), 1);
        }
        assert!(!holds_its_file(&mut writer).await);
        assert_eq!(writer.finish().await.unwrap().size_bytes, 112_700);
    }

    #[tokio::test]
    async fn an_upload_that_slows_down_gives_its_turn_back_and_may_earn_it_again() {
        let home = Home::with_turns(1);
        let mut writer = home.stage().await;
        let burst = || Bytes::from(vec![7; 100_000]);
        writer.write(burst()).await.unwrap();
        assert_eq!(home.free_turns(), 0);

        home.clock.advance(Duration::from_secs(29));
        writer.write(Bytes::from_static(b"7")).await.unwrap();
        assert_eq!(home.free_turns(), 1);
        assert!(!holds_its_file(&mut writer).await);
        assert!(writer.filling.capacity() <= SMALL_BLOCK_BYTES, "the large buffer is gone");

        writer.write(burst()).await.unwrap();
        assert_eq!(home.free_turns(), 0);
        assert_eq!(writer.finish().await.unwrap().size_bytes, 200_001);
    }

    #[tokio::test]
    async fn where_no_turn_is_free_an_upload_goes_on_in_small_blocks() {
        let home = Home::with_turns(1);
        let mut first = home.stage().await;
        first.write(Bytes::from(vec![0; 300_000])).await.unwrap();

        let bytes = Bytes::from(content(1_000_000));
        let mut second = home.stage().await;
        for chunk in 0..10 {
            second.write(bytes.slice(chunk * 100_000..(chunk + 1) * 100_000)).await.unwrap();
            assert!(second.filling.capacity() <= SMALL_BLOCK_BYTES);
        }
        assert!(!holds_its_file(&mut second).await);
        let staged = second.finish().await.unwrap();
        assert_eq!(staged.sha256.0, <[u8; 32]>::from(Hasher::digest(&bytes)));
        let mut read = Vec::new();
        std::io::Read::read_to_end(&mut staged.open().unwrap(), &mut read).unwrap();
        assert!(read == bytes, "the blocks follow one another in the file");
    }
}
