use std::sync::{Arc, Mutex};
use std::time::Duration;

use filestore_client::{ErrorKind, RetryPolicy};
use futures_util::{StreamExt, TryStreamExt};
use tokio::io::AsyncReadExt;

use crate::script::{Answer, HANG, ID, Request, Script, Then, content, quick, repr_digest};

const ETAG: &str = "etag: \"v1\"";

/// The first `sent` bytes of `bytes`, then the end of the connection.
fn broken(bytes: &[u8], sent: usize) -> Answer {
    Answer::promising(bytes.len(), "200 OK", &[ETAG, &repr_digest(bytes)], &bytes[..sent])
}

fn whole(bytes: &[u8]) -> Answer {
    broken(bytes, bytes.len())
}

/// Bytes `first..end` of `bytes`.
fn part(bytes: &[u8], first: usize, end: usize) -> Answer {
    let range = format!("content-range: bytes {first}-{}/{}", end - 1, bytes.len());
    Answer::new("206 Partial Content", &[ETAG, &range, &repr_digest(bytes)], &bytes[first..end])
}

fn ranges(requests: &[Request]) -> Vec<Option<&str>> {
    requests.iter().map(|request| request.header("range")).collect()
}

#[tokio::test]
async fn a_broken_download_goes_on_where_it_broke() {
    let bytes = content(100_000);
    let first = broken(&bytes, 40_000);
    // The second connection brings what was asked for, but breaks as well.
    let range = "content-range: bytes 40000-99999/100000";
    let second = Answer::promising(
        60_000,
        "206 Partial Content",
        &[ETAG, range, &repr_digest(&bytes)],
        &bytes[40_000..70_000],
    );
    let server = Script::with(vec![first, second, part(&bytes, 70_000, 100_000)]).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let download = server
        .client()
        .download(ID)
        .on_progress(move |progress| log.lock().unwrap().push(progress));
    assert_eq!(download.bytes().await.unwrap(), bytes);

    let requests = server.requests();
    assert_eq!(ranges(&requests), [None, Some("bytes=40000-99999"), Some("bytes=70000-99999")]);
    let conditions: Vec<_> = requests.iter().map(|request| request.header("if-range")).collect();
    assert_eq!(conditions, [None, Some("\"v1\""), Some("\"v1\"")]);
    let seen = seen.lock().unwrap();
    assert!(seen.is_sorted_by_key(|progress| progress.done_bytes));
    assert!(seen.iter().all(|progress| progress.total_bytes == Some(100_000)));
    assert_eq!(seen.last().unwrap().done_bytes, 100_000);
}

#[tokio::test]
async fn progress_counts_anew_so_many_breaks_are_survived() {
    let bytes = content(1000);
    let served = bytes.clone();
    let server = Script::start(move |n, _| {
        let range = format!("content-range: bytes {}-999/1000", n * 100);
        let status = if n == 0 { "200 OK" } else { "206 Partial Content" };
        let piece = &served[n * 100..(n + 1) * 100];
        Answer::promising(1000 - n * 100, status, &[ETAG, &range, &repr_digest(&served)], piece)
    })
    .await;
    assert_eq!(server.client().download(ID).bytes().await.unwrap(), bytes);
    assert_eq!(server.requests().len(), 10);
}

