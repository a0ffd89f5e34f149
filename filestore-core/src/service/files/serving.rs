//! The single steps of a read, for a program that serves files itself.

use std::ops::Range;
use std::sync::Arc;

use super::Files;
use super::read::Opened;
use super::variant;
use crate::domain::error::{Error, Result};
use crate::domain::file::disposition::Disposition;
use crate::domain::file::record::FileRecord;
use crate::domain::file::serving;
use crate::domain::file::status::Location;
use crate::domain::id::FileId;
use crate::domain::time::clock::Timestamp;
use crate::service::spans;
use crate::storage::{PresignMethod, PresignRequest, SendFile};
use crate::variant::{Fit, Motion, Variant, VariantKey, VariantSize};

/// The single steps of a read, for a program that serves files itself, for example over HTTP; from
/// [`FileStore::serving`](crate::FileStore::serving).
///
/// First look up the record with [`with_record`](Self::with_record). This call repeats the other steps if the
/// file changes in the meantime. Calls that take a record do not check its organization again.
///
/// ```no_run
/// use filestore_core::{Error, FileId, FileStore, Opened, Scope};
///
/// # async fn example(store: &FileStore, id: FileId, scope: &Scope) -> filestore_core::Result<()> {
/// let serving = store.serving(scope);
/// let opened = serving.with_record(id, |record| async move {
///     // Answer a conditional request here, from `record.blob.sha256`, before any byte is read.
///     match serving.open(&record, 0..record.blob.size_bytes).await? {
///         Opened::Changed => Ok::<_, Error>(None),
///         opened => Ok(Some(opened)),
///     }
/// });
/// if let Opened::Small(bytes) = opened.await? {
///     println!("{} bytes in memory", bytes.len());
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a handle does nothing until you call a method"]
#[derive(Debug, Clone, Copy)]
pub struct ServedFiles<'a> {
    files: Files<'a>,
}

impl<'a> ServedFiles<'a> {
    /// Returns the read steps for `files`.
    pub(in crate::service) fn of(files: Files<'a>) -> Self {
        Self { files }
    }
}

