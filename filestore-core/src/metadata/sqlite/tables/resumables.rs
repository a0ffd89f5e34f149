//! Resumable uploads.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use crate::domain::error::{Error, Result};
use crate::domain::file::resumable::{UploadBounds, UploadTotals};
use crate::domain::id::{BlobId, FileId, OrganizationId, UploadId};
use crate::domain::time::clock::Timestamp;
use crate::metadata::stored::{RawUpload, upload_columns as columns};
use crate::metadata::{
    FinishUpload, Resumables, UploadChange, UploadChanged, UploadCreated, UploadLimits, UploadPart,
    UploadRow,
};

use super::{erasures, row};
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};

const INSERT: &str = concat!(
    "INSERT INTO resumable_uploads (",
    columns!(),
    ", is_live, has_bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
     ?18, ?19, ?20, ?5 IN ('open', 'completing'), 1)"
);

pub(in crate::metadata::sqlite) const GET: &str =
    concat!("SELECT ", columns!(), " FROM resumable_uploads WHERE upload_id = ?1");

pub(in crate::metadata::sqlite) const BY_KEY: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM resumable_uploads WHERE organization_id = ?1 AND idempotency = ?2"
);

pub(in crate::metadata::sqlite) const OF_BLOB: &str =
    "SELECT 1 FROM resumable_uploads WHERE blob_id = ?1 AND has_bytes = 1";

pub(in crate::metadata::sqlite) const OF_ORGANIZATION: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM resumable_uploads WHERE organization_id = ?1 AND upload_id > ?2 ORDER BY upload_id"
);

pub(in crate::metadata::sqlite) const OF_ALL: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM resumable_uploads WHERE upload_id > ?1 ORDER BY upload_id"
);

pub(in crate::metadata::sqlite) const LIVE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM resumable_uploads WHERE server = ?1 AND is_live = 1 AND upload_id > ?2 ORDER BY upload_id"
);

pub(in crate::metadata::sqlite) const COMPLETING: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM resumable_uploads WHERE server = ?1 AND is_live = 1 AND stage = 'completing' ORDER BY upload_id"
);

pub(in crate::metadata::sqlite) const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM resumable_uploads WHERE stage = 'open' AND expires_at <= ?1 ORDER BY expires_at"
);

/// The bytes of a finished upload belong to its record.
pub(in crate::metadata::sqlite) const CHANGE: &str =
    "UPDATE resumable_uploads SET stage = ?5, epoch = ?6,
     offset_bytes = ?7, length_bytes = ?8, held_bytes = ?9, digest = ?10, head = ?11, idempotency = ?12, file_id = ?13,
     failure_code = ?14, failure_message = ?15, updated_at = ?16, expires_at = ?17, server = ?18,
     is_live = ?5 IN ('open', 'completing'), has_bytes = has_bytes AND ?5 <> 'finished'
     WHERE upload_id = ?1 AND epoch = ?2 AND stage = ?3 AND offset_bytes = ?4 AND length_bytes IS ?19";

pub(in crate::metadata::sqlite) const FINISH: &str =
    "UPDATE resumable_uploads SET stage = 'finished',
     offset_bytes = ?3, length_bytes = ?3, file_id = ?4, updated_at = ?5, expires_at = ?6, is_live = 0, has_bytes = 0
     WHERE upload_id = ?1 AND epoch = ?2 AND stage = 'completing'";

pub(in crate::metadata::sqlite) const FORGET: &str =
    "DELETE FROM resumable_uploads WHERE upload_id = ?1 AND epoch = ?2 AND stage <> 'completing'";

pub(in crate::metadata::sqlite) const ENDED: &str =
    "SELECT upload_id, blob_id FROM resumable_uploads
     WHERE server = ?1 AND is_live = 0 AND has_bytes = 1 ORDER BY upload_id";

const CLEARED: &str =
    "UPDATE resumable_uploads SET has_bytes = 0 WHERE upload_id = ?1 AND is_live = 0";

pub(in crate::metadata::sqlite) const FORGET_ENDED: &str =
    "DELETE FROM resumable_uploads WHERE upload_id IN
     (SELECT upload_id FROM resumable_uploads WHERE is_live = 0 AND has_bytes = 0 AND expires_at <= ?1
     ORDER BY expires_at LIMIT ?2)";

