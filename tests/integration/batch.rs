//! POST /api/v1/files/batch (reference §4.4): all or nothing, at every instant, to every reader.

use std::collections::HashSet;

use filestore_core::NewBatch;
use filestore_workspace::{Form, TestServer, files_under, fixtures, sha256_hex};

#[tokio::test]
async fn a_batch_answers_201_with_its_records_in_ascending_n() {
    let server = TestServer::start().await;
    let reply = server
        .batch()
        .file("items[10].file", "ten")
        .field("items[2].original_name", "two.txt")
        .file("items[2].file", "two")
        .file("items[9999].file", "last")
        .file("items[0].file", "zero")
        .field("items[10].mime_type", "application/x-ten")
        .send()
        .await
        .expect(201);

    let records = reply.records();
    let digests: Vec<&str> = records.iter().map(|record| &*record.sha256).collect();
    let expected = ["zero", "two", "ten", "last"].map(|text| sha256_hex(text.as_bytes()));
    assert_eq!(digests, expected);
    assert_eq!(records[1].original_name, "two.txt");
    assert_eq!(records[2].mime_type, "application/x-ten");
    assert!(
        records.iter().all(|record| record.status == "READY" && record.sync_status == "PENDING")
    );

    for (record, text) in records.iter().zip(["zero", "two", "ten", "last"]) {
        assert_eq!(server.content(&record.file_id).send().await.expect(200).body, text);
    }
}

#[tokio::test]
async fn the_shared_fields_may_come_last() {
    let server = TestServer::start().await;
    let form = Form::new()
        .bytes("items[0].file", b"a")
        .bytes("items[1].file", b"b")
        .text("sub_system", "gallery")
        .text("organization_id", "acme");

    let records = server.post("/api/v1/files/batch").form(form).send().await.expect(201).records();
    assert!(
        records
            .iter()
            .all(|record| record.organization_id == "acme" && record.sub_system == "gallery")
    );
}

#[tokio::test]
async fn a_malformed_batch_is_400_and_leaves_nothing() {
    let server = TestServer::start().await;
    let good = || server.batch().item("kept out");
    let repeated = good().file("items[0].file", "again");
    let text_only = good().field("items[1].original_name", "a.txt");
    let type_only = good().field("items[1].mime_type", "a/b");
    let unknown = good().field("items[0].colour", "red");
    let top_level = good().field("upload_temp", "true");
    let plain_file = good().file("file", "x");
    let repeated_name =
        good().field("items[0].original_name", "a").field("items[0].original_name", "b");
    let bad_name = good().field("items[0].original_name", "a\tb");

    let bad_type = good().field("items[0].mime_type", "png");
    let mut all = vec![
        repeated,
        text_only,
        type_only,
        unknown,
        top_level,
        plain_file,
        repeated_name,
        bad_name,
        bad_type,
    ];

    for index in ["", "-1", "+1", "01", "1e1", "10000", "x", " 1", "1 "] {
        all.push(good().file(&format!("items[{index}].file"), "x"));
    }
    for name in [
        "items.file",
        "items[1]",
        "items[1]file",
        "items[1].file.",
        "items[1][file]",
        "Items[1].file",
    ] {
        all.push(good().file(name, "x"));
    }

    for batch in all {
        let said = format!("{batch:?}");
        let reply = batch.send().await;
        assert_eq!(reply.status, 400, "{said}: {}", reply.text());
        assert!(reply.any_problem(400).field.is_some(), "{said}: {}", reply.text());
    }

    assert_eq!(server.listed().await, [""; 0]);
}

#[tokio::test]
async fn an_empty_batch_is_400() {
    let server = TestServer::start().await;
    server.batch().send().await.any_problem(400);
    let form = Form::new().text("organization_id", "acme").bytes("items[0].file", b"x");
    let problem =
        server.post("/api/v1/files/batch").form(form).send().await.problem(400, "missing_field");
    assert_eq!(problem.field.as_deref(), Some("sub_system"));
}

#[tokio::test]
async fn an_error_of_an_item_names_the_item() {
    let server = TestServer::start().await;
    let reply = server.batch().item("a").item("b").named("bad\nname", "c").send().await;
    let problem = reply.problem(400, "invalid_field");
    assert_eq!(problem.item, Some(2));
    assert_eq!(problem.field.as_deref(), Some("items[2].original_name"));
}

