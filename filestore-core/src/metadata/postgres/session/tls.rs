//! TLS for the database: ring for cryptography, and trust in the operating system's certificates and those in
//! a file.

use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::domain::error::{Error, ErrorKind, Result};

/// Prepares TLS. The server's certificate and name are always verified.
pub(in crate::metadata::postgres) fn connector(
    root_certificates: Option<&Path>,
) -> Result<MakeRustlsConnect> {
    let crypto = Arc::new(ring::default_provider());
    let verifier = match root_certificates {
        None => Verifier::new(Arc::clone(&crypto)),
        Some(path) => Verifier::new_with_extra_roots(certificates(path)?, Arc::clone(&crypto)),
    };

    let config = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .map_err(unprepared)?
        .dangerous() // rustls' word for a verifier that is not its own
        .with_custom_certificate_verifier(Arc::new(verifier.map_err(unprepared)?))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let unreadable = |error: rustls::pki_types::pem::Error| {
        let message = "sslrootcert is no file of certificates (PEM)";
        Error::new(ErrorKind::Unusable, message).with_source(error)
    };
    let found = CertificateDer::pem_file_iter(path).map_err(unreadable)?;
    found.collect::<Result<Vec<_>, _>>().map_err(unreadable)
}

fn unprepared(error: rustls::Error) -> Error {
    Error::internal("preparing TLS", error)
}
