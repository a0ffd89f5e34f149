//! Files in the replies of a web application: an axum app over a store, without a server of ours.

use std::io::Cursor;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use filestore_core::web::{problem, respond, respond_with_variant};
use filestore_core::{FileId, FileStore, Fit, NewUpload, Scope};
use image::{ImageFormat, Rgb, RgbImage};
use serde_json::Value;
use tower_service::Service as _;

const TEXT: &[u8] = b"hello from the store";

async fn download(
    State(store): State<FileStore>,
    Path(id): Path<String>,
    parts: Parts,
) -> Response {
    match id.parse() {
        Ok(id) => respond(&parts, store.serving(&own()), id).await.into_response(),
        Err(error) => problem(&error).into_response(),
    }
}

async fn thumbnail(
    State(store): State<FileStore>,
    Path((id, size)): Path<(String, u32)>,
    parts: Parts,
) -> Response {
    let id: FileId = id.parse().unwrap();
    respond_with_variant(&parts, store.serving(&own()), id, size, Fit::Inside).await.into_response()
}

fn own() -> Scope {
    Scope::Organizations(vec!["42".parse().unwrap()])
}

/// An application with one file of the organization 42.
struct App {
    router: Router,
    store: FileStore,
    id: FileId,
}

impl App {
    async fn with(name: &str, bytes: &[u8]) -> Self {
        let store = FileStore::temporary().await.unwrap();
        let router = Router::new()
            .route("/files/{id}", get(download))
            .route("/files/{id}/{size}", get(thumbnail))
            .with_state(store.clone());
        let new = NewUpload::new("42".parse().unwrap(), "docs".parse().unwrap()).with_name(name);
        let id = store.upload(new, bytes).await.unwrap().file_id;
        Self { router, store, id }
    }

