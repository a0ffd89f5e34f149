//! Arriving request bodies, and checks of their headers before they are read.

use std::pin::Pin;

use bytes::{Buf, Bytes};
use filestore_core::{Error, ErrorKind};
use futures_util::{Stream, TryStreamExt};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, TRANSFER_ENCODING};
use warp::Filter;

use crate::error::{self, Refusal, RefusalKind};
use crate::listen::body::BoxError;
use crate::reply::Failure;

/// An arriving body.
pub(crate) type Body = Pin<Box<dyn Stream<Item = Result<Bytes, BoxError>> + Send>>;

/// Extracts the body. The body is not read, and `100 Continue` is not sent, before the first poll.
pub(crate) fn body() -> impl Filter<Extract = (Body,), Error = warp::Rejection> + Copy {
    warp::body::stream().map(boxed)
}

fn boxed<B: Buf>(body: impl Stream<Item = Result<B, warp::Error>> + Send + 'static) -> Body {
    let chunks = body.map_ok(|mut chunk| chunk.copy_to_bytes(chunk.remaining()));
    Box::pin(chunks.map_err(BoxError::from))
}

/// Returns the media type of the body. `None` if it is absent, repeated or not text.
pub(super) fn content_type(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Refuses a body with a content coding, because this server decodes none. A coded body would look malformed,
/// or would be stored in coded form.
pub(crate) fn refuse_coding(headers: &HeaderMap) -> Result<(), Failure> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let plain = codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    if plain { Ok(()) } else { Err(Failure::UnsupportedCoding) }
}

/// Refuses a body with a transfer coding that the server does not undo (RFC 9112 section 6.1: 501). Taken
/// as chunked alone, the coded bytes would be stored for the file.
pub(crate) fn check_transfer_coding(headers: &HeaderMap) -> error::Result<()> {
    let values = headers.get_all(TRANSFER_ENCODING).iter();
    let codings = values.flat_map(|value| value.as_bytes().split(|b| *b == b','));
    let mut codings = codings.map(<[u8]>::trim_ascii).filter(|coding| !coding.is_empty());

    let mut count = 0;
    let other = codings.find(|coding| {
        count += 1;
        !coding.eq_ignore_ascii_case(b"chunked")
    });
    let refused = match (other, count) {
        (Some(other), _) => {
            let coding = String::from_utf8_lossy(other);
            let message = format!("the only transfer coding is chunked, not {coding}");
            Refusal::new(RefusalKind::NotImplemented, message).with_allowed(&["chunked"])
        }
        (None, 0 | 1) => return Ok(()),
        (None, _) => {
            let message = "a body is chunked once (RFC 9112 section 7)";
            Refusal::new(RefusalKind::MalformedRequest, message)
        }
    };
    Err(refused.with_field("Transfer-Encoding").into())
}

pub(super) fn too_large(limit: u64) -> Error {
    Error::new(ErrorKind::TooLarge, format!("the body has more bytes than allowed: {limit}"))
        .with_limit(limit)
}

#[cfg(test)]
mod tests {
    use filestore_core::api::ErrorCode;

    use super::*;

    #[test]
    fn chunked_once_is_the_only_transfer_coding() {
        for (values, refused) in [
            (&[][..], None),
            (&["chunked"], None),
            (&["Chunked "], None),
            (&["gzip, chunked"], Some(ErrorCode::NotImplemented)),
            (&["gzip", "chunked"], Some(ErrorCode::NotImplemented)),
            (&["identity, chunked"], Some(ErrorCode::NotImplemented)),
            (&["chunked, gzip"], Some(ErrorCode::NotImplemented)),
            (&["chunked, chunked"], Some(ErrorCode::MalformedRequest)),
            (&["chunked", "chunked"], Some(ErrorCode::MalformedRequest)),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(TRANSFER_ENCODING, value.parse().unwrap());
            }
            let found = check_transfer_coding(&headers).err();
            assert_eq!(found.as_ref().map(error::Error::code), refused, "{values:?}");
            let field = found.and_then(|error| error.details().field.clone());
            assert_eq!(field.is_some(), refused.is_some());
        }
    }
}
