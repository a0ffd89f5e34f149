use std::time::Duration;

use filestore_client::api::{CreateBinding, PurgeRunRequest, UpdateBinding};
use filestore_client::{
    Change, Client, DryRun, Edit, ErrorKind, Fit, ListQuery, OrganizationNumber, RetryPolicy,
    Upload,
};
use futures_util::TryStreamExt;

use crate::script::{Answer, HANG, ID, Script, Then, When, content, quick, record};

#[tokio::test]
async fn a_server_that_is_not_there_is_asked_for_in_words() {
    // Port 1 is reserved, so nothing listens there.
    let error = quick("http://127.0.0.1:1").build().unwrap().health().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(error.to_string().starts_with("cannot connect to http://127.0.0.1:1"), "{error}");
    assert!(error.to_string().ends_with("check that the server is running"), "{error}");
}

#[tokio::test]
async fn the_base_may_hold_a_path_prefix() {
    let server =
        Script::with(vec![Answer::json("200 OK", r#"{"message":"filestore is running"}"#)]).await;
    let client = quick(&format!("{}/deep/er/", server.url)).build().unwrap();
    assert_eq!(client.health().await.unwrap().message, "filestore is running");
    assert_eq!(server.requests()[0].line, "GET /deep/er/api/v1/health-checks HTTP/1.1");
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_serves_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("admin.sock");
    let builder = Client::builder("http://localhost").unwrap().unix_socket(&path);
    let client = builder.retry(RetryPolicy::none()).build().unwrap();
    let error = client.health().await.unwrap_err();
    assert!(error.to_string().contains("admin.sock"), "{error}");
    assert!(error.to_string().ends_with("check that the server is running"), "{error}");

    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let served = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let answer = |_: usize, _: &crate::script::Request| {
            Answer::json("200 OK", r#"{"message":"filestore is running"}"#)
        };
        crate::script::serve(stream, std::sync::Arc::default(), std::sync::Arc::new(answer)).await
    });
    assert_eq!(client.health().await.unwrap().message, "filestore is running");
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_problem_is_told_with_everything_the_server_said() {
    let server =
        Script::with(vec![Answer::problem(409, "invalid_transition", &["x-request-id: R1"])]).await;
    let error = server.client().make_thumbnail(ID).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(error.to_string(), "said by the server (HTTP 409, invalid_transition, request R1)");
    assert_eq!(error.problem().unwrap().status, 409);
}

#[tokio::test]
async fn a_page_of_somebody_else_is_not_a_missing_file() {
    let html = Answer::new("404 Not Found", &["content-type: text/html"], "<h1>nginx</h1>");
    let server = Script::with(vec![html]).await;
    let error = server.client().info(ID).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(
        error.to_string().ends_with("check that the base URL belongs to a filestore server"),
        "{error}"
    );

    let html = Answer::new("200 OK", &["content-type: text/html"], "<h1>welcome</h1>");
    let server = Script::with(vec![html]).await;
    assert_eq!(server.client().info(ID).await.unwrap_err().kind(), ErrorKind::Protocol);
}

#[tokio::test]
async fn an_id_that_would_name_another_endpoint_is_not_sent() {
    let server = Script::with(vec![Answer::json("200 OK", "{}")]).await;
    for id in ["", "..", "a/b", "a?b", "%2e", "ü"] {
        assert_eq!(server.client().delete(id).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_listing_goes_on_page_after_page() {
    let page = |cursor: &str| {
        format!(r#"{{"items":[{},{}],"next_cursor":{cursor}}}"#, record(b"1"), record(b"2"))
    };
    let pages = [page(r#""c &1""#), page("null")].map(|page| Answer::json("200 OK", &page));
    let server = Script::with(pages.to_vec()).await;
    let query = ListQuery::new().organization_id("42").purge_status("SYSTEM_PURGE").limit(2);
    let records: Vec<_> = server.client().list_all(query).try_collect().await.unwrap();
    assert_eq!(records.len(), 4);
    let lines: Vec<_> = server.requests().into_iter().map(|request| request.line).collect();
    let first = "GET /api/v1/files?organization_id=42&purge_status=SYSTEM_PURGE&limit=2";
    assert_eq!(lines, [format!("{first} HTTP/1.1"), format!("{first}&cursor=c+%261 HTTP/1.1")]);
}

#[tokio::test]
async fn a_listing_that_turns_in_circles_is_an_error() {
    let page = Answer::json("200 OK", r#"{"items":[],"next_cursor":"same"}"#);
    let server = Script::with(vec![page]).await;
    let all = server.client().list_all(ListQuery::new()).try_collect::<Vec<_>>();
    assert_eq!(all.await.unwrap_err().kind(), ErrorKind::Protocol);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_variant_that_did_not_change_is_not_sent_again() {
    let picture = Answer::new("200 OK", &["content-type: image/webp", "etag: W/\"k\""], "RIFF");
    let server = Script::with(vec![picture, Answer::new("304 Not Modified", &[], "")]).await;
    let client = server.client();
    let variant = client.variant(ID, 400).fit(Fit::Inside).await.unwrap();
    assert_eq!((&variant.bytes[..], variant.content_type.as_str()), (&b"RIFF"[..], "image/webp"));
    let etag = variant.etag.unwrap();
    assert!(client.variant(ID, 400).fit(Fit::Inside).if_changed(&etag).await.unwrap().is_none());
    let second = &server.requests()[1];
    assert_eq!(second.line, format!("GET /api/v1/files/{ID}/400/400?fit=inside HTTP/1.1"));
    assert_eq!(second.header("if-none-match"), Some("W/\"k\""));
}

#[tokio::test]
async fn an_animated_variant_is_asked_for_by_its_parameter() {
    let picture = Answer::new("200 OK", &["content-type: image/webp"], "RIFF");
    let server = Script::with(vec![picture.clone(), picture]).await;
    let client = server.client();
    client.variant(ID, 400).animated().await.unwrap();
    client.variant(ID, 400).fit(Fit::Inside).animated().await.unwrap();
    let lines: Vec<_> = server.requests().iter().map(|request| request.line.clone()).collect();
    let path = format!("GET /api/v1/files/{ID}/400/400");
    let expected = ["?animated=true", "?fit=inside&animated=true"];
    assert_eq!(lines, expected.map(|query| format!("{path}{query} HTTP/1.1")));
}

#[tokio::test]
async fn a_run_is_waited_for_beyond_the_idle_timeout() {
    let idle = Duration::from_millis(500);
    let report = r#"{"dry_run":true,"expired":0,"purged":3,"purged_bytes":9,"blobs_removed":0,"waiting":0,"failures":[]}"#;
    let server =
        Script::with(vec![Answer::json("200 OK", report).when(When::Later(idle * 2))]).await;
    let client = quick(&server.url).timeouts(HANG, idle).build().unwrap();
    let dry_run = PurgeRunRequest::new(DryRun::Yes);
    assert_eq!(client.admin().purge().run(&dry_run).await.unwrap().purged, 3);
    let request = &server.requests()[0];
    assert_eq!(request.line, "POST /api/v1/admin/purge/run HTTP/1.1");
    assert_eq!(request.text(), r#"{"dry_run":true}"#);
}

fn number(number: i64) -> OrganizationNumber {
    number.try_into().unwrap()
}

#[tokio::test]
async fn a_binding_is_created_once_and_an_update_leaves_out_what_stays() {
    let server = Script::with(vec![Answer::nothing()]).await;
    let binding = CreateBinding::new(number(42), "x", "LOCAL");
    let error = server.client().bindings().create(&binding).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(server.requests().len(), 1);

    let reply = r#"{"id":1,"organizationId":42,"isActive":true,"syncEnabled":true,"storageProvider":"LOCAL"}"#;
    let server = Script::with(vec![Answer::nothing(), Answer::json("200 OK", reply)]).await;
    let mut update = UpdateBinding::new(number(42));
    update.sync_enabled = Some(true);
    assert!(server.client().bindings().update(&update).await.unwrap().sync_enabled);
    assert_eq!(server.requests()[1].text(), r#"{"organizationId":42,"syncEnabled":true}"#);
}

#[tokio::test]
async fn a_server_that_is_not_ready_says_what_is_wrong() {
    let reply = r#"{"message":"no","database":"ok","storage":"read-only"}"#;
    let server = Script::with(vec![Answer::json("503 Service Unavailable", reply)]).await;
    let error = server.client().ready().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("storage read-only"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn every_call_can_be_spawned() {
    let bytes = content(10);
    let server = Script::with(vec![Answer::json("201 Created", &record(&bytes))]).await;
    let place = server.place();
    let upload = tokio::spawn(async move { place.upload(Upload::from_bytes(content(10))).await });
    assert_eq!(upload.await.unwrap().unwrap().file_size, 10);
    let client = server.client();
    let download = tokio::spawn(async move { client.download("").to_path("unused").await });
    assert_eq!(download.await.unwrap().unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_record_of_another_file_is_refused() {
    let other = record(b"1").replace(ID, "../../.config/autostart/x.desktop");
    let server = Script::with(vec![Answer::json("200 OK", &other)]).await;
    for error in [server.client().info(ID).await.err(), server.client().restore(ID).await.err()] {
        let error = error.expect("the reply is about another file");
        assert_eq!(error.kind(), ErrorKind::Protocol);
        assert!(!error.to_string().contains("autostart"), "{error}");
    }
}

#[tokio::test]
async fn a_deletion_whose_reply_was_lost_has_succeeded_when_the_file_is_gone() {
    let gone = Answer::problem(404, "not_found", &[]);
    let server = Script::with(vec![Answer::nothing(), gone.clone()]).await;
    let reply = server.client().delete(ID).await.unwrap();
    assert!(reply.deleted && !reply.purge_pending);
    assert_eq!(server.requests().len(), 2);

    let server = Script::with(vec![gone.clone()]).await;
    assert_eq!(server.client().delete(ID).await.unwrap_err().kind(), ErrorKind::NotFound);

    let busy = Answer::problem(503, "busy", &[]);
    let server = Script::with(vec![busy, gone]).await;
    assert_eq!(server.client().delete(ID).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn an_etag_that_no_header_can_hold_is_an_error_and_no_panic() {
    let server = Script::with(vec![Answer::new("200 OK", &[], "")]).await;
    let client = server.client();
    let bad = "\"abc\"\n";

    let variant = client.variant(ID, 400).if_changed(bad).await.unwrap_err();
    assert_eq!(variant.kind(), ErrorKind::Invalid, "{variant}");
    let download = client.download(ID).if_changed(bad).await.unwrap_err();
    assert_eq!(download.kind(), ErrorKind::Invalid, "{download}");
    let change = Change::ready().if_match(bad);
    assert_eq!(client.change(ID, change).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn what_a_busy_service_has_not_done_is_asked_for_again() {
    let busy = Answer::problem(503, "busy", &[]);
    let reply = r#"{"id":1,"organizationId":42,"organizationName":"x","isActive":true,"syncEnabled":true,
        "storageProvider":"LOCAL","effectiveFrom":"2026-11-21T08:15:30.123Z","effectiveTo":null}"#;
    let server = Script::with(vec![busy.clone(), Answer::json("201 Created", reply)]).await;
    let binding = CreateBinding::new(number(42), "x", "LOCAL");
    assert_eq!(server.client().bindings().create(&binding).await.unwrap().id, 1);
    assert_eq!(server.requests().len(), 2);

    // A page of a proxy does not say that nothing was done.
    let page = Answer::new("503 Service Unavailable", &["content-type: text/html"], "<h1>no</h1>");
    let server = Script::with(vec![page, Answer::json("201 Created", reply)]).await;
    assert_eq!(
        server.client().bindings().create(&binding).await.unwrap_err().kind(),
        ErrorKind::Busy
    );

    let server = Script::with(vec![Answer::nothing(), Answer::json("200 OK", &record(b"1"))]).await;
    server.client().restore(ID).await.unwrap();
}

#[tokio::test]
async fn an_edit_is_a_merge_patch_and_is_repeated() {
    let server = Script::with(vec![Answer::nothing(), Answer::json("200 OK", &record(b"1"))]).await;
    let edit = Edit::new().original_name("a").clear_mime_type().metadata([("k", 1)]);
    let reply = server.client().edit(ID, edit.if_match("\"v1\"")).await.unwrap();
    assert_eq!(reply.value.record().unwrap().file_id, ID);

    let request = &server.requests()[1];
    assert_eq!(request.line, format!("PATCH /api/v1/files/{ID} HTTP/1.1"));
    assert_eq!(request.text(), r#"{"metadata":{"k":1},"mime_type":null,"original_name":"a"}"#);
    let types: Vec<_> = request
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        .collect();
    assert_eq!(types.len(), 1, "{types:?}");
    assert_eq!(request.header("content-type"), Some("application/merge-patch+json"));
    assert_eq!(request.header("if-match"), Some("\"v1\""));

    let summary = format!(r#"{{"file_id":"{ID}","sync_status":"NONE","updated_at":"x"}}"#);
    let server = Script::with(vec![Answer::json("200 OK", &summary)]).await;
    let reply = server.client().edit(ID, Edit::new()).await.unwrap();
    assert_eq!((reply.value.file_id(), reply.value.record()), (ID, None));
    assert_eq!(server.requests()[0].text(), "{}");
}

#[tokio::test]
async fn a_client_with_other_limits_shares_the_rest() {
    let idle = Duration::from_secs(1);
    let server = Script::with(vec![Answer::nothing().then(Then::Hang)]).await;
    let hasty = server.client().with_idle_timeout(idle).with_retry(RetryPolicy::none());
    assert_eq!(hasty.info(ID).await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(server.requests().len(), 1);
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer fsk_test"));

    let client = server.client().with_reply_timeout(idle);
    let upload = Upload::from_bytes("abc").without_idempotency_key();
    let error = crate::script::place(&client).upload(upload).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}
