//! Reads of files that a provider holds.

use std::time::Duration;

use filestore_core::api::{FileRecord, SignRequest};
use filestore_workspace::fixtures::{jpeg, noise};
use filestore_workspace::names::{OddName, name_of_disposition, odd_names};
use filestore_workspace::{Remote, TestServer};
use reqwest::Method;
use serde_json::json;

use super::{fetch, read, serve, serve_with};

async fn stored(server: &TestServer, remote: &Remote, bytes: &[u8], name: &str) -> FileRecord {
    server.bind(7, remote.code(), false).await;
    let record = server.upload(bytes).org("7").name(name).ok().await;
    assert_eq!(record.storage_location, "CLOUD");
    record
}

pub(crate) async fn a_cloud_file_is_read_by_redirect_or_stream(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    let bytes = jpeg(40, 30);
    let record = stored(&server, remote, &bytes, "a.jpg").await;
    let reply = server.content(&record.file_id).send().await.expect(302);
    assert_eq!(reply.only("cache-control"), "private, max-age=60");
    assert_eq!(reply.only("referrer-policy"), "no-referrer");
    assert!(reply.header("etag").is_none() && reply.body.is_empty());

    let url = reply.only("location");
    let found = fetch(Method::GET, url).await.expect(200);
    assert_eq!(found.body, bytes);
    assert_eq!(found.only("content-type"), "image/jpeg");
    assert!(found.only("content-disposition").starts_with("inline"), "{:?}", found.headers);

    let path = format!("/api/v1/files/{}?redirect=false", record.file_id);
    let sent = server.get(&path).send().await.expect(200);
    assert_eq!((&sent.body[..], sent.only("content-type")), (&bytes[..], "image/jpeg"));
    let part = server.get(&path).header("range", "bytes=3-9").send().await.expect(206);
    assert_eq!(&part.body[..], &bytes[3..10]);
    server.head(&path).header("if-none-match", sent.only("etag")).send().await.expect(304);
    let request = SignRequest::content().without_redirect();
    let signed = server.client().sign(&record.file_id, &request).await.unwrap();
    assert_eq!(fetch(Method::GET, &signed.url).await.expect(200).body, bytes);

    let part =
        filestore_workspace::Call::bare(Method::GET, url).header("range", "bytes=3-9").send().await;
    assert_eq!((part.status, &part.body[..]), (206, &bytes[3..10]));

    let head = server.head(&format!("/api/v1/files/{}", record.file_id)).send().await.expect(302);
    let found = fetch(Method::HEAD, head.only("location")).await.expect(200);
    assert_eq!(found.only("content-length"), bytes.len().to_string());

    // The URL grants nothing but reading this object.
    for method in [Method::PUT, Method::DELETE, Method::POST] {
        let refused = fetch(method.clone(), url).await;
        assert!((400..500).contains(&refused.status), "{method}: {}", refused.status);
    }

    let other = stored(&server, remote, b"another", "b.txt").await;
    let elsewhere = url.replace(&record.file_path, &other.file_path);
    assert_ne!(elsewhere, url);
    assert_eq!(fetch(Method::GET, &elsewhere).await.status, 403);
    assert_eq!(read(&server, &record.file_id).await, bytes);
}

pub(crate) async fn a_redirect_is_cached_for_less_than_its_url_lives(remote: &Remote, _: &Remote) {
    let server =
        serve_with(&[remote], |config| config.store.presign_ttl = Duration::from_secs(20)).await;
    let record = stored(&server, remote, b"bytes", "a.txt").await;
    let reply = server.content(&record.file_id).send().await.expect(302);
    assert_eq!(reply.only("cache-control"), "private, max-age=10");
    assert_eq!(fetch(Method::GET, reply.only("location")).await.expect(200).body, "bytes");
}

pub(crate) async fn any_name_and_type_survive_the_redirect(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    for (bytes, name, disposition, expected) in [
        (&b"plain text"[..], "grüße 🎉 \"x\" 100%.txt", "", "inline"),
        (b"plain text", "grüße 🎉.txt", "?disposition=attachment", "attachment"),
        (b"<!DOCTYPE html><html></html>", "page.html", "?disposition=inline", "attachment"),
        (b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "x.svg", "", "attachment"),
    ] {
        let record = stored(&server, remote, bytes, name).await;
        let path = format!("/api/v1/files/{}{disposition}", record.file_id);
        let reply = server.get(&path).send().await.expect(302);
        let found = fetch(Method::GET, reply.only("location")).await.expect(200);
        assert_eq!(found.body, bytes);
        let header = found.only("content-disposition");
        assert!(header.starts_with(expected), "{name}: {header}");
        let encoded = header.split("filename*=UTF-8''").nth(1).unwrap();
        let decoded = percent_encoding::percent_decode_str(encoded).decode_utf8().unwrap();
        assert_eq!(decoded, name);
        let mime = found.only("content-type");
        assert!(mime.starts_with(&record.mime_type), "{mime}");
    }
}

pub(crate) async fn a_presigned_url_carries_any_name(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    for OddName { what, name } in odd_names() {
        let record = stored(&server, remote, b"plain text", &name).await;
        for query in ["", "?disposition=attachment"] {
            let path = format!("/api/v1/files/{}{query}", record.file_id);
            let reply = server.get(&path).send().await.expect(302);
            let location = reply.only("location");
            assert!(location.bytes().all(|b| b.is_ascii_graphic()), "{what}: {location}");
            let found = fetch(Method::GET, location).await.expect(200);
            assert_eq!(name_of_disposition(found.only("content-disposition")), name, "{what}");
        }
    }
}

