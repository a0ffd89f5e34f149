//! The S3 server of these tests, against a client that knows nothing of it: OpenDAL.

use std::time::Duration;

use filestore_workspace::s3::Operation;
use filestore_workspace::{S3Server, eventually};
use http::StatusCode;
use opendal::raw::PresignedRequest;
use opendal::services::S3;
use opendal::{ErrorKind, Operator};

mod faults;

const MINUTE: Duration = Duration::from_mins(1);
const MIB: usize = 1024 * 1024;

/// Any Unicode name, as RFC 8187 writes it.
const DISPOSITION: &str = "attachment; filename*=UTF-8''na%C3%AFve%20%E2%82%AC.txt";

fn service(server: &S3Server) -> S3 {
    // Without its default features OpenDAL installs no transport by itself.
    filestore_workspace::http::install_crypto();
    opendal::install_default();
    opendal_http_transport_reqwest::install_default();
    S3::default()
        .disable_config_load()
        .endpoint(&server.endpoint())
        .region(server.region())
        .bucket(server.bucket())
        .access_key_id(server.access_key())
        .secret_access_key(server.secret_key())
}

/// A client that sends no checksums.
fn client(server: &S3Server) -> Operator {
    Operator::new(service(server)).unwrap()
}

/// A client that sends CRC32C with everything it stores.
fn checking_client(server: &S3Server) -> Operator {
    Operator::new(service(server).checksum_algorithm("crc32c")).unwrap()
}

/// Sends a presigned request as a bare HTTP client would.
async fn send(presigned: &PresignedRequest) -> reqwest::Response {
    request(presigned).send().await.unwrap()
}

fn request(presigned: &PresignedRequest) -> reqwest::RequestBuilder {
    filestore_workspace::http_client()
        .build()
        .unwrap()
        .request(presigned.method().clone(), presigned.uri().to_string())
        .headers(presigned.header().clone())
}

fn header<'a>(reply: &'a reqwest::Response, name: &str) -> &'a str {
    reply.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// Bytes no two of whose neighbourhoods are alike.
fn bytes(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(len as u64).fill(&mut bytes);
    bytes
}

