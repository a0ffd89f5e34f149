//! POST /files/upload: one file in a form. (PUT on the same path is [`super::change`].)

use std::sync::Arc;

use filestore_core::api;
use filestore_core::signing::UploadPermit;
use filestore_core::uploads::{PartHints, StagedBlob, StoredReply, Uploaded};
use filestore_core::{
    CustomMetadata, Error, FileRecord, NewUpload, OrganizationId, Result, Sha256, SubSystem,
};
use http::HeaderValue;
use http::header::{ETAG, LOCATION};
use warp::Filter;
use warp::reply::Response;

use super::change;
use crate::http::etag::EntityTag;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::fields::{self, CHARSET_FIELD, Once};
use crate::request::form::{Part, open_form};
use crate::request::incoming::Body;
use crate::request::room::{Incoming, Room};
use crate::request::signed::UploadTerms;
use crate::request::upload_claims::UploadClaims;
use crate::routes::filters::{Route, not_allowed, with_body};

const FIELDS: [&str; 8] = [
    "file",
    "organization_id",
    "sub_system",
    "original_name",
    "mime_type",
    "upload_temp",
    "sha256",
    "metadata",
];

/// Builds `/files/upload`.
pub(crate) fn routes() -> Route {
    let create = warp::post().and(with_body(create));
    let change = warp::put().and(with_body(change::change));
    let rest = not_allowed("POST, PUT");

    warp::path!("files" / "upload").and(create.or(change).unify().or(rest).unify()).boxed()
}

async fn create(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let mut fields = UploadForm::begin(&call).await?;
    let mut form = open_form(&call, body, 1, fields.max_size)?;
    while let Some(mut part) = form.next_part().await? {
        fields.take(&call, &mut part).await?;
    }

    let (new, staged, _claims) = fields.finish()?;
    call.recheck().await?;
    match call.store().uploads().commit_upload(new, staged).await? {
        Uploaded::New(record) => created(&call, &record),
        Uploaded::Replayed(reply) => replayed(&call, reply),
    }
}

fn created(call: &Call, record: &FileRecord) -> Result<Response, Failure> {
    let shown = api::FileRecord::from(record);
    let response = reply::created(&shown)?;
    Ok(with_location(
        call,
        response,
        &shown.file_id,
        EntityTag::of(&record.blob.sha256).to_header(),
    ))
}

/// Sends the stored reply again, with the headers it had.
fn replayed(call: &Call, reply: StoredReply) -> Result<Response, Failure> {
    let shown = api::FileRecord::try_from(&reply)
        .map_err(|e| Error::internal("reading a stored reply", e))?;
    let sha256: Sha256 =
        shown.sha256.parse().map_err(|e| Error::internal("reading a stored reply", e))?;
    let response = reply::created_again(reply.into_json());
    Ok(with_location(call, response, &shown.file_id, EntityTag::of(&sha256).to_header()))
}

fn with_location(
    call: &Call,
    mut response: Response,
    file_id: &str,
    etag: HeaderValue,
) -> Response {
    let path = call.app.base.public(&format!("{}/files/{file_id}", api::PREFIX));
    let headers = response.headers_mut();
    headers.extend(HeaderValue::try_from(path).ok().map(|path| (LOCATION, path)));
    headers.insert(ETAG, etag);
    response
}

/// The form as far as it has arrived.
#[derive(Debug, Default)]
struct UploadForm<'c> {
    /// The terms of a signed URL, which go before the fields.
    terms: Option<&'c UploadTerms>,
    /// The most bytes of the file.
    max_size: u64,
    organization_id: Once<OrganizationId>,
    sub_system: Once<SubSystem>,
    original_name: Once<Option<String>>,
    mime_type: Once<Option<String>>,
    upload_temp: Once<bool>,
    sha256: Once<Sha256>,
    metadata: Once<Option<CustomMetadata>>,
    charset: Once<()>,
    file: Once<(StagedBlob, PartHints)>,
    claims: Option<UploadClaims>,
}

