//! Resumable uploads by our client, over lines that break.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use filestore_client::{Change, Client, Item, Progress, Resumable, Upload};
use filestore_workspace::{TestServer, eventually, fixtures, sha256_hex};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// Starts a proxy whose nth connection breaks after this many bytes of the client. Later connections do not break.
async fn breaking(target: SocketAddr, budgets: impl IntoIterator<Item = usize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut budgets = budgets.into_iter().collect::<VecDeque<_>>();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(target).await.unwrap();
            tokio::spawn(forward(client, server, budgets.pop_front()));
        }
    });
    url
}

async fn forward(mut client: TcpStream, mut server: TcpStream, budget: Option<usize>) {
    let Some(mut left) = budget else {
        copy_bidirectional(&mut client, &mut server).await.ok();
        return;
    };
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let there = async {
        let mut block = vec![0; 16 << 10];
        while left > 0 {
            let most = left.min(block.len());
            let read = from_client.read(&mut block[..most]).await.unwrap_or(0);
            if read == 0 || to_server.write_all(&block[..read]).await.is_err() {
                return;
            }
            left -= read;
        }
    };
    tokio::select! {
        () = there => {}
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
    }
}

fn client(url: &str) -> Client {
    Client::builder(url).unwrap().build().unwrap()
}

#[tokio::test]
async fn an_upload_over_a_line_that_breaks_is_one_file_and_sends_little_twice() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(7, 3_000_000);
    let url = breaking(server.addr(), [1_000_000, 700_000, 300, 100_000]).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&told);
    let report = move |progress: Progress| seen.lock().unwrap().push(progress.done_bytes);

    let upload = Upload::from_bytes(bytes.clone()).original_name("a.bin").on_progress(report);
    let place = client(&url).organization("acme").unwrap().sub_system("docs").unwrap();
    let record = place.upload(upload.resumable(Resumable::Always)).await.unwrap();
    assert_eq!((record.sha256, record.file_size), (sha256_hex(&bytes), 3_000_000));
    assert_eq!(server.listed().await, [record.file_id]);
    server.wait_for_empty_staging().await;

    let told = told.lock().unwrap();
    assert!(told.is_sorted() && told.last() == Some(&3_000_000), "{told:?}");
    assert!(told.iter().any(|offset| (500_000..3_000_000).contains(offset)), "{told:?}");
}

#[tokio::test]
async fn a_second_program_continues_with_the_same_key() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(8, 500_000);
    let upload = || {
        let item = Item::from_bytes(bytes.clone()).original_name("a.bin");
        Upload::new(item).resumable(Resumable::Always).idempotency_key("once")
    };
    // The first program cannot try again.
    let url = breaking(server.addr(), [300_000]).await;
    let once = client(&url).with_retry(filestore_client::RetryPolicy::none());
    let place = once.organization("acme").unwrap().sub_system("docs").unwrap();
    place.upload(upload()).await.unwrap_err();
    // The list ends no transfer: the server keeps all that has arrived.
    let kept = async || {
        let list = server.get("/api/v1/uploads?organization_id=acme").send().await.json();
        list["items"][0]["offset"].as_u64().filter(|offset| *offset > 200_000)
    };
    let kept = eventually("kept bytes", kept).await;

    let started_at = Arc::new(Mutex::new(None));
    let first = Arc::clone(&started_at);
    let report =
        move |progress: Progress| _ = first.lock().unwrap().get_or_insert(progress.done_bytes);
    let place = server.client().organization("acme").unwrap().sub_system("docs").unwrap();
    let record = place.upload(upload().on_progress(report)).await.unwrap();
    assert_eq!(record.sha256, sha256_hex(&bytes));
    assert_eq!(*started_at.lock().unwrap(), Some(kept));

    let again = place.upload_reply(upload()).await.unwrap();
    assert_eq!((again.value.file_id, server.listed().await.len()), (record.file_id, 1));
}

#[tokio::test]
async fn a_replacement_over_a_line_that_breaks_makes_one_version() {
    let server = TestServer::start().await;
    let old = server.upload("old").ok().await;
    let bytes = fixtures::noise(9, 400_000);
    let url = breaking(server.addr(), [250_000]).await;
    let change = Change::replace(Item::from_bytes(bytes.clone()).original_name("b.bin"));
    let change = change.if_match(format!("\"{}\"", old.sha256)).resumable(Resumable::Always);
    client(&url).change(&old.file_id, change).await.unwrap();
    let record = server.record(&old.file_id).await;
    assert_eq!((record.version, record.sha256), (2, sha256_hex(&bytes)));
}

#[tokio::test]
async fn a_reader_of_unknown_length_survives_a_broken_line() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(10, 600_000);
    let url = breaking(server.addr(), [400_000]).await;
    let item = Item::from_reader(std::io::Cursor::new(bytes.clone()), None).original_name("a.bin");
    let place = client(&url).organization("acme").unwrap().sub_system("docs").unwrap();
    let upload = Upload::new(item).resumable(Resumable::Always);
    assert_eq!(place.upload(upload).await.unwrap().sha256, sha256_hex(&bytes));
}
