//! The loop behind a download: ask, follow a redirect, copy, and take up again what broke off.
//!
//! What a file *is* during a download is its SHA-256, known from the first reply (`Repr-Digest`)
//! or, behind a redirect, from the record. Every later piece must be of the same file, wherever it
//! comes from: a file may move from the server to its provider while it is read. The service's
//! strong ETag goes along as `If-Range`; to the provider's host nothing goes but `Range`.

use filestore_core::api::FileRecord;
use reqwest::header::{
    CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, IF_RANGE, LOCATION, RANGE,
};
use reqwest::{Method, Response, StatusCode, Url};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::client::{Call, Client};
use crate::digest::{Digest, from_hex, from_repr_digest, to_hex};
use crate::download::{Download, Downloaded, Wanted};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Progress;
use crate::reply::{header, silent};
use crate::retry::{Attempts, Repeat};

pub(crate) struct Transfer<'a> {
    download: &'a Download,
    pinned: Option<Pinned>,
    delivered: u64,
    hasher: Sha256,
}

/// What the first reply settled.
struct Pinned {
    digest: Digest,
    first: u64,
    end: Option<u64>,
    origin: Origin,
    etag: Option<String>,
    content_type: Option<String>,
}

/// A reply with bytes.
struct Source {
    response: Response,
    /// Who sends them, for messages.
    peer: String,
    origin: Origin,
    digest: Digest,
    /// Where in the file the body starts.
    start: u64,
    /// Where it ends.
    end: Option<u64>,
    total: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Service,
    Provider,
}

impl<'a> Transfer<'a> {
    pub(crate) fn new(download: &'a Download) -> Result<Self> {
        download.wanted.check()?;
        Ok(Self { download, pinned: None, delivered: 0, hasher: Sha256::new() })
    }

    pub(crate) async fn run<W: AsyncWrite + Unpin + Send + ?Sized>(
        mut self,
        writer: &mut W,
    ) -> Result<Downloaded> {
        let mut attempts = Attempts::new(self.client().settings().retry, Repeat::Always);
        loop {
            let before = self.delivered;
            let Err(error) = self.attempt(writer).await else { break };
            if self.delivered > before {
                attempts.reset();
            }
            attempts.pause(error).await.map_err(|error| self.given_up(error))?;
        }
        writer.flush().await.map_err(|error| Error::io("writing the download", error))?;
        self.conclude()
    }

