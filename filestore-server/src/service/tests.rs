//! The service in this process, without a socket.

use std::cell::Cell;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filestore_core::config::BackupDestination;
use filestore_core::keys::{KeyScope, NewKey};
use filestore_core::{FileStore, Scope, StoreConfig};
use futures_util::stream;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::yield_now;
use tokio::time::timeout;
use tower_service::Service as _;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use super::{FileService, ReplyBody, ServiceError, ServiceOptions, service};
use crate::config::Auth;
use crate::listen::Peer;

const PREFIX: &str = "/storage/files";

const FORM: &str = "--b\r\nContent-Disposition: form-data; name=organization_id\r\n\r\nacme\r\n\
    --b\r\nContent-Disposition: form-data; name=sub_system\r\n\r\ndocs\r\n\
    --b\r\nContent-Disposition: form-data; name=file; filename=a.txt\r\n\r\nhello\r\n--b--\r\n";

/// Opens a store and mounts it with options that `adjust` has changed.
async fn mounted(adjust: impl FnOnce(&mut ServiceOptions)) -> (TempDir, FileService) {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::open(dir.path()).await.unwrap();
    let mut options = ServiceOptions { auth: Auth::Auto, ..ServiceOptions::default() };
    adjust(&mut options);
    (dir, service(store, options).unwrap())
}

/// Makes a request of this machine.
fn request(method: Method, path: &str, body: &'static str) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    request.headers_mut().insert(HOST, "localhost".parse().unwrap());
    request.extensions_mut().insert(Peer::Tcp(SocketAddr::from(([127, 0, 0, 1], 7))));
    request
}

fn form(path: &str) -> Request<Full<Bytes>> {
    let mut request = request(Method::POST, path, FORM);
    let form = "multipart/form-data; boundary=b".parse().unwrap();
    request.headers_mut().insert(CONTENT_TYPE, form);
    request
}

async fn send(service: &FileService, request: Request<Full<Bytes>>) -> Response<ReplyBody> {
    let Ok(response) = service.clone().call(request).await;
    response
}

