//! Endpoints on the loopback interface, for tests.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use standardwebhooks::Webhook as Verifier;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Lookup;
use crate::domain::config::StoreConfig;
use crate::tasks::{self, HANG};

/// A request that an endpoint got.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    headers: HashMap<String, String>,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Tells whether the reference library makes one of the signatures, whatever the time is.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let verifier = Verifier::new(secret).unwrap();
        let at = self.headers["webhook-timestamp"].parse().unwrap();
        let expected = verifier.sign(self.id(), at, self.body.as_bytes()).unwrap();
        self.headers["webhook-signature"].split(' ').any(|one| one == expected)
    }

    /// Returns a text of the body's JSON.
    pub(crate) fn text(&self, pointer: &str) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        body.pointer(pointer).and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    }
}

/// What an endpoint does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Status(u16),
    /// A status with a header line.
    With(u16, &'static str),
    /// Never answers.
    Silence,
    /// A status, then bytes without an end.
    Endless,
    /// A head without an end.
    EndlessHead,
    /// Half a head, then the end of the connection.
    Half,
}

/// An endpoint. Dropping it closes its port.
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    received: watch::Receiver<Vec<Received>>,
    task: JoinHandle<()>,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Endpoint {
    /// Starts an endpoint. `answer` gets the request, and those before it.
    pub(crate) async fn start(
        answer: impl Fn(&Received, &[Received]) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, received) = watch::channel(Vec::new());
        let (sender, answer) = (Arc::new(sender), Arc::new(answer));
        let task = tasks::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (sender, answer) = (Arc::clone(&sender), Arc::clone(&answer));
                connections.spawn(async move {
                    let _ = serve(stream, &sender, &*answer).await;
                });
            }
        });
        Self { address, received, task }
    }

    /// Starts an endpoint that accepts everything.
    pub(crate) async fn accepting() -> Self {
        Self::start(|_, _| Reply::Status(204)).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.borrow().clone()
    }

    /// Waits until the requests are as wanted.
    pub(crate) async fn until(&self, is_enough: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let mut received = self.received.clone();
        let wait = received.wait_for(|received| is_enough(received));
        timeout(HANG, wait).await.expect("the requests come").unwrap().clone()
    }

    /// Waits for this number of requests.
    pub(crate) async fn until_count(&self, count: usize) -> Vec<Received> {
        self.until(move |received| received.len() >= count).await
    }
}

async fn serve(
    mut stream: TcpStream,
    sender: &watch::Sender<Vec<Received>>,
    answer: &(dyn Fn(&Received, &[Received]) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let Some(request) = read(&mut stream).await? else { return Ok(()) };
    let mut reply = Reply::Silence;
    sender.send_modify(|received| {
        reply = answer(&request, received);
        received.push(request);
    });
    let head = |status: u16, more: &str| {
        format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n{more}\r\n")
    };
    match reply {
        Reply::Status(status) => stream.write_all(head(status, "").as_bytes()).await,
        Reply::With(status, line) => {
            stream.write_all(head(status, &format!("{line}\r\n")).as_bytes()).await
        }
        Reply::Silence => std::future::pending().await,
        Reply::Half => stream.write_all(b"HTTP/1.1 20").await,
        Reply::EndlessHead => {
            stream.write_all(b"HTTP/1.1 200 X\r\nx: ").await?;
            loop {
                stream.write_all(&[b'x'; 4096]).await?;
            }
        }
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 X\r\nconnection: close\r\n\r\n").await?;
            loop {
                stream.write_all(&[b'x'; 4096]).await?;
            }
        }
    }
}

async fn read(stream: &mut TcpStream) -> std::io::Result<Option<Received>> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
            let headers: HashMap<_, _> =
                lines.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
            let length: usize = headers["content-length"].parse().unwrap();
            if body.len() >= length {
                return Ok(Some(Received { headers, body: body.to_owned() }));
            }
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
}

/// Returns a configuration that allows endpoints on this machine.
pub(crate) fn local_config() -> StoreConfig {
    let mut config = StoreConfig::default();
    config.webhooks.allow_http = true;
    config.webhooks.allow = vec!["127.0.0.0/8".to_owned()];
    config
}

/// A look-up that answers from a list: each time the next entry, and the last one from then on.
pub(crate) struct Scripted(Mutex<Vec<Vec<IpAddr>>>);

impl Scripted {
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|one| one.parse().unwrap()).collect();
        Arc::new(Self(Mutex::new(answers.iter().map(parse).collect())))
    }
}

impl Lookup for Scripted {
    fn lookup(&self, _name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        let mut answers = self.0.lock();
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        Box::pin(async move { Ok(answer) })
    }
}
