//! The client itself, and the plain endpoints.

pub(crate) mod builder;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use filestore_core::api::{
    DeleteReply, FileRecord, HealthReply, OrganizationId, PREFIX, ReadyReply, RestoreReply,
    UsageReply,
};
use reqwest::header::IF_MATCH;
use reqwest::{Method, RequestBuilder, Url};

use builder::{ClientBuilder, Settings};

use crate::error::{Error, ErrorKind, Result};
use crate::transport::Call;
use crate::transport::reply::{JSON_LIMIT_BYTES, Reply, expect_same_id};
use crate::transport::retry::{Attempts, Retry, RetryPolicy};

/// A connection to one filestore server.
///
/// A client is cheap to clone, and clones share the connection pool. For example, upload, download
/// and delete a file:
///
/// ```no_run
/// use filestore_client::{Client, Item};
///
/// # async fn run() -> filestore_client::Result<()> {
/// let client = Client::new("http://127.0.0.1:8080")?;
/// let gallery = client.organization("42")?.sub_system("gallery")?;
/// let record = gallery.upload(Item::from_path("photo.jpg")?).await?;
/// client.download(&record.file_id).to_path("copy.jpg").await?;
/// client.delete(&record.file_id).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    http: reqwest::Client,
    /// For redirects, without the key and other headers.
    bare: reqwest::Client,
    settings: Settings,
}

impl Client {
    /// Creates a client for the server at `base_url`, with the defaults of [`ClientBuilder`] and
    /// without an API key.
    ///
    /// ```
    /// let client = filestore_client::Client::new("http://127.0.0.1:8080")?;
    /// # Ok::<(), filestore_client::Error>(())
    /// ```
    pub fn new(base_url: impl AsRef<str>) -> Result<Self> {
        Self::builder(base_url)?.build()
    }

    /// Creates a client from environment variables. The command line reads the same variables,
    /// except `FILESTORE_API_KEY`.
    ///
    /// | variable | value |
    /// |---|---|
    /// | `FILESTORE_URL` | The server's base URL. |
    /// | `FILESTORE_KEY` | API key (optional). The older name `FILESTORE_API_KEY` still works. |
    /// | `FILESTORE_KEY_FILE` | File that contains the API key, if no variable contains the key. |
    ///
    /// Fails with [`ErrorKind::Invalid`] if `FILESTORE_URL` is not set, or if the file contains no
    /// key.
    ///
    /// ```no_run
    /// let client = filestore_client::Client::from_env()?;
    /// # Ok::<(), filestore_client::Error>(())
    /// ```
    pub fn from_env() -> Result<Self> {
        ClientBuilder::from_variables(|name| std::env::var(name).ok())?.build()
    }

    /// Starts to configure a client for the server at `base_url`.
    ///
    /// The URL can have a path prefix, for example `https://example.org/files`. The URL does not
    /// contain `/api/v1`.
    pub fn builder(base_url: impl AsRef<str>) -> Result<ClientBuilder> {
        ClientBuilder::new(base_url.as_ref())
    }

