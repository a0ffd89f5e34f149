//! Uploads of one file, of a batch, and of new bytes for a stored file.

pub(crate) mod description;
mod delivery;
pub(crate) mod item;
pub(crate) mod batch;
pub(crate) mod change;
mod multipart;
mod pieces;
pub(crate) mod resumable;
mod sending;

use std::fmt;
use std::path::PathBuf;

use bytes::Bytes;
use filestore_core::api::FileRecord;
use futures_util::Stream;
use reqwest::Method;
use reqwest::header::HeaderName;
use tokio::io::AsyncRead;

use crate::client::Client;
use crate::digest::Digest;
use crate::error::Result;
use crate::organization::Place;
use crate::transport::reply::{Received, Reply};
use crate::transport::retry::Retry;
use crate::upload::delivery::{Delivery, delivery_setters};
use crate::upload::description::{Description, description_setters};
use crate::upload::item::Item;
use crate::upload::multipart::Form;
use crate::upload::resumable::{Plan, Resumable, Sent};
use crate::upload::sending::{Target, check_stored};

/// The header that identifies a retried upload.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// One file to store, with its options. Send the upload with [`Place::upload`].
///
/// Uploads from a path or from bytes get a random idempotency key. If a reply gets lost, the client
/// retries the upload, and the server stores the file once. For example:
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
    resumable: Resumable,
    delivery: Delivery,
}

impl Upload {
    /// Creates an upload from an item.
    pub fn new(item: Item) -> Self {
        Self {
            item,
            lifetime: Lifetime::Lasting,
            sha256: None,
            resumable: Resumable::default(),
            delivery: Delivery::default(),
        }
    }

    /// Creates an upload from the file at `path`. See [`Item::from_path`].
    pub fn from_path(path: impl Into<PathBuf>) -> Result<Self> {
        Ok(Self::new(Item::from_path(path)?))
    }

    /// Creates an upload from bytes in memory.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self::new(Item::from_bytes(bytes))
    }

    /// Creates an upload with the bytes from `reader`. See [`Item::from_reader`].
    pub fn from_reader(
        reader: impl AsyncRead + Send + Unpin + 'static,
        len_bytes: Option<u64>,
    ) -> Self {
        Self::new(Item::from_reader(reader, len_bytes))
    }

    /// Creates an upload with the chunks of `stream`. See [`Item::from_stream`].
    pub fn from_stream<E>(
        stream: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
        len_bytes: Option<u64>,
    ) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        Self::new(Item::from_stream(stream, len_bytes))
    }

    description_setters! {
        name: "Sets the name to store. See [`Item::original_name`].",
        mime_type: "Sets the media type to store. See [`Item::mime_type`].",
        metadata: "Sets the custom metadata to store. See [`Item::metadata`].",
    }

    /// Stores a TEMP file. The file expires, unless you make it a thumbnail or ready.
    #[must_use]
    pub fn temp(mut self) -> Self {
        self.lifetime = Lifetime::Temporary;
        self
    }

    /// Requires this SHA-256 in hex. If the bytes have another, the call fails with
    /// [`ErrorKind::Digest`](crate::ErrorKind::Digest), and the server stores no file.
    ///
    /// The client always compares the digest of the record with the sent bytes, even without this
    /// setting.
    #[must_use]
    pub fn sha256(mut self, hex: impl Into<String>) -> Self {
        self.sha256 = Some(hex.into());
        self
    }

    /// Decides when the upload continues after a broken connection instead of starting again. By default, files of
    /// 16 MiB and more continue.
    #[must_use]
    pub fn resumable(mut self, resumable: Resumable) -> Self {
        self.resumable = resumable;
        self
    }

    delivery_setters! {
        idempotency_key: "Sets your own idempotency key. Within 24 hours, the server stores the same \
                          upload with the same key once.",
        without_idempotency_key: "Sends no idempotency key. The client then retries the upload only if \
                                  the server did not process it.",
        on_progress: "Calls `callback` while the client sends the bytes of the file.",
    }

    fn description_mut(&mut self) -> &mut Description {
        self.item.description_mut()
    }
}

/// An upload with default options.
impl From<Item> for Upload {
    fn from(item: Item) -> Self {
        Self::new(item)
    }
}

