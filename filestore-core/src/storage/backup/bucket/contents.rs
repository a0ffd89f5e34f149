//! Finds, stores and reads contents at a provider.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::names::{ContentName, DAMAGED, shard};
use super::{BackupBucket, Run};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::report::backup::BlobProblem;
use crate::storage::backup::blocking;
use crate::storage::backup::content::{OnDisk, Stored, Wanted};
use crate::storage::backup::copy::Copying;
use crate::storage::backup::files::{BACKING_UP, READING};
use crate::storage::backup::opened::{Opened, pieces};
use crate::storage::backup::restored::RestoredDirectory;
use crate::storage::{ByteStream, LocalStore};
use crate::tasks::step::{Step, reached};

/// The number of contents in a batch that are processed in parallel.
const AT_ONCE: usize = 4;

/// The number of cached listings. Contents arrive in the order of their digests, several batches at once.
const SHARDS_KEPT: usize = 16;

/// The listings of content directories. Each is made once while it is needed.
#[derive(Default)]
pub(super) struct Shards(Mutex<VecDeque<(u8, Listing)>>);

type Listing = Arc<OnceCell<Vec<Listed>>>;

/// A content in a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) name: ContentName,
    pub(super) size_bytes: u64,
}

impl Shards {
    fn of(&self, first: u8) -> Listing {
        let mut kept = self.0.lock();
        if let Some((_, listing)) = kept.iter().find(|(of, _)| *of == first) {
            return Arc::clone(listing);
        }
        if kept.len() == SHARDS_KEPT {
            kept.pop_front();
        }
        let listing = Listing::default();
        kept.push_back((first, Arc::clone(&listing)));
        listing
    }
}

/// Runs `work` on each element of a batch, several in parallel. Results have the batch's order.
pub(super) async fn each<T, U, F>(batch: Vec<T>, work: impl FnMut(T) -> F + Send) -> Result<Vec<U>>
where
    T: Send,
    U: Send,
    F: Future<Output = Result<U>> + Send,
{
    stream::iter(batch.into_iter().map(work)).buffered(AT_ONCE).try_collect().await
}

impl BackupBucket {
    /// Lists the contents with this first byte of the digest, in order.
    pub(super) async fn list_shard(&self, first: u8) -> Result<Vec<Listed>> {
        let listed = self.cloud.list_objects(&shard(first)).await?;
        let named = listed.into_iter().filter_map(|object| {
            let name = ContentName::parse(&object.name)?;
            Some(Listed { name, size_bytes: object.size_bytes })
        });
        Ok(named.collect())
    }

