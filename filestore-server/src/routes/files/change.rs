//! PUT /files/upload: makes a file a thumbnail, makes it ready, or replaces its bytes. PATCH changes only
//! name, type or metadata, see [`super::edit`].

use std::sync::Arc;

use filestore_core::api::ChangeReply;
use filestore_core::uploads::{PartHints, ReplacementClaims, UploadSession};
use filestore_core::{Change, CustomMetadata, Error, FileId, Preconditions, Replacement, Result};
use http::HeaderMap;
use http::header::CONTENT_RANGE;
use warp::reply::Response;

use crate::error;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::fields::{self, CHARSET_FIELD, Once};
use crate::request::form::{Part, open_form};
use crate::request::incoming::Body;
use crate::request::preconditions::preconditions;

const FIELDS: [&str; 7] = [
    "file_id",
    "make_as_thumbnail",
    "make_as_ready",
    "file",
    "original_name",
    "mime_type",
    "metadata",
];

/// Answers PUT on `/files/upload`.
pub(crate) async fn change(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    refuse_part(&call.headers)?;
    let mut form = open_form(&call, body, 1, call.store().config().limits.max_file_size)?;
    let conditions = preconditions(&call.headers);
    let (mut fields, mut session) = (ChangeForm::default(), call.begin_upload());
    while let Some(mut part) = form.next_part().await? {
        fields.take(&call, &mut session, &mut part, &conditions).await?;
    }

    let (id, asked) = fields.finish()?;
    call.report("change", asked.name());
    let scope = call.recheck().await?;
    let sends_bytes = matches!(asked, Asked::Bytes(_));
    let changed = match asked {
        Asked::Bytes(new) => session.commit_replacement(new, &scope).await?,
        Asked::Status(change) => call.store().scoped(&scope).change(id, change, conditions).await?,
    };
    call.report_file(&changed.record);
    let shown =
        ChangeReply::new(id.to_string(), changed.shown_sync, changed.record.updated_at.to_string());
    let reply = reply::ok(&shown)?;
    // The tag is the digest of the bytes. A caller who has sent them knows it.
    let may_know = sends_bytes || call.may_read();
    Ok(if may_know { reply::with_etag(reply, &changed.record) } else { reply })
}

/// The change that a form requests.
#[derive(Debug)]
enum Asked {
    /// New bytes in the session.
    Bytes(Replacement),
    /// Another status.
    Status(Change),
}

impl Asked {
    /// Returns the name of the change for the audit log.
    fn name(&self) -> &'static str {
        match self {
            Self::Bytes(_) => "replace",
            Self::Status(Change::MakeThumbnail) => "make_as_thumbnail",
            Self::Status(Change::MakeReady) => "make_as_ready",
            Self::Status(Change::Edit(_)) => "edit",
        }
    }
}

/// Refuses a part of a file, because it would be stored as the whole file (RFC 9110 section 14.5).
fn refuse_part(headers: &HeaderMap) -> Result<()> {
    if headers.contains_key(CONTENT_RANGE) {
        let message = "a part of a file cannot be replaced: send all of it";
        return Err(Error::invalid("Content-Range", message));
    }
    Ok(())
}

/// The fields of the form so far.
#[derive(Debug, Default)]
struct ChangeForm {
    file_id: Once<FileId>,
    make_as_thumbnail: Once<bool>,
    make_as_ready: Once<bool>,
    original_name: Once<String>,
    mime_type: Once<String>,
    metadata: Once<CustomMetadata>,
    charset: Once<()>,
    file: Once<PartHints>,
}

impl ChangeForm {
    /// Reads the next field.
    async fn take(
        &mut self,
        call: &Call,
        session: &mut UploadSession,
        part: &mut Part<'_>,
        conditions: &Preconditions,
    ) -> error::Result<()> {
        match part.name() {
            "file_id" => {
                self.file_id.read(part, fields::parsed).await?;
                if let Some(id) = self.file_id.get() {
                    call.report("file_id", id.to_string());
                }
                // The file came before it was known whose place it takes.
                match (self.file.get(), self.file_id.get()) {
                    (Some(_), Some(id)) => {
                        let claims = claims_of(*id, conditions, session.received_bytes());
                        Ok(session.claim_replacement(claims, &call.caller.scope).await?)
                    }
                    _ => Ok(()),
                }
            }
            "make_as_thumbnail" => self.make_as_thumbnail.read(part, fields::flag).await,
            "make_as_ready" => self.make_as_ready.read(part, fields::flag).await,
            "original_name" => {
                let limit = call.store().config().limits.original_name_chars;
                self.original_name.read_unless_blank(part, fields::name(limit)).await
            }
            "mime_type" => self.mime_type.read_unless_blank(part, fields::mime_type).await,
            "metadata" => self.metadata.read_unless_blank(part, fields::metadata).await,
            "file" => self.take_file(call, session, part, conditions).await,

            CHARSET_FIELD => self.charset.read(part, fields::ignored).await,
            name => Err(fields::unknown(name, &FIELDS)),
        }
    }

    /// Receives the file, unless earlier fields forbid it.
    async fn take_file(
        &mut self,
        call: &Call,
        session: &mut UploadSession,
        part: &mut Part<'_>,
        conditions: &Preconditions,
    ) -> error::Result<()> {
        self.file.expect_first("file")?;
        let hints = fields::hints(part);
        let (form, target) = (&*self, &mut *session);
        let begin = async move {
            form.check_flags(WithFile::Yes)?;
            if let Some(id) = form.file_id.get() {
                let claims = claims_of(*id, conditions, call.announced_bytes(1));
                target.claim_replacement(claims, &call.caller.scope).await?;
            }
            target.begin_file().await?;
            Ok(target)
        };

        if fields::receive(part, begin).await? {
            session.end_file().await?;
            self.file.set("file", hints)?;
        }
        Ok(())
    }

