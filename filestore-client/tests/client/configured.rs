//! The settings of a builder: proxy, headers, an HTTP client of the application's own.

use filestore_client::{Client, ErrorKind};

use crate::script::{Answer, ID, Script, content, quick, record};

fn well() -> Answer {
    Answer::json("200 OK", r#"{"message":"filestore is running"}"#)
}

#[tokio::test]
async fn a_client_of_defaults_sends_no_key() {
    let server = Script::with(vec![well()]).await;
    Client::new(&server.url).unwrap().health().await.unwrap();
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn a_proxy_is_asked_instead_of_the_server() {
    let proxy = Script::with(vec![well()]).await;
    let client = quick("http://files.invalid/x")
        .proxy(reqwest::Proxy::http(&proxy.url).unwrap())
        .build()
        .unwrap();
    client.health().await.unwrap();
    let line = &proxy.requests()[0].line;
    assert_eq!(line, "GET http://files.invalid/x/api/v1/health-checks HTTP/1.1");
}

#[tokio::test]
async fn without_a_proxy_the_server_itself_is_asked() {
    let server = Script::with(vec![well()]).await;
    quick(&server.url).no_proxy().build().unwrap().health().await.unwrap();
    assert_eq!(server.requests()[0].line, "GET /api/v1/health-checks HTTP/1.1");
}

#[tokio::test]
async fn headers_of_ones_own_go_to_the_server_and_not_to_a_provider() {
    let bytes = content(100);
    let provider = Script::with(vec![Answer::new("200 OK", &["etag: \"o\""], &bytes)]).await;
    let (target, served) = (provider.url.clone(), bytes.clone());
    let server = Script::start(move |_, request| {
        if request.line.contains("/info ") {
            Answer::json("200 OK", &record(&served))
        } else {
            Answer::new("302 Found", &[&format!("location: {target}/key")], "")
        }
    })
    .await;

    let headers = [("x-tenant", "blue")].map(|(name, value)| {
        (name.parse().unwrap(), reqwest::header::HeaderValue::from_static(value))
    });
    let client = quick(&server.url).default_headers(headers.into_iter().collect()).build().unwrap();
    assert_eq!(client.download(ID).bytes().await.unwrap(), bytes);

    for request in server.requests() {
        assert_eq!(request.header("x-tenant"), Some("blue"));
        assert_eq!(request.header("authorization"), Some("Bearer fsk_test"));
    }
    assert_eq!(provider.requests()[0].header("x-tenant"), None);
    assert_eq!(provider.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn an_http_client_of_ones_own_still_sends_the_key() {
    let server = Script::with(vec![well()]).await;
    let own = reqwest::Client::builder()
        .tls_backend_preconfigured(tls())
        .redirect(reqwest::redirect::Policy::none())
        .user_agent("gallery/1")
        .build()
        .unwrap();
    quick(&server.url).http_client(own).build().unwrap().health().await.unwrap();

    let request = &server.requests()[0];
    assert_eq!(request.header("user-agent"), Some("gallery/1"));
    assert_eq!(request.header("authorization"), Some("Bearer fsk_test"));
}

#[test]
fn certificates_that_cannot_be_read_are_refused() {
    let builder = Client::builder("https://files.invalid").unwrap();
    let error = builder.extra_root_certificates(b"no certificate").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

fn tls() -> rustls::ClientConfig {
    let crypto = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}
