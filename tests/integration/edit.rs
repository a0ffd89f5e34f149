//! PUT /api/v1/files/upload without a file: another name, type or custom metadata (reference §4.3), and
//! `metadata` wherever it is given (reference §2.1).

use filestore_workspace::{Reply, TestServer, fixtures};
use serde_json::{Value, json};

async fn edit(server: &TestServer, id: &str, fields: &[(&str, &str)]) -> Reply {
    let change = server.change(id);
    fields.iter().fold(change, |change, (name, value)| change.field(name, value)).send().await
}

#[tokio::test]
async fn a_rename_keeps_bytes_version_digest_and_path() {
    let server = TestServer::start().await;
    let old = server.upload("words").name("old.txt").ok().await;
    let etag = server.content(&old.file_id).send().await.only("etag").to_owned();

    let reply = edit(&server, &old.file_id, &[("original_name", "new.md")]).await.expect(200);
    assert_eq!(reply.only("etag"), etag);
    assert_eq!(reply.json().as_object().unwrap().len(), 3, "{}", reply.text());

    let new = server.record(&old.file_id).await;
    assert_eq!((&*new.original_name, &*new.ext), ("new.md", "md"));
    assert_eq!(reply.json()["updated_at"], new.updated_at);
    assert!(new.updated_at >= old.updated_at);
    assert_eq!(
        (new.version, &new.sha256, &new.file_path, &new.mime_type, &new.created_at),
        (old.version, &old.sha256, &old.file_path, &old.mime_type, &old.created_at)
    );

    let content = server.content(&old.file_id).send().await.expect(200);
    assert!(content.only("content-disposition").contains("new.md"));
    assert_eq!(content.body, "words");
}

#[tokio::test]
async fn a_cache_learns_the_new_name_when_it_asks_again() {
    let server = TestServer::start().await;
    let id = server.upload("words").name("old.txt").ok().await.file_id;
    let etag = server.content(&id).send().await.only("etag").to_owned();
    let again = async || server.content(&id).header("if-none-match", &etag).send().await;
    assert_eq!(again().await.expect(304).header("content-disposition"), None);

    edit(&server, &id, &[("original_name", "new.txt")]).await.expect(200);
    let told = again().await.expect(304);
    assert!(told.only("content-disposition").contains("new.txt"), "RFC 9111 §4.3.4");
}

#[tokio::test]
async fn a_new_type_changes_how_a_file_is_served_and_nothing_else() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::png(4, 4)).name("a.png").ok().await.file_id;
    edit(&server, &id, &[("mime_type", "application/x-mine")]).await.expect(200);

    let record = server.record(&id).await;
    assert_eq!((&*record.mime_type, &*record.ext), ("application/x-mine", "png"));
    assert_eq!((&*record.original_name, record.width), ("a.png", Some(4)));
    let content = server.content(&id).send().await.expect(200);
    assert_eq!(content.only("content-type"), "application/x-mine");
    assert!(content.only("content-disposition").starts_with("attachment"));
    server.variant(&id, 200).send().await.expect(200);
}

#[tokio::test]
async fn files_of_every_status_can_be_edited_and_stay_what_they_are() {
    let server = TestServer::start().await;
    let temp = server.upload("x").temp().ok().await;
    edit(&server, &temp.file_id, &[("original_name", "temp")]).await.expect(200);
    let edited = server.record(&temp.file_id).await;
    assert_eq!((edited.status, edited.expires_at), (temp.status, temp.expires_at));

    server.change(&temp.file_id).make_thumbnail().send().await.expect(200);
    edit(&server, &temp.file_id, &[("original_name", "thumbnail")]).await.expect(200);
    server.change(&temp.file_id).make_ready().send().await.expect(200);
    let reply = edit(&server, &temp.file_id, &[("original_name", "ready")]).await.expect(200);
    assert_eq!(
        reply.json()["sync_status"],
        server.record(&temp.file_id).await.sync_status.as_str()
    );
}

