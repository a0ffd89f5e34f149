//! A load of uploads, reads, replaces and deletes, which asks again until it is answered.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use filestore_workspace::Form;
use reqwest::header::HeaderMap;
use reqwest::{Method, Request};
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::oracle::{Content, Known, Oracle};

/// The longest wait for one reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time that a client takes for a file at least, and that of a load that slowed down: every byte that was
/// acknowledged is in each snapshot, and is read seven times in the end.
const PACE: Duration = Duration::from_millis(200);
const SLOW_PACE: Duration = Duration::from_secs(3);

pub(crate) fn client() -> reqwest::Client {
    reqwest::Client::builder().timeout(PATIENCE).build().expect("an HTTP client")
}

/// Counters of a load.
#[derive(Debug, Default)]
struct Counters {
    uploads: AtomicU64,
    in_pieces: AtomicU64,
    reads: AtomicU64,
    replaces: AtomicU64,
    deletes: AtomicU64,
    refused: AtomicU64,
    broken: AtomicU64,
    seeds: AtomicU64,
    is_slow: AtomicBool,
    is_over: AtomicBool,
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { uploads, in_pieces, reads, replaces, deletes, refused, broken, .. } = self;
        let [uploads, in_pieces, reads, replaces, deletes, refused, broken] =
            [uploads, in_pieces, reads, replaces, deletes, refused, broken]
                .map(|count| count.load(Ordering::Relaxed));
        write!(
            f,
            "{uploads} uploads ({in_pieces} in pieces), {reads} reads, {replaces} replaces and {deletes} deletes \
             were acknowledged; {refused} requests were refused for now, and {broken} broke or were given up"
        )
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
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

    /// Gives the clients more time for each file from now on.
    pub(crate) fn slow_down(&self) {
        self.counters.is_slow.store(true, Ordering::Relaxed);
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

/// An answer.
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: bytes::Bytes,
}

struct Client {
    http: reqwest::Client,
    url: String,
    oracle: Oracle,
    counters: Arc<Counters>,
}

impl Client {
    async fn work(self) {
        let (mut pace, mut slow_pace) = (paced(PACE), paced(SLOW_PACE));
        while !self.counters.is_over.load(Ordering::Relaxed) {
            let is_slow = self.counters.is_slow.load(Ordering::Relaxed);
            if is_slow {
                slow_pace.tick().await
            } else {
                pace.tick().await
            };
            let seed = self.counters.seeds.fetch_add(1, Ordering::Relaxed);
            let content = Content(seed);
            let id = if seed % 5 == 3 {
                count(&self.counters.in_pieces);
                self.upload_in_pieces(seed, content).await
            } else {
                self.upload(seed, content).await
            };
            self.oracle.note(&id, Known::There(content));
            count(&self.counters.uploads);

            let tag = self.read(&id, content).await;
            match seed % 4 {
                0 => self.delete(&id, content).await,
                1 => self.replace(&id, content, &tag).await,
                _ => {}
            }
        }
    }

    fn at(&self, id: &str) -> String {
        format!("{}/api/v1/files/{id}", self.url)
    }

    /// Uploads a file, again and again under one key until it is acknowledged.
    async fn upload(&self, seed: u64, content: Content) -> String {
        loop {
            let form = Form::new().text("organization_id", "acme").text("sub_system", "docs");
            let form = with_file(form, content);
            let request = self
                .http
                .post(format!("{}/api/v1/files/upload", self.url))
                .header("idempotency-key", seed.to_string())
                .header("content-type", form.content_type())
                .body(form.finish());
            match self.answered(request, &[201, 409]).await {
                Some(Answer { status: 201, body, .. }) => {
                    let record: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
                    return record["file_id"].as_str().expect("an id").to_owned();
                }
                // The first try still runs.
                _ => continue,
            }
        }
    }

    /// Uploads a file in pieces, each to whatever server nginx chooses. After each failure asks how far it came.
    async fn upload_in_pieces(&self, seed: u64, content: Content) -> String {
        let bytes = content.bytes();
        let path = self.begin_pieces(seed, bytes.len()).await;
        let mut told = 0;
        loop {
            let Some(shown) = self.answered(self.tus(Method::HEAD, &path), &[200]).await else {
                continue;
            };
            if let Some(id) = text(&shown, "file-id") {
                return id.to_owned();
            }
            let offset = text(&shown, "upload-offset").expect("an offset");
            let offset: usize = offset.parse().expect("a number");
            assert!(offset >= told, "{path}: {offset} after {told}");
            told = offset;

            let end = bytes.len().min(told + bytes.len() / 3 + 1);
            let request = self
                .tus(Method::PATCH, &path)
                .header("upload-offset", told)
                .header("content-type", "application/offset+octet-stream")
                .body(bytes[told..end].to_vec());
            // 409: a transfer at another server came to its end meanwhile. 400: a request that was given up came to a
            // server that had stopped, and was taken for a newer one.
            let sent = self.answered(request, &[204, 400, 409]).await;
            assert!(sent.as_ref().is_none_or(is_of_order), "{path}");
            if let Some(id) = sent.as_ref().and_then(|sent| text(sent, "file-id")) {
                return id.to_owned();
            }
        }
    }

