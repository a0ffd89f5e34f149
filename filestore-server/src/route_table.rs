//! The table of routes: every served method and path, with the right that it needs.
//!
//! Access checks, metrics and the description of the API use the rows. The filters in `routes` read and
//! answer the requests, and explain why both exist.

use filestore_core::api::PREFIX;
use filestore_core::keys::KeyScope;
use http::Method;

use crate::http::base::Base;

/// A row: a method on a path. A row of GET also serves HEAD.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The method, as the API describes it.
    pub(crate) method: Method,
    /// The path below `/api/v1`. Names in braces stand for variable segments.
    pub(crate) template: &'static str,
    /// The folder of the path.
    folder: Folder,
    /// The right that a caller needs.
    pub(crate) need: Need,
    /// The kind of audit line that a request writes.
    trail: Trail,
    /// Set for a read that needs no walk through the filters.
    pub(crate) read: Option<Read>,
}

/// A read of a file. Most requests are reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// The stored bytes.
    Content,
    /// A picture made from the stored bytes.
    Variant,
}

/// The folder of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folder {
    /// `/api/v1`.
    Api,
    /// The root, outside the API.
    Root,
    /// The web console. Its one row matches all paths at and below `/console`.
    Console,
}

/// The audit lines that a route writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trail {
    /// A line for each request, unless its method is safe (RFC 9110 section 9.2.1). This is the default for
    /// all rows.
    Line,
    /// A line only if the handler reports a fact. A resumable upload mostly adds a file, like the rows without a
    /// line. Its handler reports a replacement.
    IfReported,
    /// No line. The route only adds files, which removes no data and gives no rights. The number of these
    /// requests is about the number of files.
    Nothing,
}

/// The right that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// No right. The route answers all callers.
    Nothing,
    /// A key with any scopes.
    Key,
    /// A key with this scope, for the organizations that the request is about.
    Scope(KeyScope),
    /// A key with the scope `admin` for all organizations.
    ServiceAdmin,
}

const READ: Need = Need::Scope(KeyScope::Read);
const WRITE: Need = Need::Scope(KeyScope::Write);
const DELETE: Need = Need::Scope(KeyScope::Delete);

