//! The servers, as processes, and the database.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use filestore_core::StoreConfig;
use filestore_core::config::{BackupDestination, MetadataPlace, PostgresConfig};
use filestore_core::internals::tasks::sabotage::{Plan, arm};
use filestore_core::internals::tasks::step::Step;
use filestore_server::{Auth, Config};
use filestore_workspace::{Call, eventually};
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};

use crate::garage::Bucket;

/// The configuration that is shipped, which the servers of the test have.
const SHIPPED: &str = include_str!("../../filestore-server/deploy/compose/filestore.toml");

/// The destinations of snapshots: a directory that all servers see, and the store of objects.
pub(crate) const NEAR: &str = "near";
pub(crate) const FAR: &str = "far";

/// What a server of the test is told.
pub(crate) struct Environment;

impl Environment {
    /// The time after which a server that was not seen is taken for gone.
    pub(crate) const SERVER_TIMEOUT: Duration = Duration::from_secs(3);

    const HOME: &str = "FILESTORE_TEST_CLUSTER_HOME";
    const NAME: &str = "FILESTORE_TEST_CLUSTER_NAME";
    const PORT: &str = "FILESTORE_TEST_CLUSTER_PORT";
    const OBJECTS: &str = "FILESTORE_TEST_CLUSTER_OBJECTS";
    const DIE_AT: &str = "FILESTORE_TEST_CLUSTER_DIE_AT";

    /// Reads the configuration of this process; `None` if it is not one of the servers.
    pub(crate) fn read() -> Option<Config> {
        let [home, name, port, objects] = [Self::HOME, Self::NAME, Self::PORT, Self::OBJECTS]
            .map(|name| std::env::var(name).ok());
        let home = PathBuf::from(home?);
        let mut config = Self::config(&home, &name?, &objects?);
        config.listen = format!("127.0.0.1:{}", port?).parse().expect("an address");
        Some(config)
    }

    /// Lets this process die at the step that it was told, if it was told one.
    pub(crate) fn arm() {
        let Ok(name) = std::env::var(Self::DIE_AT) else { return };
        let step = Step::ALL.iter().find(|step| step.name() == name).expect("a step");
        arm(Plan { kill_at: Some((*step, 0)), ..Plan::default() });
    }

    /// Makes the configuration of a server whose records come back into a schema of their own.
    pub(crate) fn restored(home: &Path, objects: &str) -> Config {
        let mut config = Self::config(home, "restored", objects);
        postgres(&mut config.store).schema.push_str("_restored");
        config
    }

    /// Makes the configuration of one of the servers: the shipped one, but for the address, the keys, the data
    /// directory, a schema of the test's own, destinations of snapshots, webhooks of this machine, and a shorter time
    /// until a server is taken for gone. `name` may have a number behind a dot, that of the process.
    pub(crate) fn config(home: &Path, name: &str, objects: &str) -> Config {
        let mut store = Self::store(name, objects);
        let place = postgres(&mut store);
        place.schema =
            format!("cluster_{}", fs::read_to_string(home.join("schema")).expect("a name"));
        place.server_timeout = Self::SERVER_TIMEOUT;
        let far = store.providers.first().expect("the shipped configuration has Garage");
        store.backup_destinations = vec![
            BackupDestination::new(NEAR, home.join(NEAR)),
            BackupDestination::new(FAR, far.code.clone()),
        ];
        // The endpoint of the test is on this machine.
        store.webhooks.allow_http = true;
        store.webhooks.allow = vec!["127.0.0.0/8".to_owned()];

        let mut config = Config::from_toml(&Self::without_variables()).expect("it is valid");
        // The load is about files, not about keys.
        config.auth = Auth::Auto;
        config.data_dir = home.join(name.split('.').next().expect("a name"));
        config.store = store;
        config
    }

