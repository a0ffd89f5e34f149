//! Resumable uploads over the drafts of the IETF (reference: resumable uploads).

use filestore_workspace::{Call, Reply, TestServer, sha256_hex};
use reqwest::Method;

const CREATE: &str = "/api/v1/uploads?organization_id=acme&sub_system=docs";

fn draft(call: Call, version: &str) -> Call {
    call.header("upload-draft-interop-version", version)
}

async fn created(server: &TestServer, version: &str) -> Reply {
    let call = draft(server.post(CREATE), version);
    call.header("upload-complete", "?0").body("text/plain", "hello ").send().await
}

fn append(server: &TestServer, path: &str, version: &str, offset: &str, complete: &str) -> Call {
    draft(server.call(Method::PATCH, path), version)
        .header("upload-offset", offset)
        .header("upload-complete", complete)
}

#[tokio::test]
async fn an_upload_by_versions_6_and_8() {
    let server = TestServer::start().await;
    for (version, unfinished) in [("6", 201), ("8", 204)] {
        let reply = created(&server, version).await.expect(201);
        assert_eq!((reply.only("upload-complete"), reply.only("upload-offset")), ("?0", "6"));
        assert!(reply.only("upload-limit").contains("max-size="));
        let path = reply.only("location").to_owned();

        let more = append(&server, &path, version, "6", "?0");
        let more = more.body("application/partial-upload", "wor").send().await.expect(unfinished);
        assert_eq!((more.only("upload-complete"), more.only("upload-offset")), ("?0", "9"));
        let head = draft(server.head(&path), version).send().await.expect(204);
        assert_eq!((head.only("upload-complete"), head.only("upload-offset")), ("?0", "9"));
        assert_eq!(head.only("cache-control"), "no-store");

        let last = append(&server, &path, version, "9", "?1");
        let last = last.body("application/partial-upload", "ld").send().await.expect(201);
        assert_eq!(last.only("upload-complete"), "?1");
        let record = last.record();
        assert_eq!(record.sha256, sha256_hex(b"hello world"));
        assert!(last.only("location").ends_with(&format!("/files/{}", record.file_id)));

        let head = draft(server.head(&path), version).send().await.expect(204);
        assert_eq!((head.only("upload-complete"), head.only("file-id")), ("?1", &*record.file_id));
        let again = append(&server, &path, version, "11", "?1");
        let again = again.body("application/partial-upload", "").send().await.expect(201);
        assert_eq!(again.record().file_id, record.file_id);
    }
}

#[tokio::test]
async fn an_upload_by_version_3_says_incomplete() {
    let server = TestServer::start().await;
    let reply = draft(server.post(CREATE), "3").header("upload-incomplete", "?1");
    let reply = reply.body("text/plain", "hel").send().await.expect(201);
    assert_eq!((reply.only("upload-incomplete"), reply.only("upload-offset")), ("?1", "3"));
    let path = reply.only("location").to_owned();
    let last = draft(server.call(Method::PATCH, &path), "3").header("upload-offset", "3");
    let last = last.body("text/plain", "lo").send().await.expect(201);
    assert_eq!(last.only("upload-incomplete"), "?0");
    assert_eq!(last.record().file_size, 5);
}

#[tokio::test]
async fn offset_equals_length_without_complete_is_open() {
    let server = TestServer::start().await;
    let reply = draft(server.post(CREATE), "8")
        .header("upload-complete", "?0")
        .header("upload-length", "5")
        .body("text/plain", "hello")
        .send()
        .await
        .expect(201);
    let path = reply.only("location").to_owned();
    let head = draft(server.head(&path), "8").send().await.expect(204);
    let shown =
        (head.only("upload-complete"), head.only("upload-offset"), head.only("upload-length"));
    assert_eq!(shown, ("?0", "5", "5"));
    let last = append(&server, &path, "8", "5", "?1");
    let last = last.body("application/partial-upload", "").send().await.expect(201);
    assert_eq!(last.record().file_size, 5);
}

