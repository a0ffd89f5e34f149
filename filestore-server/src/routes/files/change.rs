//! PUT /files/upload: make a file a thumbnail, make it ready, replace its bytes, edit its name, type and
//! metadata.

use std::sync::Arc;

use filestore_core::api::ChangeReply;
use filestore_core::uploads::{PartHints, QuotaReservation, StagedBlob};
use filestore_core::{
    Change, CustomMetadata, Edit, Error, FileId, FileRecord, Preconditions, Replacement, Result,
};
use http::HeaderMap;
use http::header::CONTENT_RANGE;
use warp::reply::Response;

use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::fields::{self, CHARSET_FIELD, Once};
use crate::request::form::{Part, open_form};
use crate::request::incoming::Body;
use crate::request::preconditions::preconditions;
use crate::request::room::{Incoming, Room};
use crate::request::upload_claims::announced_bytes;

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
    let mut fields = ChangeForm::default();
    while let Some(mut part) = form.next_part().await? {
        fields.take(&call, &mut part, &conditions).await?;
    }

    let (id, change, _room) = fields.finish()?;
    call.recheck().await?;
    let changed = call.store().change(id, &call.caller.scope, change, conditions).await?;
    let shown =
        ChangeReply::new(id.to_string(), changed.shown_sync, changed.record.updated_at.to_string());
    Ok(reply::with_etag(reply::ok(&shown)?, &changed.record))
}

/// Refuses a part of a file, which would be taken for all of it (RFC 9110 section 14.5).
fn refuse_part(headers: &HeaderMap) -> Result<()> {
    if headers.contains_key(CONTENT_RANGE) {
        let message = "a part of a file cannot be replaced: send all of it";
        return Err(Error::invalid("Content-Range", message));
    }
    Ok(())
}

/// The form as far as it has arrived.
#[derive(Debug, Default)]
struct ChangeForm {
    file_id: Once<FileId>,
    make_as_thumbnail: Once<bool>,
    make_as_ready: Once<bool>,
    original_name: Once<Option<String>>,
    mime_type: Once<Option<String>>,
    metadata: Once<Option<CustomMetadata>>,
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
            "file_id" => {
                self.file_id.read(part, fields::parsed).await?;
                self.reserve_for_received(call, conditions).await
            }
            "make_as_thumbnail" => self.make_as_thumbnail.read(part, fields::flag).await,
            "make_as_ready" => self.make_as_ready.read(part, fields::flag).await,
            "original_name" => {
                let limit = call.store().config().limits.original_name_chars;
                self.original_name.read(part, fields::name(limit)).await
            }
            "mime_type" => self.mime_type.read(part, fields::mime_type).await,
            "metadata" => self.metadata.read(part, fields::metadata).await,
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
                return admit(call, *id, conditions).await;
            }
            Ok(Incoming { writer: call.store().uploads().stage().await?, room: Room::default() })
        };

        if let Some(Incoming { writer, room }) = fields::receive(call, part, stage).await? {
            self.file.set("file", (writer.finish().await?, hints))?;
            self.room = room.into_reservation();
        }
        Ok(())
    }

    /// Reserves the room for a file that came before it was known whose place it takes.
    async fn reserve_for_received(
        &mut self,
        call: &Call,
        conditions: &Preconditions,
    ) -> Result<()> {
        let (Some(id), Some((staged, _))) = (self.file_id.get(), self.file.get()) else {
            return Ok(());
        };
        let record = call.store().check_change(*id, &call.caller.scope, conditions).await?;
        self.room = reserve(call, &record, staged.size_bytes).await?;
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
        let mut said = Edit::default();
        said.name = self.original_name.take().flatten();
        said.mime_type = self.mime_type.take().flatten();
        said.metadata = self.metadata.take().flatten();

        let change = match (self.file.take(), thumbnail, ready) {
            (Some(file), _, true) => Change::MakeReady(Some(replacement(file, said))),
            (Some(file), _, false) => Change::Replace(replacement(file, said)),
            (None, false, false) if said == Edit::default() => return Err(fields::missing("file")),
            (None, false, false) => Change::Edit(said),
            (None, true, _) => without_edit(&said, Change::MakeThumbnail)?,
            (None, false, true) => without_edit(&said, Change::MakeReady(None))?,
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

/// Makes new bytes of the file, described as the form says.
fn replacement((staged, hints): (StagedBlob, PartHints), said: Edit) -> Replacement {
    let mut new = Replacement::new(staged);
    new.given.name = said.name;
    new.given.mime_type = said.mime_type;
    new.given.hints = hints;
    new.metadata = said.metadata;
    new
}

/// Refuses a name, type or metadata beside a flag without a file: an edit is a request of its own.
fn without_edit(said: &Edit, change: Change) -> Result<Change> {
    let given = [
        ("original_name", said.name.is_some()),
        ("mime_type", said.mime_type.is_some()),
        ("metadata", said.metadata.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        None => Ok(change),
        Some((field, _)) => {
            let message = format!("beside a flag {field} needs a file; alone it is an edit");
            Err(Error::invalid(field, message))
        }
    }
}

/// Checks the change as far as possible before the bytes are received, and begins to receive them in
/// the room for those that are more than before.
async fn admit(call: &Call, id: FileId, conditions: &Preconditions) -> Result<Incoming> {
    let (store, scope) = (call.store(), &call.caller.scope);
    let record = store.check_change(id, scope, conditions).await?;
    let reserved = reserve(call, &record, announced_bytes(call, 1)).await?;

    let writer = store.uploads().of(&record.organization_id).stage().await?;
    Ok(Incoming { writer, room: Room::in_place_of(record.blob.size_bytes, reserved) })
}

/// Reserves room for those of `bytes` that are more than the record's.
async fn reserve(call: &Call, record: &FileRecord, bytes: u64) -> Result<Option<QuotaReservation>> {
    let more = bytes.saturating_sub(record.blob.size_bytes);
    call.store().uploads().reserve_quota(&record.organization_id, more).await
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

        let object = Some("{}".parse().unwrap());
        let metadata =
            ChangeForm { make_as_thumbnail: once(true), metadata: once(object), ..with_id() };
        assert_eq!(refused(metadata), (InvalidField, "metadata".into()));

        let blank = ChangeForm { original_name: once(None), metadata: once(None), ..with_id() };
        assert_eq!(refused(blank), (MissingField, "file".into()));
    }

    #[test]
    fn a_name_type_or_metadata_alone_is_an_edit() {
        let name = ChangeForm { original_name: once(Some("a.txt".into())), ..with_id() };
        let mime = ChangeForm { mime_type: once(Some("a/b".into())), ..with_id() };
        let metadata = ChangeForm { metadata: once(Some("{}".parse().unwrap())), ..with_id() };
        for form in [name, mime, metadata] {
            assert!(matches!(form.finish().unwrap().1, Change::Edit(_)));
        }
    }
}
