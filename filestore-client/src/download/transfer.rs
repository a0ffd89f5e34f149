//! The loop behind a download: ask, follow a redirect, hand on bytes, and resume what broke off.
//!
//! A file is identified during a download by its SHA-256, known from the first reply (`Repr-Digest`)
//! or, behind a redirect, from the record. Every later piece must be of the same file, wherever it
//! comes from: a file may move from the server to its provider while it is read. The service's
//! strong ETag goes along as `If-Range`; to the provider's host nothing goes but `Range`.

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
use crate::digest::{Digest, from_hex, from_repr_digest, to_hex};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Progress;
use crate::transport::Call;
use crate::transport::reply::{header, silent, unexpected_redirect};
use crate::transport::retry::{Attempts, Repeat};

/// A download under way. [`Transfer::next`] yields its bytes, then [`Transfer::conclude`] checks
/// them.
pub(crate) struct Transfer {
    download: Download,
    attempts: Attempts,
    /// The reply that is being read, while a connection stands.
    piece: Option<Piece>,
    pinned: Option<Pinned>,
    delivered: u64,
    /// Bytes delivered when the last attempt failed; more since then is progress.
    delivered_before: u64,
    hasher: Sha256,
}

/// The facts that the first reply settled.
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
            attempts: Attempts::new(policy, Repeat::Always),
            piece: None,
            pinned: None,
            delivered: 0,
            delivered_before: 0,
            hasher: Sha256::new(),
        }
    }

    /// Gives the download back, of a transfer that has delivered nothing.
    pub(crate) fn into_download(self) -> Download {
        self.download
    }

    /// Returns the next bytes, or `None` after the last; connects anew where that may help.
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

    /// Checks the digest of a whole download, once [`next`](Self::next) has returned `None`.
    pub(crate) fn conclude(&mut self) -> Result<Downloaded> {
        let pinned = self.pinned.take().expect("a finished attempt has pinned");
        let received: Digest = self.hasher.finalize_reset().into();

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

    /// Reads on where the last piece ended, over a new connection if there is none.
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

    /// Judges the end of a body: the end of the download, or a short one.
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

    /// Asks the service, and follows its redirect once.
    async fn connect(&self) -> Result<Piece> {
        let piece = self.connect_unless(None).await?;
        piece.ok_or_else(|| Error::protocol("the server answered 304 to an unconditional request"))
    }

    /// Connects as [`connect`](Self::connect) does; `None` if the file still has this ETag.
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

    /// Takes the bytes that the service itself sends.
    async fn served(&self, response: Response) -> Result<Piece> {
        let client = &self.download.client;
        let response = client.accept(response).await?;
        let repr_digest = header(response.headers(), &HeaderName::from_static("repr-digest"));
        let digest = match repr_digest.as_deref().and_then(from_repr_digest) {
            Some(digest) => digest,
            // A proxy on the way removed the header.
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

    /// Follows the service's redirect to a provider, unless the file still has the ETag `unless`. The
    /// service ignores conditions there (RFC 9110 §13.2.1), so they are judged by the record.
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
            let message = "the file does not have the expected ETag any more";
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
        let record: FileRecord = client.json(Call::repeatable(request)).await?;

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

    /// Checks that a reply goes on where the last one ended, and returns the position in the file.
    fn admit(&mut self, piece: &Piece) -> Result<u64> {
        // Until a byte is delivered, every reply may start anew.
        if self.delivered == 0 {
            self.pinned = Some(Pinned::by(piece, self.download.wanted)?);
        }

        let pinned = self.pinned.as_ref().expect("the first reply pins, and bytes follow a reply");
        if !pinned.is_same_file(piece) {
            let message = "the file was replaced while it was downloaded: download it again";
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

    /// Returns how many bytes are still to come, where that is known.
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
        // A suffix of a file of unknown length is where the reply says it is.
        let (first, end) = wanted.window(piece.total).unwrap_or((piece.start, piece.end));
        if end.is_some_and(|end| end <= first) && wanted != Wanted::Whole {
            return Err(Error::invalid(format!(
                "the range starts behind the end of the file: {first}"
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

    /// Compares the digests, which decide. Two replies of the provider must also agree on their
    /// ETag: the digest behind a redirect was read a moment after the redirect.
    fn is_same_file(&self, piece: &Piece) -> bool {
        let both_provider = self.origin == Origin::Provider && piece.origin == Origin::Provider;
        self.digest == piece.digest
            && (!both_provider || self.etag == header(piece.response.headers(), &ETAG))
    }

    /// Returns what `If-Range` may hold (RFC 9110 §13.1.5): a strong ETag, of the service's own.
    fn if_range(&self) -> Option<&str> {
        let etag = self.etag.as_deref().filter(|etag| !etag.starts_with("W/"));
        etag.filter(|_| self.origin == Origin::Service)
    }
}

/// Tests whether the value of `If-Match` or `If-None-Match` names the file with this digest.
fn names(etags: &str, digest: &Digest) -> bool {
    etags.trim() == "*" || etags.contains(&format!("\"{}\"", to_hex(digest)))
}
