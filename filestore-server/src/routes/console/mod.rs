//! `/console/`: the web console, as static files.
//!
//! The console uses only the API, with the key of its user. This module knows neither.
//!
//! # Paths
//! `/console` leads to `console/`. Below it, a file of the console is sent as it is, and an unknown name in
//! `assets/` is 404. Every other path is the page, because the page has a router of its own. The page names its
//! assets relative to its path, so proxies and mounted services need no setting.
//!
//! # Security
//! The files contain no data, so they need no key. The policy lets the page run its own scripts only, and lets no
//! other site frame it. `console/signed-out` makes the browser forget what it cached, if the console itself leads there.
//! The browser's storage is never cleared, because it belongs to the whole origin, also to an application that mounts
//! the service.

mod dist;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use filestore_core::{Error, ErrorKind};
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue};
use warp::Filter;
use warp::path::{FullPath, Tail};
use warp::reply::Response;

use self::dist::{ASSETS, Dist, FILES, Representation, media_type};
use crate::http::accept::Coding;
use crate::http::conditional::{Outcome, Validators, evaluate};
use crate::reply::{self, Failure, NOSNIFF};
use crate::request::call::Call;
use crate::routes::filters::{RouteFilter, get_at};
use crate::state::App;

/// The page that a sign-out opens.
const SIGNED_OUT: &str = "signed-out";

/// The headers of the page and of every asset.
const HEADERS: [(HeaderName, HeaderValue); 7] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (HeaderName::from_static("cross-origin-opener-policy"), SAME_ORIGIN),
    (HeaderName::from_static("cross-origin-resource-policy"), SAME_ORIGIN),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (X_CONTENT_TYPE_OPTIONS, NOSNIFF),
    (HeaderName::from_static("permissions-policy"), HeaderValue::from_static(PERMISSIONS)),
];

const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; \
    img-src 'self' blob:; media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-src 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// No device. An empty value would leave the browser's defaults.
const PERMISSIONS: &str =
    "camera=(), display-capture=(), geolocation=(), microphone=(), midi=(), payment=(), usb=()";

const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The most slashes in a path of the page. The deepest page of the console has four.
const DEEPEST: usize = 16;

/// The console of this program.
static CONSOLE: LazyLock<Dist> = LazyLock::new(|| Dist::of(FILES));

/// A path at or below `/console`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// `/console` without a slash.
    Door,
    /// The rest of a path below `/console/`, still encoded.
    Inside(String),
}

/// Returns true if the console is built in and not switched off.
pub(crate) fn is_on(app: &App) -> bool {
    app.options.console && CONSOLE.is_there()
}

/// Builds `/console` and everything below.
pub(crate) fn routes() -> RouteFilter {
    let place = warp::path("console").and(warp::path::tail()).and(warp::path::full()).map(
        |tail: Tail, full: FullPath| match tail.as_str() {
            "" if !full.as_str().ends_with('/') => Place::Door,
            inside => Place::Inside(inside.to_owned()),
        },
    );
    get_at(place, console)
}

async fn console(call: Arc<Call>, place: Place) -> Result<Response, Failure> {
    if !is_on(&call.app) {
        return Err(Failure::UnknownPath);
    }
    answer(&CONSOLE, &place, &call.headers)
}

/// Answers a read of `place`.
fn answer(dist: &Dist, place: &Place, headers: &HeaderMap) -> Result<Response, Failure> {
    let Place::Inside(path) = place else {
        return Ok(reply::moved(HeaderValue::from_static("console/")));
    };
    if let Some(file) = dist.file(path, headers) {
        return sent(file, &Kind::of_file(path), headers);
    }
    if path.starts_with(ASSETS) {
        return Err(Failure::UnknownPath);
    }
    let depth = path.bytes().filter(|byte| *byte == b'/').count();
    if depth > DEEPEST {
        return Err(Failure::UnknownPath);
    }
    let page = dist.page(depth).ok_or(Failure::UnknownPath)?;
    if path == SIGNED_OUT {
        return Ok(farewell(&page, headers));
    }
    sent(&page, &Kind::PAGE, headers)
}

/// The headers by which replies differ.
#[derive(Debug)]
struct Kind {
    media_type: &'static str,
    caching: &'static str,
}

impl Kind {
    const PAGE: Self = Self { media_type: "text/html; charset=utf-8", caching: "no-cache" };

    /// Decides by a file's name: the name of an asset changes with its content.
    fn of_file(name: &str) -> Self {
        let is_asset = name.starts_with(ASSETS);
        let caching = if is_asset { "public, max-age=31536000, immutable" } else { "no-cache" };
        Self { media_type: media_type(name), caching }
    }
}

/// Sends a file, or 304 if the client has it.
fn sent(file: &Representation, kind: &Kind, headers: &HeaderMap) -> Result<Response, Failure> {
    let current = Validators { etag: file.etag.clone(), last_modified: None };
    let mut response = match evaluate(headers, &current) {
        Outcome::Proceed => whole(file, kind),
        Outcome::NotModified => reply::not_modified(),
        Outcome::PreconditionFailed => {
            let message = "the file's content is not the one the request is about";
            return Err(Error::new(ErrorKind::PreconditionFailed, message).into());
        }
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, file.etag.to_header());
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(kind.caching));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    headers.extend(HEADERS);
    Ok(response)
}

/// Replies 200 with all bytes.
fn whole(file: &Representation, kind: &Kind) -> Response {
    let mut response = Response::new(file.bytes.clone().into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind.media_type));
    if file.coding != Coding::Identity {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(file.coding.name()));
    }
    response
}

/// Sends the page after a sign-out. No cache keeps it, because the header must arrive each time. A page of another
/// site cannot clear anything.
fn farewell(page: &Representation, request: &HeaderMap) -> Response {
    let mut response = whole(page, &Kind::PAGE);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if request.get(SEC_FETCH_SITE).is_some_and(|site| site == "same-origin") {
        headers.insert(CLEAR_SITE_DATA, HeaderValue::from_static("\"cache\""));
    }
    headers.extend(HEADERS);
    response
}