    /// Returns a client with another idle timeout. The new client shares the connections with this
    /// client.
    ///
    /// To limit a whole call, wrap its future in `tokio::time::timeout`. If you drop the future,
    /// the client cancels the call.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let hasty = client.with_idle_timeout(Duration::from_secs(2));
    /// hasty.info("01JD0000000000000000000000").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_idle_timeout(&self, idle: Duration) -> Self {
        self.with_settings(|settings| settings.idle_timeout = idle)
    }

    /// Returns a client with another [reply timeout](ClientBuilder::reply_timeout). The new client
    /// shares this client's connections.
    #[must_use]
    pub fn with_reply_timeout(&self, reply: Duration) -> Self {
        self.with_settings(|settings| settings.reply_timeout = reply)
    }

    /// Returns a client with another retry policy. The new client shares the connections with this
    /// client.
    #[must_use]
    pub fn with_retry(&self, policy: RetryPolicy) -> Self {
        self.with_settings(|settings| settings.retry = policy)
    }

    fn with_settings(&self, change: impl FnOnce(&mut Settings)) -> Self {
        let Inner { http, bare, settings } = &*self.inner;
        let mut settings = settings.clone();
        change(&mut settings);
        Self::assemble(http.clone(), bare.clone(), settings)
    }

    /// Returns a file's record, with an ETag for
    /// [`Change::if_match`](crate::Change::if_match).
    ///
    /// A deleted file has a record until the purge removes the file.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let record = client.info("01JD0000000000000000000000").await?.value;
    /// println!("{} is {}", record.original_name, record.status);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn info(&self, file_id: impl AsRef<str>) -> Result<Reply<FileRecord>> {
        let request = self.file_request(Method::GET, file_id.as_ref(), &["info"])?;
        let reply: Reply<FileRecord> = self.perform(Call::idempotent(request)).await?.reply()?;
        expect_same_id(file_id.as_ref(), &reply.value.file_id)?;
        Ok(reply)
    }

    /// Deletes a file. The server hides the file at once and purges its bytes in the background.
    ///
    /// A second call has the same result. After the purge, it fails with [`ErrorKind::NotFound`].
    ///
    /// If the reply gets lost, the client retries. If the file is purged by then, the call
    /// succeeds, and the reply has `purge_pending: false` and the storage location `UNKNOWN`.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let reply = client.delete("01JD0000000000000000000000").await?;
    /// assert!(reply.deleted);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete(&self, file_id: impl AsRef<str>) -> Result<DeleteReply> {
        let file_id = file_id.as_ref();
        self.deleted(file_id, self.file_request(Method::DELETE, file_id, &[])?).await
    }

    async fn deleted(&self, file_id: &str, request: RequestBuilder) -> Result<DeleteReply> {
        let mut attempts = Attempts::new(self.settings().retry, Retry::Idempotent);
        match self.attempt(Call::idempotent(request), &mut attempts).await {
            Err(error) if error.kind() == ErrorKind::NotFound && attempts.lost_a_reply() => {
                Ok(DeleteReply::purged(file_id))
            }
            outcome => {
                let reply: DeleteReply = outcome?.json()?;
                expect_same_id(file_id, &reply.file_id)?;
                Ok(reply)
            }
        }
    }

    /// Deletes a file if it still has this ETag. Otherwise fails with
    /// [`ErrorKind::PreconditionFailed`].
    ///
    /// For a second call, see [`delete`](Self::delete).
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let id = "01JD0000000000000000000000";
    /// let etag = client.info(id).await?.etag.unwrap_or_default();
    /// client.delete_if_match(id, etag).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_if_match(
        &self,
        file_id: impl AsRef<str>,
        etag: impl AsRef<str>,
    ) -> Result<DeleteReply> {
        let file_id = file_id.as_ref();
        let request = self.file_request(Method::DELETE, file_id, &[])?;
        self.deleted(file_id, request.header(IF_MATCH, etag.as_ref())).await
    }

    /// Restores a deleted file. If the file is not deleted, the call succeeds without an effect.
    ///
    /// The reply contains the record if the key has the scope `read`. After the purge has started,
    /// the call fails with [`ErrorKind::Conflict`].
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let reply = client.restore("01JD0000000000000000000000").await?;
    /// if let Some(record) = reply.record() {
    ///     assert_eq!(record.purge_status, None);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn restore(&self, file_id: impl AsRef<str>) -> Result<RestoreReply> {
        let request = self.file_request(Method::POST, file_id.as_ref(), &["restore"])?;
        // A file that is not deleted is restored already.
        let reply: RestoreReply = self.json(Call::idempotent(request)).await?;
        expect_same_id(file_id.as_ref(), reply.file_id())?;
        Ok(reply)
    }

    /// Counts an organization's files and bytes by location, with its quotas.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let usage = client.usage("42").await?;
    /// println!("{} files, {} bytes", usage.files, usage.bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn usage<I>(&self, organization: I) -> Result<UsageReply>
    where
        I: TryInto<OrganizationId>,
        I::Error: Into<Error>,
    {
        let organization = organization.try_into().map_err(Into::into)?;
        let path = ["organizations", organization.as_str(), "usage"];
        self.json(Call::idempotent(self.request(Method::GET, &path))).await
    }

    /// Checks that the server answers.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// println!("{}", client.health().await?.message);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn health(&self) -> Result<HealthReply> {
        self.json(Call::idempotent(self.request(Method::GET, &["health-checks"]))).await
    }

    /// Checks that the server's database and storage work. Fails with [`ErrorKind::Busy`] if not.
    ///
    /// The client never retries this call.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// if let Err(error) = client.ready().await {
    ///     eprintln!("not yet: {error}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ready(&self) -> Result<ReadyReply> {
        let request = self.request(Method::GET, &["health-checks", "ready"]);
        let response = self.exchange(request, Some(self.settings().idle_timeout)).await?;
        if response.status() != reqwest::StatusCode::SERVICE_UNAVAILABLE {
            return self.finish(response, JSON_LIMIT_BYTES).await?.json();
        }

        let bytes = self.read_all(response, JSON_LIMIT_BYTES).await?;
        let message = match serde_json::from_slice(&bytes) {
            Ok(ReadyReply { database, storage, .. }) => {
                format!("the server is not ready: database {database}, storage {storage}")
            }
            Err(_) => "the server is not ready".to_owned(),
        };
        Err(Error::new(ErrorKind::Busy, message).with_status(503))
    }

    pub(crate) fn assemble(
        http: reqwest::Client,
        bare: reqwest::Client,
        settings: Settings,
    ) -> Self {
        Self { inner: Arc::new(Inner { http, bare, settings }) }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.inner.http
    }

    /// Starts a request without any header of the client, for a presigned URL.
    pub(crate) fn bare_request(&self, url: Url) -> RequestBuilder {
        self.inner.bare.get(url)
    }

    /// Starts a request to `/api/v1/<segments>`.
    pub(crate) fn request(&self, method: Method, segments: &[&str]) -> RequestBuilder {
        let mut url = self.settings().base.clone();
        url.path_segments_mut()
            .expect("the builder accepts only http URLs, which have a path")
            .pop_if_empty()
            .extend(PREFIX.split('/').skip(1))
            .extend(segments);
        self.inner.http.request(method, url).headers(self.settings().headers.clone())
    }

    /// Starts a request to `/api/v1/files/<file_id>/<rest>`.
    pub(crate) fn file_request(
        &self,
        method: Method,
        file_id: &str,
        rest: &[&str],
    ) -> Result<RequestBuilder> {
        // Other characters could address another endpoint ("..", "upload/..").
        if file_id.is_empty() || !file_id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(Error::invalid(format!(
                "a file id contains only letters and digits: {file_id:?}"
            )));
        }

        let mut segments = vec!["files", file_id];
        segments.extend(rest);
        Ok(self.request(method, &segments))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.settings().peer).finish_non_exhaustive()
    }
}
