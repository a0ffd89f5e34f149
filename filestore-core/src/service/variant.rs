//! Gallery variants: a square WebP of an image, from the cache or made now.
//!
//! The size is checked before anything is looked up; a matching `If-None-Match` needs no
//! decoding. Then, in this order: the memory cache, the disk cache (a bad entry is a miss), a
//! retained picture of an earlier decode, and the engine's own threads. Everyone who asks for the
//! same key waits for the same run. A result is published only while its blob is the file's
//! current one. After the first variant `engine/sketch.rs` makes the placeholder, and a
//! compare-and-set on the digest notes it in the record.
//!
//! Variants of a CLOUD file are made here as well: the picture is fetched into a staged file, compared
//! with its digest, and unlinked while it is open.

use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

use super::{FileStore, Opened};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::FileId;
use crate::domain::load::VariantLoad;
use crate::domain::record::{FileRecord, Thumbhash};
use crate::domain::scope::Scope;
use crate::domain::status::Status;
use crate::storage::SendFile;
use crate::variant::{CacheReport, Fit, Motion, Source, Variant, VariantKey, VariantSize};

/// The media types of files that may hold an animation, as their bytes show them. A preview of a file that
/// is no picture is still.
const MOVING: [&str; 3] = ["image/gif", "image/png", "image/webp"];

/// The answer to whether a blob is still current.
type Asked = Pin<Box<dyn Future<Output = bool> + Send>>;

impl FileStore {
    /// Makes the key of a variant of `record`, from which its entity tag is made. Of a file that cannot
    /// move, the key is that of the still variant.
    pub fn variant_key(
        &self,
        record: &FileRecord,
        size: VariantSize,
        fit: Fit,
        motion: Motion,
    ) -> VariantKey {
        let may_move = motion == Motion::Animated
            && record.blob.sniffed_type.as_deref().is_some_and(|mime| MOVING.contains(&mime));
        VariantKey {
            organization_id: record.organization_id.clone(),
            file_id: record.file_id,
            sha256: record.blob.sha256,
            size,
            fit,
            motion: Motion::from(may_move),
        }
    }

    /// Fails with `InvalidField` for an animated variant if this store makes none.
    pub fn expect_motion(&self, motion: Motion) -> Result<()> {
        if motion == Motion::Still || self.inner.config().variants.animated {
            return Ok(());
        }
        let message = "animated variants are switched off here: variants.animated is false";
        Err(Error::invalid("animated", message).with_allowed(["false", "0"]))
    }

    /// Returns the variant from memory, if it happens to be there.
    pub fn cached_variant(&self, key: &VariantKey) -> Option<Variant> {
        self.inner.variants.cached(key)
    }

    /// Returns the bytes of the variant for the kernel to send to a socket, if it is in memory and asked for often.
    /// `None`: see [`FileStore::cached_variant`].
    pub fn send_variant(&self, key: &VariantKey) -> Option<SendFile> {
        let (file, length) = self.inner.variants.cached_file(key)?;
        Some(SendFile::of_memory(file, length))
    }

    /// Makes the variant of `record`, or takes it from the cache. For
    /// [`Variant::PassThrough`] the caller reads the original.
    ///
    /// `NotAnImage`, `CorruptImage`, `ImageTooLarge` for what cannot be made; `Busy` if the queue is
    /// full; `NotFound` if the file was deleted meanwhile; `InvalidField` as of
    /// [`expect_motion`](Self::expect_motion).
    pub async fn variant_of(
        &self,
        record: &Arc<FileRecord>,
        size: VariantSize,
        fit: Fit,
        motion: Motion,
    ) -> Result<Variant> {
        self.expect_motion(motion)?;
        let key = self.variant_key(record, size, fit, motion);
        self.inner.variants.get(key, self.source_of(record)).await
    }

    /// Describes the blob of `record` for the engine. A picture without a placeholder gets one.
    pub(super) fn source_of(&self, record: &Arc<FileRecord>) -> Source {
        let (store, opened) = (self.clone(), Arc::clone(record));
        let source = match self.converter_of(record) {
            None => {
                let open = move || store.clone().open_blob(Arc::clone(&opened));
                Source::new(open, self.currency_of(record))
            }
            Some(converter) => {
                let open = move || store.clone().convert(converter, Arc::clone(&opened));
                Source::new(open, self.currency_of(record)).converted()
            }
        };
        if record.blob.thumbhash.is_some() {
            return source;
        }

        let (store, record) = (self.clone(), Arc::clone(record));
        source.with_placeholder(move |thumbhash| {
            let (store, record) = (store.clone(), Arc::clone(&record));
            async move { store.note_placeholder(&record, &thumbhash).await }
        })
    }

    /// Returns true if a picture may be made of the file: its bytes show an image, or there is a
    /// converter for them.
    pub fn may_have_variants(&self, record: &FileRecord) -> bool {
        let sniffed = record.blob.sniffed_type.as_deref();
        sniffed.is_some_and(|mime| mime.starts_with("image/"))
            || self.converter_of(record).is_some()
    }

    /// Finds the converter for a file. None is for what is decoded here.
    fn converter_of(&self, record: &FileRecord) -> Option<usize> {
        let blob = &record.blob;
        if blob.dimensions.is_some() {
            return None;
        }
        self.inner.converters.of(blob.sniffed_type.as_deref(), &record.mime_type)
    }

    async fn convert(self, converter: usize, record: Arc<FileRecord>) -> Result<File> {
        let (converters, sha256) = (Arc::clone(&self.inner.converters), record.blob.sha256);
        converters.convert(converter, sha256, self.open_blob(record)).await
    }

