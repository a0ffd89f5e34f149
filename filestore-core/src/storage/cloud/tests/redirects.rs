//! A hostile provider that redirects to an address which only this machine reaches.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::domain::error::ErrorKind;
use crate::storage::cloud::*;
use crate::storage::contract::{fresh_key, get, put};
use crate::storage::{BlobStore, ProviderRegistry};

/// The words of the service that nobody outside should hear of.
const INSIDE: &str = "inside-words";

/// Answers every request with `head` and the words of the inside, and counts them.
async fn answering(head: String) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (addr, requests) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(answer(stream, head.clone()));
        }
    });
    (addr, requests)
}

/// Reads the head of a request, answers, and reads on until the client closes.
async fn answer(mut stream: TcpStream, head: String) -> std::io::Result<()> {
    let (mut request, mut bytes) = (Vec::new(), [0; 4096]);
    while memchr::memmem::find(&request, b"\r\n\r\n").is_none() {
        match stream.read(&mut bytes).await? {
            0 => return Ok(()),
            read => request.extend_from_slice(&bytes[..read]),
        }
    }

    let length = INSIDE.len();
    let reply =
        format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{INSIDE}");
    stream.write_all(reply.as_bytes()).await?;
    while stream.read(&mut bytes).await? > 0 {}
    Ok(())
}

fn provider(addr: SocketAddr) -> Cloud {
    let mut config = ProviderConfig::new("eu".parse().unwrap(), "s3");
    for (name, value) in [
        ("disable_config_load", "true"),
        ("endpoint", &*format!("http://{addr}")),
        ("region", "eu"),
        ("bucket", "files"),
        ("access_key_id", "AKID"),
        ("secret_access_key", "hush"),
        ("session_token", "token"),
    ] {
        config = config.with_option(name, value);
    }
    config.retries = 0;
    let code = config.code.clone();
    ProviderRegistry::open(&[config]).unwrap().cloud(&code).unwrap().clone()
}

#[tokio::test]
async fn a_redirect_of_a_provider_is_followed_nowhere_and_tells_nothing() {
    for status in ["301", "302", "303", "307", "308"] {
        let (inside, visits) = answering("200 OK".to_owned()).await;
        let redirect = format!("{status} Elsewhere\r\nLocation: http://{inside}/latest/meta-data");
        let (addr, asked) = answering(redirect).await;
        let cloud = provider(addr);

        let key = fresh_key();
        let failures = [
            put(&cloud, &key, b"bytes").await.unwrap_err(),
            get(&cloud, &key, 5, 0..5).await.unwrap_err(),
            cloud.remove(vec![key]).await.pop().unwrap().unwrap_err(),
        ];
        let mut told = String::new();
        for failure in failures {
            assert_eq!(failure.kind(), ErrorKind::ProviderUnavailable, "{status}");
            told += &failure.chain();
        }
        let check = cloud.check().await;
        assert!(!check.can_serve, "{status}");
        let told = format!("{told} {check:?}");

        assert!(asked.load(Ordering::Relaxed) > 0, "{status}");
        assert_eq!(visits.load(Ordering::Relaxed), 0, "{status} was followed");
        assert!(told.contains("redirects are not followed"), "{status}: {told}");
        assert!(!told.contains(INSIDE) && !told.contains(&inside.to_string()), "{status}: {told}");
    }
}
