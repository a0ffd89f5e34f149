//! Staged blobs: whole and durable, and named by no record yet.
//!
//! # Crash safety
//! The file is unlinked when the value that stands for it is dropped, unless a commit that may name
//! it was about to be attempted. What a crash leaves, the next start looks up and keeps or unlinks.

use std::fmt;
use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

use super::Shared;
use super::ledger::StagedShare;
use super::pool::{self, DropOnPool, DropsFiles};
use super::staging::STAGING;
use crate::domain::error::{Error, Result};
use crate::domain::id::{BlobId, OrganizationId, Sha256};
#[cfg(feature = "sabotage")]
use crate::tasks;
use crate::tasks::step::{Call, Step, attempt, reached};

/// Facts about a blob's bytes, learned while they passed.
pub(super) struct Received {
    pub(super) size_bytes: u64,
    pub(super) sha256: Sha256,
    pub(super) head: Bytes,
}

impl Received {
    /// Joins the facts to the file that has the bytes.
    pub(super) fn named(self, name: StagedName) -> StagedBlob {
        StagedBlob {
            blob_id: name.blob_id,
            size_bytes: self.size_bytes,
            sha256: self.sha256,
            head: self.head,
            name: Some(DropOnPool::new(name)),
            share: None,
        }
    }
}

/// A file in `staging/`, unlinked when this is dropped.
pub(super) struct StagedName {
    shared: Arc<Shared>,
    blob_id: BlobId,
    is_kept: bool,
}

impl StagedName {
    /// Creates the file: mode 0600, and only where nothing has that name, not even a symbolic link.
    pub(super) fn create(shared: &Arc<Shared>, blob_id: BlobId) -> Result<(Self, File)> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        attempt(Call::Open).map_err(|error| Error::io(STAGING, error.into()))?;
        let file = openat(&shared.staging, blob_id.to_string(), flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| Error::io(STAGING, error.into()))?;
        reached(Step::StagedFileMade);
        Ok((Self { shared: Arc::clone(shared), blob_id, is_kept: false }, file.into()))
    }

    /// Opens the file again, to write at its end.
    pub(super) fn open_to_append(&self) -> Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.shared.staging, self.blob_id.to_string(), flags, Mode::empty())
            .map(File::from)
            .map_err(|error| Error::io(STAGING, error.into()))
    }
}

impl DropsFiles for StagedName {
    fn drops_files(&self) -> bool {
        !self.is_kept
    }
}

impl Drop for StagedName {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }

        let name = self.blob_id.to_string();
        if let Err(error) = unlinkat(&self.shared.staging, name, AtFlags::empty()) {
            tracing::warn!(blob_id = %self.blob_id, %error, "a staged file stays until the next start");
        }
    }
}

/// A whole blob, durable under its staged name, that no record names yet. Dropping it unlinks the
/// file unless [`keep`](Self::keep) was called.
pub struct StagedBlob {
    /// Id of the blob, which is also the staged name.
    pub blob_id: BlobId,
    /// Length in bytes.
    pub size_bytes: u64,
    /// Digest of the bytes.
    pub sha256: Sha256,
    /// First [`SNIFF_BYTES`](crate::domain::media::SNIFF_BYTES) bytes, or all of a shorter blob. Not needed after sniffing: a batch
    /// saves memory by dropping them then.
    pub head: Bytes,
    name: Option<DropOnPool<StagedName>>,
    /// The blob's share of the room for staged bytes, if it is counted.
    pub(super) share: Option<StagedShare>,
}

impl fmt::Debug for StagedBlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blob_id, size_bytes, sha256, .. } = self;
        f.debug_struct("StagedBlob")
            .field("blob_id", blob_id)
            .field("size_bytes", size_bytes)
            .field("sha256", sha256)
            .finish_non_exhaustive()
    }
}

impl StagedBlob {
    /// Opens the bytes for reading. Blocks.
    pub fn open(&self) -> Result<File> {
        self.opener()()
    }

    /// Returns what opens the bytes for reading, to be called where blocking is allowed.
    pub(crate) fn opener(&self) -> impl FnOnce() -> Result<File> + Send + 'static {
        let name = self.name.as_ref().expect("a blob has its name until it is kept").get();
        let (shared, blob_id) = (Arc::clone(&name.shared), self.blob_id);
        move || {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(&shared.staging, blob_id.to_string(), flags, Mode::empty())
                .map(File::from)
                .map_err(|error| Error::io("opening a staged blob", error.into()))
        }
    }

    /// Counts the bytes as those of `organization`, if they are counted and not its yet.
    /// [`ErrorKind::Busy`] if the organization has as many staged as it may.
    pub(crate) fn belong_to(&mut self, organization: &OrganizationId) -> Result<()> {
        self.share.as_mut().map_or(Ok(()), |share| share.belong_to(organization))
    }

    /// Makes the file outlive this value until [`release`](Self::release) is called: a commit that may
    /// name the blob is about to be attempted.
    pub(crate) fn hold(&mut self) {
        self.set_kept(true);
    }

    /// Takes [`hold`](Self::hold) back: nothing was committed that names the blob.
    pub(crate) fn release(&mut self) {
        self.set_kept(false);
    }

    fn set_kept(&mut self, is_kept: bool) {
        if let Some(name) = &mut self.name {
            #[cfg(feature = "sabotage")]
            if is_kept {
                tasks::sabotage::withhold(&self.blob_id.to_string(), &name.get().shared.staging);
            }
            name.get_mut().is_kept = is_kept;
        }
    }

    /// Leaves the file where it is.
    ///
    /// Call this *before* attempting a commit that names the blob, and
    /// [`discard_staged`](super::LocalStore::discard_staged) when the commit is known to have
    /// failed. The other way round, a caller that is cancelled in the middle of a commit would take
    /// the bytes away from a record that stands.
    pub fn keep(self) -> BlobId {
        let blob_id = self.blob_id;
        if let Some(mut name) = self.into_name() {
            name.is_kept = true;
        }
        blob_id
    }

    /// Unlinks the file before this returns. Dropping the value unlinks the file a little later.
    pub(super) async fn discard(self) {
        let unlinked = pool::run(STAGING, move || {
            drop(self.into_name());
            Ok(())
        });
        if let Err(lost) = unlinked.await {
            tracing::warn!(error = %lost.chain(), "a staged file stays until the next start");
        }
    }

    /// Keeps the name alone, whose drop unlinks the file on this thread.
    fn into_name(self) -> Option<StagedName> {
        self.name.map(DropOnPool::take)
    }
}
