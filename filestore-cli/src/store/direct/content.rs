//! Uploads to and downloads from a data directory. Uploads use the same steps as a server.
//! Downloads make the same checks as the client.

use std::slice;
use std::sync::Arc;

use bytes::BytesMut;
use filestore_core::api::{ChangeReply, FileRecord, Fit};
use filestore_core::uploads::{
    GivenName, IdempotencyKey, ReplacementClaims, UploadClaims, UploadSession, Uploaded,
};
use filestore_core::variants::{Motion, VariantSize};
use filestore_core::web::media;
use filestore_core::{
    self as core, BatchItem, Changed, FileId, NewBatch, NewUpload, OrganizationId, Preconditions,
    Replacement, Scope, Sha256, SubSystem,
};
use futures_util::StreamExt;
use sha2::{Digest, Sha256 as Hasher};
use tokio::io::AsyncReadExt;

use super::{Direct, convert, parse_id};
use crate::failure::{Failure, Result};
use crate::output::Meter;
use crate::store::destination::{Delivery, Destination};
use crate::store::item::Item;
use crate::store::range::ByteRange;
use crate::store::request::{
    Acknowledged, Batch, Change, IfMatch, Lifetime, Place, Upload, Variant,
};

/// Number of bytes per read.
const PIECE_BYTES: usize = 256 << 10;

impl Direct {
    pub(super) async fn upload_one(&self, upload: Upload, meter: &Meter) -> Result<Acknowledged> {
        let (organization_id, sub_system) = parse_place(&upload.place)?;
        let items = slice::from_ref(&upload.item);
        let mut session = self.begin(&organization_id, upload.idempotency_key, items).await?;

        let mut new = NewUpload::new(organization_id, sub_system);
        new.sha256 = upload.sha256.map(|hex| hex.parse::<Sha256>()).transpose()?;
        new.temp = upload.lifetime == Lifetime::Temporary;
        new.given = self.given(&upload.item)?;
        new.metadata = convert::metadata(upload.item.metadata.as_ref())?.unwrap_or_default();

        session.begin_file().await?;
        receive(&mut session, &upload.item, meter).await?;
        let committed = session.commit(new).await?;
        let is_replay = matches!(committed, Uploaded::Replayed(_));
        let record = match committed {
            Uploaded::New(record) => self.shown_one(&record).await,
            Uploaded::Replayed(reply) => {
                FileRecord::try_from(&reply).map_err(|e| unreadable(&e))?
            }
        };
        Ok(Acknowledged { record, is_replay })
    }

    /// Begins an upload of `items`, with claims on the key and on room for the sizes that are known.
    async fn begin(
        &self,
        organization: &OrganizationId,
        key: Option<String>,
        items: &[Item],
    ) -> Result<UploadSession> {
        let bytes = items.iter().filter_map(|item| item.input.size_bytes()).sum();
        let mut claims = UploadClaims::new(organization.clone()).with_bytes(bytes);
        claims.idempotency = key.map(|key| IdempotencyKey::new("", key)).transpose()?;
        Ok(self.store.uploads().begin(claims).await?)
    }

