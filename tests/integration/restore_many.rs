//! POST /api/v1/files/restore (reference §4.15).

use filestore_workspace::{Reply, TestServer};
use serde_json::{Value, json};

async fn restore(server: &TestServer, ids: &[&str]) -> Reply {
    server.post("/api/v1/files/restore").json(&json!({ "ids": ids })).send().await
}

#[tokio::test]
async fn each_id_has_a_result_whatever_becomes_of_the_others() {
    let server = TestServer::start_without_purge().await;
    let deleted = server.upload("x").ok().await.file_id;
    let live = server.upload("y").ok().await.file_id;
    server.delete(&deleted).await.expect(200);
    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    let reply = restore(&server, &[unknown, &deleted, "no id", &live, &deleted]).await.expect(200);
    let failed = |id: &str, code: &str, detail: &str| json!({ "id": id, "restored": false, "error": { "code": code, "detail": detail } });
    let restored = |id: &str| json!({ "id": id, "restored": true, "error": null });
    let expected = [
        failed(unknown, "not_found", "file not found"),
        restored(&deleted),
        failed("no id", "invalid_field", "a file id is an upper-case ULID of 26 characters"),
        restored(&live),
        restored(&deleted),
    ];
    assert_eq!(reply.json(), json!({ "results": expected }));
    assert_eq!(server.content(&deleted).send().await.expect(200).text(), "x");
}

#[tokio::test]
async fn a_thousand_files_come_back_with_one_request() {
    let server = TestServer::start_without_purge().await;
    let mut ids = Vec::new();
    for _ in 0..10 {
        let batch = (0..100).fold(server.batch(), |batch, _| batch.item("x"));
        ids.extend(batch.ok().await.into_iter().map(|record| record.file_id));
    }
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let delete = server.post("/api/v1/files/delete").json(&json!({ "ids": ids }));
    let deleted = delete.send().await.expect(200).json();
    let is_deleted = |result: &&Value| result["deleted"] == true;
    let results = deleted["results"].as_array().unwrap();
    assert_eq!(results.iter().filter(is_deleted).count(), 1000, "{deleted}");
    assert!(server.listed().await.is_empty());

    let reply = restore(&server, &ids).await.expect(200).json();
    let results = reply["results"].as_array().unwrap();
    assert_eq!(results.len(), 1000);
    assert!(results.iter().zip(&ids).all(|(result, id)| result["id"] == **id));
    assert!(results.iter().all(|result| result["restored"] == true));
    assert_eq!(server.listed().await.len(), 1000);
    assert_eq!(restore(&server, &ids).await.expect(200).json(), reply, "again, as after a retry");
}

#[tokio::test]
async fn a_request_that_cannot_be_meant_is_refused_as_a_whole() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("x").ok().await.file_id;
    server.delete(&id).await.expect(200);
    let post = async |body: Value| server.post("/api/v1/files/restore").json(&body).send().await;

    let many: Vec<&str> = (0..1001).map(|_| "01ARZ3NDEKTSV4RRFFQ69G5FAV").collect();
    assert_eq!(restore(&server, &many).await.problem(413, "too_many_items").limit, Some(1000));
    for (body, code) in [
        (json!({ "ids": [] }), "invalid_field"),
        (json!({ "ids": id }), "invalid_field"),
        (json!({}), "missing_field"),
        (json!({ "ids": [id], "force": true }), "unknown_field"),
        (json!([id]), "malformed_body"),
    ] {
        post(body).await.problem(400, code);
    }
    let read = server.get("/api/v1/files/restore").send().await;
    assert_eq!(read.problem(405, "method_not_allowed").allowed, ["POST"]);
    server.content(&id).send().await.problem(404, "not_found");
}

#[tokio::test]
async fn the_client_restores_many() {
    let server = TestServer::start_without_purge().await;
    let records = server.batch().item("a").item("b").ok().await;
    let ids: Vec<_> = records.iter().map(|record| record.file_id.clone()).collect();
    server.client().delete_many(ids.clone()).await.unwrap();
    let asked = ids.into_iter().chain(["no id".to_owned()]);
    let results = server.client().restore_many(asked).await.unwrap();
    let restored: Vec<_> = results.iter().map(|result| result.restored).collect();
    assert_eq!(restored, [true, true, false]);
    assert_eq!(results[2].error.as_ref().unwrap().code.as_str(), "invalid_field");
}
