//! The client itself, and the plain endpoints.

pub(crate) mod builder;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use filestore_core::api::{
    DeleteFileResult, DeleteFilesReply, DeleteFilesRequest, DeleteReply, FileRecord, HealthReply,
    OrganizationId, PREFIX, ReadyReply, UsageReply,
};
use reqwest::header::IF_MATCH;
use reqwest::{Method, RequestBuilder, Url};

use builder::{ClientBuilder, Settings};

use crate::error::{Error, ErrorKind, Result};
use crate::transport::Call;
use crate::transport::reply::{JSON_LIMIT_BYTES, Reply, expect_same_id};
use crate::transport::retry::{Attempts, Repeat, RetryPolicy};

/// A connection pool to one filestore server. Cheap to clone; clones share the pool.
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
    /// For redirects: no key and no header of ours.
    bare: reqwest::Client,
    settings: Settings,
}

impl Client {
    /// Makes a client for the server at `base_url` with the defaults of [`ClientBuilder`], without
    /// an API key.
    ///
    /// ```
    /// let client = filestore_client::Client::new("http://127.0.0.1:8080")?;
    /// # Ok::<(), filestore_client::Error>(())
    /// ```
    pub fn new(base_url: impl AsRef<str>) -> Result<Self> {
        Self::builder(base_url)?.build()
    }

    /// Makes a client for the server that the environment names: `FILESTORE_URL` is its base URL,
    /// `FILESTORE_API_KEY` the key, if it needs one. Fails with [`ErrorKind::Invalid`] if there is
    /// no URL.
    ///
    /// ```no_run
    /// let client = filestore_client::Client::from_env()?;
    /// # Ok::<(), filestore_client::Error>(())
    /// ```
    pub fn from_env() -> Result<Self> {
        ClientBuilder::from_variables(|name| std::env::var(name).ok())?.build()
    }

    /// Starts a client for the server at `base_url`, which may hold a path prefix
    /// (`https://example.org/files`) and ends before `/api/v1`.
    pub fn builder(base_url: impl AsRef<str>) -> Result<ClientBuilder> {
        ClientBuilder::new(base_url.as_ref())
    }

    /// Returns a client whose transfers may stand still for `idle`. It shares the connections of this
    /// one.
    ///
    /// A limit on a call as a whole is `tokio::time::timeout` around its future: a call that is dropped
    /// is cancelled.
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

    /// Returns a client whose uploads wait for their reply for `reply` at most; see
    /// [`ClientBuilder::reply_timeout`]. It shares the connections of this one.
    #[must_use]
    pub fn with_reply_timeout(&self, reply: Duration) -> Self {
        self.with_settings(|settings| settings.reply_timeout = reply)
    }

    /// Returns a client that repeats failed calls by another policy. It shares the connections of this
    /// one.
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

    /// Reads the record of a file, with the ETag that [`Change::if_match`](crate::Change::if_match)
    /// takes. A deleted file still has one until it is purged.
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
        let reply: Reply<FileRecord> = self.perform(Call::repeatable(request)).await?.reply()?;
        expect_same_id(file_id.as_ref(), &reply.value.file_id)?;
        Ok(reply)
    }

    /// Deletes a file: the file is unreadable at once, and its bytes are purged in the background. A
    /// second call answers the same until the record is gone, then [`ErrorKind::NotFound`].
    ///
    /// A deletion whose reply is lost is repeated. If the file is gone by then, that is a success: its
    /// reply has `purge_pending` false, and a storage location of `UNKNOWN`.
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
        let mut attempts = Attempts::new(self.settings().retry, Repeat::Always);
        match self.attempt(Call::repeatable(request), &mut attempts).await {
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

    /// Deletes a file only if it still has this ETag, else [`ErrorKind::PreconditionFailed`]. A second
    /// call answers as one of [`delete`](Self::delete) does.
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

    /// Deletes up to 1000 files, each for itself. The results come in the order of the ids, and say of
    /// each that is not deleted why; a second call answers as for [`delete`](Self::delete).
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// for result in client.delete_many(["01JD0000000000000000000000"]).await? {
    ///     if let Some(error) = result.error {
    ///         eprintln!("{} stays: {}", result.id, error.detail);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_many(
        &self,
        file_ids: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Vec<DeleteFileResult>> {
        let body = DeleteFilesRequest::new(file_ids);
        let request = self.request(Method::POST, &["files", "delete"]).json(&body);
        let reply: DeleteFilesReply = self.json(Call::repeatable(request)).await?;
        if reply.results.len() != body.ids.len() {
            return Err(Error::protocol("the reply has another number of results than ids"));
        }
        Ok(reply.results)
    }

    /// Takes a deletion back. [`ErrorKind::Conflict`] once the purge has claimed the file.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let record = client.restore("01JD0000000000000000000000").await?;
    /// assert_eq!(record.purge_status, None);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn restore(&self, file_id: impl AsRef<str>) -> Result<FileRecord> {
        let request = self.file_request(Method::POST, file_id.as_ref(), &["restore"])?;
        // A file that is not deleted is restored already.
        let record: FileRecord = self.json(Call::repeatable(request)).await?;
        expect_same_id(file_id.as_ref(), &record.file_id)?;
        Ok(record)
    }

    /// Counts the files and bytes that an organization stores, by location, beside its quotas.
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
        self.json(Call::repeatable(self.request(Method::GET, &path))).await
    }

    /// Asks if the server's process answers.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// println!("{}", client.health().await?.message);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn health(&self) -> Result<HealthReply> {
        self.json(Call::repeatable(self.request(Method::GET, &["health-checks"]))).await
    }

    /// Asks if the server's database and storage work; [`ErrorKind::Busy`] if not. Never repeated.
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

    /// Starts a request without anything of ours, for a presigned URL.
    pub(crate) fn bare_request(&self, url: Url) -> RequestBuilder {
        self.inner.bare.get(url)
    }

    /// Starts a request to `/api/v1/<segments>`.
    pub(crate) fn request(&self, method: Method, segments: &[&str]) -> RequestBuilder {
        let mut url = self.settings().base.clone();
        url.path_segments_mut()
            .expect("the builder took only http URLs, which have a path")
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
        // Anything else could name another endpoint ("..", "upload/..").
        if file_id.is_empty() || !file_id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(Error::invalid(format!(
                "a file id has letters and digits only: {file_id:?}"
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
