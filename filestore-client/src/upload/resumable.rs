//! Uploads that resume, in the protocol tus 1.0 (<https://tus.io>).
//!
//! # Steps
//! The client creates an empty upload, and sends the file in pieces. The server replies to a piece after its bytes
//! are on the disk. If a piece fails, the client asks for the offset and continues there. The reply to the last
//! piece contains the record.
//!
//! # Restarts
//! The server finds an unfinished upload by its idempotency key. So a program that sends the same file with the same
//! key again continues the upload, also after a restart.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use filestore_core::api::ErrorCode;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, IF_MATCH, LOCATION};
use reqwest::{Method, RequestBuilder};
use sha2::{Digest as _, Sha256};

use super::IDEMPOTENCY_KEY;
use crate::client::Client;
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::progress::{OnProgress, Progress};
use crate::transport::Call;
use crate::transport::reply::{Received, header};
use crate::transport::retry::Attempts;
use crate::upload::item::Item;
use crate::upload::multipart::encode_piece;
use crate::upload::pieces::{Piece, Pieces};

/// The size from which the client sends a file in pieces, in bytes: 16 MiB.
pub(crate) const THRESHOLD_BYTES: u64 = 16 << 20;

/// Number of bytes in one request.
const PIECE_BYTES: u64 = 32 << 20;

/// Number of bytes in one request to which the client goes down if a proxy refuses larger bodies.
const LEAST_PIECE_BYTES: u64 = 1 << 20;

/// Number of times that the offset can be wrong without progress.
const MOST_MISMATCHES: u32 = 3;

const VERSION: HeaderName = HeaderName::from_static("tus-resumable");
const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
const UPLOAD_DEFER_LENGTH: HeaderName = HeaderName::from_static("upload-defer-length");
const UPLOAD_METADATA: HeaderName = HeaderName::from_static("upload-metadata");
const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const FILE_ID: HeaderName = HeaderName::from_static("file-id");
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// The media type of a piece.
const BYTES: &str = "application/offset+octet-stream";

/// Decides when an upload continues after a broken connection instead of starting again.
///
/// A resumable upload needs a request for every 32 MiB, and the server makes these bytes durable before it replies.
/// If the server has no resumable uploads, the client sends a form. The client also sends a form if several servers
/// share a store, and the pieces do not reach the server that has the bytes before.
///
/// ```no_run
/// use filestore_client::{Resumable, Upload};
///
/// # fn run() -> filestore_client::Result<()> {
/// let upload = Upload::from_path("holiday.mp4")?
///     .resumable(Resumable::Always)
///     .idempotency_key("holiday.mp4 of 2026-11-26");
/// # let _ = upload;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resumable {
    /// Paths and bytes of 16 MiB and more.
    #[default]
    Auto,
    /// Every file. For a reader, the client keeps up to 32 MiB in memory.
    Always,
    /// No file.
    Never,
}

impl Resumable {
    /// Returns true if `item` is sent in pieces.
    pub(super) fn applies_to(
        self,
        item: &Item,
    ) -> impl Future<Output = Result<bool>> + Send + use<> {
        let (len, is_repeatable) = (item.len(), item.is_repeatable());
        async move {
            Ok(match self {
                Self::Auto if !is_repeatable => false,
                Self::Auto => len.await?.is_some_and(|len| len >= THRESHOLD_BYTES),
                Self::Always => true,
                Self::Never => false,
            })
        }
    }
}

