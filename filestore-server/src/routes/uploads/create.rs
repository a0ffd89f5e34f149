//! POST `/uploads`: creates an upload, or takes the whole file in one request.

use std::sync::Arc;

use filestore_core::uploads::{
    Ends, NewResumable, ResumablePermit, ResumableTarget, ResumableUpload, UploadSession, Uploaded,
};
use filestore_core::{Error, Scope};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use warp::reply::Response;

use super::fields::UploadFields;
use super::receive::{receive, recheck, report_replaced};
use super::replies;
use crate::http::single;
use crate::listen::body::BodyReader;
use crate::multipart::file_name_of;
use crate::reply::Failure;
use crate::request::call::Call;
use crate::request::incoming::{Body, refuse_coding};
use crate::resumable::{
    Appending, ClientMetadata, Creation, Interop, MEDIA_TYPE, Protocol, upload_metadata,
};
use crate::routes::audit_line::note_replacement;

/// Answers POST on `/uploads`.
pub(super) async fn create(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let protocol = Protocol::of(&call.headers).map_err(Failure::from);
    let outcome = match &protocol {
        Ok(protocol) => created(&call, *protocol, body).await,
        Err(_) => Ok(Response::default()),
    };
    Ok(replies::sent(&call, protocol, outcome))
}

async fn created(call: &Arc<Call>, protocol: Protocol, body: Body) -> Result<Response, Failure> {
    refuse_coding(&call.headers)?;
    let creation = protocol.creation(&call.headers)?;
    let metadata = match protocol {
        Protocol::Tus => upload_metadata(&call.headers)?,
        Protocol::Draft(_) | Protocol::Plain => ClientMetadata::default(),
    };
    let mut fields = UploadFields::read(call, &metadata)?;
    if protocol != Protocol::Tus {
        hint(call, &mut fields);
    }
    let is_part = creation.concat.as_ref().is_some_and(|concat| concat.parts.is_none());
    let new = if is_part { fields.finish_partial(call)? } else { fields.finish(call)? };
    let mut new = new.with_note(metadata.text);
    new.concat = creation.concat.as_ref().map(|concat| concat.text.clone());
    new.length = creation.length;
    new.idempotency = call.idempotency_key()?;
    new.era = Some(call.era);
    if let Some((signed, terms)) = call.signed.as_ref().zip(call.upload_terms()) {
        let permit = ResumablePermit::new(terms.permit.clone(), &signed.url);
        new.permit = Some(permit.with_max_bytes(terms.max_size));
    }

    match protocol {
        Protocol::Tus => tus(call, new, creation, body).await,
        // Nobody could learn the address of the upload: all or nothing.
        Protocol::Draft(draft) if creation.is_whole && new.idempotency.is_none() => {
            let mut response = in_one(call, new, body).await?;
            let (name, value) = draft.completeness(true);
            response.headers_mut().insert(name, http::HeaderValue::from_static(value));
            Ok(response)
        }
        Protocol::Draft(version) => draft(call, version, new, creation, body).await,
        Protocol::Plain => in_one(call, new, body).await,
    }
}

/// Takes name and type from the headers of the body.
fn hint(call: &Call, fields: &mut UploadFields) {
    if let Some(name) = single(&call.headers, CONTENT_DISPOSITION).and_then(file_name_of) {
        fields.hint_name(&name);
    }
    if let Some(media_type) = single(&call.headers, CONTENT_TYPE) {
        fields.hint_type(media_type);
    }
}

/// Tests whether a request has a body, as far as its headers say.
fn has_body(call: &Call) -> bool {
    call.headers.contains_key("transfer-encoding") || call.content_length().unwrap_or(0) > 0
}

async fn tus(
    call: &Arc<Call>,
    new: NewResumable,
    creation: Creation,
    body: Body,
) -> Result<Response, Failure> {
    if let Some(parts) = creation.concat.as_ref().and_then(|concat| concat.parts.as_ref()) {
        let (caller, scope) = (call.caller.idempotency_scope(), &*call.caller.scope);
        let uploads = call.resumable();
        let created = uploads.concatenate(new, parts, &caller, scope, Some(recheck(call))).await?;
        report_replaced(call, &created.upload);
        return replies::tus_created(call, &created.upload, created.is_replay).await;
    }
    let has_body = has_body(call);
    if has_body {
        expect_bytes(call, MEDIA_TYPE)?;
    }
    let is_empty = new.length == Some(0);
    let created = call.resumable().create(new).await?;
    let mut upload = created.upload;
    if (has_body && upload.offset == 0 || is_empty) && !upload.is_finished() {
        let asked = Appending {
            offset: 0,
            length: None,
            ends: Ends::ByLength,
            checksum: creation.checksum,
        };
        upload = received(call, &upload, asked, body, created.is_replay).await?;
    }
    replies::tus_created(call, &upload, created.is_replay).await
}

