//! TLS of the server itself: what is served, what is refused, and a certificate that is renewed.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use filestore_core::NewUpload;
use filestore_server::listen::TlsFiles;
use filestore_server::{Config, Server};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Writes a new certificate of `localhost` and its key, and returns the certificate.
fn issue(dir: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, key_pair } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(dir.join("cert.pem"), cert.pem()).unwrap();
    std::fs::write(dir.join("key.pem"), key_pair.serialize_pem()).unwrap();
    cert.der().clone()
}

/// Writes a new certificate that ends with the beginning of a year, and its key.
fn issue_until(dir: &Path, year: i32) {
    let mut wanted = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    wanted.not_after = rcgen::date_time_ymd(year, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    std::fs::write(dir.join("cert.pem"), wanted.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(dir.join("key.pem"), key.serialize_pem()).unwrap();
}

fn config(dir: &TempDir) -> Config {
    let mut config = Config::new("127.0.0.1:0".parse().unwrap(), dir.path().join("data"));
    config.tls = Some(TlsFiles::new(dir.path().join("cert.pem"), dir.path().join("key.pem")));
    config
}

/// Connects and trusts only `certificate`.
async fn connect(
    server: &Server,
    certificate: &CertificateDer<'static>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();

    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Asks for the health and returns the reply's first bytes, up to the end of its body.
async fn ask(stream: &mut TlsStream<TcpStream>) -> String {
    let request = "GET /api/v1/health-checks HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();

    let mut reply = Vec::new();
    while !reply.ends_with(b"}") {
        assert_ne!(stream.read_buf(&mut reply).await.unwrap(), 0, "cut short");
    }
    String::from_utf8(reply).unwrap()
}

#[tokio::test]
async fn requests_over_tls_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    let certificate = issue(dir.path());
    let server = Server::start(config(&dir)).await.unwrap();
    assert!(server.url().starts_with("https://"), "{}", server.url());

    let mut stream = connect(&server, &certificate).await.unwrap();
    for _ in 0..2 {
        let reply = ask(&mut stream).await;
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        assert!(reply.ends_with("{\"message\":\"filestore is running\"}"), "{reply}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_large_file_comes_whole_over_tls() {
    let dir = tempfile::tempdir().unwrap();
    let certificate = issue(dir.path());
    let server = Server::start(config(&dir)).await.unwrap();
    let content: Vec<u8> = (0..175_000_u32).flat_map(u32::to_le_bytes).collect();
    let new = NewUpload::new("42".parse().unwrap(), "files".parse().unwrap());
    let record = server.store().upload(new, &content[..]).await.unwrap();

    let mut stream = connect(&server, &certificate).await.unwrap();
    let request = format!(
        "GET /api/v1/files/{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        record.file_id
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply).await;
    assert!(reply.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert!(reply.ends_with(&content), "other bytes");
    server.stop().await;
}

#[tokio::test]
async fn bytes_that_are_no_handshake_end_the_connection() {
    let dir = tempfile::tempdir().unwrap();
    issue(dir.path());
    let server = Server::start(config(&dir)).await.unwrap();

    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream
        .write_all(b"GET /api/v1/health-checks HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut reply = Vec::new();
    // A reset is as good an end as FIN.
    let _ = stream.read_to_end(&mut reply).await;
    assert!(!reply.starts_with(b"HTTP/"), "{reply:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_begins_no_handshake_is_cut_like_one_that_sends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    issue(dir.path());
    let mut config = config(&dir);
    config.http.first_byte = Duration::from_millis(100);
    let server = Server::start(config).await.unwrap();

    for first in [&b""[..], b"\x16\x03\x01"] {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        stream.write_all(first).await.unwrap();
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply).await;
        assert!(reply.is_empty(), "{reply:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_renewed_certificate_is_for_new_connections_and_running_ones_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let first = issue(dir.path());
    let mut server = Server::start(config(&dir)).await.unwrap();
    let mut running = connect(&server, &first).await.unwrap();

    let second = issue(dir.path());
    ask(&mut connect(&server, &first).await.unwrap()).await;
    server.reload(config(&dir)).await.unwrap();

    assert!(connect(&server, &first).await.is_err(), "the old one is gone");
    ask(&mut connect(&server, &second).await.unwrap()).await;
    ask(&mut running).await;
    server.stop().await;
}

/// Reads the end of the certificate from the metrics, in seconds since 1970.
async fn measured_end(server: &Server) -> i64 {
    let url = format!("http://{}/metrics", server.metrics_addr().unwrap());
    let text = support::http_client().build().unwrap().get(url).send().await.unwrap();
    let text = text.text().await.unwrap();
    let name = "filestore_tls_certificate_end_time_seconds ";
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_end_of_the_certificate_is_measured_also_after_a_renewal() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(&dir);
    config.metrics_listen = Some("127.0.0.1:0".parse().unwrap());
    issue_until(dir.path(), 2040);
    let mut server = Server::start(config.clone()).await.unwrap();
    assert_eq!(measured_end(&server).await, 2_208_988_800);

    issue_until(dir.path(), 2041);
    server.reload(config).await.unwrap();
    assert_eq!(measured_end(&server).await, 2_240_611_200);
    server.stop().await;
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let certificate = issue(dir.path());
    let mut server = Server::start(config(&dir)).await.unwrap();
    let key = std::fs::read(dir.path().join("key.pem")).unwrap();

    issue(dir.path());
    std::fs::write(dir.path().join("key.pem"), key).unwrap();
    let error = server.reload(config(&dir)).await.unwrap_err();
    assert!(error.to_string().contains("tls.key is not the key of tls.cert"), "{error}");
    assert!(error.is_usage());

    std::fs::write(dir.path().join("cert.pem"), "no certificate").unwrap();
    let error = Server::check_config(&config(&dir)).unwrap_err();
    assert!(error.to_string().contains("tls.cert cannot be read from"), "{error}");

    ask(&mut connect(&server, &certificate).await.unwrap()).await;
    server.stop().await;
}
