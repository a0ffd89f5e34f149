//! Media types (reference §2.1 and §4.5): what is refused when a type is given, and the one form in which types leave.

use filestore_workspace::{Form, Reply, TestServer, fixtures};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde_json::json;

/// Texts that begin like a type, and that browsers take for another one or for two.
const TRICKS: [&str; 8] = [
    "text/plain;,text/javascript",
    "text/plain;,text/css",
    "text/plain;,text/html",
    "video/mp4;,text/html",
    "application/pdf;,text/html",
    "text/plain, text/html",
    "text/plain;x=\"a\",text/html",
    "text/plain;x=y z",
];

fn refused(reply: &Reply, field: &str, given: &str) {
    let problem = reply.problem(400, "invalid_field");
    assert_eq!(problem.field.as_deref(), Some(field), "{given}");
}

#[tokio::test]
async fn a_given_type_outside_the_grammar_is_400_wherever_it_is_given() {
    let server = TestServer::start().await;
    let id = server.upload("words").ok().await.file_id;

    for trick in TRICKS {
        refused(&server.upload("x").mime(trick).send().await, "mime_type", trick);
        let replaced = server.change(&id).file("y").field("mime_type", trick);
        refused(&replaced.send().await, "mime_type", trick);
        let batch = server.batch().item("x").field("items[0].mime_type", trick);
        refused(&batch.send().await, "items[0].mime_type", trick);
        let wish = json!({ "organization_id": "42", "sub_system": "docs", "mime_type": trick });
        let signed = server.post("/api/v1/files/sign-upload").json(&wish).send().await;
        refused(&signed, "mime_type", trick);
        let encoded = utf8_percent_encode(trick, NON_ALPHANUMERIC);
        let listed = server.get(&format!("/api/v1/files?organization_id=42&mime_type={encoded}"));
        refused(&listed.send().await, "mime_type", trick);
    }
}

#[tokio::test]
async fn a_part_s_type_outside_the_grammar_counts_as_absent() {
    let server = TestServer::start().await;
    for trick in TRICKS.into_iter().chain(["image/*", "png"]) {
        let by_name = server.upload(fixtures::UNKNOWN).name("x.gif").part_type(trick).ok().await;
        assert_eq!(by_name.mime_type, "image/gif", "{trick}");
        let text = server.upload("words").part_type(trick).ok().await;
        assert_eq!(text.mime_type, "text/plain", "{trick}");
    }
}

#[tokio::test]
async fn a_type_leaves_in_one_form_and_the_record_keeps_what_was_given() {
    let server = TestServer::start().await;
    let png = fixtures::png(4, 4);
    for (bytes, given, sent) in [
        (&b"words"[..], "Text/Plain; format=flowed", "text/plain; charset=utf-8"),
        (
            b"words",
            "text/plain;CHARSET=\"ISO-8859-1\"; x=\"a,b\"",
            "text/plain; charset=iso-8859-1",
        ),
        (b"words", "text/plain; charset=utf-7", "text/plain; charset=utf-8"),
        (b"a,b", "text/csv; charset=utf-8; header=present", "text/csv"),
        (&png, "IMAGE/PNG; x=y", "image/png"),
        (fixtures::MP4, "video/mp4; codecs=\"a, b\"", "video/mp4"),
        (fixtures::HTML, "text/html; charset=utf-16", "text/html"),
        (b"x", "multipart/x-mixed-replace; boundary=b", "application/octet-stream"),
    ] {
        let record = server.upload(bytes).mime(given).ok().await;
        assert_eq!(record.mime_type, given);
        assert_eq!(server.record(&record.file_id).await.mime_type, given);
        for method in [Method::GET, Method::HEAD] {
            let path = format!("/api/v1/files/{}", record.file_id);
            let reply = server.call(method, &path).send().await.expect(200);
            assert_eq!(reply.only("content-type"), sent, "{given}");
        }
    }
}

