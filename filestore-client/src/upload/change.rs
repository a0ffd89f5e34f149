//! Changing a stored file: promoting it, replacing its bytes, editing its name, type and metadata.

use std::fmt;
use std::sync::Arc;

use filestore_core::api::ChangeReply;
use reqwest::Method;
use reqwest::header::IF_MATCH;

use crate::client::Client;
use crate::error::Result;
use crate::progress::{OnProgress, Progress};
use crate::transport::reply::{Reply, expect_same_id};
use crate::transport::retry::Repeat;
use crate::upload::item::{Item, Said, object};
use crate::upload::multipart::Form;
use crate::upload::sending::Target;

/// A change of a stored file.
///
/// ```no_run
/// use filestore_client::{Change, Client, Item};
///
/// # async fn run(client: Client) -> filestore_client::Result<()> {
/// let id = "01JD0000000000000000000000";
/// // Only if nobody else changed it since:
/// let etag = client.info(id).await?.etag.unwrap_or_default();
/// let change = Change::ready().with_file(Item::from_path("final.jpg")?).if_match(etag);
/// let reply = client.change(id, change).await?;
/// println!("{}", reply.value.updated_at);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Change {
    flag: Option<&'static str>,
    item: Option<Item>,
    said: Said,
    if_match: Option<String>,
    on_progress: Option<OnProgress>,
}

impl Change {
    /// Makes a TEMP file a THUMBNAIL.
    pub fn thumbnail() -> Self {
        Self { flag: Some("make_as_thumbnail"), ..Self::default() }
    }

    /// Makes a file of any status READY.
    pub fn ready() -> Self {
        Self { flag: Some("make_as_ready"), ..Self::default() }
    }

    /// Replaces the bytes with those of `item`; the status stays. A reader sees the old file or
    /// the new one, whole.
    pub fn replace(item: Item) -> Self {
        Self { item: Some(item), ..Self::default() }
    }

    /// Keeps bytes and version, and changes name, type or metadata: say which.
    ///
    /// ```no_run
    /// use filestore_client::Change;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let change = Change::edit().original_name("invoice-7.pdf").metadata([("customer", "7")]);
    /// client.change("01JD0000000000000000000000", change).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn edit() -> Self {
        Self::default()
    }

    /// Sets the new name. The file's extension is that of the new name; its type stays.
    #[must_use]
    pub fn original_name(mut self, name: impl Into<String>) -> Self {
        self.said.original_name = Some(name.into());
        self
    }

    /// Sets the new media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.said.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the new custom metadata, in the place of all of the old.
    #[must_use]
    pub fn metadata<K, V>(mut self, members: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<serde_json::Value>,
    {
        self.said.metadata = Some(object(members));
        self
    }

    /// Swaps the bytes in the same step.
    #[must_use]
    pub fn with_file(mut self, item: Item) -> Self {
        self.item = Some(item);
        self
    }

    /// Changes the file only if it still has this ETag, else
    /// [`ErrorKind::PreconditionFailed`](crate::ErrorKind::PreconditionFailed).
    #[must_use]
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.if_match = Some(etag.into());
        self
    }

    /// Calls back as the new bytes are sent.
    #[must_use]
    pub fn on_progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(callback));
        self
    }

    /// A flag or a name that is set twice is set once; a file swapped twice is two versions, and after
    /// the first success `If-Match` fails.
    fn repeat(&self) -> Repeat {
        match (&self.item, &self.if_match) {
            (None, None) => Repeat::Always,
            _ => Repeat::IfNothingChanged,
        }
    }
}

/// A replacement of the bytes.
impl From<Item> for Change {
    fn from(item: Item) -> Self {
        Self::replace(item)
    }
}

impl Client {
    /// Makes a TEMP file a THUMBNAIL.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// client.make_thumbnail("01JD0000000000000000000000").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn make_thumbnail(&self, file_id: impl AsRef<str>) -> Result<Reply<ChangeReply>> {
        self.change(file_id, Change::thumbnail()).await
    }

    /// Makes a TEMP or THUMBNAIL file READY. The reply's `sync_status` is always `NONE`; the
    /// record is `PENDING` from then on.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// client.make_ready("01JD0000000000000000000000").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn make_ready(&self, file_id: impl AsRef<str>) -> Result<Reply<ChangeReply>> {
        self.change(file_id, Change::ready()).await
    }

    /// Swaps a file's bytes for others: an [`Item`], or a [`Change::replace`] with more to say.
    ///
    /// ```no_run
    /// use filestore_client::{Change, Item};
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let id = "01JD0000000000000000000000";
    /// client.replace(id, Item::from_path("better.jpg")?).await?;
    /// client.replace(id, Change::replace(Item::from_path("best.jpg")?).if_match("\"abc\"")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn replace(
        &self,
        file_id: impl AsRef<str>,
        replacement: impl Into<Change>,
    ) -> Result<Reply<ChangeReply>> {
        self.change(file_id, replacement.into()).await
    }

    /// Applies a change. One with a file is not repeated once the server may have carried it out.
    pub async fn change(
        &self,
        file_id: impl AsRef<str>,
        change: Change,
    ) -> Result<Reply<ChangeReply>> {
        let repeat = change.repeat();
        let Change { flag, item, said, if_match, on_progress } = change;

        let mut form = Form::default();
        form.text("file_id", file_id.as_ref());
        if let Some(flag) = flag {
            form.text(flag, "true");
        }
        match item {
            Some(item) => form.item("", item.with(said)),
            None => {
                for (field, value) in said.fields() {
                    form.text(field, value);
                }
            }
        }
        form.on_progress(on_progress);

        let header = if_match.map(|etag| (IF_MATCH, etag));
        let target = Target { method: Method::PUT, path: &["files", "upload"], header };

        let (reply, _) = self.send_form(&target, form, repeat).await?;
        let reply: Reply<ChangeReply> = reply.reply()?;
        expect_same_id(file_id.as_ref(), &reply.value.file_id)?;
        Ok(reply)
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change")
            .field("flag", &self.flag)
            .field("item", &self.item)
            .field("if_match", &self.if_match)
            .finish_non_exhaustive()
    }
}