pub(crate) async fn a_type_with_blanks_in_a_row_is_stored(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    server.bind(7, remote.code(), false).await;
    let upload = server.upload("x").org("7").name("a  b.txt").mime("text/plain;  charset=utf-8");
    let record = upload.ok().await;
    assert_eq!(record.mime_type, "text/plain;  charset=utf-8");
    assert_eq!(read(&server, &record.file_id).await, b"x");
}

/// The bucket sends no `nosniff` and no policy. Its object, and the URLs of old records, say one type only.
pub(crate) async fn a_type_leaves_for_and_from_a_provider_in_one_form(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    server.bind(7, remote.code(), false).await;
    let sent = async |server: &TestServer, id: &str, methods: &[Method], expected: (&str, &str)| {
        for method in methods.iter().cloned() {
            let path = format!("/api/v1/files/{id}");
            let reply = server.call(method.clone(), &path).send().await.expect(302);
            let found = fetch(method, reply.only("location")).await.expect(200);
            let disposition = found.only("content-disposition").split(';').next();
            assert_eq!((found.only("content-type"), disposition.unwrap_or_default()), expected);
        }
    };

    let given = "Text/Plain; charset=\"UTF-8\"; x=\"a,b\"";
    let odd = server.upload("words").org("7").mime(given).ok().await;
    assert_eq!(odd.mime_type, given);
    assert_eq!(odd.storage_location, *"CLOUD");
    let both = [Method::GET, Method::HEAD];
    sent(&server, &odd.file_id, &both, ("text/plain; charset=utf-8", "inline")).await;
    assert_eq!(remote.content_type(&odd.file_path).await, "text/plain; charset=utf-8");

    let old = stored(&server, remote, b"words", "a.txt").await.file_id;
    let database = rusqlite::Connection::open(server.store().data_dir().database()).unwrap();
    let trick = "text/plain;,text/html";
    let sql = "UPDATE files SET mime_type = ?1 WHERE file_id = ?2";
    assert_eq!(database.execute(sql, [trick, &old]).unwrap(), 1);
    drop(database);
    let server = server.restart().await;
    assert_eq!(server.record(&old).await.mime_type, trick);
    // Garage shows the stored headers for HEAD, whatever its URL asks for. No browser shows a HEAD.
    sent(&server, &old, &[Method::GET], ("application/octet-stream", "attachment")).await;
}

pub(crate) async fn an_edited_file_is_redirected_to_its_new_name_and_type(
    remote: &Remote,
    _: &Remote,
) {
    let server = serve(&[remote]).await;
    let record = stored(&server, remote, b"plain text", "old.txt").await;
    let id = &record.file_id;
    let patch = json!({"original_name": "new.csv", "mime_type": "text/csv"});
    server.edit(id, &patch).send().await.expect(200);

    let edited = server.record(id).await;
    assert_eq!((&edited.file_path, edited.version), (&record.file_path, 1));
    let reply = server.content(id).send().await.expect(302);
    let found = fetch(Method::GET, reply.only("location")).await.expect(200);
    assert_eq!(name_of_disposition(found.only("content-disposition")), "new.csv");
    assert!(found.only("content-disposition").starts_with("attachment"), "a csv is not shown");
    assert!(found.only("content-type").starts_with("text/csv"));
    assert_eq!(found.body, "plain text");
}

pub(crate) async fn conditions_are_ignored_on_redirects(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    let record = stored(&server, remote, b"bytes", "a.txt").await;
    let etag = format!("\"{}\"", record.sha256);
    let info = server.info(&record.file_id).await.expect(200);
    assert_eq!(info.only("etag"), etag, "the tag of the content is the same wherever it is");

    for (name, value) in
        [("if-none-match", &*etag), ("if-match", "\"other\""), ("range", "bytes=0-1")]
    {
        server.content(&record.file_id).header(name, value).send().await.expect(302);
    }

    let bad = server.get(&format!("/api/v1/files/{}?disposition=x", record.file_id)).send().await;
    bad.any_problem(400);
}

pub(crate) async fn variants_of_a_cloud_file_are_made_here(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    let big = stored(&server, remote, &jpeg(900, 700), "big.jpg").await;
    let reply = server.variant(&big.file_id, 200).send().await.expect(200);
    assert_eq!(reply.only("content-type"), "image/webp");

    let picture = image::load_from_memory(&reply.body).unwrap();
    assert_eq!((picture.width(), picture.height()), (200, 200));

    let etag = reply.only("etag").to_owned();
    server.variant(&big.file_id, 200).header("if-none-match", &etag).send().await.expect(304);

    let bytes = jpeg(90, 70);
    let small = stored(&server, remote, &bytes, "small.jpg").await;
    let reply = server.variant(&small.file_id, 200).send().await.expect(200);
    assert_eq!((reply.only("content-type"), &reply.body[..]), ("image/jpeg", &bytes[..]));

    let text = stored(&server, remote, b"no picture", "a.txt").await;
    server.variant(&text.file_id, 200).send().await.problem(422, "not_an_image");
}

pub(crate) async fn the_client_downloads_and_resumes(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    let bytes = noise(3, 300_000);
    let record = stored(&server, remote, &bytes, "noise.bin").await;
    let client = server.client();
    let whole = client.download(&record.file_id).bytes().await.unwrap();
    assert_eq!(whole, bytes);
}