/// Records of versions that took any text after the first `;`.
#[tokio::test]
async fn an_old_record_whose_type_is_none_is_bytes_without_a_type() {
    let server = TestServer::start_with_sqlite(|_| {}).await;
    let mut files = Vec::new();
    for trick in TRICKS {
        let bytes = match trick.split(['/', ';']).next() {
            Some("video") => fixtures::MP4,
            Some("application") => fixtures::PDF,
            _ => b"document.title = 'ran'",
        };
        files.push((server.upload(bytes).ok().await.file_id, trick));
    }

    let dir = server.into_dir().await;
    let database = rusqlite::Connection::open(dir.path().join("data/metadata.sqlite3")).unwrap();
    for (id, trick) in &files {
        let sql = "UPDATE files SET mime_type = ?1 WHERE file_id = ?2";
        assert_eq!(database.execute(sql, [trick, id.as_str()]).unwrap(), 1);
    }
    drop(database);

    let server = TestServer::start_on(dir, |_| {}).await;
    for (id, trick) in &files {
        assert_eq!(server.record(id).await.mime_type, *trick, "the record says what was stored");
        let etag = server.content(id).send().await.expect(200).only("etag").to_owned();
        let path = format!("/api/v1/files/{id}");
        for reply in [
            server.get(&path).send().await.expect(200),
            server.head(&path).send().await.expect(200),
            server.get(&format!("{path}?disposition=inline")).send().await.expect(200),
            server.get(&path).header("range", "bytes=0-3").send().await.expect(206),
            // So that a cache forgets what it was told by the older version.
            server.get(&path).header("if-none-match", &etag).send().await.expect(304),
        ] {
            assert_eq!(reply.only("content-type"), "application/octet-stream", "{trick}");
            assert!(reply.only("content-disposition").starts_with("attachment"), "{trick}");
            let policy = reply.only("content-security-policy");
            assert!(policy.contains("sandbox"), "{trick}: {policy}");
        }
    }
}

#[tokio::test]
async fn every_policy_forbids_forms_and_another_base() {
    let server = TestServer::start().await;
    let png = server.upload(fixtures::png(300, 300)).ok().await.file_id;
    let mut replies = vec![
        server.variant(&png, 200).send().await.expect(200),
        server.get(&format!("/api/v1/sheets?ids={png}&size=200")).send().await.expect(200),
        server.get("/api/v1/docs").send().await.expect(200),
    ];
    for bytes in [fixtures::HTML, fixtures::MP4, fixtures::PDF, b"words"] {
        let id = server.upload(bytes).ok().await.file_id;
        replies.push(server.content(&id).send().await.expect(200));
    }

    for reply in replies {
        let policy = reply.only("content-security-policy");
        let has = |wanted: &str| policy.split(';').any(|directive| directive.trim() == wanted);
        for wanted in ["default-src 'none'", "form-action 'none'", "base-uri 'none'"] {
            assert!(has(wanted), "{policy}");
        }
    }
}

#[tokio::test]
async fn a_json_body_whose_content_type_is_two_types_is_415() {
    let server = TestServer::start().await;
    let body = br#"{"ids":[]}"#;
    for trick in ["application/json;,text/plain", "application/json, text/plain", "text/json"] {
        let call = server.post("/api/v1/files/delete").body(trick, &body[..]);
        call.send().await.problem(415, "unsupported_media_type");
    }
}

/// A row of the page "Media types" of the reference.
struct Row {
    bytes: Vec<u8>,
    name: Option<String>,
    part: Option<String>,
    mime_type: String,
}

fn documented_rows() -> Vec<Row> {
    let page = include_str!("../../filestore-server/docs/reference/media-types.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [bytes, name, part, mime_type] = cells[..] else { panic!("a row has 4 cells: {line}") };
        let text = |cell: &str| (cell != "–").then(|| cell.trim_matches('`').to_owned());
        Row {
            bytes: bytes_of(bytes.strip_prefix('`').unwrap().strip_suffix('`').unwrap()),
            name: text(name),
            part: text(part),
            mime_type: text(mime_type).unwrap(),
        }
    });
    rows.collect()
}

