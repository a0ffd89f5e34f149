//! POST /api/v1/files/delete (reference §4.14).

use filestore_workspace::{Reply, TestServer};
use serde_json::{Value, json};

async fn delete(server: &TestServer, ids: &[&str]) -> Reply {
    server.post("/api/v1/files/delete").json(&json!({ "ids": ids })).send().await
}

#[tokio::test]
async fn each_id_has_a_result_whatever_becomes_of_the_others() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("x").ok().await.file_id;
    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let reply = delete(&server, &[unknown, &id, "no id", &id]).await.expect(200);
    let failed = |id: &str, code: &str, detail: &str| {
        json!({
            "id": id, "deleted": false, "storage_location": null, "purge_pending": false,
            "error": { "code": code, "detail": detail },
        })
    };
    let deleted = json!({
        "id": id, "deleted": true, "storage_location": "LOCAL", "purge_pending": true,
        "error": null,
    });
    let no_ulid = "a file id is an upper-case ULID of 26 characters";
    let expected = [
        failed(unknown, "not_found", "file not found"),
        deleted.clone(),
        failed("no id", "invalid_field", no_ulid),
        deleted,
    ];
    assert_eq!(reply.json(), json!({ "results": expected }));
    server.content(&id).send().await.problem(404, "not_found");
}

#[tokio::test]
async fn a_thousand_files_go_with_one_request_and_can_be_restored() {
    let server = TestServer::start_without_purge().await;
    let mut ids = Vec::new();
    for _ in 0..10 {
        let batch = (0..100).fold(server.batch(), |batch, _| batch.item("x"));
        ids.extend(batch.ok().await.into_iter().map(|record| record.file_id));
    }

    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let reply = delete(&server, &ids).await.expect(200).json();
    let results = reply["results"].as_array().unwrap();
    assert_eq!(results.len(), 1000);
    assert!(results.iter().all(|result| result["deleted"] == true && result["error"].is_null()));
    assert!(results.iter().zip(&ids).all(|(result, id)| result["id"] == **id));
    assert!(server.listed().await.is_empty());

    assert_eq!(delete(&server, &ids).await.expect(200).json(), reply, "again, as after a retry");
    server.restore(ids[999]).await.expect(200);
    assert_eq!(server.listed().await.len(), 1);
}

#[tokio::test]
async fn a_request_that_cannot_be_meant_is_refused_as_a_whole() {
    let server = TestServer::start().await;
    let id = server.upload("x").ok().await.file_id;
    let post = async |body: Value| server.post("/api/v1/files/delete").json(&body).send().await;

    let many: Vec<&str> = (0..1001).map(|_| "01ARZ3NDEKTSV4RRFFQ69G5FAV").collect();
    assert_eq!(delete(&server, &many).await.problem(413, "too_many_items").limit, Some(1000));
    for (body, code) in [
        (json!({ "ids": [] }), "invalid_field"),
        (json!({ "ids": id }), "invalid_field"),
        (json!({ "ids": [1] }), "invalid_field"),
        (json!({}), "missing_field"),
        (json!({ "ids": [id], "force": true }), "unknown_field"),
        (json!([id]), "malformed_body"),
    ] {
        post(body).await.problem(400, code);
    }

    let form = server.post("/api/v1/files/delete").body("text/plain", "x").send().await;
    form.problem(415, "unsupported_media_type");
    let read = server.get("/api/v1/files/delete").send().await;
    assert_eq!(read.problem(405, "method_not_allowed").allowed, ["POST"]);
    server.content(&id).send().await.expect(200);
}

#[tokio::test]
async fn the_client_deletes_many() {
    let server = TestServer::start_without_purge().await;
    let records = server.batch().item("a").item("b").ok().await;
    let ids = records.iter().map(|record| record.file_id.clone()).chain(["no id".to_owned()]);
    let results = server.client().delete_many(ids).await.unwrap();
    assert_eq!(
        results.iter().map(|result| result.deleted).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert_eq!(results[2].error.as_ref().unwrap().code.as_str(), "invalid_field");
}