/// All routes, most frequent first. No path matches two templates.
pub(crate) static ROUTES: &[Route] = &[
    Route::reading(Read::Variant, "/files/{file_id}/{width}/{height}"),
    Route::reading(Read::Content, "/files/{file_id}"),
    Route::new(Method::DELETE, "/files/{file_id}", DELETE),
    Route::new(Method::PATCH, "/files/{file_id}", WRITE),
    Route::adding(Method::POST, "/files/upload"),
    Route::new(Method::PUT, "/files/upload", WRITE),
    Route::adding(Method::POST, "/files/batch"),
    Route::receiving(Method::POST, "/uploads"),
    Route::new(Method::GET, "/uploads", READ),
    Route::new(Method::OPTIONS, "/uploads", Need::Nothing),
    Route::receiving(Method::PATCH, "/uploads/{upload}"),
    Route::new(Method::GET, "/uploads/{upload}", WRITE),
    Route::new(Method::POST, "/uploads/{upload}", WRITE),
    Route::new(Method::DELETE, "/uploads/{upload}", WRITE),
    Route::new(Method::OPTIONS, "/uploads/{upload}", Need::Nothing),
    Route::new(Method::POST, "/files/delete", DELETE),
    Route::new(Method::POST, "/files/restore", WRITE),
    Route::new(Method::GET, "/files", READ),
    Route::new(Method::GET, "/files/{file_id}/info", READ),
    Route::new(Method::POST, "/files/{file_id}/restore", WRITE),
    Route::new(Method::POST, "/files/{file_id}/sign", READ),
    Route::new(Method::GET, "/files/{file_id}/explain", READ),
    Route::new(Method::GET, "/files/{file_id}/receipt", READ),
    Route::new(Method::GET, "/receipt-keys", Need::Nothing),
    Route::new(Method::POST, "/files/sign-upload", WRITE),
    Route::new(Method::GET, "/sheets", READ),
    Route::new(Method::GET, "/health-checks", Need::Nothing),
    Route::new(Method::GET, "/health-checks/ready", Need::Nothing),
    Route::new(Method::GET, "/openapi.json", Need::Nothing),
    Route::new(Method::GET, "/docs", Need::Nothing),
    Route::new(Method::GET, "/me", Need::Key),
    Route::new(Method::GET, "/events", READ),
    Route::new(Method::GET, "/webhooks", Need::ServiceAdmin),
    Route::new(Method::POST, "/webhooks", Need::ServiceAdmin),
    Route::new(Method::GET, "/webhooks/{webhook_id}", Need::ServiceAdmin),
    Route::new(Method::PATCH, "/webhooks/{webhook_id}", Need::ServiceAdmin),
    Route::new(Method::DELETE, "/webhooks/{webhook_id}", Need::ServiceAdmin),
    Route::new(Method::POST, "/webhooks/{webhook_id}/rotate", Need::ServiceAdmin),
    Route::new(Method::POST, "/webhooks/{webhook_id}/ping", Need::ServiceAdmin),
    Route::new(Method::POST, "/webhooks/{webhook_id}/redeliver", Need::ServiceAdmin),
    Route::new(Method::POST, "/webhooks/{webhook_id}/enable", Need::ServiceAdmin),
    Route::new(Method::POST, "/webhooks/{webhook_id}/disable", Need::ServiceAdmin),
    Route::new(Method::GET, "/webhooks/{webhook_id}/failures", Need::ServiceAdmin),
    Route::new(Method::GET, "/storage-providers", READ),
    Route::new(Method::GET, "/organizations", READ),
    Route::new(Method::GET, "/organizations/{organization_id}/usage", READ),
    Route::new(Method::GET, "/organizations/{organization_id}/sub-systems", READ),
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
    Route::new(Method::GET, "/admin/uploads", Need::ServiceAdmin),
    Route::new(Method::GET, "/admin/uploads/{upload_id}", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/uploads/{upload_id}/cancel", Need::ServiceAdmin),
    Route::new(Method::GET, "/admin/variants/status", Need::ServiceAdmin),
    Route::new(Method::POST, "/admin/variants/prune", Need::ServiceAdmin),
    Route::beside(Method::GET, "/metrics", Need::ServiceAdmin),
    Route::console(),
    Route::beside(Method::GET, "/", Need::Nothing),
    Route::beside(Method::GET, "/api/v1", Need::Nothing),
];

/// Finds the route of a request. `path` can have the base's prefix. `None` means 404 or 405. Allocates no
/// memory.
pub(crate) fn find(method: &Method, base: &Base, path: &str) -> Option<&'static Route> {
    at(base, path)?.find(|route| route.answers(method))
}

/// Returns the routes of a path, one for each method. `None` if the path is unknown.
///
/// The console comes last, because its row matches many paths. If the prefix is `/console`, the API below it is the
/// API.
pub(crate) fn at<'p>(
    base: &Base,
    path: &'p str,
) -> Option<impl Iterator<Item = &'static Route> + 'p> {
    let without_prefix = || base.strip(path);
    let places = [Some(of_api(path)), without_prefix().map(of_api)]
        .into_iter()
        .chain([without_prefix().map(of_console), Some(of_console(path))]);
    let found = places.flatten().find(|place| place.rows().next().is_some())?;
    Some(found.rows())
}

/// Returns the path without the public prefix, if it has the prefix.
pub(crate) fn without_prefix<'p>(base: &Base, path: &'p str) -> &'p str {
    if below(path).next().is_some() { path } else { base.strip(path).unwrap_or(path) }
}

/// Returns the routes of a path, in `/api/v1` or outside, without the console.
fn below(path: &str) -> impl Iterator<Item = &'static Route> {
    of_api(path).rows()
}

/// A path in a folder.
#[derive(Debug, Clone, Copy)]
struct Place<'p> {
    folder: Folder,
    /// The path below the folder. `None` if the path does not begin with a slash.
    rest: Option<&'p str>,
}