pub(in crate::metadata::sqlite) const TOTALS: &str =
    "SELECT count(*), coalesce(sum(held_bytes), 0) FROM resumable_uploads WHERE is_live = 1";

pub(in crate::metadata::sqlite) const TOTALS_OF: &str = "SELECT count(*), coalesce(sum(held_bytes), 0) FROM resumable_uploads WHERE is_live = 1 AND organization_id = ?1";

/// An erasure fails what it finds.
pub(super) const ERASE: &str =
    "UPDATE resumable_uploads SET stage = 'failed', failure_code = 'conflict',
     failure_message = 'the organization was erased', idempotency = NULL, is_live = 0
     WHERE organization_id = ?1 AND is_live = 1";

/// Rows with bytes stay until these are gone.
pub(super) const FORGET_OF: &str =
    "DELETE FROM resumable_uploads WHERE organization_id = ?1 AND has_bytes = 0";

const PUT_SECRET: &str = "INSERT INTO settings (name, value) VALUES ('upload_secret', ?1)
     ON CONFLICT (name) DO NOTHING";

const GET_SECRET: &str = "SELECT value FROM settings WHERE name = 'upload_secret'";

#[async_trait]
impl Resumables for SqliteMetadata {
    async fn create_upload(&self, new: UploadRow, limits: UploadLimits) -> Result<UploadCreated> {
        self.writer.run("beginning an upload", move |tx| create(tx.sql, &new, limits)).await
    }

    async fn upload(&self, id: UploadId) -> Result<Option<UploadRow>> {
        self.readers
            .run("looking up an upload", move |sql| row::first(sql, GET, [id.to_string()], upload))
            .await
    }

    async fn upload_of_key(
        &self,
        organization: &OrganizationId,
        key: &str,
    ) -> Result<Option<UploadRow>> {
        let (organization, key) = (organization.clone(), key.to_owned());
        self.readers
            .run("looking up an upload", move |sql| {
                row::first(sql, BY_KEY, [organization.as_str(), key.as_str()], upload)
            })
            .await
    }

    async fn is_of_upload(&self, blob: BlobId) -> Result<bool> {
        self.readers
            .run("looking up an upload", move |sql| {
                Ok(row::first(sql, OF_BLOB, [blob.to_string()], |_| Ok(()))?.is_some())
            })
            .await
    }

    async fn uploads_of(
        &self,
        organization: Option<&OrganizationId>,
        after: Option<UploadId>,
        limit: usize,
    ) -> Result<Vec<UploadRow>> {
        let organization = organization.cloned();
        self.readers
            .run("listing uploads", move |sql| match &organization {
                Some(organization) => {
                    let params = params![organization.as_str(), position(after)];
                    row::collect_up_to(limit, sql, OF_ORGANIZATION, params, upload)
                }
                None => row::collect_up_to(limit, sql, OF_ALL, params![position(after)], upload),
            })
            .await
    }

    async fn change_upload(&self, update: UploadChange) -> Result<UploadChanged> {
        if update.part.is_some() {
            return Err(Error::internal("changing an upload", "one process needs no parts"));
        }
        self.writer.run("changing an upload", move |tx| change(tx.sql, &update)).await
    }

    /// One process has the store, and all bytes on its disk.
    async fn upload_parts(
        &self,
        _id: UploadId,
        _offset: u64,
        _limit: usize,
    ) -> Result<Vec<UploadPart>> {
        Ok(Vec::new())
    }

    async fn last_parts(&self, _id: UploadId, _limit: usize) -> Result<Vec<UploadPart>> {
        Ok(Vec::new())
    }

    async fn completing_uploads(&self, server: &str, limit: usize) -> Result<Vec<UploadRow>> {
        let server = server.to_owned();
        self.readers
            .run("listing completing uploads", move |sql| {
                row::collect_up_to(limit, sql, COMPLETING, [server], upload)
            })
            .await
    }

    async fn forget_upload(&self, id: UploadId, epoch: u64) -> Result<bool> {
        self.writer
            .run("forgetting an upload", move |tx| {
                let params = params![id.to_string(), row::integer(epoch)?];
                Ok(row::execute(tx.sql, FORGET, params)? > 0)
            })
            .await
    }

