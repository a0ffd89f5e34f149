//! Names of every kind, from the form to the record, the listing and both dispositions (reference §2.1 and
//! §4.5). Presigned URLs are in `tests/cloud`, downloads and the terminal in the CLI's tests.

use filestore_workspace::TestServer;
use filestore_workspace::names::{CONTROL_NAMES, OddName, name_of_disposition, odd_names};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

#[tokio::test]
async fn a_given_name_comes_back_exactly_wherever_it_is_shown() {
    let server = TestServer::start().await;
    for OddName { what, name } in odd_names() {
        let uploaded = server.upload("some text").name(&name).ok().await;
        assert_eq!(uploaded.original_name, name, "{what}");
        let id = &uploaded.file_id;
        assert_eq!(server.record(id).await.original_name, name, "{what}");

        for (query, kind) in [("", "inline"), ("?disposition=attachment", "attachment")] {
            let reply = server.get(&format!("/api/v1/files/{id}{query}")).send().await.expect(200);
            let disposition = reply.only("content-disposition");
            assert_eq!(name_of_disposition(disposition), name, "{what}");
            // A type by the name's extension may be one that is never shown.
            let is_text = uploaded.mime_type == "text/plain";
            assert!(!is_text || disposition.starts_with(kind), "{what}: {disposition}");
        }

        let prefix = utf8_percent_encode(&name, NON_ALPHANUMERIC);
        let query = format!("/api/v1/files?organization_id=acme&name_prefix={prefix}");
        let page = server.get(&query).send().await.expect(200).json();
        assert_eq!(page["items"][0]["original_name"], name, "{what}");
    }
}

#[tokio::test]
async fn a_file_can_be_renamed_to_any_name_and_replaced_under_it() {
    let server = TestServer::start().await;
    let id = server.upload("x").ok().await.file_id;
    for OddName { what, name } in odd_names() {
        server.edit(&id, &json!({"original_name": name})).send().await.expect(200);
        server.change(&id).file(what).send().await.expect(200);
        assert_eq!(server.record(&id).await.original_name, name, "{what}");
    }
}

#[tokio::test]
async fn a_name_of_a_part_is_its_last_component_without_control_characters() {
    let server = TestServer::start().await;
    for OddName { what, name } in odd_names() {
        let record = server.upload("x").part_name(&name).ok().await;
        // A browser escapes quotes in a part's name, and nothing else (WHATWG HTML).
        let last = name.rsplit(['/', '\\']).next().unwrap();
        let expected = if last.is_empty() { &record.file_id } else { last };
        assert_eq!(record.original_name, expected, "{what}");
    }

    for name in ["a\r\nSet-Cookie: b", "a\u{85}b", "a\u{9b}31mb"] {
        let record = server.upload("x").part_name(name).ok().await;
        let shown: String = name.chars().filter(|c| !c.is_control()).collect();
        assert_eq!(record.original_name, shown, "{name:?}");
    }
    for name in ["a\u{1b}[2Jb", "a\u{7f}b", "a\0b"] {
        let reply = server.upload("x").part_name(name).send().await;
        reply.problem(400, "malformed_body");
    }
}

#[tokio::test]
async fn a_given_name_with_a_control_character_is_refused_in_every_form() {
    let server = TestServer::start().await;
    let id = server.upload("x").name("kept").ok().await.file_id;
    for name in CONTROL_NAMES {
        let upload = server.upload("x").name(name).send().await;
        let batch = server.batch().named(name, "x").send().await;
        let replace = server.change(&id).field("original_name", name).file("y").send().await;
        let edit = server.edit(&id, &json!({"original_name": name})).send().await;
        for (reply, field) in [
            (upload, "original_name"),
            (batch, "items[0].original_name"),
            (replace, "original_name"),
            (edit, "original_name"),
        ] {
            let problem = reply.problem(400, "invalid_field");
            assert_eq!(problem.field.as_deref(), Some(field), "{name:?}");
        }
    }
    assert_eq!(
        (server.listed().await.len(), &*server.record(&id).await.original_name),
        (1, "kept")
    );
}
