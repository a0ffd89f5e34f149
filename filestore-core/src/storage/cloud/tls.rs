//! TLS towards providers: ring for cryptography, the operating system's certificates for trust.
//!
//! The configuration is handed to each HTTP client. No provider is installed for the whole process:
//! that choice belongs to the application.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use crate::domain::error::{Error, Result};

/// Prepares TLS as HTTP/1.1 clients use it.
pub(super) fn client_config() -> Result<ClientConfig> {
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

/// Prepares TLS that trusts nobody, for providers that are no servers: reads no certificates.
pub(super) fn trusting_nobody() -> Result<ClientConfig> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unprepared)?;
    Ok(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn unprepared(error: rustls::Error) -> Error {
    Error::internal("preparing TLS", error)
}
