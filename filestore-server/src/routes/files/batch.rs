//! POST /files/batch: uploads several files in a form, all or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use filestore_core::api::ErrorCode;
use filestore_core::uploads::{PartHints, UploadSession, Uploaded};
use filestore_core::{
    BatchItem, CustomMetadata, Error, ErrorKind, Limits, NewBatch, OrganizationId, Result,
    SubSystem,
};
use warp::Filter;
use warp::reply::Response;

use super::record;
use crate::error;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::fields::{self, CHARSET_FIELD, Once};
use crate::request::form::{Part, open_form};
use crate::request::incoming::Body;
use crate::routes::filters::{RouteFilter, post};

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

/// Builds `/files/batch`.
pub(crate) fn routes() -> RouteFilter {
    warp::path!("files" / "batch").and(post(create)).boxed()
}

async fn create(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let limits = call.store().config().limits;
    let mut form = open_form(&call, body, limits.max_batch_items, limits.max_batch_size)?;
    let (mut fields, mut session) = (BatchForm::default(), call.begin_upload());
    while let Some(mut part) = form.next_part().await? {
        fields.take(&call, &mut session, &mut part).await?;
    }

    session.finish_files().await?;
    let (new, items) = fields.finish()?;
    call.recheck().await?.check(&new.organization_id)?;
    match session.commit_batch(new, items).await? {
        Uploaded::New(records) => reply::created(&record::converted(&call, &records).await),
        Uploaded::Replayed(reply) => Ok(reply::created_again(reply.into_json())),
    }
}

/// The fields of the form so far.
#[derive(Debug, Default)]
struct BatchForm {
    organization_id: Once<OrganizationId>,
    sub_system: Once<SubSystem>,
    charset: Once<()>,
    items: BTreeMap<u32, Item>,
}

#[derive(Debug, Default)]
struct Item {
    original_name: Once<String>,
    mime_type: Once<String>,
    metadata: Once<CustomMetadata>,
    file: Once<PartHints>,
}

impl BatchForm {
    /// Reads the next field.
    async fn take(
        &mut self,
        call: &Call,
        session: &mut UploadSession,
        part: &mut Part<'_>,
    ) -> error::Result<()> {
        match part.name() {
            "organization_id" => {
                self.organization_id.read(part, fields::parsed).await?;
                let organization = self.organization_id.get().expect("it was read just now");
                let items = call.store().config().limits.max_batch_items;
                Ok(session.claim(call.upload_claims(organization, items)?).await?)
            }
            "sub_system" => self.sub_system.read(part, fields::parsed).await,

            CHARSET_FIELD => self.charset.read(part, fields::ignored).await,
            name => {
                let (index, field) = item_field(name)?;
                let taken = self.take_item(call, session, part, (index, field)).await;
                taken.map_err(|e| e.with_item(index))
            }
        }
    }

    async fn take_item(
        &mut self,
        call: &Call,
        session: &mut UploadSession,
        part: &mut Part<'_>,
        (index, field): (u32, ItemField),
    ) -> error::Result<()> {
        let config = call.store().config();
        let limits = &config.limits;
        match field {
            ItemField::OriginalName => {
                let item = self.item(index, limits)?;
                item.original_name
                    .read_unless_blank(part, fields::name(limits.original_name_chars))
                    .await
            }
            ItemField::MimeType => {
                self.item(index, limits)?.mime_type.read_unless_blank(part, fields::mime_type).await
            }
            ItemField::Metadata => {
                self.item(index, limits)?.metadata.read_unless_blank(part, fields::metadata).await
            }
            ItemField::File => self.take_file(limits, session, part, index).await,
        }
    }

    /// Returns the item with this index. `TooManyItems` if there are too many items.
    fn item(&mut self, index: u32, limits: &Limits) -> Result<&mut Item> {
        if self.items.len() >= limits.max_batch_items && !self.items.contains_key(&index) {
            let message =
                format!("a batch has more items than allowed: {}", limits.max_batch_items);
            return Err(Error::new(ErrorKind::TooManyItems, message)
                .with_limit(limits.max_batch_items as u64));
        }
        Ok(self.items.entry(index).or_default())
    }

    async fn take_file(
        &mut self,
        limits: &Limits,
        session: &mut UploadSession,
        part: &mut Part<'_>,
        index: u32,
    ) -> error::Result<()> {
        let name = part.name().to_owned();
        if let Some(item) = self.items.get(&index) {
            item.file.expect_first(&name)?;
        }

        let hints = fields::hints(part);
        let left = limits.max_batch_size.saturating_sub(session.received_bytes());
        let (form, target) = (&mut *self, &mut *session);
        let begin = async move {
            form.item(index, limits)?;
            target.begin_item(index).await?;
            Ok(target)
        };
        let received = fields::receive(part, begin).await;
        if received.map_err(|e| over_batch(e, left, limits))? {
            self.item(index, limits)?.file.set(&name, hints)?;
            session.end_file().await?;
        }
        Ok(())
    }

    /// Checks that the form is complete.
    fn finish(self) -> Result<(NewBatch, Vec<BatchItem>)> {
        let organization_id = fields::required("organization_id", self.organization_id)?;
        let sub_system = fields::required("sub_system", self.sub_system)?;

        let mut items = Vec::with_capacity(self.items.len());
        for (index, item) in self.items {
            let hints = fields::required(&format!("items[{index}].file"), item.file)
                .map_err(|e| e.with_item(index))?;

            let mut described = BatchItem::new(index);
            described.given.name = item.original_name.take();
            described.given.mime_type = item.mime_type.take();
            described.given.hints = hints;
            described.metadata = item.metadata.take().unwrap_or_default();
            items.push(described);
        }
        Ok((NewBatch::new(organization_id, sub_system), items))
    }
}

/// Reports that the batch is too large, if the single file was not.
fn over_batch(error: error::Error, left: u64, limits: &Limits) -> error::Error {
    if error.code() != ErrorCode::TooLarge || left >= limits.max_file_size {
        return error;
    }
    let message = format!("the batch has more bytes than allowed: {}", limits.max_batch_size);
    let field = error.details().field.clone().unwrap_or_default();
    let error = Error::new(ErrorKind::TooLarge, message).with_field(field);
    error.with_limit(limits.max_batch_size).into()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemField {
    File,
    OriginalName,
    MimeType,
    Metadata,
}

/// Parses field names like `items[N].file`. N is decimal without leading zeros, 0 to 9999.
fn item_field(name: &str) -> error::Result<(u32, ItemField)> {
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
            assert_eq!(error.code(), ErrorCode::InvalidField, "{name}");
            assert_eq!(error.details().field.as_deref(), Some(name));
        }

        for name in ["items[1].fil", "items[1].", "item[1].file", "file"] {
            assert_eq!(item_field(name).unwrap_err().code(), ErrorCode::UnknownField, "{name}");
        }
    }

    #[test]
    fn an_index_with_text_but_no_file_is_refused() {
        let mut form = BatchForm::default();
        form.organization_id.set("x", "7".parse().unwrap()).unwrap();
        form.sub_system.set("x", "s".parse().unwrap()).unwrap();
        form.item(4, &Limits::default()).unwrap().original_name.set("x", "n".into()).unwrap();
        let error = form.finish().unwrap_err();
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
