//! TLS towards the server: ring for cryptography, the operating system's certificates for trust.
//!
//! The configuration is handed to the HTTP clients. No provider is installed for the whole process:
//! that choice belongs to the application.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;

use crate::error::{Error, Result};

/// Prepares TLS as HTTP/1.1 clients use it, trusting `extra_roots` beside the operating system's.
pub(crate) fn client_config(extra_roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig> {
    let crypto = Arc::new(ring::default_provider());
    let verifier =
        Verifier::new_with_extra_roots(extra_roots, Arc::clone(&crypto)).map_err(unprepared)?;

    let mut config = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .map_err(unprepared)?
        .dangerous() // rustls' word for a verifier that is not its own
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Reads the certificates of a PEM text; there must be one at least.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let read: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = read.map_err(|error| {
        Error::invalid(format!("the certificates are not readable PEM: {error}"))
    })?;

    if certificates.is_empty() {
        return Err(Error::invalid("the PEM text holds no certificate"));
    }
    Ok(certificates)
}

fn unprepared(error: rustls::Error) -> Error {
    Error::invalid(format!("TLS cannot be prepared: {error}")).with_source(error)
}
