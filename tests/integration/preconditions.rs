//! Conditions of requests that change a file (RFC 9110 §13.2.2, for other methods than GET and HEAD;
//! reference §4.3 and §4.7).

use filestore_core::api::PurgeStatus;
use filestore_workspace::{Call, Reply, TestServer};
use reqwest::Method;
use serde_json::json;

const LONG_AGO: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATER: &str = "Fri, 31 Dec 9999 23:59:59 GMT";

/// The requests that change a file which exists.
#[derive(Debug, Clone, Copy)]
enum Write {
    Delete,
    Replace,
    Edit,
}

impl Write {
    fn on(self, server: &TestServer, id: &str) -> Call {
        match self {
            Self::Delete => server.call(Method::DELETE, &format!("/api/v1/files/{id}")),
            Self::Replace => server.change(id).file("other bytes").call(),
            Self::Edit => server.edit(id, &json!({"original_name": "other"})),
        }
    }

    async fn with(self, server: &TestServer, id: &str, headers: &[(&str, &str)]) -> Reply {
        let call = self.on(server, id);
        headers.iter().fold(call, |call, (name, value)| call.header(name, value)).send().await
    }
}

/// Checks one row for each write: `None` lets it through, `Some` names the header that refuses it.
async fn check(headers: &[(&str, &str)], refused_by: Option<&str>) {
    let server = TestServer::start_without_purge().await;

    for write in [Write::Delete, Write::Replace, Write::Edit] {
        let record = server.upload("bytes").ok().await;
        let own = format!("\"{}\"", record.sha256);
        let weak = format!("W/{own}");
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| match *value {
                "OWN" => (*name, &*own),
                "WEAK" => (*name, &*weak),
                other => (*name, other),
            })
            .collect();

        let reply = write.with(&server, &record.file_id, &headers).await;
        if let Some(field) = refused_by {
            let problem = reply.problem(412, "precondition_failed");
            assert_eq!(problem.field.as_deref(), Some(field), "{write:?} {headers:?}");
            assert_eq!(server.record(&record.file_id).await, record, "{write:?} {headers:?}");
        } else {
            assert_eq!(reply.status, 200, "{write:?} {headers:?}: {}", reply.text());
        }
    }
}

#[tokio::test]
async fn step_1_if_match_true_goes_on_and_false_is_412() {
    check(&[("if-match", "OWN")], None).await;
    check(&[("if-match", "*")], None).await;
    check(&[("if-match", "\"other\""), ("if-match", "OWN")], None).await;

    for other in ["\"other\"", "WEAK", "no tag", "\"\""] {
        check(&[("if-match", other)], Some("If-Match")).await;
    }
}

#[tokio::test]
async fn step_2_if_unmodified_since_counts_without_if_match_only() {
    check(&[("if-unmodified-since", LATER)], None).await;
    check(&[("if-unmodified-since", LONG_AGO)], Some("If-Unmodified-Since")).await;
    check(&[("if-unmodified-since", "yesterday")], None).await;
    check(&[("if-match", "OWN"), ("if-unmodified-since", LONG_AGO)], None).await;
}

#[tokio::test]
async fn step_3_if_none_match_false_is_412_for_a_write() {
    check(&[("if-none-match", "\"other\"")], None).await;
    for own in ["OWN", "WEAK", "*", "no tag"] {
        check(&[("if-none-match", own)], Some("If-None-Match")).await;
    }
    check(&[("if-match", "OWN"), ("if-none-match", "OWN")], Some("If-None-Match")).await;
    check(&[("if-match", "\"other\""), ("if-none-match", "OWN")], Some("If-Match")).await;
}

#[tokio::test]
async fn steps_4_and_5_are_for_reads_only() {
    check(&[("if-modified-since", LATER)], None).await;
    check(&[("range", "bytes=0-0"), ("if-range", "\"other\"")], None).await;
}

#[tokio::test]
async fn conditions_on_a_file_that_is_not_there_are_404() {
    let server = TestServer::start().await;
    for write in [Write::Delete, Write::Replace, Write::Edit] {
        for condition in [("if-match", "*"), ("if-none-match", "*")] {
            let reply = write.with(&server, "01ARZ3NDEKTSV4RRFFQ69G5FAV", &[condition]).await;
            reply.problem(404, "not_found");
        }
    }
}

#[tokio::test]
async fn a_conditional_delete_never_takes_bytes_that_its_client_has_not_seen() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("seen").ok().await.file_id;
    let seen = server.content(&id).send().await.only("etag").to_owned();
    server.change(&id).file("replaced meanwhile").send().await.expect(200);

    let late = Write::Delete.with(&server, &id, &[("if-match", &seen)]).await;
    late.problem(412, "precondition_failed");
    assert_eq!(server.content(&id).send().await.expect(200).body, "replaced meanwhile");
}

#[tokio::test]
async fn a_conditional_delete_that_is_sent_again_answers_the_same() {
    let server = TestServer::start_without_purge().await;
    let record = server.upload("x").ok().await;
    let own = format!("\"{}\"", record.sha256);

    let first = Write::Delete.with(&server, &record.file_id, &[("if-match", &own)]).await;
    let again = Write::Delete.with(&server, &record.file_id, &[("if-match", &own)]).await;
    assert_eq!(again.expect(200).json(), first.expect(200).json());

    let other = Write::Delete.with(&server, &record.file_id, &[("if-match", "\"other\"")]).await;
    other.problem(412, "precondition_failed");
    let marked = server.record(&record.file_id).await;
    assert_eq!(marked.purge_status, Some(PurgeStatus::SystemPurge));
}

#[tokio::test]
async fn the_client_deletes_only_what_it_has_seen_if_asked() {
    let server = TestServer::start_without_purge().await;
    let client = server.client();
    let id = server.upload("x").ok().await.file_id;
    let etag = client.info(&id).await.unwrap().etag.unwrap();

    let error = client.delete_if_match(&id, "\"other\"").await.unwrap_err();
    assert_eq!(error.kind(), filestore_client::ErrorKind::PreconditionFailed);
    assert!(client.delete_if_match(&id, &etag).await.unwrap().deleted);
    assert!(client.delete_if_match(&id, &etag).await.unwrap().deleted, "again, as after a retry");
}
