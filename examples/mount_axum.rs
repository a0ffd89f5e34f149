//! Mounts the HTTP API in an axum application, below `/files`, with the application's own routes next to it.
//!
//! `cargo run --example mount_axum`

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use filestore_client::{Client, Item};
use filestore_core::keys::{KeyScope, NewKey};
use filestore_core::{FileStore, Scope, Workers};
use filestore_server::listen::Peer;
use filestore_server::{ServiceOptions, service};
use tokio::net::TcpListener;

const PREFIX: &str = "/files";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = FileStore::open(dir.path()).await?;
    let workers = Workers::start(&store);

    // Links of the API begin with the prefix.
    let mut options = ServiceOptions::default();
    options.path_prefix = Some(PREFIX.to_owned());
    let app = Router::new()
        .route("/", get(|| async { "hello from the application" }))
        .nest_service(PREFIX, service(store.clone(), options)?)
        .layer(from_fn(with_peer));

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}{PREFIX}", listener.local_addr()?);
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let serving = tokio::spawn(axum::serve(listener, app).into_future());

    // A caller needs a key. `ServiceOptions::auth` says otherwise.
    let key = NewKey::new("letters", Scope::All, [KeyScope::Read, KeyScope::Write]);
    let (_, secret) = store.keys().create(key).await?;
    let client = Client::builder(&base)?.api_key(secret.expose()).build()?;
    let letters = client.organization("42")?.sub_system("letters")?;
    let record = letters.upload(Item::from_bytes("hello").original_name("a.txt")).await?;
    println!("stored {} below {PREFIX}", record.file_id);
    println!("it says {:?}", client.download(&record.file_id).bytes().await?);

    serving.abort();
    workers.stop(std::time::Duration::from_secs(30)).await;
    store.close().await;
    Ok(())
}

/// Tells the service from which address a request comes. Guard, rate limits and the audit log need it.
async fn with_peer(
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    request.extensions_mut().insert(Peer::Tcp(peer));
    next.run(request).await
}
