//! Receipts of purges over HTTP (reference §4.13).

use filestore_client::Client;
use filestore_core::Scope;
use filestore_core::keys::{KeyScope, NewKey};
use filestore_core::receipts::verify_receipt;
use filestore_workspace::{Reply, TestServer, eventually};
use serde_json::{Value, json};

/// A key for some organizations, with its id and its text.
async fn key(server: &TestServer, name: &str, organization: &str) -> (String, String) {
    let one = Scope::Organizations(vec![organization.parse().unwrap()]);
    let scopes = [KeyScope::Read, KeyScope::Write, KeyScope::Delete];
    let made = server.store().keys().create(NewKey::new(name, one, scopes)).await.unwrap();
    (made.0.id.to_string(), made.1.expose().to_owned())
}

/// Asks for the receipt of a file, and shows a key.
async fn ask(server: &TestServer, id: &str, secret: &str) -> Reply {
    let call = server.get(&format!("/api/v1/files/{id}/receipt"));
    call.header("authorization", &format!("Bearer {secret}")).send().await
}

/// Waits for the end of the purge, and returns the receipt.
async fn receipt(server: &TestServer, id: &str, secret: &str) -> Reply {
    eventually("the receipt", async || {
        Some(ask(server, id, secret).await).filter(|reply| reply.status == 200)
    })
    .await
}

#[tokio::test]
async fn the_receipt_names_the_key_that_deleted_and_verifies_with_the_published_one() {
    let server = TestServer::start().await;
    let record = server.upload("bytes").ok().await;
    let id = &record.file_id;
    let (key_id, secret) = key(&server, "the night job", "acme").await;
    let (_, other) = key(&server, "other", "other").await;
    let bearer = format!("Bearer {secret}");
    assert_eq!(server.get("/api/v1/receipt-keys").send().await.expect(200).json(), json!([]));
    ask(&server, id, &secret).await.problem(404, "not_found");

    let path = format!("/api/v1/files/{id}");
    server
        .call(reqwest::Method::DELETE, &path)
        .header("authorization", &bearer)
        .send()
        .await
        .expect(200);
    let reply = receipt(&server, id, &secret).await;
    let shown = reply.json();
    let by = json!({"kind": "key", "key_id": key_id, "key_name": "the night job"});
    assert_eq!(shown["receipt"]["deleted_by"], by);
    assert_eq!(shown["receipt"]["removed"][0]["sha256"], record.sha256);
    assert_eq!(shown["receipt"]["removed"][0]["provider"], "LOCAL");
    assert_eq!(shown["receipt"]["absent_everywhere"], true);

    let keys = server.get("/api/v1/receipt-keys").send().await.expect(200).json();
    let public_key = keys[0]["public_key"].as_str().unwrap();
    let verified = verify_receipt(reply.text().as_bytes(), Some(public_key)).unwrap();
    assert_eq!(verified.file_id, *id);

    let client = Client::builder(server.url("")).unwrap().api_key(&secret).build().unwrap();
    let read = client.receipt(id).await.unwrap();
    let document = serde_json::to_vec(&read).unwrap();
    verify_receipt(&document, Some(public_key)).unwrap();
    assert_eq!(read.read().unwrap().public_key, public_key);
    assert_eq!(client.receipt_keys().await.unwrap().len(), 1);

    let (foreign, unknown) = (
        ask(&server, id, &other).await.problem(404, "not_found"),
        ask(&server, "01ARZ3NDEKTSV4RRFFQ69G5FAV", &secret).await.problem(404, "not_found"),
    );
    assert_eq!((foreign.title, foreign.detail), (unknown.title, unknown.detail));
    server.stop().await;
}

#[tokio::test]
async fn a_server_without_keys_says_so_and_a_rotation_leaves_the_old_key_listed() {
    let server = TestServer::start().await;
    let id = server.upload("bytes").ok().await.file_id;
    server.delete(&id).await.expect(200);
    let first = receipt(&server, &id, "none").await;
    assert_eq!(first.json()["receipt"]["deleted_by"], json!({"kind": "open_mode"}));

    let rotated = server.post("/api/v1/admin/receipt-keys/rotate").send().await.expect(200).json();
    let keys = server.get("/api/v1/receipt-keys").send().await.expect(200).json();
    assert_eq!(rotated, keys);
    let [old, new] = [0, 1].map(|at| keys[at]["public_key"].as_str().unwrap());
    assert!(keys[0]["retired_at"].is_string() && keys[1]["retired_at"] == Value::Null);
    verify_receipt(first.text().as_bytes(), Some(old)).unwrap();
    let second = receipt(&server, &id, "none").await;
    verify_receipt(second.text().as_bytes(), Some(new)).unwrap();
    server.stop().await;
}
