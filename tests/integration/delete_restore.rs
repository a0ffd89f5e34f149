//! DELETE, the purge behind it, and restore (reference §4.7 and §4.16).

use std::time::Duration;

use filestore_core::Timestamp;
use filestore_core::api::PurgeStatus;
use filestore_workspace::{TestServer, eventually, files_under, fixtures};
use insta::assert_json_snapshot;
use serde_json::{Value, json};

#[tokio::test]
async fn a_delete_answers_200_with_four_fields() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("x").ok().await.file_id;
    let reply = server.delete(&id).await.expect(200);
    assert_eq!(reply.json()["fileId"], *id);

    assert_json_snapshot!(reply.json(), { ".fileId" => "[file id]" }, @r#"
    {
      "deleted": true,
      "fileId": "[file id]",
      "purgePending": true,
      "storageLocation": "LOCAL"
    }
    "#);
}

#[tokio::test]
async fn the_same_delete_again_answers_the_same() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("x").ok().await.file_id;
    let first = server.delete(&id).await.expect(200).json();
    let marked = server.record(&id).await;
    assert_eq!(server.delete(&id).await.expect(200).json(), first);
    assert_eq!(server.record(&id).await, marked, "the first mark is kept");
}

#[tokio::test]
async fn a_deleted_file_is_unreadable_at_once_but_has_its_info() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload(fixtures::png(300, 300)).ok().await.file_id;
    let etag = server.content(&id).send().await.only("etag").to_owned();

    server.variant(&id, 200).send().await.expect(200);
    server.delete(&id).await.expect(200);
    server.content(&id).send().await.problem(404, "not_found");
    server.content(&id).header("if-none-match", &etag).send().await.problem(404, "not_found");
    server.content(&id).header("range", "bytes=0-0").send().await.problem(404, "not_found");
    server.head(&format!("/api/v1/files/{id}")).send().await.expect(404);

    server.variant(&id, 200).send().await.problem(404, "not_found");
    server.variant(&id, 250).send().await.problem(404, "not_found");
    assert_eq!(server.record(&id).await.purge_status, Some(PurgeStatus::SystemPurge));
}

#[tokio::test]
async fn listings_leave_deleted_files_out_unless_asked() {
    let server = TestServer::start_without_purge().await;
    let kept = server.upload("kept").ok().await.file_id;
    let deleted = server.upload("deleted").ok().await.file_id;
    server.delete(&deleted).await.expect(200);
    assert_eq!(server.listed().await, [kept]);
    let asked =
        server.get("/api/v1/files?organization_id=acme&purge_status=SYSTEM_PURGE").send().await;
    let asked = asked.expect(200).json();
    assert_eq!(asked["items"].as_array().unwrap().len(), 1);
    assert_eq!(asked["items"][0]["file_id"], *deleted);
}

#[tokio::test]
async fn a_purge_removes_bytes_and_record_and_then_everything_is_404() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(9, 50_000);
    let empty = files_under(server.data_dir()).len();
    let record = server.upload(&bytes).ok().await;
    let blob = record.file_path.rsplit('/').next().unwrap().to_owned();
    let on_disk =
        || files_under(server.data_dir()).iter().any(|f| f.to_string_lossy().contains(&blob));

    // Looked for more than once: it may move to its final name behind the look.
    eventually("the generated part to name a file on disk", async || on_disk().then_some(())).await;
    server.delete(&record.file_id).await.expect(200);
    eventually("the record to be gone", async || {
        Some(server.info(&record.file_id).await).filter(|reply| reply.status == 404)
    })
    .await;
    assert!(!on_disk(), "bytes are gone before the record");
    assert!(files_under(server.data_dir()).len() <= empty);

    server.delete(&record.file_id).await.problem(404, "not_found");
    server.restore(&record.file_id).await.problem(404, "not_found");
    server.content(&record.file_id).send().await.problem(404, "not_found");
}

