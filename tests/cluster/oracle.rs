//! What was acknowledged, and a load that asks for more.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use filestore_workspace::fixtures::noise;
use filestore_workspace::{Form, eventually_within};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::LONG;

/// The size of a file.
const SIZE: usize = 20_000;

/// The longest wait for one reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// The state of a file as far as it was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    There,
    Deleted,
    /// A delete was not answered.
    Either,
}

/// The files that were acknowledged, with the seeds of their bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Oracle(Arc<Mutex<BTreeMap<String, (u64, Known)>>>);

impl Oracle {
    fn note(&self, id: &str, seed: u64, known: Known) {
        self.0.lock().expect("no panic").insert(id.to_owned(), (seed, known));
    }

    fn all(&self) -> BTreeMap<String, (u64, Known)> {
        self.0.lock().expect("no panic").clone()
    }

    /// Counts the files that are there.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.all().values().filter(|(_, known)| *known == Known::There).count() as u64
    }

    /// Waits until so many more uploads are acknowledged.
    pub(crate) async fn goes_on(&self, more: usize) {
        let wanted = self.all().len() + more;
        eventually_within(LONG, "uploads go on", async || {
            (self.all().len() >= wanted).then_some(())
        })
        .await;
    }

    /// Waits until so many more uploads are acknowledged, and a time has passed.
    pub(crate) async fn goes_on_for(&self, time: Duration, more: usize) {
        let until = Instant::now() + time;
        self.goes_on(more).await;
        eventually_within(LONG, "the time passes", async || {
            (Instant::now() >= until).then_some(())
        })
        .await;
    }

    /// Asserts that each file is as it was acknowledged.
    pub(crate) async fn check(&self, url: &str) {
        let http = client();
        for (id, (seed, known)) in self.all() {
            let reply = http.get(format!("{url}/api/v1/files/{id}")).send().await;
            let reply = reply.expect("all parts are back");
            let status = reply.status().as_u16();
            match known {
                Known::There => {
                    assert_eq!(status, 200, "{id} at {url}");
                    assert_eq!(reply.bytes().await.expect("all of it"), noise(seed, SIZE), "{id}");
                }
                Known::Deleted => assert_eq!(status, 404, "{id} at {url}"),
                Known::Either => assert!(status == 200 || status == 404, "{id}: {status}"),
            }
        }
    }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().timeout(PATIENCE).build().expect("an HTTP client")
}

/// Counters of a load.
#[derive(Debug, Default)]
struct Counters {
    uploads: AtomicU64,
    reads: AtomicU64,
    deletes: AtomicU64,
    refused: AtomicU64,
    broken: AtomicU64,
    seeds: AtomicU64,
    is_over: AtomicBool,
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { uploads, reads, deletes, refused, broken, .. } = self;
        let [uploads, reads, deletes, refused, broken] =
            [uploads, reads, deletes, refused, broken].map(|count| count.load(Ordering::Relaxed));
        write!(
            f,
            "{uploads} uploads, {reads} reads and {deletes} deletes were acknowledged; {refused} requests were \
             refused for now, and {broken} connections broke"
        )
    }
}

/// Clients at work.
pub(crate) struct Load {
    counters: Arc<Counters>,
    tasks: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts so many clients.
    pub(crate) fn start(url: &str, oracle: &Oracle, clients: usize) -> Self {
        let counters = Arc::new(Counters::default());
        let tasks = (0..clients).map(|_| {
            let client = Client {
                http: client(),
                url: url.to_owned(),
                oracle: oracle.clone(),
                counters: Arc::clone(&counters),
            };
            tokio::spawn(client.work())
        });
        Self { tasks: tasks.collect(), counters }
    }

    /// Lets the clients end what they do; returns the counters.
    pub(crate) async fn stop(self) -> String {
        self.counters.is_over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("a client saw nothing wrong");
        }
        self.counters.to_string()
    }
}

struct Client {
    http: reqwest::Client,
    url: String,
    oracle: Oracle,
    counters: Arc<Counters>,
}

impl Client {
    async fn work(self) {
        while !self.counters.is_over.load(Ordering::Relaxed) {
            let seed = self.counters.seeds.fetch_add(1, Ordering::Relaxed);
            let id = self.upload(seed).await;
            self.oracle.note(&id, seed, Known::There);
            self.counters.uploads.fetch_add(1, Ordering::Relaxed);

            self.read(&id, seed).await;
            if seed.is_multiple_of(4) {
                self.delete(&id, seed).await;
            }
        }
    }

    /// Uploads a file, again and again under one key until it is acknowledged.
    async fn upload(&self, seed: u64) -> String {
        loop {
            let form = Form::new().text("organization_id", "acme").text("sub_system", "docs").file(
                "file",
                "noise",
                "application/octet-stream",
                &noise(seed, SIZE),
            );
            let request = self
                .http
                .post(format!("{}/api/v1/files/upload", self.url))
                .header("idempotency-key", seed.to_string())
                .header("content-type", form.content_type())
                .body(form.finish());
            if let Some((201, bytes)) = self.answered(request, &[201, 409]).await {
                let record: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
                return record["file_id"].as_str().expect("an id").to_owned();
            }
        }
    }

    /// Reads a file of which nobody else knows.
    async fn read(&self, id: &str, seed: u64) {
        loop {
            let request = self.http.get(format!("{}/api/v1/files/{id}", self.url));
            if let Some((_, bytes)) = self.answered(request, &[200]).await {
                assert_eq!(bytes, noise(seed, SIZE), "{id}");
                self.counters.reads.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Deletes a file once; then no server shows it.
    async fn delete(&self, id: &str, seed: u64) {
        let url = format!("{}/api/v1/files/{id}", self.url);
        self.oracle.note(id, seed, Known::Either);
        if self.answered(self.http.delete(&url), &[200]).await.is_none() {
            return;
        }
        self.oracle.note(id, seed, Known::Deleted);
        self.counters.deletes.fetch_add(1, Ordering::Relaxed);
        for _ in 0..3 {
            self.answered(self.http.get(&url), &[404]).await;
        }
    }

    /// Returns the status and the body of an answer; `None` where a part is away. Any other answer than the
    /// expected ones is a failure of the test.
    async fn answered(
        &self,
        request: reqwest::RequestBuilder,
        expected: &[u16],
    ) -> Option<(u16, bytes::Bytes)> {
        let answered = async {
            let reply = request.send().await?;
            let status = reply.status().as_u16();
            Ok::<_, reqwest::Error>((status, reply.bytes().await?))
        };
        let Ok((status, body)) = answered.await else {
            self.counters.broken.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        if expected.contains(&status) {
            return Some((status, body));
        }
        assert!([502, 503, 504].contains(&status), "{status}: {}", String::from_utf8_lossy(&body));
        self.counters.refused.fetch_add(1, Ordering::Relaxed);
        None
    }
}
