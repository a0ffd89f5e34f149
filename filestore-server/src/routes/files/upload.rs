//! POST /files/upload: uploads one file in a form. PUT on the same path is in [`super::change`].

use std::sync::Arc;

use filestore_core::api;
use filestore_core::uploads::{PartHints, StoredReply, UploadSession, Uploaded};
use filestore_core::{
    CustomMetadata, Error, FileRecord, NewUpload, OrganizationId, Result, Sha256, SubSystem,
};
use http::HeaderValue;
use http::header::{ETAG, LOCATION};
use warp::Filter;
use warp::reply::Response;

use super::{change, record};
use crate::error;
use crate::http::etag::EntityTag;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::fields::{self, CHARSET_FIELD, Once};
use crate::request::form::{Part, open_form};
use crate::request::incoming::Body;
use crate::request::signed::UploadTerms;
use crate::routes::filters::{RouteFilter, not_allowed, with_body};

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
pub(crate) fn routes() -> RouteFilter {
    let create = warp::post().and(with_body(create));
    let change = warp::put().and(with_body(change::change));
    let rest = not_allowed("POST, PUT");

    warp::path!("files" / "upload").and(create.or(change).unify().or(rest).unify()).boxed()
}

async fn create(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let mut session = call.begin_upload();
    let mut fields = UploadForm::begin(&call, &mut session).await?;
    let mut form = open_form(&call, body, 1, fields.max_size)?;
    while let Some(mut part) = form.next_part().await? {
        fields.take(&call, &mut session, &mut part).await?;
    }

    let new = fields.finish()?;
    call.recheck().await?.check(&new.organization_id)?;
    match session.commit(new).await? {
        Uploaded::New(record) => created(&call, &record).await,
        Uploaded::Replayed(reply) => replayed(&call, reply),
    }
}

async fn created(call: &Call, record: &FileRecord) -> Result<Response, Failure> {
    let shown = record::converted_one(call, record).await;
    let response = reply::created(&shown)?;
    Ok(with_location(
        call,
        response,
        &shown.file_id,
        EntityTag::of(&record.blob.sha256).to_header(),
    ))
}

/// Sends the stored reply again, with its original headers.
pub(in crate::routes) fn replayed(call: &Call, reply: StoredReply) -> Result<Response, Failure> {
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

/// The fields of the form so far.
#[derive(Debug, Default)]
struct UploadForm<'c> {
    /// The terms of a signed URL. The terms have priority over the fields.
    terms: Option<&'c UploadTerms>,
    /// The maximum size of the file, in bytes.
    max_size: u64,
    organization_id: Once<OrganizationId>,
    sub_system: Once<SubSystem>,
    original_name: Once<String>,
    mime_type: Once<String>,
    upload_temp: Once<bool>,
    sha256: Once<Sha256>,
    metadata: Once<CustomMetadata>,
    charset: Once<()>,
    file: Once<PartHints>,
}

impl<'c> UploadForm<'c> {
    /// Begins a form. The terms of a signed URL are known before the first field, and are claimed then.
    async fn begin(call: &'c Call, session: &mut UploadSession) -> Result<Self> {
        let max_size = call.store().config().limits.max_file_size;
        let Some(terms) = call.upload_terms() else {
            return Ok(Self { max_size, ..Self::default() });
        };

        session.claim(call.upload_claims(&terms.organization_id, 1)?).await?;
        Ok(Self {
            terms: Some(terms),
            max_size: terms.max_size.unwrap_or(u64::MAX).min(max_size),
            ..Self::default()
        })
    }

    /// Reads the next field.
    async fn take(
        &mut self,
        call: &Call,
        session: &mut UploadSession,
        part: &mut Part<'_>,
    ) -> error::Result<()> {
        match part.name() {
            "file" => self.take_file(session, part).await,

            "organization_id" => {
                self.organization_id.read(part, fields::parsed).await?;
                let organization = self.organization_id.get().expect("it was read just now");
                if self.terms.is_some() {
                    return Ok(());
                }
                Ok(session.claim(call.upload_claims(organization, 1)?).await?)
            }
            "sub_system" => self.sub_system.read(part, fields::parsed).await,
            "original_name" => {
                let limit = call.store().config().limits.original_name_chars;
                self.original_name.read_unless_blank(part, fields::name(limit)).await
            }
            "mime_type" => self.mime_type.read_unless_blank(part, fields::mime_type).await,
            "upload_temp" => self.upload_temp.read(part, fields::flag).await,
            "sha256" => self.sha256.read(part, fields::parsed).await,
            "metadata" => self.metadata.read_unless_blank(part, fields::metadata).await,

            CHARSET_FIELD => self.charset.read(part, fields::ignored).await,
            name => Err(fields::unknown(name, &FIELDS)),
        }
    }

    async fn take_file(
        &mut self,
        session: &mut UploadSession,
        part: &mut Part<'_>,
    ) -> error::Result<()> {
        self.file.expect_first("file")?;
        let hints = fields::hints(part);
        let target = &mut *session;
        let begin = async move {
            target.begin_file().await?;
            Ok(target)
        };

        if fields::receive(part, begin).await? {
            session.end_file().await?;
            self.file.set("file", hints)?;
        }
        Ok(())
    }

    /// Checks that the form is complete.
    fn finish(mut self) -> Result<NewUpload> {
        if let Some(terms) = self.terms {
            self.fill_in(terms)?;
        }
        let organization = fields::required("organization_id", self.organization_id)?;
        let sub_system = fields::required("sub_system", self.sub_system)?;
        let hints = fields::required("file", self.file)?;

        let mut new = NewUpload::new(organization, sub_system);
        new.given.name = self.original_name.take();
        new.given.mime_type = self.mime_type.take();
        new.given.hints = hints;
        new.temp = self.upload_temp.take().unwrap_or(false);
        new.sha256 = self.sha256.take();
        new.metadata = self.metadata.take().unwrap_or_default();
        Ok(new)
    }

    /// Fills in the terms of a signed URL. `Forbidden` if a field has another value.
    fn fill_in(&mut self, terms: &UploadTerms) -> Result<()> {
        self.organization_id.fix("organization_id", terms.organization_id.clone())?;
        self.sub_system.fix("sub_system", terms.sub_system.clone())?;
        self.upload_temp.fix("upload_temp", terms.temp)?;
        if let Some(mime_type) = &terms.mime_type {
            self.mime_type.fix("mime_type", mime_type.clone())?;
        }
        Ok(())
    }
}
