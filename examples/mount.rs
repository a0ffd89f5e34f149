//! Mounts the HTTP API in a server of your own, below a path prefix, without the filestore server.
//!
//! `cargo run --example mount`

use std::convert::Infallible;

use bytes::Bytes;
use filestore_core::{FileStore, Workers};
use filestore_server::listen::Peer;
use filestore_server::{FileService, ReplyBody, ServiceOptions, service};
use http::{Request, Response};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tower_service::Service as _;

/// The prefix of the file service. Every other path is the application's own.
const PREFIX: &str = "/storage";

/// A page of the application, or a reply of the file service.
type Reply = Response<Either<Full<Bytes>, ReplyBody>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = FileStore::open(dir.path()).await?;
    let workers = Workers::start(&store);

    let mut options = ServiceOptions::default();
    options.path_prefix = Some(PREFIX.to_owned());
    let files = service(store.clone(), options)?;

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let accepting = tokio::spawn(accept(listener, files));

    println!("the application says {:?}", get(&base, "/").await?);
    println!("the file service says {}", get(&base, "/storage/api/v1/health-checks").await?);
    let description = get(&base, "/storage/api/v1/openapi.json").await?;
    let description: serde_json::Value = serde_json::from_str(&description)?;
    println!("its OpenAPI document names {}", description["servers"][0]["url"]);

    accepting.abort();
    workers.stop(std::time::Duration::from_secs(30)).await;
    store.close().await;
    Ok(())
}

/// Accepts connections and tells the service from which address each request comes.
async fn accept(listener: TcpListener, files: FileService) {
    while let Ok((stream, peer)) = listener.accept().await {
        let files = files.clone();
        let answer = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer::Tcp(peer));
            route(files.clone(), request)
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
        tokio::spawn(async move {
            // An error is the client's.
            let _ = connection.await;
        });
    }
}

/// Sends requests below the prefix to the file service.
async fn route(mut files: FileService, request: Request<Incoming>) -> Result<Reply, Infallible> {
    if request.uri().path().starts_with(PREFIX) {
        return Ok(files.call(request).await?.map(Either::Right));
    }
    Ok(Response::new(Either::Left(Full::from("hello from the application"))))
}

/// Asks the server as a client does.
async fn get(base: &str, path: &str) -> Result<String, Box<dyn std::error::Error>> {
    // The process needs a cryptography provider before reqwest can be used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let reply = client.get(format!("{base}{path}")).send().await?;
    Ok(reply.error_for_status()?.text().await?)
}