/// Reads bytes as the page writes them: text with escapes, or the entries of an archive.
fn bytes_of(cell: &str) -> Vec<u8> {
    if let Some(entries) = cell.strip_prefix("zip: ") {
        return fixtures::zip(entries.split(", "));
    }

    let (mut bytes, mut rest) = (Vec::new(), cell);
    while let Some(c) = rest.chars().next() {
        let length = match rest.get(..2) {
            Some("\\x") => {
                bytes.push(u8::from_str_radix(&rest[2..4], 16).unwrap());
                4
            }
            Some(escape @ ("\\n" | "\\r" | "\\0" | "\\\\")) => {
                bytes.push(match escape {
                    "\\n" => b'\n',
                    "\\r" => b'\r',
                    "\\0" => 0,
                    _ => b'\\',
                });
                2
            }
            _ => {
                bytes.extend(c.to_string().bytes());
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    bytes
}

impl Row {
    /// Writes the headers of the part of a form.
    fn headers(&self, field: &str) -> String {
        let name = self.name.iter().map(|name| format!("; filename=\"{name}\""));
        let part = self.part.iter().map(|part| format!("\r\nContent-Type: {part}"));
        let all: String = name.chain(part).collect();
        format!("Content-Disposition: form-data; name=\"{field}\"{all}")
    }

    fn shown(&self) -> String {
        let bytes = self.bytes.escape_ascii();
        format!("{bytes} called {:?}, sent as {:?}", self.name, self.part)
    }
}

fn form() -> Form {
    Form::new().text("organization_id", "acme").text("sub_system", "docs")
}

#[tokio::test]
async fn every_row_of_the_reference_is_the_type_of_an_upload() {
    let server = TestServer::start().await;
    let rows = documented_rows();
    assert!(rows.len() >= 60, "the page has only {} rows", rows.len());

    for row in &rows {
        let form = form().part(&row.headers("file"), &row.bytes);
        let reply = server.post("/api/v1/files/upload").form(form).send().await.expect(201);
        assert_eq!(reply.json()["mime_type"], row.mime_type, "{}", row.shown());

        let id = reply.json()["file_id"].as_str().unwrap().to_owned();
        let content = server.content(&id).send().await.expect(200);
        let runs = ["html", "xml", "php", "svg"].iter().any(|kind| row.mime_type.contains(kind));
        let is_inline = content.only("content-disposition").starts_with("inline");
        assert!(!(runs && is_inline), "{} is shown", row.shown());
    }
}

#[tokio::test]
async fn every_row_of_the_reference_is_the_type_of_a_batch_item_and_of_a_replacement() {
    let server = TestServer::start().await;
    for rows in documented_rows().chunks(50) {
        let mut batch = form();
        for (index, row) in rows.iter().enumerate() {
            batch = batch.part(&row.headers(&format!("items[{index}].file")), &row.bytes);
        }
        let reply = server.post("/api/v1/files/batch").form(batch).send().await.expect(201);
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(reply.json()[index]["mime_type"], row.mime_type, "{}", row.shown());
        }

        for row in rows.iter().filter(|row| row.name.is_some()) {
            let id = server.upload("old").ok().await.file_id;
            let change = Form::new().text("file_id", &id).part(&row.headers("file"), &row.bytes);
            let call = server.call(Method::PUT, "/api/v1/files/upload").form(change);
            call.send().await.expect(200);
            assert_eq!(server.record(&id).await.mime_type, row.mime_type, "{}", row.shown());
        }
    }
}

#[tokio::test]
async fn a_given_type_wins_over_bytes_part_and_extension() {
    let server = TestServer::start().await;
    for row in documented_rows() {
        let form = form().text("mime_type", "application/x-mine");
        let form = form.part(&row.headers("file"), &row.bytes);
        let reply = server.post("/api/v1/files/upload").form(form).send().await.expect(201);
        assert_eq!(reply.json()["mime_type"], "application/x-mine", "{}", row.shown());
    }
}

#[tokio::test]
async fn a_type_that_is_cleared_is_chosen_again_by_bytes_and_name() {
    let server = TestServer::start().await;
    let archive = fixtures::zip(["content.xml"]);
    let id = server.upload(archive).name("a.odg").mime("text/plain").ok().await.file_id;
    server.edit(&id, &json!({ "mime_type": null })).send().await.expect(200);
    assert_eq!(server.record(&id).await.mime_type, "application/vnd.oasis.opendocument.graphics");
}