    async fn live_uploads(
        &self,
        server: &str,
        after: Option<UploadId>,
        limit: usize,
    ) -> Result<Vec<UploadRow>> {
        let server = server.to_owned();
        self.readers
            .run("listing live uploads", move |sql| {
                let params = params![server, position(after)];
                row::collect_up_to(limit, sql, LIVE, params, upload)
            })
            .await
    }

    async fn due_uploads(&self, now: Timestamp, limit: usize) -> Result<Vec<UploadRow>> {
        self.readers
            .run("looking for expired uploads", move |sql| {
                row::collect_up_to(limit, sql, DUE, [now.as_millis()], upload)
            })
            .await
    }

    async fn ended_uploads(&self, server: &str, limit: usize) -> Result<Vec<(UploadId, BlobId)>> {
        let server = server.to_owned();
        self.readers
            .run("looking for ended uploads", move |sql| {
                row::collect_up_to(limit, sql, ENDED, [server], |row| {
                    let ids = row::parse(row, 0).and_then(|id| Ok((id, row::parse(row, 1)?)));
                    ids.map_err(|source| damaged(row, source))
                })
            })
            .await
    }

    async fn note_cleared(&self, ids: &[UploadId]) -> Result<()> {
        let ids = ids.to_vec();
        self.writer
            .run("noting what is gone of uploads", move |tx| {
                ids.iter()
                    .try_for_each(|id| row::execute(tx.sql, CLEARED, [id.to_string()]).map(drop))
            })
            .await
    }

    async fn forget_ended(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.writer
            .run("forgetting ended uploads", move |tx| {
                let params = params![now.as_millis(), row::limit(limit)];
                Ok(row::execute(tx.sql, FORGET_ENDED, params)? as u64)
            })
            .await
    }

    async fn upload_totals(&self) -> Result<UploadTotals> {
        self.readers.run("counting uploads", |sql| totals(sql, None)).await
    }

    async fn upload_secret(&self, fresh: &str) -> Result<String> {
        let fresh = fresh.to_owned();
        self.writer
            .run("reading the secret of uploads", move |tx| {
                row::execute(tx.sql, PUT_SECRET, [&fresh])?;
                let stored = row::first(tx.sql, GET_SECRET, [], |row| Ok(row.get(0)?))?;
                Ok(stored.unwrap_or_else(|| fresh.clone()))
            })
            .await
    }
}

fn position(after: Option<UploadId>) -> String {
    after.map(|id| id.to_string()).unwrap_or_default()
}

fn create(sql: &Connection, new: &UploadRow, limits: UploadLimits) -> Result<UploadCreated, Fault> {
    if erasures::is_since(sql, &new.organization, new.era)? {
        return Ok(UploadCreated::Erased);
    }
    if let Some(key) = &new.idempotency
        && let Some(there) =
            row::first(sql, BY_KEY, [new.organization.as_str(), key.as_str()], upload)?
    {
        return Ok(UploadCreated::KeyTaken(Box::new(there)));
    }

    let more = UploadTotals { uploads: 1, bytes: new.held_bytes };
    if !fits(sql, None, more, limits.all)? {
        return Ok(UploadCreated::Full);
    }
    if !fits(sql, Some(&new.organization), more, limits.organization)? {
        return Ok(UploadCreated::OrganizationFull);
    }
    insert(sql, new)?;
    Ok(UploadCreated::Done)
}

fn insert(sql: &Connection, new: &UploadRow) -> Result<(), Fault> {
    let failure = new.failure.as_ref();
    let params = params![
        new.upload_id.to_string(),
        new.organization.as_str(),
        new.server,
        new.blob_id.to_string(),
        new.stage.as_str(),
        new.era.number(),
        row::integer(new.epoch)?,
        row::integer(new.offset)?,
        new.length.map(row::integer).transpose()?,
        row::integer(new.held_bytes)?,
        new.digest,
        new.head,
        new.terms,
        new.idempotency,
        new.file_id.map(row::id),
        failure.map(|failure| &failure.code),
        failure.map(|failure| &failure.message),
        new.created_at.as_millis(),
        new.updated_at.as_millis(),
        new.expires_at.as_millis(),
    ];
    row::execute(sql, INSERT, params).map(drop)
}