/// A resumable upload to create.
#[derive(Default)]
pub(super) struct Plan {
    /// The fields of the query.
    pub(super) place: Vec<(&'static str, String)>,
    /// The other fields.
    pub(super) fields: Vec<(&'static str, String)>,
    pub(super) idempotency_key: Option<String>,
    pub(super) if_match: Option<String>,
    pub(super) on_progress: Option<OnProgress>,
}

/// The result of a resumable upload.
pub(super) enum Sent {
    /// The last reply, and the digest of the sent bytes.
    Done(Received, Digest),
    /// The server has no resumable uploads, or another server has the bytes. The item can be sent as a form.
    Unsupported,
}

impl Client {
    /// Sends `item` in pieces.
    pub(super) async fn send_in_pieces(&self, plan: &Plan, item: &mut Item) -> Result<Sent> {
        let len = item.len().await?;
        let created = match self.create_upload(plan, len).await {
            Ok(created) => created,
            Err(error) if is_unsupported(&error) => return Ok(Sent::Unsupported),
            Err(error) => return Err(error),
        };

        let (source, len) = item.source().await?;
        let mut transfer = Transfer {
            client: self,
            plan,
            pieces: Pieces::new(source, len),
            segment: segment_of(&created)?,
            hasher: Sha256::new(),
            told: 0,
            sent: None,
            piece_bytes: PIECE_BYTES,
            mismatches: 0,
            is_again: false,
        };
        match transfer.run(created).await {
            Ok(last) => Ok(Sent::Done(last, transfer.hasher.finalize().into())),
            Err(error) if is_elsewhere(&error) && item.is_repeatable() => {
                transfer.cancel().await;
                Ok(Sent::Unsupported)
            }
            Err(error) => Err(error),
        }
    }

    async fn create_upload(&self, plan: &Plan, len: Option<u64>) -> Result<Received> {
        let mut request = self
            .request(Method::POST, &["uploads"])
            .query(&plan.place)
            .header(VERSION, "1.0.0")
            .header(PREFER, "return=representation");
        request = match len {
            Some(len) => request.header(UPLOAD_LENGTH, len),
            None => request.header(UPLOAD_DEFER_LENGTH, "1"),
        };
        if !plan.fields.is_empty() {
            request = request.header(UPLOAD_METADATA, encoded(&plan.fields));
        }
        if let Some(etag) = &plan.if_match {
            request = request.header(IF_MATCH, etag);
        }

        let call = match &plan.idempotency_key {
            Some(key) => Call::idempotent(request.header(IDEMPOTENCY_KEY, key)),
            None => Call::once(request),
        };
        self.perform(call).await
    }
}

/// A resumable upload on its way.
struct Transfer<'a> {
    client: &'a Client,
    plan: &'a Plan,
    pieces: Pieces,
    /// The last segment of the upload's URL. A secret.
    segment: String,
    /// The digest of the bytes before `told`.
    hasher: Sha256,
    /// The number of bytes that the server has made durable.
    told: u64,
    /// The end of the piece that was sent last, and the digest of the bytes before this end.
    sent: Option<(u64, Sha256)>,
    piece_bytes: u64,
    /// The number of wrong offsets since the last progress.
    mismatches: u32,
    /// True if the upload was created a second time, because the server had lost the first.
    is_again: bool,
}

impl Transfer<'_> {
    /// Sends all pieces, and returns the last reply.
    async fn run(&mut self, created: Received) -> Result<Received> {
        let mut attempts = Attempts::of_begun(self.client.settings().retry);
        let mut reply = created;
        loop {
            if self.advance(&reply.headers).await? {
                attempts.reset();
            }
            if is_last_reply(&reply) {
                return Ok(reply);
            }
            reply = match self.send_piece().await {
                Ok(reply) => reply,
                Err(error) => self.recover(error, &mut attempts).await?,
            };
        }
    }

    /// Takes over the offset in a reply. Returns true after progress.
    async fn advance(&mut self, headers: &HeaderMap) -> Result<bool> {
        let offset = offset_of(headers)?;
        if self.pieces.len.is_some_and(|len| offset > len) || offset < self.told {
            return Err(Error::protocol(format!(
                "the server named an impossible offset: {offset}"
            )));
        }
        let is_news = offset > self.told;
        if is_news {
            match self.sent.take() {
                Some((end, hasher)) if end == offset => self.hasher = hasher,
                // An earlier process has sent these bytes, or only a part of the piece arrived.
                _ => {
                    let hashed = self.pieces.hash(&mut self.hasher, self.told, offset).await;
                    hashed.map_err(|error| Error::io("reading the source", error))?;
                }
            }
            (self.told, self.mismatches) = (offset, 0);
        }
        if let Some(report) = &self.plan.on_progress {
            report(Progress { done_bytes: offset, total_bytes: self.pieces.len });
        }
        Ok(is_news)
    }

