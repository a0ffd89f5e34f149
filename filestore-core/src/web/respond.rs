//! Whole replies, for an application with routes of its own.

use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderValue, Method, Response};

use super::body::Body;
use super::payload::Payload;
use super::problems::refused;
use super::read_request::{ReadRequest, Refusal};
use crate::domain::error::Error;
use crate::domain::id::FileId;
use crate::service::ServedFiles;
use crate::variant::{Fit, Motion, VariantSize};

/// Answers a request for a file: with its bytes, a range of them, a 304 or a problem document.
///
/// This is the code of the filestore server. It evaluates `Range`, `If-Match`, `If-None-Match`, `If-Modified-Since`,
/// `If-Unmodified-Since` and `If-Range`, answers `HEAD` without opening the file, and sends only headers with which a
/// browser cannot run the file. A file of another organization than those of the scope is a 404.
///
/// The bytes of a file at a provider pass through your program. To send the client to the provider instead, first
/// call [`ServedFiles::redirect`](crate::ServedFiles::redirect).
///
/// To choose a disposition or a cache policy, use [`ReadRequest`]. For example, with axum:
///
/// ```
/// use filestore_core::web::{Body, respond};
/// use filestore_core::{FileId, FileStore, Scope};
/// use http::request::Parts;
///
/// async fn download(store: &FileStore, id: FileId, parts: Parts) -> http::Response<Body> {
///     let own = Scope::Organizations(vec!["42".parse().expect("it is a name")]);
///     respond(&parts, store.serving(&own), id).await
/// }
/// ```
pub async fn respond(parts: &Parts, files: ServedFiles<'_>, id: FileId) -> Response<Body> {
    ReadRequest::of(parts).respond(files, id).await
}

/// Answers a request for a gallery variant of a file: with a picture, a 304 or a problem document. See
/// [`Files::variant`](crate::Files::variant) for the sizes.
///
/// ```
/// use filestore_core::web::{Body, respond_with_variant};
/// use filestore_core::{FileId, FileStore, Fit, Scope};
/// use http::request::Parts;
///
/// async fn thumbnail(store: &FileStore, id: FileId, parts: Parts) -> http::Response<Body> {
///     respond_with_variant(&parts, store.serving(&Scope::All), id, 200, Fit::Cover).await
/// }
/// ```
pub async fn respond_with_variant<S>(
    parts: &Parts,
    files: ServedFiles<'_>,
    id: FileId,
    size: S,
    fit: Fit,
) -> Response<Body>
where
    S: TryInto<VariantSize>,
    S::Error: Into<Error>,
{
    ReadRequest::of(parts).respond_with_variant(files, id, size, fit).await
}

impl ReadRequest<'_> {
    /// Answers the request with the content of a file. See [`respond`].
    pub async fn respond(&self, files: ServedFiles<'_>, id: FileId) -> Response<Body> {
        let answer =
            files.with_record(id, |record| async move { self.content(files, &record).await });
        self.whole(answer.await)
    }

    /// Answers the request with a gallery variant of a file. See [`respond_with_variant`].
    pub async fn respond_with_variant<S>(
        &self,
        files: ServedFiles<'_>,
        id: FileId,
        size: S,
        fit: Fit,
    ) -> Response<Body>
    where
        S: TryInto<VariantSize>,
        S::Error: Into<Error>,
    {
        let wanted = match size.try_into() {
            Ok(size) => (size, fit, Motion::Still),
            Err(error) => return self.whole(Err(Refusal::Core(error.into()))),
        };
        let answer = files
            .with_record(id, |record| async move { self.variant(files, &record, wanted).await });
        self.whole(answer.await)
    }

    /// Makes the body of a reply: none for HEAD, which HTTP/2 servers would send as it is.
    fn whole(&self, answer: Result<Response<Payload>, Refusal>) -> Response<Body> {
        let whole = match answer {
            Ok(response) => {
                let length = response.headers().get(CONTENT_LENGTH).map(HeaderValue::to_str);
                let length = length.and_then(Result::ok).and_then(|length| length.parse().ok());
                response.map(|payload| Body::of(payload, length))
            }
            Err(refusal) => refused(&refusal),
        };
        if *self.method == Method::HEAD { whole.map(|_| Body::default()) } else { whole }
    }
}
