//! Changes of a stored file: a new status, or new bytes.

use std::fmt;
use std::sync::Arc;

use filestore_core::api::ChangeReply;
use reqwest::Method;
use reqwest::header::IF_MATCH;

use crate::client::Client;
use crate::error::Result;
use crate::progress::{OnProgress, Progress};
use crate::transport::reply::{Reply, expect_same_id};
use crate::transport::retry::Retry;
use crate::upload::delivery::IdempotencyKey;
use crate::upload::description::{Description, description_setters};
use crate::upload::item::Item;
use crate::upload::multipart::Form;
use crate::upload::resumable::{Plan, Resumable, Sent, check_etag};
use crate::upload::sending::Target;

/// The flag that turns a file into a THUMBNAIL. It comes without new bytes.
const THUMBNAIL: &str = "make_as_thumbnail";

/// A change of a stored file: a new status, new bytes, or both in one step. Apply the
/// change with [`Client::change`].
///
/// For example, make a file ready with new bytes, if the file has not changed since your last read:
///
/// ```no_run
/// use filestore_client::{Change, Client, Item};
///
/// # async fn run(client: Client) -> filestore_client::Result<()> {
/// let id = "01JD0000000000000000000000";
/// // Only if the content is unchanged:
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
    description: Description,
    if_match: Option<String>,
    resumable: Resumable,
    on_progress: Option<OnProgress>,
}

impl Change {
    /// Turns a TEMP file into a THUMBNAIL.
    pub fn thumbnail() -> Self {
        Self { flag: Some(THUMBNAIL), ..Self::default() }
    }

    /// Turns a file with any status into a READY file.
    pub fn ready() -> Self {
        Self { flag: Some("make_as_ready"), ..Self::default() }
    }

    /// Replaces the bytes with the bytes of `item` and keeps the status. Readers get the old file
    /// or the new file, never a mix.
    pub fn replace(item: Item) -> Self {
        Self { item: Some(item), ..Self::default() }
    }

    description_setters! {
        name: "Sets the name to store with the new bytes. To change only the name, see [`Edit`](crate::Edit).",
        mime_type: "Sets the media type of the new bytes.",
        metadata: "Sets the custom metadata to store with the new bytes. It replaces all old custom metadata.",
    }

    fn description_mut(&mut self) -> &mut Description {
        &mut self.description
    }

    /// Replaces the bytes in the same step.
    #[must_use]
    pub fn with_file(mut self, item: Item) -> Self {
        self.item = Some(item);
        self
    }

    /// Changes the file only if it still has this ETag. Otherwise the call fails with
    /// [`ErrorKind::PreconditionFailed`](crate::ErrorKind::PreconditionFailed).
    #[must_use]
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.if_match = Some(etag.into());
        self
    }

    /// Decides when new bytes continue after a broken connection instead of starting again. By default, files of
    /// 16 MiB and more continue.
    #[must_use]
    pub fn resumable(mut self, resumable: Resumable) -> Self {
        self.resumable = resumable;
        self
    }

    /// Calls `callback` while the client sends the new bytes.
    #[must_use]
    pub fn on_progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(callback));
        self
    }

    /// A second request for a status has no effect. A second replacement creates another version,
    /// and after the first success `If-Match` fails.
    fn retry(&self) -> Retry {
        match (&self.item, &self.if_match) {
            (None, None) => Retry::Idempotent,
            _ => Retry::IfUnprocessed,
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
    /// Turns a TEMP file into a THUMBNAIL.
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

    /// Turns a TEMP or THUMBNAIL file into a READY file.
    ///
    /// The `sync_status` of the reply is always `NONE`. The record's status is then `PENDING`.
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

    /// Replaces the bytes of a file with an [`Item`], or with a [`Change::replace`] with options.
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

    /// Applies a change.
    ///
    /// If the change has new bytes and the server might have processed it, the client does not
    /// retry. Exception: a [resumable](Change::resumable) replacement continues.
    pub async fn change(
        &self,
        file_id: impl AsRef<str>,
        change: Change,
    ) -> Result<Reply<ChangeReply>> {
        let retry = change.retry();
        let Change { flag, item, description, if_match, resumable, on_progress } = change;
        let mut item = item.map(|item| item.with(description.clone()));
        if let Some(item) = &mut item
            && flag != Some(THUMBNAIL)
            && resumable.applies_to(item).await?
        {
            let mut fields = item.fields();
            fields.push(("file_id", file_id.as_ref().to_owned()));
            fields.extend(flag.map(|flag| (flag, "true".to_owned())));
            let plan = Plan {
                fields,
                idempotency_key: IdempotencyKey::Random.fixed(),
                if_match: if_match.clone(),
                on_progress: on_progress.clone(),
                ..Plan::default()
            };
            if let Sent::Done(reply, digest) = self.send_in_pieces(&plan, item).await? {
                let reply: Reply<ChangeReply> = reply.reply()?;
                expect_same_id(file_id.as_ref(), &reply.value.file_id)?;
                check_etag(file_id.as_ref(), reply.etag.as_deref(), &digest)?;
                return Ok(reply);
            }
        }

        let mut form = Form::default();
        form.text("file_id", file_id.as_ref());
        if let Some(flag) = flag {
            form.text(flag, "true");
        }
        match item {
            Some(item) => form.item("", item),
            None => {
                for (field, value) in description.fields() {
                    form.text(field, value);
                }
            }
        }
        form.on_progress(on_progress);

        let header = if_match.map(|etag| (IF_MATCH, etag));
        let target = Target { method: Method::PUT, path: &["files", "upload"], header };

        let (reply, _) = self.send_form(&target, form, retry).await?;
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