#[tokio::test]
async fn what_is_put_is_listed_read_and_deleted() {
    let server = S3Server::start().await;
    let client = client(&server);
    client.write("acme/a.txt", "one").await.unwrap();
    client.write("acme-b.txt", "two").await.unwrap();

    assert_eq!(server.objects(), ["acme-b.txt", "acme/a.txt"]);
    assert_eq!(server.object("acme/a.txt").unwrap(), b"one");
    assert_eq!(client.read("acme/a.txt").await.unwrap().to_vec(), b"one");

    let listed = client.list("acme/").await.unwrap();
    assert_eq!(listed.iter().map(opendal::Entry::path).collect::<Vec<_>>(), ["acme/a.txt"]);

    client.delete("acme/a.txt").await.unwrap();
    assert_eq!(server.objects(), ["acme-b.txt"]);
    assert_eq!(client.read("acme/a.txt").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(server.requests(Operation::PutObject), 2);
    assert_eq!(server.requests(Operation::DeleteObject), 1);
    assert_eq!(server.requests(http::Method::PUT), 2);
}

#[tokio::test]
async fn an_empty_object_is_an_object() {
    let server = S3Server::start().await;
    let client = checking_client(&server);
    client.write("empty", "").await.unwrap();
    assert_eq!(client.stat("empty").await.unwrap().content_length(), 0);
    assert!(client.read("empty").await.unwrap().is_empty());
}

#[tokio::test]
async fn deleting_what_is_not_there_succeeds() {
    let server = S3Server::start().await;
    let presigned = client(&server).presign_delete("nothing", MINUTE).await.unwrap();
    assert_eq!(send(&presigned).await.status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_prefix_of_keys_is_no_object() {
    let server = S3Server::start().await;
    let client = client(&server);
    client.write("acme/a.txt", "one").await.unwrap();

    for presigned in [
        client.presign_read("acme", MINUTE).await.unwrap(),
        client.presign_stat("acme", MINUTE).await.unwrap(),
    ] {
        assert_eq!(send(&presigned).await.status(), StatusCode::NOT_FOUND);
    }

    let presigned = client.presign_delete("acme", MINUTE).await.unwrap();
    assert_eq!(send(&presigned).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(server.objects(), ["acme/a.txt"]);
}

#[tokio::test]
async fn type_and_disposition_of_a_put_are_kept() {
    let server = S3Server::start().await;
    let client = client(&server);
    client
        .write_with("a.txt", "one")
        .content_type("text/plain")
        .content_disposition(DISPOSITION)
        .await
        .unwrap();

    client.write("untyped", "two").await.unwrap();

    let found = client.stat("a.txt").await.unwrap();
    assert_eq!(found.content_type(), Some("text/plain"));
    assert_eq!(found.content_disposition(), Some(DISPOSITION));

    let reply = send(&client.presign_read("a.txt", MINUTE).await.unwrap()).await;
    assert_eq!(header(&reply, "content-type"), "text/plain");
    assert_eq!(header(&reply, "content-disposition"), DISPOSITION);
    assert_eq!(client.stat("untyped").await.unwrap().content_type(), Some("binary/octet-stream"));
}

#[tokio::test]
async fn a_large_object_comes_in_parts_and_keeps_its_type() {
    let server = S3Server::start().await;
    let client = checking_client(&server);

    let bytes = bytes(11 * MIB);
    client
        .write_with("large", bytes.clone())
        .chunk(5 * MIB)
        .concurrent(3)
        .content_type("image/png")
        .content_disposition(DISPOSITION)
        .await
        .unwrap();

    assert_eq!(server.requests(Operation::UploadPart), 3);
    assert_eq!(server.unfinished_uploads(), 0);
    assert!(server.object("large").unwrap() == bytes);
    assert!(client.read("large").await.unwrap().to_vec() == bytes);

    let found = client.stat("large").await.unwrap();
    assert_eq!(found.content_type(), Some("image/png"));
    assert_eq!(found.content_disposition(), Some(DISPOSITION));
}

#[tokio::test]
async fn an_upload_in_parts_is_unfinished_until_it_is_aborted() {
    let server = S3Server::start().await;
    let mut writer = client(&server).writer_with("large").chunk(5 * MIB).await.unwrap();
    writer.write(bytes(11 * MIB)).await.unwrap();
    assert_eq!(server.unfinished_uploads(), 1);
    assert!(server.objects().is_empty());

    writer.abort().await.unwrap();
    assert_eq!(server.unfinished_uploads(), 0);
    assert!(server.objects().is_empty());
    assert_eq!(server.requests(Operation::AbortMultipartUpload), 1);
}

#[tokio::test]
async fn ranges_are_served_and_clamped() {
    let server = S3Server::start().await;
    let client = client(&server);
    client.write("digits", "0123456789").await.unwrap();
    assert_eq!(client.read_with("digits").range(3..6).await.unwrap().to_vec(), b"345");

    let presigned = client.presign_read("digits", MINUTE).await.unwrap();
    for (range, content_range, expected) in [
        ("bytes=0-0", "bytes 0-0/10", "0"),
        ("bytes=8-", "bytes 8-9/10", "89"),
        ("bytes=8-99", "bytes 8-9/10", "89"),
        ("bytes=-2", "bytes 8-9/10", "89"),
        ("bytes=-99", "bytes 0-9/10", "0123456789"),
    ] {
        let reply = request(&presigned).header("range", range).send().await.unwrap();
        assert_eq!(reply.status(), StatusCode::PARTIAL_CONTENT, "{range}");
        assert_eq!(header(&reply, "content-range"), content_range, "{range}");
        assert_eq!(reply.text().await.unwrap(), expected, "{range}");
    }

    let reply = request(&presigned).header("range", "bytes=10-").send().await.unwrap();
    assert_eq!(reply.status(), StatusCode::RANGE_NOT_SATISFIABLE);
}

#[tokio::test]
async fn a_key_that_must_be_new_is_not_overwritten() {
    let server = S3Server::start().await;
    let client = client(&server);
    client.write_with("a", "one").if_not_exists(true).await.unwrap();
    let refused = client.write_with("a", "two").if_not_exists(true).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConditionNotMatch);
    assert_eq!(server.object("a").unwrap(), b"one");
}

#[tokio::test]
async fn a_wrong_secret_an_unknown_key_and_no_signature_are_refused() {
    let server = S3Server::start().await;
    client(&server).write("a", "one").await.unwrap();

    for wrong in [
        service(&server).secret_access_key("another"),
        service(&server).access_key_id("AKIANOBODY"),
    ] {
        let wrong = Operator::new(wrong).unwrap();
        assert_eq!(wrong.read("a").await.unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(wrong.write("b", "two").await.unwrap_err().kind(), ErrorKind::PermissionDenied);
    }

    let bare = format!("{}/{}/a", server.endpoint(), server.bucket());
    assert_eq!(
        filestore_workspace::http_client()
            .build()
            .unwrap()
            .get(bare)
            .send()
            .await
            .unwrap()
            .status(),
        StatusCode::FORBIDDEN
    );
    assert_eq!(server.objects(), ["a"]);
}

#[tokio::test]
async fn a_presigned_url_reads_and_overrides_type_and_disposition() {
    let server = S3Server::start().await;
    let client = client(&server);
    client.write_with("a", "one").content_type("text/plain").await.unwrap();
    let read = client
        .presign_read_with("a", MINUTE)
        .override_content_type("image/webp")
        .override_content_disposition(DISPOSITION)
        .await
        .unwrap();

    let stat = client
        .presign_stat_with("a", MINUTE)
        .override_content_type("image/webp")
        .override_content_disposition(DISPOSITION)
        .await
        .unwrap();

    for presigned in [&read, &stat] {
        let reply = send(presigned).await;
        assert_eq!(reply.status(), StatusCode::OK);
        assert_eq!(header(&reply, "content-type"), "image/webp");
        assert_eq!(header(&reply, "content-disposition"), DISPOSITION);
        assert_eq!(header(&reply, "content-length"), "3");
    }

    assert_eq!(send(&read).await.text().await.unwrap(), "one");
}

#[tokio::test]
async fn a_presigned_url_writes() {
    let server = S3Server::start().await;
    let presigned = client(&server).presign_write("a", MINUTE).await.unwrap();
    let reply = request(&presigned).body("one").send().await.unwrap();
    assert_eq!(reply.status(), StatusCode::OK);
    assert_eq!(server.object("a").unwrap(), b"one");
}

#[tokio::test]
async fn a_presigned_url_is_for_one_method_and_one_key() {
    let server = S3Server::start().await;
    let client = client(&server);
    client.write("a", "one").await.unwrap();
    client.write("b", "two").await.unwrap();
    let presigned = client.presign_read("a", MINUTE).await.unwrap();
    let url = presigned.uri().to_string();

    let http = filestore_workspace::http_client().build().unwrap();
    let other_key = http.get(url.replace("/a?", "/b?")).send().await.unwrap();
    assert_eq!(other_key.status(), StatusCode::FORBIDDEN);

    let other_method = http.put(&url).body("three").send().await.unwrap();
    assert_eq!(other_method.status(), StatusCode::FORBIDDEN);
    assert_eq!(http.head(&url).send().await.unwrap().status(), StatusCode::FORBIDDEN);
    assert_eq!(server.object("a").unwrap(), b"one");
}

#[tokio::test]
async fn presigned_urls_expire() {
    let server = S3Server::start().await;
    let client = client(&server);
    client.write("a", "one").await.unwrap();

    let second = Duration::from_secs(1);
    for presigned in [
        client.presign_read("a", second).await.unwrap(),
        client.presign_stat("a", second).await.unwrap(),
        client.presign_write("a", second).await.unwrap(),
    ] {
        eventually("the URL has expired", async || {
            (send(&presigned).await.status() == StatusCode::FORBIDDEN).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn bytes_corrupted_on_the_disk_are_served_as_they_are() {
    let server = S3Server::start().await;
    let client = checking_client(&server);
    let bytes = bytes(1000);
    client.write("a", bytes.clone()).await.unwrap();
    let before = client.stat("a").await.unwrap();
    server.corrupt("a");

    let corrupt = client.read("a").await.unwrap().to_vec();
    assert_eq!(corrupt.iter().zip(&bytes).filter(|(is, was)| is != was).count(), 1);
    assert_eq!(client.stat("a").await.unwrap().etag(), before.etag());
}
