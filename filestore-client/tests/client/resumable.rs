//! Uploads that resume, against a server that breaks connections.

use std::sync::{Arc, Mutex};

use filestore_client::{Change, ErrorKind, Item, Progress, Resumable, Upload};

use crate::script::{Answer, ID, Request, Script, content, record, sha256_hex};

const UPLOAD: &str = "/api/v1/uploads/01U.secret";

fn created(offset: u64) -> Answer {
    let offset = format!("upload-offset: {offset}");
    Answer::new("201 Created", &[&format!("location: {UPLOAD}"), &offset], "")
}

fn at(offset: u64) -> Answer {
    Answer::new("200 OK", &[&format!("upload-offset: {offset}")], "")
}

/// The last reply, with the record of a file with these bytes.
fn stored(bytes: &[u8]) -> Answer {
    let headers = [
        "content-type: application/json",
        &format!("file-id: {ID}"),
        &format!("upload-offset: {}", bytes.len()),
    ];
    Answer::new("200 OK", &headers, record(bytes))
}

fn upload(bytes: &[u8]) -> Upload {
    Upload::from_bytes(bytes.to_vec()).original_name("a.bin").resumable(Resumable::Always)
}

fn lines(requests: &[Request]) -> Vec<&str> {
    requests.iter().map(|request| request.line.trim_end_matches(" HTTP/1.1")).collect()
}

#[tokio::test]
async fn an_upload_continues_at_the_offset_that_the_server_names() {
    let bytes = content(100);
    let answers = vec![created(0), Answer::nothing(), at(40), stored(&bytes)];
    let server = Script::with(answers).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&told);
    let report = move |progress: Progress| seen.lock().unwrap().push(progress.done_bytes);
    let upload = upload(&bytes).temp().sha256(sha256_hex(&bytes)).on_progress(report);
    let stored = server.place().upload(upload).await.unwrap();
    assert_eq!(stored.file_id, ID);

    let requests = server.requests();
    let create = "POST /api/v1/uploads?organization_id=42&sub_system=s";
    let (patch, head) = (format!("PATCH {UPLOAD}"), format!("HEAD {UPLOAD}"));
    assert_eq!(lines(&requests), [create, &patch, &head, &patch]);
    assert_eq!(requests[0].header("upload-length"), Some("100"));
    assert_eq!(requests[0].header("idempotency-key").unwrap().len(), 32);
    assert!(requests[0].header("upload-metadata").unwrap().contains("upload_temp dHJ1ZQ=="));
    for request in &requests {
        assert_eq!(request.header("tus-resumable"), Some("1.0.0"));
        assert_eq!(request.header("authorization"), Some("Bearer fsk_test"));
    }
    assert_eq!(requests[1].header("upload-offset"), Some("0"));
    assert_eq!(requests[3].header("upload-offset"), Some("40"));
    assert_eq!((&requests[1].body, &requests[3].body), (&bytes, &bytes[40..].to_vec()));
    assert_eq!(*told.lock().unwrap(), [0, 40, 100], "acknowledged bytes");
}

#[tokio::test]
async fn an_earlier_process_has_sent_the_first_bytes() {
    let bytes = content(100);
    let server = Script::with(vec![created(99), stored(&bytes)]).await;
    let upload = upload(&bytes).idempotency_key("mine");
    server.place().upload(upload).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].header("idempotency-key"), Some("mine"));
    assert_eq!((requests[1].header("upload-offset"), requests[1].body.len()), (Some("99"), 1));
}

#[tokio::test]
async fn a_lost_last_reply_is_asked_for_again() {
    let bytes = content(10);
    let finished = Answer::new("200 OK", &["upload-offset: 10", &format!("file-id: {ID}")], "");
    let answers = vec![created(0), Answer::nothing(), finished, stored(&bytes)];
    let server = Script::with(answers).await;
    server.place().upload(upload(&bytes)).await.unwrap();
    let requests = server.requests();
    assert_eq!((requests[3].header("upload-offset"), &*requests[3].body), (Some("10"), &b""[..]));
}

#[tokio::test]
async fn a_reader_of_unknown_length_names_the_length_at_its_end() {
    let bytes = content(10);
    let server = Script::with(vec![created(0), Answer::nothing(), at(4), stored(&bytes)]).await;
    let item = Item::from_reader(std::io::Cursor::new(bytes.clone()), None);
    let upload = Upload::new(item.original_name("a")).resumable(Resumable::Always);
    server.place().upload(upload).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].header("upload-defer-length"), Some("1"));
    assert_eq!(requests[3].header("upload-length"), Some("10"));
    assert_eq!(requests[3].body, &bytes[4..], "out of memory");
}

#[tokio::test]
async fn a_server_without_resumable_uploads_or_with_others_beside_it_gets_a_form() {
    let bytes = content(10);
    let form = Answer::json("201 Created", &record(&bytes));
    let elsewhere = || Answer::problem(503, "upload_elsewhere", &["retry-after: 1"]);
    let deleted = Answer::new("204 No Content", &[], "");
    for (answers, form_at) in [
        (vec![Answer::problem(404, "not_found", &[]), form.clone()], 1),
        (vec![Answer::problem(405, "method_not_allowed", &[]), form.clone()], 1),
        (vec![created(0), elsewhere(), deleted, form.clone()], 3),
    ] {
        let server = Script::with(answers).await;
        server.place().upload(upload(&bytes)).await.unwrap();
        let requests = server.requests();
        assert_eq!(lines(&requests)[form_at], "POST /api/v1/files/upload");
        assert_eq!(requests.len(), form_at + 1);
        let key = requests[0].header("idempotency-key");
        assert_eq!(requests[form_at].header("idempotency-key"), key);
    }
}

