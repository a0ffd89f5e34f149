//! GET /api/v1/organizations/{organizationId}/usage (reference §4.11), and the quota of files (§7).

use std::time::Duration;

use filestore_workspace::{TestServer, eventually};
use serde_json::{Value, json};

async fn usage(server: &TestServer, organization: &str) -> Value {
    let path = format!("/api/v1/organizations/{organization}/usage");
    server.get(&path).send().await.expect(200).json()
}

#[tokio::test]
async fn usage_counts_files_and_bytes_until_they_are_gone() {
    let server = TestServer::start_with(|config| {
        config.store.quota_files = Some(10);
        config.store.purge_grace = Duration::from_hours(1);
    })
    .await;
    server.upload("12345").org("42").ok().await;
    server.upload("1234567890").org("42").temp().ok().await;
    let deleted = server.upload("x").org("42").ok().await.file_id;
    server.upload("another organization").ok().await;
    server.delete(&deleted).await.expect(200);

    let here = json!({ "files": 3, "bytes": 16 });
    let expected = json!({
        "organization_id": "42", "files": 3, "bytes": 16,
        "by_location": { "LOCAL": here, "CLOUD": { "files": 0, "bytes": 0 } },
        "temp": { "files": 1, "bytes": 10 }, "deleted": { "files": 1, "bytes": 1 },
        "quota_files": 10, "quota_bytes": null,
    });
    assert_eq!(usage(&server, "42").await, expected);
    assert_eq!(usage(&server, "nobody").await["files"], 0);

    let client = server.client().usage("42").await.unwrap();
    assert_eq!((client.files, client.by_location.local.bytes), (3, 16));

    for bad in ["007", "a%20b", "a.b"] {
        let path = format!("/api/v1/organizations/{bad}/usage");
        let problem = server.get(&path).send().await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some("organization_id"), "{bad}");
    }
    let written = server.post("/api/v1/organizations/42/usage").send().await;
    assert_eq!(written.problem(405, "method_not_allowed").allowed, ["GET", "HEAD"]);
    server.get("/api/v1/organizations/42").send().await.problem(404, "not_found");
}

#[tokio::test]
async fn an_organization_with_as_many_files_as_it_may_have_is_413() {
    let server = TestServer::start_with(|config| config.store.quota_files = Some(3)).await;
    server.upload("a").temp().ok().await;
    let over = server.batch().item("b").item("c").item("d").send().await;
    assert_eq!(over.problem(413, "quota_exceeded").limit, Some(3));
    let full = server.batch().item("b").item("c").ok().await;

    let problem = server.upload("x").send().await.problem(413, "quota_exceeded");
    assert_eq!(problem.field.as_deref(), Some("organization_id"));
    server.change(&full[0].file_id).file("replaced").send().await.expect(200);
    server.upload("x").org("other").ok().await;

    server.delete(&full[1].file_id).await.expect(200);
    eventually("room for a file", async || {
        Some(server.upload("x").send().await).filter(|reply| reply.status == 201)
    })
    .await;
}