    /// Returns the contents that are marked as damaged.
    pub(super) async fn damaged<'a>(
        &self,
        run: &'a Run,
    ) -> Result<&'a Mutex<HashSet<ContentName>>> {
        run.damaged
            .get_or_try_init(|| async {
                let listed = self.cloud.list_objects(DAMAGED).await?;
                let names = listed.iter().filter_map(|object| ContentName::parse(&object.name));
                Ok(Mutex::new(names.collect()))
            })
            .await
    }

    /// Lists the valid contents with this digest.
    async fn all_of(&self, run: &Run, sha256: [u8; 32]) -> Result<Vec<Listed>> {
        let listing = run.shards.of(sha256[0]);
        let listed = listing.get_or_try_init(|| self.list_shard(sha256[0])).await?;
        let from = listed.partition_point(|listed| listed.name.sha256 < sha256);
        let alike = listed[from..].iter().take_while(|listed| listed.name.sha256 == sha256);

        let damaged = self.damaged(run).await?.lock();
        Ok(alike.filter(|listed| !damaged.contains(&listed.name)).copied().collect())
    }

    /// Looks for a valid content. If the newest finished snapshot names it, compares only its size. Otherwise
    /// reads it now.
    pub(super) async fn find_one(&self, run: &Run, wanted: Wanted) -> Result<Option<Stored>> {
        let expected = wanted.expected;
        let mut alike = self.all_of(run, expected.sha256.0).await?;
        alike.retain(|listed| listed.size_bytes == expected.size_bytes);

        let vouched = wanted.vouched.and_then(ContentName::of);
        if alike.iter().any(|listed| Some(listed.name) == vouched) {
            return Ok(wanted.vouched);
        }
        let may_adopt = run.lease.as_ref().is_some_and(|lease| lease.may_adopt);
        for Listed { name, .. } in alike.into_iter().filter(|_| may_adopt) {
            let Some(opened) = self.open_named(name).await? else { continue };
            if opened.digest().await? == expected {
                return Ok(Some(Stored { expected, by: Some(name.by) }));
            }
        }
        Ok(None)
    }

    /// Takes a content from the first of its keys that exists.
    pub(super) async fn take_file(
        &self,
        run: &Run,
        local: &LocalStore,
        wanted: OnDisk,
    ) -> Result<Result<Stored, BlobProblem>> {
        let mut problem = BlobProblem::Missing;
        for key in wanted.keys {
            let local = local.clone();
            let file = blocking(BACKING_UP, move || local.open_file(&key)).await?;
            problem = match file {
                None => BlobProblem::Missing,
                Some(file) => {
                    let bytes = readable(pieces(file), wanted.expected);
                    match self.put_content(run, wanted.expected, bytes).await? {
                        Some(stored) => return Ok(Ok(stored)),
                        None => BlobProblem::Wrong,
                    }
                }
            };
        }
        Ok(Err(problem))
    }

    /// Stores a content under this run's name. `None` if the bytes do not match.
    pub(super) async fn put_content(
        &self,
        run: &Run,
        expected: Copying,
        bytes: ByteStream,
    ) -> Result<Option<Stored>> {
        let name = ContentName::new(expected.sha256, run.id).object();
        let Copying { size_bytes, sha256 } = expected;
        match self.cloud.put_object(&name, size_bytes, sha256, bytes).await {
            Ok(()) => {
                reached(Step::ContentTaken);
                Ok(Some(Stored { expected, by: Some(run.id) }))
            }
            Err(error) if error.kind() == ErrorKind::DigestMismatch => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the content that the snapshot names. If this content is missing or damaged, opens the same
    /// content from another run.
    pub(super) async fn open_content(&self, run: &Run, content: Stored) -> Result<Option<Opened>> {
        if let Some(name) = ContentName::of(content) {
            let is_damaged = self.damaged(run).await?.lock().contains(&name);
            if !is_damaged && let Some(opened) = self.open_named(name).await? {
                return Ok(Some(opened));
            }
        }
        let others = self.all_of(run, content.expected.sha256.0).await?;
        match others.first() {
            Some(other) => self.open_named(other.name).await,
            None => Ok(None),
        }
    }

    /// Returns the name of the object that [`open_content`](Self::open_content) opens.
    pub(super) async fn name_of(&self, run: &Run, content: Stored) -> Result<Option<ContentName>> {
        if let Some(name) = ContentName::of(content) {
            let is_damaged = self.damaged(run).await?.lock().contains(&name);
            if !is_damaged && self.cloud.object_size(&name.object()).await?.is_some() {
                return Ok(Some(name));
            }
        }
        let others = self.all_of(run, content.expected.sha256.0).await?;
        Ok(others.first().map(|other| other.name))
    }

    /// Opens an object with its actual size, so that a truncated object is detected.
    pub(super) async fn open_named(&self, name: ContentName) -> Result<Option<Opened>> {
        let object = name.object();
        let Some(size_bytes) = self.cloud.object_size(&object).await? else { return Ok(None) };
        Ok(self.cloud.read_object(&object, size_bytes).await?.map(Opened::Stream))
    }

    /// Restores one blob.
    pub(super) async fn restore_one(
        &self,
        to: &Arc<RestoredDirectory>,
        key: BlobKey,
        content: Stored,
    ) -> Result<Option<bool>> {
        use super::Destination;

        let (target, at, expected) = (Arc::clone(to), key.clone(), content.expected);
        if blocking(READING, move || Ok(target.has(&at, expected))).await? {
            return Ok(Some(true));
        }
        let Some(opened) = self.open(content).await? else { return Ok(None) };

        let (target, at) = (Arc::clone(to), key.clone());
        let file = blocking(READING, move || target.make_blob(&at)).await?;
        let synced = file.try_clone().map_err(|error| Error::io(READING, error))?;
        let is_whole = opened.copy_to(file).await? == expected;
        let target = Arc::clone(to);
        blocking(READING, move || {
            if !is_whole {
                return target.discard_blob(&key);
            }
            let flushed = if cfg!(target_os = "linux") { Ok(()) } else { synced.sync_all() };
            flushed.map_err(|error| Error::io(READING, error))
        })
        .await?;
        Ok(Some(is_whole))
    }
}

/// Treats a file that cannot be read to its end as a file with wrong bytes.
fn readable(bytes: ByteStream, expected: Copying) -> ByteStream {
    let unreadable = move |error: Error| {
        tracing::error!(error = %error.chain(), sha256 = %expected.sha256, "a file cannot be read into a snapshot");
        Error::new(ErrorKind::DigestMismatch, "the file cannot be read").with_source(error)
    };
    bytes.map_err(unreadable).boxed()
}