fn change(sql: &Connection, update: &UploadChange) -> Result<UploadChanged, Fault> {
    let next = &update.next;
    let id = next.upload_id.to_string();
    if let Some(limits) = update.limits {
        let Some(before) = row::first(sql, GET, [&id], upload)? else {
            return Ok(UploadChanged::Lost);
        };
        let bytes = next.held_bytes.saturating_sub(before.held_bytes);
        let more = UploadTotals { uploads: 0, bytes };
        if bytes > 0
            && !(fits(sql, None, more, limits.all)?
                && fits(sql, Some(&next.organization), more, limits.organization)?)
        {
            return Ok(UploadChanged::Full);
        }
    }

    let failure = next.failure.as_ref();
    let params = params![
        id,
        row::integer(update.epoch)?,
        update.stage.as_str(),
        row::integer(update.offset)?,
        next.stage.as_str(),
        row::integer(next.epoch)?,
        row::integer(next.offset)?,
        next.length.map(row::integer).transpose()?,
        row::integer(next.held_bytes)?,
        next.digest,
        next.head,
        next.idempotency,
        next.file_id.map(row::id),
        failure.map(|failure| &failure.code),
        failure.map(|failure| &failure.message),
        next.updated_at.as_millis(),
        next.expires_at.as_millis(),
        next.server,
        update.length.map(row::integer).transpose()?,
    ];
    let changed = row::execute(sql, CHANGE, params)?;
    Ok(if changed > 0 { UploadChanged::Done } else { UploadChanged::Lost })
}

/// Finishes an upload with the record of its file; false if another request has it.
pub(super) fn finish(sql: &Connection, end: &FinishUpload, file: FileId) -> Result<bool, Fault> {
    let params = params![
        end.upload_id.to_string(),
        row::integer(end.epoch)?,
        row::integer(end.length)?,
        row::id(file),
        end.now.as_millis(),
        end.kept_until.as_millis(),
    ];
    Ok(row::execute(sql, FINISH, params)? > 0)
}

fn fits(
    sql: &Connection,
    organization: Option<&OrganizationId>,
    more: UploadTotals,
    bounds: UploadBounds,
) -> Result<bool, Fault> {
    Ok(totals(sql, organization)?.fits(more, bounds))
}

fn totals(sql: &Connection, organization: Option<&OrganizationId>) -> Result<UploadTotals, Fault> {
    let read = |row: &Row<'_>| {
        Ok(UploadTotals { uploads: row::count(row, 0)?, bytes: row::count(row, 1)? })
    };
    let found = match organization {
        Some(one) => row::first(sql, TOTALS_OF, [one.as_str()], read)?,
        None => row::first(sql, TOTALS, [], read)?,
    };
    Ok(found.unwrap_or_default())
}

fn upload(row: &Row<'_>) -> Result<UploadRow, Fault> {
    read(row).map_err(|source| damaged(row, source))
}

fn damaged(row: &Row<'_>, source: Source) -> Fault {
    let id: String = row.get(0).unwrap_or_else(|_| String::from("?"));
    Fault::Row { what: format!("upload {id}"), source }
}

fn read(row: &Row<'_>) -> Result<UploadRow, Source> {
    let text = |column: usize| -> Result<&str, Source> { Ok(row.get_ref(column)?.as_str()?) };
    let text_or_none = |column: usize| -> Result<Option<&str>, Source> {
        Ok(row.get_ref(column)?.as_str_or_null()?)
    };
    RawUpload {
        upload_id: text(0)?,
        organization_id: text(1)?,
        server: text(2)?,
        blob_id: text(3)?,
        stage: text(4)?,
        era: row.get(5)?,
        epoch: row.get(6)?,
        offset: row.get(7)?,
        length: row.get(8)?,
        held_bytes: row.get(9)?,
        digest: row.get_ref(10)?.as_blob()?,
        head: row.get_ref(11)?.as_blob()?,
        terms: text(12)?,
        idempotency: text_or_none(13)?,
        file_id: text_or_none(14)?,
        failure_code: text_or_none(15)?,
        failure_message: text_or_none(16)?,
        created_at: row.get(17)?,
        updated_at: row.get(18)?,
        expires_at: row.get(19)?,
    }
    .row()
}
