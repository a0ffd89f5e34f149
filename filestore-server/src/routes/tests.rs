//! The filters beside the table of routes.

use std::collections::BTreeSet;
use std::sync::Arc;

use filestore_core::{FileStore, NewUpload};
use http::header::ALLOW;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Empty};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::audit::Audit;
use crate::config::{Auth, ServiceOptions};
use crate::http::base::Base;
use crate::listen::Peer;
use crate::reply::RequestId;
use crate::request::call::{Call, Caller};
use crate::route_table::{ROUTES, Route, at, find};
use crate::routes::{direct, routes};
use crate::state::App;

async fn app(base: Base) -> (tempfile::TempDir, Arc<App>) {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::open(dir.path()).await.unwrap();
    let options = ServiceOptions { auth: Auth::Auto, ..ServiceOptions::default() };
    (dir, Arc::new(App::new(store, options, base, Audit::default())))
}

/// Makes a call of everybody's.
fn call_of(app: &Arc<App>, method: Method, route: Option<&'static Route>) -> Arc<Call> {
    Arc::new(Call {
        app: Arc::clone(app),
        id: RequestId::fresh(),
        route,
        caller: Caller::anyone(),
        signed: None,
        peer: Some(Peer::Unix),
        takes_files: false,
        client: None,
        method,
        headers: HeaderMap::new(),
        query: String::new(),
        notes: None,
        era: app.store.uploads().era(),
        arrived: app.store.resumable().arrive(),
    })
}

/// Sends a request straight to the filters.
async fn ask_with(call: Arc<Call>, api: &BoxedFilter<(Response,)>, path: &str) -> Response {
    let mut request = Request::new(Empty::<bytes::Bytes>::new());
    *request.method_mut() = call.method.clone();
    *request.uri_mut() = path.parse().unwrap();
    request.extensions_mut().insert(call);

    TowerToHyperService::new(warp::service(api.clone())).call(request).await.unwrap()
}

/// Sends a request that carries no route.
async fn ask(app: &Arc<App>, api: &BoxedFilter<(Response,)>, method: &str, path: &str) -> Response {
    ask_with(call_of(app, method.parse().unwrap(), None), api, path).await
}

/// Returns the methods that the filters allow at a path, by asking with one that nothing has.
async fn allowed(
    app: &Arc<App>,
    api: &BoxedFilter<(Response,)>,
    path: &str,
) -> Option<BTreeSet<String>> {
    let reply = ask(app, api, "PROPFIND", path).await;
    match reply.status().as_u16() {
        404 => None,
        405 => {
            let methods = reply.headers()[ALLOW].to_str().unwrap().split(", ");
            Some(methods.map(str::to_owned).collect())
        }
        status => panic!("{path}: {status}"),
    }
}

/// Returns the methods that the table has for a path.
fn listed(base: &Base, path: &str) -> Option<BTreeSet<String>> {
    let mut methods: BTreeSet<_> = at(base, path)?.map(|route| route.method.to_string()).collect();
    if methods.contains("GET") {
        methods.insert("HEAD".to_owned());
    }
    Some(methods)
}

/// Every word of a template, and words that are in none.
fn words() -> BTreeSet<&'static str> {
    words_below(None)
}

/// Returns the words of the templates below a root, and some others.
fn words_below(root: Option<&str>) -> BTreeSet<&'static str> {
    let below = |template: &str| root.is_none_or(|root| template.split('/').nth(1) == Some(root));
    let templates = ROUTES.iter().map(|route| route.template).filter(|template| below(template));
    let named = templates.flat_map(|template| template.split('/'));
    named.chain(["", "x", "200", ".", "%2F", "api", "v1"]).collect()
}

#[tokio::test]
async fn the_filters_answer_what_the_table_lists_and_nothing_else() {
    for public_url in [None, Some("https://files.example.org/a/b"), Some("https://x/api/v1")] {
        let base = Base::of(public_url).unwrap();
        let (_dir, app) = app(base.clone()).await;
        let api = routes(&base);
        let words = words();
        let roots: BTreeSet<_> =
            ROUTES.iter().filter_map(|route| route.template.split('/').nth(1)).collect();

        let mut paths: BTreeSet<String> =
            ["/", "/api", "/api/v1", "/api/v2/files", "*", "//api/v1/files"]
                .map(str::to_owned)
                .into();
        for root in roots {
            paths.insert(format!("/{root}"));
            let own = words_below(Some(root));
            for one in &words {
                paths.insert(format!("/{root}/{one}"));
                paths.extend(own.iter().map(|two| format!("/{root}/{one}/{two}")));
            }
        }
        for route in ROUTES {
            let path = route.template.replace(['{', '}'], "");
            paths.extend(["", "/", "//", "/x"].map(|end| format!("{path}{end}")));
        }

        for path in paths {
            for path in [path.clone(), format!("/api/v1{path}"), format!("/a/b/api/v1{path}")] {
                if path.parse::<http::Uri>().is_ok() {
                    assert_eq!(allowed(&app, &api, &path).await, listed(&base, &path), "{path}");
                }
            }
        }
    }
}

/// Shows a reply as it is sent.
async fn shown(reply: Response) -> String {
    let (head, body) = reply.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    format!("{} {:?} {}", head.status, head.headers, String::from_utf8_lossy(&body))
}

#[tokio::test]
async fn a_direct_read_answers_what_the_filters_answer() {
    let base = Base::of(Some("https://files.example.org/a/b")).unwrap();
    let (_dir, app) = app(base.clone()).await;
    let new = NewUpload::new("acme".parse().unwrap(), "gallery".parse().unwrap());
    let stored = app.store.upload(new, &b"some text"[..]).await.unwrap().file_id.to_string();
    let api = routes(&base);

    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let mut paths = Vec::new();
    for id in [stored.as_str(), unknown, "x", "%2F", ".", "receipt"] {
        for rest in ["", "/", "/200/200", "/200/200/", "/201/200", "/200/400", "/a/%2F"] {
            paths.push(format!("/api/v1/files/{id}{rest}"));
            paths.push(format!("/a/b/api/v1/files/{id}{rest}"));
        }
    }

    for (path, method) in paths.iter().flat_map(|path| [(path, Method::GET), (path, Method::HEAD)])
    {
        let call = call_of(&app, method.clone(), find(&method, &base, path));
        let direct = direct::read(&call, path).expect("it is a read of a file").await;
        let filtered = ask_with(call, &api, path).await;
        assert_eq!(shown(direct).await, shown(filtered).await, "{method} {path}");
    }
    for path in ["/api/v1/files", "/api/v1/files/x/info", "/api/v1/files/upload"] {
        let call = call_of(&app, Method::GET, find(&Method::GET, &base, path));
        assert!(direct::read(&call, path).is_none(), "{path}");
    }
}

#[tokio::test]
async fn a_handler_without_a_row_answers_nothing() {
    let (_dir, app) = app(Base::default()).await;
    let api = routes(&app.base);
    assert_eq!(ask(&app, &api, "GET", "/api/v1/health-checks").await.status(), 404);
}