#[tokio::test]
async fn the_same_edit_again_changes_nothing() {
    let server = TestServer::start().await;
    let id = server.upload("x").ok().await.file_id;
    let fields = [("original_name", "a"), ("mime_type", "a/b"), ("metadata", "{\"k\":1}")];
    edit(&server, &id, &fields).await.expect(200);
    let once = server.record(&id).await;
    edit(&server, &id, &fields).await.expect(200);
    edit(&server, &id, &[("metadata", "{ \"k\" : 1 }")]).await.expect(200);
    assert_eq!(server.record(&id).await, once);
}

#[tokio::test]
async fn what_cannot_be_edited_is_refused() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("x").ok().await.file_id;
    for (field, bad) in [
        ("original_name", "a\nb"),
        ("original_name", &*"x".repeat(256)),
        ("mime_type", "png"),
        ("metadata", "[]"),
        ("metadata", "{\"a\":1,\"a\":2}"),
        ("metadata", "{"),
    ] {
        let problem = edit(&server, &id, &[(field, bad)]).await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some(field), "{bad}");
    }
    for field in ["original_name", "mime_type", "metadata"] {
        let blank = edit(&server, &id, &[(field, "")]).await.problem(400, "missing_field");
        assert_eq!(blank.field.as_deref(), Some("file"), "an input left blank is not given");
    }

    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    edit(&server, unknown, &[("original_name", "a")]).await.problem(404, "not_found");
    server.delete(&id).await.expect(200);
    edit(&server, &id, &[("original_name", "a")]).await.problem(404, "not_found");
}

#[tokio::test]
async fn an_edit_is_guarded_by_the_content_it_names() {
    let server = TestServer::start().await;
    let id = server.upload("x").name("a").ok().await.file_id;
    let other = server.change(&id).if_match("\"other\"").field("original_name", "b").send().await;
    other.problem(412, "precondition_failed");
    assert_eq!(server.record(&id).await.original_name, "a");

    let etag = server.content(&id).send().await.only("etag").to_owned();
    for name in ["b", "c"] {
        let edit = server.change(&id).if_match(&etag).field("original_name", name);
        edit.send().await.expect(200);
        assert_eq!(server.record(&id).await.original_name, name, "an edit changes no entity tag");
    }
}

#[tokio::test]
async fn edits_at_the_same_moment_lose_nothing_of_one_another() {
    let server = TestServer::start().await;
    for round in 0..20 {
        let id = server.upload("x").ok().await.file_id;
        let (name, mime) = (format!("name {round}"), format!("a/b{round}"));
        let object = format!("{{\"round\":{round}}}");
        let (names, types, objects) =
            ([("original_name", &*name)], [("mime_type", &*mime)], [("metadata", &*object)]);
        let (one, two, three) = tokio::join!(
            edit(&server, &id, &names),
            edit(&server, &id, &types),
            edit(&server, &id, &objects)
        );
        for reply in [one, two, three] {
            reply.expect(200);
        }

        let record = server.record(&id).await;
        assert_eq!((&record.original_name, &record.mime_type), (&name, &mime));
        assert_eq!(record.metadata["round"], round);
    }
}

#[tokio::test]
async fn metadata_is_kept_with_the_file_and_shown_wherever_its_record_is() {
    let server = TestServer::start().await;
    let object = json!({"customer": 7, "tags": ["a", "b"], "nested": {"é": null}, "paid": true});
    let uploaded =
        server.upload("x").field("metadata", &object.to_string()).send().await.expect(201);
    assert_eq!(uploaded.json()["metadata"], object);

    let id = uploaded.file_id();
    assert_eq!(server.info(&id).await.json()["metadata"], object);
    let page = server.get("/api/v1/files?organization_id=acme").send().await.expect(200).json();
    assert_eq!(page["items"][0]["metadata"], object);

    let server = server.restart().await;
    assert_eq!(server.info(&id).await.json()["metadata"], object);
    assert_eq!(
        server.upload("y").ok().await.metadata,
        serde_json::Map::default(),
        "none is an empty object"
    );
}

