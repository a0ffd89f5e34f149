//! The service below a prefix of another program's server: axum, which strips the prefix, and plain hyper, which does
//! not. Everything that a client sees works there as at the root.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::middleware::{Next, from_fn};
use filestore_core::keys::{KeyScope, NewKey};
use filestore_core::{FileStore, Scope};
use filestore_server::listen::Peer;
use filestore_server::{Auth, FileService, ServiceOptions, service};
use filestore_workspace::http_client;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower_service::Service as _;

const PREFIX: &str = "/files";

/// The servers that mount the service.
#[derive(Debug, Clone, Copy)]
enum Host {
    Axum,
    Hyper,
}

const HOSTS: [Host; 2] = [Host::Axum, Host::Hyper];

/// A mounted service. A drop ends its server.
struct Mounted {
    store: FileStore,
    origin: String,
    key: Option<String>,
    client: reqwest::Client,
    _serving: JoinSet<()>,
}

impl Mounted {
    async fn by(host: Host, adjust: impl FnOnce(&mut ServiceOptions)) -> Self {
        let store = FileStore::temporary().await.unwrap();
        let mut options = ServiceOptions::default();
        options.auth = Auth::Auto;
        options.path_prefix = Some(PREFIX.to_owned());
        adjust(&mut options);
        let files = service(store.clone(), options).unwrap();

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        match host {
            Host::Axum => serving.spawn(by_axum(listener, files)),
            Host::Hyper => serving.spawn(by_hyper(listener, files)),
        };
        let client = http_client().build().unwrap();
        Self { store, origin, key: None, client, _serving: serving }
    }

    /// Makes the first key, so that every request needs one.
    async fn with_key(mut self) -> Self {
        let new = NewKey::new("test", Scope::All, [KeyScope::Admin]);
        let (_, secret) = self.store.keys().create(new).await.unwrap();
        self.key = Some(secret.expose().to_owned());
        self
    }

    /// Begins a request to a path with the prefix.
    fn to(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.origin));
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    async fn get(&self, path: &str) -> Response {
        self.to(Method::GET, path).send().await.unwrap()
    }

    /// Uploads a file. Returns its location.
    async fn upload(&self) -> String {
        let file = reqwest::multipart::Part::bytes(&b"hello"[..]).file_name("a.txt");
        let form = reqwest::multipart::Form::new()
            .text("organization_id", "acme")
            .text("sub_system", "docs")
            .part("file", file);
        let request = self.to(Method::POST, "/files/api/v1/files/upload").multipart(form);
        location(&request.send().await.unwrap(), "/files/api/v1/files/")
    }
}

async fn by_axum(listener: TcpListener, files: FileService) {
    let app = Router::new().nest_service(PREFIX, files).layer(from_fn(
        async |ConnectInfo(peer): ConnectInfo<SocketAddr>, mut request: Request, next: Next| {
            request.extensions_mut().insert(Peer::Tcp(peer));
            next.run(request).await
        },
    ));
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app).await.unwrap();
}

async fn by_hyper(listener: TcpListener, files: FileService) {
    let mut connections = JoinSet::new();
    while let Ok((stream, peer)) = listener.accept().await {
        let files = files.clone();
        let answer = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(Peer::Tcp(peer));
            let mut files = files.clone();
            async move { Ok::<_, Infallible>(files.call(request).await.unwrap()) }
        });
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}

/// Returns the location of a 201, which begins with `start`.
fn location(reply: &Response, start: &str) -> String {
    assert_eq!(reply.status(), 201);
    let location = reply.headers()["location"].to_str().unwrap();
    assert!(location.starts_with(start), "{location}");
    location.to_owned()
}

#[tokio::test]
async fn a_location_below_a_prefix_leads_to_the_file() {
    for host in HOSTS {
        let mounted = Mounted::by(host, |_| ()).await;
        let location = mounted.upload().await;
        let reply = mounted.get(&location).await;
        assert_eq!(reply.text().await.unwrap(), "hello", "{host:?}");
        let other = mounted.get("/other/api/v1/health-checks").await;
        assert_eq!(other.status(), 404, "another prefix, {host:?}");
    }
}

