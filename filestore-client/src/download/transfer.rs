//! The steps of a download: request, redirect, delivery, and resume.
//!
//! The SHA-256 identifies the file during a download. The digest comes from the first reply
//! (`Repr-Digest`), or from the record after a redirect. Every later piece must belong to the same
//! file. The source can change, because a file can move from the server to its provider during the
//! download. The client sends the strong ETag of the service as `If-Range`. The provider gets only
//! `Range`.

use bytes::Bytes;
use filestore_core::api::FileRecord;
use reqwest::header::{CONTENT_TYPE, ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH, IF_RANGE, RANGE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;

use super::piece::{
    Origin, Piece, leads_back, redirect_target, refused_by_provider, unreachable_provider,
};
use super::wanted::Wanted;
use super::{Download, Downloaded};
use crate::digest::{Digest, from_hex, from_repr_digest};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Progress;
use crate::transport::Call;
use crate::transport::reply::{header, silent, unexpected_redirect};
use crate::transport::retry::{Attempts, Retry};

/// A running download. [`Transfer::next`] returns its bytes, and [`Transfer::conclude`] checks
/// them.
pub(crate) struct Transfer {
    download: Download,
    attempts: Attempts,
    /// The current reply, if the connection is open.
    piece: Option<Piece>,
    pinned: Option<Pinned>,
    delivered: u64,
    /// Number of delivered bytes at the last failure. More bytes since then are progress.
    delivered_before: u64,
    hasher: Sha256,
}

/// The properties of the file from the first reply.
struct Pinned {
    digest: Digest,
    first: u64,
    end: Option<u64>,
    origin: Origin,
    etag: Option<String>,
    content_type: Option<String>,
}

impl Transfer {
    pub(crate) fn new(download: Download) -> Self {
        let policy = download.client.settings().retry;

        Self {
            download,
            attempts: Attempts::new(policy, Retry::Idempotent),
            piece: None,
            pinned: None,
            delivered: 0,
            delivered_before: 0,
            hasher: Sha256::new(),
        }
    }

    /// Returns the download, if no byte is delivered yet.
    pub(crate) fn into_download(self) -> Download {
        self.download
    }

    /// Returns the next bytes, or `None` at the end. Reconnects if that might help.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let error = match self.attempt().await {
                Ok(chunk) => return Ok(chunk),
                Err(error) => error,
            };

            self.piece = None;
            if self.delivered > self.delivered_before {
                self.attempts.reset();
            }
            self.delivered_before = self.delivered;

            if let Err(error) = self.attempts.pause(error).await {
                return Err(self.broken_off(error));
            }
        }
    }

    /// Checks the digest of a whole download, after [`next`](Self::next) has returned `None`.
    pub(crate) fn conclude(&mut self) -> Result<Downloaded> {
        let pinned = self.pinned.take().expect("a finished attempt has pinned");
        let received: Digest = self.hasher.finalize_reset().into();

        if self.download.wanted == Wanted::Whole && received != pinned.digest {
            let message = "the downloaded bytes do not match the file's SHA-256: the file might have been \
                           replaced during the download, so download it again";
            return Err(Error::new(ErrorKind::Digest, message));
        }

        Ok(Downloaded {
            len_bytes: self.delivered,
            content_type: pinned.content_type,
            etag: pinned.etag,
            sha256: hex::encode(pinned.digest),
        })
    }

    /// Continues at the end of the last piece. Connects first if necessary.
    async fn attempt(&mut self) -> Result<Option<Bytes>> {
        if self.piece.is_none() {
            let mut piece = match self.download.begun.take() {
                Some(piece) => piece,
                None => self.connect().await?,
            };
            piece.skip = self.admit(&piece)? - piece.start;
            self.piece = Some(piece);
        }

        while self.left() != Some(0) {
            let piece = self.piece.as_mut().expect("connected above");
            let client = &self.download.client;
            let Some(mut chunk) = client.next_chunk(&mut piece.response, &piece.peer).await? else {
                return self.end();
            };

            let skipped = piece.skip.min(chunk.len() as u64);
            piece.skip -= skipped;
            chunk =
                chunk.slice(usize::try_from(skipped).expect("it is at most the chunk's length")..);
            if let Some(left) = self.left() {
                chunk.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            }

            if !chunk.is_empty() {
                self.count(&chunk);
                return Ok(Some(chunk));
            }
        }

        Ok(None)
    }

    /// Handles the end of a body: the end of the download, or an early end.
    fn end(&self) -> Result<Option<Bytes>> {
        let peer = self.piece.as_ref().map_or("the server", |piece| &piece.peer);

        match self.left() {
            Some(left) if left > 0 => Err(Error::new(
                ErrorKind::Interrupted,
                format!("{peer} ended early: {left} bytes missing"),
            )),
            _ => Ok(None),
        }
    }

    /// Sends the request to the service, and follows one redirect.
    async fn connect(&self) -> Result<Piece> {
        let piece = self.connect_unless(None).await?;
        piece.ok_or_else(|| Error::protocol("the server answered 304 to an unconditional request"))
    }

    /// Connects like [`connect`](Self::connect). Returns `None` if the file still has this ETag.
    pub(crate) async fn connect_unless(&self, etag: Option<&str>) -> Result<Option<Piece>> {
        self.download.wanted.check()?;

        let client = &self.download.client;
        let mut request = self.request()?;
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }

        let idle = client.settings().idle_timeout;
        let response = client.exchange(request, Some(idle)).await?;
        match response.status() {
            StatusCode::NOT_MODIFIED => Ok(None),
            StatusCode::FOUND | StatusCode::TEMPORARY_REDIRECT => {
                self.follow(&response, etag).await
            }
            _ => Ok(Some(self.served(response).await?)),
        }
    }

    /// Uses the bytes from the service itself.
    async fn served(&self, response: Response) -> Result<Piece> {
        let client = &self.download.client;
        let response = client.accept(response).await?;
        let repr_digest = header(response.headers(), &HeaderName::from_static("repr-digest"));
        let digest = match repr_digest.as_deref().and_then(from_repr_digest) {
            Some(digest) => digest,
            // A proxy has removed the header.
            None => self.digest_by_record().await?,
        };
        Piece::new(response, client.settings().peer.clone(), Origin::Service, digest)
    }

    fn request(&self) -> Result<RequestBuilder> {
        let Download { client, file_id, disposition, if_match, .. } = &self.download;
        let mut request = client.file_request(Method::GET, file_id, &[])?;

        if let Some(disposition) = disposition {
            request = request.query(&[("disposition", disposition.as_str())]);
        }
        if let Some(range) = self.range() {
            request = request.header(RANGE, range);
        }

        if let Some(etag) = if_match {
            request = request.header(IF_MATCH, etag);
        }

        let resumed = self.pinned.as_ref().filter(|_| self.delivered > 0);
        if let Some(etag) = resumed.and_then(Pinned::if_range) {
            request = request.header(IF_RANGE, etag);
        }
        Ok(request)
    }

    /// Follows the redirect to a provider, unless the file still has the ETag `unless`. The service
    /// ignores conditions for a redirect (RFC 9110 §13.2.1), so the client evaluates them with the
    /// record.
    async fn follow(&self, redirect: &Response, unless: Option<&str>) -> Result<Option<Piece>> {
        let client = &self.download.client;
        let target = redirect_target(redirect)?;
        if leads_back(redirect.url(), &target) {
            return Err(unexpected_redirect(redirect));
        }

        let digest = self.digest_by_record().await?;
        if unless.is_some_and(|etag| names(etag, &digest)) {
            return Ok(None);
        }
        if self.download.if_match.as_ref().is_some_and(|etag| !names(etag, &digest)) {
            let message = "the file no longer has the expected ETag";
            return Err(Error::new(ErrorKind::PreconditionFailed, message));
        }

        let host = target.host_str().unwrap_or("without a name");
        let peer = format!("the storage provider {host}");

        let mut request = client.bare_request(target);
        if let Some(range) = self.range() {
            request = request.header(RANGE, range);
        }

        let idle = client.settings().idle_timeout;
        let sent = timeout(idle, request.send()).await.map_err(|_| silent(&peer, idle))?;
        let response = sent.map_err(|error| unreachable_provider(&peer, error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(refused_by_provider(&peer, status));
        }
        Ok(Some(Piece::new(response, peer, Origin::Provider, digest)?))
    }

    async fn digest_by_record(&self) -> Result<Digest> {
        let Download { client, file_id, .. } = &self.download;
        let request = client.file_request(Method::GET, file_id, &["info"])?;
        let record: FileRecord = client.json(Call::idempotent(request)).await?;

        from_hex(&record.sha256)
            .ok_or_else(|| Error::protocol(format!("the record has no SHA-256: {}", record.sha256)))
    }

    fn range(&self) -> Option<String> {
        match &self.pinned {
            Some(pinned) if self.delivered > 0 => {
                Wanted::Range { first: pinned.first + self.delivered, end: pinned.end }.header()
            }
            _ => self.download.wanted.header(),
        }
    }

    /// Checks that a reply continues at the current position. Returns the position in the file.
    fn admit(&mut self, piece: &Piece) -> Result<u64> {
        // Before the first delivered byte, every reply can start again.
        if self.delivered == 0 {
            self.pinned = Some(Pinned::by(piece, self.download.wanted)?);
        }

        let pinned = self.pinned.as_ref().expect("the first reply pins, and bytes follow a reply");
        if !pinned.is_same_file(piece) {
            let message = "the file was replaced during the download: download it again";
            return Err(Error::new(ErrorKind::Conflict, message));
        }

        let position = pinned.first + self.delivered;
        if piece.start > position {
            let start = piece.start;
            let message = format!("the reply starts at byte {start} instead of {position}");
            return Err(Error::protocol(message));
        }
        Ok(position)
    }

    /// Returns the number of remaining bytes, if known.
    fn left(&self) -> Option<u64> {
        let pinned = self.pinned.as_ref()?;
        pinned.end.map(|end| end.saturating_sub(pinned.first + self.delivered))
    }

    fn count(&mut self, chunk: &[u8]) {
        self.hasher.update(chunk);
        self.delivered += chunk.len() as u64;

        if let Some(report) = &self.download.on_progress {
            let total_bytes = self.left().map(|left| left + self.delivered);
            report(Progress { done_bytes: self.delivered, total_bytes });
        }
    }

    fn broken_off(&self, error: Error) -> Error {
        if self.delivered == 0 || !error.is_transient() {
            return error;
        }
        let message =
            format!("the download broke off after {} bytes: {}", self.delivered, error.message());
        error.wrapped(ErrorKind::Interrupted, message)
    }
}

