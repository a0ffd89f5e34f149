//! The processes of the cluster.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use filestore_core::config::{MetadataPlace, PostgresConfig, ProviderConfig};
use filestore_server::Config;
use filestore_workspace::{Call, eventually_within};
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};

use crate::LONG;

/// What a server of the test is told.
pub(crate) struct Environment;

impl Environment {
    /// The time after which a server that was not seen is taken for gone.
    pub(crate) const SERVER_TIMEOUT: Duration = Duration::from_secs(3);

    const HOME: &str = "FILESTORE_TEST_CLUSTER_HOME";
    const NAME: &str = "FILESTORE_TEST_CLUSTER_NAME";
    const PORT: &str = "FILESTORE_TEST_CLUSTER_PORT";

    /// Reads the configuration of this process; `None` if it is not one of the servers.
    pub(crate) fn read() -> Option<Config> {
        let [home, name, port] =
            [Self::HOME, Self::NAME, Self::PORT].map(|name| std::env::var(name).ok());
        let mut config = Self::config(home?.as_ref(), &name?);
        config.listen = format!("127.0.0.1:{}", port?).parse().expect("an address");
        Some(config)
    }

    /// Makes the configuration of one of the servers.
    pub(crate) fn config(home: &Path, name: &str) -> Config {
        let address = std::env::var("FILESTORE_TEST_POSTGRES");
        let mut place = PostgresConfig::new(address.expect("tests/services/cluster/run sets it"));
        place.schema =
            format!("cluster_{}", fs::read_to_string(home.join("schema")).expect("a name"));
        place.server_timeout = Self::SERVER_TIMEOUT;

        let root = home.join("shared").to_str().expect("plain text").to_owned();
        let house = ProviderConfig::new("house".parse().expect("a code"), "fs");
        let mut config = Config::default();
        config.data_dir = home.join(name);
        config.store.metadata = MetadataPlace::Postgres(place);
        config.store.providers = vec![house.with_option("root", root).as_local_backend()];
        config
    }
}

/// One of the servers.
pub(crate) struct Backend {
    home: PathBuf,
    name: String,
    port: u16,
    process: Option<Child>,
}

impl Backend {
    pub(crate) fn new(home: &Path, number: usize) -> Self {
        fs::write(home.join("schema"), std::process::id().to_string()).expect("a file");
        let name = format!("server-{number}");
        Self { home: home.to_owned(), name, port: free_port(), process: None }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn start(&mut self) {
        let process = Command::new(std::env::current_exe().expect("this program"))
            .args(["--ignored", "--exact", "serves"])
            .env(Environment::HOME, &self.home)
            .env(Environment::NAME, &self.name)
            .env(Environment::PORT, self.port.to_string())
            .stdout(Stdio::null())
            .spawn();
        self.process = Some(process.expect("the process starts"));
    }

    /// Waits until the server says that it is ready.
    pub(crate) async fn is_ready(&self) {
        let url = format!("{}/api/v1/health-checks/ready", self.url());
        eventually_within(LONG, &format!("{} is ready", self.name), async || {
            let reply = Call::bare(Method::GET, &url).try_send().await.ok()?;
            (reply.status == 200).then_some(())
        })
        .await;
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it is ours");
            process.wait().expect("it ends");
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("it runs");
        let id = Pid::from_raw(process.id().try_into().expect("a process")).expect("a process");
        kill_process(id, signal).expect("it is ours");
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Lets the script that runs PostgreSQL do something with it.
pub(crate) fn database(action: &str) {
    let service = std::env::var("FILESTORE_TEST_POSTGRES_SERVICE").expect("the script's name");
    let status = Command::new(service).arg(action).stdout(Stdio::null()).status();
    assert!(status.expect("the script runs").success(), "{action}");
}

/// nginx before the servers.
pub(crate) struct Nginx {
    process: Child,
    pub(crate) url: String,
}

impl Nginx {
    /// Starts it with the directives that the shipped file has, but for TLS and the path.
    pub(crate) fn before(home: &Path, servers: &[Backend]) -> Self {
        let (port, dir) = (free_port(), home.display());
        let mut upstream = String::new();
        for server in servers {
            write!(upstream, "server 127.0.0.1:{} max_fails=0; ", server.port).expect("a string");
        }
        let text = format!(
            "daemon off; pid {dir}/nginx.pid; error_log {dir}/nginx.log; events {{}}
             http {{ access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
             fastcgi_temp_path {dir}/1; uwsgi_temp_path {dir}/2; scgi_temp_path {dir}/3;
             upstream filestore {{ {upstream} keepalive 64; }}
             server {{ listen 127.0.0.1:{port}; location / {{
             proxy_pass http://filestore; proxy_http_version 1.1; proxy_set_header Connection \"\";
             proxy_set_header Host $host:{port}; client_max_body_size 0; proxy_request_buffering off;
             proxy_buffering off; proxy_read_timeout 90s; proxy_send_timeout 90s; proxy_connect_timeout 5s;
             proxy_next_upstream off; }} }} }}"
        );
        let file = home.join("nginx.conf");
        fs::write(&file, text).expect("a file");
        let process = Command::new("nginx").arg("-q").arg("-c").arg(file).spawn();
        Self { process: process.expect("nginx starts"), url: format!("http://127.0.0.1:{port}") }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It ends its workers, as it would not if it were killed.
        let id = Pid::from_raw(self.process.id().try_into().expect("a process"));
        let _ = kill_process(id.expect("a process"), Signal::TERM);
        let _ = self.process.wait();
    }
}

/// Returns a port on which nobody listens, none of those that the kernel hands out: a server that was killed must
/// find it free when it comes back.
fn free_port() -> u16 {
    static USED: Mutex<Vec<u16>> = Mutex::new(Vec::new());

    let seed = std::process::id() % 10_000;
    let mut port = 10_000 + u16::try_from(seed).expect("below ten thousand");
    let mut used = USED.lock().expect("nobody panics with it");
    while used.contains(&port) || TcpListener::bind(("127.0.0.1", port)).is_err() {
        port += 1;
    }
    used.push(port);
    port
}