    async fn ask(
        &self,
        method: Method,
        below: &str,
        headers: &[(&str, &str)],
    ) -> (u16, HeaderMap, Vec<u8>) {
        let path = format!("/files/{}{below}", self.id);
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response =
            self.router.clone().call(request.body(Body::empty()).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        (head.status.as_u16(), head.headers, to_bytes(body, usize::MAX).await.unwrap().to_vec())
    }

    async fn get(&self, headers: &[(&str, &str)]) -> (u16, HeaderMap, Vec<u8>) {
        self.ask(Method::GET, "", headers).await
    }
}

fn picture() -> Vec<u8> {
    let mut png = Cursor::new(Vec::new());
    let red = RgbImage::from_pixel(640, 480, Rgb([200, 30, 30]));
    red.write_to(&mut png, ImageFormat::Png).unwrap();
    png.into_inner()
}

fn code(body: &[u8]) -> String {
    let problem: Value = serde_json::from_slice(body).unwrap();
    problem["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_download_has_the_headers_of_the_server() {
    let app = App::with("a.txt", TEXT).await;
    let (status, headers, body) = app.get(&[]).await;
    assert_eq!((status, &body[..]), (200, TEXT));
    assert_eq!(headers["content-length"], "20");
    assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(headers["accept-ranges"], "bytes");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(headers["cache-control"], "private, no-cache");
    let record = app.store.scoped(&own()).record(app.id).await.unwrap();
    assert_eq!(headers["etag"], format!("\"{}\"", record.blob.sha256.to_hex()).as_str());

    let (status, head, body) = app.ask(Method::HEAD, "", &[]).await;
    assert_eq!((status, body.len(), &head["content-length"]), (200, 0, &headers["content-length"]));
}

/// A router removes the body of a reply to HEAD. Without a router, a server of HTTP/2 sends every body.
#[tokio::test]
async fn a_head_has_no_body_without_a_router_either() {
    let app = App::with("a.png", &picture()).await;
    let (parts, ()) = Request::head("/").body(()).unwrap().into_parts();
    for (size, status) in [(200, 200), (3, 400)] {
        let (own, fit) = (own(), Fit::Inside);
        let files = app.store.serving(&own);
        let response = respond_with_variant(&parts, files, app.id, size, fit).await;
        assert_eq!(response.status(), status);
        let body = to_bytes(Body::new(response.into_body()), usize::MAX).await.unwrap();
        assert!(body.is_empty(), "{status}: {body:?}");
    }
}

#[tokio::test]
async fn what_a_browser_could_run_is_saved() {
    let app = App::with("a.html", b"<!DOCTYPE html><html><script>alert(1)</script></html>").await;
    let (_, headers, _) = app.get(&[]).await;
    assert!(headers["content-disposition"].to_str().unwrap().starts_with("attachment;"));
    assert!(headers["content-security-policy"].to_str().unwrap().contains("sandbox"));
}

#[tokio::test]
async fn ranges_and_conditions_count() {
    let app = App::with("a.txt", TEXT).await;
    let etag = app.get(&[]).await.1["etag"].to_str().unwrap().to_owned();

    let (status, headers, body) = app.get(&[("range", "bytes=6-9")]).await;
    assert_eq!((status, &body[..]), (206, &b"from"[..]));
    assert_eq!(
        (&headers["content-range"], &headers["content-length"]),
        (&"bytes 6-9/20".parse().unwrap(), &"4".parse().unwrap())
    );
    let (status, _, body) = app.get(&[("range", "bytes=6-9"), ("if-range", "\"other\"")]).await;
    assert_eq!((status, body.len()), (200, 20));

    let (status, headers, body) = app.get(&[("range", "bytes=20-")]).await;
    assert_eq!((status, code(&body).as_str()), (416, "range_not_satisfiable"));
    assert_eq!(headers["content-range"], "bytes */20");

    let (status, headers, body) = app.get(&[("if-none-match", &etag)]).await;
    assert_eq!((status, body.len(), headers["etag"].to_str().unwrap()), (304, 0, etag.as_str()));
    let (status, _, body) = app.get(&[("if-match", "\"other\"")]).await;
    assert_eq!((status, code(&body).as_str()), (412, "precondition_failed"));
    assert_eq!(app.get(&[("if-match", &etag)]).await.0, 200);
}

#[tokio::test]
async fn errors_are_problem_documents_and_a_foreign_file_is_unknown() {
    let mut app = App::with("a.txt", TEXT).await;
    let new = NewUpload::new("43".parse().unwrap(), "docs".parse().unwrap());
    app.id = app.store.upload(new, TEXT).await.unwrap().file_id;
    let (status, headers, body) = app.get(&[]).await;
    assert_eq!((status, code(&body).as_str()), (404, "not_found"));
    assert_eq!(headers["content-type"], "application/problem+json");
    assert_eq!(headers["cache-control"], "no-store");
    let problem: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(headers["x-request-id"], problem["request_id"].as_str().unwrap());

    let (status, _, body) = app.ask(Method::GET, "/123", &[]).await;
    assert_eq!((status, code(&body).as_str()), (400, "invalid_field"));
}

#[tokio::test]
async fn a_variant_is_asked_for_again_without_pixels() {
    let app = App::with("a.png", &picture()).await;

    let (status, headers, body) = app.ask(Method::GET, "/200", &[]).await;
    assert_eq!((status, &headers["content-type"]), (200, &"image/webp".parse().unwrap()));
    assert_eq!(&body[8..12], b"WEBP");
    let etag = headers["etag"].to_str().unwrap();
    let (status, _, body) = app.ask(Method::GET, "/200", &[("if-none-match", etag)]).await;
    assert_eq!((status, body.len()), (304, 0));
}

/// Larger than one read from the disk, so that the body has several frames.
#[tokio::test]
async fn a_large_file_and_its_ranges_are_whole() {
    let bytes: Vec<u8> =
        (0..3_000_000_u32).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[2]).collect();
    let app = App::with("a.bin", &bytes).await;
    let (status, _, body) = app.get(&[]).await;
    assert!(status == 200 && body == bytes);
    let (status, _, body) = app.get(&[("range", "bytes=1000000-2500000")]).await;
    assert!(status == 206 && body == bytes[1_000_000..=2_500_000]);
}
