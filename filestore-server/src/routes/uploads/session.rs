//! One upload: its offset, its bytes, its end.

use std::sync::Arc;

use filestore_core::api;
use filestore_core::uploads::{ResumableUpload, UploadAddress};
use filestore_core::{Error, Scope};
use http::header::ACCEPT;
use http::{HeaderValue, Method};
use warp::reply::Response;

use super::create::expect_bytes;
use super::receive::receive;
use super::replies;
use crate::http::single;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::{Body, refuse_coding};
use crate::resumable::{MEDIA_TYPE, Protocol};
use crate::routes::path::Segment;

/// The methods for which a POST can stand, where a proxy lets no others through.
const OVERRIDES: [&str; 3] = ["PATCH", "DELETE", "HEAD"];

/// Answers PATCH, and a POST that stands for another method.
pub(super) async fn with_body(
    call: Arc<Call>,
    at: Segment,
    body: Body,
) -> Result<Response, Failure> {
    let meant = if call.method == Method::POST {
        single(&call.headers, "x-http-method-override").unwrap_or_default()
    } else {
        "PATCH"
    };
    match meant {
        "PATCH" => patch(call, at, body).await,
        "DELETE" => cancel(call, at).await,
        "HEAD" => read_as(call, at, &Method::HEAD).await,
        _ => {
            reached(&call, &at).await?;
            let message = "a POST to an upload names the method that it stands for";
            Err(Error::invalid("X-HTTP-Method-Override", message).with_allowed(OVERRIDES).into())
        }
    }
}

async fn patch(call: Arc<Call>, at: Segment, body: Body) -> Result<Response, Failure> {
    let protocol = Protocol::of(&call.headers).map_err(Failure::from);
    let outcome = match &protocol {
        Ok(protocol) => appended(&call, *protocol, &at, body).await,
        Err(_) => Ok(Response::default()),
    };
    Ok(replies::sent(&call, protocol, outcome))
}

async fn appended(
    call: &Arc<Call>,
    protocol: Protocol,
    at: &Segment,
    body: Body,
) -> Result<Response, Failure> {
    let (address, scope) = reached(call, at).await?;
    refuse_coding(&call.headers)?;
    let asked = protocol.appending(&call.headers)?;
    match protocol {
        Protocol::Tus => expect_bytes(call, MEDIA_TYPE)?,
        Protocol::Draft(draft) => {
            if let Some(media_type) = draft.media_type() {
                expect_bytes(call, media_type)?;
            }
        }
        Protocol::Plain => {}
    }
    let upload = receive(call, (&address, scope), asked, body).await?;
    match protocol {
        Protocol::Draft(draft) if upload.is_finished() => {
            replies::draft_finished(call, draft, &upload).await
        }
        Protocol::Draft(draft) => Ok(replies::draft_unfinished(call, draft, &upload, false)),
        Protocol::Tus | Protocol::Plain => replies::tus_appended(call, &upload).await,
    }
}

/// Answers HEAD and GET.
pub(super) async fn read(call: Arc<Call>, at: Segment) -> Result<Response, Failure> {
    let method = call.method.clone();
    read_as(call, at, &method).await
}

async fn read_as(call: Arc<Call>, at: Segment, method: &Method) -> Result<Response, Failure> {
    let protocol = lenient(&call);
    let outcome = match &protocol {
        Ok(protocol) => shown(&call, *protocol, &at, method).await,
        Err(_) => Ok(Response::default()),
    };
    Ok(replies::sent(&call, protocol, outcome))
}

/// Tells the protocol of a request that may lack its version. Such a request speaks tus.
fn lenient(call: &Call) -> Result<Protocol, Failure> {
    match Protocol::of(&call.headers)? {
        Protocol::Plain => Ok(Protocol::Tus),
        protocol => Ok(protocol),
    }
}

async fn shown(
    call: &Call,
    protocol: Protocol,
    at: &Segment,
    method: &Method,
) -> Result<Response, Failure> {
    let (address, scope) = reached(call, at).await?;
    if let Protocol::Draft(draft) = protocol {
        draft.refuse_upload_headers(&call.headers)?;
    }
    let upload = call.resumable().status(&address, &scope).await?;
    if *method == Method::HEAD {
        return replies::head(call, protocol, &upload).await;
    }
    if upload.is_finished() && protocol == Protocol::Tus && !wants_json(call) {
        return to_file(call, &upload);
    }
    reply::ok(&api::ResumableUpload::from(&upload))
}

/// Tests whether JSON alone is accepted.
fn wants_json(call: &Call) -> bool {
    let accept = single(&call.headers, ACCEPT).unwrap_or_default().to_ascii_lowercase();
    accept.split(',').all(|range| range.trim().starts_with("application/json"))
}

/// Redirects to the file of a finished upload: some clients show the address of the upload as that of the file.
fn to_file(call: &Call, upload: &ResumableUpload) -> Result<Response, Failure> {
    let id = upload.file_id.map(|id| id.to_string()).unwrap_or_default();
    let path = call.app.base.public(&format!("{}/files/{id}", api::PREFIX));
    let path = HeaderValue::try_from(path).map_err(|e| Error::internal("naming a file", e))?;
    Ok(reply::see_other(path))
}

/// Answers DELETE: ends the upload, and leaves a file that it has made.
pub(super) async fn cancel(call: Arc<Call>, at: Segment) -> Result<Response, Failure> {
    let protocol = lenient(&call);
    let outcome = match &protocol {
        Ok(protocol) => cancelled(&call, *protocol, &at).await,
        Err(_) => Ok(Response::default()),
    };
    Ok(replies::sent(&call, protocol, outcome))
}

async fn cancelled(call: &Call, protocol: Protocol, at: &Segment) -> Result<Response, Failure> {
    let (address, scope) = reached(call, at).await?;
    if let Protocol::Draft(draft) = protocol {
        draft.refuse_upload_headers(&call.headers)?;
    }
    call.report("upload_id", address.upload_id.to_string());
    call.resumable().cancel(&address, &scope).await?;
    Ok(reply::empty(reply::Empty::NoContent))
}

/// Returns the address in the path, and the organizations with uploads that the request can continue.
async fn reached(call: &Call, at: &Segment) -> Result<(UploadAddress, Scope), Failure> {
    let address = at.plain().parse::<UploadAddress>();
    let scope = call.reach_of(address.as_ref().ok()).await?;
    Ok((address?, scope))
}