#[tokio::test]
async fn an_upload_that_the_server_lost_begins_again_once() {
    let bytes = content(10);
    let gone = || Answer::problem(410, "upload_gone", &[]);
    let server = Script::with(vec![created(0), gone(), created(0), stored(&bytes)]).await;
    server.place().upload(upload(&bytes)).await.unwrap();
    assert_eq!(server.requests()[3].body, bytes);

    let server = Script::with(vec![created(0), gone(), created(0), gone()]).await;
    let error = server.place().upload(upload(&bytes)).await.unwrap_err();
    assert_eq!((error.status(), server.requests().len()), (Some(410), 4));
}

#[tokio::test]
async fn final_refusals_are_not_repeated() {
    let bytes = content(10);
    for (status, code, kind) in [
        (422, "digest_mismatch", ErrorKind::Digest),
        (400, "upload_superseded", ErrorKind::Invalid),
        (413, "quota_exceeded", ErrorKind::TooLarge),
    ] {
        let server = Script::with(vec![created(0), Answer::problem(status, code, &[])]).await;
        let error = server.place().upload(upload(&bytes)).await.unwrap_err();
        assert_eq!((error.kind(), server.requests().len()), (kind, 2), "{code}");
    }
}

#[tokio::test]
async fn a_wrong_offset_is_asked_for_and_not_for_ever() {
    let bytes = content(10);
    let wrong = || Answer::problem(409, "upload_offset_mismatch", &["upload-offset: 3"]);
    let server = Script::with(vec![created(0), wrong(), at(3), stored(&bytes)]).await;
    server.place().upload(upload(&bytes)).await.unwrap();
    assert_eq!(server.requests()[3].header("upload-offset"), Some("3"));

    let server = Script::start(move |n, request| match n {
        0 => created(0),
        _ if request.line.starts_with("HEAD") => at(0),
        _ => wrong(),
    });
    let server = server.await;
    let error = server.place().upload(upload(&bytes)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn other_stored_bytes_and_impossible_replies_are_errors() {
    let bytes = content(10);
    let server = Script::with(vec![created(0), stored(b"other bytes")]).await;
    let error = server.place().upload(upload(&bytes)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "an offset behind the end");

    let same_length = content(11)[1..].to_vec();
    let server = Script::with(vec![created(0), stored(&same_length)]).await;
    let error = server.place().upload(upload(&bytes)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Digest);

    for location in ["", "https://other.example/", "/api/v1/uploads/.."] {
        let answer = Answer::new("201 Created", &[&format!("location: {location}")], "");
        let server = Script::with(vec![answer]).await;
        let error = server.place().upload(upload(&bytes)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{location}");
    }
}

#[tokio::test]
async fn an_upload_that_has_begun_outlives_a_restart_of_the_server() {
    let bytes = content(10);
    let server = Script::start({
        let bytes = bytes.clone();
        move |n, _| match n {
            0 => created(0),
            // More failures than attempts, and both kinds: of the server, and of a proxy without it.
            1..=9 => Answer::nothing(),
            10..=19 => Answer::new("502 Bad Gateway", &[], ""),
            20 => at(4),
            _ => stored(&bytes),
        }
    });
    let server = server.await;
    server.place().upload(upload(&bytes)).await.unwrap();
    assert_eq!(server.requests()[21].header("upload-offset"), Some("4"));
}

#[tokio::test]
async fn a_creation_without_an_offset_begins_at_the_first_byte() {
    let bytes = content(10);
    let created = Answer::new("201 Created", &[&format!("location: {UPLOAD}")], "");
    let server = Script::with(vec![created, stored(&bytes)]).await;
    server.place().upload(upload(&bytes)).await.unwrap();
    assert_eq!(server.requests()[1].header("upload-offset"), Some("0"));
}

#[tokio::test]
async fn a_server_that_makes_no_file_or_keeps_no_byte_is_not_asked_for_ever() {
    let bytes = content(10);
    let accepted =
        |offset: u64| Answer::new("204 No Content", &[&format!("upload-offset: {offset}")], "");
    for (answers, requests) in
        [(vec![created(0), accepted(10), accepted(10)], 3), (vec![created(0), accepted(0)], 2)]
    {
        let server = Script::with(answers).await;
        let error = server.place().upload(upload(&bytes)).await.unwrap_err();
        assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Protocol, requests));
    }
}

#[tokio::test]
async fn a_replacement_resumes_on_its_condition() {
    let bytes = content(10);
    let reply = format!(
        r#"{{"file_id":"{ID}","sync_status":"PENDING","updated_at":"2026-11-21T08:15:30.123Z"}}"#
    );
    let etag = format!("etag: \"{}\"", sha256_hex(&bytes));
    let file_id = format!("file-id: {ID}");
    let headers = ["content-type: application/json", "upload-offset: 10", &file_id, &etag];
    let done = Answer::new("200 OK", &headers, reply);
    let server = Script::with(vec![created(0), Answer::nothing(), at(0), done]).await;
    let change = Change::ready().with_file(Item::from_bytes(bytes.clone())).if_match("\"seen\"");
    let change = change.resumable(Resumable::Always);
    server.client().change(ID, change).await.unwrap();

    let requests = server.requests();
    assert_eq!(lines(&requests)[0], "POST /api/v1/uploads");
    assert_eq!(requests[0].header("if-match"), Some("\"seen\""));
    let fields = requests[0].header("upload-metadata").unwrap();
    assert!(fields.contains("file_id ") && fields.contains("make_as_ready dHJ1ZQ=="), "{fields}");
}