impl<'c> UploadForm<'c> {
    /// Begins a form. What a signed URL says is known before the first field.
    async fn begin(call: &'c Call) -> Result<Self> {
        let max_size = call.store().config().limits.max_file_size;
        let Some(terms) = call.upload_terms() else {
            return Ok(Self { max_size, ..Self::default() });
        };

        let claims = UploadClaims::of(call, &terms.organization_id, 0, 1).await?;
        Ok(Self {
            terms: Some(terms),
            max_size: terms.max_size.unwrap_or(u64::MAX).min(max_size),
            claims: Some(claims),
            ..Self::default()
        })
    }

    /// Reads the next field.
    async fn take(&mut self, call: &Call, part: &mut Part<'_>) -> Result<()> {
        match part.name() {
            "file" => self.take_file(call, part).await,

            "organization_id" => {
                self.organization_id.read(part, fields::parsed).await?;
                let organization = self.organization_id.get().expect("it was read just now");
                if self.terms.is_some() {
                    return Ok(());
                }
                let received = self.file.get().map_or(0, |(staged, _)| staged.size_bytes);
                self.claims = Some(UploadClaims::of(call, organization, received, 1).await?);
                Ok(())
            }
            "sub_system" => self.sub_system.read(part, fields::parsed).await,
            "original_name" => {
                let limit = call.store().config().limits.original_name_chars;
                self.original_name.read(part, fields::name(limit)).await
            }
            "mime_type" => self.mime_type.read(part, fields::mime_type).await,
            "upload_temp" => self.upload_temp.read(part, fields::flag).await,
            "sha256" => self.sha256.read(part, fields::parsed).await,
            "metadata" => self.metadata.read(part, fields::metadata).await,

            CHARSET_FIELD => self.charset.read(part, fields::ignored).await,
            name => Err(fields::unknown(name, &FIELDS)),
        }
    }

    async fn take_file(&mut self, call: &Call, part: &mut Part<'_>) -> Result<()> {
        self.file.expect_first("file")?;
        let hints = fields::hints(part);
        let uploads = call.store().uploads();
        let owner = self.terms.map(|terms| &terms.organization_id);
        let owner = owner.or(self.organization_id.get());
        let uploads = owner.map_or(uploads, |id| uploads.of(id));
        let stage = async {
            let writer = uploads.stage_up_to(self.max_size).await?;
            let reserved = self.claims.as_mut().and_then(|claims| claims.quota.take());
            Ok(Incoming { writer, room: Room::after(0, reserved) })
        };

        if let Some(Incoming { writer, room }) = fields::receive(call, part, stage).await? {
            self.file.set("file", (writer.finish().await?, hints))?;
            if let Some(claims) = &mut self.claims {
                claims.quota = room.into_reservation();
            }
        }
        Ok(())
    }

    /// Checks that the form is whole. The caller holds the claims until the commit.
    fn finish(mut self) -> Result<(NewUpload, StagedBlob, Option<UploadClaims>)> {
        let permit = self.terms.map(|terms| self.fill_in(terms)).transpose()?;
        let organization = fields::required("organization_id", self.organization_id)?;
        let sub_system = fields::required("sub_system", self.sub_system)?;
        let (staged, hints) = fields::required("file", self.file)?;

        let mut claims = self.claims;
        let mut new = NewUpload::new(organization, sub_system);
        new.given.name = self.original_name.take().flatten();
        new.given.mime_type = self.mime_type.take().flatten();
        new.given.hints = hints;
        new.temp = self.upload_temp.take().unwrap_or(false);
        new.permit = permit;
        new.sha256 = self.sha256.take();
        new.metadata = self.metadata.take().flatten().unwrap_or_default();
        new.idempotency = claims.as_mut().and_then(|claims| claims.idempotency.take());
        Ok((new, staged, claims))
    }

    /// Puts the terms of a signed URL into the form. `Forbidden` for a field that says otherwise.
    fn fill_in(&mut self, terms: &UploadTerms) -> Result<UploadPermit> {
        self.organization_id.fix("organization_id", terms.organization_id.clone())?;
        self.sub_system.fix("sub_system", terms.sub_system.clone())?;
        self.upload_temp.fix("upload_temp", terms.temp)?;
        if terms.mime_type.is_some() {
            self.mime_type.fix("mime_type", terms.mime_type.clone())?;
        }
        Ok(terms.permit.clone())
    }
}
