//! TLS for a listener, with a certificate that can be replaced while the server runs.
//!
//! # Purpose
//!
//! A proxy usually does TLS. A server without a proxy reads a certificate chain and a key from two PEM files
//! ([`TlsFiles`]). [`Tls::reload`] reads them again. New connections get the new certificate, and running
//! connections keep theirs. Unusable files change nothing.
//!
//! The handshake is a part of a connection's first read. The handshake therefore has the same timeout as the
//! first byte of a connection without TLS, and a slow client does not delay others.
//!
//! # Locking
//!
//! A lock protects the certificate. The lock is taken once for each handshake and each reload.

use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error;
use tokio::io::AsyncWrite as _;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

use super::validity::Validity;

/// The two PEM files of a TLS listener.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The server's certificate, followed by the chain to a known authority.
    pub cert: PathBuf,
    /// The private key of the first certificate.
    pub key: PathBuf,
}

impl TlsFiles {
    /// Names a certificate chain and its key.
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { cert: cert.into(), key: key.into() }
    }
}

/// The reasons why the files of a TLS listener cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BadTlsFiles {
    /// A file cannot be read, or is not a PEM file with the required contents.
    #[error("{what} cannot be read from {}: {source}", path.display())]
    Unreadable {
        /// The configuration's key.
        what: &'static str,
        /// The file's path.
        path: PathBuf,
        /// The error from the parser or the operating system.
        source: pem::Error,
    },
    /// The key has an unsupported kind, or does not match the certificate.
    #[error("tls.key is not the key of tls.cert, or of an unknown kind: {0}")]
    Mismatch(rustls::Error),
    /// rustls supports none of the configured TLS versions.
    #[error("TLS cannot be offered: {0}")]
    Unavailable(rustls::Error),
}

/// The TLS part of a listener. Clones share the certificate.
#[derive(Clone)]
pub struct Tls {
    certificate: Arc<Certificate>,
    acceptor: TlsAcceptor,
}

/// The certificate for new connections.
#[derive(Debug)]
struct Certificate(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

impl Tls {
    /// Reads the files, and offers TLS 1.2 and 1.3 for HTTP/1.1.
    pub fn open(files: &TlsFiles) -> Result<Self, BadTlsFiles> {
        let certificate = Arc::new(Certificate(RwLock::new(Arc::new(read(files)?))));
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<Certificate>::clone(&certificate);

        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(BadTlsFiles::Unavailable)?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];

        Ok(Self { certificate, acceptor: Arc::new(config).into() })
    }

    /// Reads the files again, for new connections.
    pub fn reload(&self, files: &TlsFiles) -> Result<(), BadTlsFiles> {
        let read = Arc::new(read(files)?);
        *self.certificate.0.write() = read;
        Ok(())
    }

    /// Returns the time in which the certificate of new connections is valid; `None` if it does not say.
    pub(crate) fn validity(&self) -> Option<Validity> {
        Validity::of(self.certificate.0.read().cert.first()?)
    }

    /// Begins the server's side of a connection. No byte is read here.
    pub(super) fn accept(&self, stream: TcpStream) -> TlsConnection {
        TlsConnection::Handshaking(self.acceptor.accept(stream))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// Returns true if every user of the machine can read the file. A group can be allowed, because some
/// distributions give keys to a group.
fn is_readable_by_others(path: &Path) -> io::Result<bool> {
    Ok(std::fs::metadata(path)?.permissions().mode() & 0o004 != 0)
}

fn read(files: &TlsFiles) -> Result<CertifiedKey, BadTlsFiles> {
    if let Ok(true) = is_readable_by_others(&files.key) {
        let path = files.key.display();
        tracing::warn!(%path, "every user of this machine can read tls.key, restrict it with chmod o=");
    }

    let chain = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .and_then(|chain| if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) })
        .map_err(|source| unreadable("tls.cert", &files.cert, source))?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|source| unreadable("tls.key", &files.key, source))?;

    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(BadTlsFiles::Mismatch)
}

fn unreadable(what: &'static str, path: &Path, source: pem::Error) -> BadTlsFiles {
    BadTlsFiles::Unreadable { what, path: path.to_owned(), source }
}

/// A connection, from its handshake on.
pub(super) enum TlsConnection {
    /// During the handshake, which the first read drives.
    Handshaking(Accept<TcpStream>),
    /// After the handshake.
    Open(TlsStream<TcpStream>),
    /// The handshake failed.
    Failed,
}

impl TlsConnection {
    /// Returns true if the handshake is done.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// Returns the socket after the handshake.
    pub(super) fn socket(&self) -> Option<&TcpStream> {
        match self {
            Self::Open(stream) => Some(stream.get_ref().0),
            Self::Handshaking(_) | Self::Failed => None,
        }
    }

    /// Returns ready when the socket has bytes to read. Flushes at the same time.
    pub(super) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Handshaking(accept) => match accept.get_ref() {
                Some(socket) => socket.poll_read_ready(cx),
                None => Poll::Ready(Ok(())),
            },
            Self::Open(stream) => {
                // An error shows in the next write or read.
                let _ = Pin::new(&mut *stream).poll_flush(cx);
                stream.get_ref().0.poll_read_ready(cx)
            }
            Self::Failed => Poll::Ready(Ok(())),
        }
    }

    /// Finishes the handshake, and returns the stream of bytes.
    pub(super) fn poll_open(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Pin<&mut TlsStream<TcpStream>>>> {
        if let Self::Handshaking(accept) = self {
            *self = match ready!(Pin::new(accept).poll(cx)) {
                Ok(stream) => Self::Open(stream),
                Err(error) => {
                    *self = Self::Failed;
                    return Poll::Ready(Err(error));
                }
            };
        }

        Poll::Ready(match self {
            Self::Open(stream) => Ok(Pin::new(stream)),
            Self::Handshaking(_) | Self::Failed => Err(io::ErrorKind::NotConnected.into()),
        })
    }
}

impl fmt::Debug for TlsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Handshaking(_) => "Handshaking",
            Self::Open(_) => "Open",
            Self::Failed => "Failed",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    #[test]
    fn a_key_that_every_user_can_read_is_told_from_one_for_a_group() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (mode, expected) in [(0o600, false), (0o640, false), (0o644, true), (0o604, true)] {
            fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_readable_by_others(file.path()).unwrap(), expected, "{mode:o}");
        }
    }
}
