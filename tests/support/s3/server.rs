//! The listener, and looking at what is stored.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Mutex, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::faults::{Faults, On};
use super::gate::Gate;
use super::store::Store;
use crate::files_under;

const BUCKET: &str = "files";
const REGION: &str = "us-east-1";
const ACCESS_KEY: &str = "AKIATESTTESTTESTTEST";
const SECRET_KEY: &str = "a-secret-for-tests-and-nothing-else-0001";

/// The number of connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// A running S3 provider with one empty bucket, spoken to in path style over plain HTTP. Requests
/// without a valid signature are refused.
///
/// Dropping it ends its connections and removes what it stored.
pub struct S3Server {
    addr: SocketAddr,
    gate: Gate,
    dir: Arc<TempDir>,
    state: Mutex<State>,
}

/// Either of the two, never both.
struct State {
    accepting: Option<Accepting>,
    /// Keeps the port while nothing listens, so that nobody else gets it meanwhile.
    reserved: Option<TcpSocket>,
}

/// The task that accepts. It ends, with its connections, once `stop` is sent or dropped.
struct Accepting {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl S3Server {
    /// Starts a server on a port of its own.
    #[expect(
        clippy::unused_async,
        reason = "an async function cannot be called where no runtime is"
    )]
    pub async fn start() -> Self {
        let dir = Arc::new(tempfile::tempdir().expect("a temporary directory"));
        std::fs::create_dir(dir.path().join(BUCKET)).expect("a directory for the bucket");

        let mut s3 = S3ServiceBuilder::new(Store::new(dir.path()));
        s3.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let gate = Gate::new(s3.build());

        let listener = bind((Ipv4Addr::LOCALHOST, 0).into()).listen(BACKLOG).expect("a listener");
        let addr = listener.local_addr().expect("an address");
        let accepting = Accepting::spawn(listener, gate.clone(), Arc::clone(&dir));

        let state = Mutex::new(State { accepting: Some(accepting), reserved: None });
        Self { addr, gate, dir, state }
    }

    /// Its base URL, without a path.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The name of its bucket.
    pub fn bucket(&self) -> &'static str {
        BUCKET
    }

    /// Returns the region that requests are signed for.
    pub fn region(&self) -> &'static str {
        REGION
    }

    /// The one access key it knows.
    pub fn access_key(&self) -> &'static str {
        ACCESS_KEY
    }

    /// The secret of [`S3Server::access_key`].
    pub fn secret_key(&self) -> &'static str {
        SECRET_KEY
    }

    /// Returns the faults that requests meet.
    pub fn faults(&self) -> &Faults {
        &self.gate.faults
    }

    /// Counts the requests of this kind that have come so far, whatever their outcome.
    pub fn requests(&self, on: impl Into<On>) -> usize {
        self.gate.count(&on.into())
    }

    /// The keys of all objects, sorted, as the disk has them.
    pub fn objects(&self) -> Vec<String> {
        let bucket = self.bucket_dir();
        let mut keys: Vec<_> = files_under(&bucket)
            .iter()
            .map(|path| path.strip_prefix(&bucket).expect("a path below the bucket"))
            .map(|key| key.to_str().expect("keys are UTF-8").to_owned())
            .collect();
        // Paths sort by component, keys by byte.
        keys.sort();
        keys
    }

    /// An object's bytes, as the disk has them.
    pub fn object(&self, key: &str) -> Option<Vec<u8>> {
        std::fs::read(self.bucket_dir().join(key)).ok()
    }

    /// Puts an object there without a request.
    pub fn place(&self, key: &str, bytes: &[u8]) {
        let path = self.bucket_dir().join(key);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a new directory");
        std::fs::write(path, bytes).expect("a file that can be written");
    }

    /// Flips one bit in the middle of a stored object, which must not be empty. Its entity tag and
    /// checksum stay as they were.
    pub fn corrupt(&self, key: &str) {
        let mut bytes = self.object(key).expect("an object");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(self.bucket_dir().join(key), bytes).expect("a file that can be written");
    }

    /// The multipart uploads that were neither completed nor aborted.
    pub fn unfinished_uploads(&self) -> usize {
        Store::unfinished_uploads(self.dir.path())
    }

    /// Makes it unreachable: its connections end where they are, new ones are refused. What is stored
    /// stays.
    pub async fn down(&self) {
        let mut state = self.state.lock().await;
        if let Some(accepting) = state.accepting.take() {
            accepting.stop().await;
            state.reserved = Some(bind(self.addr));
        }
    }

    /// Makes it reachable again under the same address.
    pub async fn up(&self) {
        let mut state = self.state.lock().await;
        if let Some(socket) = state.reserved.take() {
            let listener = socket.listen(BACKLOG).expect("a listener on the port that was kept");
            let dir = Arc::clone(&self.dir);
            state.accepting = Some(Accepting::spawn(listener, self.gate.clone(), dir));
        }
    }

    fn bucket_dir(&self) -> PathBuf {
        self.dir.path().join(BUCKET)
    }
}

impl std::fmt::Debug for S3Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3Server").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Accepting {
    /// `dir` is held until the last connection has ended, so that nothing is written after its removal.
    fn spawn(listener: TcpListener, gate: Gate, dir: Arc<TempDir>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            accept(listener, gate, stopped).await;
            drop(dir);
        });
        Self { stop, task }
    }

    async fn stop(self) {
        drop(self.stop);
        self.task.await.expect("the accept loop does not panic");
    }
}

async fn accept(listener: TcpListener, gate: Gate, mut stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(stream, gate.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
            _ = &mut stopped => break,
        }
    }

    drop(listener);
    connections.shutdown().await;
}

/// Serves one connection. How it ends is the client's to judge: faults end it on purpose.
async fn serve(stream: TcpStream, gate: Gate) {
    // What cannot be set costs time, nothing else.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| gate.answer(request));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

fn bind(addr: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    // The port may still have connections that are closing.
    socket.set_reuseaddr(true).expect("an option every TCP socket has");
    socket.bind(addr).expect("a port of our own");
    socket
}
