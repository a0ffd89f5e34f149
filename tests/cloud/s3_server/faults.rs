//! Each fault, as a client meets it.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use filestore_workspace::s3::{Fault, On, Operation};
use filestore_workspace::{S3Server, eventually};
use http::{Method, StatusCode};
use tokio::net::TcpStream;

use super::{MIB, MINUTE, bytes, checking_client, client, header, request, send};

#[tokio::test]
async fn rules_for_the_same_requests_follow_one_another_and_run_out() {
    let server = S3Server::start().await;
    let client = client(&server);
    let slow = server.faults().next(2, Operation::PutObject, Fault::SlowDown);
    let broken = server.faults().next(1, Method::PUT, Fault::InternalError);

    let mut met = Vec::new();
    for _ in 0..4 {
        let presigned = client.presign_write("a", MINUTE).await.unwrap();
        let reply = request(&presigned).body("one").send().await.unwrap();
        met.push((reply.status().as_u16(), reply.text().await.unwrap()));
    }

    assert_eq!(met.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [503, 503, 500, 200]);
    assert!(met[0].1.contains("<Code>SlowDown</Code>"), "{}", met[0].1);
    assert!(met[2].1.contains("<Code>InternalError</Code>"), "{}", met[2].1);
    assert_eq!((slow.count(), broken.count()), (2, 1));
    assert_eq!(server.requests(On::Any), 4);
}

#[tokio::test]
async fn a_fault_leaves_other_requests_alone() {
    let server = S3Server::start().await;
    let client = client(&server);
    let tally = server.faults().every(Operation::DeleteObject, Fault::InternalError);

    client.write("a", "one").await.unwrap();
    client.read("a").await.unwrap();
    client.delete("a").await.unwrap_err();
    client.delete("a").await.unwrap_err();
    assert_eq!(tally.count(), 2);

    server.faults().clear();
    client.delete("a").await.unwrap();
    assert!(server.objects().is_empty());
}

#[tokio::test]
async fn chances_of_one_seed_are_the_same_again() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let server = S3Server::start().await;
        let client = client(&server);
        server.faults().sometimes(7, 0.3, On::Any, Fault::SlowDown);
        let presigned = client.presign_read("a", MINUTE).await.unwrap();
        let mut run = Vec::new();
        for _ in 0..40 {
            run.push(send(&presigned).await.status());
        }
        runs.push(run);
    }

    assert_eq!(runs[0], runs[1]);
    assert!(runs[0].contains(&StatusCode::SERVICE_UNAVAILABLE));
    assert!(runs[0].contains(&StatusCode::NOT_FOUND));
}

#[tokio::test]
async fn a_closed_connection_did_nothing() {
    let server = S3Server::start().await;
    let client = client(&server);
    let closed = server.faults().next(1, Operation::PutObject, Fault::Close);
    client.write("a", "one").await.unwrap_err();
    assert_eq!((closed.count(), server.requests(Operation::PutObject)), (1, 1));
    assert!(server.objects().is_empty());
    client.write("a", "one").await.unwrap();
}

#[tokio::test]
async fn a_request_hangs_while_others_are_answered() {
    let server = S3Server::start().await;
    let client = client(&server);
    let hanging = server.faults().next(1, Operation::PutObject, Fault::Hang);
    let write = tokio::spawn({
        let client = client.clone();
        async move { client.write("a", "one").await }
    });

    eventually("the write hangs", async || (hanging.count() == 1).then_some(())).await;
    client.write("b", "two").await.unwrap();
    assert!(!write.is_finished());

    server.down().await;
    write.await.unwrap().unwrap_err();
    assert_eq!(server.objects(), ["b"]);
}

#[tokio::test]
async fn a_lost_reply_was_done() {
    let server = S3Server::start().await;
    let client = client(&server);
    server.faults().next(1, Operation::PutObject, Fault::LoseReply);
    client.write("a", "one").await.unwrap_err();
    assert_eq!(server.object("a").unwrap(), b"one");

    server.faults().next(1, Operation::DeleteObject, Fault::LoseReply);
    client.delete("a").await.unwrap_err();
    assert!(server.objects().is_empty());

    server.faults().next(1, Operation::CompleteMultipartUpload, Fault::LoseReply);
    client.write_with("large", bytes(6 * MIB)).chunk(5 * MIB).await.unwrap_err();
    assert_eq!(server.objects(), ["large"]);
    assert_eq!(server.unfinished_uploads(), 0);
}

#[tokio::test]
async fn a_corrupt_body_is_refused_by_its_checksum_and_nothing_is_stored() {
    let server = S3Server::start().await;
    let client = checking_client(&server);
    server.faults().next(1, Operation::PutObject, Fault::CorruptBody);
    let refused = client.write("a", bytes(1000)).await.unwrap_err();
    assert!(refused.to_string().contains("BadDigest"), "{refused}");
    assert!(server.objects().is_empty());

    server.faults().next(1, Operation::UploadPart, Fault::CorruptBody);
    let mut writer = client.writer_with("large").chunk(5 * MIB).await.unwrap();
    let written = async {
        writer.write(bytes(6 * MIB)).await?;
        writer.close().await
    };
    let refused = written.await.unwrap_err();
    assert!(refused.to_string().contains("BadDigest"), "{refused}");
    assert!(server.objects().is_empty());
}