impl Pinned {
    fn by(piece: &Piece, wanted: Wanted) -> Result<Self> {
        // For a suffix of a file with unknown length, the reply contains the position.
        let (first, end) = wanted.window(piece.total).unwrap_or((piece.start, piece.end));
        if end.is_some_and(|end| end <= first) && wanted != Wanted::Whole {
            return Err(Error::invalid(format!(
                "the range starts after the end of the file: {first}"
            )));
        }

        let headers = piece.response.headers();
        Ok(Self {
            digest: piece.digest,
            first,
            end,
            origin: piece.origin,
            etag: header(headers, &ETAG),
            content_type: header(headers, &CONTENT_TYPE),
        })
    }

    /// Compares the digests. Two replies of the provider must also have the same ETag, because the
    /// digest was read shortly after the redirect.
    fn is_same_file(&self, piece: &Piece) -> bool {
        let both_provider = self.origin == Origin::Provider && piece.origin == Origin::Provider;
        self.digest == piece.digest
            && (!both_provider || self.etag == header(piece.response.headers(), &ETAG))
    }

    /// Returns the value for `If-Range`: a strong ETag of the service (RFC 9110 §13.1.5).
    fn if_range(&self) -> Option<&str> {
        let etag = self.etag.as_deref().filter(|etag| !etag.starts_with("W/"));
        etag.filter(|_| self.origin == Origin::Service)
    }
}

/// Returns true if the value of `If-Match` or `If-None-Match` matches this digest.
fn names(etags: &str, digest: &Digest) -> bool {
    etags.trim() == "*" || etags.contains(&format!("\"{}\"", hex::encode(digest)))
}