    fn check_flags(&self, file: WithFile) -> Result<()> {
        let thumbnail = is_set(&self.make_as_thumbnail);
        if thumbnail && is_set(&self.make_as_ready) {
            let message = "make_as_thumbnail and make_as_ready exclude each other";
            return Err(Error::invalid("make_as_thumbnail", message));
        }
        if thumbnail && file == WithFile::Yes {
            return Err(Error::invalid("make_as_thumbnail", "make_as_thumbnail takes no file"));
        }
        Ok(())
    }

    /// Returns the change that the complete form requests.
    fn finish(self) -> Result<(FileId, Asked)> {
        self.check_flags(if self.file.get().is_some() { WithFile::Yes } else { WithFile::No })?;
        let (thumbnail, ready) = (is_set(&self.make_as_thumbnail), is_set(&self.make_as_ready));
        let id = fields::required("file_id", self.file_id)?;
        let said = Said {
            original_name: self.original_name.take(),
            mime_type: self.mime_type.take(),
            metadata: self.metadata.take(),
        };

        let file = self.file.take();
        if file.is_none() {
            said.expect_nothing()?;
        }
        let asked = match (file, thumbnail, ready) {
            (Some(hints), _, ready) => Asked::Bytes(said.of(hints, ready)),
            (None, true, _) => Asked::Status(Change::MakeThumbnail),
            (None, false, true) => Asked::Status(Change::MakeReady),
            (None, false, false) => return Err(fields::missing("file")),
        };
        Ok((id, asked))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WithFile {
    Yes,
    No,
}

fn is_set(flag: &Once<bool>) -> bool {
    flag.get() == Some(&true)
}

/// The properties of new bytes in the form.
struct Said {
    original_name: Option<String>,
    mime_type: Option<String>,
    metadata: Option<CustomMetadata>,
}

impl Said {
    /// Describes the new bytes with the form's and the part's properties.
    fn of(self, hints: PartHints, make_ready: bool) -> Replacement {
        let mut new = Replacement::new();
        new.make_ready = make_ready;
        new.given.name = self.original_name;
        new.given.mime_type = self.mime_type;
        new.given.hints = hints;
        new.metadata = self.metadata;
        new
    }

    /// Refuses properties without new bytes, whether a flag is set or not.
    fn expect_nothing(&self) -> Result<()> {
        let given = [
            ("original_name", self.original_name.is_some()),
            ("mime_type", self.mime_type.is_some()),
            ("metadata", self.metadata.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((field, _)) => {
                let elsewhere = "change it with PATCH /api/v1/files/{fileId}";
                Err(Error::invalid(field, format!("{field} needs a file here; {elsewhere}")))
            }
        }
    }
}

/// Claims a replacement of a file's bytes by about `bytes` bytes.
fn claims_of(id: FileId, conditions: &Preconditions, bytes: u64) -> ReplacementClaims {
    ReplacementClaims::new(id).with_conditions(conditions.clone()).with_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestore_core::ErrorKind;

    fn once<T>(value: T) -> Once<T> {
        let mut field = Once::default();
        field.set("x", value).unwrap();
        field
    }

    fn with_id() -> ChangeForm {
        ChangeForm {
            file_id: once("01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap()),
            ..ChangeForm::default()
        }
    }

    fn refused(form: ChangeForm) -> (ErrorKind, String) {
        let error = form.finish().unwrap_err();
        (error.kind(), error.details().field.clone().unwrap())
    }

    #[test]
    fn a_flag_alone_is_a_change_of_status() {
        let form =
            ChangeForm { make_as_thumbnail: once(true), make_as_ready: once(false), ..with_id() };
        assert!(matches!(form.finish().unwrap().1, Asked::Status(Change::MakeThumbnail)));
        let form = ChangeForm { make_as_ready: once(true), ..with_id() };
        assert!(matches!(form.finish().unwrap().1, Asked::Status(Change::MakeReady)));
    }

    #[test]
    fn what_asks_for_nothing_or_too_much_is_refused() {
        use ErrorKind::{InvalidField, MissingField};
        let both =
            ChangeForm { make_as_thumbnail: once(true), make_as_ready: once(true), ..with_id() };
        assert_eq!(refused(both), (InvalidField, "make_as_thumbnail".into()));
        assert_eq!(refused(with_id()), (MissingField, "file".into()));

        let unset = ChangeForm { make_as_ready: once(false), ..with_id() };
        assert_eq!(refused(unset), (MissingField, "file".into()));

        let nameless = ChangeForm { make_as_ready: once(true), ..ChangeForm::default() };
        assert_eq!(refused(nameless), (MissingField, "file_id".into()));
    }

    #[test]
    fn a_name_type_or_metadata_without_a_file_is_refused_and_patch_is_named() {
        let flags: [fn(ChangeForm) -> ChangeForm; 3] = [
            |form| form,
            |form| ChangeForm { make_as_ready: once(true), ..form },
            |form| ChangeForm { make_as_thumbnail: once(true), ..form },
        ];
        for flag in flags {
            let name = ChangeForm { original_name: once("a.txt".into()), ..with_id() };
            let mime = ChangeForm { mime_type: once("a/b".into()), ..with_id() };
            let metadata = ChangeForm { metadata: once("{}".parse().unwrap()), ..with_id() };
            for (form, field) in
                [(name, "original_name"), (mime, "mime_type"), (metadata, "metadata")]
            {
                let error = flag(form).finish().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidField, "{field}");
                assert_eq!(error.details().field.as_deref(), Some(field));
                let message = error.message();
                assert!(message.contains("PATCH /api/v1/files/{fileId}"), "{message}");
            }
        }
    }
}
