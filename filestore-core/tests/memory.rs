//! Memory stays small while a large file passes through an application: in as a stream, out as a body and as a reader.
//!
//! One test alone in its process, because the kernel counts the memory of all.

#![cfg(all(target_os = "linux", feature = "http"))]

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use filestore_core::web::respond;
use filestore_core::{FileStore, NewUpload, Scope};
use futures_util::stream::{self, StreamExt as _};
use tokio::io::AsyncBufReadExt as _;
use tower_service::Service as _;

const CHUNK: usize = 100_000;
const CHUNKS: usize = 2_000;

/// The largest growth, in KiB. A file that is held once needs 200,000.
const MOST_KIB: u64 = 50_000;

async fn upload(State(store): State<FileStore>, body: Body) -> String {
    let new = NewUpload::new("42".parse().unwrap(), "videos".parse().unwrap());
    store.upload_stream(new, body.into_data_stream()).await.unwrap().file_id.to_string()
}

async fn download(
    State(store): State<FileStore>,
    Path(id): Path<String>,
    parts: Parts,
) -> Response {
    respond(&parts, store.serving(&Scope::All), id.parse().unwrap()).await.into_response()
}

/// Returns the peak memory of the process so far, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_file_of_200_mb_passes_through_in_little_memory() {
    let store = FileStore::temporary().await.unwrap();
    let mut app = Router::new()
        .route("/", post(upload))
        .route("/{id}", get(download))
        .with_state(store.clone());
    let before = peak_kib();

    let chunks = stream::iter(0..CHUNKS);
    let chunks = chunks.map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![7; CHUNK])));
    let request = Request::post("/").body(Body::from_stream(chunks)).unwrap();
    let response = app.call(request).await.unwrap();
    let id = axum::body::to_bytes(response.into_body(), 100).await.unwrap();
    let id = String::from_utf8(id.to_vec()).unwrap();

    let request = Request::get(format!("/{id}")).body(Body::empty()).unwrap();
    let mut body = app.call(request).await.unwrap().into_body().into_data_stream();
    let mut received = 0;
    while let Some(chunk) = body.next().await {
        received += chunk.unwrap().len();
    }
    assert_eq!(received, CHUNK * CHUNKS);

    let files = store.scoped(&Scope::All);
    let (_, mut reader) = files.reader(id.parse().unwrap(), None).await.unwrap();
    let mut read = 0;
    loop {
        let lent = reader.fill_buf().await.unwrap().len();
        if lent == 0 {
            break;
        }
        reader.consume(lent);
        read += lent;
    }
    assert_eq!(read, CHUNK * CHUNKS);

    let grown = peak_kib() - before;
    assert!(grown < MOST_KIB, "memory grew by {grown} KiB");
}
