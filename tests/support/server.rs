//! A whole server in this process, with a data directory of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use filestore_core::FileStore;
use filestore_core::api::FileRecord;
use filestore_server::{Config, Server};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use tempfile::TempDir;

use crate::call::{Call, Reply};
use crate::{HANG, eventually};

/// The default configuration on a port of its own, changed by `adjust`.
fn adjusted(adjust: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::default();
    config.listen = "127.0.0.1:0".parse().expect("an address");
    // Tests look at the purge itself. Those about the wait set it.
    config.store.purge_grace = Duration::ZERO;
    adjust(&mut config);
    config
}

/// Lets a server keep its records in the PostgreSQL server of `FILESTORE_TEST_POSTGRES`, if that is set, in a
/// schema of its directory's own.
#[cfg(feature = "postgres")]
fn keep_records_in_postgres(config: &mut Config, dir: &Path) {
    use filestore_core::config::MetadataPlace;

    let Ok(address) = std::env::var("FILESTORE_TEST_POSTGRES") else { return };
    if config.store.metadata != MetadataPlace::Sqlite {
        return;
    }
    let name = dir.file_name().expect("a temporary directory has a name");
    let name = hex::encode(name.as_encoded_bytes());
    let schema = format!("http_{}_{name}", std::process::id());

    let mut place = filestore_core::config::PostgresConfig::new(address);
    place.schema = schema;
    place.connections = 6;
    place.only_server = true;
    config.store.metadata = MetadataPlace::Postgres(place);
}

/// Servers that share their records and their files, each with a data directory of its own.
#[cfg(feature = "postgres")]
pub struct Servers {
    /// The servers.
    pub all: Vec<TestServer>,
    _shared: TempDir,
}

#[cfg(feature = "postgres")]
impl Servers {
    /// Starts so many servers beside the PostgreSQL server of `FILESTORE_TEST_POSTGRES`; `None` without one.
    pub async fn start(number: usize) -> Option<Self> {
        Self::start_with(number, |_| ()).await
    }

    /// Starts servers whose configuration `adjust` has changed.
    pub async fn start_with(number: usize, adjust: impl Fn(&mut Config)) -> Option<Self> {
        use filestore_core::config::ProviderConfig;

        std::env::var("FILESTORE_TEST_POSTGRES").ok()?;
        let shared = tempfile::tempdir().expect("a temporary directory");
        let mut all = Vec::new();
        for _ in 0..number {
            let server = TestServer::start_with(|config| {
                keep_records_in_postgres(config, shared.path());
                let place = &mut config.store.metadata;
                if let filestore_core::config::MetadataPlace::Postgres(place) = place {
                    place.only_server = false;
                }
                let root = shared.path().to_str().expect("a temporary directory is plain text");
                let house = ProviderConfig::new("house".parse().expect("a code"), "fs");
                config.store.providers = vec![house.with_option("root", root).as_local_backend()];
                adjust(config);
            });
            all.push(server.await);
        }
        Some(Self { all, _shared: shared })
    }
}

/// A running server. Dropping it drops the server and removes the directory; [`TestServer::stop`]
/// and [`TestServer::restart`] stop it as a signal would.
pub struct TestServer {
    server: Server,
    config: Config,
    http: reqwest::Client,
    dir: TempDir,
    records: Records,
}

/// The place of a server's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Records {
    /// PostgreSQL, where the tests are run beside one; else SQLite.
    Anywhere,
    /// SQLite, whose file the test opens by hand.
    InSqlite,
}

impl TestServer {
    /// Starts a server with the default configuration on a port of its own.
    pub async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    /// Starts a server whose configuration `adjust` has changed.
    pub async fn start_with(adjust: impl FnOnce(&mut Config)) -> Self {
        Self::start_on(tempfile::tempdir().expect("a temporary directory"), adjust).await
    }

    /// Starts a server whose deleted files stay as they are: nothing is purged for a day, as by default.
    pub async fn start_without_purge() -> Self {
        let grace = Config::default().store.purge_grace;
        Self::start_with(|config| config.store.purge_grace = grace).await
    }

    /// Starts a server on what is in `dir` already: its data directory is `dir/data`.
    pub async fn start_on(dir: TempDir, adjust: impl FnOnce(&mut Config)) -> Self {
        let is_sqlite = dir.path().join("data/metadata.sqlite3").exists();
        let records = if is_sqlite { Records::InSqlite } else { Records::Anywhere };
        Self::start_in(dir, adjusted(adjust), records).await
    }

    /// Starts a server whose records are in SQLite, whatever others use: for a test that opens its file by
    /// hand, or takes a snapshot of it.
    pub async fn start_with_sqlite(adjust: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        Self::start_in(dir, adjusted(adjust), Records::InSqlite).await
    }

    async fn start_in(dir: TempDir, mut config: Config, records: Records) -> Self {
        config.data_dir = dir.path().join("data");
        #[cfg(feature = "postgres")]
        if records == Records::Anywhere {
            keep_records_in_postgres(&mut config, dir.path());
        }
        // Boxed: a store in PostgreSQL opens by a large future.
        let server = Box::pin(Server::start(config.clone())).await.expect("the server starts");
        let http = http_client(HANG, HeaderMap::new());
        Self { server, config, http, dir, records }
    }