#[tokio::test]
async fn tus_goes_on_at_its_location_below_a_prefix() {
    for host in HOSTS {
        let mounted = Mounted::by(host, |_| ()).await;
        let path = "/files/api/v1/uploads?organization_id=acme&sub_system=docs";
        let create = mounted.to(Method::POST, path).header("tus-resumable", "1.0.0");
        let created = create.header("upload-length", "5").send().await.unwrap();
        let upload = location(&created, "/files/api/v1/uploads/");

        let append = mounted.to(Method::PATCH, &upload).header("tus-resumable", "1.0.0");
        let append = append.header("content-type", "application/offset+octet-stream");
        let reply = append.header("upload-offset", "0").body("hello").send().await.unwrap();
        assert_eq!(
            (reply.status().as_u16(), &reply.headers()["upload-offset"]),
            (204, &"5".parse().unwrap())
        );
        let id = reply.headers()["file-id"].to_str().unwrap();
        let reply = mounted.get(&format!("/files/api/v1/files/{id}")).await;
        assert_eq!(reply.text().await.unwrap(), "hello", "{host:?}");
    }
}

#[tokio::test]
async fn keys_are_asked_for_and_signed_urls_need_none() {
    for host in HOSTS {
        let mut mounted = Mounted::by(host, |_| ()).await.with_key().await;
        let location = mounted.upload().await;
        let sign = mounted.to(Method::POST, &format!("{location}/sign")).send().await.unwrap();
        let signed: Value = sign.json().await.unwrap();
        let url = signed["url"].as_str().unwrap();
        assert!(url.starts_with(&format!("{location}?")), "{url}");

        mounted.key = None;
        assert_eq!(mounted.get(&location).await.status(), 401, "{host:?}");
        assert_eq!(mounted.get(url).await.text().await.unwrap(), "hello", "{host:?}");
    }
}

#[tokio::test]
async fn the_guard_of_an_open_service_works_below_a_prefix() {
    for host in HOSTS {
        let mounted = Mounted::by(host, |_| ()).await;
        let keys = || mounted.to(Method::GET, "/files/api/v1/admin/keys");
        assert_eq!(keys().send().await.unwrap().status(), 200, "{host:?}");
        let rebound = keys().header("host", "evil.example").send().await.unwrap();
        assert_eq!(rebound.status(), 421, "{host:?}");
        let proxied = keys().header("x-forwarded-for", "192.0.2.1").send().await.unwrap();
        assert_eq!(proxied.status(), 403, "{host:?}");
    }
}

#[tokio::test]
async fn limits_count_the_requests_of_an_address_below_a_prefix() {
    for host in HOSTS {
        let mounted = Mounted::by(host, |options| {
            options.rate_limits.address.requests = Some(2);
        });
        let mounted = mounted.await;
        let list = async || mounted.get("/files/api/v1/storage-providers").await;
        assert_eq!(
            (list().await.status(), list().await.status()),
            (200.try_into().unwrap(), 200.try_into().unwrap())
        );
        let refused = list().await;
        assert_eq!(refused.status(), 429, "{host:?}");
        assert!(refused.headers().contains_key("retry-after"));
    }
}

#[tokio::test]
async fn metrics_and_the_description_are_below_the_prefix() {
    for host in HOSTS {
        let mounted = Mounted::by(host, |_| ()).await;
        mounted.upload().await;
        let metrics = mounted.get("/files/metrics").await.text().await.unwrap();
        let counted = metrics.lines().find(|line| {
            line.starts_with("filestore_http_requests_total") && line.contains("/files/upload")
        });
        assert!(counted.is_some_and(|line| line.ends_with(" 1")), "{host:?}: {counted:?}");

        let described = mounted.get("/files/api/v1/openapi.json").await;
        let described: Value = described.json().await.unwrap();
        assert_eq!(described["servers"][0]["url"], "/files/api/v1", "{host:?}");
        let page = mounted.get("/files/api/v1/docs").await;
        assert_eq!(page.status(), 200, "{host:?}");
    }
}

#[tokio::test]
async fn a_range_of_a_file_is_served_below_a_prefix() {
    for host in HOSTS {
        let mounted = Mounted::by(host, |_| ()).await;
        let location = mounted.upload().await;
        let reply = mounted.to(Method::GET, &location).header("range", "bytes=1-3");
        let reply = reply.send().await.unwrap();
        assert_eq!(reply.headers()["content-range"], "bytes 1-3/5");
        assert_eq!(
            (reply.status().as_u16(), reply.text().await.unwrap()),
            (206, "ell".to_owned()),
            "{host:?}"
        );
    }
}
