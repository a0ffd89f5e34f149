//! Resumable uploads: their creation, changes and end.
//!
//! # Locking
//! A creation waits for the commits of other creations, and of changes that reserve more bytes, because the limits
//! are for their sum.

use crate::domain::file::resumable::{UploadBounds, UploadTotals};
use crate::domain::id::{FileId, OrganizationId};
use crate::metadata::stored::upload_columns as columns;
use crate::metadata::{
    FinishUpload, UploadChange, UploadChanged, UploadCreated, UploadLimits, UploadPart, UploadRow,
};

use super::erasures;
use super::resumables::{BY_KEY, GET, upload};
use super::row::{self, id as file_text};
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::{Lock, Sql};
use crate::metadata::postgres::work::intents;

const INSERT: &str = concat!(
    "INSERT INTO resumable_uploads (",
    columns!(),
    ", is_live, has_bytes) VALUES ($1, $2, $3, $4, $5::text, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
     $18, $19, $20, $5::text IN ('open', 'completing'), true)"
);

/// The bytes of a finished upload belong to its record.
pub(in crate::metadata::postgres) const CHANGE: &str = "UPDATE resumable_uploads SET stage = $5::text,
     epoch = $6, offset_bytes = $7, length_bytes = $8, held_bytes = $9, digest = $10, head = $11, idempotency = $12,
     file_id = $13, failure_code = $14, failure_message = $15, updated_at = $16, expires_at = $17, server = $18,
     is_live = $5::text IN ('open', 'completing'), has_bytes = has_bytes AND $5::text <> 'finished'
     WHERE upload_id = $1 AND epoch = $2 AND stage = $3 AND offset_bytes = $4
     AND length_bytes IS NOT DISTINCT FROM $19";

/// Hands the parts of an upload from an offset on to `blob_gc`.
const DROP_PARTS: &str = "SELECT drop_upload_parts($1, $2)";

const PUT_PART: &str =
    "INSERT INTO upload_parts (upload_id, storage_provider, blob_key, offset_bytes, size_bytes, late_until)
     VALUES ($1, $2, $3, $4, $5, $6)";

/// A trigger hands the parts to `blob_gc`, as it does for every other end.
pub(in crate::metadata::postgres) const FINISH: &str =
    "UPDATE resumable_uploads SET stage = 'finished',
     offset_bytes = $3, length_bytes = $3, file_id = $4, updated_at = $5, expires_at = $6, is_live = false,
     has_bytes = false WHERE upload_id = $1 AND epoch = $2 AND stage = 'completing'";

pub(in crate::metadata::postgres) const TOTALS: &str =
    "SELECT count(*), coalesce(sum(held_bytes), 0)::bigint FROM resumable_uploads WHERE is_live";

pub(in crate::metadata::postgres) const TOTALS_OF: &str =
    "SELECT count(*), coalesce(sum(held_bytes), 0)::bigint FROM resumable_uploads
     WHERE is_live AND organization_id = $1";

/// Stores an upload, if there is room for it.
pub(super) async fn create(
    sql: &Sql,
    new: &UploadRow,
    limits: UploadLimits,
) -> Result<UploadCreated, Fault> {
    if erasures::is_since_kept(sql, &new.organization, new.era).await? {
        return Ok(UploadCreated::Erased);
    }
    sql.lock(Lock::Uploads).await?;
    let organization = new.organization.as_str();
    if let Some(key) = &new.idempotency
        && let Some(there) = sql.first(BY_KEY, &[&organization, key]).await?
    {
        return Ok(UploadCreated::KeyTaken(Box::new(upload(&there)?)));
    }

    let more = UploadTotals { uploads: 1, bytes: new.held_bytes };
    if !fits(sql, None, more, limits.all).await? {
        return Ok(UploadCreated::Full);
    }
    if !fits(sql, Some(&new.organization), more, limits.organization).await? {
        return Ok(UploadCreated::OrganizationFull);
    }
    insert(sql, new).await?;
    Ok(UploadCreated::Done)
}

async fn insert(sql: &Sql, new: &UploadRow) -> Result<(), Fault> {
    let (upload_id, blob_id) = (new.upload_id.to_string(), new.blob_id.to_string());
    let (organization, stage) = (new.organization.as_str(), new.stage.as_str());
    let (epoch, offset) = (row::integer(new.epoch)?, row::integer(new.offset)?);
    let length = new.length.map(row::integer).transpose()?;
    let held_bytes = row::integer(new.held_bytes)?;
    let file_id = new.file_id.map(file_text);
    let (code, message) = failure(new);
    let (created_at, updated_at) = (new.created_at.as_millis(), new.updated_at.as_millis());
    let expires_at = new.expires_at.as_millis();
    let era = new.era.number();

    sql.execute(
        INSERT,
        &[
            &upload_id,
            &organization,
            &new.server,
            &blob_id,
            &stage,
            &era,
            &epoch,
            &offset,
            &length,
            &held_bytes,
            &new.digest,
            &new.head,
            &new.terms,
            &new.idempotency,
            &file_id,
            &code,
            &message,
            &created_at,
            &updated_at,
            &expires_at,
        ],
    )
    .await
    .map(drop)
}

