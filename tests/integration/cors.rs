//! Cross-origin requests and limits of requests (reference §5.3 and §5.4).

use std::time::Duration;

use filestore_server::{Origins, RateLimits};
use filestore_workspace::{Reply, TestServer, eventually};
use reqwest::Method;

const APP: &str = "https://app.example.org";

async fn open_to_app() -> TestServer {
    let origins = Origins::Listed(vec![APP.parse().unwrap()]);
    TestServer::start_with(|config| config.cors.origins = origins).await
}

async fn preflight(server: &TestServer, origin: &str) -> Reply {
    let call = server.call(Method::OPTIONS, "/api/v1/files/upload").header("origin", origin);
    call.header("access-control-request-method", "POST").send().await
}

#[tokio::test]
async fn a_preflight_of_a_listed_origin_is_answered_before_routing() {
    let server = open_to_app().await;
    let reply = preflight(&server, APP).await.expect(204);
    assert_eq!(reply.only("access-control-allow-origin"), APP);
    let methods = reply.only("access-control-allow-methods");
    assert!(methods.contains("PATCH") && methods.contains("DELETE"), "{methods}");
    assert!(reply.only("access-control-allow-headers").contains("Authorization"));
    assert_eq!(reply.only("vary"), "Origin");
    assert!(reply.header("x-request-id").is_some());

    let other = preflight(&server, "https://evil.example").await.expect(405);
    assert!(other.header("access-control-allow-origin").is_none());
    let off = TestServer::start().await;
    preflight(&off, APP).await.expect(405);
}

#[tokio::test]
async fn the_headers_of_upload_widgets_and_further_ones_are_allowed() {
    let server = TestServer::start_with(|config| {
        config.cors.origins = Origins::Listed(vec![APP.parse().unwrap()]);
        config.cors.headers = vec!["X-Tenant".parse().unwrap()];
    })
    .await;

    for path in
        ["/api/v1/files/upload", "/api/v1/files/01ARZ3NDEKTSV4RRFFQ69G5FAV", "/api/v1/files"]
    {
        let call = server.call(Method::OPTIONS, path).header("origin", APP);
        let call = call.header("access-control-request-method", "POST");
        let asked = "cache-control,x-requested-with,tracestate,tus-resumable,x-tenant";
        let reply = call.header("access-control-request-headers", asked).send().await.expect(204);
        let allowed = reply.only("access-control-allow-headers").to_ascii_lowercase();
        for header in asked.split(',') {
            assert!(allowed.split(", ").any(|known| known == header), "{path}: {header}");
        }
    }
}

#[tokio::test]
async fn scripts_of_a_listed_origin_read_replies_and_errors_and_may_write() {
    let server = open_to_app().await;
    let id = server.upload("hello").ok().await.file_id;
    let from = |origin: &str| server.content(&id).header("origin", origin);

    let reply = from(APP).send().await.expect(200);
    assert_eq!(reply.only("access-control-allow-origin"), APP);
    assert!(reply.only("access-control-expose-headers").contains("ETag"));
    let missing = server.content("01ARZ3NDEKTSV4RRFFQ69G5FAV").header("origin", APP).send().await;
    assert_eq!(missing.expect(404).only("access-control-allow-origin"), APP);

    let foreign = from("https://evil.example").send().await.expect(200);
    assert!(foreign.header("access-control-allow-origin").is_none());
    let vary: Vec<_> = foreign.headers.get_all("vary").iter().collect();
    assert_eq!(vary, ["Authorization", "Origin"], "caches keep the two apart");

    let path = format!("/api/v1/files/{id}");
    let delete = |origin: &str| {
        let call = server.call(Method::DELETE, &path).header("origin", origin);
        call.header("sec-fetch-site", "cross-site")
    };
    delete("https://evil.example").send().await.problem(403, "forbidden");
    delete(APP).send().await.expect(200);
}

async fn limited(change: impl FnOnce(&mut RateLimits)) -> TestServer {
    TestServer::start_with(|config| {
        config.rate_limits.window = Duration::from_hours(1);
        change(&mut config.rate_limits);
    })
    .await
}

