//! PUT /files/upload: make a file a thumbnail, make it ready, replace its bytes.

use std::sync::Arc;

use filestore_core::api::ChangeReply;
use filestore_core::{
    Change, Error, FileId, PartHints, Preconditions, QuotaReservation, Replacement, Result,
    StagedBlob,
};
use warp::reply::Response;

use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::fields::{self, CHARSET_FIELD, Once};
use crate::request::form::{Part, open_form};
use crate::request::incoming::Body;
use crate::request::preconditions::preconditions;
use crate::request::upload_claims::announced_bytes;

const FIELDS: [&str; 6] =
    ["file_id", "make_as_thumbnail", "make_as_ready", "file", "original_name", "mime_type"];

/// Answers PUT on `/files/upload`.
pub(crate) async fn change(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let mut form = open_form(&call, body, 1, call.store().config().limits.max_file_size)?;
    let conditions = preconditions(&call.headers);
    let mut fields = ChangeForm::default();
    while let Some(mut part) = form.next_part().await? {
        fields.take(&call, &mut part, &conditions).await?;
    }

    let (id, change, _room) = fields.finish()?;
    let changed = call.store().change(id, &call.caller.scope, change, conditions).await?;
    let shown =
        ChangeReply::new(id.to_string(), changed.shown_sync, changed.record.updated_at.to_string());
    Ok(reply::with_etag(reply::ok(&shown)?, &changed.record))
}

/// The form as far as it has arrived.
#[derive(Debug, Default)]
struct ChangeForm {
    file_id: Once<FileId>,
    make_as_thumbnail: Once<bool>,
    make_as_ready: Once<bool>,
    original_name: Once<Option<String>>,
    mime_type: Once<Option<String>>,
    charset: Once<()>,
    file: Once<(StagedBlob, PartHints)>,
    room: Option<QuotaReservation>,
}

impl ChangeForm {
    /// Reads the next field.
    async fn take(
        &mut self,
        call: &Call,
        part: &mut Part<'_>,
        conditions: &Preconditions,
    ) -> Result<()> {
        match part.name() {
            "file_id" => self.file_id.read(part, fields::parsed).await,
            "make_as_thumbnail" => self.make_as_thumbnail.read(part, fields::flag).await,
            "make_as_ready" => self.make_as_ready.read(part, fields::flag).await,
            "original_name" => {
                let limit = call.store().config().limits.original_name_chars;
                self.original_name.read(part, fields::name(limit)).await
            }
            "mime_type" => self.mime_type.read(part, fields::mime_type).await,
            "file" => self.take_file(call, part, conditions).await,

            CHARSET_FIELD => self.charset.read(part, fields::ignored).await,
            name => Err(fields::unknown(name, &FIELDS)),
        }
    }

    /// Receives the file, unless the fields known by now forbid it.
    async fn take_file(
        &mut self,
        call: &Call,
        part: &mut Part<'_>,
        conditions: &Preconditions,
    ) -> Result<()> {
        self.file.expect_first("file")?;
        let hints = fields::hints(part);
        let stage = async {
            self.check_flags(WithFile::Yes)?;
            if let Some(id) = self.file_id.get() {
                self.room = admit(call, *id, conditions).await?;
            }
            call.store().uploads().stage().await
        };

        if let Some(writer) = fields::receive(part, stage).await? {
            self.file.set("file", (writer.finish().await?, hints))?;
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

    /// Returns the change that the whole form asks for. The caller holds the reserved room until the
    /// commit.
    fn finish(self) -> Result<(FileId, Change, Option<QuotaReservation>)> {
        self.check_flags(if self.file.get().is_some() { WithFile::Yes } else { WithFile::No })?;
        let (thumbnail, ready) = (is_set(&self.make_as_thumbnail), is_set(&self.make_as_ready));
        let id = fields::required("file_id", self.file_id)?;
        let (original_name, mime_type) =
            (self.original_name.take().flatten(), self.mime_type.take().flatten());

        let change = if let Some((staged, hints)) = self.file.take() {
            let mut new = Replacement::new(staged);
            new.given.name = original_name;
            new.given.mime_type = mime_type;
            new.given.hints = hints;
            if ready { Change::MakeReady(Some(new)) } else { Change::Replace(new) }
        } else {
            refuse_without_file("original_name", original_name.as_ref())?;
            refuse_without_file("mime_type", mime_type.as_ref())?;
            match (thumbnail, ready) {
                (true, _) => Change::MakeThumbnail,
                (false, true) => Change::MakeReady(None),
                (false, false) => return Err(fields::missing("file")),
            }
        };
        Ok((id, change, self.room))
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

fn refuse_without_file(name: &str, value: Option<&String>) -> Result<()> {
    match value {
        None => Ok(()),
        Some(_) => {
            Err(Error::invalid(name, format!("a new name or type needs a new file: {name}")))
        }
    }
}

/// Checks the change as far as possible before the bytes are received, and reserves room for the bytes
/// that are more than before.
async fn admit(
    call: &Call,
    id: FileId,
    conditions: &Preconditions,
) -> Result<Option<QuotaReservation>> {
    let (store, scope) = (call.store(), &call.caller.scope);
    store.check_change(id, scope, conditions).await?;
    let record = store.record(id, scope).await?;
    let more = announced_bytes(call).saturating_sub(record.blob.size_bytes);
    store.uploads().reserve_quota(&record.organization_id, more).await
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
        assert!(matches!(form.finish().unwrap().1, Change::MakeThumbnail));
        let form = ChangeForm { make_as_ready: once(true), ..with_id() };
        assert!(matches!(form.finish().unwrap().1, Change::MakeReady(None)));
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

        let name = ChangeForm {
            make_as_ready: once(true),
            original_name: once(Some("a.txt".into())),
            ..with_id()
        };
        assert_eq!(refused(name), (InvalidField, "original_name".into()));

        let mime = ChangeForm {
            make_as_ready: once(true),
            mime_type: once(Some("a/b".into())),
            ..with_id()
        };
        assert_eq!(refused(mime), (InvalidField, "mime_type".into()));
    }
}
