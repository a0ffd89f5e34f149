//! Reads replies: successful replies and problem documents.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use filestore_core::api::{ErrorCode, Problem};
use reqwest::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderName, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::client::Client;
use crate::error::{Error, ErrorKind, Result};

/// Maximum size of a JSON reply in bytes. A page of 1000 records has about 1 MiB.
pub(crate) const JSON_LIMIT_BYTES: usize = 16 << 20;
/// The header with the id of the request in the server's log.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header that marks a stored reply for an idempotency key.
const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Maximum size of a problem document in bytes.
const PROBLEM_LIMIT_BYTES: usize = 64 << 10;

/// A reply: its value and its headers.
///
/// For example, use the ETag of a reply to replace a file only if it is unchanged:
///
/// ```no_run
/// use filestore_client::{Change, Client, Item};
///
/// # async fn run(client: Client) -> filestore_client::Result<()> {
/// let info = client.info("01JD0000000000000000000000").await?;
/// println!("{} bytes", info.value.file_size);
/// let mut change = Change::replace(Item::from_path("photo.jpg")?);
/// if let Some(etag) = info.etag {
///     change = change.if_match(etag);
/// }
/// client.change(&info.value.file_id, change).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply<T> {
    /// Value of the body.
    pub value: T,
    /// `ETag` header with quotes, ready for `If-Match`.
    pub etag: Option<String>,
    /// Id of the request in the server's log (`X-Request-Id`).
    pub request_id: Option<String>,
    /// All headers.
    pub headers: HeaderMap,
}

impl<T> Reply<T> {
    /// Returns true if this is the stored reply to an earlier request with the same idempotency
    /// key.
    ///
    /// The record is from that time. The file might have been changed or deleted since.
    pub fn is_replayed(&self) -> bool {
        self.headers.get(IDEMPOTENCY_REPLAYED).is_some_and(|value| value == "true")
    }
}

/// A complete successful reply with its raw body.
pub(crate) struct Received {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Received {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let kind = header(&self.headers, &CONTENT_TYPE).unwrap_or_else(|| "no type".to_owned());
            Error::protocol(format!("cannot parse the reply ({kind}): {error}"))
                .with_status(self.status.as_u16())
                .with_source(error)
        })
    }

    /// Parses the body and keeps the headers.
    pub(crate) fn reply<T: DeserializeOwned>(self) -> Result<Reply<T>> {
        Ok(Reply {
            value: self.json()?,
            etag: header(&self.headers, &ETAG),
            request_id: header(&self.headers, &REQUEST_ID),
            headers: self.headers,
        })
    }
}

