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
use reqwest::{Method, RequestBuilder};
use tokio::io::AsyncRead;

use crate::client::Client;
use crate::error::Result;
use crate::progress::{OnProgress, Progress};
use crate::transport::retry::Repeat;
use crate::upload::item::Item;
use crate::upload::multipart::Form;
use crate::upload::sending::check_stored;

/// One file to be stored for an organization.
///
/// Uploads from a path or bytes get a random idempotency key, so that one whose reply is lost is
/// repeated without being stored twice.
///
/// ```no_run
/// use filestore_client::{Client, Upload};
///
/// # async fn run(client: Client) -> filestore_client::Result<()> {
/// let upload = Upload::from_path("photo.jpg", "42", "gallery")?
///     .original_name("Zoë on the beach.jpg")
///     .temp()
///     .on_progress(|progress| eprintln!("{} of {:?}", progress.done_bytes, progress.total_bytes));
/// let record = client.upload(upload).await?;
/// println!("{} {}", record.file_id, record.sha256);
/// # Ok(())
/// # }
/// ```
pub struct Upload {
    organization_id: String,
    sub_system: String,
    item: Item,
    lifetime: Lifetime,
    sha256: Option<String>,
    key: IdempotencyKey,
    on_progress: Option<OnProgress>,
}

impl Upload {
    /// Uploads an item for `organization_id` and the part of its application called `sub_system`.
    pub fn new(
        item: Item,
        organization_id: impl Into<String>,
        sub_system: impl Into<String>,
    ) -> Self {
        Self {
            organization_id: organization_id.into(),
            sub_system: sub_system.into(),
            item,
            lifetime: Lifetime::Lasting,
            sha256: None,
            key: IdempotencyKey::Random,
            on_progress: None,
        }
    }

    /// Uploads the regular file at `path`; see [`Item::from_path`].
    pub fn from_path(
        path: impl Into<PathBuf>,
        organization_id: impl Into<String>,
        sub_system: impl Into<String>,
    ) -> Result<Self> {
        Ok(Self::new(Item::from_path(path)?, organization_id, sub_system))
    }

    /// Uploads bytes in memory.
    pub fn from_bytes(
        bytes: impl Into<Bytes>,
        organization_id: impl Into<String>,
        sub_system: impl Into<String>,
    ) -> Self {
        Self::new(Item::from_bytes(bytes), organization_id, sub_system)
    }

    /// Uploads what `reader` yields; see [`Item::from_reader`].
    pub fn from_reader(
        reader: impl AsyncRead + Send + Unpin + 'static,
        len_bytes: Option<u64>,
        organization_id: impl Into<String>,
        sub_system: impl Into<String>,
    ) -> Self {
        Self::new(Item::from_reader(reader, len_bytes), organization_id, sub_system)
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

impl Client {
    /// Stores a file. When this answers, the bytes are durable.
    pub async fn upload(&self, upload: Upload) -> Result<FileRecord> {
        let mut form = Form::default();
        form.text("organization_id", upload.organization_id);
        form.text("sub_system", upload.sub_system);
        if let Lifetime::Temporary = upload.lifetime {
            form.text("upload_temp", "true");
        }
        if let Some(sha256) = upload.sha256 {
            form.text("sha256", sha256);
        }
        form.item("", upload.item);
        form.on_progress(upload.on_progress);
        let key = upload.key.resolve(&form);
        let target = || with_key(self.request(Method::POST, &["files", "upload"]), key.as_deref());
        let (reply, digests) = self.send_form(target, form, repeat(key.as_deref())).await?;
        let record: FileRecord = reply.json()?;
        for digest in &digests {
            check_stored(&record.file_id, &record.sha256, digest)?;
        }
        Ok(record)
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload")
            .field("organization_id", &self.organization_id)
            .field("sub_system", &self.sub_system)
            .field("item", &self.item)
            .finish_non_exhaustive()
    }
}

/// The lifetime of an upload.
enum Lifetime {
    Lasting,
    Temporary,
}

/// The source of the `Idempotency-Key`.
pub(crate) enum IdempotencyKey {
    Random,
    Given(String),
    Off,
}

impl IdempotencyKey {
    /// Returns the header's value. A form that can be sent only once needs no key of our making.
    pub(crate) fn resolve(self, form: &Form) -> Option<String> {
        match self {
            Self::Random if !form.is_repeatable() => None,
            Self::Random => Some(format!("{:032x}", fastrand::u128(..))),
            Self::Given(key) => Some(key),
            Self::Off => None,
        }
    }
}

/// Says how often an upload with this key may be sent.
pub(crate) fn repeat(key: Option<&str>) -> Repeat {
    if key.is_some() { Repeat::Always } else { Repeat::IfNeverSent }
}

pub(crate) fn with_key(request: RequestBuilder, key: Option<&str>) -> RequestBuilder {
    match key {
        Some(key) => request.header("Idempotency-Key", key),
        None => request,
    }
}
