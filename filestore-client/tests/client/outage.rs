//! A server that restarts: it refuses connections, or breaks them off, and comes back.
//!
//! The clock of these tests stands still, except while all tasks wait for it. So seconds take no time, and load
//! cannot make a server late.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use filestore_client::{Client, ErrorKind, RetryPolicy, Upload};
use tokio::net::UnixListener;
use tokio::time::Instant;

use crate::script::{Answer, Request, Script, place, quick, record, serve};

fn created(bytes: &[u8]) -> Answer {
    Answer::json("201 Created", &record(bytes))
}

/// Answers every request on the socket with the record of an upload.
async fn listen(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let answer = Arc::new(|_: usize, _: &Request| created(b"abc"));
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(serve(stream, Arc::clone(&log), Arc::clone(&answer)));
    }
}

fn client(path: &Path) -> Client {
    Client::builder("http://localhost").unwrap().unix_socket(path).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_upload_waits_for_a_server_that_comes_back_after_some_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("server.sock");
    let socket = path.clone();
    let server = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(9)).await;
        listen(&socket).await;
    });

    let began = Instant::now();
    place(&client(&path)).upload(Upload::from_bytes("abc")).await.unwrap();
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(9) && took < Duration::from_secs(15), "{took:?}");
    server.abort();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_away_is_given_up_after_the_longest_outage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("server.sock");
    let began = Instant::now();
    let error = place(&client(&path)).upload(Upload::from_bytes("abc")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(began.elapsed() <= Duration::from_secs(15), "{:?}", began.elapsed());

    let began = Instant::now();
    let hasty = client(&path).with_retry(RetryPolicy::none());
    assert_eq!(hasty.health().await.unwrap_err().kind(), ErrorKind::Connect);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn broken_replies_are_asked_for_again_by_time_and_not_by_attempts() {
    let mut answers = vec![Answer::nothing(); 12];
    answers.push(created(b"abc"));
    let server = Script::with(answers).await;
    let policy =
        RetryPolicy::default().base(Duration::from_millis(1)).cap(Duration::from_millis(1));
    // Far longer than any machine needs for a dozen replies.
    let patient = policy.max_outage(Duration::from_mins(10));
    let client = quick(&server.url).retry(patient).build().unwrap();
    place(&client).upload(Upload::from_bytes("abc")).await.unwrap();

    let requests = server.requests();
    assert_eq!(requests.len(), 13);
    let keys: Vec<_> = requests.iter().map(|request| request.header("idempotency-key")).collect();
    assert!(keys.iter().all(|key| key.is_some() && *key == keys[0]), "{keys:?}");
}