/// Sends a request and reads the reply.
async fn ask(service: &FileService, request: Request<Full<Bytes>>) -> (u16, HeaderMap, Bytes) {
    let (head, body) = send(service, request).await.into_parts();
    (head.status.as_u16(), head.headers, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn it_answers_below_a_prefix_whether_or_not_a_router_strips_it() {
    let (_dir, files) = mounted(|options| options.path_prefix = Some(PREFIX.to_owned())).await;

    let upload = form(&format!("{PREFIX}/api/v1/files/upload"));
    let (status, headers, body) = ask(&files, upload).await;
    assert_eq!(status, 201, "{body:?}");
    let location = headers[LOCATION].to_str().unwrap().to_owned();
    assert!(location.starts_with("/storage/files/api/v1/files/"), "{location}");

    let stripped = location.strip_prefix(PREFIX).unwrap();
    for path in [location.as_str(), stripped] {
        let (status, _, body) = ask(&files, request(Method::GET, path, "")).await;
        assert_eq!((status, &body[..]), (200, &b"hello"[..]), "{path}");
    }
    let (status, ..) = ask(&files, request(Method::GET, "/storage/api/v1/files", "")).await;
    assert_eq!(status, 404, "another prefix is none of its own");

    let description = request(Method::GET, "/api/v1/openapi.json", "");
    let description: Value = serde_json::from_slice(&ask(&files, description).await.2).unwrap();
    assert_eq!(description["servers"][0]["url"], "/storage/files/api/v1");
}

#[tokio::test]
async fn signed_urls_have_the_prefix_and_are_good_with_it_and_without() {
    let (_dir, files) = mounted(|options| {
        options.path_prefix = Some(PREFIX.to_owned());
        options.auth = Auth::Keys;
    })
    .await;
    let new = NewKey::new("test", Scope::All, [KeyScope::Admin]);
    let (_, secret) = files.store().keys().create(new).await.unwrap();
    let key = format!("Bearer {}", secret.expose()).parse::<http::HeaderValue>().unwrap();
    let with_key = |mut request: Request<Full<Bytes>>| {
        request.headers_mut().insert(AUTHORIZATION, key.clone());
        request
    };

    let (status, headers, _) = ask(&files, with_key(form("/api/v1/files/upload"))).await;
    assert_eq!(status, 201);
    let location = headers[LOCATION].to_str().unwrap().to_owned();
    let sign = with_key(request(Method::POST, &format!("{location}/sign"), ""));
    let signed: Value = serde_json::from_slice(&ask(&files, sign).await.2).unwrap();
    let url = signed["url"].as_str().unwrap();
    assert!(url.starts_with(&format!("{location}?")), "{url}");

    for path in [url, url.strip_prefix(PREFIX).unwrap()] {
        let (status, _, body) = ask(&files, request(Method::GET, path, "")).await;
        assert_eq!((status, &body[..]), (200, &b"hello"[..]), "{path}");
    }
    let (status, ..) = ask(&files, request(Method::GET, &location, "")).await;
    assert_eq!(status, 401, "nobody reads without a key or a signature");
}

#[tokio::test]
async fn a_public_url_makes_links_absolute() {
    let url = "https://example.org/storage/files";
    let (_dir, files) = mounted(|options| options.public_url = Some(url.to_owned())).await;
    let description = request(Method::GET, "/api/v1/openapi.json", "");
    let description: Value = serde_json::from_slice(&ask(&files, description).await.2).unwrap();
    assert_eq!(description["servers"][0]["url"], "https://example.org/storage/files/api/v1");
}

#[tokio::test]
async fn an_open_service_administrates_for_a_known_peer_of_this_machine_alone() {
    let (_dir, files) = mounted(|_| ()).await;
    let status_of = |change: fn(&mut Request<Full<Bytes>>)| {
        let mut request = request(Method::GET, "/api/v1/admin/keys", "");
        change(&mut request);
        let files = files.clone();
        async move { ask(&files, request).await.0 }
    };

    assert_eq!(status_of(|_| ()).await, 200);
    let stranger = |request: &mut Request<Full<Bytes>>| {
        request.extensions_mut().insert(Peer::Tcp(SocketAddr::from(([192, 0, 2, 1], 7))));
    };
    assert_eq!(status_of(stranger).await, 403);
    let untold = |request: &mut Request<Full<Bytes>>| {
        request.extensions_mut().remove::<Peer>();
    };
    assert_eq!(status_of(untold).await, 403);
    let rebound = |request: &mut Request<Full<Bytes>>| {
        request.headers_mut().insert(HOST, "evil.example".parse().unwrap());
    };
    assert_eq!(status_of(rebound).await, 421);
}

#[tokio::test]
async fn a_request_is_under_way_until_the_body_of_its_reply_is_dropped() {
    let (_dir, files) = mounted(|options| options.rate_limits.address.in_flight = Some(1)).await;
    let list = || request(Method::GET, "/api/v1/storage-providers", "");

    let first = send(&files, list()).await;
    assert_eq!((first.status().as_u16(), send(&files, list()).await.status().as_u16()), (200, 429));
    drop(first);
    assert_eq!(send(&files, list()).await.status(), 200);
}

#[tokio::test]
async fn a_body_need_not_be_shared_between_threads() {
    let (_dir, files) = mounted(|_| ()).await;
    let (head, _) = form("/api/v1/files/upload").into_parts();
    let sent = Cell::new(false);
    let chunks = stream::poll_fn(move |_| {
        let chunk = Ok::<_, std::io::Error>(Frame::data(Bytes::from_static(FORM.as_bytes())));
        std::task::Poll::Ready((!sent.replace(true)).then_some(chunk))
    });
    let request = Request::from_parts(head, StreamBody::new(chunks));
    let Ok(response) = files.clone().call(request).await;
    assert_eq!(response.status(), 201);
}

/// Collects the fields of the spans of requests, and the names of the spans below them.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let parent = context.span(id).and_then(|span| Some(span.parent()?.name()));
        let mut line = Line(format!("{} in {parent:?}:", attributes.metadata().name()));
        attributes.record(&mut line);
        self.0.lock().push(line.0);
    }
}

#[tokio::test]
async fn a_trace_goes_on_from_the_caller_to_the_commit() {
    let spans = Spans::default();
    let subscriber = tracing_subscriber::registry().with(spans.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    let (_dir, files) = mounted(|_| ()).await;

    let mut upload = form("/api/v1/files/upload");
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    upload.headers_mut().insert("traceparent", trace.parse().unwrap());
    assert_eq!(ask(&files, upload).await.0, 201);

    let seen = spans.0.lock();
    let request = seen.iter().find(|line| line.starts_with("request in None")).unwrap();
    for field in [
        "http.request.method=POST",
        "http.route=\"/files/upload\"",
        "trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"",
        "parent_id=\"00f067aa0ba902b7\"",
    ] {
        assert!(request.contains(field), "{request}");
    }
    assert!(seen.iter().any(|line| line.starts_with("upload in Some(\"request\")")), "{seen:?}");
    assert!(seen.iter().any(|line| line.starts_with("commit in Some(\"upload\")")), "{seen:?}");
}

/// Collects the levels and fields of the events.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().push(line.0);
    }
}

