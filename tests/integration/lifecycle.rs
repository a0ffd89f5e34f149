//! The states of a file (reference §3): every row of the table and every refused transition.

use std::time::Duration;

use filestore_core::api::PurgeStatus;
use filestore_workspace::{TestServer, eventually, fixtures};
use insta::assert_json_snapshot;

/// A file in each status.
async fn one_of_each(server: &TestServer) -> [(&'static str, String); 3] {
    let temp = server.upload("temp").temp().ok().await.file_id;
    let thumbnail = server.upload("thumbnail").temp().ok().await.file_id;
    server.change(&thumbnail).make_thumbnail().send().await.expect(200);
    let ready = server.upload("ready").ok().await.file_id;
    [("TEMP", temp), ("THUMBNAIL", thumbnail), ("READY", ready)]
}

#[tokio::test]
async fn a_normal_upload_is_ready_and_answers_pending() {
    let server = TestServer::start().await;
    let record = server.upload("x").ok().await;
    assert_eq!((record.status.as_str(), record.sync_status.as_str()), ("READY", "PENDING"));
    assert_eq!((record.expires_at, record.purge_status), (None, None));
}

#[tokio::test]
async fn a_temp_upload_is_local_with_sync_none_and_expires_after_a_day() {
    let server = TestServer::start().await;
    let record = server.upload("x").temp().ok().await;
    assert_eq!(
        (record.status.as_str(), record.sync_status.as_str(), record.storage_location.as_str()),
        ("TEMP", "NONE", "LOCAL")
    );
    let expires = record.expires_at.expect("an end");
    assert_eq!(expires[10..], record.created_at[10..], "the same time of day");
    assert_ne!(expires[..10], record.created_at[..10], "on another day");
}

#[tokio::test]
async fn a_pending_file_with_nowhere_to_go_settles_within_30_seconds() {
    let server = TestServer::start().await;
    let uploaded = server.upload("x").ok().await;
    let settled = eventually("sync_status NONE", async || {
        Some(server.record(&uploaded.file_id).await).filter(|record| record.sync_status == "NONE")
    })
    .await;
    assert_eq!(settled.updated_at, uploaded.updated_at, "nothing a user did has changed");
    assert_eq!((settled.status.as_str(), settled.storage_location.as_str()), ("READY", "LOCAL"));
}

#[tokio::test]
async fn a_temp_file_becomes_a_thumbnail_whatever_its_type() {
    let server = TestServer::start().await;
    for bytes in [fixtures::png(8, 8), fixtures::PDF.to_vec()] {
        let temp = server.upload(bytes).temp().ok().await;
        let reply = server.change(&temp.file_id).make_thumbnail().send().await.expect(200);
        assert_eq!(reply.json()["sync_status"], "NONE");
        let record = server.record(&temp.file_id).await;
        assert_eq!((record.status.as_str(), record.sync_status.as_str()), ("THUMBNAIL", "NONE"));
        assert_eq!(record.expires_at, None, "only TEMP files expire");
    }
}

#[tokio::test]
async fn any_status_becomes_ready_and_the_reply_shows_none() {
    let server = TestServer::start().await;
    for (status, id) in one_of_each(&server).await {
        let reply = server.change(&id).make_ready().send().await.expect(200);
        assert_eq!(reply.json()["sync_status"], "NONE", "from {status}");
        let record = server.record(&id).await;
        assert_eq!((record.status.as_str(), record.expires_at), ("READY", None), "from {status}");
        assert_eq!(record.version, 1, "from {status}");
    }
}

#[tokio::test]
async fn any_status_becomes_ready_with_new_bytes() {
    let server = TestServer::start().await;
    for (status, id) in one_of_each(&server).await {
        let reply = server.change(&id).make_ready().file("new").send().await.expect(200);
        assert_eq!(reply.json()["sync_status"], "NONE", "from {status}");
        let record = server.record(&id).await;
        assert_eq!((record.status.as_str(), record.version), ("READY", 2), "from {status}");
        assert_eq!(server.content(&id).send().await.expect(200).body, "new", "from {status}");
    }
}

#[tokio::test]
async fn a_promoted_record_is_pending_so_that_it_still_reaches_its_cloud() {
    let server = TestServer::start().await;
    // The sync worker may settle a file between the two requests: then another one is promoted.
    eventually("a promoted file that is seen PENDING", async || {
        let temp = server.upload("x").temp().ok().await;
        server.change(&temp.file_id).make_ready().send().await.expect(200);
        Some(server.record(&temp.file_id).await).filter(|record| record.sync_status == "PENDING")
    })
    .await;
}

#[tokio::test]
async fn new_bytes_without_a_flag_keep_the_status() {
    let server = TestServer::start().await;
    for (status, id) in one_of_each(&server).await {
        let before = server.record(&id).await;
        let reply = server.change(&id).file("new").send().await.expect(200);
        let sync = if status == "READY" { "PENDING" } else { "NONE" };
        assert_eq!(reply.json()["sync_status"], sync, "{status}");
        let after = server.record(&id).await;
        assert_eq!((after.status.as_str(), after.version), (status, 2));
        assert_eq!(after.expires_at, before.expires_at, "{status}");
        assert_eq!(server.content(&id).send().await.expect(200).body, "new");
    }
}

#[tokio::test]
async fn a_ready_file_never_becomes_a_thumbnail() {
    let server = TestServer::start().await;
    let record = server.upload("x").ok().await;

    let reply = server.change(&record.file_id).make_thumbnail().send().await;
    reply.problem(409, "invalid_transition");
    assert_json_snapshot!(reply.json(), {
        ".request_id" => "[id]",
        ".instance" => "[urn]",
        ".type" => "[type]",
        ".title" => "[title]",
        ".detail" => "[detail]",
    }, @r#"
    {
      "allowed": [
        "READY"
      ],
      "code": "invalid_transition",
      "detail": "[detail]",
      "from": "READY",
      "instance": "[urn]",
      "request_id": "[id]",
      "status": 409,
      "title": "[title]",
      "to": "THUMBNAIL",
      "type": "[type]"
    }
    "#);
    assert_eq!(server.record(&record.file_id).await.status, "READY");
}

#[tokio::test]
async fn the_same_state_again_is_a_200_that_changes_nothing() {
    let server = TestServer::start().await;
    let [_, (_, thumbnail), (_, ready)] = one_of_each(&server).await;
    let before = server.record(&thumbnail).await;

    server.change(&thumbnail).make_thumbnail().send().await.expect(200);
    assert_eq!(server.record(&thumbnail).await, before);

    let before = server.record(&ready).await;
    server.change(&ready).make_ready().send().await.expect(200);
    let after = server.record(&ready).await;
    assert_eq!(
        (after.updated_at, after.version, after.status),
        (before.updated_at, 1, before.status)
    );
}

#[tokio::test]
async fn a_deleted_file_in_any_status_takes_no_change() {
    let server = TestServer::start_without_purge().await;
    for (status, id) in one_of_each(&server).await {
        server.delete(&id).await.expect(200);
        server.change(&id).make_thumbnail().send().await.problem(404, "not_found");
        server.change(&id).make_ready().send().await.problem(404, "not_found");
        server.change(&id).file("new").send().await.problem(404, "not_found");
        server.content(&id).send().await.problem(404, "not_found");
        server.variant(&id, 200).send().await.problem(404, "not_found");
        let record = server.record(&id).await;
        assert_eq!(record.purge_status, Some(PurgeStatus::SystemPurge), "{status}");
        assert_eq!((record.status.as_str(), record.version), (status, 1));
    }
}

#[tokio::test]
async fn restoring_gives_every_status_back_and_the_same_again_is_a_no_op() {
    let server = TestServer::start_without_purge().await;
    for (status, id) in one_of_each(&server).await {
        for deleted in [false, true, false] {
            if deleted {
                server.delete(&id).await.expect(200);
            }
            let restored = server.restore(&id).await.expect(200).record();
            assert_eq!((restored.status.as_str(), restored.purge_status), (status, None));
        }
    }
}

#[tokio::test]
async fn an_expired_temp_file_is_purged() {
    let server =
        TestServer::start_with(|config| config.store.temp_ttl = Duration::from_millis(1)).await;
    let temp = server.upload("x").temp().ok().await;
    let kept = server.upload("y").ok().await;
    eventually("the purge of an expired file", async || {
        server.post("/api/v1/admin/purge/run").send().await.expect(200);
        Some(server.info(&temp.file_id).await).filter(|reply| reply.status == 404)
    })
    .await;
    server.content(&kept.file_id).send().await.expect(200);
}

#[tokio::test]
async fn an_expired_temp_file_waits_for_its_purge_and_can_be_restored() {
    let grace = Duration::from_hours(24);
    let server = TestServer::start_with(|config| {
        config.store.temp_ttl = Duration::from_millis(1);
        config.store.purge_grace = grace;
    })
    .await;
    let id = server.upload("x").temp().ok().await.file_id;
    let record = eventually("the expiry", async || {
        server.post("/api/v1/admin/purge/run").send().await.expect(200);
        Some(server.record(&id).await).filter(|record| record.purge_status.is_some())
    })
    .await;
    assert!(record.deleted_at.is_some() && record.purge_due_at > record.deleted_at, "{record:?}");
    server.content(&id).send().await.problem(404, "not_found");

    let server = server.restart_with(|config| config.store.temp_ttl = grace).await;
    let restored = server.restore(&id).await.expect(200).record();
    assert!(restored.deleted_at.is_none() && restored.expires_at > record.expires_at);
    server.content(&id).send().await.expect(200);
}

#[tokio::test]
async fn a_temp_file_made_ready_in_time_does_not_expire() {
    let server = TestServer::start().await;
    let temp = server.upload("x").temp().ok().await;
    server.change(&temp.file_id).make_ready().send().await.expect(200);
    let record = server.record(&temp.file_id).await;
    assert_eq!((record.expires_at, record.status.as_str()), (None, "READY"));
}
