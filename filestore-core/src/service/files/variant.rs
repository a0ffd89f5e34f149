//! Gallery variants: a square WebP of an image, from the cache or made now.
//!
//! The store checks the size before any look-up. A matching `If-None-Match` needs no decoding. The store then
//! tries, in this order, the memory cache, the disk cache (a bad entry counts as a miss), a retained picture
//! of an earlier decode, and the engine's own threads. All requests for the same key wait for the same run.
//! The store publishes a result only while its blob is the file's current blob. After the first variant,
//! `engine/sketch.rs` makes the placeholder, and a compare-and-set on the digest stores it in the record.
//!
//! Variants of CLOUD files are also made here. The store fetches the picture into a staged file, compares its
//! digest, and unlinks the file while it is open.

use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

use super::Files;
use super::read::Opened;
use super::serving::ServedFiles;
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::record::{FileRecord, Thumbhash};
use crate::domain::file::status::Status;
use crate::domain::id::FileId;
use crate::service::Inner;
use crate::variant::convert::{Conversion, Converters};
use crate::variant::{Fit, Motion, Source, Variant, VariantEngine, VariantKey, VariantSize};

/// The media types of files that can contain an animation, detected from their bytes. Previews of files that
/// are not pictures are still.
const MOVING: [&str; 3] = ["image/gif", "image/png", "image/webp"];

/// The makers of pictures.
pub(crate) struct Pictures {
    /// Makes variants and sheets, and caches them.
    pub(crate) engine: VariantEngine,
    /// Makes pictures from other file types.
    pub(in crate::service) converters: Arc<Converters>,
}

/// The future answer to the question if a blob is still current.
type Asked = Pin<Box<dyn Future<Output = bool> + Send>>;

impl Pictures {
    /// Returns the converter for a file. `None` if the store decodes the file itself.
    pub(super) fn converter_of(&self, record: &FileRecord) -> Option<usize> {
        let blob = &record.blob;
        if blob.dimensions.is_some() {
            return None;
        }
        self.converters.of(blob.sniffed_type.as_deref(), &record.mime_type)
    }
}

impl Inner {
    /// Returns `InvalidField` for an animated variant if animated variants are switched off.
    pub(in crate::service) fn expect_motion(&self, motion: Motion) -> Result<()> {
        if motion == Motion::Still || self.config().variants.animated {
            return Ok(());
        }
        let message = "animated variants are switched off here: variants.animated is false";
        Err(Error::invalid("animated", message).with_allowed(["false", "0"]))
    }

    /// Makes the configured variants (`variants.eager`) of a new picture in the background. TEMP files are an
    /// exception: their variants are made when the files become READY, because a TEMP file might never be
    /// viewed.
    pub(in crate::service) fn prepare_variants(self: &Arc<Self>, record: &FileRecord) {
        let config = self.config();
        let eager = &config.variants.eager;
        if eager.is_empty()
            || (record.blob.dimensions.is_none() && self.pictures.converter_of(record).is_none())
            || record.state.status() == Status::Temp
        {
            return;
        }

        let record = Arc::new(record.clone());
        let keys = eager.iter().map(|(size, fit)| key_of(&record, *size, *fit, Motion::Still));
        let keys = keys.collect();
        self.pictures.engine.prepare(keys, source_of(self, &record));
    }
}