    fn client(&self) -> &'a Client {
        &self.download.client
    }

    /// One request, and as many bytes as it brings.
    async fn attempt<W: AsyncWrite + Unpin + Send + ?Sized>(
        &mut self,
        writer: &mut W,
    ) -> Result<()> {
        let mut source = self.open().await?;
        let position = self.admit(&source)?;
        let mut skip = position - source.start;
        while self.left() != Some(0) {
            let Some(mut chunk) =
                self.client().next_chunk(&mut source.response, &source.peer).await?
            else {
                break;
            };
            let skipped = skip.min(chunk.len() as u64);
            skip -= skipped;
            chunk =
                chunk.slice(usize::try_from(skipped).expect("it is at most the chunk's length")..);
            if let Some(left) = self.left() {
                chunk.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            }
            writer
                .write_all(&chunk)
                .await
                .map_err(|error| Error::io("writing the download", error))?;
            self.delivered(&chunk);
        }
        match self.left() {
            Some(left) if left > 0 => Err(Error::new(
                ErrorKind::Interrupted,
                format!("{} ended early: {left} bytes missing", source.peer),
            )),
            _ => Ok(()),
        }
    }

    /// Asks the service, and follows its redirect once.
    async fn open(&self) -> Result<Source> {
        let client = self.client();
        let mut request = client.file_request(Method::GET, &self.download.file_id, &[])?;
        if let Some(disposition) = self.download.disposition {
            request = request.query(&[("disposition", disposition.as_str())]);
        }
        if let Some(range) = self.range() {
            request = request.header(RANGE, range);
        }
        if let Some(etag) =
            self.pinned.as_ref().and_then(Pinned::if_range).filter(|_| self.delivered > 0)
        {
            request = request.header(IF_RANGE, etag);
        }
        let response = client.exchange(request, Some(client.settings().idle_timeout)).await?;
        if response.status().is_redirection() && response.status() != StatusCode::NOT_MODIFIED {
            return self.follow(&response).await;
        }
        let response = client.accept(response).await?;
        let repr_digest = header(response.headers(), &HeaderName::from_static("repr-digest"));
        let digest = match repr_digest.as_deref().and_then(from_repr_digest) {
            Some(digest) => digest,
            // Something on the way took it.
            None => self.digest_by_record().await?,
        };
        Source::new(response, client.settings().peer.clone(), Origin::Service, digest)
    }

    async fn follow(&self, redirect: &Response) -> Result<Source> {
        let target = redirect_target(redirect)?;
        let peer =
            format!("the storage provider {}", target.host_str().unwrap_or("without a name"));
        let digest = self.digest_by_record().await?;
        let mut request = self.client().bare_request(target);
        if let Some(range) = self.range() {
            request = request.header(RANGE, range);
        }
        let idle = self.client().settings().idle_timeout;
        let sent = timeout(idle, request.send()).await.map_err(|_| silent(&peer, idle))?;
        let response = sent.map_err(|error| unreachable_provider(&peer, error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(refused_by_provider(&peer, status));
        }
        Source::new(response, peer, Origin::Provider, digest)
    }

    async fn digest_by_record(&self) -> Result<Digest> {
        let request = self.client().file_request(Method::GET, &self.download.file_id, &["info"])?;
        let record: FileRecord = self.client().json(Call::repeatable(request)).await?;
        from_hex(&record.sha256)
            .ok_or_else(|| Error::protocol(format!("the record has no SHA-256: {}", record.sha256)))
    }

    fn range(&self) -> Option<String> {
        match &self.pinned {
            Some(pinned) if self.delivered > 0 => {
                Wanted::Range(pinned.first + self.delivered, pinned.end).header()
            }
            _ => self.download.wanted.header(),
        }
    }

    /// Checks that a reply goes on where the last one ended; answers the position in the file.
    fn admit(&mut self, source: &Source) -> Result<u64> {
        // Until a byte is delivered, every reply may start anew.
        if self.delivered == 0 {
            self.pinned = Some(Pinned::by(source, self.download.wanted)?);
        }
        let pinned = self.pinned.as_ref().expect("the first reply pins, and bytes follow a reply");
        if !pinned.is_same_file(source) {
            let message = "the file was replaced while it was downloaded: download it again";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let position = pinned.first + self.delivered;
        if source.start > position {
            let message =
                format!("the reply starts at byte {} instead of {position}", source.start);
            return Err(Error::protocol(message));
        }
        Ok(position)
    }

    /// Bytes still to come, where that is known.
    fn left(&self) -> Option<u64> {
        let pinned = self.pinned.as_ref()?;
        pinned.end.map(|end| end.saturating_sub(pinned.first + self.delivered))
    }

    fn delivered(&mut self, chunk: &[u8]) {
        self.hasher.update(chunk);
        self.delivered += chunk.len() as u64;
        if let Some(report) = &self.download.on_progress {
            let total_bytes = self.left().map(|left| left + self.delivered);
            report(Progress { done_bytes: self.delivered, total_bytes });
        }
    }

    fn given_up(&self, error: Error) -> Error {
        if self.delivered == 0 || !error.is_transient() {
            return error;
        }
        let message =
            format!("the download broke off after {} bytes: {}", self.delivered, error.message());
        error.wrapped(ErrorKind::Interrupted, message)
    }

    fn conclude(self) -> Result<Downloaded> {
        let pinned = self.pinned.expect("a finished attempt has pinned");
        let received: Digest = self.hasher.finalize().into();
        if self.download.wanted == Wanted::Whole && received != pinned.digest {
            let message = "the downloaded bytes do not have the file's SHA-256; it may have been \
                           replaced meanwhile: download it again";
            return Err(Error::new(ErrorKind::Digest, message));
        }
        Ok(Downloaded {
            len_bytes: self.delivered,
            content_type: pinned.content_type,
            etag: pinned.etag,
            sha256: to_hex(&pinned.digest),
        })
    }
}

impl Pinned {
    fn by(source: &Source, wanted: Wanted) -> Result<Self> {
        // A suffix of a file of unknown length is where the reply says it is.
        let (first, end) = wanted.window(source.total).unwrap_or((source.start, source.end));
        if end.is_some_and(|end| end <= first) && wanted != Wanted::Whole {
            return Err(Error::invalid(format!(
                "the range starts behind the end of the file: {first}"
            )));
        }
        let headers = source.response.headers();
        Ok(Self {
            digest: source.digest,
            first,
            end,
            origin: source.origin,
            etag: header(headers, &ETAG),
            content_type: header(headers, &CONTENT_TYPE),
        })
    }

    /// The digest decides. Two replies of the provider must also agree on their ETag: the digest
    /// behind a redirect was read a moment after the redirect.
    fn is_same_file(&self, source: &Source) -> bool {
        let both_provider = self.origin == Origin::Provider && source.origin == Origin::Provider;
        self.digest == source.digest
            && (!both_provider || self.etag == header(source.response.headers(), &ETAG))
    }

    /// What `If-Range` may hold (RFC 9110 §13.1.5): a strong ETag, of the service's own.
    fn if_range(&self) -> Option<&str> {
        let etag = self.etag.as_deref().filter(|etag| !etag.starts_with("W/"));
        etag.filter(|_| self.origin == Origin::Service)
    }
}

impl Source {
    fn new(response: Response, peer: String, origin: Origin, digest: Digest) -> Result<Self> {
        let (start, end, total) = match response.status() {
            StatusCode::OK => (0, response.content_length(), response.content_length()),
            StatusCode::PARTIAL_CONTENT => content_range(response.headers())?,
            status => {
                return Err(Error::protocol(format!("{peer} answered a download with {status}")));
            }
        };
        Ok(Self { response, peer, origin, digest, start, end, total })
    }
}

/// First byte, end and total of `Content-Range: bytes 5-9/10` (RFC 9110 §14.4).
fn content_range(headers: &HeaderMap) -> Result<(u64, Option<u64>, Option<u64>)> {
    let text = header(headers, &CONTENT_RANGE).unwrap_or_default();
    let parsed = || {
        let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        Some((first, Some(last.checked_add(1)?), total.parse().ok()))
    };
    parsed()
        .ok_or_else(|| Error::protocol(format!("the Content-Range is not understood: {text:?}")))
}

fn redirect_target(redirect: &Response) -> Result<Url> {
    header(redirect.headers(), &LOCATION)
        .and_then(|location| redirect.url().join(&location).ok())
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or_else(|| Error::protocol("the redirect to the storage provider leads nowhere"))
}

fn unreachable_provider(peer: &str, error: reqwest::Error) -> Error {
    let error = Error::transport(peer, error);
    match error.kind() {
        // The server is there; what it sends us to is not.
        ErrorKind::Connect => {
            let message = error.message().to_owned();
            error.wrapped(ErrorKind::Provider, message)
        }
        _ => error,
    }
}

/// An expired or outdated URL is cured by asking the service again, as are the provider's own bad
/// moments, so all of these are worth another attempt; but a range it does not have is not.
fn refused_by_provider(peer: &str, status: StatusCode) -> Error {
    let kind = match status {
        StatusCode::RANGE_NOT_SATISFIABLE => ErrorKind::Invalid,
        status if status.is_redirection() => ErrorKind::Protocol,
        _ => ErrorKind::Provider,
    };
    let message = format!("{peer} refused the download: {status}");
    Error::new(kind, message).with_status(status.as_u16())
}
