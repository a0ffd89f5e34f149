//! The table of routes: every method and path that is served, and the right that each needs.
//!
//! The filters beside this file say how a request is read and answered. The table says what it is:
//! access, metrics and the description of the API go by its rows. Tests hold both to one another, and
//! a handler without a row answers nothing.

use filestore_core::api::PREFIX;
use filestore_core::keys::KeyScope;
use http::Method;

use super::path::is_reserved;
use crate::request::base::Base;

/// One row: a method on a path. A row of GET serves HEAD as well.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The method, as the API describes it.
    pub(crate) method: Method,
    /// The path below `/api/v1`, with names in braces for the segments that vary.
    pub(crate) template: &'static str,
    /// The folder that the path is in.
    folder: Folder,
    /// The right that a caller must have.
    pub(crate) need: Need,
    /// The read that the route is, if it is one that needs no walk through the filters.
    pub(crate) read: Option<Read>,
}

/// A read of a file: most of what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// The stored bytes.
    Content,
    /// A picture made of them.
    Variant,
}

/// The folder that a path is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folder {
    /// `/api/v1`.
    Api,
    /// The root, beside the API.
    Root,
}

/// The right that a route demands of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// None: the route answers everybody.
    Nothing,
    /// A key with this scope, for the organizations that the request is about.
    Scope(KeyScope),
    /// A key with the scope `admin` for all organizations.
    ServiceAdmin,
}

const READ: Need = Need::Scope(KeyScope::Read);
const WRITE: Need = Need::Scope(KeyScope::Write);
const DELETE: Need = Need::Scope(KeyScope::Delete);

/// All routes, the hot paths first. No path matches two templates.
pub(crate) static ROUTES: &[Route] = &[
    Route::reading(Read::Variant, "/files/{file_id}/{width}/{height}"),
    Route::reading(Read::Content, "/files/{file_id}"),
    Route::new(Method::DELETE, "/files/{file_id}", DELETE),
    Route::new(Method::POST, "/files/upload", WRITE),
    Route::new(Method::PUT, "/files/upload", WRITE),
    Route::new(Method::POST, "/files/batch", WRITE),
    Route::new(Method::POST, "/files/delete", DELETE),
    Route::new(Method::GET, "/files", READ),
    Route::new(Method::GET, "/files/{file_id}/info", READ),
    Route::new(Method::POST, "/files/{file_id}/restore", WRITE),
    Route::new(Method::POST, "/files/{file_id}/sign", READ),
    Route::new(Method::GET, "/files/{file_id}/receipt", READ),
    Route::new(Method::GET, "/receipt-keys", Need::Nothing),
    Route::new(Method::POST, "/files/sign-upload", WRITE),
    Route::new(Method::GET, "/sheets", READ),
    Route::new(Method::GET, "/health-checks", Need::Nothing),
    Route::new(Method::GET, "/health-checks/ready", Need::Nothing),
    Route::new(Method::GET, "/openapi.json", Need::Nothing),
    Route::new(Method::GET, "/docs", Need::Nothing),
    Route::new(Method::GET, "/storage-providers", READ),
    Route::new(Method::GET, "/organizations/{organization_id}/usage", READ),
    Route::new(Method::GET, "/organization-storage-bindings", Need::ServiceAdmin),
    Route::new(Method::POST, "/organization-storage-bindings/create", Need::ServiceAdmin),
    Route::new(Method::PUT, "/organization-storage-bindings/update", Need::ServiceAdmin),
    Route::new(Method::GET, "/admin/status", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/purge/run", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/sync/run", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/sync/enqueue", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/sync/retry", Need::ServiceAdmin),
    Route::new(Method::GET, "/admin/sync/status", Need::ServiceAdmin),
    Route::new(Method::GET, "/admin/migrate/plan", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/migrate/run", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/migrate/stop", Need::ServiceAdmin),
    Route::new(Method::GET, "/admin/migrate/status", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/migrate/verify", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/fsck/run", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/fsck/stop", Need::ServiceAdmin),
    Route::new(Method::GET, "/admin/fsck/status", Need::ServiceAdmin),
    Route::new(Method::GET, "/admin/backups", Need::ServiceAdmin),
    Route::new(Method::GET, "/admin/backups/{destination}", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/backups/{destination}/create", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/backups/{destination}/verify", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/backups/{destination}/restore", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/backups/{destination}/prune", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/backups/{destination}/forget", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/organizations/{organization_id}/erase", Need::ServiceAdmin),
    Route::new(Method::GET, "/admin/providers", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/providers/{code}/check", Need::ServiceAdmin),
    Route::new(Method::GET, "/admin/keys", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/keys", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/keys/{key_id}/rotate", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/keys/{key_id}/revoke", Need::ServiceAdmin),
    Route::new(Method::GET, "/admin/signing-secrets", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/signing-secrets/rotate", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/signing-secrets/{kid}/revoke", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/receipt-keys/rotate", Need::ServiceAdmin),
    Route::new(Method::GET, "/admin/variants/status", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/variants/prune", Need::ServiceAdmin),
    Route::beside(Method::GET, "/metrics", Need::Scope(KeyScope::Admin)),
];

/// Finds the route of a request; `path` may start with the base's prefix or not. `None` is a 404 or a
/// 405. Allocates nothing.
pub(crate) fn find(method: &Method, base: &Base, path: &str) -> Option<&'static Route> {
    at(base, path)?.find(|route| route.answers(method))
}

/// Returns the routes of a path, one for each method; `None` if nothing is there.
fn at<'p>(base: &Base, path: &'p str) -> Option<impl Iterator<Item = &'static Route> + 'p> {
    let mut as_sent = below(path).peekable();
    if as_sent.peek().is_some() {
        return Some(as_sent);
    }

    let mut without_prefix = below(base.strip(path)?).peekable();
    without_prefix.peek().is_some().then_some(without_prefix)
}

/// Returns the path below the public prefix, whether it was sent with the prefix or without.
pub(crate) fn without_prefix<'p>(base: &Base, path: &'p str) -> &'p str {
    if below(path).next().is_some() { path } else { base.strip(path).unwrap_or(path) }
}

/// Returns the routes of a path, in `/api/v1` or beside it.
fn below(path: &str) -> impl Iterator<Item = &'static Route> {
    let in_api = path.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('/'));
    let found = match in_api {
        Some(rest) => Some((Folder::Api, rest)),
        None => path.strip_prefix('/').map(|rest| (Folder::Root, rest)),
    };

    found.into_iter().flat_map(|(folder, rest)| {
        ROUTES.iter().filter(move |route| route.folder == folder && route.is_at(rest))
    })
}