#[tokio::test]
async fn a_wrong_offset_is_409_with_the_right_one() {
    let server = TestServer::start().await;
    for version in ["6", "8"] {
        let path = created(&server, version).await.expect(201).only("location").to_owned();
        let wrong = append(&server, &path, version, "3", "?1");
        let wrong = wrong.body("application/partial-upload", "x").send().await;
        let problem = wrong.problem(409, "upload_offset_mismatch");
        assert_eq!(wrong.only("upload-offset"), "6");
        assert_eq!(problem.kind, registered("mismatching-upload-offset"));
        assert_eq!(problem.title, "Mismatching Upload Offset");
        let members = wrong.json();
        assert_eq!(
            (&members["expected-offset"], &members["provided-offset"]),
            (&6.into(), &3.into())
        );
    }
}

/// Returns the URI of a problem type that the draft registers.
fn registered(name: &str) -> String {
    format!("https://iana.org/assignments/http-problem-types#{name}")
}

#[tokio::test]
async fn registered_problem_types_are_for_those_who_speak_the_draft() {
    let server = TestServer::start().await;
    let path = created(&server, "8").await.expect(201).only("location").to_owned();
    let append = |offset: &str, bytes: &'static str, length: &str| {
        append(&server, &path, "8", offset, "?1")
            .header("upload-length", length)
            .body("application/partial-upload", bytes)
    };

    let inconsistent = append("6", "world", "12").send().await;
    let problem = inconsistent.problem(400, "upload_length_inconsistent");
    assert_eq!(problem.kind, registered("inconsistent-upload-length"));
    assert_eq!(problem.title, "Inconsistent Upload Length Values");

    append("6", "world", "11").send().await.expect(201);
    let completed = append("11", "!", "12").send().await.problem(409, "upload_offset_mismatch");
    assert_eq!((completed.kind, completed.expected_offset), (registered("completed-upload"), None));
    assert_eq!(completed.title, "Upload Is Completed");

    let tus = server.call(Method::PATCH, &path).header("tus-resumable", "1.0.0");
    let tus = tus.header("upload-offset", "3").body("application/offset+octet-stream", "x");
    let problem = tus.send().await.problem(409, "upload_offset_mismatch");
    assert_eq!(problem.kind, "urn:filestore:problem:upload_offset_mismatch");
    assert_eq!((problem.title.as_str(), problem.expected_offset), ("Conflict", None));
}

#[tokio::test]
async fn an_append_is_strict_by_version() {
    let server = TestServer::start().await;
    let path = created(&server, "8").await.expect(201).only("location").to_owned();
    let no_type = append(&server, &path, "8", "6", "?0").body("text/plain", "x").send().await;
    no_type.problem(415, "unsupported_media_type");
    let bare = draft(server.call(Method::PATCH, &path), "8").header("upload-offset", "6");
    let bare = bare.body("application/partial-upload", "x").send().await;
    assert_eq!(bare.problem(400, "invalid_field").field.as_deref(), Some("upload-complete"));
    let head =
        |version: &str| draft(server.head(&path), version).header("upload-offset", "1").send();
    assert_eq!(head("6").await.status, 400);
    assert_eq!(head("8").await.status, 204);
}

#[tokio::test]
async fn a_whole_file_in_one_creation_answers_as_an_upload() {
    let server = TestServer::start().await;
    let whole = draft(server.post(CREATE), "8").header("upload-complete", "?1");
    let whole = whole.body("text/plain", "hello").send().await.expect(201);
    assert_eq!(whole.only("upload-complete"), "?1");
    assert_eq!(whole.record().sha256, sha256_hex(b"hello"));
    let listed = server.get("/api/v1/uploads?organization_id=acme").send().await.json();
    assert_eq!(listed["items"], serde_json::json!([]), "nobody could learn its address");
}

#[tokio::test]
async fn an_ended_upload_is_410_and_404_before_version_7() {
    let server = TestServer::start().await;
    for (version, status) in [("6", 404), ("8", 410)] {
        let create = format!("{CREATE}&sha256={}", sha256_hex(b"other"));
        let reply = draft(server.post(&create), version).header("upload-complete", "?0");
        let reply = reply.body("text/plain", "he").send().await.expect(201);
        let path = reply.only("location").to_owned();
        let last = append(&server, &path, version, "2", "?1");
        let last = last.body("application/partial-upload", "llo").send().await;
        last.problem(422, "digest_mismatch");
        assert_eq!(draft(server.head(&path), version).send().await.status, status);
    }
}