    async fn open_blob(self, record: Arc<FileRecord>) -> Result<File> {
        match self.open_content(&record).await? {
            Opened::Local(blob) => Ok(blob.into_file()),
            Opened::Remote(bytes) => self.inner.fetch(&record, bytes).await,
            Opened::Small(_) | Opened::Changed => {
                Err(Error::new(ErrorKind::Conflict, "the file changed meanwhile"))
            }
        }
    }

    /// Stores the placeholder of the record's blob. A failure is logged: the next variant is another
    /// occasion.
    async fn note_placeholder(&self, record: &FileRecord, thumbhash: &Thumbhash) {
        let (file_id, sha256) = (record.file_id, &record.blob.sha256);
        if let Err(error) = self.inner.metadata.note_thumbhash(file_id, sha256, thumbhash).await {
            tracing::warn!(%file_id, %error, "cannot store a placeholder");
        }
    }

    /// Says whether the blob of `record` is still its file's, and the file still there.
    fn currency_of(&self, record: &Arc<FileRecord>) -> impl Fn() -> Asked + Send + Sync + use<> {
        let (store, record) = (self.clone(), Arc::clone(record));
        move || {
            let (store, record) = (store.clone(), Arc::clone(&record));
            Box::pin(async move {
                let now = store.inner.metadata.file(record.file_id, &Scope::All).await;
                matches!(now, Ok(Some(now)) if now.blob.sha256 == record.blob.sha256 && !now.state.is_deleted())
            })
        }
    }

    /// Makes the configured variants (`variants.eager`) of a picture that has just arrived, in the
    /// background. TEMP files may never be looked at: theirs are made when they become READY.
    pub(super) fn prepare_variants(&self, record: &FileRecord) {
        let config = self.inner.config();
        let eager = &config.variants.eager;
        if eager.is_empty()
            || (record.blob.dimensions.is_none() && self.converter_of(record).is_none())
            || record.state.status() == Status::Temp
        {
            return;
        }

        let record = Arc::new(record.clone());
        let keys = eager.iter();
        let keys = keys.map(|(size, fit)| self.variant_key(&record, *size, *fit, Motion::Still));
        let keys = keys.collect();
        self.inner.variants.prepare(keys, self.source_of(&record));
    }

    /// Asks for a gallery variant of a file: a square WebP of `size` pixels, from the cache or made now.
    /// Await the request to get it; see [`VariantRequest`].
    pub fn variant<S>(&self, id: FileId, size: S) -> VariantRequest<'_>
    where
        S: TryInto<VariantSize>,
        S::Error: Into<Error>,
    {
        let size = size.try_into().map_err(Into::into);
        VariantRequest {
            store: self,
            id,
            size,
            fit: Fit::default(),
            motion: Motion::default(),
            scope: &Scope::All,
        }
    }

    /// Returns the load of the variants' engine.
    pub(crate) fn variant_load(&self) -> VariantLoad {
        self.inner.variants.load()
    }

    /// Reports what the variant cache holds.
    pub(crate) async fn variant_cache(&self) -> CacheReport {
        self.inner.variants.report().await
    }

    /// Empties the variant cache.
    pub(crate) async fn prune_variants(&self) -> CacheReport {
        self.inner.variants.prune().await
    }
}

/// A request for a gallery variant; from [`FileStore::variant`]. Awaiting it looks the file up and makes
/// the variant, starting over while the file changes.
///
/// `InvalidField` for a size that is none of the seven, and for an animated variant where they are switched
/// off; `NotFound` for unknown, foreign and deleted
/// files; `NotAnImage`, `CorruptImage`, `ImageTooLarge` for files that have no variants; `Busy` if the
/// queue is full.
///
/// ```no_run
/// use filestore_core::variants::Variant;
/// use filestore_core::{FileId, FileStore, Fit};
///
/// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
/// let (record, variant) = store.variant(id, 400).fit(Fit::Inside).await?;
/// match variant {
///     Variant::WebP(bytes) => println!("{}: {} bytes", record.original_name, bytes.len()),
///     Variant::PassThrough { mime } => println!("small already: the original, {mime}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a request does nothing until it is awaited"]
pub struct VariantRequest<'a> {
    store: &'a FileStore,
    id: FileId,
    size: Result<VariantSize>,
    fit: Fit,
    motion: Motion,
    scope: &'a Scope,
}

impl<'a> VariantRequest<'a> {
    /// Sets how the picture fits the square; [`Fit::Cover`] unless set.
    pub fn fit(mut self, fit: Fit) -> Self {
        self.fit = fit;
        self
    }

    /// Asks for all frames of an animation, in an animated WebP; a picture that does not move gives its
    /// still variant. The store makes them if [`animated`](crate::config::VariantConfig::animated) is set.
    pub fn animated(self) -> Self {
        self.motion(Motion::Animated)
    }

    /// Sets the part of an animation that is shown; [`Motion::Still`] unless set.
    pub fn motion(mut self, motion: Motion) -> Self {
        self.motion = motion;
        self
    }

    /// Limits the request to files of `scope`; [`Scope::All`] unless set.
    pub fn scope(mut self, scope: &'a Scope) -> Self {
        self.scope = scope;
        self
    }

    async fn send(self) -> Result<(Arc<FileRecord>, Variant)> {
        let Self { store, id, size, fit, motion, scope } = self;
        let size = size?;
        store.expect_motion(motion)?;

        store
            .with_record(id, scope, |record| async move {
                match store.variant_of(&record, size, fit, motion).await {
                    Ok(variant) => Ok(Some((record, variant))),
                    Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
                    Err(error) => Err(error),
                }
            })
            .await
    }
}

impl<'a> IntoFuture for VariantRequest<'a> {
    type Output = Result<(Arc<FileRecord>, Variant)>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
