//! Documents that are sent as gzip, for large lists.
//!
//! # Security
//! A compressed length tells an observer of the network if two texts in one reply are alike (BREACH). These documents
//! contain no secret: no key, no signature and no token. A page of another site cannot add a key to a request, so it
//! cannot make a browser repeat one with texts of its choice.

use std::io::Write as _;

use bytes::Bytes;
use filestore_core::Error;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use warp::reply::Response;

use super::document;
use super::error::Failure;
use crate::http::accept::{self, Coding};

/// The size up to which a document is sent as it is: it fits into one packet.
const PLAIN_BYTES: usize = 1024;

/// The size up to which the task of the request compresses. This takes less than a millisecond.
const INLINE_BYTES: usize = 64 << 10;

/// The level, 1 to 9. Higher levels save few bytes of JSON and take several times as long.
const LEVEL: Compression = Compression::new(4);

/// Replies 200 with a document of `value`: as gzip, if it is large and the request accepts gzip.
pub(crate) async fn ok_packed(
    request: &HeaderMap,
    value: &impl Serialize,
) -> Result<Response, Failure> {
    let json = serde_json::to_vec(value).map_err(|e| Error::internal("encoding a reply", e))?;
    let is_packed =
        json.len() > PLAIN_BYTES && accept::coding(request, &[Coding::Gzip]) == Coding::Gzip;

    let body = if is_packed { packed(json).await? } else { Bytes::from(json) };
    let mut response = document::of_text(StatusCode::OK, body);
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    if is_packed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(Coding::Gzip.name()));
    }
    Ok(response)
}

/// Compresses a document, apart from the tasks of requests if it is large.
async fn packed(json: Vec<u8>) -> Result<Bytes, Error> {
    if json.len() <= INLINE_BYTES {
        return gzip(&json);
    }
    let packing = tokio::task::spawn_blocking(move || gzip(&json));
    packing.await.map_err(|e| Error::internal("compressing a reply", e))?
}

fn gzip(json: &[u8]) -> Result<Bytes, Error> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(json.len() / 4), LEVEL);
    let written = encoder.write_all(json).and_then(|()| encoder.finish());
    Ok(written.map_err(|e| Error::internal("compressing a reply", e))?.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use http::header::{ACCEPT_ENCODING, CONTENT_TYPE};
    use http_body_util::BodyExt as _;

    use super::*;

    async fn asked(accepted: &'static str, value: &[String]) -> (HeaderMap, Bytes) {
        let request = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(accepted))]);
        let (head, body) = ok_packed(&request, &value).await.unwrap().into_parts();
        assert_eq!(head.headers[VARY], "Accept-Encoding", "also where nothing is compressed");
        assert_eq!(head.headers[CONTENT_TYPE], "application/json");
        (head.headers, body.collect().await.unwrap().to_bytes())
    }

    #[tokio::test]
    async fn a_large_document_is_gzip_for_those_who_take_it() {
        for length in [30, 1000, 100_000] {
            let value: Vec<String> = (0..length).map(|n| format!("a name of a file {n}")).collect();
            let plain = serde_json::to_vec(&value).unwrap();

            let (headers, body) = asked("br, gzip", &value).await;
            let is_packed = headers.get(CONTENT_ENCODING).is_some_and(|coding| coding == "gzip");
            assert_eq!(is_packed, plain.len() > PLAIN_BYTES, "{length}");
            if is_packed {
                let mut read = Vec::new();
                GzDecoder::new(&body[..]).read_to_end(&mut read).unwrap();
                assert!(read == plain && body.len() < plain.len() / 3, "{length}");
            } else {
                assert_eq!(body, plain);
            }

            let (headers, body) = asked("gzip;q=0", &value).await;
            assert!(headers.get(CONTENT_ENCODING).is_none() && body == plain, "{length}");
        }
    }
}
