//! The API's reference (`docs/reference`) names what exists: every error code, every method of
//! every path. The OpenAPI document names the same.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use filestore_core::ErrorKind;
use filestore_core::explain::{FactCode, StepCode};
use filestore_server::{Config, Server};
use reqwest::Method;
use serde_json::Value;

const REFERENCE: &str = concat!(
    include_str!("../docs/reference/errors.md"),
    include_str!("../docs/reference/access.md"),
    include_str!("../docs/reference/http/index.md"),
    include_str!("../docs/reference/http/admin.md"),
    include_str!("../docs/reference/http/admin-backups.md"),
    include_str!("../docs/reference/http/admin-keys.md"),
    include_str!("../docs/reference/http/admin-status.md"),
    include_str!("../docs/reference/http/admin-work.md"),
    include_str!("../docs/reference/http/bindings.md"),
    include_str!("../docs/reference/http/explain.md"),
    include_str!("../docs/reference/http/events.md"),
    include_str!("../docs/reference/http/files.md"),
    include_str!("../docs/reference/http/health.md"),
    include_str!("../docs/reference/http/listings.md"),
    include_str!("../docs/reference/http/receipts.md"),
    include_str!("../docs/reference/http/resumable-uploads.md"),
    include_str!("../docs/reference/http/signed-urls.md"),
    include_str!("../docs/reference/http/uploads.md"),
    include_str!("../docs/reference/http/variants.md"),
    include_str!("../docs/reference/http/webhooks.md"),
);

/// Codes of failures that never reach the core.
const SERVER_CODES: [&str; 9] = [
    "length_required",
    "unsupported_version",
    "malformed_request",
    "method_not_allowed",
    "misdirected_request",
    "not_ready",
    "range_not_satisfiable",
    "rate_limited",
    "unsupported_media_type",
];

/// Methods by path, from every `METHOD /api/v1/...` of the text.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let mut paths = BTreeMap::<String, BTreeSet<String>>::new();
    let mut method = None;

    for word in REFERENCE.split(|c: char| c.is_whitespace() || c == '`') {
        let path = word.split('?').next().unwrap_or_default();

        match method.take() {
            Some(method) if path.starts_with("/api/v1/") => {
                paths.entry(path.to_owned()).or_default().insert(method);
            }
            _ => {
                let known = ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&word);
                method = known.then(|| word.to_owned());
            }
        }
    }
    paths
}

/// Methods by path, from the OpenAPI document. Its names of segments are those of the API's fields.
fn described() -> BTreeMap<String, BTreeSet<String>> {
    let document: Value = serde_json::from_str(include_str!("../docs/openapi.json")).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let named = paths.map(|(path, methods)| {
        let methods = methods.as_object().unwrap().keys().map(|method| method.to_uppercase());
        let path =
            path.replace("{file_id}", "{fileId}").replace("{organization_id}", "{organizationId}");
        (format!("/api/v1{path}"), methods.collect())
    });
    named.collect()
}

/// The literal segments of every `warp::path!` below `dir`.
fn segments(dir: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            segments(&path, found);
            continue;
        }

        let text = fs::read_to_string(&path).unwrap();
        for macro_call in text.split("path!(").skip(1) {
            let inside = macro_call.split(')').next().unwrap_or_default();
            found.extend(inside.split('"').skip(1).step_by(2).map(str::to_owned));
        }
    }
}

#[test]
fn every_error_code_is_in_the_table() {
    let codes = ErrorKind::ALL.iter().map(|kind| kind.code()).chain(SERVER_CODES);

    for code in codes {
        assert!(REFERENCE.contains(&format!(" | `{code}` | ")), "{code} is not documented");
    }
}

#[test]
fn every_code_of_an_explanation_is_in_the_tables() {
    let page = include_str!("../docs/reference/http/explain.md");
    let facts = FactCode::ALL.iter().map(|code| code.as_str());
    let codes = facts.chain(StepCode::ALL.iter().map(|code| code.as_str()));

    for code in codes {
        let mut rows = page.lines().filter(|line| line.starts_with("| `"));
        let is_in_a_row =
            rows.any(|row| row.split(" | ").next().unwrap().contains(&format!("`{code}`")));
        assert!(is_in_a_row, "{code} is not documented");
    }
}

#[test]
fn every_segment_of_every_route_is_named() {
    let mut found = BTreeSet::new();
    segments(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/routes"), &mut found);
    assert!(found.len() > 20, "the routes are read: {found:?}");

    for segment in found {
        assert!(REFERENCE.contains(&format!("/{segment}")), "{segment} is not documented");
    }
}

#[test]
fn the_openapi_document_describes_what_is_documented() {
    assert_eq!(described(), documented());
}

#[tokio::test]
async fn every_path_answers_the_methods_that_are_documented_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config::new("127.0.0.1:0".parse().unwrap(), dir.path().join("data"));
    let server = Server::start(config).await.unwrap();
    let client = support::http_client().build().unwrap();
    let documented = documented();
    assert!(documented.len() > 20, "{documented:?}");

    for (path, methods) in documented {
        let url = path
            .replace("{fileId}", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
            .replace("{width}/{height}", "200/200")
            .replace("{code}", "LOCAL");
        let reply =
            client.request(Method::TRACE, format!("{}{url}", server.url())).send().await.unwrap();
        assert_eq!(reply.status(), 405, "{path}");

        let problem: Value = reply.json().await.unwrap();
        let allowed = problem["allowed"].as_array().unwrap().iter();
        let mut allowed: BTreeSet<String> =
            allowed.map(|method| method.as_str().unwrap().to_owned()).collect();
        // The table of section 5 lists it, and the description leaves it out.
        allowed.remove("OPTIONS");
        let mut expected = methods;
        if expected.contains("GET") {
            expected.insert("HEAD".to_owned());
        }
        assert_eq!(allowed, expected, "{path}");
    }
    server.stop().await;
}