#[tokio::test]
async fn an_address_over_its_quota_is_429_until_it_waits() {
    let server = limited(|limits| limits.address.requests = Some(3)).await;
    for left in ["2", "1", "0"] {
        let reply = server.get("/api/v1/storage-providers").send().await.expect(200);
        assert_eq!(reply.only("ratelimit-policy"), "\"address\";q=3;w=3600");
        assert!(reply.only("ratelimit").starts_with(&format!("\"address\";r={left};t=")));
    }

    let reply = server.get("/api/v1/storage-providers").send().await;
    reply.problem(429, "rate_limited");
    let secs: u64 = reply.only("retry-after").parse().unwrap();
    assert!((1..=1200).contains(&secs), "a third of the window at most: {secs}");
    assert!(reply.only("ratelimit").starts_with("\"address\";r=0;"));
    server.get("/api/v1/health-checks").send().await.expect(200);
}

#[tokio::test]
async fn a_reply_that_is_not_read_yet_is_a_request_under_way() {
    let server = limited(|limits| limits.address.in_flight = Some(1)).await;
    let id = server.upload(vec![7; 16 << 20]).ok().await.file_id;

    let open = server.content(&id).open().await;
    let second = server.get("/api/v1/storage-providers").send().await;
    second.problem(429, "rate_limited");
    assert_eq!(second.only("retry-after"), "1");

    drop(open);
    let free = async || {
        let reply = server.get("/api/v1/storage-providers").send().await;
        (reply.status == 200).then_some(())
    };
    eventually("the place is free", free).await;
}

#[tokio::test]
async fn every_header_of_resumable_uploads_is_exposed_and_allowed() {
    let server = open_to_app().await;
    let reply = preflight(&server, APP).await.expect(204);
    let allowed = reply.only("access-control-allow-headers").to_owned();
    for name in [
        "Tus-Resumable",
        "Upload-Length",
        "Upload-Offset",
        "Upload-Metadata",
        "Upload-Defer-Length",
        "Upload-Concat",
        "Upload-Checksum",
        "Upload-Complete",
        "Upload-Draft-Interop-Version",
        "X-HTTP-Method-Override",
        "Content-Disposition",
        "Idempotency-Key",
        "Prefer",
    ] {
        assert!(allowed.contains(name), "{name}");
    }

    let upload = server.post("/api/v1/uploads?organization_id=acme&sub_system=s");
    let upload = upload.header("tus-resumable", "1.0.0").header("upload-length", "5");
    let reply = upload.header("origin", APP).send().await.expect(201);
    let exposed = reply.only("access-control-expose-headers").to_lowercase();
    assert_exposed(&reply);
    assert!(exposed.contains("location") && exposed.contains("file-id"));

    let path = reply.only("location");
    let last = server.call(Method::PATCH, path).header("origin", APP).header("upload-offset", "0");
    let last = last.header("tus-resumable", "1.0.0").header("prefer", "return=representation");
    let last = last.body("application/offset+octet-stream", "hello").send().await.expect(200);
    assert_eq!(last.only("preference-applied"), "return=representation");
    assert_exposed(&last);

    let draft = server.post("/api/v1/uploads?organization_id=acme&sub_system=s");
    let draft = draft.header("upload-draft-interop-version", "6").header("upload-complete", "?0");
    let draft = draft.header("origin", APP).body("text/plain", "hel").send().await.expect(201);
    assert_exposed(&draft);
    let options = server.call(Method::OPTIONS, "/api/v1/uploads").header("origin", APP);
    assert_exposed(&options.header("tus-resumable", "1.0.0").send().await.expect(204));
}

/// Checks that scripts can read each header of resumable uploads that a reply has.
fn assert_exposed(reply: &Reply) {
    let exposed = reply.only("access-control-expose-headers").to_lowercase();
    let exposed: Vec<_> = exposed.split(", ").collect();
    let own = ["upload-", "tus-", "file-id", "preference-", "accept-patch", "etag", "location"];
    for name in reply.headers.keys().map(http::HeaderName::as_str) {
        let is_own = own.iter().any(|own| name.starts_with(own));
        assert!(!is_own || exposed.contains(&name), "{name} is not in {exposed:?}");
    }
}
