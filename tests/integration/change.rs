//! PUT /api/v1/files/upload (reference §4.3).

use filestore_workspace::{Form, TestServer, fixtures};
use insta::assert_json_snapshot;

#[tokio::test]
async fn a_change_answers_200_with_exactly_three_fields_and_an_etag() {
    let server = TestServer::start().await;
    let record = server.upload("one").ok().await;
    let reply = server.change(&record.file_id).file("two").send().await.expect(200);
    assert_json_snapshot!(reply.json(), { ".file_id" => "[file id]", ".updated_at" => "[instant]" }, @r#"
    {
      "file_id": "[file id]",
      "sync_status": "PENDING",
      "updated_at": "[instant]"
    }
    "#);
    assert_eq!(reply.file_id(), record.file_id);
    assert_eq!(reply.json()["updated_at"], server.record(&record.file_id).await.updated_at);

    let content = server.content(&record.file_id).send().await.expect(200);
    assert_eq!((content.only("etag"), &content.body[..]), (reply.only("etag"), &b"two"[..]));
}

#[tokio::test]
async fn the_file_id_is_required_and_checked() {
    let server = TestServer::start().await;
    let put = async |form: Form| server.put("/api/v1/files/upload").form(form).send().await;
    let missing =
        put(Form::new().text("make_as_ready", "true")).await.problem(400, "missing_field");
    assert_eq!(missing.field.as_deref(), Some("file_id"));

    let bad = put(Form::new().text("file_id", "nope").text("make_as_ready", "true")).await;
    assert_eq!(bad.problem(400, "invalid_field").field.as_deref(), Some("file_id"));

    let late = server.upload("x").temp().ok().await;
    let file_first =
        Form::new().bytes("file", b"new").text("make_as_ready", "1").text("file_id", &late.file_id);
    put(file_first).await.expect(200);
    assert_eq!(server.content(&late.file_id).send().await.body, "new");
}

#[tokio::test]
async fn contradictory_or_empty_changes_are_400() {
    let server = TestServer::start().await;
    let id = server.upload("x").temp().ok().await.file_id;
    let both = server.change(&id).make_thumbnail().make_ready();
    let nothing = server.change(&id);
    let falsehood = server.change(&id).field("make_as_ready", "false");
    let thumbnail_with_file = server.change(&id).make_thumbnail().file("new");
    let name_with_flag = server.change(&id).make_ready().field("original_name", "a.txt");

    let type_with_flag = server.change(&id).make_ready().field("mime_type", "a/b");
    for change in [both, nothing, falsehood, thumbnail_with_file, name_with_flag, type_with_flag] {
        let said = format!("{change:?}");
        let reply = change.send().await;
        assert_eq!(reply.status, 400, "{said}");
        reply.any_problem(400);
    }

    let record = server.record(&id).await;
    assert_eq!((record.status.as_str(), record.version), ("TEMP", 1));
}

#[tokio::test]
async fn unknown_and_repeated_fields_are_400_and_named() {
    let server = TestServer::start().await;
    let id = server.upload("x").temp().ok().await.file_id;
    let typo =
        server.change(&id).field("make_ready", "true").send().await.problem(400, "unknown_field");
    assert_eq!(typo.field.as_deref(), Some("make_ready"));

    let twice =
        server.change(&id).make_ready().make_ready().send().await.problem(400, "repeated_field");
    assert_eq!(twice.field.as_deref(), Some("make_as_ready"));

    let bad =
        server.change(&id).field("make_as_ready", "yes").send().await.problem(400, "invalid_field");
    assert_eq!(bad.field.as_deref(), Some("make_as_ready"));
}

#[tokio::test]
async fn a_false_flag_beside_a_file_is_a_plain_replace() {
    let server = TestServer::start().await;
    let id = server.upload("x").temp().ok().await.file_id;
    server.change(&id).field("make_as_ready", "false").file("new").send().await.expect(200);
    assert_eq!(server.record(&id).await.status, "TEMP");
}

#[tokio::test]
async fn if_match_lets_only_the_content_it_names_be_changed() {
    let server = TestServer::start().await;
    let record = server.upload("one").ok().await;
    let id = &record.file_id;

    let first = server.content(id).send().await.only("etag").to_owned();
    let second = server
        .change(id)
        .if_match(&first)
        .file("two")
        .send()
        .await
        .expect(200)
        .only("etag")
        .to_owned();
    assert_ne!(first, second);

    server
        .change(id)
        .if_match(&first)
        .file("three")
        .send()
        .await
        .problem(412, "precondition_failed");
    server
        .change(id)
        .if_match("\"other\"")
        .make_ready()
        .send()
        .await
        .problem(412, "precondition_failed");
    assert_eq!(server.content(id).send().await.body, "two");

    let list = format!("\"other\", {second}");
    server.change(id).if_match(&list).file("four").send().await.expect(200);
    server.change(id).if_match("*").file("five").send().await.expect(200);

    let weak = format!("W/{}", server.content(id).send().await.only("etag"));
    server.change(id).if_match(&weak).file("six").send().await.problem(412, "precondition_failed");
    assert_eq!(server.content(id).send().await.body, "five");
}

#[tokio::test]
async fn a_replaced_name_is_given_else_the_part_s_else_the_old_one() {
    let server = TestServer::start().await;
    let record = server.upload("x").name("old.txt").ok().await;

    let id = &record.file_id;
    server.change(id).file("nameless").send().await.expect(200);
    assert_eq!(server.record(id).await.original_name, "old.txt");

    server.change(id).named_file("C:\\part.csv", "1,2").send().await.expect(200);
    assert_eq!(server.record(id).await.original_name, "part.csv");

    server
        .change(id)
        .field("original_name", "given.md")
        .named_file("p.csv", "x")
        .send()
        .await
        .expect(200);
    let renamed = server.record(id).await;
    assert_eq!((&*renamed.original_name, &*renamed.ext), ("given.md", "md"));
}

#[tokio::test]
async fn a_replace_chooses_type_size_and_dimensions_anew() {
    let server = TestServer::start().await;
    let record = server.upload(fixtures::png(8, 4)).name("image").ok().await;

    let id = &record.file_id;
    server.change(id).file("plain words").send().await.expect(200);
    let text = server.record(id).await;
    assert_eq!((&*text.mime_type, text.width, text.file_size), ("text/plain", None, 11));

    server
        .change(id)
        .field("mime_type", "image/x-mine")
        .file(fixtures::gif(6, 3))
        .send()
        .await
        .expect(200);
    let gif = server.record(id).await;
    assert_eq!((&*gif.mime_type, gif.width, gif.height), ("image/x-mine", Some(6), Some(3)));
    assert_eq!(gif.created_at, record.created_at);
    assert!(gif.updated_at >= record.updated_at);
}

#[tokio::test]
async fn bad_names_and_types_leave_the_file_as_it_was() {
    let server = TestServer::start().await;
    let id = server.upload("one").ok().await.file_id;
    for (field, bad) in [("original_name", "a\nb"), ("mime_type", "png")] {
        let problem = server
            .change(&id)
            .field(field, bad)
            .file("two")
            .send()
            .await
            .problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some(field));
    }
    assert_eq!(server.content(&id).send().await.body, "one");
    assert_eq!(server.record(&id).await.version, 1);
}

#[tokio::test]
async fn replacing_with_the_same_bytes_is_a_new_version_all_the_same() {
    let server = TestServer::start().await;
    let record = server.upload("same").ok().await;
    server.change(&record.file_id).file("same").send().await.expect(200);
    let after = server.record(&record.file_id).await;
    assert_eq!((after.version, &after.sha256), (2, &record.sha256));
    assert_ne!(after.file_path, record.file_path);
}

#[tokio::test]
async fn a_cut_off_replace_leaves_the_old_bytes() {
    let server = TestServer::start().await;
    let id = server.upload("old").ok().await.file_id;
    let form = Form::new().text("file_id", &id).bytes("file", b"new");
    let content_type = form.content_type();
    let reply = server.put("/api/v1/files/upload").body(&content_type, form.cut_off()).send().await;
    reply.problem(400, "malformed_body");
    assert_eq!(server.content(&id).send().await.expect(200).body, "old");
    assert_eq!(server.record(&id).await.version, 1);
}
