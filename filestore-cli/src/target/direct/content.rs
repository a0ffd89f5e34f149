//! Bytes in and out of a data directory: staged and committed as the server would, read and checked
//! as the client would.

use std::sync::Arc;

use bytes::BytesMut;
use filestore_core::api::{ChangeReply, FileRecord, Fit};
use filestore_core::uploads::{GivenName, IdempotencyGuard, StagedBlob, Uploaded};
use filestore_core::variants::{Motion, VariantSize};
use filestore_core::web::media;
use filestore_core::{
    self as core, BatchItem, FileId, NewBatch, NewUpload, OrganizationId, Replacement, Scope,
    Sha256, SubSystem,
};
use futures_util::StreamExt;
use sha2::{Digest, Sha256 as Hasher};
use tokio::io::AsyncReadExt;

use super::{Direct, convert, parse_id};
use crate::failure::{Failure, Result};
use crate::output::Meter;
use crate::target::destination::{Delivery, Destination};
use crate::target::item::Item;
use crate::target::range::ByteRange;
use crate::target::request::{
    Acknowledged, Batch, Change, IfMatch, Lifetime, Place, Upload, Variant,
};

/// Bytes read from the source at once.
const PIECE_BYTES: usize = 256 << 10;

impl Direct {
    pub(super) async fn upload_one(&self, upload: Upload, meter: &Meter) -> Result<Acknowledged> {
        let (organization_id, sub_system) = parse_place(&upload.place)?;
        let guard = self.begin_idempotent(&organization_id, upload.idempotency_key).await?;

        let mut new = NewUpload::new(organization_id, sub_system);
        new.sha256 = upload.sha256.map(|hex| hex.parse::<Sha256>()).transpose()?;
        new.temp = upload.lifetime == Lifetime::Temporary;
        new.idempotency = guard;
        new.given = self.given(&upload.item);
        new.metadata = convert::metadata(upload.item.metadata.as_ref())?.unwrap_or_default();

        let staged = self.stage(&upload.item, meter).await?;
        let committed = self.store.uploads().commit_upload(new, staged).await?;
        let is_replay = matches!(committed, Uploaded::Replayed(_));
        let record = match committed {
            Uploaded::New(record) => (&record).into(),
            Uploaded::Replayed(reply) => {
                FileRecord::try_from(&reply).map_err(|e| unreadable(&e))?
            }
        };
        Ok(Acknowledged { record, is_replay })
    }

    async fn begin_idempotent(
        &self,
        organization: &OrganizationId,
        key: Option<String>,
    ) -> Result<Option<IdempotencyGuard>> {
        let Some(key) = key else { return Ok(None) };
        let guard = self.store.uploads().begin_idempotent(organization, "", &key).await?;
        Ok(Some(guard))
    }

    pub(super) async fn upload_all(&self, batch: Batch, meter: &Meter) -> Result<Vec<FileRecord>> {
        let (organization_id, sub_system) = parse_place(&batch.place)?;
        let idempotency = self.begin_idempotent(&organization_id, batch.idempotency_key).await?;

        let mut items = Vec::with_capacity(batch.items.len());
        for (index, item) in (0..).zip(&batch.items) {
            let mut described = BatchItem::new(index).with_given(self.given(item));
            described.metadata = convert::metadata(item.metadata.as_ref())?.unwrap_or_default();
            items.push((described, self.stage(item, &meter.part()).await?));
        }

        let mut new = NewBatch::new(organization_id, sub_system);
        new.idempotency = idempotency;
        match self.store.uploads().commit_batch(new, items).await? {
            Uploaded::New(records) => Ok(records.iter().map(Into::into).collect()),
            Uploaded::Replayed(reply) => Vec::try_from(&reply).map_err(|e| unreadable(&e)),
        }
    }

    pub(super) async fn change_one(
        &self,
        id: FileId,
        change: Change,
        if_match: Option<IfMatch>,
        meter: &Meter,
    ) -> Result<ChangeReply> {
        let conditions = convert::preconditions(if_match)?;
        self.store.check_change(id, &Scope::All, &conditions).await?;
        let change = match change {
            Change::Thumbnail => core::Change::MakeThumbnail,
            Change::Ready(None) => core::Change::MakeReady(None),
            Change::Ready(Some(item)) => {
                core::Change::MakeReady(Some(self.replacement(&item, meter).await?))
            }
            Change::Replace(item) => core::Change::Replace(self.replacement(&item, meter).await?),
            Change::Edit(edit) => core::Change::Edit(convert::edit(edit)?),
        };

        let changed = self.store.change(id, &Scope::All, change, conditions).await?;
        Ok(ChangeReply::new(
            changed.record.file_id.to_string(),
            changed.shown_sync,
            changed.record.updated_at.to_string(),
        ))
    }