impl Client {
    /// Accepts 2xx and 304, and turns all other replies into errors.
    pub(crate) async fn accept(&self, response: Response) -> Result<Response> {
        let status = response.status();
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            return Ok(response);
        }
        if status.is_redirection() {
            return Err(unexpected_redirect(&response));
        }
        let headers = response.headers().clone();
        // The status is valid even if the body is incomplete.
        let body = self.read_all(response, PROBLEM_LIMIT_BYTES).await.unwrap_or_default();
        let problem = Some(body)
            .filter(|_| is_json(&headers))
            .and_then(|body| serde_json::from_slice(&body).ok());
        Err(refusal(status, &headers, problem))
    }

    /// Reads a complete successful reply of up to `limit_bytes`.
    pub(crate) async fn finish(&self, response: Response, limit_bytes: usize) -> Result<Received> {
        let response = self.accept(response).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = self.read_all(response, limit_bytes).await?;
        Ok(Received { status, headers, body })
    }

    /// Reads the next piece of a body within the idle timeout.
    pub(crate) async fn next_chunk(
        &self,
        response: &mut Response,
        peer: &str,
    ) -> Result<Option<Bytes>> {
        let idle = self.settings().idle_timeout;
        match timeout(idle, response.chunk()).await {
            Ok(chunk) => chunk.map_err(|error| Error::transport(peer, error)),
            Err(_) => Err(silent(peer, idle)),
        }
    }

    pub(crate) async fn read_all(
        &self,
        mut response: Response,
        limit_bytes: usize,
    ) -> Result<Bytes> {
        let mut body = BytesMut::new();
        while let Some(chunk) = self.next_chunk(&mut response, &self.settings().peer).await? {
            if body.len() + chunk.len() > limit_bytes {
                return Err(Error::protocol(format!(
                    "the reply is longer than allowed: {limit_bytes} bytes"
                )));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

/// Refuses a reply about another file, because the next steps rely on the id. For example, the
/// caller might write a file with that name.
pub(crate) fn expect_same_id(asked: &str, answered: &str) -> Result<()> {
    if asked == answered {
        return Ok(());
    }
    Err(Error::protocol(format!("the server answered about a file other than {asked}")))
}

/// Creates the error for a peer that was silent for `idle`.
pub(crate) fn silent(peer: &str, idle: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format!("{peer} was silent for {idle:?}"))
}

/// Returns a header's value, if it is text.
pub(crate) fn header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// Creates the error for a status and its problem document.
pub(crate) fn refusal(status: StatusCode, headers: &HeaderMap, problem: Option<Problem>) -> Error {
    let kind = kind_of(status, problem.as_ref());
    let said = problem.as_ref().map(|problem| &problem.detail).filter(|detail| !detail.is_empty());
    let message = said.cloned().unwrap_or_else(|| format!("the server answered {status}"));
    let error = Error::new(kind, message)
        .with_status(status.as_u16())
        .with_request_id(header(headers, &REQUEST_ID))
        .with_retry_after(retry_after(headers));
    match problem {
        Some(problem) => error.with_problem(problem),
        None => error,
    }
}

fn kind_of(status: StatusCode, problem: Option<&Problem>) -> ErrorKind {
    let code = problem.map(|problem| &problem.code);
    match (status.as_u16(), code) {
        (422, Some(ErrorCode::DigestMismatch)) => ErrorKind::Digest,
        (502, Some(ErrorCode::ProviderUnavailable)) => ErrorKind::Provider,
        // Without a problem document, a 404 might come from a proxy, so it does not mean that
        // the file is missing.
        (404 | 405, None) => ErrorKind::Protocol,
        (401, _) => ErrorKind::Unauthorized,
        (403, _) => ErrorKind::Forbidden,
        (404, _) => ErrorKind::NotFound,
        (408, _) => ErrorKind::Timeout,
        (409, _) => ErrorKind::Conflict,
        (412, _) => ErrorKind::PreconditionFailed,
        (413, _) => ErrorKind::TooLarge,
        (429 | 503, _) => ErrorKind::Busy,
        (400..=499, _) => ErrorKind::Invalid,
        (500..=599, _) => ErrorKind::Server,
        _ => ErrorKind::Protocol,
    }
}

/// Creates the error for an unexpected redirect.
pub(crate) fn unexpected_redirect(response: &Response) -> Error {
    // The query can contain a signature.
    let target = header(response.headers(), &LOCATION).unwrap_or_default();
    let target = target.split(['?', '#']).next().unwrap_or_default();
    Error::protocol(format!("the server answered with a redirect to {target}"))
        .with_status(response.status().as_u16())
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    header(headers, &RETRY_AFTER)?.trim().parse().ok().map(Duration::from_secs)
}

fn is_json(headers: &HeaderMap) -> bool {
    header(headers, &CONTENT_TYPE).is_some_and(|kind| kind.contains("json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: u16, code: Option<&str>) -> ErrorKind {
        let problem = code.map(|code| Problem::new(code, status, ""));
        refusal(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), problem).kind()
    }

    #[test]
    fn a_404_without_a_problem_document_is_not_a_missing_file() {
        assert_eq!(kind(404, Some("not_found")), ErrorKind::NotFound);
        assert_eq!(kind(404, None), ErrorKind::Protocol);
    }

    #[test]
    fn only_the_service_itself_can_blame_its_provider() {
        assert_eq!(kind(502, Some("provider_unavailable")), ErrorKind::Provider);
        assert_eq!(kind(502, None), ErrorKind::Server);
    }

    #[test]
    fn a_refused_digest_is_a_digest_error() {
        assert_eq!(kind(422, Some("digest_mismatch")), ErrorKind::Digest);
        assert_eq!(kind(422, Some("not_an_image")), ErrorKind::Invalid);
    }
}