    /// Creates a resumable upload; returns its path.
    async fn begin_pieces(&self, seed: u64, length: usize) -> String {
        loop {
            let request = self
                .tus(Method::POST, "/api/v1/uploads?organization_id=acme&sub_system=docs")
                .header("upload-length", length)
                .header("idempotency-key", format!("pieces {seed}"));
            if let Some(created) = self.answered(request, &[201]).await {
                return text(&created, "location").expect("a path").to_owned();
            }
        }
    }

    fn tus(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        request.header("tus-resumable", "1.0.0")
    }

    /// Reads a file of which nobody else knows; returns its entity tag.
    async fn read(&self, id: &str, content: Content) -> String {
        loop {
            let request = self.http.get(self.at(id));
            if let Some(Answer { headers, body, .. }) = self.answered(request, &[200]).await {
                assert_eq!(body, content.bytes(), "{id}");
                count(&self.counters.reads);
                return headers["etag"].to_str().expect("text").to_owned();
            }
        }
    }

    /// Replaces a file that has the entity tag, once; then every server shows the new bytes.
    async fn replace(&self, id: &str, before: Content, tag: &str) {
        let after = before.second();
        let form = with_file(Form::new().text("file_id", id), after);
        let request = self
            .http
            .put(format!("{}/api/v1/files/upload", self.url))
            .header("if-match", tag)
            .header("content-type", form.content_type())
            .body(form.finish());

        self.oracle.note(id, Known::Either(before, after));
        if self.answered(request, &[200]).await.is_none() {
            return;
        }
        self.oracle.note(id, Known::There(after));
        count(&self.counters.replaces);
        for _ in 0..3 {
            self.read(id, after).await;
        }
    }

    /// Deletes a file once; then no server shows it.
    async fn delete(&self, id: &str, content: Content) {
        self.oracle.note(id, Known::MayBeDeleted(content));
        if self.answered(self.http.delete(self.at(id)), &[200]).await.is_none() {
            return;
        }
        self.oracle.note(id, Known::Deleted);
        count(&self.counters.deletes);
        for _ in 0..3 {
            self.answered(self.http.get(self.at(id)), &[404]).await;
        }
    }

    /// Returns an answer of an expected status; `None` where a part is away, which the answer must say as the
    /// reference does, or the connection broke. nginx itself is never away.
    async fn answered(&self, request: reqwest::RequestBuilder, expected: &[u16]) -> Option<Answer> {
        let (http, request) = request.build_split();
        let request = request.expect("a request");
        let has_body = request.method() != Method::HEAD;
        let answer = match answer_to(&http, request).await {
            Ok(answer) => answer,
            Err(error) => {
                assert!(!error.is_connect(), "nginx is away: {error:?}");
                count(&self.counters.broken);
                return None;
            }
        };
        if expected.contains(&answer.status) {
            return Some(answer);
        }

        let Answer { status, headers, body } = answer;
        let said = format!("{status} {headers:?} {}", String::from_utf8_lossy(&body));
        assert!([502, 503].contains(&status), "{said}");
        assert!(headers.contains_key("retry-after"), "{said}");
        assert_eq!(headers["content-type"], "application/problem+json", "{said}");
        if has_body {
            let problem: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(problem["status"], status, "{said}");
        }
        count(&self.counters.refused);
        None
    }
}

/// Makes the ticks of a pace. Time that a client took too long is not made up for.
fn paced(pace: Duration) -> Interval {
    let mut ticks = interval(pace);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn text<'a>(answer: &'a Answer, header: &str) -> Option<&'a str> {
    answer.headers.get(header).map(|value| value.to_str().expect("text"))
}

async fn answer_to(http: &reqwest::Client, request: Request) -> reqwest::Result<Answer> {
    let reply = http.execute(request).await?;
    let (status, headers) = (reply.status().as_u16(), reply.headers().clone());
    Ok(Answer { status, headers, body: reply.bytes().await? })
}

/// Tells whether a 400 is about the order of requests alone.
fn is_of_order(answer: &Answer) -> bool {
    let text = String::from_utf8_lossy(&answer.body);
    answer.status != 400 || text.contains("\"upload_superseded\"")
}

fn with_file(form: Form, content: Content) -> Form {
    form.file("file", "noise", "application/octet-stream", &content.bytes())
}
