//! A server that does what a test tells it, byte by byte: one request per connection, and no HTTP
//! library in between that would repair what is to be broken.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use filestore_client::{Client, ClientBuilder, Place, RetryPolicy};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

/// The end of a test that hangs.
pub(crate) const HANG: Duration = Duration::from_mins(10);

pub(crate) const ID: &str = "01JD0000000000000000000000";

/// A request as it arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// What to do with one request.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) when: When,
    pub(crate) then: Then,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum When {
    /// As soon as the head is there.
    AtOnce,
    /// When the body is there too.
    AfterBody,
    /// When the body is there and this time is over.
    Later(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Then {
    /// The connection is closed.
    Close,
    /// What the client still sends is read until it stops.
    Drain,
    /// Nothing more happens.
    Hang,
}

impl Answer {
    /// A whole reply; `headers` are lines without their end.
    pub(crate) fn new(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        Self::promising(body.len(), status, headers, body)
    }

    /// A reply that promises `length` bytes and has `body` only.
    pub(crate) fn promising(length: usize, status: &str, headers: &[&str], body: &[u8]) -> Self {
        let mut head =
            format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n");
        for header in headers {
            write!(head, "{header}\r\n").unwrap();
        }
        head.push_str("\r\n");
        let bytes = [head.as_bytes(), body].concat();
        Self { bytes, when: When::AfterBody, then: Then::Close }
    }

    pub(crate) fn json(status: &str, body: &str) -> Self {
        Self::new(status, &["content-type: application/json"], body)
    }

    pub(crate) fn problem(status: u16, code: &str, headers: &[&str]) -> Self {
        let body = format!(
            r#"{{"type":"urn:filestore:problem:{code}","title":"t","status":{status},"detail":"said by the server",
                "instance":"urn:request:R1","code":"{code}","request_id":"R1"}}"#
        );
        let headers = [&["content-type: application/problem+json"], headers].concat();
        Self::new(&format!("{status} Refused"), &headers, body)
    }

    pub(crate) fn nothing() -> Self {
        Self { bytes: Vec::new(), when: When::AfterBody, then: Then::Close }
    }

    pub(crate) fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    pub(crate) fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }
}

/// The scripted server, until it is dropped.
pub(crate) struct Script {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Script {
    /// Answers the nth request (from 0) with `answer(n, request)`; the request has no body yet.
    pub(crate) async fn start(
        answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&requests), Arc::new(answer));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&log), Arc::clone(&answer)));
            }
        });
        Self { url, requests, task }
    }

    /// Gives the answers in turn, the last one again and again.
    pub(crate) async fn with(answers: Vec<Answer>) -> Self {
        Self::start(move |n, _| answers[n.min(answers.len() - 1)].clone()).await
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn client(&self) -> Client {
        quick(&self.url).build().unwrap()
    }

    pub(crate) fn place(&self) -> Place {
        place(&self.client())
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The place that tests upload to.
pub(crate) fn place(client: &Client) -> Place {
    client.organization("42").unwrap().sub_system("s").unwrap()
}

/// A client that does not wait long.
pub(crate) fn quick(url: &str) -> ClientBuilder {
    let retry = RetryPolicy::default().base(Duration::from_millis(1)).max_outage(Duration::ZERO);
    Client::builder(url).unwrap().api_key("fsk_test").retry(retry)
}

/// Handles one connection; what goes wrong on it is the test's business, not an error.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    log: Arc<Mutex<Vec<Request>>>,
    answer: Arc<impl Fn(usize, &Request) -> Answer>,
) -> io::Result<()> {
    let mut request = Request::default();
    let mut rest = read_head(&mut stream, &mut request).await?;
    let n = {
        let mut log = log.lock().unwrap();
        log.push(request.clone());
        log.len() - 1
    };
    let answer = answer(n, &request);
    if answer.when != When::AtOnce {
        let body = read_body(&mut stream, &request, &mut rest).await;
        log.lock().unwrap()[n].body = rest;
        body?;
    }
    if let When::Later(delay) = answer.when {
        tokio::time::sleep(delay).await;
    }
    stream.write_all(&answer.bytes).await?;
    match answer.then {
        Then::Close => {}
        Then::Drain => drop(tokio::io::copy(&mut stream, &mut tokio::io::sink()).await),
        Then::Hang => std::future::pending().await,
    }
    Ok(())
}

async fn read_head<S: AsyncRead + Unpin>(
    stream: &mut S,
    request: &mut Request,
) -> io::Result<Vec<u8>> {
    let mut buffer = Vec::new();
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    lines.next().unwrap().clone_into(&mut request.line);
    request.headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    Ok(buffer.split_off(end + 4))
}

async fn read_body<S: AsyncRead + Unpin>(
    stream: &mut S,
    request: &Request,
    body: &mut Vec<u8>,
) -> io::Result<()> {
    let length = request.header("content-length").map(|length| length.parse::<usize>().unwrap());
    let chunked = request.header("transfer-encoding").is_some();
    loop {
        let whole = match length {
            Some(length) => body.len() >= length,
            None => !chunked || body.ends_with(b"0\r\n\r\n"),
        };
        if whole {
            return Ok(());
        }
        if stream.read_buf(body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

/// The `Repr-Digest` line for these bytes.
pub(crate) fn repr_digest(bytes: &[u8]) -> String {
    use base64::Engine as _;
    let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(bytes));
    format!("repr-digest: sha-256=:{digest}:")
}

/// A record of a file with these bytes, as a server of the future might send it.
pub(crate) fn record(bytes: &[u8]) -> String {
    format!(
        r#"{{"file_id":"{ID}","original_name":"a.bin","mime_type":"application/octet-stream",
            "file_size":{},"ext":"bin","file_path":"42/s/2026/11/21/x","sync_status":"HOVERING",
            "updated_at":"2026-11-21T08:15:30.123Z","status":"READY","storage_location":"ORBIT",
            "storage_provider":"LOCAL","organization_id":"42","sub_system":"s","sha256":"{}","width":null,
            "height":null,"version":1,"created_at":"2026-11-21T08:15:30.123Z","expires_at":null,
            "purge_status":null,"a_field_of_the_future":[1,2]}}"#,
        bytes.len(),
        sha256_hex(bytes)
    )
}

/// Bytes that are different everywhere.
pub(crate) fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from((at * 31 + at / 251) % 251).unwrap()).collect()
}