impl ServedFiles<'_> {
    /// Returns the current time of the store's clock.
    pub fn now(self) -> Timestamp {
        self.files.store.now()
    }

    /// Looks up a live file and calls `attempt` with its record. If the record changed, `attempt` returns
    /// `None`, and the call starts over. `Conflict` if the record keeps changing.
    pub async fn with_record<T, E, F>(
        self,
        id: FileId,
        attempt: impl Fn(Arc<FileRecord>) -> F,
    ) -> Result<T, E>
    where
        E: From<Error>,
        F: Future<Output = Result<Option<T>, E>>,
    {
        self.files.with_record(id, attempt).await
    }

    /// Opens the bytes of `record` in `range`. If the result is [`Opened::Changed`], the record has changed,
    /// and you must look up the file again.
    ///
    /// Returns `Internal` if the bytes are missing although the record exists. Returns `ProviderUnavailable`
    /// if the provider does not return the bytes.
    pub async fn open(self, record: &FileRecord, range: Range<u64>) -> Result<Opened> {
        self.files.store.inner.open_range(record, range).await
    }

    /// Opens all bytes of `record` as an open file if they are on the local disk. Use this call if you need a
    /// file, for example for a decoder. Never returns [`Opened::Small`]. Errors as for [`open`](Self::open).
    pub async fn open_whole(self, record: &FileRecord) -> Result<Opened> {
        self.files.store.inner.open_whole(record).await
    }

    /// Returns the bytes of `record` in `range`, for the kernel to send to a socket. `None` if they are not
    /// on the local disk, or if their file is neither open nor can be opened at once: call
    /// [`open`](Self::open).
    pub fn send_file(self, record: &FileRecord, range: Range<u64>) -> Option<SendFile> {
        let blob = &record.blob;
        let disk = self.files.store.inner.stores.disk(&blob.provider)?;
        disk.send_file(&blob.key, blob.size_bytes, range)
    }

    /// Returns a presigned URL to the bytes of `record`, for a request with `method`. `None` if the provider
    /// cannot create a URL with exactly this right. In that case, send the bytes yourself.
    /// `ProviderUnavailable` if the provider is not configured.
    pub async fn redirect(
        self,
        record: &FileRecord,
        method: PresignMethod,
        requested: Option<Disposition>,
    ) -> Result<Option<String>> {
        if record.state.location() == Location::Local {
            return Ok(None);
        }

        let blob = &record.blob;
        let store = self.files.store;
        let cloud = store.providers().cloud(&blob.provider)?.clone();

        let how = serving::decide(&record.mime_type, blob.sniffed_type.as_deref(), requested);
        let stored = serving::decide(&record.mime_type, blob.sniffed_type.as_deref(), None);

        let can = cloud.capabilities();
        // An object keeps the name and type that its file had when the object was made.
        let key_made_at = blob.key.blob_id().made_at();
        let is_current = record.edited_at.is_none_or(|at| at < key_made_at);
        let is_stored = can.stores_disposition
            && how == stored
            && is_current
            && how.is_of_every_version(&record.mime_type);
        let disposition = how.disposition.to_value(&record.original_name);
        let request = PresignRequest {
            method,
            expires_in: store.inner.config().presign_ttl,
            content_type: &how.content_type,
            // A URL need not repeat the headers that the object was stored with. If the URL must set them and
            // the provider does not allow it, the bytes are streamed.
            disposition: (can.overrides_disposition || !is_stored).then_some(&*disposition),
        };

        Ok(cloud.presign(&blob.key, &request).await?.map(|presigned| presigned.url))
    }

    /// Returns the key of a variant of `record`. The variant's entity tag is made from the key. For a file
    /// that cannot be animated, this is the key of the still variant.
    pub fn variant_key(
        self,
        record: &FileRecord,
        size: VariantSize,
        fit: Fit,
        motion: Motion,
    ) -> VariantKey {
        variant::key_of(record, size, fit, motion)
    }

    /// Returns `InvalidField` for an animated variant if animated variants are switched off.
    pub fn expect_motion(self, motion: Motion) -> Result<()> {
        self.files.store.inner.expect_motion(motion)
    }

    /// Returns true if the file is an image, or if a converter accepts its type.
    pub fn may_have_variants(self, record: &FileRecord) -> bool {
        let sniffed = record.blob.sniffed_type.as_deref();
        sniffed.is_some_and(|mime| mime.starts_with("image/"))
            || self.files.store.inner.pictures.converter_of(record).is_some()
    }

    /// Returns a variant from memory. On `None`, call [`variant_of`](Self::variant_of).
    pub fn cached_variant(self, key: &VariantKey) -> Option<Variant> {
        self.files.store.inner.pictures.engine.cached(key)
    }

    /// Returns a variant for the kernel to send to a socket, if the variant is in memory and requested often.
    /// On `None`, call [`cached_variant`](Self::cached_variant).
    pub fn send_variant(self, key: &VariantKey) -> Option<SendFile> {
        let (file, length) = self.files.store.inner.pictures.engine.cached_file(key)?;
        Some(SendFile::of_memory(file, length))
    }

    /// Returns the variant of `record`, from the cache or made now. If the result is
    /// [`Variant::PassThrough`], read the original.
    ///
    /// Returns `NotAnImage`, `CorruptImage` or `ImageTooLarge` for files without variants. Returns `Busy` if
    /// the queue is full, and `NotFound` if the file was deleted in the meantime. Returns `InvalidField` like
    /// [`expect_motion`](Self::expect_motion).
    pub async fn variant_of(
        self,
        record: &Arc<FileRecord>,
        size: VariantSize,
        fit: Fit,
        motion: Motion,
    ) -> Result<Variant> {
        self.expect_motion(motion)?;
        let store = self.files.store;
        let key = self.variant_key(record, size, fit, motion);
        let span = spans::variant(&key);
        let made = store.inner.pictures.engine.get(key, variant::source_of(&store.inner, record));
        spans::within(span, Box::pin(made)).await
    }

    /// Returns the [tag](crate::variants::Sheet::tag) of the sheet that [`Files::sheet`](crate::Files::sheet)
    /// would return now. Makes missing variants, but not the sheet. Errors as for
    /// [`Files::sheet`](crate::Files::sheet).
    pub async fn sheet_tag(self, ids: &[FileId], size: VariantSize, fit: Fit) -> Result<String> {
        self.files.sheet_tag(ids, size, fit).await
    }
}
