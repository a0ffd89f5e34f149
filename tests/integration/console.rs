//! The web console at /console/ (reference §5). The files themselves are tested in the server's crate.

use filestore_core::Scope;
use filestore_core::keys::{KeyScope, NewKey};
use filestore_workspace::TestServer;
use reqwest::Method;

/// Lists the names that the page has after `"{base}assets/`.
fn assets(page: &str, base: &str) -> Vec<String> {
    let start = format!("\"{base}assets/");
    let starts = page.split(&start).skip(1);
    starts.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name.to_owned()).collect()
}

#[tokio::test]
async fn the_console_is_served_at_every_path_below_its_own() {
    let server = TestServer::start().await;
    let door = server.get("/console").send().await.expect(308);
    assert_eq!(door.only("location"), "console/");

    for (path, base) in
        [("/console/", "./"), ("/console/sign-in", "./"), ("/console/org/42/files", "../../")]
    {
        let page = server.get(path).send().await.expect(200);
        assert_eq!(page.only("content-type"), "text/html; charset=utf-8");
        assert_eq!(page.only("cache-control"), "no-cache");
        assert!(!page.text().contains("{{base}}"));
        let head = server.head(path).send().await.expect(200);
        assert_eq!((head.only("etag"), head.body.len()), (page.only("etag"), 0));
        let again = server.get(path).header("if-none-match", page.only("etag")).send().await;
        again.expect(304);

        // As a browser resolves them.
        let here = reqwest::Url::parse(&server.url(path)).unwrap();
        for name in assets(&page.text(), base) {
            let url = here.join(&format!("{base}assets/{name}")).unwrap();
            let asset = server.get(url.path()).header("accept-encoding", "br").send().await;
            let asset = asset.expect(200);
            assert_eq!(asset.only("cache-control"), "public, max-age=31536000, immutable");
            assert_eq!(asset.only("vary"), "Accept-Encoding");
            assert_eq!(asset.only("content-security-policy"), page.only("content-security-policy"));
        }
    }
    server.get("/console/assets/unknown.js").send().await.problem(404, "not_found");
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let refused = server.call(method, "/console/org/42").send().await;
        assert_eq!(refused.problem(405, "method_not_allowed").allowed, ["GET", "HEAD"]);
    }
    let metrics = server.get("/metrics").send().await.expect(200).text();
    assert!(metrics.contains("method=\"GET\",route=\"/console\",status=\"308\"} 1"), "{metrics}");
}

#[tokio::test]
async fn the_console_works_below_the_prefix_of_a_proxy_that_keeps_or_strips_it() {
    let server = TestServer::start_with(|config| {
        config.public_url = Some("https://files.example.org/a/b".to_owned());
        config.insecure_no_auth = true;
    })
    .await;
    let stripped = server.get("/console/org/42").send().await.expect(200);
    let kept = server.get("/a/b/console/org/42").send().await.expect(200);
    assert_eq!(stripped.body, kept.body);
    let door = server.get("/a/b/console").send().await.expect(308);
    assert_eq!(door.only("location"), "console/");
}

#[tokio::test]
async fn the_console_needs_no_key_and_obeys_the_rules_for_hosts_and_addresses() {
    let server = TestServer::start_with(|config| {
        config.rate_limits.address.requests = Some(5);
    })
    .await;
    let request = "GET /console/ HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert_eq!(server.exchange(request).await.status, 421);

    let new = NewKey::new("k", Scope::All, [KeyScope::Admin]);
    server.store().keys().create(new).await.unwrap();
    server.get("/api/v1/files").send().await.expect(401);
    server.get("/console/").send().await.expect(200);
    let left = server.get("/console/signed-out").header("sec-fetch-site", "same-origin");
    assert_eq!(left.send().await.expect(200).only("clear-site-data"), "\"cache\"");
    server.post("/console/").send().await.expect(401);
    server.get("/console/").send().await.expect(200);
    server.get("/console/").send().await.problem(429, "rate_limited");
}

#[tokio::test]
async fn a_console_that_is_switched_off_is_not_there() {
    let server = TestServer::start_with(|config| config.console = false).await;
    for path in ["/console", "/console/", "/console/org/42", "/console/assets/x.js"] {
        server.get(path).send().await.problem(404, "not_found");
    }
    let led = server.get("/").header("accept", "text/html").send().await.expect(302);
    assert_eq!(led.only("location"), "/api/v1/docs");
    let told = server.get("/").send().await.expect(200).json();
    assert_eq!(told.get("console"), None);
}
