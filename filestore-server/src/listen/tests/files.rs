//! Replies whose bytes the kernel sends from a file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use filestore_core::{FileRecord, FileStore, NewUpload, Opened, Scope, SendFile};
use http_body_util::Full;
use rustix::fs::{Advice, fadvise};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpSocket;

use super::*;
use crate::listen::{SentFile, Shares, Traffic, serve_counted};

/// Lengths around those of the slices that stand for a file.
const LENGTHS: [usize; 5] = [1, 70_000, AHEAD, AHEAD + 1, 3 * AHEAD + 12_345];
const AHEAD: usize = SendFile::BYTES_AHEAD;

/// A server of the files of a store, each under its number.
struct Files {
    address: SocketAddr,
    dir: tempfile::TempDir,
    broken: Arc<AtomicUsize>,
    traffic: Arc<Traffic>,
    _stop: oneshot::Sender<()>,
}

/// The bytes of a file: no two windows of them are alike.
fn content(number: usize) -> Vec<u8> {
    let words = (0..LENGTHS[number].div_ceil(8) as u64)
        .map(|at| (at + 1 + number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    bytes.truncate(LENGTHS[number]);
    bytes
}

impl Files {
    /// Starts the server; `None` where the kernel does not send files of this file system.
    async fn start(options: Options) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let mut records = Vec::new();
        for number in 0..LENGTHS.len() {
            let new = NewUpload::new("42".parse().unwrap(), "files".parse().unwrap());
            records.push(store.upload(new, &content(number)[..]).await.unwrap());
        }
        if send_file(&store, &records[0]).await.is_none() {
            eprintln!("the kernel does not send files here: nothing is tested");
            return None;
        }

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let broken = Arc::new(AtomicUsize::new(0));
        let (stop, stopping) = oneshot::channel::<()>();
        let (state, count) = (Arc::new((store, records)), Arc::clone(&broken));
        let service = service_fn(move |request: Request<RequestBody>| {
            let (state, count) = (Arc::clone(&state), Arc::clone(&count));
            async move {
                assert!(request.body().takes_files());
                let Ok(number) = request.uri().path()[1..].parse::<usize>() else {
                    return Ok(Response::new(Full::from("none")));
                };
                let file = send_file(&state.0, &state.1[number]).await.unwrap();
                let mut response = Response::new(Full::default());
                response.extensions_mut().insert(SentFile::new(file, move |_| {
                    count.fetch_add(1, SeqCst);
                }));
                Ok::<_, Infallible>(response)
            }
        });
        let shares = Shares::new(options.max_connections_per_address, Vec::new());
        let traffic = Arc::new(Traffic::default());
        let counted = Arc::clone(&traffic);
        tokio::spawn(serve_counted(listener.into(), service, options, shares, counted, async {
            let _ = stopping.await;
        }));
        let files = Self { address, dir, broken, traffic, _stop: stop };
        // From the first reply on, the kernel keeps little unsent for those who connect.
        assert_eq!(body(&mut files.ask(&get("none")).await).await, b"none");
        Some(files)
    }

    /// Returns the path of the only blob of that length.
    fn blob(&self, number: usize) -> PathBuf {
        let mut found = Vec::new();
        find(&self.dir.path().join("blobs"), LENGTHS[number] as u64, &mut found);
        found.pop().unwrap()
    }

    /// Connects as a client for which the kernel keeps little that was not read.
    async fn connect_with_little_room(&self) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    async fn ask(&self, requests: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client.write_all(requests.as_bytes()).await.unwrap();
        client
    }
}

fn find(dir: &Path, length: u64, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let (path, meta) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
        if meta.is_dir() {
            find(&path, length, found);
        } else if meta.len() == length {
            found.push(path);
        }
    }
}

async fn send_file(store: &FileStore, record: &FileRecord) -> Option<SendFile> {
    match store.serving(&Scope::All).open_whole(record).await.unwrap() {
        Opened::Local(blob) => blob.into_send_file(0..record.blob.size_bytes).ok(),
        _ => panic!("a file on the local disk is opened"),
    }
}

fn get(path: impl std::fmt::Display) -> String {
    format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// Reads a reply; returns its body.
async fn body(client: &mut TcpStream) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    client.read_exact(&mut body).await.unwrap();
    body
}

#[tokio::test]
async fn files_of_all_lengths_are_sent_in_the_order_of_pipelined_requests() {
    let Some(files) = Files::start(generous()).await else { return };
    let order = [4, 0, 3, 3, 1, 4, 2, 0];
    let requests: String = order.iter().map(|number| get(number) + &get("none")).collect();
    let mut client = files.ask(&requests).await;
    for number in order {
        assert!(body(&mut client).await == content(number), "file {number} is another one");
        assert_eq!(body(&mut client).await, b"none");
    }
    assert_eq!(files.broken.load(SeqCst), 0);
}

#[tokio::test]
async fn a_file_that_is_not_in_memory_is_read_and_sent() {
    let Some(files) = Files::start(generous()).await else { return };
    for number in [4, 2] {
        let blob = File::open(files.blob(number)).unwrap();
        blob.sync_all().unwrap();
        fadvise(&blob, 0, None, Advice::DontNeed).unwrap();
        let mut client = files.ask(&get(number)).await;
        assert!(body(&mut client).await == content(number), "file {number} is another one");
    }
}

#[tokio::test]
async fn a_slow_client_gets_all_of_a_file_that_leaves_the_memory_meanwhile() {
    let Some(files) = Files::start(generous()).await else { return };
    let mut client = files.connect_with_little_room().await;
    client.write_all(get(4).as_bytes()).await.unwrap();

    let (mut read, mut piece) = (Vec::new(), vec![0; 20_000]);
    let blob = File::open(files.blob(4)).unwrap();
    blob.sync_all().unwrap();
    while !read.ends_with(&content(4)[LENGTHS[4] - 100..]) {
        let length = client.read(&mut piece).await.unwrap();
        assert!(length > 0, "the reply is cut after {} bytes", read.len());
        read.extend_from_slice(&piece[..length]);
        fadvise(&blob, 0, None, Advice::DontNeed).unwrap();
    }
    assert!(read.ends_with(&content(4)), "the bytes are others");
}

#[tokio::test]
async fn a_file_that_ends_early_cuts_the_connection_and_is_told() {
    let Some(files) = Files::start(generous()).await else { return };
    let mut client = files.connect_with_little_room().await;
    client.write_all((get(4) + &get("none")).as_bytes()).await.unwrap();
    client.readable().await.unwrap();
    File::options().write(true).open(files.blob(4)).unwrap().set_len(AHEAD as u64).unwrap();

    let mut read = Vec::new();
    // The end or a reset: both tell that bytes are missing.
    let _ = client.read_to_end(&mut read).await;
    assert!(read.len() < LENGTHS[4], "the reply is whole");
    assert!(!read.ends_with(b"none"), "another reply follows");
    assert_eq!(files.broken.load(SeqCst), 1);
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_a_file_is_cut() {
    let Some(files) = Files::start(Options { write_idle: SHORT, ..generous() }).await else {
        return;
    };
    let requests: String = (0..40).map(|_| get(4)).collect();
    let mut client = files.ask(&requests).await;
    client.readable().await.unwrap();
    let cut = async {
        while files.traffic.timed_out() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG, cut).await.expect("the client is cut");
    let mut read = Vec::new();
    let _ = client.read_to_end(&mut read).await;
    assert!(read.len() < 40 * LENGTHS[4], "the client was never cut");
    assert_eq!(files.broken.load(SeqCst), 0, "that is no fault of the disk");
}
