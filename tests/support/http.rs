//! The HTTP client of the tests: plain reqwest, which knows nothing of this service.

/// Prepares a client that uses no proxy.
///
/// reqwest is built without a cryptography provider of its own, and prepares TLS even where a test
/// speaks plain HTTP: the process gets one here, once.
pub fn http_client() -> reqwest::ClientBuilder {
    install_crypto();
    reqwest::Client::builder().no_proxy()
}

/// Gives the process a cryptography provider for TLS, if it has none.
pub fn install_crypto() {
    // An error says that another thread was faster.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