    /// Sends the next piece, and returns the reply.
    async fn send_piece(&mut self) -> Result<Received> {
        let piece = self.pieces.piece(self.told, self.piece_bytes).await;
        let Piece { reader, len, is_last } =
            piece.map_err(|error| Error::io("reading the source", error))?;
        let mut request = self
            .request(Method::PATCH)
            .header(UPLOAD_OFFSET, self.told)
            .header(CONTENT_TYPE, BYTES)
            .header(CONTENT_LENGTH, len)
            .header(PREFER, "return=representation");
        if is_last && self.pieces.len.is_none() {
            request = request.header(UPLOAD_LENGTH, self.told + len);
        }
        if len == 0 {
            let last = self.client.perform(Call::idempotent(request)).await?;
            return if is_last_reply(&last) { Ok(last) } else { Err(without_record()) };
        }
        let (body, sending) = encode_piece(reader, len, self.hasher.clone());
        let reply = self.client.send_body(request, body, &sending).await?;
        if offset_of(&reply.headers)? <= self.told {
            return Err(Error::protocol("the server accepted a piece, but kept no byte of it"));
        }
        let hasher = sending.lock().hashers.pop();
        self.sent = hasher.map(|hasher| (self.told + len, hasher));
        Ok(reply)
    }

    /// Returns the state of the upload after a failed piece, as a reply. Fails if another try has no use.
    async fn recover(&mut self, error: Error, attempts: &mut Attempts) -> Result<Received> {
        if error.code() == Some(&ErrorCode::UploadOffsetMismatch) {
            self.mismatches += 1;
            if self.mismatches > MOST_MISMATCHES {
                return Err(error);
            }
        } else if is_refusal_of_a_proxy(&error) && self.piece_bytes > LEAST_PIECE_BYTES {
            self.piece_bytes = (self.piece_bytes / 2).max(LEAST_PIECE_BYTES);
        } else if is_gone(&error) {
            return self.create_again(error).await;
        } else if is_elsewhere(&error) {
            return Err(error);
        } else {
            attempts.pause(error).await?;
        }

        loop {
            match self.client.perform(Call::idempotent(self.request(Method::HEAD))).await {
                Err(error) if is_gone(&error) => return self.create_again(error).await,
                Err(error) if is_elsewhere(&error) => return Err(error),
                Err(error) => attempts.pause(error).await?,
                outcome => return outcome,
            }
        }
    }

    /// Creates the upload again, once. Starts at the first byte, so only a source that can be read again goes on.
    async fn create_again(&mut self, error: Error) -> Result<Received> {
        if std::mem::replace(&mut self.is_again, true) {
            return Err(error);
        }
        let created = self.client.create_upload(self.plan, self.pieces.len).await?;
        self.segment = segment_of(&created)?;
        (self.hasher, self.told, self.sent) = (Sha256::new(), 0, None);
        Ok(created)
    }

    /// Ends the upload at the server, as far as that succeeds. Otherwise it ends with its lifetime.
    async fn cancel(&mut self) {
        if let Err(error) = self.client.perform(Call::once(self.request(Method::DELETE))).await {
            tracing::debug!(%error, "the upload stays at the server until it expires");
        }
    }

    fn request(&self, method: Method) -> RequestBuilder {
        self.client.request(method, &["uploads", &self.segment]).header(VERSION, "1.0.0")
    }
}

/// Returns true if the server has no `/uploads`. Replies about a missing file or a foreign organization have other
/// statuses, or the form repeats them.
fn is_unsupported(error: &Error) -> bool {
    matches!(error.status(), Some(404 | 405))
}

