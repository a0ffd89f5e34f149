//! Uploading: one file, a batch, a change of a stored file.

pub(crate) mod batch;
pub(crate) mod change;
pub(crate) mod item;
mod multipart;
mod sending;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use filestore_core::api::FileRecord;
use reqwest::Method;
use reqwest::header::HeaderName;
use tokio::io::AsyncRead;

use crate::client::Client;
use crate::digest::Digest;
use crate::error::Result;
use crate::organization::Place;
use crate::progress::{OnProgress, Progress};
use crate::transport::random::random_u128;
use crate::transport::reply::{Received, Reply};
use crate::transport::retry::Repeat;
use crate::upload::item::Item;
use crate::upload::multipart::Form;
use crate::upload::sending::{Target, check_stored};

/// The header under which a repeated upload is recognized.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// One file to be stored, and what to do with it; [`Place::upload`] sends it.
///
/// Uploads from a path or bytes get a random idempotency key, so that one whose reply is lost is
/// repeated without being stored twice.
///
/// ```no_run
/// use filestore_client::{Place, Upload};
///
/// # async fn run(gallery: Place) -> filestore_client::Result<()> {
/// let upload = Upload::from_path("photo.jpg")?
///     .original_name("Zoë on the beach.jpg")
///     .temp()
///     .on_progress(|progress| eprintln!("{} of {:?}", progress.done_bytes, progress.total_bytes));
/// let record = gallery.upload(upload).await?;
/// println!("{} {}", record.file_id, record.sha256);
/// # Ok(())
/// # }
/// ```
pub struct Upload {
    item: Item,
    lifetime: Lifetime,
    sha256: Option<String>,
    key: IdempotencyKey,
    on_progress: Option<OnProgress>,
}

impl Upload {
    /// Uploads an item.
    pub fn new(item: Item) -> Self {
        Self {
            item,
            lifetime: Lifetime::Lasting,
            sha256: None,
            key: IdempotencyKey::Random,
            on_progress: None,
        }
    }

    /// Uploads the regular file at `path`; see [`Item::from_path`].
    pub fn from_path(path: impl Into<PathBuf>) -> Result<Self> {
        Ok(Self::new(Item::from_path(path)?))
    }

    /// Uploads bytes in memory.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self::new(Item::from_bytes(bytes))
    }

    /// Uploads the bytes that `reader` yields; see [`Item::from_reader`].
    pub fn from_reader(
        reader: impl AsyncRead + Send + Unpin + 'static,
        len_bytes: Option<u64>,
    ) -> Self {
        Self::new(Item::from_reader(reader, len_bytes))
    }

    /// Sets the name to store; see [`Item::original_name`].
    #[must_use]
    pub fn original_name(mut self, name: impl Into<String>) -> Self {
        self.item = self.item.original_name(name);
        self
    }

    /// Sets the media type to store; see [`Item::mime_type`].
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.item = self.item.mime_type(mime_type);
        self
    }

    /// Sets the custom metadata to store; see [`Item::metadata`].
    #[must_use]
    pub fn metadata<K, V>(mut self, members: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<serde_json::Value>,
    {
        self.item = self.item.metadata(members);
        self
    }

    /// Stores it as TEMP: it expires unless it is made a thumbnail or ready.
    #[must_use]
    pub fn temp(mut self) -> Self {
        self.lifetime = Lifetime::Temporary;
        self
    }

    /// Expects this SHA-256, in hex: other bytes are not stored
    /// ([`ErrorKind::Digest`](crate::ErrorKind::Digest)). Without it, the record's digest is still
    /// compared with that of the bytes sent.
    #[must_use]
    pub fn sha256(mut self, hex: impl Into<String>) -> Self {
        self.sha256 = Some(hex.into());
        self
    }

    /// Sets a key of your own: the same upload under the same key within 24 hours is stored once.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.key = IdempotencyKey::Given(key.into());
        self
    }

    /// Sends no idempotency key: the upload is repeated only if the server surely did not get it.
    #[must_use]
    pub fn without_idempotency_key(mut self) -> Self {
        self.key = IdempotencyKey::Off;
        self
    }

    /// Calls back as the file's bytes are sent.
    #[must_use]
    pub fn on_progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(callback));
        self
    }
}

/// An upload with nothing more to say.
impl From<Item> for Upload {
    fn from(item: Item) -> Self {
        Self::new(item)
    }
}

impl Place {
    /// Stores a file: an [`Item`], or an [`Upload`] with more to say. When this answers, the bytes
    /// are durable.
    pub async fn upload(&self, upload: impl Into<Upload>) -> Result<FileRecord> {
        Ok(self.upload_reply(upload).await?.value)
    }

    /// Stores a file as [`upload`](Self::upload) does, and keeps the reply's headers beside the record.
    ///
    /// ```no_run
    /// # async fn run(gallery: filestore_client::Place) -> filestore_client::Result<()> {
    /// use filestore_client::Upload;
    ///
    /// let upload = Upload::from_path("photo.jpg")?.idempotency_key("import-7");
    /// let reply = gallery.upload_reply(upload).await?;
    /// if reply.is_replayed() {
    ///     println!("stored before, and perhaps changed or deleted since: {}", reply.value.file_id);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upload_reply(&self, upload: impl Into<Upload>) -> Result<Reply<FileRecord>> {
        let Upload { item, lifetime, sha256, key, on_progress } = upload.into();

        let mut form = self.form();
        if let Lifetime::Temporary = lifetime {
            form.text("upload_temp", "true");
        }
        if let Some(sha256) = sha256 {
            form.text("sha256", sha256);
        }
        form.item("", item);
        form.on_progress(on_progress);

        let (reply, digests) = self.client.send_upload(&["files", "upload"], form, key).await?;
        let reply: Reply<FileRecord> = reply.reply()?;
        for digest in &digests {
            check_stored(&reply.value.file_id, &reply.value.sha256, digest)?;
        }
        Ok(reply)
    }

    /// Starts a form with the fields that name this place.
    fn form(&self) -> Form {
        let mut form = Form::default();
        form.text("organization_id", &self.organization_id);
        form.text("sub_system", &self.sub_system);
        form
    }
}

impl Client {
    /// Posts the form of an upload under its idempotency key.
    async fn send_upload(
        &self,
        path: &[&str],
        form: Form,
        key: IdempotencyKey,
    ) -> Result<(Received, Vec<Digest>)> {
        let key = key.resolve(&form);
        let repeat = if key.is_some() { Repeat::Always } else { Repeat::IfNothingChanged };

        let header = key.map(|key| (IDEMPOTENCY_KEY, key));
        let target = Target { method: Method::POST, path, header };
        self.send_form(&target, form, repeat).await
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("item", &self.item).finish_non_exhaustive()
    }
}

/// The lifetime of an upload.
enum Lifetime {
    /// Kept until it is deleted.
    Lasting,
    /// Stored as TEMP: expires.
    Temporary,
}

/// The source of the `Idempotency-Key`.
pub(crate) enum IdempotencyKey {
    /// Made by the client.
    Random,
    /// Given by the application.
    Given(String),
    /// Not sent.
    Off,
}

impl IdempotencyKey {
    /// Returns the header's value. A form that can be sent only once needs no key of our making.
    pub(crate) fn resolve(self, form: &Form) -> Option<String> {
        match self {
            Self::Random if !form.is_repeatable() => None,
            Self::Random => Some(format!("{:032x}", random_u128())),
            Self::Given(key) => Some(key),
            Self::Off => None,
        }
    }
}