fn failure(row: &UploadRow) -> (Option<&str>, Option<&str>) {
    let failure = row.failure.as_ref();
    (failure.map(|failure| &*failure.code), failure.map(|failure| &*failure.message))
}

/// Changes an upload, if it is still as the change expects it.
pub(super) async fn change(sql: &Sql, update: &UploadChange) -> Result<UploadChanged, Fault> {
    let next = &update.next;
    let upload_id = next.upload_id.to_string();
    if let Some(limits) = update.limits
        && let Some(refused) = refuse_growth(sql, next, limits).await?
    {
        return Ok(refused);
    }

    if !next.stage.is_live() {
        // There can be many parts.
        sql.be_patient().await?;
    }
    let (epoch, offset) = (row::integer(update.epoch)?, row::integer(update.offset)?);
    let expected_length = update.length.map(row::integer).transpose()?;
    let (next_epoch, next_offset) = (row::integer(next.epoch)?, row::integer(next.offset)?);
    let length = next.length.map(row::integer).transpose()?;
    let held_bytes = row::integer(next.held_bytes)?;
    let file_id = next.file_id.map(file_text);
    let (stage, next_stage) = (update.stage.as_str(), next.stage.as_str());
    let (code, message) = failure(next);
    let (updated_at, expires_at) = (next.updated_at.as_millis(), next.expires_at.as_millis());

    let changed = sql
        .execute(
            CHANGE,
            &[
                &upload_id,
                &epoch,
                &stage,
                &offset,
                &next_stage,
                &next_epoch,
                &next_offset,
                &length,
                &held_bytes,
                &next.digest,
                &next.head,
                &next.idempotency,
                &file_id,
                &code,
                &message,
                &updated_at,
                &expires_at,
                &next.server,
                &expected_length,
            ],
        )
        .await?;
    if changed == 0 {
        return Ok(UploadChanged::Lost);
    }
    match &update.part {
        Some(part) if !put_part(sql, &upload_id, part).await? => Ok(UploadChanged::PartWithdrawn),
        _ => Ok(UploadChanged::Done),
    }
}

/// Stores a part in the place of those from its offset on, and ends its write intent; false if the intent was withdrawn.
async fn put_part(sql: &Sql, upload_id: &str, part: &UploadPart) -> Result<bool, Fault> {
    let (key, provider) = (part.key.as_str(), part.provider.as_str());
    if !intents::end_one(sql, key, provider).await? {
        return Ok(false);
    }
    let (offset, size) = (row::integer(part.offset)?, row::integer(part.size_bytes)?);
    let late_until = part.late_until.as_millis();
    sql.execute(DROP_PARTS, &[&upload_id, &offset]).await?;
    sql.execute(PUT_PART, &[&upload_id, &provider, &key, &offset, &size, &late_until]).await?;
    Ok(true)
}

/// Compares what an upload grows by with the bounds.
async fn refuse_growth(
    sql: &Sql,
    next: &UploadRow,
    limits: UploadLimits,
) -> Result<Option<UploadChanged>, Fault> {
    sql.lock(Lock::Uploads).await?;
    let Some(before) = sql.first(GET, &[&next.upload_id.to_string()]).await? else {
        return Ok(Some(UploadChanged::Lost));
    };
    let bytes = next.held_bytes.saturating_sub(upload(&before)?.held_bytes);
    let more = UploadTotals { uploads: 0, bytes };
    let fits = bytes == 0
        || fits(sql, None, more, limits.all).await?
            && fits(sql, Some(&next.organization), more, limits.organization).await?;
    Ok((!fits).then_some(UploadChanged::Full))
}

/// Finishes an upload with the record of its file; false if another request has it.
pub(super) async fn finish(sql: &Sql, end: &FinishUpload, file: FileId) -> Result<bool, Fault> {
    let (epoch, length) = (row::integer(end.epoch)?, row::integer(end.length)?);
    let (now, kept_until) = (end.now.as_millis(), end.kept_until.as_millis());
    let (id, file) = (end.upload_id.to_string(), file_text(file));
    // There can be many parts.
    sql.be_patient().await?;
    Ok(sql.execute(FINISH, &[&id, &epoch, &length, &file, &now, &kept_until]).await? > 0)
}

async fn fits(
    sql: &Sql,
    organization: Option<&OrganizationId>,
    more: UploadTotals,
    bounds: UploadBounds,
) -> Result<bool, Fault> {
    Ok(totals(sql, organization).await?.fits(more, bounds))
}

/// Counts live uploads, of one organization or of all.
pub(super) async fn totals(
    sql: &Sql,
    organization: Option<&OrganizationId>,
) -> Result<UploadTotals, Fault> {
    let found = match organization {
        Some(one) => sql.first(TOTALS_OF, &[&one.as_str()]).await?,
        None => sql.first(TOTALS, &[]).await?,
    };
    let Some(row) = found else { return Ok(UploadTotals::default()) };
    Ok(UploadTotals { uploads: row::count(&row, 0)?, bytes: row::count(&row, 1)? })
}