/// Returns true if a proxy in front of the server refused a large body: the server names a code.
fn is_refusal_of_a_proxy(error: &Error) -> bool {
    error.status() == Some(413) && error.code().is_none()
}

/// Returns true if another server has the bytes of the upload.
fn is_elsewhere(error: &Error) -> bool {
    error.code() == Some(&ErrorCode::UploadElsewhere)
}

/// Returns true if the server no longer has the upload.
fn is_gone(error: &Error) -> bool {
    matches!(error.status(), Some(404 | 410))
}

/// Returns the offset that a reply names.
fn offset_of(headers: &HeaderMap) -> Result<u64> {
    let offset = match header(headers, &UPLOAD_OFFSET) {
        // A creation without bytes need not name an offset (tus 1.0, Creation).
        None if headers.contains_key(LOCATION) => Some(0),
        named => named.and_then(|text| text.parse().ok()),
    };
    offset.ok_or_else(|| Error::protocol("the server answered an upload without an offset"))
}

/// Returns true if the reply names the stored file and has its record.
fn is_last_reply(reply: &Received) -> bool {
    reply.headers.contains_key(FILE_ID) && !reply.body.is_empty()
}

/// The error for a server of tus that stores bytes and makes no file of them.
fn without_record() -> Error {
    Error::protocol("the server has all bytes of the upload, but names no file")
}

/// Returns the last segment of the `Location`. The client keeps its own base URL, so the key never goes to another
/// host.
fn segment_of(created: &Received) -> Result<String> {
    let location = header(&created.headers, &LOCATION).unwrap_or_default();
    let segment = location.rsplit('/').next().unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if segment.is_empty() || segment.starts_with('.') || !segment.bytes().all(is_plain) {
        return Err(Error::protocol("the server created an upload without a URL"));
    }
    Ok(segment.to_owned())
}

/// Writes fields as `Upload-Metadata`.
fn encoded(fields: &[(&'static str, String)]) -> String {
    let pairs: Vec<_> =
        fields.iter().map(|(key, value)| format!("{key} {}", STANDARD.encode(value))).collect();
    pairs.join(",")
}

/// Fails with [`ErrorKind::Digest`](crate::ErrorKind) if the stored bytes differ from the sent bytes. `etag` is the quoted digest.
pub(super) fn check_etag(file_id: &str, etag: Option<&str>, sent: &Digest) -> Result<()> {
    let stored = etag.unwrap_or_default().trim_matches('"');
    super::sending::check_stored(file_id, stored, sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest;
    use crate::error::ErrorKind;

    #[tokio::test]
    async fn large_files_are_sent_in_pieces_and_readers_on_request() {
        let (large, small) = (vec![0; 16 << 20], vec![0; (16 << 20) - 1]);
        let reader = || Item::from_reader(tokio::io::empty(), Some(1 << 30));
        for (how, item, expected) in [
            (Resumable::Auto, Item::from_bytes(large), true),
            (Resumable::Auto, Item::from_bytes(small), false),
            (Resumable::Auto, reader(), false),
            (Resumable::Always, reader(), true),
            (Resumable::Always, Item::from_bytes(""), true),
            (Resumable::Never, reader(), false),
        ] {
            assert_eq!(how.applies_to(&item).await.unwrap(), expected, "{how:?} {item:?}");
        }
    }

    #[test]
    fn fields_are_base64_with_commas_between() {
        let fields = [("original_name", "grüße.txt".to_owned()), ("upload_temp", "true".into())];
        assert_eq!(encoded(&fields), "original_name Z3LDvMOfZS50eHQ=,upload_temp dHJ1ZQ==");
    }

    #[test]
    fn the_stored_digest_is_the_etag() {
        let sum = digest::from_hex(&"ab".repeat(32)).unwrap();
        check_etag("01F", Some(&format!("\"{}\"", "ab".repeat(32))), &sum).unwrap();
        for bad in [None, Some("\"\""), Some("W/\"ab\"")] {
            assert_eq!(check_etag("01F", bad, &sum).unwrap_err().kind(), ErrorKind::Digest);
        }
    }
}
