//! GET /files/{fileId}/{width}/{height}: a gallery variant.
//!
//! This is the most frequent request. If the record and the variant are in memory, it is answered on the same
//! thread. A conditional request is answered before any pixel is read.

use std::sync::Arc;

use filestore_core::variants::{Motion, Variant, VariantKey, VariantSize};
use filestore_core::web::serving::CSP_SANDBOX;
use filestore_core::{Error, ErrorKind, FileRecord, Fit, Result, SendFile};
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method};
use warp::reply::Response;
use warp::{Filter, Rejection};

use super::super::path::{IdSegment, Segment};
use super::content::{Span, send, sent};
use crate::http::conditional::{Outcome, Validators, evaluate, if_match_holds};
use crate::http::etag::EntityTag;
use crate::http::values::Values;
use crate::reply::{self, Failure, NOSNIFF, cache_control};
use crate::request::call::Call;
use crate::request::fields::flag;
use crate::routes::filters::{READ_ONLY, call, get_or_head, not_allowed, reply_of};

/// The size of a reply's own header values.
const VALUES_BYTES: usize = 64;

const WEBP: &str = "image/webp";

/// Builds `/files/{fileId}/{width}/{height}`.
pub(crate) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let path = warp::path!("files" / IdSegment / Segment / Segment);
    let read =
        path.and(get_or_head()).and(call()).then(|id, width: Segment, height: Segment, call| {
            let call: Arc<Call> = call;
            let size = VariantSize::from_path(&width.0, &height.0);
            reply_of(Arc::clone(&call), variant(call, id, size))
        });
    let rest = path.and(not_allowed(READ_ONLY)).map(|_, _, _, reply| reply);
    read.or(rest.boxed()).unify()
}

pub(super) async fn variant(
    call: Arc<Call>,
    id: IdSegment,
    size: Result<VariantSize>,
) -> Result<Response, Failure> {
    let size = size?;
    let query = call.query(&["fit", "animated", "v"])?;
    let fit = query.get("fit").map(str::parse).transpose()?.unwrap_or_default();
    let motion = motion(&call, query.get("animated"))?;
    let id = id.id()?;

    let (call, version) = (&call, query.get("v"));
    let answered = call.store().serving(&call.caller.scope).with_record(id, |record| async move {
        respond(call, &record, (size, fit, motion), version).await
    });
    answered.await
}

/// Reads whether the variant is still or animated. Refuses animated variants if they are switched off.
fn motion(call: &Call, text: Option<&str>) -> Result<Motion> {
    let animated = text.map(flag).transpose().map_err(|error| error.with_field("animated"))?;
    let motion = Motion::from(animated.unwrap_or(false));
    call.store().serving(&call.caller.scope).expect_motion(motion)?;
    Ok(motion)
}

/// Creates the reply for `record`. `None` if the record changed in the meantime.
async fn respond(
    call: &Call,
    record: &Arc<FileRecord>,
    (size, fit, motion): (VariantSize, Fit, Motion),
    version: Option<&str>,
) -> Result<Option<Response>, Failure> {
    let serving = call.store().serving(&call.caller.scope);
    let key = serving.variant_key(record, size, fit, motion);
    let tag = key.etag();
    let has_variants = serving.may_have_variants(record);
    if has_variants && !is_wanted(&call.headers, &tag) {
        let message = "a variant has a weak tag, which If-Match never matches";
        return Err(Error::new(ErrorKind::PreconditionFailed, message).into());
    }
    let mut values = Values::with_capacity(VALUES_BYTES);
    let mut response = if has_variants && not_modified(&call.headers, &tag) {
        reply::not_modified()
    } else if let Some(file) = sendable(call, &key) {
        let length = file.remaining();
        described(sent(call, file), WEBP, length, &mut values)
    } else {
        let variant = match serving.cached_variant(&key) {
            Some(variant) => variant,
            None => match serving.variant_of(record, size, fit, motion).await {
                Ok(variant) => variant,
                Err(error) if error.kind() == ErrorKind::Conflict => return Ok(None),
                Err(error) => return Err(error.into()),
            },
        };
        let Some(response) = picture(call, record, variant, &mut values).await? else {
            return Ok(None);
        };
        response
    };

    let headers = response.headers_mut();
    let tag = values.join(&[&tag]);
    headers.insert(ETAG, tag.expect("a header value allows every character of a tag"));
    headers.insert(CACHE_CONTROL, cache_control(call.window(), version, &record.blob.sha256));
    Ok(Some(response))
}

/// Returns true if If-Match, if present, allows the variant to be sent. The comparison is strong
/// (RFC 9110 section 13.1.1), so only `*` matches, and only for a file with variants.
fn is_wanted(headers: &HeaderMap, tag: &str) -> bool {
    if_match_holds(headers, EntityTag::parse(tag).as_ref())
}

/// Returns true if If-None-Match names the variant. Only images have variants. For other files, the condition
/// is ignored, so that `*` fails like a request without a condition.
fn not_modified(headers: &HeaderMap, tag: &str) -> bool {
    if !headers.contains_key(IF_NONE_MATCH) {
        return false;
    }

    let Some(etag) = EntityTag::parse(tag) else { return false };
    let mut conditions = HeaderMap::new();
    conditions
        .extend(headers.get_all(IF_NONE_MATCH).iter().map(|value| (IF_NONE_MATCH, value.clone())));
    evaluate(&conditions, &Validators { etag, last_modified: None }) == Outcome::NotModified
}

/// Sends the picture. `None` if the record changed.
async fn picture(
    call: &Call,
    record: &FileRecord,
    variant: Variant,
    values: &mut Values,
) -> Result<Option<Response>, Failure> {
    let (response, mime, length) = match variant {
        Variant::WebP(bytes) => {
            let length = bytes.len() as u64;
            (Response::new(bytes.into()), WEBP, length)
        }
        Variant::PassThrough { mime } => {
            let Some(response) = original(call, record).await? else { return Ok(None) };
            (response, mime, record.blob.size_bytes)
        }
    };

    Ok(Some(described(response, mime, length, values)))
}

/// Adds a picture's headers.
fn described(
    mut response: Response,
    mime: &'static str,
    length: u64,
    values: &mut Values,
) -> Response {
    let headers = response.headers_mut();
    // All of a reply's headers, and those of the service around the routes: one growth of the map.
    headers.reserve(14);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(mime));
    let length = values.format(format_args!("{length}")).expect("digits are ASCII");
    headers.insert(CONTENT_LENGTH, length);
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CSP_SANDBOX));
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}

/// Returns the variant for the kernel to send, if it is requested often.
fn sendable(call: &Call, key: &VariantKey) -> Option<SendFile> {
    let may_be_sent = call.takes_files && call.method == Method::GET;
    if may_be_sent { call.store().serving(&call.caller.scope).send_variant(key) } else { None }
}

/// Sends the original bytes of a small picture. HEAD opens no file.
async fn original(call: &Call, record: &FileRecord) -> Result<Option<Response>> {
    if call.method == Method::HEAD {
        return Ok(Some(Response::default()));
    }
    send(call, record, Span::whole(record.blob.size_bytes)).await
}