impl Route {
    const fn new(method: Method, template: &'static str, need: Need) -> Self {
        Self { method, template, folder: Folder::Api, need, read: None }
    }

    /// Makes a row of a read of a file.
    const fn reading(read: Read, template: &'static str) -> Self {
        let folder = Folder::Api;
        Self { method: Method::GET, template, folder, need: READ, read: Some(read) }
    }

    /// Makes a row of a path beside the API.
    const fn beside(method: Method, template: &'static str, need: Need) -> Self {
        Self { method, template, folder: Folder::Root, need, read: None }
    }

    /// Returns the position of the row in the table.
    pub(crate) fn index(&self) -> usize {
        let offset = std::ptr::from_ref(self).addr() - ROUTES.as_ptr().addr();
        offset / size_of::<Self>()
    }

    /// Tests whether the path is below `/api/v1`.
    #[cfg(test)]
    pub(crate) fn is_in_api(&self) -> bool {
        self.folder == Folder::Api
    }

    fn answers(&self, method: &Method) -> bool {
        self.method == *method || (*method == Method::HEAD && self.method == Method::GET)
    }

    /// Tests whether a path below the folder has the form of the template. A slash at the end changes
    /// nothing.
    fn is_at(&self, path: &str) -> bool {
        let mut sent = segments(path);
        let mut named = segments(self.template).skip(1);

        let all_match = named.all(|name| sent.next().is_some_and(|segment| fits(name, segment)));
        all_match && matches!((sent.next(), sent.next()), (None | Some(b""), None))
    }
}

/// Splits a path. Byte by byte, which for a few short segments takes half the time of a search for characters.
fn segments(path: &str) -> impl Iterator<Item = &[u8]> {
    path.as_bytes().split(|byte| *byte == b'/')
}