#[tokio::test]
async fn a_purge_removes_replaced_blobs_too() {
    let server = TestServer::start().await;
    let empty = files_under(server.data_dir()).len();

    let id = server.upload(fixtures::noise(1, 5000)).ok().await.file_id;
    for seed in 2..5 {
        server.change(&id).file(fixtures::noise(seed, 5000)).send().await.expect(200);
    }
    server.delete(&id).await.expect(200);

    eventually("four blobs and a record to be gone", async || {
        let gone = server.info(&id).await.status == 404;
        (gone && files_under(server.data_dir()).len() <= empty).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_restored_file_is_what_it_was() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("back again").name("a.txt").ok().await.file_id;
    let before = server.content(&id).send().await;
    server.delete(&id).await.expect(200);
    let reply = server.restore(&id).await.expect(200);
    let restored = reply.record();
    assert_eq!((restored.purge_status, &*restored.original_name), (None, "a.txt"));
    let after = server.content(&id).send().await.expect(200);
    assert_eq!((after.only("etag"), &after.body[..]), (before.only("etag"), &b"back again"[..]));
    assert_eq!(server.listed().await, [id]);
}

#[tokio::test]
async fn a_deleted_file_stays_deleted_over_a_restart() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("x").ok().await.file_id;
    server.delete(&id).await.expect(200);
    let server = server.restart().await;
    server.content(&id).send().await.problem(404, "not_found");
    assert_eq!(server.record(&id).await.purge_status, Some(PurgeStatus::SystemPurge));
    server.restore(&id).await.expect(200);
    server.content(&id).send().await.expect(200);
}

#[tokio::test]
async fn deleting_one_file_leaves_its_equal_alone() {
    let server = TestServer::start().await;
    let one = server.upload("equal bytes").ok().await.file_id;
    let other = server.upload("equal bytes").ok().await.file_id;
    server.delete(&one).await.expect(200);
    eventually("the purge", async || {
        Some(server.info(&one).await).filter(|reply| reply.status == 404)
    })
    .await;
    assert_eq!(server.content(&other).send().await.expect(200).body, "equal bytes");
}

const DAY: Duration = Duration::from_hours(24);

fn time(value: &Value) -> Timestamp {
    value.as_str().expect("a time").parse().expect("ISO 8601 with milliseconds")
}

#[tokio::test]
async fn by_default_a_deletion_can_be_taken_back_for_a_day() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("undo").ok().await.file_id;
    let before = Timestamp::now();
    server.delete(&id).await.expect(200);
    server.post("/api/v1/admin/purge/run").send().await.expect(200);

    let deleted = server.info(&id).await.expect(200).json();
    let deleted_at = time(&deleted["deleted_at"]);
    assert!(deleted_at >= before && deleted_at <= Timestamp::now(), "{deleted}");
    assert_eq!(time(&deleted["purge_due_at"]), deleted_at.plus(DAY));
    let listed = server.get("/api/v1/files?purge_status=SYSTEM_PURGE").send().await.expect(200);
    assert_eq!(listed.json()["items"], json!([deleted]));

    let restored = server.restore(&id).await.expect(200).json();
    assert_eq!((&restored["deleted_at"], &restored["purge_due_at"]), (&json!(null), &json!(null)));
    assert_eq!(server.content(&id).send().await.expect(200).body, "undo");
    server.delete(&id).await.expect(200);
    let again = server.info(&id).await.expect(200).json();
    assert!(time(&again["deleted_at"]) >= deleted_at, "a deletion of its own: {again}");
}

#[tokio::test]
async fn every_reply_with_a_record_has_both_times_and_they_are_null_for_live_files() {
    let server = TestServer::start_without_purge().await;
    let uploaded = server.upload("one").send().await.expect(201).json();
    let id = uploaded["file_id"].as_str().unwrap().to_owned();
    let batch = server.batch().item("two").send().await.expect(201).json();
    let listed = server.get("/api/v1/files?organization_id=acme").send().await.expect(200).json();
    let restored = server.restore(&id).await.expect(200).json();
    let info = server.info(&id).await.expect(200).json();
    for record in [&uploaded, &batch[0], &listed["items"][0], &restored, &info] {
        for field in ["deleted_at", "purge_due_at"] {
            assert_eq!(record.get(field), Some(&Value::Null), "{field} of {record}");
        }
    }
}

#[tokio::test]
async fn a_changed_grace_moves_the_purge_of_files_that_are_deleted_already() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("x").ok().await.file_id;
    server.delete(&id).await.expect(200);
    let server = server.restart_with(|config| config.store.purge_grace = 30 * DAY).await;
    let record = server.info(&id).await.expect(200).json();
    assert_eq!(time(&record["purge_due_at"]), time(&record["deleted_at"]).plus(30 * DAY));
}