/// Returns the place of a path in `/api/v1` or outside.
fn of_api(path: &str) -> Place<'_> {
    let in_api = path.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('/'));
    // The address of the API is not below itself, with or without a slash.
    match in_api.filter(|rest| !rest.is_empty()) {
        Some(rest) => Place { folder: Folder::Api, rest: Some(rest) },
        None => Place { folder: Folder::Root, rest: path.strip_prefix('/') },
    }
}

/// Returns the place of a path if the path is one of the console.
fn of_console(path: &str) -> Place<'_> {
    Place { folder: Folder::Console, rest: path.strip_prefix('/') }
}

impl<'p> Place<'p> {
    /// Returns the rows that match.
    fn rows(self) -> impl Iterator<Item = &'static Route> + use<'p> {
        self.rest.into_iter().flat_map(move |rest| {
            ROUTES.iter().filter(move |route| route.folder == self.folder && route.is_at(rest))
        })
    }
}

impl Route {
    const fn new(method: Method, template: &'static str, need: Need) -> Self {
        Self { method, template, folder: Folder::Api, need, trail: Trail::Line, read: None }
    }

    /// Creates a row for a route that only adds files.
    const fn adding(method: Method, template: &'static str) -> Self {
        let (folder, trail) = (Folder::Api, Trail::Nothing);
        Self { method, template, folder, need: WRITE, trail, read: None }
    }

    /// Creates a row for the bytes of a resumable upload, which adds a file or replaces one.
    const fn receiving(method: Method, template: &'static str) -> Self {
        let (folder, trail) = (Folder::Api, Trail::IfReported);
        Self { method, template, folder, need: WRITE, trail, read: None }
    }

    /// Creates a row for a read of a file.
    const fn reading(read: Read, template: &'static str) -> Self {
        let (folder, trail) = (Folder::Api, Trail::Line);
        Self { method: Method::GET, template, folder, need: READ, trail, read: Some(read) }
    }

    /// Creates a row for a path outside the API.
    const fn beside(method: Method, template: &'static str, need: Need) -> Self {
        Self { method, template, folder: Folder::Root, need, trail: Trail::Line, read: None }
    }

    /// Creates the row of the console.
    const fn console() -> Self {
        let (method, need) = (Method::GET, Need::Nothing);
        let (folder, trail) = (Folder::Console, Trail::Line);
        Self { method, template: "/console", folder, need, trail, read: None }
    }

    /// Returns true if the path contains the address of a resumable upload.
    pub(crate) fn has_address(&self) -> bool {
        self.template == "/uploads/{upload}"
    }

    /// Returns true if each request writes an audit line.
    pub(crate) fn is_audited(&self) -> bool {
        self.trail == Trail::Line && !self.method.is_safe()
    }

    /// Returns true if a request writes an audit line only if the handler reports a fact.
    pub(crate) fn is_audited_if_reported(&self) -> bool {
        self.trail == Trail::IfReported
    }

    /// Returns the position of the row in the table.
    pub(crate) fn index(&self) -> usize {
        let offset = std::ptr::from_ref(self).addr() - ROUTES.as_ptr().addr();
        offset / size_of::<Self>()
    }

    /// Returns true if the path is below `/api/v1`.
    #[cfg(test)]
    pub(crate) fn is_in_api(&self) -> bool {
        self.folder == Folder::Api
    }

    fn answers(&self, method: &Method) -> bool {
        self.method == *method || (*method == Method::HEAD && self.method == Method::GET)
    }

    /// Returns true if a path below the folder matches the template. A trailing slash is ignored.
    fn is_at(&self, path: &str) -> bool {
        if self.template == "/" {
            return path.is_empty();
        }
        let mut sent = segments(path);
        let mut named = segments(self.template).skip(1);
        if self.folder == Folder::Console {
            return sent.next() == named.next();
        }

        let all_match = named.all(|name| sent.next().is_some_and(|segment| fits(name, segment)));
        all_match && matches!((sent.next(), sent.next()), (None | Some(b""), None))
    }
}

/// Returns a path as logs show it: without the token in the address of an upload.
pub(crate) fn shown(path: &str) -> &str {
    const UPLOADS: &str = "/api/v1/uploads/";
    let Some(id) = path.find(UPLOADS).map(|at| at + UPLOADS.len()) else { return path };
    // A percent sign can stand for the dot in front of the token.
    let end = path[id..].find(|letter: char| !letter.is_ascii_alphanumeric());
    end.map_or(path, |end| &path[..id + end])
}

