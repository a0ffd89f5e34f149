//! TLS: certificates that are trusted, and one that is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use filestore_client::{Client, ErrorKind, RetryPolicy, TlsProblem};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::script::{Answer, Script, quick};

#[tokio::test]
async fn a_certificate_of_an_unknown_root_is_refused() {
    let server = Script::with(vec![well()]).await;
    let (url, _, connections) = tls_before(&server).await;

    let client = quick(&url).retry(RetryPolicy::default()).build().unwrap();
    let error = client.health().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert_eq!(error.tls_problem(), Some(TlsProblem::Certificate));
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(error.to_string().contains("extra_root_certificates"), "{error}");
    assert!(!error.is_transient());
    assert_eq!(connections.load(Ordering::SeqCst), 1, "another attempt would fail in the same way");
    assert!(server.requests().is_empty(), "nothing may be sent over such a connection");
}

#[tokio::test]
async fn a_server_without_tls_is_told_apart_and_asked_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let accepted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            accepted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });

    let client = Client::builder(&url).unwrap().build().unwrap();
    let error = client.health().await.unwrap_err();
    assert_eq!(error.tls_problem(), Some(TlsProblem::NotTls), "{error:?}");
    assert!(error.to_string().contains("does not use TLS"), "{error}");
    assert!(error.to_string().contains("http://"), "{error}");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_server_with_tls_tells_a_plain_client_to_use_https_and_is_asked_once() {
    let server = Script::with(vec![well()]).await;
    let (url, _, connections) = tls_before(&server).await;

    let url = url.replace("https://", "http://");
    let error = Client::builder(&url).unwrap().build().unwrap().health().await.unwrap_err();
    assert_eq!(error.tls_problem(), Some(TlsProblem::NotHttp), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(error.to_string().contains("does not speak HTTP"), "{error}");
    assert!(error.to_string().contains("https://"), "{error}");
    assert!(!error.is_transient());
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_certificate_of_an_extra_root_is_accepted() {
    let server = Script::with(vec![well()]).await;
    let (url, pem, _) = tls_before(&server).await;

    let builder = quick(&url).extra_root_certificates(pem.as_bytes()).unwrap();
    assert_eq!(builder.build().unwrap().health().await.unwrap().message, "filestore is running");
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer fsk_test"));
}

#[tokio::test]
async fn an_extra_root_is_trusted_for_its_own_name_only() {
    let server = Script::with(vec![well()]).await;
    let (url, pem, _) = tls_before(&server).await;

    let other = url.replace("localhost", "127.0.0.1");
    let builder = Client::builder(other).unwrap().extra_root_certificates(pem.as_bytes()).unwrap();
    let error = builder.build().unwrap().health().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(server.requests().is_empty());
}

fn well() -> Answer {
    Answer::json("200 OK", r#"{"message":"filestore is running"}"#)
}

/// Starts a TLS proxy for `localhost` in front of a server; returns its URL, its certificate and the
/// number of its connections.
async fn tls_before(server: &Script) -> (String, String, Arc<AtomicUsize>) {
    let CertifiedKey { cert, key_pair } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key_pair.serialize_der()));
    let crypto = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();

    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let upstream = server.url.strip_prefix("http://").unwrap().to_owned();

    let connections = Arc::new(AtomicUsize::new(0));
    let accepted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            accepted.fetch_add(1, Ordering::SeqCst);
            let (acceptor, upstream) = (acceptor.clone(), upstream.clone());
            tokio::spawn(async move {
                // A handshake that the client breaks off is what one test is about.
                let Ok(mut outer) = acceptor.accept(stream).await else { return };
                let mut inner = TcpStream::connect(upstream).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
            });
        }
    });
    (url, cert.pem(), connections)
}
