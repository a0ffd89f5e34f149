//! Staging: receiving a blob durably before any record names it.
//!
//! Chunks gather in a buffer; a full one is written and hashed on the blocking pool while the next
//! one fills. The size of a buffer, and whether the file stays open between two of them, depend on the
//! pace of the upload (`turn`). An upload that fits in one buffer touches the disk in a single visit to the pool, at
//! [`StagingWriter::finish`]: create, write, hash, fsync, and its part in the directory's fsync.
//!
//! # Crash safety
//! A file is unlinked when the value that stands for it is dropped, so an upload that fails or is
//! cancelled leaves nothing. A crash leaves a staged file that no record names; the next start
//! unlinks that file.

use std::fs::File;
use std::io::Write;
use std::mem;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use sha2::Digest;
use tokio::sync::oneshot;

use super::Shared;
use super::durable::sync;
use super::group_sync::Lead;
use super::ledger::StagedShare;
use super::pool::{DropOnPool, DropsFiles};
use super::staged::{Received, StagedBlob, StagedName};
use super::turn::Pace;
use crate::domain::config::Durability;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{BlobId, Sha256};
use crate::domain::media::SNIFF_BYTES;
use crate::tasks;
use crate::tasks::step::{Call, Step, attempt, reached};

/// Bytes of a large upload that may wait in the page cache before their write-back is started, so
/// that the fsync at the end finds little left to do (at 256 MiB: 10 ms instead of 90).
#[cfg(target_os = "linux")]
const WRITE_BACK_BYTES: u64 = 8 << 20;

/// An upload that is being received. Holds at most two buffers of 256 KiB; a slow one, one of 16 KiB.
pub struct StagingWriter {
    shared: Arc<Shared>,
    blob_id: BlobId,
    max_bytes: u64,
    size_bytes: u64,
    filling: Vec<u8>,
    sink: Sink,
    /// The upload's share of the room for staged bytes, if it is counted.
    share: Option<StagedShare>,
    /// Pace of the bytes, and the turn that goes with a fast one. The finished blob does not need one.
    pace: Pace,
}

/// State of the file that full buffers go to.
enum Sink {
    /// No buffer was full yet, so there is no file.
    Unopened,
    /// The pool writes a buffer, and will send back the file, and the buffer to be used again.
    Writing(oneshot::Receiver<Result<(DropOnPool<Receiving>, Vec<u8>)>>),
    /// A write failed, or the wait for one was cancelled.
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
        }
    }

    /// Counts the upload's bytes in `share`, from the first one until the finished blob is dropped or
    /// kept.
    #[must_use]
    pub(crate) fn counted_in(mut self, share: StagedShare) -> Self {
        self.share = Some(share);
        self
    }

    /// Returns how many bytes were taken so far.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Takes `chunk`. Waits only if two buffers are full.
    ///
    /// [`ErrorKind::TooLarge`] (field `file`) once there are more bytes than allowed,
    /// [`ErrorKind::Busy`] while as many bytes are staged as may be, [`ErrorKind::StorageFull`] when
    /// the disk is. After an error, or after a call whose future
    /// was dropped unfinished, the upload cannot go on: drop it.
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

    /// Doubles the buffer up to the size of a block, so that an upload that has only just begun costs
    /// little.
    fn make_room(&mut self, part: usize, block: usize) {
        let needed = self.filling.len() + part;
        if needed > self.filling.capacity() {
            let capacity = needed.max(self.filling.capacity() * 2).min(block);
            self.filling.reserve_exact(capacity - self.filling.len());
        }
    }

    /// Counts the bytes that are about to be written.
    fn count(&mut self) -> Result<()> {
        let bytes = self.filling.len() as u64;
        self.share.as_mut().map_or(Ok(()), |share| share.grow(bytes))
    }

    /// Gives the full buffer to the pool, once the one before is written.
    async fn hand_over(&mut self) -> Result<()> {
        self.count()?;
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

    /// Waits for the buffer that is being written; returns the file, if there is one, and that
    /// buffer.
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

    /// Makes the blob durable under its staged name. On failure the file is gone.
    ///
    /// File and directory are synced at the same time, the directory together with other uploads
    /// that wait for it. The name exists since the file was created, so neither fsync has to wait
    /// for the other.
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

/// Joins the fsync of the staging directory. Returns at once: the fsync runs beside the caller's
/// own.
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

/// The duty to lead the fsyncs of the staging directory. A runtime that ends drops it undone; then the
/// next upload leads, on whatever runtime it is.
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

/// A staged file being written, on the blocking pool or on the way there.
struct Receiving {
    shared: Arc<Shared>,
    name: StagedName,
    /// The open file; `None` between two blocks of an upload without a turn.
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
    /// Takes the file over, or creates one for the first bytes.
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

    /// Writes and hashes a block. Looks at the free space first: space that was freed for a delete
    /// is not for uploads that were under way.
    fn append(&mut self, block: &[u8]) -> Result<()> {
        self.shared.space.look()?;
        attempt(Call::Write).map_err(|error| Error::io(STAGING, error.into()))?;
        self.file()?.write_all(block).map_err(|error| Error::io(STAGING, error))?;
        reached(Step::StagedBlockWritten);
        self.hasher.update(block);

        if self.size_bytes == 0 {
            self.head = Bytes::copy_from_slice(&block[..block.len().min(SNIFF_BYTES)]);
        }
        self.size_bytes += block.len() as u64;
        Ok(())
    }

    /// Returns the file, opened again if it was put down. Writes go to its end.
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

    /// Starts writing dirty pages back, without waiting for it. Linux does so on
    /// `POSIX_FADV_DONTNEED`, which drops clean pages only and so nothing of what was just written.
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

    /// Syncs the file. A failure is final: the kernel may have dropped the pages it could not
    /// write.
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

    use super::super::turn::{LARGE_BLOCK_BYTES, SMALL_BLOCK_BYTES};
    use super::*;
    use crate::domain::clock::{Clock, ManualClock, Timestamp};
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