impl Place {
    /// Stores a file: an [`Item`], or an [`Upload`] with options.
    ///
    /// When the call succeeds, the bytes are durable: they survive a crash and a power cut.
    pub async fn upload(&self, upload: impl Into<Upload>) -> Result<FileRecord> {
        Ok(self.upload_reply(upload).await?.value)
    }

    /// Stores a file like [`upload`](Self::upload), and also returns the reply's headers.
    ///
    /// For example, find out whether an idempotency key was already used:
    ///
    /// ```no_run
    /// # async fn run(gallery: filestore_client::Place) -> filestore_client::Result<()> {
    /// use filestore_client::Upload;
    ///
    /// let upload = Upload::from_path("photo.jpg")?.idempotency_key("import-7");
    /// let reply = gallery.upload_reply(upload).await?;
    /// if reply.is_replayed() {
    ///     println!("an earlier upload stored {}", reply.value.file_id);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upload_reply(&self, upload: impl Into<Upload>) -> Result<Reply<FileRecord>> {
        let Upload { mut item, lifetime, sha256, resumable, mut delivery } = upload.into();
        if resumable.applies_to(&item).await? {
            let plan = self.plan(&item, &lifetime, sha256.as_deref(), &mut delivery);
            if let Sent::Done(reply, digest) = self.client.send_in_pieces(&plan, &mut item).await? {
                let reply: Reply<FileRecord> = reply.reply()?;
                check_stored(&reply.value.file_id, &reply.value.sha256, &digest)?;
                return Ok(reply);
            }
        }

        let mut form = self.form();
        if let Lifetime::Temporary = lifetime {
            form.text("upload_temp", "true");
        }
        if let Some(sha256) = sha256 {
            form.text("sha256", sha256);
        }
        form.item("", item);

        let path = ["files", "upload"];
        let (reply, digests) = self.client.send_upload(&path, form, delivery).await?;
        let reply: Reply<FileRecord> = reply.reply()?;
        for digest in &digests {
            check_stored(&reply.value.file_id, &reply.value.sha256, digest)?;
        }
        Ok(reply)
    }

    /// Describes a resumable upload to this place.
    fn plan(
        &self,
        item: &Item,
        lifetime: &Lifetime,
        sha256: Option<&str>,
        delivery: &mut Delivery,
    ) -> Plan {
        let mut fields = item.fields();
        let has_name = fields.iter().any(|(field, _)| *field == "original_name");
        if let Some(name) = item.file_name().filter(|_| !has_name) {
            fields.push(("filename", name.to_owned()));
        }
        if let Lifetime::Temporary = lifetime {
            fields.push(("upload_temp", "true".to_owned()));
        }
        fields.extend(sha256.map(|sum| ("sha256", sum.to_owned())));
        Plan {
            place: vec![
                ("organization_id", self.organization_id.to_string()),
                ("sub_system", self.sub_system.to_string()),
            ],
            fields,
            idempotency_key: delivery.key.fixed(),
            if_match: None,
            on_progress: delivery.on_progress.clone(),
        }
    }

    /// Starts a form with the fields of this place.
    fn form(&self) -> Form {
        let mut form = Form::default();
        form.text("organization_id", &self.organization_id);
        form.text("sub_system", &self.sub_system);
        form
    }
}

impl Client {
    /// Posts the form of an upload with its idempotency key.
    async fn send_upload(
        &self,
        path: &[&str],
        mut form: Form,
        delivery: Delivery,
    ) -> Result<(Received, Vec<Digest>)> {
        form.on_progress(delivery.on_progress);
        let key = delivery.key.resolve(&form);
        let retry = if key.is_some() { Retry::Idempotent } else { Retry::IfUnprocessed };

        let header = key.map(|key| (IDEMPOTENCY_KEY, key));
        let target = Target { method: Method::POST, path, header };
        self.send_form(&target, form, retry).await
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("item", &self.item).finish_non_exhaustive()
    }
}

/// The lifetime of an upload.
enum Lifetime {
    /// Stays until you delete it.
    Lasting,
    /// Expires, as a TEMP file.
    Temporary,
}
