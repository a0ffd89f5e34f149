//! PATCH /api/v1/files/{fileId}: another name, type or custom metadata (reference §4.11), and `metadata`
//! wherever it is given (reference §2.1).

use filestore_core::Scope;
use filestore_core::keys::{KeyScope, NewKey};
use filestore_workspace::{Reply, TestServer, fixtures};
use reqwest::Method;
use serde_json::{Value, json};

const PATCH: &str = "application/merge-patch+json";

async fn edit(server: &TestServer, id: &str, patch: Value) -> Reply {
    server.edit(id, &patch).send().await
}

/// Sends a body as it is.
async fn edit_as(server: &TestServer, id: &str, content_type: &str, body: &str) -> Reply {
    let call = server.call(Method::PATCH, &format!("/api/v1/files/{id}"));
    call.body(content_type, body.to_owned()).send().await
}

#[tokio::test]
async fn a_rename_keeps_bytes_version_digest_and_path_and_answers_the_record() {
    let server = TestServer::start().await;
    let old = server.upload("words").name("old.txt").ok().await;
    let etag = server.content(&old.file_id).send().await.only("etag").to_owned();

    let reply = edit(&server, &old.file_id, json!({"original_name": "new.md"})).await.expect(200);
    assert_eq!(reply.only("etag"), etag);
    let new = server.record(&old.file_id).await;
    assert_eq!(reply.record(), new);
    assert_eq!((&*new.original_name, &*new.ext), ("new.md", "md"));
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

    edit(&server, &id, json!({"original_name": "new.txt"})).await.expect(200);
    let told = again().await.expect(304);
    assert!(told.only("content-disposition").contains("new.txt"), "RFC 9111 §4.3.4");
}

#[tokio::test]
async fn a_new_type_changes_how_a_file_is_served_and_nothing_else() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::png(4, 4)).name("a.png").ok().await.file_id;
    edit(&server, &id, json!({"mime_type": "application/x-mine"})).await.expect(200);

    let record = server.record(&id).await;
    assert_eq!((&*record.mime_type, &*record.ext), ("application/x-mine", "png"));
    assert_eq!((&*record.original_name, record.width), ("a.png", Some(4)));
    let content = server.content(&id).send().await.expect(200);
    assert_eq!(content.only("content-type"), "application/x-mine");
    assert!(content.only("content-disposition").starts_with("attachment"));
    server.variant(&id, 200).send().await.expect(200);
}

#[tokio::test]
async fn null_makes_name_and_type_what_they_are_without_any() {
    let server = TestServer::start().await;
    let picture = server.upload(fixtures::png(4, 4)).name("a.gif").mime("a/b").ok().await;
    let reply = edit(&server, &picture.file_id, json!({"original_name": null})).await.expect(200);
    let record = reply.record();
    assert_eq!((&record.original_name, &*record.ext), (&picture.file_id, "png"));
    assert_eq!(record.mime_type, "a/b", "the type stays");

    let reply = edit(&server, &picture.file_id, json!({"mime_type": null})).await.expect(200);
    assert_eq!(reply.record().mime_type, "image/png", "the bytes show it");

    let table = server.upload([0xff_u8; 8]).name("a.csv").mime("a/b").ok().await.file_id;
    let reply = edit(&server, &table, json!({"mime_type": null})).await.expect(200);
    assert_eq!(reply.record().mime_type, "text/csv", "the name shows it");
    let nothing = json!({"mime_type": null, "original_name": null, "metadata": null});
    let record = edit(&server, &table, nothing).await.expect(200).record();
    assert_eq!((&*record.mime_type, &*record.ext), ("application/octet-stream", ""));
}

#[tokio::test]
async fn files_of_every_status_can_be_edited_and_stay_what_they_are() {
    let server = TestServer::start().await;
    let temp = server.upload("x").temp().ok().await;
    edit(&server, &temp.file_id, json!({"original_name": "temp"})).await.expect(200);
    let edited = server.record(&temp.file_id).await;
    assert_eq!((edited.status, edited.expires_at), (temp.status, temp.expires_at));

    server.change(&temp.file_id).make_thumbnail().send().await.expect(200);
    edit(&server, &temp.file_id, json!({"original_name": "thumbnail"})).await.expect(200);
    server.change(&temp.file_id).make_ready().send().await.expect(200);
    let reply = edit(&server, &temp.file_id, json!({"original_name": "ready"})).await.expect(200);
    assert_eq!(
        (&*reply.record().original_name, &*reply.record().status.to_string()),
        ("ready", "READY")
    );
}

