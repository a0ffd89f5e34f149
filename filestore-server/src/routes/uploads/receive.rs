//! The body of a request, on its way into an upload.

use std::sync::Arc;

use bytes::Bytes;
use filestore_core::uploads::{Append, Recheck, ResumableUpload, UploadAddress};
use filestore_core::{Error, ErrorKind, Scope};
use futures_util::{FutureExt as _, Stream, stream};

use crate::error::{self, RefusalKind};
use crate::listen::body::BodyReader;
use crate::reply::Failure;
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::notes::Notes;
use crate::resumable::Appending;
use crate::routes::audit_line::note_replacement;

/// The seconds after which a client tries again that has stopped sending.
const STALLED_RETRY_SECS: u64 = 1;

/// Appends the body of a request to an upload of an organization in `scope`.
pub(super) async fn receive(
    call: &Arc<Call>,
    (address, scope): (&UploadAddress, Scope),
    asked: Appending,
    body: Body,
) -> Result<ResumableUpload, Failure> {
    let mut append = Append::at(asked.offset).ending(asked.ends);
    append.length = asked.length;
    append.content_length = call.content_length();
    append.check = asked.checksum.map(|sum| Box::new(sum) as _);
    append.scope = scope;
    // A caller with the address alone has the right of the signed URL, which the core checks itself.
    append.recheck = (!call.caller.is_nobody()).then(|| recheck(call));
    let body = Box::pin(chunks(body, call));
    let upload = call.resumable().append(address, append, body).await?;
    report_replaced(call, &upload);
    Ok(upload)
}

/// Adds to the audit line of a replacement whose file it was.
pub(super) fn report_replaced(call: &Call, upload: &ResumableUpload) {
    // A repeated request replaces nothing, and so it has noted nothing.
    if call.notes.as_ref().is_some_and(Notes::has_facts) && upload.is_finished() {
        call.report("organization_id", upload.organization_id.as_str());
    }
}

/// The right of the request, asked for again before the commit. Notes a replacement for the audit log.
pub(super) fn recheck(call: &Arc<Call>) -> Recheck {
    let call = Arc::clone(call);
    Box::new(move |replaced| {
        if let Some(file_id) = replaced {
            note_replacement(&call, file_id);
        }
        async move {
            match call.recheck().await {
                Ok(sight) => Ok((*sight).clone()),
                Err(error) => Err(core_error(error)),
            }
        }
        .boxed()
    })
}

/// The chunks of a body, under the time limits of all bodies.
fn chunks(body: Body, call: &Call) -> impl Stream<Item = Result<Bytes, Error>> + Send + use<> {
    let reader = BodyReader::new(body, call.app.options.body);
    stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        match reader.chunk().await {
            Ok(Some(chunk)) => Some((Ok(chunk), Some(reader))),
            Ok(None) => None,
            Err(error) => Some((Err(core_error(error)), None)),
        }
    })
}

/// Turns a refusal of the server into an error of the core, which settles the upload by it.
fn core_error(error: error::Error) -> Error {
    match error {
        error::Error::Core(error) => error,
        // Not 408: clients of tus give up at a 4xx, and the received bytes are kept.
        error::Error::Refusal(refusal) if refusal.kind() == RefusalKind::BodyTimeout => {
            Error::new(ErrorKind::UploadStalled, refusal.message())
                .with_retry_after_secs(STALLED_RETRY_SECS)
        }
        error::Error::Refusal(refusal) => Error::new(ErrorKind::Forbidden, refusal.message()),
    }
}