async fn draft(
    call: &Arc<Call>,
    draft: Interop,
    new: NewResumable,
    creation: Creation,
    body: Body,
) -> Result<Response, Failure> {
    let created = call.resumable().create(new).await?;
    let mut upload = created.upload;
    if upload.offset == 0 && !upload.is_finished() {
        let ends = if creation.is_whole { Ends::WithThisRequest } else { Ends::Later };
        let asked = Appending { offset: 0, length: None, ends, checksum: None };
        upload = received(call, &upload, asked, body, created.is_replay).await?;
    }
    if upload.is_finished() {
        return replies::draft_finished(call, draft, &upload).await;
    }
    Ok(replies::draft_unfinished(call, draft, &upload, true))
}

/// Receives the body of a creation. If it fails, the upload goes, unless the client can find it again.
async fn received(
    call: &Arc<Call>,
    upload: &ResumableUpload,
    asked: Appending,
    body: Body,
    is_replay: bool,
) -> Result<ResumableUpload, Failure> {
    let has_name = call.headers.contains_key("idempotency-key") || call.upload_terms().is_some();
    let can_be_found = is_replay || has_name;
    let (call, address) = (Arc::clone(call), upload.address.clone());
    // In a task of its own: a client that goes away must not leave an upload that nobody can find.
    let receiving = tokio::spawn(async move {
        let scope = (*call.caller.scope).clone();
        let outcome = receive(&call, (&address, scope), asked, body).await;
        if outcome.is_err() && !can_be_found {
            let cancelled = call.resumable().cancel(&address, &Scope::All).await;
            if let Err(error) = cancelled {
                tracing::debug!(error = %error.chain(), "an upload that nobody can find stays until it expires");
            }
        }
        outcome
    });
    receiving.await.map_err(|error| Error::internal("receiving an upload", error))?
}

/// Stores the body as one file, as a form does.
async fn in_one(call: &Arc<Call>, new: NewResumable, body: Body) -> Result<Response, Failure> {
    let media_type = single(&call.headers, CONTENT_TYPE).unwrap_or_default();
    if media_type.to_ascii_lowercase().starts_with("multipart/form-data") {
        // A form would be stored with its boundaries.
        return Err(Failure::UnsupportedMediaType("application/octet-stream"));
    }
    let mut session = call.begin_upload();
    match new.target {
        ResumableTarget::New(file) => {
            let mut claims = call.upload_claims(&file.organization_id, 0)?;
            claims.bytes = call.content_length().unwrap_or(0);
            session.claim(claims).await?;
            whole_body(call, &mut session, body).await?;
            call.recheck().await?.check(&file.organization_id)?;
            match session.commit(file).await? {
                Uploaded::New(record) => replies::whole(call, &record, false).await,
                Uploaded::Replayed(reply) => crate::routes::files::upload::replayed(call, reply),
            }
        }
        ResumableTarget::Partial { .. } => {
            Err(Error::internal("receiving an upload", "a part came without its protocol").into())
        }
        ResumableTarget::Replace { file_id, new, conditions, scope } => {
            note_replacement(call, file_id);
            let mut claims = filestore_core::uploads::ReplacementClaims::new(file_id);
            claims.conditions = conditions;
            claims.bytes = call.content_length().unwrap_or(0);
            session.claim_replacement(claims, &scope).await?;
            whole_body(call, &mut session, body).await?;
            let scope = call.recheck().await?;
            let changed = session.commit_replacement(new, &scope).await?;
            call.report("organization_id", changed.record.organization_id.as_str());
            replies::whole(call, &changed.record, true).await
        }
    }
}

async fn whole_body(call: &Call, session: &mut UploadSession, body: Body) -> Result<(), Failure> {
    let signed = call.upload_terms().and_then(|terms| terms.max_size).unwrap_or(u64::MAX);
    let max = call.store().config().limits.max_file_size.min(signed);
    if call.content_length().is_some_and(|length| length > max) {
        let message = format!("the file has more bytes than {max}");
        let error = Error::new(filestore_core::ErrorKind::TooLarge, message);
        return Err(error.with_limit(max).into());
    }
    session.begin_file().await?;
    let mut reader = BodyReader::new(body, call.app.options.body);
    while let Some(chunk) = reader.chunk().await? {
        session.write(chunk).await?;
    }
    Ok(session.end_file().await?)
}

/// Refuses a body of another media type. Case and parameters do not count.
pub(super) fn expect_bytes(call: &Call, expected: &'static str) -> Result<(), Failure> {
    let sent = single(&call.headers, CONTENT_TYPE).unwrap_or_default();
    let essence = sent.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(expected) {
        Ok(())
    } else {
        Err(Failure::UnsupportedMediaType(expected))
    }
}
