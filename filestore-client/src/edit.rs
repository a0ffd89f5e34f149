//! Changes of a file's name, type and custom metadata.

use filestore_core::api::{EditReply, Metadata};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderValue, IF_MATCH};
use serde_json::{Map, Value};

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;
use crate::transport::reply::{Reply, expect_same_id};
use crate::upload::description::object;

/// The type of the body (RFC 7396).
const MERGE_PATCH: HeaderValue = HeaderValue::from_static("application/merge-patch+json");

/// A change of a file's name, type or custom metadata. Apply the edit with [`Client::edit`].
///
/// Everything that the edit does not name stays unchanged, including the bytes and the version. For
/// example:
///
/// ```no_run
/// use filestore_client::{Client, Edit};
/// use serde_json::Value;
///
/// # async fn run(client: Client) -> filestore_client::Result<()> {
/// // Sets `customer`, removes `draft`, and keeps all other members:
/// let edit = Edit::new()
///     .original_name("invoice-7.pdf")
///     .metadata([("customer", Value::from(7)), ("draft", Value::Null)]);
/// client.edit("01JD0000000000000000000000", edit).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Edit {
    members: Map<String, Value>,
    if_match: Option<String>,
}

impl Edit {
    /// Creates an empty edit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a new name. The file extension changes with the name. The media type stays.
    #[must_use]
    pub fn original_name(self, name: impl Into<String>) -> Self {
        self.with("original_name", name.into())
    }

    /// Removes the name. The file id then replaces the name.
    #[must_use]
    pub fn clear_original_name(self) -> Self {
        self.with("original_name", Value::Null)
    }

    /// Sets a new media type.
    #[must_use]
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        self.with("mime_type", mime_type.into())
    }

    /// Removes the media type. The server then detects the type from the bytes or the name.
    #[must_use]
    pub fn clear_mime_type(self) -> Self {
        self.with("mime_type", Value::Null)
    }

    /// Changes members of the custom metadata. All other members stay.
    ///
    /// `Value::Null` removes a member. An object is merged with the existing object (RFC 7396).
    #[must_use]
    pub fn metadata<K, V>(self, members: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<Value>,
    {
        let members: Metadata = object(members);
        self.with("metadata", members)
    }

    /// Removes all custom metadata.
    #[must_use]
    pub fn clear_metadata(self) -> Self {
        self.with("metadata", Value::Null)
    }

    /// Edits the file only if it still has this ETag. Otherwise the call fails with
    /// [`ErrorKind::PreconditionFailed`](crate::ErrorKind::PreconditionFailed).
    #[must_use]
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.if_match = Some(etag.into());
        self
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.members.insert(key.to_owned(), value.into());
        self
    }
}

impl Client {
    /// Changes a file's name, type or custom metadata. A second call with the same edit changes
    /// nothing.
    ///
    /// The reply contains the record if the key has the scope `read`. Otherwise it contains the id,
    /// the sync status and the time.
    ///
    /// ```no_run
    /// use filestore_client::Edit;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let reply = client.edit("01JD0000000000000000000000", Edit::new().mime_type("text/csv")).await?;
    /// if let Some(record) = reply.value.record() {
    ///     println!("{}", record.mime_type);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn edit(&self, file_id: impl AsRef<str>, edit: Edit) -> Result<Reply<EditReply>> {
        let Edit { members, if_match } = edit;
        let mut request = self.file_request(Method::PATCH, file_id.as_ref(), &[])?;
        // Set first, because `json` sets a type only if there is none.
        request = request.header(CONTENT_TYPE, MERGE_PATCH).json(&members);
        if let Some(etag) = if_match {
            request = request.header(IF_MATCH, etag);
        }

        // An edit does not change the ETag, so the condition of a retry still holds.
        let reply: Reply<EditReply> = self.perform(Call::idempotent(request)).await?.reply()?;
        expect_same_id(file_id.as_ref(), reply.value.file_id())?;
        Ok(reply)
    }
}
