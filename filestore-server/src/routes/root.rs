//! GET / and GET /api/v1: lead callers from the address of the server to the console, and from that of the API to
//! its page.

use std::sync::Arc;

use filestore_core::api::PREFIX;
use http::HeaderMap;
use http::header::{ACCEPT, CACHE_CONTROL, HeaderValue, VARY};
use serde_json::json;
use warp::Filter;
use warp::reply::Response;

use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::console;
use crate::routes::filters::{RouteFilter, any_of, get};

/// Builds `/` and `/api/v1`.
pub(crate) fn routes() -> RouteFilter {
    let server = warp::path::end().and(get(server));
    let api = warp::path!("api" / "v1").and(get(api));

    any_of([server.boxed(), api.boxed()])
}

/// Leads a browser to the console, if there is one.
async fn server(call: Arc<Call>) -> Result<Response, Failure> {
    if !console::is_on(&call.app) {
        return api(call).await;
    }
    // Without a known prefix, a relative path is right below any.
    let has_prefix = call.app.base.segments().next().is_some();
    let console =
        if has_prefix { call.app.base.public("/console/") } else { "console/".to_owned() };
    led(&call, console)
}

/// Leads a browser to the page of the API.
async fn api(call: Arc<Call>) -> Result<Response, Failure> {
    let page = call.app.base.public(&format!("{PREFIX}/docs"));
    led(&call, page)
}

/// Leads a browser to `page`, and tells programs where the API is.
fn led(call: &Call, page: String) -> Result<Response, Failure> {
    let base = &call.app.base;
    let at = |path: &str| base.client_url(&format!("{PREFIX}{path}"));
    let mut response = match HeaderValue::try_from(page) {
        Ok(page) if wants_html(&call.headers) => reply::found(page),
        _ => {
            let mut told = json!({
                "service": "filestore",
                "api": at(""),
                "docs": at("/docs"),
                "openapi": at("/openapi.json"),
            });
            if console::is_on(&call.app) {
                told["console"] = base.client_url("/console/").into();
            }
            reply::ok(&told)?
        }
    };
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// Tests whether the client names HTML, as browsers do and programs do not. `*/*` names nothing.
fn wants_html(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_html = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("text/html"));
        // A weight of 0 refuses the type (RFC 9110 section 12.4.2).
        let is_refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.and_then(|weight| weight.parse::<f32>().ok()).is_some_and(|weight| weight <= 0.0)
        });
        is_html && !is_refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_client_that_names_html_is_led_to_the_page() {
        let wants = |accept: &'static str| {
            wants_html(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]))
        };
        for browser in [
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/json;q=0.9, Text/HTML; q=0.5",
        ] {
            assert!(wants(browser), "{browser}");
        }
        for program in ["*/*", "application/json", "text/html;q=0", "text/htmlx", ""] {
            assert!(!wants(program), "{program}");
        }
        assert!(!wants_html(&HeaderMap::new()));
    }
}
