//! A web application that stores and serves files: axum in front, the store behind, no other service.
//!
//! `cargo run -p filestore-core --example axum`

use std::io::Cursor;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::request::Parts;
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use filestore_core::web::{problem, respond, respond_with_variant};
use filestore_core::{Error, FilePolicy, FileStore, Fit, NewUpload, Scope};
use image::{ImageFormat, Rgb, RgbImage};
use tower_service::Service as _;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// The routes. A real application takes the customer from its session, here it is always `42`.
fn routes(store: FileStore) -> Router {
    Router::new()
        .route("/files/new/{name}", post(upload))
        .route("/files/{id}", get(download).delete(delete))
        .route("/files/{id}/thumbnail", get(thumbnail))
        .with_state(store)
}

fn customer() -> Result<Scope, Error> {
    Ok(Scope::Organizations(vec!["42".parse()?]))
}

/// Streams the body into the store. A body that is too large or no picture leaves nothing behind.
async fn upload(
    State(store): State<FileStore>,
    Path(name): Path<String>,
    body: Body,
) -> Result<String, Refused> {
    let pictures = FilePolicy::new().max_bytes(10 << 20).types(["image/*"]);
    let new = NewUpload::new("42".parse()?, "photos".parse()?).with_name(name);
    let record = store.upload_stream(new.with_policy(pictures), body.into_data_stream()).await?;
    Ok(record.file_id.to_string())
}

/// Serves the file, with ranges, entity tags and conditions.
async fn download(
    State(store): State<FileStore>,
    Path(id): Path<String>,
    parts: Parts,
) -> Result<Response, Refused> {
    Ok(respond(&parts, store.serving(&customer()?), id.parse()?).await.into_response())
}

/// Serves a picture of at most 200 pixels a side.
async fn thumbnail(
    State(store): State<FileStore>,
    Path(id): Path<String>,
    parts: Parts,
) -> Result<Response, Refused> {
    let (scope, id) = (customer()?, id.parse()?);
    let reply = respond_with_variant(&parts, store.serving(&scope), id, 200, Fit::Inside).await;
    Ok(reply.into_response())
}

async fn delete(
    State(store): State<FileStore>,
    Path(id): Path<String>,
) -> Result<StatusCode, Refused> {
    store.scoped(&customer()?).delete(id.parse()?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// An error of the store, which becomes a reply with its status and a problem document.
struct Refused(Error);

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        problem(&self.0).into_response()
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    // Yours: `FileStore::open("./files")`, `Workers::start(&store)` and `axum::serve(listener, app)`.
    let store = FileStore::temporary().await?;
    let mut app = routes(store);

    let (_, id) = ask(&mut app, Method::POST, "/files/new/red.png", "", painted()?).await?;
    let id = String::from_utf8(id)?;
    println!("stored as {id}");

    let file = format!("/files/{id}");
    let (status, bytes) = ask(&mut app, Method::GET, &file, "bytes=1-3", "").await?;
    println!("{status}: {:?}", String::from_utf8_lossy(&bytes));
    let (status, bytes) = ask(&mut app, Method::GET, &format!("{file}/thumbnail"), "", "").await?;
    println!("{status}: a thumbnail of {} bytes", bytes.len());

    let (status, bytes) = ask(&mut app, Method::POST, "/files/new/a.png", "", "no picture").await?;
    println!("{status}: {}", String::from_utf8_lossy(&bytes));

    let (status, _) = ask(&mut app, Method::DELETE, &file, "", "").await?;
    let (gone, _) = ask(&mut app, Method::GET, &file, "", "").await?;
    println!("{status}, and then {gone}");
    assert_eq!(gone, StatusCode::NOT_FOUND);
    Ok(())
}

/// Paints a red picture.
fn painted() -> Result<Vec<u8>> {
    let mut png = Cursor::new(Vec::new());
    RgbImage::from_pixel(640, 480, Rgb([200, 30, 30])).write_to(&mut png, ImageFormat::Png)?;
    Ok(png.into_inner())
}

/// Calls the application without a socket, as a test of yours can do.
async fn ask(
    app: &mut Router,
    method: Method,
    path: &str,
    range: &str,
    body: impl Into<Body>,
) -> Result<(StatusCode, Vec<u8>)> {
    let request = Request::builder().method(method).uri(path).header("Range", range);
    let response = app.call(request.body(body.into())?).await?;
    let status = response.status();
    Ok((status, to_bytes(response.into_body(), usize::MAX).await?.to_vec()))
}
