//! The description of the API: the OpenAPI document, and the page that shows it.
//!
//! Both documents are files in `docs/`. The program in `openapi/` writes them from the wire types and the
//! table of errors. The page is self-contained, and its policy allows its one script.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use filestore_core::api::PREFIX;
use http::HeaderValue;
use sha2::{Digest as _, Sha256};
use warp::Filter;
use warp::reply::Response;

use crate::http::base::Base;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::filters::{RouteFilter, any_of, get};

const DOCUMENT: &str = include_str!("../../docs/openapi.json");
const PAGE: &str = include_str!("../../docs/api.html");

/// Builds `/openapi.json` and `/docs`.
pub(crate) fn routes() -> RouteFilter {
    let document = warp::path!("openapi.json").and(get(document));
    let page = warp::path!("docs").and(get(page));

    any_of([document.boxed(), page.boxed()])
}

async fn document(call: Arc<Call>) -> Result<Response, Failure> {
    Ok(reply::json_text(served_at(&call.app.base)))
}

/// Sets the public address of the API as the server in the document.
fn served_at(base: &Base) -> Cow<'static, str> {
    let here = base.client_url(PREFIX);
    if here == PREFIX {
        return DOCUMENT.into();
    }
    let (own, here) = (serde_json::json!(PREFIX), serde_json::json!(here));
    DOCUMENT.replacen(&server(&own), &server(&here), 1).into()
}

/// Returns the text of the document's member for its server.
fn server(url: &serde_json::Value) -> String {
    format!("\"url\": {url}")
}

async fn page(_: Arc<Call>) -> Result<Response, Failure> {
    Ok(reply::page(PAGE, POLICY.clone()))
}

/// The policy of the page. It names the page's script by its digest, so no other script can run.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let digest = STANDARD.encode(Sha256::digest(script(PAGE)));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("the policy is ASCII")
});

/// Returns the text of the page's script.
fn script(page: &str) -> &str {
    let (_, script) = page.split_once("<script>").expect("the page has a script");
    script.split_once("</script>").expect("the script ends").0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::route_table::{Need, ROUTES};

    /// Spells what a route needs as the document does.
    fn security(need: Need) -> Value {
        match need {
            Need::Nothing => json!([]),
            Need::Key => json!([{ "key": [] }]),
            Need::Scope(scope) => json!([{ "key": [scope.as_str()] }]),
            Need::ServiceAdmin => json!([{ "key": ["admin:*"] }]),
        }
    }

    #[test]
    fn every_route_is_described_with_what_it_needs_and_nothing_else_is() {
        let document: Value = serde_json::from_str(DOCUMENT).unwrap();
        let mut described = BTreeMap::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                described.insert(
                    format!("{} {path}", method.to_uppercase()),
                    operation["security"].clone(),
                );
            }
        }

        let routes: BTreeMap<_, _> = ROUTES
            .iter()
            // OPTIONS is for clients of upload protocols, which do not read the document.
            .filter(|route| route.is_in_api() && route.method != http::Method::OPTIONS)
            .map(|route| (format!("{} {}", route.method, route.template), security(route.need)))
            .collect();

        let undescribed: Vec<_> =
            routes.keys().filter(|key| !described.contains_key(*key)).collect();
        assert!(undescribed.is_empty(), "describe in openapi/src/operations: {undescribed:?}");
        assert_eq!(described, routes);
    }

    #[test]
    fn a_reply_in_json_is_described_as_json() {
        let document: Value = serde_json::from_str(DOCUMENT).unwrap();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                for (status, reply) in operation["responses"].as_object().unwrap() {
                    let schema = &reply["content"]["application/json"]["schema"];
                    assert_ne!(schema["format"], "binary", "{method} {path} {status}");
                }
            }
        }
    }

    #[test]
    fn the_known_words_are_where_the_description_says() {
        let document: Value = serde_json::from_str(DOCUMENT).unwrap();
        let about = document["info"]["description"].as_str().unwrap();
        assert!(about.contains("`anyOf[0].enum`"), "{about}");
        let words = &document["components"]["schemas"]["Status"]["anyOf"][0]["enum"];
        assert_eq!(*words, json!(["TEMP", "THUMBNAIL", "READY"]));
    }

    #[test]
    fn the_document_names_where_it_is_served() {
        let served = |public_url| -> Value {
            let base = Base::of(public_url).unwrap();
            let document: Value = serde_json::from_str(&served_at(&base)).unwrap();
            document["servers"].clone()
        };

        assert_eq!(served(None), json!([{ "url": "/api/v1" }]));
        assert_eq!(
            served(Some("https://files.example.org/a/")),
            json!([{ "url": "https://files.example.org/a/api/v1" }])
        );
    }

    #[test]
    fn the_page_loads_nothing_and_runs_only_its_script() {
        let without = PAGE.replacen(script(PAGE), "", 1).replacen("<script></script>", "", 1);
        for forbidden in ["<script", "src=", "@import", "url(", "href=\"http", "<iframe", "onclick"]
        {
            assert!(!without.contains(forbidden), "{forbidden}");
        }
        for forbidden in ["innerHTML", "eval", "fetch", "import", "http://", "https://"] {
            assert!(!script(PAGE).contains(forbidden), "{forbidden}");
        }
        let policy = POLICY.to_str().unwrap();
        assert!(policy.contains("script-src 'sha256-") && !policy.contains("script-src 'unsafe"));
    }

    #[test]
    fn every_operation_has_an_example() {
        let document: Value = serde_json::from_str(DOCUMENT).unwrap();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let id = operation["operationId"].as_str().unwrap();
                let (_, article) = PAGE.split_once(&format!("<article id=\"{id}\">")).unwrap();
                let (article, _) = article.split_once("</article>").unwrap();
                let (_, example) = article.split_once("<pre><code>curl").unwrap();
                let (example, _) = example.split_once("</code></pre>").unwrap();

                let has_body = ["-F ", "-d "].iter().any(|option| example.contains(option));
                let is_named = example.contains(&format!("-X {}", method.to_uppercase()));
                assert!(is_named || method == "get" || (method == "post" && has_body), "{id}");
                let needs_key = !operation["security"].as_array().unwrap().is_empty();
                assert_eq!(example.contains("Authorization: Bearer $KEY"), needs_key, "{id}");
                let start = path.split('{').next().unwrap();
                assert!(example.contains(&format!("/api/v1</span>{start}")), "{id}: {example}");
                assert!(!example.contains('{') || example.contains("-d '{"), "{id}: {example}");
            }
        }
    }
}