    pub(super) async fn upload_all(&self, batch: Batch, meter: &Meter) -> Result<Vec<FileRecord>> {
        let (organization_id, sub_system) = parse_place(&batch.place)?;
        let mut session = self.begin(&organization_id, batch.idempotency_key, &batch.items).await?;

        let mut items = Vec::with_capacity(batch.items.len());
        for (index, item) in (0..).zip(&batch.items) {
            let mut described = BatchItem::new(index).with_given(self.given(item)?);
            described.metadata = convert::metadata(item.metadata.as_ref())?.unwrap_or_default();
            session.begin_item(index).await?;
            receive(&mut session, item, &meter.part()).await?;
            items.push(described);
        }

        let new = NewBatch::new(organization_id, sub_system);
        match session.commit_batch(new, items).await? {
            Uploaded::New(records) => Ok(self.shown(&records).await),
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
        let status = |change| self.files().change(id, change, conditions.clone());
        let changed = match change {
            Change::Thumbnail => status(core::Change::MakeThumbnail).await?,
            Change::Ready(None) => status(core::Change::MakeReady).await?,
            Change::Ready(Some(item)) => {
                self.replace(id, Replacement::new().make_ready(), &item, conditions, meter).await?
            }
            Change::Replace(item) => {
                self.replace(id, Replacement::new(), &item, conditions, meter).await?
            }
        };
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
        let size_bytes = self.files().record(id).await?.blob.size_bytes;
        let part = range.map_or(Ok(0..size_bytes), |range| range.within(size_bytes))?;

        let (record, mut pieces) = self.files().open(id, Some(part.clone())).await?;
        if record.blob.size_bytes != size_bytes {
            return Err(Failure::refused(
                "the file was replaced during the download, so try again",
            ));
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
                "the stored bytes do not match the file's sha256, so the disk is damaged",
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

        Ok(match self.files().variant(id, size).fit(fit.into()).motion(motion).await? {
            (_, core::variants::Variant::WebP(bytes)) => {
                Variant { bytes, mime_type: "image/webp".into() }
            }
            (_, core::variants::Variant::PassThrough { mime }) => {
                let bytes = self.files().read(id).await?;
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
        Ok(self.files().sheet(&ids, size, fit.into()).await?)
    }

    async fn replace(
        &self,
        id: FileId,
        mut new: Replacement,
        item: &Item,
        conditions: Preconditions,
        meter: &Meter,
    ) -> Result<Changed> {
        let mut claims = ReplacementClaims::new(id).with_conditions(conditions);
        claims.bytes = item.input.size_bytes().unwrap_or(0);
        let mut session = self.store.uploads().begin_replacement(claims, &Scope::All).await?;

        new.given = self.given(item)?;
        new.metadata = convert::metadata(item.metadata.as_ref())?;
        session.begin_file().await?;
        receive(&mut session, item, meter).await?;
        Ok(session.commit_replacement(new, &Scope::All).await?)
    }

    /// Chooses the name to store: the user's name, or the file's name. If the name of the file
    /// is invalid, the core makes a valid name from it.
    fn given(&self, item: &Item) -> Result<GivenName> {
        let limit = self.store.config().limits.original_name_chars;
        let mut given = GivenName::default();
        match &item.name {
            Some(name) => given.name = Some(name.clone()),
            None => match item.input.file_name()? {
                Some(own) if media::check_name(&own, limit).is_ok() => given.name = Some(own),
                own => given.hints.file_name = own,
            },
        }

        given.mime_type.clone_from(&item.mime_type);
        Ok(given)
    }
}

/// Reads all of the item's bytes into the file that the session has begun.
async fn receive(session: &mut UploadSession, item: &Item, meter: &Meter) -> Result<()> {
    let mut reader = item.input.open().await?;
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(PIECE_BYTES);
        let read = reader.read_buf(&mut buffer).await;
        let read = read.map_err(|e| Failure::io(format!("cannot read {}", item.input), &e))?;
        if read == 0 {
            return Ok(session.end_file().await?);
        }
        session.write(buffer.split().freeze()).await?;
        meter.add(read as u64);
    }
}

fn parse_place(place: &Place) -> Result<(OrganizationId, SubSystem)> {
    Ok((place.organization_id.parse::<OrganizationId>()?, place.sub_system.parse::<SubSystem>()?))
}

/// Describes an unreadable stored reply of an earlier upload.
fn unreadable(error: &serde_json::Error) -> Failure {
    Failure::failed(format!("cannot read the stored reply: {error}"))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use filestore_core::api::ErrorCode;
    use filestore_core::{FileStore, StoreConfig};

    use super::*;
    use crate::store::item::Input;

    const QUOTA: u64 = 1 << 20;

    /// A data directory in which each organization may store a mebibyte.
    async fn with_quota(dir: &Path) -> Direct {
        let mut config = StoreConfig::default();
        config.quota_bytes = Some(QUOTA);
        Direct::new(FileStore::builder(dir).config(config).open().await.unwrap())
    }

    fn upload(input: Input) -> Upload {
        Upload {
            place: place(),
            item: Item::new(input),
            sha256: None,
            lifetime: Lifetime::Lasting,
            idempotency_key: None,
        }
    }

    fn place() -> Place {
        Place { organization_id: "42".into(), sub_system: "docs".into() }
    }

    fn over_quota<T>(outcome: Result<T>) -> bool {
        outcome.err().is_some_and(|failure| failure.code() == Some(&ErrorCode::QuotaExceeded))
    }

    #[tokio::test]
    async fn a_file_that_does_not_fit_is_refused_before_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let direct = with_quota(dir.path()).await;
        let nowhere = |size| Input::File(PathBuf::from("/nowhere/at/all"), size);
        let refused = direct.upload_one(upload(nowhere(QUOTA + 1)), &Meter::hidden()).await;
        assert!(over_quota(refused));
        let unread = direct.upload_one(upload(nowhere(QUOTA)), &Meter::hidden()).await;
        assert!(
            unread.is_err_and(|failure| failure.code().is_none()),
            "there is room, but no file"
        );

        let halves = [QUOTA / 2 + 1, QUOTA / 2].map(|size| Item::new(nowhere(size))).into();
        let batch = Batch { place: place(), items: halves, idempotency_key: None };
        assert!(over_quota(direct.upload_all(batch, &Meter::hidden()).await));
    }

    #[tokio::test]
    async fn a_stream_is_read_until_it_no_longer_fits() {
        let dir = tempfile::tempdir().unwrap();
        let direct = with_quota(dir.path()).await;
        let endless = || Input::Stream(PathBuf::from("/dev/zero"));
        assert!(over_quota(direct.upload_one(upload(endless()), &Meter::hidden()).await));

        let new = NewUpload::new("42".parse().unwrap(), "docs".parse().unwrap());
        let record = direct.store.upload(new, &[7; 1000][..]).await.unwrap();
        let change = Change::Replace(Item::new(endless()));
        let changed = direct.change_one(record.file_id, change, None, &Meter::hidden()).await;
        assert!(over_quota(changed));
        assert_eq!(direct.files().read(record.file_id).await.unwrap(), [7; 1000][..]);
    }
}