#[tokio::test]
async fn metadata_is_replaced_as_a_whole_and_stays_where_it_is_not_given() {
    let server = TestServer::start().await;
    let id = server.upload("x").temp().field("metadata", r#"{"a":1,"b":2}"#).ok().await.file_id;
    let metadata = async || server.info(&id).await.expect(200).json()["metadata"].clone();

    edit(&server, &id, &[("metadata", r#"{"b":3}"#)]).await.expect(200);
    assert_eq!(metadata().await, json!({"b": 3}));
    server.change(&id).make_ready().send().await.expect(200);
    server.change(&id).file("new bytes").send().await.expect(200);
    edit(&server, &id, &[("original_name", "n")]).await.expect(200);
    assert_eq!(metadata().await, json!({"b": 3}));

    server.change(&id).file("newer").field("metadata", r#"{"c":4}"#).send().await.expect(200);
    assert_eq!(metadata().await, json!({"c": 4}));
    edit(&server, &id, &[("metadata", "{}")]).await.expect(200);
    assert_eq!(metadata().await, json!({}));
}

#[tokio::test]
async fn each_item_of_a_batch_has_metadata_of_its_own() {
    let server = TestServer::start().await;
    let batch = server.batch().item("a").item("b").field("items[1].metadata", r#"{"page":2}"#);
    let records = batch.ok().await;
    assert_eq!(records[0].metadata, serde_json::Map::default());
    assert_eq!(records[1].metadata["page"], 2);

    let bad = server.batch().item("a").field("items[0].metadata", "[]").send().await;
    let problem = bad.problem(400, "invalid_field");
    assert_eq!((problem.field.as_deref(), problem.item), (Some("items[0].metadata"), Some(0)));
}

#[tokio::test]
async fn metadata_has_4_kib_at_most() {
    let server = TestServer::start().await;
    let of = |bytes: usize| format!(r#"{{"k":"{}"}}"#, "x".repeat(bytes - 8));
    let largest = server.upload("x").field("metadata", &of(4096)).ok().await;
    assert_eq!(largest.metadata["k"].as_str().unwrap().len(), 4088);

    for bytes in [4097, 8000, 9000] {
        let reply = server.upload("x").field("metadata", &of(bytes)).send().await;
        let problem = reply.problem(413, "too_large");
        assert_eq!(problem.field.as_deref(), Some("metadata"), "{bytes}");
    }
    assert_eq!(server.listed().await.len(), 1);
}

#[tokio::test]
async fn metadata_belongs_to_what_an_idempotency_key_remembers() {
    let server = TestServer::start().await;
    let upload = |object: &str| server.upload("x").key("k").field("metadata", object);
    let first = upload(r#"{"a":1,"b":2}"#).send().await.expect(201).json();
    let again = upload(r#"{ "b": 2, "a": 1 }"#).send().await.expect(201).json();
    assert_eq!(again, first, "one object, written in two ways");

    upload(r#"{"a":2}"#).send().await.problem(422, "idempotency_mismatch");
    server.upload("x").key("k").send().await.problem(422, "idempotency_mismatch");
}

#[tokio::test]
async fn the_client_edits_and_reads_metadata() {
    use filestore_client::{Change, Item, Upload};

    let server = TestServer::start().await;
    let client = server.client();
    let place = client.organization("acme").unwrap().sub_system("gallery").unwrap();
    let upload = Upload::new(Item::from_bytes("x")).original_name("a").metadata([("customer", 7)]);
    let record = place.upload(upload).await.unwrap();
    assert_eq!(record.metadata["customer"], 7);

    let change = Change::edit().original_name("b.pdf").mime_type("application/pdf");
    client.change(&record.file_id, change.metadata([("customer", "eight")])).await.unwrap();
    let record = client.info(&record.file_id).await.unwrap().value;
    assert_eq!((&*record.original_name, &*record.mime_type), ("b.pdf", "application/pdf"));
    assert_eq!(record.metadata["customer"], "eight");

    let item = Item::from_bytes("y").original_name("c");
    let change = Change::replace(item).original_name("d").metadata([("k", Value::Null)]);
    client.change(&record.file_id, change).await.unwrap();
    let record = client.info(&record.file_id).await.unwrap().value;
    assert_eq!((&*record.original_name, record.version), ("d", 2), "what the change says wins");
    assert_eq!(record.metadata["k"], Value::Null);
}