#[tokio::test]
async fn a_failing_item_leaves_nothing_at_all() {
    let server = TestServer::start_with(|config| config.store.limits.max_file_size = 1000).await;
    let before = files_under(server.data_dir()).len();
    let reply =
        server.batch().item("fine").item(fixtures::noise(1, 1001)).item("fine too").send().await;
    reply.problem(413, "too_large");
    assert_eq!(server.listed().await, [""; 0]);
    filestore_workspace::eventually("the removal of staged bytes", async || {
        (files_under(server.data_dir()).len() <= before).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_cut_off_batch_leaves_nothing_at_all() {
    let server = TestServer::start().await;
    let form = Form::new()
        .text("organization_id", "acme")
        .text("sub_system", "gallery")
        .bytes("items[0].file", b"a")
        .bytes("items[1].file", b"b");
    let content_type = form.content_type();
    let reply = server.post("/api/v1/files/batch").body(&content_type, form.cut_off()).send().await;
    reply.problem(400, "malformed_body");
    assert_eq!(server.listed().await, [""; 0]);
}

#[tokio::test]
async fn a_reader_sees_none_or_all_of_a_batch() {
    let server = TestServer::start().await;
    let batches = async {
        for round in 0..12 {
            let mut batch = server.batch();
            for item in 0..8 {
                batch = batch.named(&format!("{round}-{item}"), format!("{round}/{item}"));
            }
            batch.ok().await;
        }
    };

    let reader = async {
        let mut looks = Vec::new();
        loop {
            let listed = server.listed().await.len();
            looks.push(listed);
            if listed == 96 {
                return looks;
            }
        }
    };

    let ((), looks) = tokio::join!(batches, reader);
    assert!(looks.iter().all(|seen| seen % 8 == 0), "a part of a batch was seen: {looks:?}");
    assert!(
        looks.iter().collect::<HashSet<_>>().len() > 2,
        "the reader saw nothing on the way: {looks:?}"
    );
}

#[tokio::test]
async fn every_record_of_a_visible_batch_can_be_read() {
    let server = TestServer::start().await;
    let batch = async {
        let mut batch = server.batch();
        for item in 0..50 {
            batch = batch.item(fixtures::noise(item, 10_000));
        }
        batch.ok().await
    };

    let reader = async {
        loop {
            let listed = server.listed().await;
            for id in &listed {
                server.content(id).send().await.expect(200);
            }
            if listed.len() == 50 {
                return;
            }
        }
    };

    let (records, ()) = tokio::join!(batch, reader);
    assert_eq!(records.len(), 50);
}

#[tokio::test]
async fn a_batch_survives_a_restart_as_a_whole() {
    let server = TestServer::start().await;
    let records = server.batch().item("a").item("b").item("c").ok().await;
    let server = server.restart().await;
    assert_eq!(server.listed().await.len(), 3);
    for (record, text) in records.iter().zip(["a", "b", "c"]) {
        assert_eq!(server.content(&record.file_id).send().await.expect(200).body, text);
    }
}

#[tokio::test]
async fn a_batch_over_its_item_limit_is_refused_as_a_whole() {
    let server = TestServer::start_with(|config| config.store.limits.max_batch_items = 3).await;
    let problem = server.batch().item("a").item("b").item("c").item("d").send().await;
    assert_eq!(problem.problem(413, "too_many_items").limit, Some(3));
    assert_eq!(server.listed().await, [""; 0]);
    server.batch().item("a").item("b").item("c").ok().await;
}

#[tokio::test]
async fn a_batch_over_its_byte_limit_is_refused_as_a_whole() {
    let server = TestServer::start_with(|config| config.store.limits.max_batch_size = 2000).await;
    let reply =
        server.batch().item(fixtures::noise(1, 1500)).item(fixtures::noise(2, 600)).send().await;
    assert_eq!(reply.problem(413, "too_large").limit, Some(2000));
    assert_eq!(server.listed().await, [""; 0]);
    server.batch().item(fixtures::noise(1, 1500)).item(fixtures::noise(2, 500)).ok().await;
}

#[tokio::test]
async fn the_core_refuses_an_empty_batch_as_the_server_does() {
    let server = TestServer::start().await;
    let batch = NewBatch::new("acme".parse().unwrap(), "gallery".parse().unwrap());
    let session = server.store().uploads().begin_unclaimed();
    let error = session.commit_batch(batch, Vec::new()).await.unwrap_err();
    assert_eq!(error.kind(), filestore_core::ErrorKind::MissingField);
}
