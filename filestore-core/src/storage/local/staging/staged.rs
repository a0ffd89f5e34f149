//! Staged blobs: complete and durable, but not named by a record yet.
//!
//! # Crash safety
//! The file is unlinked when its value is dropped, unless a commit that names it may be in progress. After a
//! crash, the next start looks up each staged file, and keeps or unlinks it.

use std::fmt;
use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

use super::STAGING;
use super::ledger::StagedShare;
use crate::domain::error::{Error, Result};
use crate::domain::id::{BlobId, OrganizationId, Sha256};
use crate::domain::report::erasure::Era;
use crate::storage::local::Shared;
use crate::storage::local::pool;
use crate::storage::local::pool::{DropOnPool, DropsFiles};
#[cfg(feature = "sabotage")]
use crate::tasks;
use crate::tasks::step::{Call, Step, attempt, reached};

/// Facts about a blob's bytes, computed while they arrived.
pub(super) struct Received {
    pub(in crate::storage::local) size_bytes: u64,
    pub(in crate::storage::local) sha256: Sha256,
    pub(in crate::storage::local) head: Bytes,
}

impl Received {
    /// Combines the facts with the file.
    pub(in crate::storage::local) fn named(self, name: StagedName) -> StagedBlob {
        StagedBlob {
            blob_id: name.blob_id,
            size_bytes: self.size_bytes,
            sha256: self.sha256,
            head: self.head,
            name: Some(DropOnPool::new(name)),
            share: None,
            era: Era::default(),
        }
    }
}

/// A file in `staging/`. Dropping the value unlinks it.
pub(in crate::storage::local) struct StagedName {
    shared: Arc<Shared>,
    blob_id: BlobId,
    is_kept: bool,
    /// True if a row of the database owns the file: then no drop unlinks it.
    is_owned: bool,
}

impl StagedName {
    /// Names a file that a row of the database owns.
    pub(super) fn owned_elsewhere(shared: &Arc<Shared>, blob_id: BlobId) -> Self {
        Self { shared: Arc::clone(shared), blob_id, is_kept: true, is_owned: true }
    }

    /// Leaves the file to a row of the database.
    pub(super) fn leave(&mut self) {
        (self.is_kept, self.is_owned) = (true, true);
    }

    /// Creates the file with mode 0600. Fails if the name exists, even as a symbolic link.
    pub(in crate::storage::local) fn create(
        shared: &Arc<Shared>,
        blob_id: BlobId,
    ) -> Result<(Self, File)> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        attempt(Call::Open).map_err(|error| Error::io(STAGING, error.into()))?;
        let file = openat(&shared.staging, blob_id.to_string(), flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| Error::io(STAGING, error.into()))?;
        reached(Step::StagedFileMade);
        Ok((
            Self { shared: Arc::clone(shared), blob_id, is_kept: false, is_owned: false },
            file.into(),
        ))
    }

    /// Opens the file again, for writing at its end.
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

/// A complete blob, durable under its staged name, that no record names yet. Dropping it unlinks the file
/// unless [`keep`](Self::keep) was called.
pub struct StagedBlob {
    /// The blob's id, which is also its staged name.
    pub blob_id: BlobId,
    /// The length in bytes.
    pub size_bytes: u64,
    /// The digest of the bytes.
    pub sha256: Sha256,
    /// The first [`SNIFF_BYTES`](crate::domain::file::media::SNIFF_BYTES) bytes, or all bytes of a shorter
    /// blob. Not needed after type detection: a batch then drops them to save memory.
    pub head: Bytes,
    name: Option<DropOnPool<StagedName>>,
    /// The blob's share of the limit for staged bytes, if it is counted.
    pub(in crate::storage::local) share: Option<StagedShare>,
    /// The era in which the bytes began to arrive.
    pub(crate) era: Era,
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

    /// Returns a function that opens the bytes for reading. Call it where blocking is allowed.
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

    /// Assigns the bytes to `organization`, if they are counted and not assigned yet. [`ErrorKind::Busy`] if
    /// this exceeds the organization's limit.
    pub(crate) fn belong_to(&mut self, organization: &OrganizationId) -> Result<()> {
        self.share.as_mut().map_or(Ok(()), |share| share.belong_to(organization))
    }

    /// Makes the file outlive this value until [`release`](Self::release). Call it before a commit that can
    /// name the blob.
    pub(crate) fn lend(&mut self) {
        self.set_kept(true);
    }

    /// Undoes [`lend`](Self::lend), because no commit named the blob.
    pub(crate) fn release(&mut self) {
        self.set_kept(false);
    }

    /// Tests whether a row of the database owns the file, and not the request that has this value.
    pub(crate) fn is_owned_elsewhere(&self) -> bool {
        self.name.as_ref().is_some_and(|name| name.get().is_owned)
    }

    fn set_kept(&mut self, is_kept: bool) {
        if let Some(name) = &mut self.name {
            #[cfg(feature = "sabotage")]
            if is_kept {
                tasks::sabotage::withhold(&self.blob_id.to_string(), &name.get().shared.staging);
            }
            let name = name.get_mut();
            name.is_kept = is_kept || name.is_owned;
        }
    }

    /// Leaves the file in place.
    ///
    /// Call this *before* attempting a commit that names the blob. If the commit is known to have failed,
    /// call [`discard_staged`](crate::storage::local::LocalStore::discard_staged). In the reverse order, a
    /// caller that is cancelled during a commit would remove the bytes of a valid record.
    pub fn keep(self) -> BlobId {
        let blob_id = self.blob_id;
        if let Some(mut name) = self.into_name() {
            name.is_kept = true;
        }
        blob_id
    }

    /// Unlinks the file before this returns. Dropping the value unlinks it a little later.
    pub(in crate::storage::local) async fn discard(self) {
        let unlinked = pool::run(STAGING, move || {
            drop(self.into_name());
            Ok(())
        });
        if let Err(lost) = unlinked.await {
            tracing::warn!(error = %lost.chain(), "a staged file stays until the next start");
        }
    }

    /// Returns the name alone. Dropping it unlinks the file on this thread.
    fn into_name(self) -> Option<StagedName> {
        self.name.map(DropOnPool::take)
    }
}