#[tokio::test]
async fn the_same_edit_again_changes_nothing_and_neither_does_an_empty_one() {
    let server = TestServer::start().await;
    let id = server.upload("x").ok().await.file_id;
    let patch = json!({"original_name": "a", "mime_type": "a/b", "metadata": {"k": 1, "l": null}});
    edit(&server, &id, patch.clone()).await.expect(200);
    let once = server.record(&id).await;
    for same in [patch, json!({"metadata": {"k": 1}}), json!({"metadata": {}}), json!({})] {
        assert_eq!(edit(&server, &id, same).await.expect(200).record(), once);
    }
    assert_eq!(server.record(&id).await, once);
}

#[tokio::test]
async fn what_cannot_be_edited_is_refused_and_named() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("x").name("kept").ok().await.file_id;
    for (body, code, field) in [
        (r#"{"original_name":"a\nb"}"#, "invalid_field", Some("original_name")),
        (r#"{"original_name":""}"#, "invalid_field", Some("original_name")),
        (r#"{"original_name":7}"#, "invalid_field", Some("original_name")),
        (
            &*format!(r#"{{"original_name":"{}"}}"#, "x".repeat(256)),
            "invalid_field",
            Some("original_name"),
        ),
        (r#"{"mime_type":"png"}"#, "invalid_field", Some("mime_type")),
        (r#"{"mime_type":""}"#, "invalid_field", Some("mime_type")),
        (r#"{"metadata":[]}"#, "invalid_field", Some("metadata")),
        (r#"{"metadata":"{}"}"#, "invalid_field", Some("metadata")),
        (r#"{"metadata":{"a":1,"a":2}}"#, "invalid_field", Some("metadata")),
        (r#"{"metadata":{"a":{"b":1,"b":2}}}"#, "invalid_field", Some("metadata")),
        (r#"{"original_name":"a","original_name":"b"}"#, "repeated_field", Some("original_name")),
        (r#"{"name":"a"}"#, "unknown_field", Some("name")),
        (r#"{"version":1}"#, "unknown_field", Some("version")),
        (r#"{"original_name":"a""#, "malformed_body", None),
        ("[]", "malformed_body", None),
        ("null", "malformed_body", None),
        ("", "malformed_body", None),
    ] {
        let problem = edit_as(&server, &id, PATCH, body).await.problem(400, code);
        assert_eq!(problem.field.as_deref(), field, "{body}");
    }
    assert_eq!(server.record(&id).await.original_name, "kept");

    let name = json!({"original_name": "a"});
    edit(&server, "no-ulid", name.clone()).await.problem(400, "invalid_field");
    edit(&server, "01ARZ3NDEKTSV4RRFFQ69G5FAV", name.clone()).await.problem(404, "not_found");
    server.delete(&id).await.expect(200);
    edit(&server, &id, name).await.problem(404, "not_found");
    edit(&server, &id, json!({})).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_patch_of_another_type_is_415_and_hears_which_type_is_taken() {
    let server = TestServer::start().await;
    let id = server.upload("x").ok().await.file_id;
    let patch = r#"{"original_name":"a"}"#;
    for good in [PATCH, "application/json", "Application/Merge-Patch+JSON; charset=utf-8"] {
        edit_as(&server, &id, good, patch).await.expect(200);
    }
    for bad in ["application/json-patch+json", "text/plain", "multipart/form-data; boundary=x", ""]
    {
        let reply = edit_as(&server, &id, bad, patch).await;
        assert_eq!(reply.only("accept-patch"), PATCH, "{bad}");
        let problem = reply.problem(415, "unsupported_media_type");
        assert_eq!(problem.allowed, [PATCH], "{bad}");
    }
    let coded = server.edit(&id, &json!({})).header("content-encoding", "gzip").send().await;
    coded.problem(415, "unsupported_media_type");
}

#[tokio::test]
async fn a_patch_has_64_kib_at_most_and_the_metadata_it_leads_to_4() {
    let server = TestServer::start().await;
    let id = server.upload("x").field("metadata", r#"{"kept":1}"#).ok().await.file_id;
    let removals =
        |bytes: usize| format!(r#"{{"metadata":{{"{}":null}}}}"#, "k".repeat(bytes - 22));
    edit_as(&server, &id, PATCH, &removals(64 << 10)).await.expect(200);
    let problem = edit_as(&server, &id, PATCH, &removals((64 << 10) + 1)).await;
    assert_eq!(problem.problem(413, "too_large").limit, Some(64 << 10));

    edit(&server, &id, json!({"metadata": {"a": "x".repeat(4000)}})).await.expect(200);
    let more = edit(&server, &id, json!({"metadata": {"b": "x".repeat(100)}})).await;
    let problem = more.problem(413, "too_large");
    assert_eq!((problem.field.as_deref(), problem.limit), (Some("metadata"), Some(4096)));
    let record = server.record(&id).await;
    assert_eq!((&record.metadata["kept"], record.metadata.len()), (&json!(1), 2));
}

#[tokio::test]
async fn an_edit_by_form_is_refused_and_the_answer_names_patch() {
    let server = TestServer::start().await;
    let id = server.upload("x").name("kept").temp().ok().await.file_id;
    for flag in [None, Some("make_as_ready"), Some("make_as_thumbnail")] {
        for (field, value) in [("original_name", "a"), ("mime_type", "a/b"), ("metadata", "{}")] {
            let mut change = server.change(&id).field(field, value);
            if let Some(flag) = flag {
                change = change.field(flag, "true");
            }
            let problem = change.send().await.problem(400, "invalid_field");
            assert_eq!(problem.field.as_deref(), Some(field), "{flag:?}");
            assert!(problem.detail.contains("PATCH /api/v1/files/{fileId}"), "{}", problem.detail);
        }
    }
    for field in ["original_name", "mime_type", "metadata"] {
        let blank = server.change(&id).field(field, "").send().await.problem(400, "missing_field");
        assert_eq!(blank.field.as_deref(), Some("file"), "an input left blank is not given");
    }
    let record = server.record(&id).await;
    assert_eq!((&*record.original_name, &*record.status.to_string()), ("kept", "TEMP"));
}

#[tokio::test]
async fn an_edit_is_guarded_by_the_content_it_names() {
    let server = TestServer::start().await;
    let id = server.upload("x").name("a").ok().await.file_id;
    let renamed = |name: &str| server.edit(&id, &json!({"original_name": name}));
    let other = renamed("b").header("if-match", "\"other\"").send().await;
    other.problem(412, "precondition_failed");
    assert_eq!(server.record(&id).await.original_name, "a");

    let etag = server.content(&id).send().await.only("etag").to_owned();
    for name in ["b", "c"] {
        renamed(name).header("if-match", &etag).send().await.expect(200);
        assert_eq!(server.record(&id).await.original_name, name, "an edit changes no entity tag");
    }
    let stale = server.edit(&id, &json!({})).header("if-match", "\"other\"").send().await;
    stale.problem(412, "precondition_failed");
}

#[tokio::test]
async fn edits_at_the_same_moment_lose_nothing_of_one_another() {
    let server = TestServer::start().await;
    for round in 0..20 {
        let id = server.upload("x").ok().await.file_id;
        let (name, mime) = (format!("name {round}"), format!("a/b{round}"));
        let (one, two, three, four) = tokio::join!(
            edit(&server, &id, json!({"original_name": name})),
            edit(&server, &id, json!({"mime_type": mime})),
            edit(&server, &id, json!({"metadata": {"one": round}})),
            edit(&server, &id, json!({"metadata": {"two": {"round": round}}}))
        );
        for reply in [one, two, three, four] {
            reply.expect(200);
        }

        let record = server.record(&id).await;
        assert_eq!((&record.original_name, &record.mime_type), (&name, &mime));
        assert_eq!(Value::Object(record.metadata), json!({"one": round, "two": {"round": round}}));
    }
}

#[tokio::test]
async fn a_key_that_may_not_read_edits_and_sees_no_record() {
    let server = TestServer::start().await;
    let id = server.upload("x").field("metadata", r#"{"secret":1}"#).ok().await.file_id;
    let mut keys = Vec::new();
    for scopes in
        [vec![KeyScope::Write], vec![KeyScope::Write, KeyScope::Read], vec![KeyScope::Admin]]
    {
        let new = NewKey::new("k", Scope::All, scopes);
        let (_, secret) = server.store().keys().create(new).await.expect("a key");
        keys.push(format!("Bearer {}", secret.expose()));
    }
    let edited = async |key: &str, patch: Value| {
        server.edit(&id, &patch).header("authorization", key).send().await.expect(200)
    };

    for patch in [json!({"original_name": "a.txt"}), json!({})] {
        let reply = edited(&keys[0], patch).await;
        assert!(!reply.headers.contains_key("etag"), "the tag would tell the digest");
        let shown = reply.json();
        let fields: Vec<_> = shown.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["file_id", "sync_status", "updated_at"], "{shown}");
    }
    for key in &keys[1..] {
        assert_eq!(edited(key, json!({})).await.record().original_name, "a.txt");
    }

    let builder = filestore_client::Client::builder(server.url("")).unwrap();
    let writer = builder.api_key(keys[0].trim_start_matches("Bearer ")).build().unwrap();
    let reply = writer.edit(&id, filestore_client::Edit::new().clear_metadata()).await.unwrap();
    assert_eq!((reply.value.file_id(), reply.value.record()), (&*id, None));
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
async fn metadata_is_merged_key_by_key_and_replaced_with_new_bytes() {
    let server = TestServer::start().await;
    let id = server
        .upload("x")
        .temp()
        .field("metadata", r#"{"a":1,"b":{"c":2,"d":[3]}}"#)
        .ok()
        .await
        .file_id;
    let edited = async |metadata: Value| {
        let reply = edit(&server, &id, json!({"metadata": metadata})).await.expect(200);
        reply.json()["metadata"].clone()
    };

    assert_eq!(edited(json!({"e": 4})).await, json!({"a": 1, "b": {"c": 2, "d": [3]}, "e": 4}));
    assert_eq!(
        edited(json!({"a": null, "b": {"c": null, "d": [null], "f": {"g": null}}})).await,
        json!({"b": {"d": [null], "f": {}}, "e": 4}),
        "RFC 7396 section 2"
    );
    assert_eq!(edited(json!({"b": "x", "e": {"h": 1}})).await, json!({"b": "x", "e": {"h": 1}}));

    server.change(&id).make_ready().send().await.expect(200);
    server.change(&id).file("new bytes").send().await.expect(200);
    edit(&server, &id, json!({"original_name": "n"})).await.expect(200);
    assert_eq!(edited(json!({})).await, json!({"b": "x", "e": {"h": 1}}));

    server.change(&id).file("newer").field("metadata", r#"{"c":4}"#).send().await.expect(200);
    assert_eq!(edited(json!({})).await, json!({"c": 4}));
    let found =
        server.get("/api/v1/files?organization_id=acme&metadata.c=4").send().await.expect(200);
    assert_eq!(found.json()["items"].as_array().unwrap().len(), 1);

    assert_eq!(edited(Value::Null).await, json!({}));
    let found =
        server.get("/api/v1/files?organization_id=acme&metadata.c=4").send().await.expect(200);
    assert_eq!(found.json()["items"], json!([]));
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
    use filestore_client::{Change, Edit, ErrorKind, Item, Upload};

    let server = TestServer::start().await;
    let client = server.client();
    let place = client.organization("acme").unwrap().sub_system("gallery").unwrap();
    let upload = Upload::new(Item::from_bytes("x")).original_name("a").metadata([("customer", 7)]);
    let record = place.upload(upload).await.unwrap();
    assert_eq!(record.metadata["customer"], 7);
    let id = &record.file_id;

    let change = Edit::new().original_name("b.pdf").mime_type("application/pdf");
    let reply = client.edit(id, change.metadata([("paid", true)])).await.unwrap();
    let record = reply.value.record().unwrap();
    assert_eq!((&*record.original_name, &*record.mime_type), ("b.pdf", "application/pdf"));
    assert_eq!((&record.metadata["customer"], &record.metadata["paid"]), (&json!(7), &json!(true)));
    assert_eq!(client.info(id).await.unwrap().value, *record);

    let etag = reply.etag.unwrap();
    let change = Edit::new().clear_original_name().clear_mime_type().clear_metadata();
    let reply = client.edit(id, change.if_match(&etag)).await.unwrap();
    let record = reply.value.record().unwrap();
    assert_eq!((&record.original_name, record.metadata.len()), (id, 0));
    let stale = client.edit(id, Edit::new().if_match("\"other\"")).await.unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::PreconditionFailed);

    let item = Item::from_bytes("y").original_name("c");
    let change = Change::replace(item).original_name("d").metadata([("k", Value::Null)]);
    client.change(id, change).await.unwrap();
    let record = client.info(id).await.unwrap().value;
    assert_eq!((&*record.original_name, record.version), ("d", 2), "what the change says wins");
    assert_eq!(record.metadata["k"], Value::Null);
}