#[tokio::test]
async fn a_refused_body_leaves_the_object_that_was_there() {
    let server = S3Server::start().await;
    let client = checking_client(&server);
    client.write("a", "one").await.unwrap();
    server.faults().next(1, Operation::PutObject, Fault::CorruptBody);
    client.write("a", "two").await.unwrap_err();
    assert_eq!(server.object("a").unwrap(), b"one");
}

#[tokio::test]
async fn a_corrupt_body_is_stored_where_no_checksum_is_looked_at() {
    let server = S3Server::start().await;
    let client = checking_client(&server);
    let bytes = bytes(6 * MIB);

    server.faults().ignore_checksums();
    server.faults().next(1, Operation::PutObject, Fault::CorruptBody);
    server.faults().next(1, Operation::UploadPart, Fault::CorruptBody);
    client.write("a", bytes.clone()).await.unwrap();
    client.write_with("b", bytes.clone()).chunk(5 * MIB).await.unwrap();

    for key in ["a", "b"] {
        let stored = server.object(key).unwrap();
        assert_eq!(stored.len(), bytes.len());
        assert_eq!(stored.iter().zip(&bytes).filter(|(is, was)| is != was).count(), 1, "{key}");
    }
}

#[tokio::test]
async fn half_of_a_body_is_stored_and_praised() {
    let server = S3Server::start().await;
    let client = checking_client(&server);
    server.faults().next(1, Operation::PutObject, Fault::StoreHalf);
    client.write("a", "0123456789").await.unwrap();
    assert_eq!(server.object("a").unwrap(), b"01234");
    assert_eq!(client.stat("a").await.unwrap().content_length(), 5);

    let bytes = bytes(12 * MIB);
    server.faults().next(1, Operation::UploadPart, Fault::StoreHalf);
    client.write_with("b", bytes.clone()).chunk(11 * MIB).await.unwrap();
    let half_of_the_first_part = &bytes[..11 * MIB / 2];
    assert!(server.object("b").unwrap() == [half_of_the_first_part, &bytes[11 * MIB..]].concat());
}

#[tokio::test]
async fn a_reply_is_cut_in_the_middle() {
    let server = S3Server::start().await;
    let client = client(&server);
    client.write("a", bytes(MIB)).await.unwrap();
    let presigned = client.presign_read("a", MINUTE).await.unwrap();

    server.faults().next(1, Operation::GetObject, Fault::CutReply);
    let mut reply = send(&presigned).await;
    assert_eq!(reply.status(), StatusCode::OK);
    assert_eq!(header(&reply, "content-length"), MIB.to_string());

    let mut came = 0;
    let cut = loop {
        match reply.chunk().await {
            Ok(Some(chunk)) => came += chunk.len(),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert!(cut && came <= MIB / 2, "{came} bytes came");

    server.faults().next(1, Operation::HeadObject, Fault::CutReply);
    client.stat("a").await.unwrap_err();
    assert_eq!(client.read("a").await.unwrap().len(), MIB);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "compares the clocks of two machines")]
async fn a_wrong_clock_shows_in_the_date() {
    let server = S3Server::start().await;
    let presigned = client(&server).presign_read("a", MINUTE).await.unwrap();
    let off = async || {
        let reply = send(&presigned).await;
        let date = httpdate::parse_http_date(header(&reply, "date")).unwrap();
        let ahead = date.duration_since(SystemTime::now());
        ahead.map_or_else(|behind| -behind.duration().as_secs_f64(), |ahead| ahead.as_secs_f64())
    };
    assert!(off().await.abs() < 600.0);

    server.faults().clock_off_by(3600);
    assert!((off().await - 3600.0).abs() < 600.0);

    server.faults().clock_off_by(-3600);
    assert!((off().await + 3600.0).abs() < 600.0);
}

#[tokio::test]
async fn a_server_that_is_down_refuses_connections_and_comes_back_with_what_it_had() {
    let server = S3Server::start().await;
    let client = client(&server);
    client.write("a", "one").await.unwrap();

    for _ in 0..3 {
        server.down().await;
        assert_eq!(refusal(&server).await, Some(std::io::ErrorKind::ConnectionRefused));
        client.read("a").await.unwrap_err();
        server.up().await;
        assert_eq!(client.read("a").await.unwrap().to_vec(), b"one");
    }
}

#[tokio::test]
async fn a_dropped_server_is_gone() {
    let server = S3Server::start().await;
    let client = client(&server);
    client.write("a", "one").await.unwrap();
    let addr = addr(&server);
    drop(server);
    eventually("connections are refused", async || TcpStream::connect(addr).await.err()).await;
    let read = tokio::time::timeout(Duration::from_mins(1), client.read("a")).await;
    read.unwrap().unwrap_err();
}

async fn refusal(server: &S3Server) -> Option<std::io::ErrorKind> {
    TcpStream::connect(addr(server)).await.err().map(|err| err.kind())
}

fn addr(server: &S3Server) -> SocketAddr {
    server.endpoint().strip_prefix("http://").unwrap().parse().unwrap()
}
