use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use filestore_client::{Batch, Change, ErrorCode, ErrorKind, Item, Resumable, RetryPolicy, Upload};
use tokio::io::{AsyncRead, ReadBuf};

use crate::script::{Answer, HANG, ID, Script, Then, When, content, place, quick, record};

fn created(bytes: &[u8]) -> Answer {
    Answer::json("201 Created", &record(bytes))
}

fn field(name: &str, value: &str) -> String {
    format!("form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
}

#[tokio::test]
async fn a_busy_server_is_asked_again_under_the_same_key_after_its_pause() {
    let busy = Answer::problem(503, "busy", &["retry-after: 1"]);
    let server = Script::with(vec![busy, created(b"abc")]).await;
    let started = Instant::now();
    let upload = Upload::from_bytes("abc").temp().sha256("00");
    let record = server.place().upload(upload).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!(record.sync_status, "HOVERING");

    let requests = server.requests();
    let keys: Vec<_> = requests.iter().map(|request| request.header("idempotency-key")).collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
    assert_eq!(keys[0].unwrap().len(), 32);
    for request in &requests {
        let text = request.text();
        assert_eq!(request.header("content-length"), Some(text.len().to_string().as_str()));
        for (name, value) in [
            ("organization_id", "42"),
            ("sub_system", "s"),
            ("upload_temp", "true"),
            ("sha256", "00"),
        ] {
            let at = text.find(&field(name, value)).unwrap_or_else(|| panic!("{name} in {text}"));
            assert!(at < text.find("name=\"file\"").unwrap());
        }
    }
}

#[tokio::test]
async fn a_pause_longer_than_we_wait_is_handed_to_the_caller() {
    let server = Script::with(vec![Answer::problem(503, "busy", &["retry-after: 3600"])]).await;
    let error = server.place().upload(Upload::from_bytes("abc")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(error.retry_after(), Some(Duration::from_hours(1)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_lost_reply_is_asked_for_again_only_under_a_key() {
    let server = Script::with(vec![Answer::nothing(), created(b"abc")]).await;
    server.place().upload(Upload::from_bytes("abc")).await.unwrap();
    assert_eq!(server.requests().len(), 2);

    let server = Script::with(vec![Answer::nothing(), created(b"abc")]).await;
    let upload = Upload::from_bytes("abc").without_idempotency_key();
    let error = server.place().upload(upload).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_running_request_with_the_same_key_is_waited_for() {
    let running = Answer::problem(409, "idempotency_in_progress", &[]);
    // More often than there are attempts: the server notices a lost connection late.
    let mut answers = vec![running; 20];
    answers.insert(0, Answer::nothing());
    answers.push(created(b"abc"));
    let server = Script::with(answers).await;
    server.place().upload(Upload::from_bytes("abc").idempotency_key("mine")).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 22);
    assert!(requests.iter().all(|request| request.header("idempotency-key") == Some("mine")));
}

#[tokio::test]
async fn an_upload_in_progress_that_never_ends_is_given_up() {
    let running = Answer::problem(409, "idempotency_in_progress", &["retry-after: 1"]);
    let server = Script::with(vec![running]).await;
    let policy = RetryPolicy::default().max_in_progress_wait(Duration::ZERO);
    let client = quick(&server.url).retry(policy).build().unwrap();
    let error = place(&client).upload(Upload::from_bytes("abc")).await.unwrap_err();
    assert_eq!(error.code(), Some(&ErrorCode::IdempotencyInProgress));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_stored_reply_that_is_given_again_is_told_apart() {
    let again = ["content-type: application/json", "idempotency-replayed: true"];
    let replayed = Answer::new("201 Created", &again, record(b"abc"));
    let server = Script::with(vec![replayed, created(b"abc")]).await;
    let upload = || Upload::from_bytes("abc").idempotency_key("mine");
    assert!(server.place().upload_reply(upload()).await.unwrap().is_replayed());
    assert!(!server.place().upload_reply(upload()).await.unwrap().is_replayed());
}

#[tokio::test]
async fn a_busy_server_gets_a_keyless_upload_again() {
    let busy = Answer::problem(503, "busy", &[]);
    let server = Script::with(vec![busy, created(b"abc")]).await;
    let upload = Upload::from_bytes("abc").without_idempotency_key();
    server.place().upload(upload).await.unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_reader_is_sent_once_and_needs_no_length() {
    let server = Script::with(vec![Answer::problem(503, "busy", &[])]).await;
    let upload = Upload::from_reader(io::Cursor::new(content(1000)), None);
    let error = server.place().upload(upload).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].header("transfer-encoding"), Some("chunked"));
    assert_eq!(requests[0].header("idempotency-key"), None);
}

#[tokio::test]
async fn an_early_refusal_is_reported_and_not_a_broken_pipe() {
    for then in [Then::Drain, Then::Hang, Then::Close] {
        let refusal = Answer::problem(413, "too_large", &[]).when(When::AtOnce).then(then);
        let server = Script::with(vec![refusal]).await;
        let endless = tokio::io::repeat(7);
        let error = server.place().upload(Upload::from_reader(endless, None)).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.code()),
            (ErrorKind::TooLarge, Some(&ErrorCode::TooLarge)),
            "{then:?} {error:?}"
        );
        assert_eq!(error.request_id(), Some("R1"));
    }
}

#[tokio::test]
async fn an_early_refusal_of_a_known_length_is_reported_too() {
    let refusal = Answer::problem(413, "too_large", &[]).when(When::AtOnce).then(Then::Drain);
    let server = Script::with(vec![refusal]).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 30).unwrap();
    let upload = Upload::from_path(file.path()).unwrap().resumable(Resumable::Never);
    let error = server.place().upload(upload).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let length: u64 = server.requests()[0].header("content-length").unwrap().parse().unwrap();
    assert!(length > 1 << 30);
}

#[tokio::test]
async fn names_arrive_as_they_are() {
    let server = Script::with(vec![created(b"abc")]).await;
    let dir = tempfile::tempdir().unwrap();
    for name in ["Zoë 文件 🏖.jpg", "a \"b\" 'c'.txt", "back\\slash%22.txt", "semi;name=\"x\".txt"]
    {
        let path = dir.path().join(name);
        std::fs::write(&path, b"abc").unwrap();
        server.place().upload(Upload::from_path(&path).unwrap()).await.unwrap();
        let text = server.requests().last().unwrap().text();
        assert!(text.contains(&field("original_name", name)), "{text}");
    }
}

#[tokio::test]
async fn a_reader_that_is_not_as_long_as_it_said_stores_nothing() {
    for announced in [999, 1001] {
        let server = Script::with(vec![created(&content(1000))]).await;
        let upload = Upload::from_reader(io::Cursor::new(content(1000)), Some(announced));
        let error = server.place().upload(upload).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error:?}");
        assert!(error.to_string().contains("than announced"), "{error}");
        let closed = server.requests().iter().any(|request| request.text().contains("--\r\n"));
        assert!(!closed, "the form must not look whole");
    }
}

#[tokio::test]
async fn a_file_that_went_away_is_an_io_error() {
    let server = Script::with(vec![created(b"abc")]).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let upload = Upload::from_path(file.path()).unwrap();
    drop(file);
    let error = server.place().upload(upload).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[tokio::test]
async fn what_is_stored_must_be_what_was_sent() {
    let server = Script::with(vec![created(b"abd")]).await;
    let error = server.place().upload(Upload::from_bytes("abc")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Digest);
    assert!(error.to_string().contains(ID));
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_after_the_reply_timeout() {
    let server = Script::with(vec![Answer::nothing().then(Then::Hang)]).await;
    let client = quick(&server.url).reply_timeout(Duration::from_millis(100)).build().unwrap();
    let upload = Upload::from_bytes("abc").without_idempotency_key();
    let error = place(&client).upload(upload).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn a_server_that_stops_reading_is_given_up_after_the_idle_timeout() {
    let deaf = Answer::nothing().when(When::AtOnce).then(Then::Hang);
    let server = Script::with(vec![deaf]).await;
    let client = quick(&server.url).timeouts(HANG, Duration::from_millis(200)).build().unwrap();
    let error =
        place(&client).upload(Upload::from_reader(tokio::io::repeat(7), None)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

/// Yields its bytes only after a pause.
struct Slow(Pin<Box<tokio::time::Sleep>>, io::Cursor<Vec<u8>>);

impl AsyncRead for Slow {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        std::task::ready!(self.0.as_mut().poll(cx));
        Pin::new(&mut self.1).poll_read(cx, buf)
    }
}

#[tokio::test]
async fn a_slow_source_is_not_a_silent_server() {
    let server = Script::with(vec![created(b"abc")]).await;
    let idle = Duration::from_millis(500);
    let client = quick(&server.url).timeouts(HANG, idle).build().unwrap();
    let slow = Slow(Box::pin(tokio::time::sleep(idle * 2)), io::Cursor::new(b"abc".to_vec()));
    place(&client).upload(Upload::from_reader(slow, Some(3))).await.unwrap();
}

#[tokio::test]
async fn a_slow_server_may_think_longer_than_the_idle_timeout() {
    let idle = Duration::from_millis(500);
    let server = Script::with(vec![created(b"abc").when(When::Later(idle * 2))]).await;
    let client = quick(&server.url).timeouts(HANG, idle).build().unwrap();
    place(&client).upload(Upload::from_bytes("abc")).await.unwrap();
}

#[tokio::test]
async fn progress_counts_the_files_bytes() {
    let bytes = content(1 << 20);
    let server = Script::with(vec![created(&bytes)]).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let upload = Upload::from_bytes(bytes).on_progress(move |p| log.lock().unwrap().push(p));
    server.place().upload(upload).await.unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.is_sorted_by_key(|progress| progress.done_bytes));
    assert_eq!(seen.last().unwrap().done_bytes, 1 << 20);
    assert_eq!(seen.last().unwrap().total_bytes, Some(1 << 20));
}

#[tokio::test]
async fn a_batch_is_numbered_in_order_and_checked_one_by_one() {
    let both = format!("[{},{}]", record(b"one"), record(b"two"));
    let server = Script::with(vec![Answer::json("201 Created", &both)]).await;
    let batch = |second: &'static str| {
        Batch::new()
            .item(Item::from_bytes("one").original_name("1.txt").mime_type("text/plain"))
            .item(Item::from_bytes(second))
    };
    let records = server.place().batch(batch("two")).await.unwrap();
    assert_eq!(records.len(), 2);
    let text = server.requests()[0].text();
    assert!(text.contains(&field("items[0].original_name", "1.txt")));
    assert!(text.contains(&field("items[0].mime_type", "text/plain")));
    assert!(text.find("\"items[0].file\"") < text.find("\"items[1].file\""));

    let error = server.place().batch(batch("other")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Digest);
}

#[tokio::test]
async fn a_change_carries_its_condition_and_answers_the_new_etag() {
    let reply = format!(
        r#"{{"file_id":"{ID}","sync_status":"NONE","updated_at":"2026-11-21T08:15:30.123Z"}}"#
    );
    let changed =
        Answer::new("200 OK", &["content-type: application/json", "etag: \"v2\""], &reply);
    let server = Script::with(vec![changed]).await;
    let change = Change::replace(Item::from_bytes("new")).if_match("\"v1\"");
    let reply = server.client().replace(ID, change).await.unwrap();
    assert_eq!((reply.value.sync_status.as_str(), reply.etag.as_deref()), ("NONE", Some("\"v2\"")));
    let request = &server.requests()[0];
    assert_eq!(request.line, "PUT /api/v1/files/upload HTTP/1.1");
    assert_eq!(request.header("if-match"), Some("\"v1\""));
    assert!(request.text().contains(&field("file_id", ID)));
}

#[tokio::test]
async fn a_promotion_is_repeated_and_a_replacement_is_not() {
    let reply = format!(r#"{{"file_id":"{ID}","sync_status":"NONE","updated_at":"x"}}"#);
    let server = Script::with(vec![Answer::nothing(), Answer::json("200 OK", &reply)]).await;
    server.client().make_ready(ID).await.unwrap();
    assert!(server.requests()[1].text().contains(&field("make_as_ready", "true")));

    let server = Script::with(vec![Answer::nothing(), Answer::json("200 OK", &reply)]).await;
    let error = server.client().replace(ID, Item::from_bytes("new")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(server.requests().len(), 1);
}