    /// Reads the store's part of the shipped file, as an environment of compose fills it.
    fn store(name: &str, objects: &str) -> StoreConfig {
        let address = std::env::var("FILESTORE_TEST_POSTGRES");
        let address = address.expect("tests/services/cluster/run sets it");
        let (user, place) = address.split_once('@').expect("a user");
        let (user, password) = user.rsplit_once(':').expect("a password");
        let bucket = Bucket::read();

        let store = StoreConfig::from_toml(SHIPPED, |variable| {
            Some(match variable {
                "FILESTORE_DATABASE" => format!("{user}@{place}?application_name={name}"),
                "FILESTORE_DATABASE_PASSWORD" => password.to_owned(),
                "FILESTORE_GARAGE" => objects.to_owned(),
                "FILESTORE_GARAGE_BUCKET" => bucket.name.clone(),
                "FILESTORE_GARAGE_KEY_ID" => bucket.key_id.clone(),
                "FILESTORE_GARAGE_SECRET" => bucket.secret.clone(),
                _ => return None,
            })
        });
        store.expect("the shipped configuration is valid")
    }

    /// Returns the shipped file for the server's own part of it, which names no variable.
    fn without_variables() -> String {
        SHIPPED
            .replace("${FILESTORE_DATABASE}", "postgres://u@127.0.0.1/d")
            .replace("${FILESTORE_DATABASE_PASSWORD}", "")
            .replace("${FILESTORE_GARAGE}", "http://127.0.0.1")
            .replace("${FILESTORE_GARAGE_BUCKET}", "b")
            .replace("${FILESTORE_GARAGE_KEY_ID}", "k")
            .replace("${FILESTORE_GARAGE_SECRET}", "s")
    }

    /// Returns the most connections that the shipped configuration lets a server have.
    pub(crate) fn connections() -> usize {
        postgres(&mut Self::store("none", "http://127.0.0.1")).connections
    }
}

fn postgres(store: &mut StoreConfig) -> &mut PostgresConfig {
    match &mut store.metadata {
        MetadataPlace::Postgres(place) => place,
        other => panic!("the shipped configuration names PostgreSQL, not {other:?}"),
    }
}

/// One of the servers.
pub(crate) struct Backend {
    home: PathBuf,
    name: String,
    port: u16,
    /// The number of processes that were started.
    starts: usize,
    process: Option<Child>,
}

impl Backend {
    pub(crate) fn new(home: &Path, number: usize) -> Self {
        fs::write(home.join("schema"), std::process::id().to_string()).expect("a file");
        fs::create_dir_all(home.join(NEAR)).expect("a directory");
        let name = format!("server-{number}");
        Self { home: home.to_owned(), name, port: free_port(), starts: 0, process: None }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    pub(crate) fn start(&mut self, objects: &str) {
        self.start_with(objects, |_| {});
    }

    /// Starts a process that dies when it comes to a step.
    pub(crate) fn start_to_die(&mut self, objects: &str, step: Step) {
        self.start_with(objects, |command| {
            command.env(Environment::DIE_AT, step.name());
        });
    }

    fn start_with(&mut self, objects: &str, tell: impl FnOnce(&mut Command)) {
        self.starts += 1;
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--ignored", "--exact", "serves"])
            .env(Environment::HOME, &self.home)
            .env(Environment::NAME, format!("{}.{}", self.name, self.starts))
            .env(Environment::PORT, self.port.to_string())
            .env(Environment::OBJECTS, objects)
            .stdout(Stdio::null());
        tell(&mut command);
        self.process = Some(command.spawn().expect("the process starts"));
    }

    /// Waits until the process has died by itself.
    pub(crate) async fn has_ended(&mut self) {
        let mut process = self.process.take().expect("it was started");
        let what = format!("{} dies", self.name);
        eventually(&what, async || process.try_wait().expect("it is ours")).await;
    }

    /// Waits until the server says that it is ready.
    pub(crate) async fn is_ready(&self) {
        let url = format!("{}/api/v1/health-checks/ready", self.url());
        eventually(&format!("{} is ready", self.name), async || {
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

/// Returns a port on which nobody listens, none of those that the kernel hands out: a server that was killed must
/// find it free when it comes back.
pub(crate) fn free_port() -> u16 {
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
