//! The replies of resumable uploads: the headers of each protocol.

use filestore_core::api::{self, PREFIX};
use filestore_core::uploads::ResumableUpload;
use filestore_core::{ErrorKind, FileRecord, Scope};
use http::header::{ALLOW, CACHE_CONTROL, ETAG, LOCATION, REFERRER_POLICY};
use http::{HeaderMap, HeaderName, HeaderValue};
use warp::reply::Response;

use crate::http::etag::EntityTag;
use crate::http::{date, single};
use crate::reply::{self, Empty, Failure, empty};
use crate::request::call::Call;
use crate::resumable::{ALGORITHMS, EXTENSIONS, Interop, Protocol, VERSION};
use crate::routes::files::record::converted_one;

/// The mark of a creation that found the upload of an earlier one.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Sends a reply or a failure with the headers that its protocol asks for.
pub(super) fn sent(
    call: &Call,
    protocol: Result<Protocol, Failure>,
    outcome: Result<Response, Failure>,
) -> Response {
    let protocol = match protocol {
        Ok(protocol) => protocol,
        Err(failure) => {
            let mut response = failure.into_response(&call.id);
            put(response.headers_mut(), "tus-version", VERSION);
            put(response.headers_mut(), "tus-resumable", VERSION);
            return response;
        }
    };
    let offset = match &outcome {
        Err(Failure::Core(error)) => error.details().offset,
        _ => None,
    };
    let mut response = outcome.unwrap_or_else(|failure| match protocol {
        Protocol::Draft(draft) => draft_failure(call, draft, failure),
        Protocol::Tus | Protocol::Plain => failure.into_response(&call.id),
    });
    let headers = response.headers_mut();
    if let Some(offset) = offset {
        put(headers, "upload-offset", &offset.to_string());
    }
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if protocol == Protocol::Tus {
        put(headers, "tus-resumable", VERSION);
    }
    response
}

/// Replies with a failure to a request of a draft. Versions before 8 do not know the status 410.
fn draft_failure(call: &Call, draft: Interop, failure: Failure) -> Response {
    let provided = single(&call.headers, "upload-offset").and_then(|offset| offset.parse().ok());
    let response = failure.into_draft_response(&call.id, provided);
    if draft < Interop::V8 { reply::without_gone(response) } else { response }
}

/// The preference for a record in the reply (RFC 7240 section 4.2), which tus does not have.
const REPRESENTATION: &str = "return=representation";

