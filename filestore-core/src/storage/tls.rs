//! TLS for providers and webhooks: ring for cryptography, and the operating system's certificates for trust.
//!
//! Each HTTP client gets its configuration explicitly. No crypto provider is installed for the whole process,
//! because that choice belongs to the application.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::Verifier;

use crate::domain::error::{Error, Result};

/// Prepares TLS for HTTP/1.1 clients.
pub(crate) fn client_config() -> Result<ClientConfig> {
    let crypto = Arc::new(ring::default_provider());
    let verifier = Verifier::new(Arc::clone(&crypto)).map_err(unprepared)?;

    let mut config = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .map_err(unprepared)?
        .dangerous() // rustls' word for a verifier that is not its own
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn unprepared(error: rustls::Error) -> Error {
    Error::internal("preparing TLS", error)
}
