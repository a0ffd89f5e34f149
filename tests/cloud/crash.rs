//! kill -9 while files go to their provider: nothing acknowledged is lost, and no object is left that no
//! record refers to.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use filestore_core::api::ListReply;
use filestore_core::config::OptionValue;
use filestore_server::{Config, Server};
use filestore_workspace::fixtures::noise;
use filestore_workspace::{Call, Form, Remote, S3Server, eventually, sha256_hex};
use reqwest::Method;
use serde_json::json;

const DATA_DIR: &str = "FILESTORE_CLOUD_CRASH_DATA";
const ENDPOINT: &str = "FILESTORE_CLOUD_CRASH_ENDPOINT";
const ROOT: &str = "FILESTORE_CLOUD_CRASH_ROOT";
const KEYS: &str = "FILESTORE_CLOUD_CRASH_KEYS";
const ROLE: &str = "FILESTORE_CLOUD_CRASH_ROLE";

/// The part that the provider has for the server that is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The provider that bindings name.
    Provider,
    /// The backend of LOCAL.
    Backend,
}

/// Longer than a request of a process that was killed can be on its way within this machine.
const GRACE: Duration = Duration::from_secs(2);

/// The server of the other test, in a process of its own. Does nothing in an ordinary run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_until_killed() {
    let Ok(data_dir) = std::env::var(DATA_DIR) else { return };
    let given = |name: &str| std::env::var(name).expect("the parent sets it");
    let keys = given(KEYS);
    let [region, bucket, access_key, secret_key, code] = keys.split(' ').collect::<Vec<_>>()[..]
    else {
        panic!("{KEYS}: {keys}")
    };

    let mut provider = Remote::s3(&given(ENDPOINT), region, bucket, access_key, secret_key).config;
    provider = provider.with_option("root", OptionValue::Text(given(ROOT)));
    provider.code = code.parse().expect("a code");
    // What a kill leaves is waited for as long as an attempt may last.
    (provider.timeout, provider.io_timeout) = (Duration::from_secs(10), Duration::from_secs(3));
    if given(ROLE) == format!("{:?}", Role::Backend) {
        provider = provider.as_local_backend();
    }

    let mut config = Config::new("127.0.0.1:0".parse().expect("an address"), data_dir);
    config.store.providers = vec![provider];
    config.check_providers = false;
    config.store.blob_grace = GRACE;
    config.store.purge_grace = Duration::ZERO;
    config.store.sync.first_pause = Duration::from_millis(20);

    let server = Server::start(config).await.expect("the server starts");
    println!("\nhttp://{}", server.local_addr());
    std::future::pending::<()>().await;
}

struct Process {
    child: Child,
    url: String,
}