#[tokio::test]
async fn a_file_replaced_in_the_middle_is_not_sewn_together() {
    let (old, new) = (content(1000), vec![7; 1000]);
    let server = Script::with(vec![broken(&old, 400), whole(&new)]).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, "before").unwrap();
    let error = server.client().download(ID).to_path(&path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("download it again"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_server_that_ignores_the_range_is_read_from_the_right_place() {
    let bytes = content(1000);
    let server = Script::with(vec![broken(&bytes, 400), whole(&bytes)]).await;
    assert_eq!(server.client().download(ID).bytes().await.unwrap(), bytes);

    let server = Script::with(vec![whole(&bytes)]).await;
    let range = server.client().download(ID).range(100..=199).bytes().await.unwrap();
    assert_eq!(range, bytes[100..200]);
    let tail = server.client().download(ID).suffix(3).bytes().await.unwrap();
    assert_eq!(tail, bytes[997..]);
}

#[tokio::test]
async fn a_range_is_asked_for_and_resumed_within_itself() {
    let bytes = content(1000);
    let range = "content-range: bytes 100-199/1000";
    let digest = repr_digest(&bytes);
    let first =
        Answer::promising(100, "206 Partial Content", &[ETAG, range, &digest], &bytes[100..150]);
    let server = Script::with(vec![first, part(&bytes, 150, 200)]).await;
    let got = server.client().download(ID).range(100..200).bytes().await.unwrap();
    assert_eq!(got, bytes[100..200]);
    assert_eq!(ranges(&server.requests()), [Some("bytes=100-199"), Some("bytes=150-199")]);
}

#[tokio::test]
async fn wrong_bytes_never_reach_the_path() {
    let (promised, sent) = (content(1000), vec![7; 1000]);
    let answer = Answer::new("200 OK", &[ETAG, &repr_digest(&promised)], &sent);
    let server = Script::with(vec![answer]).await;
    let dir = tempfile::tempdir().unwrap();
    let error = server.client().download(ID).to_path(dir.path().join("file")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Digest);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_body_cut_in_chunked_framing_is_no_end() {
    let bytes = content(1000);
    let mut first = Answer::nothing();
    first.bytes = format!(
        "HTTP/1.1 200 OK\r\n{ETAG}\r\n{}\r\ntransfer-encoding: chunked\r\n\r\n190\r\n",
        repr_digest(&bytes)
    )
    .into_bytes();
    first.bytes.extend_from_slice(&bytes[..400]);
    first.bytes.extend_from_slice(b"\r\n");
    let server = Script::with(vec![first, part(&bytes, 400, 1000)]).await;
    assert_eq!(server.client().download(ID).bytes().await.unwrap(), bytes);
    assert_eq!(ranges(&server.requests()), [None, Some("bytes=400-")]);
}

#[tokio::test]
async fn a_silent_body_is_taken_up_again() {
    let bytes = content(1000);
    let stuck = broken(&bytes, 400).then(Then::Hang);
    let server = Script::with(vec![stuck, part(&bytes, 400, 1000)]).await;
    let patience = Duration::from_secs(1);
    let client = quick(&server.url).timeouts(HANG, patience).build().unwrap();
    assert_eq!(client.download(ID).bytes().await.unwrap(), bytes);
}

#[tokio::test]
async fn a_download_that_gets_nowhere_is_given_up() {
    let bytes = content(1000);
    let served = bytes.clone();
    let server = Script::start(move |n, _| match n {
        0 => broken(&served, 400),
        _ => Answer::nothing(),
    })
    .await;
    let error = server.client().download(ID).bytes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert!(error.to_string().contains("broke off after 400 bytes"), "{error}");
    // Four without progress, after the one that had some.
    assert_eq!(server.requests().len(), 1 + 4 - 1);
}

#[tokio::test]
async fn without_retries_a_break_is_the_end() {
    let bytes = content(1000);
    let server = Script::with(vec![broken(&bytes, 400), part(&bytes, 400, 1000)]).await;
    let client = quick(&server.url).retry(RetryPolicy::none()).build().unwrap();
    let error = client.download(ID).bytes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_writer_that_fails_is_an_io_error_at_once() {
    let bytes = content(1000);
    let server = Script::with(vec![whole(&bytes)]).await;
    let (mut writer, reader) = tokio::io::duplex(16);
    drop(reader);
    let error = server.client().download(ID).to_writer(&mut writer).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_empty_file_is_a_file() {
    let server = Script::with(vec![whole(b"")]).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("empty");
    let done = server.client().download(ID).to_path(&path).await.unwrap();
    assert_eq!(done.len_bytes, 0);
    assert_eq!(std::fs::read(&path).unwrap(), b"");
}

#[tokio::test]
async fn a_missing_file_is_not_asked_for_twice() {
    let server = Script::with(vec![Answer::problem(404, "not_found", &[])]).await;
    let error = server.client().download(ID).bytes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_stream_goes_on_where_it_broke_and_ends_only_when_whole() {
    let bytes = content(100_000);
    let server = Script::with(vec![broken(&bytes, 40_000), part(&bytes, 40_000, 100_000)]).await;
    let chunks: Vec<_> = server.client().download(ID).stream().try_collect().await.unwrap();
    assert_eq!(chunks.concat(), bytes);
    assert_eq!(ranges(&server.requests()), [None, Some("bytes=40000-99999")]);
}

#[tokio::test]
async fn a_stream_of_wrong_bytes_ends_with_an_error() {
    let (promised, sent) = (content(1000), vec![7; 1000]);
    let answer = Answer::new("200 OK", &[ETAG, &repr_digest(&promised)], &sent);
    let server = Script::with(vec![answer]).await;
    let results: Vec<_> = server.client().download(ID).stream().collect().await;
    let error = results.last().unwrap().as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Digest);
}

#[tokio::test]
async fn a_reader_goes_on_where_it_broke() {
    let bytes = content(1000);
    let server = Script::with(vec![broken(&bytes, 400), part(&bytes, 400, 1000)]).await;
    let mut read = Vec::new();
    server.client().download(ID).reader().read_to_end(&mut read).await.unwrap();
    assert_eq!(read, bytes);
}

#[tokio::test]
async fn a_reader_fails_rather_than_end_short() {
    let bytes = content(1000);
    let server = Script::with(vec![broken(&bytes, 400)]).await;
    let client = quick(&server.url).retry(RetryPolicy::none()).build().unwrap();
    let mut read = Vec::new();
    let error = client.download(ID).reader().read_to_end(&mut read).await.unwrap_err();
    let cause = error.get_ref().unwrap().downcast_ref::<filestore_client::Error>().unwrap();
    assert_eq!(cause.kind(), ErrorKind::Interrupted);
    assert_eq!(read, bytes[..400]);
}

#[tokio::test]
async fn a_file_that_did_not_change_is_not_sent_again() {
    let bytes = content(1000);
    let unchanged = Answer::new("304 Not Modified", &[], "");
    let server = Script::with(vec![unchanged, whole(&bytes)]).await;
    let client = server.client();
    assert!(client.download(ID).if_changed("\"v1\"").await.unwrap().is_none());

    let download = client.download(ID).if_changed("\"v0\"").await.unwrap().expect("it changed");
    assert_eq!(download.bytes().await.unwrap(), bytes);
    let requests = server.requests();
    let conditions: Vec<_> =
        requests.iter().map(|request| request.header("if-none-match")).collect();
    assert_eq!(conditions, [Some("\"v1\""), Some("\"v0\"")]);
}

#[tokio::test]
async fn a_changed_file_that_breaks_off_is_resumed_without_the_old_condition() {
    let bytes = content(1000);
    let answers = vec![Answer::nothing(), broken(&bytes, 400), part(&bytes, 400, 1000)];
    let server = Script::with(answers).await;
    let download = server.client().download(ID).if_changed("\"v0\"").await.unwrap().unwrap();
    assert_eq!(download.bytes().await.unwrap(), bytes);
    let last = &server.requests()[2];
    assert_eq!(last.header("if-none-match"), None);
    assert_eq!(last.header("if-range"), Some("\"v1\""));
}

#[tokio::test]
async fn a_file_that_is_another_one_by_now_is_not_downloaded() {
    let refused = Answer::problem(412, "precondition_failed", &[]);
    let server = Script::with(vec![refused]).await;
    let error = server.client().download(ID).if_match("\"v0\"").bytes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
    assert_eq!(server.requests()[0].header("if-match"), Some("\"v0\""));
}