    pub(super) async fn download_one(
        &self,
        id: FileId,
        range: Option<ByteRange>,
        to: &Destination,
        meter: &Meter,
    ) -> Result<u64> {
        let size_bytes = self.store.record(id, &Scope::All).await?.blob.size_bytes;
        let part = range.map_or(Ok(0..size_bytes), |range| range.within(size_bytes))?;

        let (record, mut pieces) =
            self.store.open_file(id, &Scope::All, Some(part.clone())).await?;
        if record.blob.size_bytes != size_bytes {
            return Err(Failure::refused("the file was replaced just now: try again"));
        }

        let wanted = part.end - part.start;
        meter.set_total(Some(wanted));
        let whole = part == (0..size_bytes);
        let mut delivery = Delivery::begin(to)?;

        let mut hasher = Hasher::new();
        while let Some(piece) = pieces.next().await {
            let piece = piece?;
            hasher.update(&piece);
            delivery.write(&piece).await?;
            meter.add(piece.len() as u64);
        }

        if whole && <[u8; 32]>::from(hasher.finalize()) != record.blob.sha256.0 {
            return Err(Failure::failed(
                "the stored bytes do not have the file's sha256: the disk is damaged",
            )
            .hint("restore the file from a backup"));
        }

        delivery.finish().await?;
        Ok(wanted)
    }

    pub(super) async fn make_variant(
        &self,
        id: FileId,
        size: u32,
        fit: Fit,
        motion: Motion,
    ) -> Result<Variant> {
        let size = VariantSize::try_from(size)?;

        Ok(match self.store.variant(id, size).fit(fit.into()).motion(motion).await? {
            (_, core::variants::Variant::WebP(bytes)) => {
                Variant { bytes, mime_type: "image/webp".into() }
            }
            (_, core::variants::Variant::PassThrough { mime }) => {
                let bytes = self.store.read(id, &Scope::All).await?;
                Variant { bytes, mime_type: mime.into() }
            }
        })
    }

    pub(super) async fn make_sheet(
        &self,
        ids: &[String],
        size: u32,
        fit: Fit,
    ) -> Result<Arc<core::variants::Sheet>> {
        let ids = ids.iter().map(|id| parse_id(id)).collect::<Result<Vec<_>>>()?;
        let size = VariantSize::try_from(size)?;
        Ok(self.store.sheet(&ids, size, fit.into(), &Scope::All).await?)
    }

    async fn replacement(&self, item: &Item, meter: &Meter) -> Result<Replacement> {
        let given = self.given(item);
        let metadata = convert::metadata(item.metadata.as_ref())?;
        let mut new = Replacement::new(self.stage(item, meter).await?).with_given(given);
        new.metadata = metadata;
        Ok(new)
    }

    /// Reads all of the item's bytes and makes them durable in staging.
    async fn stage(&self, item: &Item, meter: &Meter) -> Result<StagedBlob> {
        let mut reader = item.input.open().await?;
        let mut writer = self.store.uploads().stage().await?;

        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(PIECE_BYTES);
            let read = reader.read_buf(&mut buffer).await;
            let read = read.map_err(|e| Failure::io(format!("cannot read {}", item.input), &e))?;
            if read == 0 {
                return Ok(writer.finish().await?);
            }
            writer.write(buffer.split().freeze()).await?;
            meter.add(read as u64);
        }
    }

    /// Chooses the name to store: the given one; else the file's own, as a name if it is valid, and
    /// as a hint otherwise, from which the core makes a name.
    fn given(&self, item: &Item) -> GivenName {
        let limit = self.store.config().limits.original_name_chars;
        let mut given = GivenName::default();
        match (item.name.clone(), item.input.file_name()) {
            (Some(name), _) => given.name = Some(name),
            (None, Some(own)) if media::check_name(&own, limit).is_ok() => given.name = Some(own),
            (None, own) => given.hints.file_name = own,
        }

        given.mime_type.clone_from(&item.mime_type);
        given
    }
}

fn parse_place(place: &Place) -> Result<(OrganizationId, SubSystem)> {
    Ok((place.organization_id.parse::<OrganizationId>()?, place.sub_system.parse::<SubSystem>()?))
}

/// Reports that the stored reply of an earlier upload cannot be read.
fn unreadable(error: &serde_json::Error) -> Failure {
    Failure::failed(format!("the stored reply is not readable: {error}"))
}