/// Returns the key of a variant of `record`. For a file that cannot be animated, this is the key of the still
/// variant.
pub(super) fn key_of(
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

/// Describes the blob of `record` for the engine. A picture without a placeholder gets a placeholder.
pub(super) fn source_of(inner: &Arc<Inner>, record: &Arc<FileRecord>) -> Source {
    let is_current = currency_of(inner, record);
    let (inner, opened) = (Arc::clone(inner), Arc::clone(record));
    let source = match inner.pictures.converter_of(record) {
        None => {
            let inner = Arc::clone(&inner);
            let open = move || open_blob(Arc::clone(&inner), Arc::clone(&opened));
            Source::new(open, is_current)
        }
        Some(converter) => {
            let inner = Arc::clone(&inner);
            let open = move || convert(Arc::clone(&inner), converter, Arc::clone(&opened));
            Source::new(open, is_current).converted()
        }
    };
    if record.blob.thumbhash.is_some() {
        return source;
    }

    let record = Arc::clone(record);
    source.with_placeholder(move |thumbhash| {
        let (inner, record) = (Arc::clone(&inner), Arc::clone(&record));
        async move { note_placeholder(&inner, &record, &thumbhash).await }
    })
}

async fn convert(inner: Arc<Inner>, converter: usize, record: Arc<FileRecord>) -> Result<File> {
    let converters = Arc::clone(&inner.pictures.converters);
    let organization = record.organization_id.clone();
    let wanted = Conversion { organization, sha256: record.blob.sha256, converter };
    converters.convert(wanted, open_blob(inner, record)).await
}

async fn open_blob(inner: Arc<Inner>, record: Arc<FileRecord>) -> Result<File> {
    match inner.open_whole(&record).await? {
        Opened::Local(blob) => Ok(blob.into_file()),
        Opened::Remote(bytes) => inner.fetch(&record, bytes).await,
        Opened::Small(_) | Opened::Changed => {
            Err(Error::new(ErrorKind::Conflict, "the file changed meanwhile"))
        }
    }
}

/// Stores the placeholder of the record's blob. A failure is only logged, because the next variant tries
/// again.
async fn note_placeholder(inner: &Inner, record: &FileRecord, thumbhash: &Thumbhash) {
    let (file_id, sha256) = (record.file_id, &record.blob.sha256);
    if let Err(error) = inner.metadata.note_thumbhash(file_id, sha256, thumbhash).await {
        tracing::warn!(%file_id, %error, "cannot store a placeholder");
    }
}

/// Returns whether the blob of `record` is still the current blob of an existing file.
fn currency_of(
    inner: &Arc<Inner>,
    record: &Arc<FileRecord>,
) -> impl Fn() -> Asked + Send + Sync + use<> {
    let (inner, record) = (Arc::clone(inner), Arc::clone(record));
    move || {
        let (inner, record) = (Arc::clone(&inner), Arc::clone(&record));
        Box::pin(async move {
            let now = inner.metadata.file(record.file_id, &Scope::All).await;
            matches!(now, Ok(Some(now)) if now.blob.sha256 == record.blob.sha256 && !now.state.is_deleted())
        })
    }
}

impl<'a> Files<'a> {
    /// Requests a gallery variant of a file: a square WebP of `size` pixels, from the cache or made now.
    /// Await the request to get the variant. See [`VariantRequest`].
    pub fn variant<S>(self, id: FileId, size: S) -> VariantRequest<'a>
    where
        S: TryInto<VariantSize>,
        S::Error: Into<Error>,
    {
        let size = size.try_into().map_err(Into::into);
        VariantRequest { files: self, id, size, fit: Fit::default(), motion: Motion::default() }
    }
}

/// A request for a gallery variant; from [`Files::variant`]. When you await the request, it looks up the file
/// and makes the variant. The request starts over if the file changes in the meantime.
///
/// Returns `InvalidField` for a size that is not one of the seven, and for an animated variant if animated
/// variants are switched off. Returns `NotFound` for an unknown id, a file outside the scope and a deleted
/// file. Returns `NotAnImage`, `CorruptImage` or `ImageTooLarge` for files without variants, and `Busy` if
/// the queue is full.
///
/// ```no_run
/// use filestore_core::variants::Variant;
/// use filestore_core::{FileId, FileStore, Fit, Scope};
///
/// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
/// let files = store.scoped(&Scope::All);
/// let (record, variant) = files.variant(id, 400).fit(Fit::Inside).await?;
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
    files: Files<'a>,
    id: FileId,
    size: Result<VariantSize>,
    fit: Fit,
    motion: Motion,
}

impl VariantRequest<'_> {
    /// Sets how the picture fits the square (default [`Fit::Cover`]).
    pub fn fit(mut self, fit: Fit) -> Self {
        self.fit = fit;
        self
    }

    /// Requests all animation frames as an animated WebP. If the picture is not animated, the result is
    /// its still variant. Needs the setting [`animated`](crate::config::VariantConfig::animated).
    pub fn animated(self) -> Self {
        self.motion(Motion::Animated)
    }

    /// Sets whether the variant is still or animated (default [`Motion::Still`]).
    pub fn motion(mut self, motion: Motion) -> Self {
        self.motion = motion;
        self
    }

    async fn send(self) -> Result<(Arc<FileRecord>, Variant)> {
        let Self { files, id, size, fit, motion } = self;
        let (size, serving) = (size?, ServedFiles::of(files));
        serving.expect_motion(motion)?;

        serving
            .with_record(id, |record| async move {
                match serving.variant_of(&record, size, fit, motion).await {
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