/// Tests whether a segment is the one that the template names, or may stand in its place.
fn fits(name: &[u8], segment: &[u8]) -> bool {
    match name {
        b"{file_id}" => !segment.is_empty() && !is_reserved(segment),
        _ if name.starts_with(b"{") => !segment.is_empty(),
        _ => name == segment,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use filestore_core::{FileStore, NewUpload};
    use http::header::ALLOW;
    use http::{HeaderMap, Request};
    use http_body_util::{BodyExt as _, Empty};
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    use warp::filters::BoxedFilter;
    use warp::reply::Response;

    use super::*;
    use crate::audit::Audit;
    use crate::config::Config;
    use crate::listen::Peer;
    use crate::metrics::Metrics;
    use crate::reply::RequestId;
    use crate::request::call::{App, Call, Caller};
    use crate::routes::{direct, routes};
    use crate::server::guard::Guard;
    use crate::server::limiter::Limits;
    use crate::server::shared_check::SharedCheck;

    async fn app(base: Base) -> (tempfile::TempDir, Arc<App>) {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let (config, guard) = (Config::default(), Guard::default());
        let (metrics, audit) = (Metrics::new(), Audit::default());
        let (limits, readiness) = (Limits::default(), SharedCheck::default());
        (dir, Arc::new(App { store, config, base, guard, metrics, audit, limits, readiness }))
    }

    /// Makes a call of everybody's.
    fn call_of(app: &Arc<App>, method: Method, route: Option<&'static Route>) -> Arc<Call> {
        Arc::new(Call {
            app: Arc::clone(app),
            id: RequestId::fresh(),
            route,
            caller: Caller::anyone(),
            signed: None,
            peer: Peer::Unix,
            takes_files: false,
            client: None,
            method,
            headers: HeaderMap::new(),
            query: String::new(),
            audited: None,
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
    async fn ask(
        app: &Arc<App>,
        api: &BoxedFilter<(Response,)>,
        method: &str,
        path: &str,
    ) -> Response {
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
        let mut methods: BTreeSet<_> =
            at(base, path)?.map(|route| route.method.to_string()).collect();
        if methods.contains("GET") {
            methods.insert("HEAD".to_owned());
        }
        Some(methods)
    }

    /// Every word of a template, and words that are in none.
    fn words() -> BTreeSet<&'static str> {
        let named = ROUTES.iter().flat_map(|route| route.template.split('/'));
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
                for one in &words {
                    paths.insert(format!("/{root}/{one}"));
                    paths.extend(words.iter().map(|two| format!("/{root}/{one}/{two}")));
                }
            }
            for route in ROUTES {
                let path = route.template.replace(['{', '}'], "");
                paths.extend(["", "/", "//", "/x"].map(|end| format!("{path}{end}")));
            }

            for path in paths {
                for path in [path.clone(), format!("/api/v1{path}"), format!("/a/b/api/v1{path}")] {
                    if path.parse::<http::Uri>().is_ok() {
                        assert_eq!(
                            allowed(&app, &api, &path).await,
                            listed(&base, &path),
                            "{path}"
                        );
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

        for (path, method) in
            paths.iter().flat_map(|path| [(path, Method::GET), (path, Method::HEAD)])
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

    #[test]
    fn a_path_belongs_to_one_template() {
        for (number, route) in ROUTES.iter().enumerate() {
            let again = ROUTES[number + 1..]
                .iter()
                .any(|other| (&other.method, other.template) == (&route.method, route.template));
            assert!(!again, "{} {}", route.method, route.template);

            let example = route.template.replace(['{', '}'], "");
            let path = match route.folder {
                Folder::Api => format!("{PREFIX}{example}"),
                Folder::Root => example,
            };
            let templates: BTreeSet<_> = below(&path).map(|found| found.template).collect();
            assert_eq!(templates.into_iter().collect::<Vec<_>>(), [route.template]);
        }
    }

    /// Reads the table of section 5 of the reference.
    fn documented() -> Vec<(String, String, String)> {
        let reference = include_str!("../../docs/reference.md");
        let table = reference.split("| needs |\n|---|---|---|\n").nth(1).unwrap();
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        rows.map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let path = cells[1].trim_matches('`');
            let path = path
                .replace("{fileId}", "{file_id}")
                .replace("{organizationId}", "{organization_id}");
            (cells[0].to_owned(), path, cells[2].to_owned())
        })
        .collect()
    }

    #[test]
    fn the_reference_says_what_every_route_needs() {
        let mut listed: Vec<_> = ROUTES
            .iter()
            .map(|route| {
                let need = match route.need {
                    Need::Nothing => "no key".to_owned(),
                    Need::Scope(scope) => format!("`{scope}`"),
                    Need::ServiceAdmin => "`admin` for `*`".to_owned(),
                };
                (route.method.to_string(), route.template.to_owned(), need)
            })
            .collect();
        let mut documented = documented();
        listed.sort();
        documented.sort();
        assert_eq!(documented, listed);
    }

    #[test]
    fn a_row_knows_its_position() {
        for (position, route) in ROUTES.iter().enumerate() {
            assert_eq!(route.index(), position);
        }
    }

    #[test]
    fn reading_serves_head_and_other_methods_have_no_route() {
        let base = Base::default();
        let found = |method| find(&method, &base, "/api/v1/files/01ARZ3NDEKTSV4RRFFQ69G5FAV");
        assert_eq!(found(Method::HEAD), found(Method::GET));
        assert_eq!(found(Method::DELETE).unwrap().need, DELETE);
        assert_eq!(found(Method::PATCH), None);
        assert_eq!(find(&Method::GET, &base, "/api/v1/files/upload"), None);
    }
}
