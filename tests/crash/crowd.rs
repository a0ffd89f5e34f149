//! A crowd: 64 writers, 64 readers and an administrator at once. Nobody meets a locked database, and the
//! log of the database stays bounded.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Args;
use fastrand::Rng;
use reqwest::multipart::{Form, Part};

use crate::child::Child;
use crate::content;

#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// The length of the run in seconds
    #[arg(long, default_value_t = 120)]
    secs: u64,
}

/// Writers, and as many readers.
const EACH: usize = 64;

/// The longest log: 64 MiB, after which the writer waits for readers a moment, and as much again for what
/// comes meanwhile.
const LONGEST_LOG: u64 = 128 << 20;

/// Some of the newest files, which readers choose from.
#[derive(Default)]
struct Files(Mutex<Vec<String>>);

/// The number of files that are kept for readers.
const KEPT: usize = 1000;

impl Files {
    fn add(&self, id: String) {
        let mut ids = self.0.lock().expect("nobody panics");
        if ids.len() >= KEPT {
            ids.swap_remove(0);
        }
        ids.push(id);
    }

    fn some(&self, random: &mut Rng) -> Option<String> {
        random.choice(&*self.0.lock().expect("nobody panics")).cloned()
    }
}

/// What the crowd shares.
struct Crowd {
    url: String,
    http: reqwest::Client,
    files: Files,
    until: Instant,
    tags: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
}

/// Lets the crowd at one server, and prints what it did.
pub(crate) async fn run(options: Options) -> ExitCode {
    let home = tempfile::tempdir().expect("a temporary directory");
    let server = Child::start(home.path());
    let crowd = Arc::new(Crowd {
        url: format!("{}/api/v1/files", server.url),
        http: filestore_workspace::http_client().build().expect("an HTTP client"),
        files: Files::default(),
        until: Instant::now() + Duration::from_secs(options.secs),
        tags: AtomicU64::new(1),
        written: AtomicU64::new(0),
        read: AtomicU64::new(0),
    });

    let mut tasks = Vec::new();
    for number in 0..EACH {
        tasks.push(tokio::spawn(Arc::clone(&crowd).write(Rng::with_seed(number as u64))));
        tasks.push(tokio::spawn(Arc::clone(&crowd).read(Rng::with_seed(number as u64))));
    }
    let (longest, calls) = administrate(&crowd, &server.data_dir).await;
    for task in tasks {
        task.await.expect("no request fails");
    }

    server.stop();
    let (written, read) = (&crowd.written, &crowd.read);
    println!("{:>10}  changes", written.load(Ordering::SeqCst));
    println!("{:>10}  reads", read.load(Ordering::SeqCst));
    println!("{calls:>10}  administrative calls");
    println!("{longest:>10}  bytes of the log at most");
    assert!(longest < LONGEST_LOG, "the log of the database grew to {longest} bytes");
    ExitCode::SUCCESS
}

impl Crowd {
    async fn write(self: Arc<Self>, mut random: Rng) {
        while Instant::now() < self.until {
            let tag = self.tags.fetch_add(1, Ordering::SeqCst);
            let form = Form::new()
                .text("organization_id", "acme")
                .text("sub_system", "crowd")
                .part("file", Part::bytes(content::of(tag)).file_name("content"));
            let reply = self.http.post(format!("{}/upload", self.url)).multipart(form).send().await;
            let reply = reply.expect("the server answers");
            assert_eq!(reply.status(), 201);
            let record: serde_json::Value = reply.json().await.expect("a record");
            let id = record["file_id"].as_str().expect("an id").to_owned();

            if random.u8(..4) == 0 {
                let deleted = self.http.delete(format!("{}/{id}", self.url)).send().await;
                assert_eq!(deleted.expect("the server answers").status(), 200);
            } else {
                self.files.add(id);
            }
            self.written.fetch_add(1, Ordering::SeqCst);
        }
    }

    async fn read(self: Arc<Self>, mut random: Rng) {
        while Instant::now() < self.until {
            let Some(id) = self.files.some(&mut random) else {
                tokio::task::yield_now().await;
                continue;
            };
            let path = match random.u8(..3) {
                0 => format!("/{id}/info"),
                1 => "?limit=100".to_owned(),
                _ => format!("/{id}"),
            };
            let reply = self.http.get(format!("{}{path}", self.url)).send().await;
            let reply = reply.expect("the server answers");
            assert_eq!(reply.status(), 200, "{path}");
            reply.bytes().await.expect("a whole reply");
            self.read.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Administrates over the socket, as the command line does, until the crowd goes; returns the longest log
/// seen, and the number of calls.
async fn administrate(crowd: &Crowd, data_dir: &Path) -> (u64, u64) {
    let (mut longest, mut calls) = (0, 0);
    while Instant::now() < crowd.until {
        let socket = data_dir.join("admin.sock");
        let answer = tokio::task::spawn_blocking(move || ask(&socket)).await;
        let answer = answer.expect("it does not panic");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        calls += 1;

        let log = std::fs::metadata(data_dir.join("metadata.sqlite3-wal"));
        longest = longest.max(log.map_or(0, |log| log.len()));
    }
    (longest, calls)
}

fn ask(socket: &Path) -> String {
    let mut stream = UnixStream::connect(socket).expect("the socket is there");
    let request =
        "GET /api/v1/admin/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("the socket takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the socket gives an answer");
    answer
}