    /// Waits up to `patience` for each reply, until it is restarted: for what takes long by itself and
    /// several times as long on a busy machine.
    #[must_use]
    pub fn patient(mut self, patience: Duration) -> Self {
        self.http = http_client(patience, HeaderMap::new());
        self
    }

    /// Shows `key` with each request, until it is restarted.
    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        let shown = format!("Bearer {key}").parse().expect("a key is plain text");
        let headers = HeaderMap::from_iter([(AUTHORIZATION, shown)]);
        self.http = http_client(HANG, headers);
        self
    }

    /// Stops the server gracefully.
    pub async fn stop(self) {
        self.server.stop().await;
    }

    /// Stops it gracefully and starts another server on the same data directory.
    pub async fn restart(self) -> Self {
        self.server.stop().await;
        Self::start_in(self.dir, self.config, self.records).await
    }

    /// Like [`TestServer::restart`], with a configuration that `adjust` has changed.
    pub async fn restart_with(mut self, adjust: impl FnOnce(&mut Config)) -> Self {
        adjust(&mut self.config);
        // Two servers are a large future.
        Box::pin(self.restart()).await
    }

    /// Stops it gracefully and hands over its data directory.
    pub async fn into_dir(self) -> TempDir {
        self.server.stop().await;
        self.dir
    }

    /// The address of its metrics alone, if one is configured.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.server.metrics_addr()
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// The URL of `path`, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr())
    }

    /// The typed client, pointed at this server.
    pub fn client(&self) -> filestore_client::Client {
        filestore_client::Client::builder(self.url(""))
            .expect("a base URL")
            .build()
            .expect("a client")
    }

    /// The store behind it, for what has no endpoint: running the workers now.
    pub fn store(&self) -> &FileStore {
        self.server.store()
    }

    /// Returns the server's data directory.
    pub fn data_dir(&self) -> &Path {
        &self.config.data_dir
    }

    /// Begins a request with any method.
    pub fn call(&self, method: Method, path: &str) -> Call {
        Call::new(self.http.request(method, self.url(path)))
    }

    /// Begins a GET request.
    pub fn get(&self, path: &str) -> Call {
        self.call(Method::GET, path)
    }

    /// Begins a HEAD request.
    pub fn head(&self, path: &str) -> Call {
        self.call(Method::HEAD, path)
    }

    /// Begins a POST request.
    pub fn post(&self, path: &str) -> Call {
        self.call(Method::POST, path)
    }

    /// Begins a PUT request.
    pub fn put(&self, path: &str) -> Call {
        self.call(Method::PUT, path)
    }

    /// A GET request for a file's bytes.
    pub fn content(&self, file_id: &str) -> Call {
        self.get(&format!("/api/v1/files/{file_id}"))
    }

    /// A GET request for a square variant.
    pub fn variant(&self, file_id: &str, size: u32) -> Call {
        self.get(&format!("/api/v1/files/{file_id}/{size}/{size}"))
    }

    /// Asks for a file's record.
    pub async fn info(&self, file_id: &str) -> Reply {
        self.get(&format!("/api/v1/files/{file_id}/info")).send().await
    }

    /// A file's record, which must be there.
    pub async fn record(&self, file_id: &str) -> FileRecord {
        self.info(file_id).await.expect(200).record()
    }

    /// Deletes a file over HTTP.
    pub async fn delete(&self, file_id: &str) -> Reply {
        self.call(Method::DELETE, &format!("/api/v1/files/{file_id}")).send().await
    }

    /// Takes a deletion back.
    pub async fn restore(&self, file_id: &str) -> Reply {
        self.post(&format!("/api/v1/files/{file_id}/restore")).send().await
    }

    /// The ids of all files of organization `acme`, newest first, page by page.
    pub async fn listed(&self) -> Vec<String> {
        self.listed_of("acme").await
    }

    /// Counts the files in staging.
    pub fn staged(&self) -> usize {
        crate::files_under(&self.data_dir().join("staging")).len()
    }

    /// Waits until staging is empty: a blob gets its final name, and bytes that were refused go, a little
    /// after the reply.
    pub async fn wait_for_empty_staging(&self) {
        eventually("an empty staging", async || (self.staged() == 0).then_some(())).await;
    }

    /// The ids of all files of an organization, newest first, page by page.
    pub async fn listed_of(&self, organization: &str) -> Vec<String> {
        let mut ids = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/api/v1/files?organization_id={organization}&limit=1000{cursor}");
            let page = self.get(&path).send().await.expect(200).json();
            for item in page["items"].as_array().expect("items") {
                ids.push(item["file_id"].as_str().expect("a file_id").to_owned());
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return ids,
            }
        }
    }
}

impl std::fmt::Debug for TestServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestServer").field("addr", &self.addr()).finish_non_exhaustive()
    }
}

/// Asks this machine, follows no redirect, and waits `patience` for each whole reply.
fn http_client(patience: Duration, headers: HeaderMap) -> reqwest::Client {
    crate::http_client()
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .timeout(patience)
        .build()
        .expect("an HTTP client")
}