impl Process {
    fn start(data_dir: &Path, s3: &S3Server, remote: &Remote, role: Role) -> Self {
        let OptionValue::Text(root) = &remote.config.options["root"] else {
            panic!("a root is text")
        };

        let keys =
            [s3.region(), s3.bucket(), s3.access_key(), s3.secret_key(), remote.code()].join(" ");
        let mut child = Command::new(std::env::current_exe().expect("this test's binary"))
            .args(["--exact", "crash::serve_until_killed", "--nocapture"])
            .env(DATA_DIR, data_dir)
            .env(ENDPOINT, s3.endpoint())
            .env(ROOT, root)
            .env(KEYS, keys)
            .env(ROLE, format!("{role:?}"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");

        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let url = lines.find_map(|line| line.ok().filter(|line| line.starts_with("http://")));
        Self { child, url: url.expect("it says where it listens") }
    }

    fn kill(mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be awaited");
    }

    fn call(&self, method: Method, path: &str) -> Call {
        Call::bare(method, &format!("{}/api/v1{path}", self.url))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The contents that each file may have: the one acknowledged last, and those sent since.
type Known = HashMap<String, Vec<String>>;

/// Uploads and replaces until the server is gone.
async fn load(url: String, organization: &str, seed: u64) -> Known {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut known = Known::new();
    loop {
        let bytes = noise(random.u64(..), random.usize(1..20_000));
        let sum = sha256_hex(&bytes);
        let old =
            known.keys().nth(random.usize(..known.len().max(1))).cloned().filter(|_| random.bool());
        let form = match &old {
            Some(id) => Form::new().text("file_id", id),
            None => Form::new().text("organization_id", organization).text("sub_system", "crash"),
        };
        let method = if old.is_some() { Method::PUT } else { Method::POST };
        if let Some(id) = &old {
            known.get_mut(id).expect("it is known").push(sum.clone());
        }
        let call = Call::bare(method, &format!("{url}/api/v1/files/upload"))
            .form(form.bytes("file", &bytes));
        let Ok(reply) = call.try_send().await else { return known };
        match (reply.status, old) {
            (200, Some(id)) => drop(known.insert(id, vec![sum])),
            (201, None) => drop(known.insert(reply.file_id(), vec![sum])),
            (status, _) => panic!("{status}: {}", reply.text()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_kills_and_nothing_else_is_left_at_the_provider() {
    survives_kills(Role::Provider).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_kills_and_nothing_else_is_left_at_the_backend() {
    survives_kills(Role::Backend).await;
}

async fn survives_kills(role: Role) {
    let seed = std::env::var("FILESTORE_CRASH_SEED")
        .map_or_else(|_| fastrand::u64(..), |text| text.parse().expect("a number"));
    println!("FILESTORE_CRASH_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let s3 = S3Server::start().await;
    let remote = Remote::at(&s3);
    let home = tempfile::tempdir().expect("a temporary directory");
    let data_dir = home.path().join("data");

    let mut known = Known::new();
    for round in 0..4 {
        let server = Process::start(&data_dir, &s3, &remote, role);
        if round == 0 && role == Role::Provider {
            bind(&server, &remote).await;
        }
        known.extend(load_until_killed(server, &mut random).await);
    }
    assert!(known.len() > 10, "the load stored only {} files", known.len());

    let server = Process::start(&data_dir, &s3, &remote, role);
    every_file_rests(&server).await;
    let mut keys = read_everything(&server, &mut known, role).await;
    assert_eq!(known.keys().collect::<Vec<_>>(), Vec::<&String>::new(), "acknowledged and gone");

    keys.sort();
    eventually("only what records refer to is left", async || {
        server.call(Method::POST, "/admin/purge/run").send().await.expect(200);
        (remote.objects().await == keys).then_some(())
    })
    .await;
}

/// Binds the organizations of the load: 7 stores locally first, 8 writes through.
async fn bind(server: &Process, remote: &Remote) {
    for (number, sync) in [(7, true), (8, false)] {
        let binding = json!({
            "organizationId": number,
            "organizationName": "x",
            "storageProvider": remote.code(),
            "syncEnabled": sync,
        });
        let create = server.call(Method::POST, "/organization-storage-bindings/create");
        create.json(&binding).send().await.expect(201);
    }
}

/// Kills the server under load, and returns the files that were acknowledged before.
async fn load_until_killed(server: Process, random: &mut fastrand::Rng) -> Known {
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let organization = if worker % 2 == 0 { "7" } else { "8" };
            tokio::spawn(load(server.url.clone(), organization, random.u64(..)))
        })
        .collect();

    // Not a wait for anything: the moment of the kill is what varies.
    tokio::time::sleep(Duration::from_millis(random.u64(300..1500))).await;
    server.kill();

    let mut known = Known::new();
    for worker in workers {
        known.extend(worker.await.expect("the load does not panic"));
    }
    known
}

async fn every_file_rests(server: &Process) {
    eventually("every file rests", async || {
        let status = server.call(Method::GET, "/admin/sync/status").send().await.expect(200).json();
        (status["pending"] == 0 && status["syncing"] == 0).then_some(())
    })
    .await;
}

/// Reads every file as it is served, takes it from `known`, and returns the keys of their objects.
async fn read_everything(server: &Process, known: &mut Known, role: Role) -> Vec<String> {
    let mut keys = Vec::new();
    for organization in ["7", "8"] {
        let path = format!("/files?organization_id={organization}&limit=1000");
        let page = server.call(Method::GET, &path).send().await.expect(200);
        let page: ListReply = serde_json::from_slice(&page.body).expect("a page");
        assert!(page.next_cursor.is_none());

        for record in page.items {
            let path = format!("/files/{}", record.file_id);
            let reply = server.call(Method::GET, &path).send().await;
            let found = match role {
                Role::Provider => Call::bare(Method::GET, reply.expect(302).only("location")),
                Role::Backend => server.call(Method::GET, &path),
            };
            let found = found.send().await.expect(200);
            assert_eq!(sha256_hex(&found.body), record.sha256);

            if let Some(sums) = known.remove(&record.file_id) {
                let id = &record.file_id;
                assert!(sums.contains(&record.sha256), "{id} holds what was never its content");
            }
            keys.push(record.file_path);
        }
    }
    keys
}
