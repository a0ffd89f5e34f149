//! TLS for requests, with ring and the operating system's certificates.
//!
//! The HTTP clients get this configuration. This crate installs no provider for the whole process,
//! because the application decides about that.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;

use crate::error::{Error, Result};

/// Creates the TLS configuration for HTTP/1.1. The configuration trusts `extra_roots` and the
/// certificates of the operating system.
pub(crate) fn client_config(extra_roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig> {
    let crypto = Arc::new(ring::default_provider());
    let verifier =
        Verifier::new_with_extra_roots(extra_roots, Arc::clone(&crypto)).map_err(unprepared)?;

    let mut config = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .map_err(unprepared)?
        .dangerous() // the rustls term for a verifier of another crate
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Reads the certificates of a PEM text. The text must contain at least one certificate.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let read: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = read
        .map_err(|error| Error::invalid(format!("the certificates are not valid PEM: {error}")))?;

    if certificates.is_empty() {
        return Err(Error::invalid("the PEM text contains no certificate"));
    }
    Ok(certificates)
}

fn unprepared(error: rustls::Error) -> Error {
    Error::invalid(format!("TLS configuration failed: {error}")).with_source(error)
}
