//! POST /files/batch: several files in a form, all of them or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use filestore_core::api;
use filestore_core::uploads::{PartHints, StagedBlob, StagingWriter, Uploaded};
use filestore_core::{
    BatchItem, CustomMetadata, Error, ErrorKind, Limits, NewBatch, OrganizationId, Result,
    SubSystem,
};
use tokio::task::JoinSet;
use warp::Filter;
use warp::reply::Response;

use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::fields::{self, CHARSET_FIELD, Once};
use crate::request::form::{Part, open_form};
use crate::request::incoming::Body;
use crate::request::room::{Incoming, Room};
use crate::request::upload_claims::UploadClaims;
use crate::routes::filters::{Route, post};

const FIELDS: [&str; 6] = [
    "organization_id",
    "sub_system",
    "items[N].file",
    "items[N].original_name",
    "items[N].mime_type",
    "items[N].metadata",
];

/// The largest index of an item.
const MAX_INDEX: u32 = 9999;

/// The most items of one request that are flushed to disk at once, so that their flushes share the
/// wait.
const FLUSHES: usize = 8;

/// Builds `/files/batch`.
pub(crate) fn routes() -> Route {
    warp::path!("files" / "batch").and(post(create)).boxed()
}

async fn create(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let limits = call.store().config().limits;
    let mut form = open_form(&call, body, limits.max_batch_items, limits.max_batch_size)?;
    let mut fields = BatchForm::default();
    while let Some(mut part) = form.next_part().await? {
        fields.take(&call, &mut part).await?;
    }

    let (new, items, _claims) = fields.finish().await?;
    call.recheck().await?;
    match call.store().uploads().commit_batch(new, items).await? {
        Uploaded::New(records) => {
            let shown: Vec<api::FileRecord> = records.iter().map(Into::into).collect();
            reply::created(&shown)
        }
        Uploaded::Replayed(reply) => Ok(reply::created_again(reply.into_json())),
    }
}

/// The form as far as it has arrived.
#[derive(Debug, Default)]
struct BatchForm {
    organization_id: Once<OrganizationId>,
    sub_system: Once<SubSystem>,
    charset: Once<()>,
    items: BTreeMap<u32, Item>,
    received_bytes: u64,
    flushing: JoinSet<(u32, Result<StagedBlob>)>,
    staged: BTreeMap<u32, StagedBlob>,
    claims: Option<UploadClaims>,
}

#[derive(Debug, Default)]
struct Item {
    original_name: Once<Option<String>>,
    mime_type: Once<Option<String>>,
    metadata: Once<Option<CustomMetadata>>,
    file: Once<PartHints>,
}

impl BatchForm {
    /// Reads the next field.
    async fn take(&mut self, call: &Call, part: &mut Part<'_>) -> Result<()> {
        match part.name() {
            "organization_id" => {
                self.organization_id.read(part, fields::parsed).await?;
                let organization = self.organization_id.get().expect("it was read just now");
                let items = call.store().config().limits.max_batch_items;
                self.claims =
                    Some(UploadClaims::of(call, organization, self.received_bytes, items).await?);
                Ok(())
            }
            "sub_system" => self.sub_system.read(part, fields::parsed).await,

            CHARSET_FIELD => self.charset.read(part, fields::ignored).await,
            name => {
                let (index, field) = item_field(name)?;
                self.take_item(call, part, index, field).await.map_err(|e| e.with_item(index))
            }
        }
    }

    async fn take_item(
        &mut self,
        call: &Call,
        part: &mut Part<'_>,
        index: u32,
        field: ItemField,
    ) -> Result<()> {
        let config = call.store().config();
        let limits = &config.limits;
        match field {
            ItemField::OriginalName => {
                let item = self.item(index, limits)?;
                item.original_name.read(part, fields::name(limits.original_name_chars)).await
            }
            ItemField::MimeType => {
                self.item(index, limits)?.mime_type.read(part, fields::mime_type).await
            }
            ItemField::Metadata => {
                self.item(index, limits)?.metadata.read(part, fields::metadata).await
            }
            ItemField::File => self.take_file(call, part, index).await,
        }
    }

    /// Returns the item of that index; `TooManyItems` if the item is one too many.
    fn item(&mut self, index: u32, limits: &Limits) -> Result<&mut Item> {
        if self.items.len() >= limits.max_batch_items && !self.items.contains_key(&index) {
            let message =
                format!("a batch has more items than allowed: {}", limits.max_batch_items);
            return Err(Error::new(ErrorKind::TooManyItems, message)
                .with_limit(limits.max_batch_items as u64));
        }
        Ok(self.items.entry(index).or_default())
    }

    async fn take_file(&mut self, call: &Call, part: &mut Part<'_>, index: u32) -> Result<()> {
        let config = call.store().config();
        let limits = &config.limits;
        let name = part.name().to_owned();
        if let Some(item) = self.items.get(&index) {
            item.file.expect_first(&name)?;
        }

        let hints = fields::hints(part);
        let left = limits.max_batch_size.saturating_sub(self.received_bytes);
        let organization = self.organization_id.get().cloned();
        let stage = async {
            self.item(index, limits)?;
            let uploads = call.store().uploads();
            let uploads = organization.as_ref().map_or(uploads, |id| uploads.of(id));
            let writer = uploads.stage_up_to(left).await?;

            let reserved = self.claims.as_mut().and_then(|claims| claims.quota.take());
            Ok(Incoming { writer, room: Room::after(self.received_bytes, reserved) })
        };
        let received =
            fields::receive(call, part, stage).await.map_err(|e| over_batch(e, left, limits))?;
        let Some(Incoming { writer, room }) = received else { return Ok(()) };

        if let Some(claims) = &mut self.claims {
            claims.quota = room.into_reservation();
        }
        self.received_bytes += writer.size_bytes();
        self.item(index, limits)?.file.set(&name, hints)?;
        self.flush(index, writer).await
    }