impl Events {
    /// Waits for an event with this text.
    async fn find(&self, text: &str) -> String {
        let found = async {
            loop {
                let found = self.0.lock().iter().find(|line| line.contains(text)).cloned();
                match found {
                    Some(line) => return line,
                    None => yield_now().await,
                }
            }
        };
        timeout(Duration::from_mins(1), found).await.expect(text)
    }
}

/// Finds the file with these bytes below `folder`.
fn file_with(folder: &Path, bytes: &[u8]) -> Option<PathBuf> {
    std::fs::read_dir(folder).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return file_with(&path, bytes);
        }
        std::fs::read(&path).is_ok_and(|found| found == bytes).then_some(path)
    })
}

/// No reply contains the report.
#[tokio::test]
async fn a_detached_verification_logs_its_findings() {
    let events = Events::default();
    let subscriber = tracing_subscriber::registry().with(events.clone());
    let _guard = tracing::subscriber::set_default(subscriber);

    let home = tempfile::tempdir().unwrap();
    let nightly = home.path().join("nightly");
    std::fs::create_dir(&nightly).unwrap();
    let mut config = StoreConfig::default();
    config.backup_destinations.push(BackupDestination::new("nightly", nightly.as_path()));
    let store = FileStore::builder(home.path().join("data")).config(config).open().await.unwrap();
    let options = ServiceOptions { auth: Auth::Auto, ..ServiceOptions::default() };
    let files = service(store, options).unwrap();
    assert_eq!(ask(&files, form("/api/v1/files/upload")).await.0, 201);

    let run = async |name: &str, body: &'static str| {
        let path = format!("/api/v1/admin/backups/nightly/{name}");
        let mut request = request(Method::POST, &path, body);
        request.headers_mut().insert(CONTENT_TYPE, "application/json".parse().unwrap());
        ask(&files, request).await
    };
    assert_eq!(run("create", "{}").await.0, 200);

    let (status, _, body) = run("verify", r#"{"detach":true}"#).await;
    assert_eq!((status, &body[..]), (202, &br#"{"name":"nightly"}"#[..]));
    let intact = events.find("found the snapshot intact").await;
    assert!(intact.starts_with("INFO") && intact.contains("checked=1"), "{intact}");

    std::fs::remove_file(file_with(&nightly, b"hello").unwrap()).unwrap();
    assert_eq!(run("verify", r#"{"detach":true}"#).await.0, 202);
    let damaged = events.find("found a damaged or incomplete snapshot").await;
    assert!(damaged.starts_with("ERROR"), "{damaged}");
    for field in ["destination=\"nightly\"", "missing=1", "wrong=0", "database_ok=true"] {
        assert!(damaged.contains(field), "{damaged}");
    }
    files.end_detached_runs(Duration::from_mins(1)).await;
    files.store().close().await;
}

#[tokio::test]
async fn options_that_cannot_be_used_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::open(dir.path()).await.unwrap();
    let refused = |adjust: fn(&mut ServiceOptions)| {
        let mut options = ServiceOptions::default();
        adjust(&mut options);
        service(store.clone(), options).unwrap_err()
    };

    let relative = refused(|options| options.path_prefix = Some("storage".to_owned()));
    assert!(matches!(relative, ServiceError::PathPrefix(_)), "{relative}");
    let contradicting = refused(|options| {
        options.public_url = Some("https://example.org/a".to_owned());
        options.path_prefix = Some("/b".to_owned());
    });
    assert!(matches!(contradicting, ServiceError::PathPrefix(_)), "{contradicting}");
    let url = refused(|options| options.public_url = Some("example.org".to_owned()));
    assert!(matches!(url, ServiceError::PublicUrl(_)), "{url}");
    let limits = refused(|options| options.rate_limits.key.requests = Some(0));
    assert!(matches!(limits, ServiceError::Options(_)), "{limits}");
}
