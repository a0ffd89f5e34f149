//! The reply with a gallery variant.
//!
//! For a server, this is the most frequent request. If the variant is in memory, nothing here waits. A conditional
//! request is answered before any pixel is read.

use std::sync::Arc;

use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, Response};

use super::conditional::{Outcome, Validators, evaluate, if_match_holds};
use super::content::{HEADERS, NOSNIFF, not_modified};
use super::etag::EntityTag;
use super::payload::{Payload, Span};
use super::read_request::{ReadRequest, Refusal, Sends};
use super::values::Values;
use crate::domain::error::{Error, ErrorKind};
use crate::domain::file::record::FileRecord;
use crate::domain::file::serving::CSP_SANDBOX;
use crate::service::ServedFiles;
use crate::storage::SendFile;
use crate::variant::{Fit, Motion, Variant, VariantKey, VariantSize};

/// The size of a reply's own header values.
const VALUES_BYTES: usize = 64;

const WEBP: &str = "image/webp";

impl ReadRequest<'_> {
    /// Creates the reply with a gallery variant of `record`: 200 or 304. `None` if the record changed in the
    /// meantime, as for [`content`](Self::content). A variant has a weak entity tag and no ranges.
    ///
    /// Errors as for [`ServedFiles::variant_of`](crate::ServedFiles::variant_of). `PreconditionFailed` for every
    /// `If-Match` except `*`.
    pub async fn variant(
        &self,
        files: ServedFiles<'_>,
        record: &Arc<FileRecord>,
        (size, fit, motion): (VariantSize, Fit, Motion),
    ) -> Result<Option<Response<Payload>>, Refusal> {
        let key = files.variant_key(record, size, fit, motion);
        let tag = key.etag();
        let has_variants = files.may_have_variants(record);
        if has_variants && !is_wanted(self.headers, &tag) {
            let message = "a variant has a weak tag, which If-Match never matches";
            return Err(Error::new(ErrorKind::PreconditionFailed, message).into());
        }

        let mut values = Values::with_capacity(VALUES_BYTES);
        let mut response = if has_variants && is_unmodified(self.headers, &tag) {
            not_modified()
        } else if let Some(file) = self.sendable(files, &key) {
            let length = file.remaining();
            described(Payload::Sent(file), WEBP, length, &mut values)
        } else {
            let variant = match files.cached_variant(&key) {
                Some(variant) => variant,
                None => match files.variant_of(record, size, fit, motion).await {
                    Ok(variant) => variant,
                    Err(error) if error.kind() == ErrorKind::Conflict => return Ok(None),
                    Err(error) => return Err(error.into()),
                },
            };
            match self.picture(files, record, variant, &mut values).await? {
                Some(response) => response,
                None => return Ok(None),
            }
        };

        let headers = response.headers_mut();
        let tag = values.join(&[&tag]);
        headers.insert(ETAG, tag.expect("a header value allows every character of a tag"));
        headers.insert(CACHE_CONTROL, self.caching.value(&record.blob.sha256));
        Ok(Some(response))
    }

    /// Creates the reply with the picture. `None` if the record changed.
    async fn picture(
        &self,
        files: ServedFiles<'_>,
        record: &FileRecord,
        variant: Variant,
        values: &mut Values,
    ) -> Result<Option<Response<Payload>>, Error> {
        let (payload, mime, length) = match variant {
            Variant::WebP(bytes) => {
                let length = bytes.len() as u64;
                (Payload::Bytes(bytes), WEBP, length)
            }
            Variant::PassThrough { mime } => {
                let size = record.blob.size_bytes;
                let payload = self.payload(files, record, Span::whole(size)).await?;
                let Some(payload) = payload else { return Ok(None) };
                (payload, mime, size)
            }
        };
        Ok(Some(described(payload, mime, length, values)))
    }

    /// Returns the variant for the kernel to send, if it is requested often.
    fn sendable(&self, files: ServedFiles<'_>, key: &VariantKey) -> Option<SendFile> {
        let may_be_sent = self.sends == Sends::Files && *self.method == Method::GET;
        if may_be_sent { files.send_variant(key) } else { None }
    }
}

/// Returns true if If-Match, if present, allows the variant to be sent. The comparison is strong
/// (RFC 9110 section 13.1.1), so only `*` matches, and only for a file with variants.
fn is_wanted(headers: &HeaderMap, tag: &str) -> bool {
    if_match_holds(headers, EntityTag::parse(tag).as_ref())
}

/// Returns true if If-None-Match names the variant. Only images have variants. For other files, the condition
/// is ignored, so that `*` fails like a request without a condition.
fn is_unmodified(headers: &HeaderMap, tag: &str) -> bool {
    if !headers.contains_key(IF_NONE_MATCH) {
        return false;
    }

    let Some(etag) = EntityTag::parse(tag) else { return false };
    let mut conditions = HeaderMap::new();
    conditions
        .extend(headers.get_all(IF_NONE_MATCH).iter().map(|value| (IF_NONE_MATCH, value.clone())));
    evaluate(&conditions, &Validators { etag, last_modified: None }) == Outcome::NotModified
}

/// Creates a picture's reply.
fn described(
    payload: Payload,
    mime: &'static str,
    length: u64,
    values: &mut Values,
) -> Response<Payload> {
    let mut response = Response::new(payload);
    let headers = response.headers_mut();
    headers.reserve(HEADERS);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(mime));
    let length = values.format(format_args!("{length}")).expect("digits are ASCII");
    headers.insert(CONTENT_LENGTH, length);
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CSP_SANDBOX));
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}
