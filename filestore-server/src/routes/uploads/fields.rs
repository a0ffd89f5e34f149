//! The fields of a creation: from the query, from `Upload-Metadata`, from headers that hint.

use filestore_core::uploads::{GivenName, NewResumable, PartHints, ResumableTarget};
use filestore_core::{
    CustomMetadata, ErrorKind, FileId, NewUpload, OrganizationId, Replacement, Sha256, SubSystem,
};

use crate::error::Result;
use crate::http::query::Query;
use crate::request::call::Call;
use crate::request::fields::{self, Once};
use crate::request::preconditions::preconditions;
use crate::request::signed::UploadTerms;
use crate::resumable::ClientMetadata;

/// The fields, as the query and the metadata of a client name them.
const FIELDS: [&str; 9] = [
    "organization_id",
    "sub_system",
    "original_name",
    "mime_type",
    "metadata",
    "upload_temp",
    "sha256",
    "file_id",
    "make_as_ready",
];

/// The fields of a creation, as far as they were read.
#[derive(Debug, Default)]
pub(super) struct UploadFields {
    organization_id: Once<OrganizationId>,
    sub_system: Once<SubSystem>,
    original_name: Once<Option<String>>,
    mime_type: Once<Option<String>>,
    metadata: Once<Option<CustomMetadata>>,
    upload_temp: Once<bool>,
    sha256: Once<Sha256>,
    file_id: Once<FileId>,
    make_as_ready: Once<bool>,
    hints: PartHints,
}

impl UploadFields {
    /// Reads the query, in which every parameter is a field, and the metadata, in which other keys are the
    /// client's own. `UnknownField` and `RepeatedField` name the field.
    pub(super) fn read(call: &Call, metadata: &ClientMetadata) -> Result<Self> {
        let mut read = Self::default();
        let terms = call.upload_terms();
        for (name, value) in Query::parse(&call.query, &[])?.pairs() {
            if terms.is_some() && UploadTerms::has_parameter(name) {
                continue;
            }
            if !read.take(call, name, value)? {
                return Err(fields::unknown(name, &FIELDS));
            }
        }
        for (name, value) in &metadata.pairs {
            match name.as_str() {
                "filename" | "name" => read.hint_name(value),
                "filetype" | "type" => read.hint_type(value),
                name => _ = read.take(call, name, value)?,
            }
        }
        if let Some(terms) = terms {
            read.fill_in(terms)?;
        }
        Ok(read)
    }

    /// Takes a name that a transport hints at. The first one counts.
    pub(super) fn hint_name(&mut self, name: &str) {
        if self.hints.file_name.is_none() && !name.is_empty() {
            self.hints.file_name = Some(name.to_owned());
        }
    }

    /// Takes a media type that a transport hints at. The first one counts.
    pub(super) fn hint_type(&mut self, media_type: &str) {
        if self.hints.content_type.is_none() && !media_type.is_empty() {
            self.hints.content_type = Some(media_type.to_owned());
        }
    }

    /// Fills in the terms of a signed URL. `Forbidden` if a field has another value.
    fn fill_in(&mut self, terms: &UploadTerms) -> filestore_core::Result<()> {
        self.organization_id.fix("organization_id", terms.organization_id.clone())?;
        self.sub_system.fix("sub_system", terms.sub_system.clone())?;
        self.upload_temp.fix("upload_temp", terms.temp)?;
        if let Some(mime_type) = &terms.mime_type {
            self.mime_type.fix("mime_type", Some(mime_type.clone()))?;
        }
        Ok(())
    }

    /// Takes a field; false if there is none of the name.
    fn take(&mut self, call: &Call, name: &str, value: &str) -> Result<bool> {
        match name {
            "organization_id" => put(&mut self.organization_id, name, value, fields::parsed)?,
            "sub_system" => put(&mut self.sub_system, name, value, fields::parsed)?,
            "original_name" => {
                let limit = call.store().config().limits.original_name_chars;
                put(&mut self.original_name, name, value, fields::name(limit))?;
            }
            "mime_type" => put(&mut self.mime_type, name, value, fields::mime_type)?,
            "metadata" => put(&mut self.metadata, name, value, fields::metadata)?,
            "upload_temp" => put(&mut self.upload_temp, name, value, fields::flag)?,
            "sha256" => put(&mut self.sha256, name, value, fields::parsed)?,
            "file_id" => put(&mut self.file_id, name, value, fields::parsed)?,
            "make_as_ready" => put(&mut self.make_as_ready, name, value, fields::flag)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Describes an upload whose bytes are a part of another one. Only the organization counts.
    pub(super) fn finish_partial(self, call: &Call) -> Result<NewResumable> {
        let organization_id = fields::required("organization_id", self.organization_id)?;
        call.caller.scope.check(&organization_id)?;
        Ok(NewResumable::of(ResumableTarget::Partial { organization_id }))
    }

    /// Describes the upload: new bytes for a file if the fields name one, else a new file.
    pub(super) fn finish(self, call: &Call) -> Result<NewResumable> {
        let mut given = GivenName::default();
        given.name = self.original_name.take().flatten();
        given.mime_type = self.mime_type.take().flatten();
        given.hints = self.hints;
        let metadata = self.metadata.take().flatten();

        if let Some(file_id) = self.file_id.take() {
            if call.upload_terms().is_some() {
                let message = "a signed upload URL creates one new file";
                return Err(filestore_core::Error::new(ErrorKind::Forbidden, message)
                    .with_field("file_id")
                    .into());
            }
            let mut new = Replacement::new();
            (new.given, new.metadata) = (given, metadata);
            new.make_ready = self.make_as_ready.take().unwrap_or(false);
            for (name, is_given) in [
                ("sub_system", self.sub_system.get().is_some()),
                ("upload_temp", self.upload_temp.get().is_some()),
                ("sha256", self.sha256.get().is_some()),
            ] {
                if is_given {
                    let message = format!("a replacement has no {name}");
                    return Err(filestore_core::Error::invalid(name, message).into());
                }
            }
            return Ok(NewResumable::of(ResumableTarget::Replace {
                file_id,
                new,
                conditions: preconditions(&call.headers),
                scope: (*call.caller.scope).clone(),
            }));
        }

        let organization = fields::required("organization_id", self.organization_id)?;
        call.caller.scope.check(&organization)?;
        let sub_system = fields::required("sub_system", self.sub_system)?;
        let mut new = NewUpload::new(organization, sub_system).with_given(given);
        new.temp = self.upload_temp.take().unwrap_or(false);
        new.sha256 = self.sha256.take();
        new.metadata = metadata.unwrap_or_default();
        Ok(NewResumable::new(new))
    }
}

fn put<T>(
    field: &mut Once<T>,
    name: &str,
    value: &str,
    parse: impl FnOnce(&str) -> filestore_core::Result<T>,
) -> Result<()> {
    let value = parse(value).map_err(|error| error.with_field(name))?;
    field.set(name, value)
}