/// Splits a path byte by byte. For a few short segments, this takes half the time of a character search.
fn segments(path: &str) -> impl Iterator<Item = &[u8]> {
    path.as_bytes().split(|byte| *byte == b'/')
}

/// Returns true if a segment below `/files/` is the name of another resource, and therefore no file id.
pub(crate) fn is_reserved(segment: &[u8]) -> bool {
    matches!(segment, b"upload" | b"batch" | b"delete" | b"restore" | b"sign-upload")
}

/// Returns true if a segment matches the template's segment.
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

    use super::*;

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
                Folder::Root | Folder::Console => example,
            };
            let found = at(&Base::default(), &path).into_iter().flatten();
            let templates: BTreeSet<_> = found.map(|found| found.template).collect();
            assert_eq!(templates.into_iter().collect::<Vec<_>>(), [route.template]);
        }
    }

    /// Reads the table of section 5 of the reference.
    fn documented() -> Vec<(String, String, String)> {
        let reference = include_str!("../docs/reference/access.md");
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
                    Need::Key => "a key".to_owned(),
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
    fn all_that_changes_or_mints_something_is_audited_except_what_only_adds_files() {
        let silent: Vec<_> = ROUTES
            .iter()
            .filter(|route| !route.method.is_safe() && !route.is_audited())
            .map(|route| format!("{} {}", route.method, route.template))
            .collect();
        let adding =
            ["POST /files/upload", "POST /files/batch", "POST /uploads", "PATCH /uploads/{upload}"];
        assert_eq!(silent, adding);
        let replacing: Vec<_> =
            ROUTES.iter().filter(|route| route.is_audited_if_reported()).collect();
        assert_eq!(
            replacing.iter().map(|route| &route.method).collect::<Vec<_>>(),
            ["POST", "PATCH"]
        );
        assert!(replacing.iter().all(|route| route.template.starts_with("/uploads")));
        assert!(ROUTES.iter().all(|route| !(route.method.is_safe() && route.is_audited())));
    }

    #[test]
    fn logs_show_no_token_of_an_upload() {
        for (path, expected) in [
            ("/api/v1/uploads/01K5.secret", "/api/v1/uploads/01K5"),
            ("/a/b/api/v1/uploads/01K5.secret/", "/a/b/api/v1/uploads/01K5"),
            ("/api/v1/uploads/01K5%2Esecret", "/api/v1/uploads/01K5"),
            ("/api/v1/uploads/01K5.secret/uploads/x", "/api/v1/uploads/01K5"),
            ("/api/v1/uploads/01K5", "/api/v1/uploads/01K5"),
            ("/api/v1/uploads", "/api/v1/uploads"),
            ("/api/v1/openapi.json", "/api/v1/openapi.json"),
        ] {
            assert_eq!(shown(path), expected);
        }
    }

    #[test]
    fn the_console_has_all_paths_below_it_but_not_the_api() {
        let console = |base: &Base, path: &str| {
            at(base, path).is_some_and(|mut found| found.all(|row| row.template == "/console"))
        };
        let plain = Base::default();
        for path in
            ["/console", "/console/", "/console//", "/console/org/1/files", "/console/api/v1/me"]
        {
            assert!(console(&plain, path), "{path}");
        }
        for path in
            ["/consoles", "/Console", "//console", "/x/console", "/api/v1/console", "console"]
        {
            assert!(!console(&plain, path), "{path}");
        }

        let below = Base::of(Some("https://x/console")).unwrap();
        assert!(console(&below, "/console/console/org") && console(&below, "/console/org"));
        let api = find(&Method::GET, &below, "/console/api/v1/me").unwrap();
        assert_eq!(api.template, "/me");
        assert_eq!(find(&Method::GET, &below, "/console/").unwrap().template, "/");
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
        assert_eq!(found(Method::PATCH).unwrap().need, WRITE);
        assert_eq!(found(Method::PUT), None);
        assert_eq!(find(&Method::GET, &base, "/api/v1/files/upload"), None);
    }
}