/// Replies to a creation of tus.
pub(super) async fn tus_created(
    call: &Call,
    upload: &ResumableUpload,
    is_replay: bool,
) -> Result<Response, Failure> {
    let mut response = with_record(call, upload, Empty::Created).await?;
    put_progress(response.headers_mut(), upload);
    put(response.headers_mut(), LOCATION.as_str(), &location(call, upload));
    if is_replay {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    put_file(call, response.headers_mut(), upload).await?;
    Ok(response)
}

/// Replies to a PATCH of tus.
pub(super) async fn tus_appended(
    call: &Call,
    upload: &ResumableUpload,
) -> Result<Response, Failure> {
    let mut response = with_record(call, upload, Empty::NoContent).await?;
    put_progress(response.headers_mut(), upload);
    put_file(call, response.headers_mut(), upload).await?;
    Ok(response)
}

/// Returns a reply with the record of a finished upload if the request prefers one, like the reply to a form.
/// Otherwise returns an empty reply with the status that tus wants.
async fn with_record(
    call: &Call,
    upload: &ResumableUpload,
    status: Empty,
) -> Result<Response, Failure> {
    if !upload.is_finished() || !prefers_record(call) {
        return Ok(empty(status));
    }
    let record = record(call, upload).await?;
    let response = whole(call, &record, upload.is_replacement).await?;
    let mut response = if status == Empty::Created { response } else { reply::as_ok(response) };
    put(response.headers_mut(), "preference-applied", REPRESENTATION);
    Ok(response)
}

fn prefers_record(call: &Call) -> bool {
    let mut lines = call.headers.get_all("prefer").iter().filter_map(|line| line.to_str().ok());
    lines.any(|line| line.split(',').any(|one| one.trim().eq_ignore_ascii_case(REPRESENTATION)))
}

/// Replies to a HEAD.
pub(super) async fn head(
    call: &Call,
    protocol: Protocol,
    upload: &ResumableUpload,
) -> Result<Response, Failure> {
    let status = match protocol {
        Protocol::Draft(_) => Empty::NoContent,
        Protocol::Tus | Protocol::Plain => Empty::Ok,
    };
    let mut response = empty(status);
    let headers = response.headers_mut();
    put_progress(headers, upload);
    if !upload.note.is_empty() {
        put(headers, "upload-metadata", &upload.note);
    }
    if let Some(concat) = &upload.concat {
        put(headers, "upload-concat", concat);
    }
    match (protocol, upload.length) {
        (Protocol::Draft(draft), length) => {
            if let Some(length) = length.filter(|_| draft >= Interop::V8) {
                put(headers, "upload-length", &length.to_string());
            }
            put_draft(call, headers, draft, upload);
        }
        (_, Some(length)) => put(headers, "upload-length", &length.to_string()),
        (_, None) => put(headers, "upload-defer-length", "1"),
    }
    if protocol == Protocol::Tus && !call.headers.contains_key("tus-resumable") {
        // A client of the draft without its version asks like a client of tus without its version.
        put_draft(call, headers, Interop::V8, upload);
    }
    put_file(call, headers, upload).await?;
    Ok(response)
}

/// Replies to a creation or an append of a draft after which the upload goes on.
pub(super) fn draft_unfinished(
    call: &Call,
    draft: Interop,
    upload: &ResumableUpload,
    is_creation: bool,
) -> Response {
    let is_created = is_creation || draft < Interop::V8;
    let mut response = empty(if is_created { Empty::Created } else { Empty::NoContent });
    let headers = response.headers_mut();
    put_progress(headers, upload);
    put_draft(call, headers, draft, upload);
    if is_creation {
        put(headers, LOCATION.as_str(), &location(call, upload));
    }
    response
}

/// Replies to the last request of a draft: as to an upload or a replacement by form.
pub(super) async fn draft_finished(
    call: &Call,
    draft: Interop,
    upload: &ResumableUpload,
) -> Result<Response, Failure> {
    let record = record(call, upload).await?;
    let mut response = whole(call, &record, upload.is_replacement).await?;
    let headers = response.headers_mut();
    let (name, value) = draft.completeness(true);
    put(headers, name, value);
    if draft < Interop::V8 {
        put(headers, "upload-offset", &upload.offset.to_string());
    }
    put(headers, "file-id", &record.file_id.to_string());
    Ok(response)
}

/// Replies with the record of a finished upload.
pub(super) async fn whole(
    call: &Call,
    record: &FileRecord,
    is_replacement: bool,
) -> Result<Response, Failure> {
    if is_replacement {
        let shown = api::ChangeReply::new(
            record.file_id.to_string(),
            record.state.sync(),
            record.updated_at.to_string(),
        );
        return Ok(reply::with_etag(reply::ok(&shown)?, record));
    }
    let shown = converted_one(call, record).await;
    let mut response = reply::with_etag(reply::created(&shown)?, record);
    let path = call.app.base.public(&format!("{PREFIX}/files/{}", record.file_id));
    put(response.headers_mut(), LOCATION.as_str(), &path);
    Ok(response)
}

/// Replies to OPTIONS: what is supported, and the limits.
pub(super) fn options(call: &Call) -> Response {
    let mut response = empty(Empty::NoContent);
    let headers = response.headers_mut();
    let config = call.store().config().uploads;
    put(headers, "tus-resumable", VERSION);
    put(headers, "tus-version", VERSION);
    put(headers, "tus-extension", EXTENSIONS);
    put(headers, "tus-max-size", &config.max_size.to_string());
    put(headers, "tus-checksum-algorithm", ALGORITHMS);
    put(headers, "upload-limit", &limit(call));
    put(headers, "accept-patch", "application/offset+octet-stream, application/partial-upload");
    let is_one = call.route.is_some_and(|route| route.template != "/uploads");
    let allow =
        if is_one { "GET, HEAD, POST, PATCH, DELETE, OPTIONS" } else { "GET, HEAD, POST, OPTIONS" };
    headers.insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// Returns the record of a finished upload. `UploadGone` if it was deleted since.
pub(super) async fn record(call: &Call, upload: &ResumableUpload) -> Result<FileRecord, Failure> {
    let gone = || filestore_core::Error::new(ErrorKind::UploadGone, "the file was deleted");
    let file_id = upload.file_id.ok_or_else(gone)?;
    let record = call.store().scoped(&Scope::All).record(file_id).await;
    Ok((*record.map_err(|_| gone())?).clone())
}

/// Returns the URL of an upload: absolute if the public URL is known, else a path.
fn location(call: &Call, upload: &ResumableUpload) -> String {
    call.app.base.client_url(&format!("{PREFIX}/uploads/{}", upload.address.to_segment()))
}

fn limit(call: &Call) -> String {
    let config = call.store().config().uploads;
    format!("max-size={}, max-age={}", config.max_size, config.lifetime.as_secs())
}

fn put_draft(call: &Call, headers: &mut HeaderMap, draft: Interop, upload: &ResumableUpload) {
    let (name, value) = draft.completeness(upload.is_finished());
    put(headers, name, value);
    if draft >= Interop::V6 {
        put(headers, "upload-limit", &limit(call));
    }
}

/// Adds the offset, and the time until which the upload goes on.
fn put_progress(headers: &mut HeaderMap, upload: &ResumableUpload) {
    put(headers, "upload-offset", &upload.offset.to_string());
    if !upload.is_finished() {
        put(headers, "upload-expires", &date::format(upload.expires_at).to_string());
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Adds the id and the entity tag of the file, once it exists.
async fn put_file(
    call: &Call,
    headers: &mut HeaderMap,
    upload: &ResumableUpload,
) -> Result<(), Failure> {
    if upload.is_finished() {
        let record = record(call, upload).await?;
        put(headers, "file-id", &record.file_id.to_string());
        headers.insert(ETAG, EntityTag::of(&record.blob.sha256).to_header());
    }
    Ok(())
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
        headers.insert(name, value);
    }
}
