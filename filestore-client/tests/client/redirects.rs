use filestore_client::ErrorKind;

use crate::script::{Answer, ID, Request, Script, content, record, sha256_hex};

const OBJECT_ETAG: &str = "etag: \"object\"";

/// A service that redirects to `target` and knows the record of `bytes`.
async fn service(target: String, bytes: Vec<u8>) -> Script {
    Script::start(move |_, request: &Request| {
        if request.line.contains("/info ") {
            return Answer::json("200 OK", &record(&bytes));
        }
        Answer::new(
            "302 Found",
            &[&format!("location: {target}/bucket/key?X-Signature=s3cret")],
            "",
        )
    })
    .await
}

fn lines(server: &Script) -> Vec<String> {
    server.requests().into_iter().map(|request| request.line).collect()
}

#[tokio::test]
async fn the_redirect_is_followed_with_a_bare_request() {
    let bytes = content(1000);
    let provider = Script::with(vec![Answer::new("200 OK", &[OBJECT_ETAG], &bytes)]).await;
    let service = service(provider.url.clone(), bytes.clone()).await;
    assert_eq!(service.client().download(ID).bytes().await.unwrap(), bytes);

    let asked = service.requests();
    assert_eq!(asked[0].header("authorization"), Some("Bearer fsk_test"));
    let names: Vec<String> =
        provider.requests()[0].headers.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, ["accept", "host"]);
    assert_eq!(lines(&provider), ["GET /bucket/key?X-Signature=s3cret HTTP/1.1"]);
}

#[tokio::test]
async fn a_break_behind_a_redirect_asks_for_a_fresh_one() {
    let bytes = content(1000);
    let first = Answer::promising(1000, "200 OK", &[OBJECT_ETAG], &bytes[..400]);
    let range = "content-range: bytes 400-999/1000";
    let second = Answer::new("206 Partial Content", &[OBJECT_ETAG, range], &bytes[400..]);
    let provider = Script::with(vec![first, second]).await;
    let service = service(provider.url.clone(), bytes.clone()).await;
    assert_eq!(service.client().download(ID).bytes().await.unwrap(), bytes);

    let content_line = format!("GET /api/v1/files/{ID} HTTP/1.1");
    assert_eq!(lines(&service).iter().filter(|line| **line == content_line).count(), 2);
    let second = &provider.requests()[1];
    assert_eq!(second.header("range"), Some("bytes=400-999"));
    assert_eq!(second.header("if-range"), None);
    assert_eq!(service.requests()[2].header("if-range"), None);
}

#[tokio::test]
async fn an_expired_url_is_renewed() {
    let bytes = content(1000);
    let served = bytes.clone();
    let provider = Script::start(move |n, _| match n {
        0 => Answer::new(
            "403 Forbidden",
            &["content-type: application/xml"],
            "<Code>AccessDenied</Code>",
        ),
        _ => Answer::new("200 OK", &[OBJECT_ETAG], &served),
    })
    .await;
    let service = service(provider.url.clone(), bytes.clone()).await;
    assert_eq!(service.client().download(ID).bytes().await.unwrap(), bytes);
}

#[tokio::test]
async fn a_provider_that_keeps_refusing_is_named_without_its_signature() {
    let provider = Script::with(vec![Answer::new("403 Forbidden", &[], "")]).await;
    let service = service(provider.url.clone(), content(10)).await;
    let error = service.client().download(ID).bytes().await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Provider, Some(403)));
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
}

#[tokio::test]
async fn an_unreachable_provider_is_named_without_its_signature() {
    let service = service("http://127.0.0.1:1".to_owned(), content(10)).await;
    let error = service.client().download(ID).bytes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Provider);
    assert!(
        error.to_string().starts_with("cannot connect to the storage provider 127.0.0.1"),
        "{error}"
    );
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
}

#[tokio::test]
async fn the_digest_of_a_redirected_file_comes_from_its_record() {
    let provider = Script::with(vec![Answer::new("200 OK", &[OBJECT_ETAG], [7; 1000])]).await;
    let service = service(provider.url.clone(), content(1000)).await;
    let dir = tempfile::tempdir().unwrap();
    let error = service.client().download(ID).to_path(dir.path().join("file")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Digest);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_second_redirect_is_not_followed() {
    let elsewhere = Script::with(vec![Answer::new("200 OK", &[], content(10))]).await;
    let location = format!("location: {}/x", elsewhere.url);
    let provider = Script::with(vec![Answer::new("302 Found", &[&location], "")]).await;
    let service = service(provider.url.clone(), content(10)).await;
    let error = service.client().download(ID).bytes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert_eq!(elsewhere.requests().len(), 0);
}

#[tokio::test]
async fn a_redirect_of_anything_else_is_reported_without_its_query() {
    let elsewhere = Script::with(vec![Answer::json("200 OK", "{}")]).await;
    let location = format!("location: {}/login?token=s3cret", elsewhere.url);
    let server = Script::with(vec![Answer::new("302 Found", &[&location], "")]).await;
    let error = server.client().info(ID).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.to_string().contains("/login") && !format!("{error:?}").contains("s3cret"));
    assert_eq!(elsewhere.requests().len(), 0);
}

#[tokio::test]
async fn a_proxys_redirect_of_a_download_is_not_taken_for_a_provider() {
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect"] {
        let server = Script::start(move |_, request: &Request| {
            let host = request.header("host").unwrap_or_default();
            Answer::new(status, &[&format!("location: http://{host}/login?token=s3cret")], "")
        })
        .await;
        let error = server.client().download(ID).bytes().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
        assert!(error.to_string().contains("/login"), "{error}");
        assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_login_behind_a_redirect_is_not_asked_again_and_again() {
    let login = Script::with(vec![Answer::new("401 Unauthorized", &[], "")]).await;
    let service = service(login.url.clone(), content(10)).await;
    let error = service.client().download(ID).bytes().await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Protocol, Some(401)));
    assert_eq!(login.requests().len(), 1);
}

#[tokio::test]
async fn a_condition_on_a_redirected_file_is_judged_by_its_record() {
    let bytes = content(1000);
    let provider = Script::with(vec![Answer::new("200 OK", &[OBJECT_ETAG], &bytes)]).await;
    let service = service(provider.url.clone(), bytes.clone()).await;
    let client = service.client();
    let etag = format!("\"{}\"", sha256_hex(&bytes));

    assert!(client.download(ID).if_changed(&etag).await.unwrap().is_none());
    let failed = client.download(ID).if_match("\"0\"").bytes().await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::PreconditionFailed);
    assert_eq!(provider.requests().len(), 0);

    let changed = client.download(ID).if_changed("\"0\"").await.unwrap().expect("it changed");
    assert_eq!(changed.bytes().await.unwrap(), bytes);
    assert_eq!(client.download(ID).if_match(etag).bytes().await.unwrap(), bytes);
}