    /// Begins to make the item durable, while the next item arrives.
    async fn flush(&mut self, index: u32, writer: StagingWriter) -> Result<()> {
        while self.flushing.len() >= FLUSHES {
            self.flushed().await?;
        }
        self.flushing.spawn(async move { (index, writer.finish().await) });
        Ok(())
    }

    /// Waits until one item is durable; false when none is left.
    async fn flushed(&mut self) -> Result<bool> {
        let Some(flushed) = self.flushing.join_next().await else { return Ok(false) };
        let (index, staged) = flushed.map_err(|e| Error::internal("staging an item", e))?;
        self.staged.insert(index, staged.map_err(|e| e.with_item(index))?);
        Ok(true)
    }

    /// Checks that the form is whole and waits until all items are durable. The caller holds the
    /// claims until the commit.
    async fn finish(
        mut self,
    ) -> Result<(NewBatch, Vec<(BatchItem, StagedBlob)>, Option<UploadClaims>)> {
        while self.flushed().await? {}
        let organization_id = fields::required("organization_id", self.organization_id)?;
        let sub_system = fields::required("sub_system", self.sub_system)?;

        let mut items = Vec::with_capacity(self.items.len());
        for (index, item) in self.items {
            let hints = fields::required(&format!("items[{index}].file"), item.file)
                .map_err(|e| e.with_item(index))?;
            let staged = self.staged.remove(&index).expect("a file that was received was staged");

            let mut described = BatchItem::new(index);
            described.given.name = item.original_name.take().flatten();
            described.given.mime_type = item.mime_type.take().flatten();
            described.given.hints = hints;
            described.metadata = item.metadata.take().flatten().unwrap_or_default();
            items.push((described, staged));
        }

        let mut claims = self.claims;
        let mut new = NewBatch::new(organization_id, sub_system);
        new.idempotency = claims.as_mut().and_then(|claims| claims.idempotency.take());
        Ok((new, items, claims))
    }
}

/// Blames the batch for being too large, where the single file was not.
fn over_batch(error: Error, left: u64, limits: &Limits) -> Error {
    if error.kind() != ErrorKind::TooLarge || left >= limits.max_file_size {
        return error;
    }
    let message = format!("the batch has more bytes than allowed: {}", limits.max_batch_size);
    let field = error.details().field.clone().unwrap_or_default();
    Error::new(ErrorKind::TooLarge, message).with_field(field).with_limit(limits.max_batch_size)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemField {
    File,
    OriginalName,
    MimeType,
    Metadata,
}

/// Reads `items[N].file` and the like; N is decimal without leading zeros, 0 to 9999.
fn item_field(name: &str) -> Result<(u32, ItemField)> {
    let rest = name.strip_prefix("items[").ok_or_else(|| fields::unknown(name, &FIELDS))?;
    let (digits, field) = rest.split_once("].").ok_or_else(|| malformed_item(name))?;

    let index = digits
        .parse()
        .ok()
        .filter(|index: &u32| *index <= MAX_INDEX && index.to_string() == digits);
    let index = index.ok_or_else(|| malformed_item(name))?;

    let field = match field {
        "file" => ItemField::File,
        "original_name" => ItemField::OriginalName,
        "mime_type" => ItemField::MimeType,
        "metadata" => ItemField::Metadata,
        _ => return Err(fields::unknown(name, &FIELDS).with_item(index)),
    };
    Ok((index, field))
}

fn malformed_item(name: &str) -> Error {
    let message = format!("an item is named items[N].file with N from 0 to {MAX_INDEX}: {name}");
    Error::invalid(name, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_fields_have_a_canonical_index() {
        assert_eq!(item_field("items[0].file").unwrap(), (0, ItemField::File));
        assert_eq!(
            item_field("items[9999].original_name").unwrap(),
            (9999, ItemField::OriginalName)
        );
        assert_eq!(item_field("items[10].mime_type").unwrap(), (10, ItemField::MimeType));

        for name in [
            "items[01].file",
            "items[].file",
            "items[+1].file",
            "items[10000].file",
            "items[1]file",
        ] {
            let error = item_field(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidField, "{name}");
            assert_eq!(error.details().field.as_deref(), Some(name));
        }

        for name in ["items[1].fil", "items[1].", "item[1].file", "file"] {
            assert_eq!(item_field(name).unwrap_err().kind(), ErrorKind::UnknownField, "{name}");
        }
    }

    #[tokio::test]
    async fn an_index_with_text_but_no_file_is_refused() {
        let mut form = BatchForm::default();
        form.organization_id.set("x", "7".parse().unwrap()).unwrap();
        form.sub_system.set("x", "s".parse().unwrap()).unwrap();
        form.item(4, &Limits::default()).unwrap().original_name.set("x", Some("n".into())).unwrap();
        let error = form.finish().await.unwrap_err();
        assert_eq!((error.kind(), error.details().item), (ErrorKind::MissingField, Some(4)));
        assert_eq!(error.details().field.as_deref(), Some("items[4].file"));
    }

    #[test]
    fn one_item_too_many_is_refused_before_it_is_received() {
        let mut limits = Limits::default();
        limits.max_batch_items = 1;
        let mut form = BatchForm::default();
        form.item(5, &limits).unwrap();
        form.item(5, &limits).unwrap();
        assert_eq!(form.item(6, &limits).unwrap_err().kind(), ErrorKind::TooManyItems);
    }
}
