//! Resumable uploads.

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::error::Result;
use crate::domain::file::resumable::UploadTotals;
use crate::domain::id::{BlobId, OrganizationId, UploadId};
use crate::domain::time::clock::Timestamp;
use crate::metadata::stored::{RawUpload, upload_columns as columns};
use crate::metadata::{
    Resumables, UploadChange, UploadChanged, UploadCreated, UploadLimits, UploadPart, UploadRow,
};

use super::resumable_writes;
use super::row::{self, limit as row_limit};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};

pub(in crate::metadata::postgres) const GET: &str =
    concat!("SELECT ", columns!(), " FROM resumable_uploads WHERE upload_id = $1");

pub(in crate::metadata::postgres) const BY_KEY: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM resumable_uploads WHERE organization_id = $1 AND idempotency = $2"
);

pub(in crate::metadata::postgres) const OF_BLOB: &str =
    "SELECT 1 FROM resumable_uploads WHERE blob_id = $1 AND has_bytes";

pub(in crate::metadata::postgres) const OF_ORGANIZATION: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM resumable_uploads WHERE organization_id = $1 AND upload_id > $2 ORDER BY upload_id LIMIT $3"
);

pub(in crate::metadata::postgres) const OF_ALL: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM resumable_uploads WHERE upload_id > $1 ORDER BY upload_id LIMIT $2"
);

pub(in crate::metadata::postgres) const LIVE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM resumable_uploads WHERE server = $1 AND is_live AND upload_id > $2 ORDER BY upload_id LIMIT $3"
);

pub(in crate::metadata::postgres) const COMPLETING: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM resumable_uploads WHERE server = $1 AND is_live AND stage = 'completing' ORDER BY upload_id LIMIT $2"
);

/// Selects completing uploads of servers that were not seen within the last `$1` seconds.
pub(in crate::metadata::postgres) const STRANDED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM resumable_uploads WHERE stage = 'completing' AND NOT EXISTS (
     SELECT 1 FROM servers WHERE servers.server = resumable_uploads.server
     AND seen_at > clock_timestamp() - $1::double precision * interval '1 second') ORDER BY upload_id LIMIT $2"
);

pub(in crate::metadata::postgres) const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM resumable_uploads WHERE stage = 'open' AND expires_at <= $1 ORDER BY expires_at LIMIT $2"
);

pub(in crate::metadata::postgres) const FORGET: &str =
    "DELETE FROM resumable_uploads WHERE upload_id = $1 AND epoch = $2 AND stage <> 'completing'";

pub(in crate::metadata::postgres) const ENDED: &str =
    "SELECT upload_id, blob_id FROM resumable_uploads
     WHERE server = $1 AND NOT is_live AND has_bytes ORDER BY upload_id LIMIT $2";

const CLEARED: &str = "UPDATE resumable_uploads SET has_bytes = false
     WHERE upload_id = ANY ($1::text[]) AND NOT is_live";

pub(in crate::metadata::postgres) const FORGET_ENDED: &str = "WITH old AS MATERIALIZED (
     SELECT upload_id FROM resumable_uploads WHERE NOT is_live AND NOT has_bytes AND expires_at <= $1
     ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
     DELETE FROM resumable_uploads USING old WHERE resumable_uploads.upload_id = old.upload_id";

macro_rules! part_columns {
    () => {
        "storage_provider, blob_key, offset_bytes, size_bytes, late_until"
    };
}

pub(in crate::metadata::postgres) const PARTS: &str = concat!(
    "SELECT ",
    part_columns!(),
    " FROM upload_parts WHERE upload_id = $1 AND offset_bytes + size_bytes > $2 ORDER BY offset_bytes LIMIT $3"
);

pub(in crate::metadata::postgres) const LAST_PARTS: &str = concat!(
    "SELECT ",
    part_columns!(),
    " FROM upload_parts WHERE upload_id = $1 ORDER BY offset_bytes DESC LIMIT $2"
);

/// Ends the uploads of an erased organization as failed.
pub(super) const ERASE: &str =
    "UPDATE resumable_uploads SET stage = 'failed', failure_code = 'conflict',
     failure_message = 'the organization was erased', idempotency = NULL, is_live = false
     WHERE organization_id = $1 AND is_live";

/// Rows with bytes stay until these are gone.
pub(super) const FORGET_OF: &str =
    "DELETE FROM resumable_uploads WHERE organization_id = $1 AND NOT has_bytes";

const PUT_SECRET: &str = "INSERT INTO settings (name, value) VALUES ('upload_secret', $1)
     ON CONFLICT (name) DO NOTHING";

const GET_SECRET: &str = "SELECT value FROM settings WHERE name = 'upload_secret'";

#[async_trait]
impl Resumables for PostgresMetadata {
    async fn create_upload(&self, new: UploadRow, limits: UploadLimits) -> Result<UploadCreated> {
        self.engine
            .write("beginning an upload", (new, limits), |sql, (new, limits)| {
                Box::pin(async move { resumable_writes::create(sql, new, *limits).await })
            })
            .await
    }

    async fn upload(&self, id: UploadId) -> Result<Option<UploadRow>> {
        self.engine
            .read("looking up an upload", &id.to_string(), |sql, id| {
                Box::pin(
                    async move { sql.first(GET, &[id]).await?.as_ref().map(upload).transpose() },
                )
            })
            .await
    }

    async fn upload_of_key(
        &self,
        organization: &OrganizationId,
        key: &str,
    ) -> Result<Option<UploadRow>> {
        self.engine
            .read("looking up an upload", &(organization, key), |sql, (organization, key)| {
                Box::pin(async move {
                    let found = sql.first(BY_KEY, &[&organization.as_str(), key]).await?;
                    found.as_ref().map(upload).transpose()
                })
            })
            .await
    }

    async fn is_of_upload(&self, blob: BlobId) -> Result<bool> {
        self.engine
            .read("looking up an upload", &blob.to_string(), |sql, blob| {
                Box::pin(async move { sql.exists(OF_BLOB, &[blob]).await })
            })
            .await
    }

    async fn uploads_of(
        &self,
        organization: Option<&OrganizationId>,
        after: Option<UploadId>,
        limit: usize,
    ) -> Result<Vec<UploadRow>> {
        let wanted = (organization, position(after), row_limit(limit));
        self.engine
            .read("listing uploads", &wanted, |sql, (organization, after, limit)| {
                Box::pin(async move {
                    let Some(organization) = organization else {
                        return sql.collect(OF_ALL, &[after, limit], upload).await;
                    };
                    let name = organization.as_str();
                    sql.collect(OF_ORGANIZATION, &[&name, after, limit], upload).await
                })
            })
            .await
    }

    async fn change_upload(&self, update: UploadChange) -> Result<UploadChanged> {
        self.engine
            .write("changing an upload", update, |sql, update| {
                Box::pin(async move { resumable_writes::change(sql, update).await })
            })
            .await
    }

    async fn upload_parts(
        &self,
        id: UploadId,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<UploadPart>> {
        let wanted = (id.to_string(), offset, row_limit(limit));
        self.engine
            .read("listing parts of an upload", &wanted, |sql, (id, offset, limit)| {
                Box::pin(async move {
                    sql.collect(PARTS, &[id, &row::integer(*offset)?, limit], part).await
                })
            })
            .await
    }

    async fn last_parts(&self, id: UploadId, limit: usize) -> Result<Vec<UploadPart>> {
        let wanted = (id.to_string(), row_limit(limit));
        self.engine
            .read("looking up parts of an upload", &wanted, |sql, (id, limit)| {
                Box::pin(async move { sql.collect(LAST_PARTS, &[id, limit], part).await })
            })
            .await
    }

    async fn completing_uploads(&self, server: &str, limit: usize) -> Result<Vec<UploadRow>> {
        let wanted = (server.to_owned(), row_limit(limit));
        self.engine
            .read("listing completing uploads", &wanted, |sql, (server, limit)| {
                Box::pin(async move { sql.collect(COMPLETING, &[server, limit], upload).await })
            })
            .await
    }

    async fn forget_upload(&self, id: UploadId, epoch: u64) -> Result<bool> {
        self.engine
            .write("forgetting an upload", (id.to_string(), epoch), |sql, (id, epoch)| {
                Box::pin(async move {
                    // There can be many parts.
                    sql.be_patient().await?;
                    Ok(sql.execute(FORGET, &[id, &row::integer(*epoch)?]).await? > 0)
                })
            })
            .await
    }

    async fn live_uploads(
        &self,
        server: &str,
        after: Option<UploadId>,
        limit: usize,
    ) -> Result<Vec<UploadRow>> {
        let wanted = (server.to_owned(), position(after), row_limit(limit));
        self.engine
            .read("listing live uploads", &wanted, |sql, (server, after, limit)| {
                Box::pin(async move { sql.collect(LIVE, &[server, after, limit], upload).await })
            })
            .await
    }

    async fn due_uploads(&self, now: Timestamp, limit: usize) -> Result<Vec<UploadRow>> {
        let wanted = (now.as_millis(), row_limit(limit));
        self.engine
            .read("looking for expired uploads", &wanted, |sql, (now, limit)| {
                Box::pin(async move { sql.collect(DUE, &[now, limit], upload).await })
            })
            .await
    }

    async fn ended_uploads(&self, server: &str, limit: usize) -> Result<Vec<(UploadId, BlobId)>> {
        let wanted = (server.to_owned(), row_limit(limit));
        self.engine
            .read("looking for ended uploads", &wanted, |sql, (server, limit)| {
                Box::pin(async move {
                    sql.collect(ENDED, &[server, limit], |row| {
                        let ids = row::parse(row, 0).and_then(|id| Ok((id, row::parse(row, 1)?)));
                        ids.map_err(|source| damaged(row, source))
                    })
                    .await
                })
            })
            .await
    }

    async fn note_cleared(&self, ids: &[UploadId]) -> Result<()> {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.engine
            .write("noting what is gone of uploads", ids, |sql, ids| {
                Box::pin(async move { sql.execute(CLEARED, &[ids]).await.map(drop) })
            })
            .await
    }

    async fn forget_ended(&self, now: Timestamp, limit: usize) -> Result<u64> {
        let wanted = (now.as_millis(), row_limit(limit));
        self.engine
            .write("forgetting ended uploads", wanted, |sql, (now, limit)| {
                Box::pin(async move { sql.execute(FORGET_ENDED, &[now, limit]).await })
            })
            .await
    }

    async fn upload_totals(&self) -> Result<UploadTotals> {
        self.engine
            .read("counting uploads", &(), |sql, ()| {
                Box::pin(async move { resumable_writes::totals(sql, None).await })
            })
            .await
    }

    async fn upload_secret(&self, fresh: &str) -> Result<String> {
        self.engine
            .write("reading the secret of uploads", fresh.to_owned(), |sql, fresh| {
                Box::pin(async move {
                    sql.execute(PUT_SECRET, &[fresh]).await?;
                    let stored = sql.first(GET_SECRET, &[]).await?;
                    let stored: Option<String> = stored.map(|row| row.try_get(0)).transpose()?;
                    Ok(stored.unwrap_or_else(|| fresh.clone()))
                })
            })
            .await
    }
}

fn position(after: Option<UploadId>) -> String {
    after.map(|id| id.to_string()).unwrap_or_default()
}

pub(in crate::metadata::postgres) fn upload(row: &Row) -> Result<UploadRow, Fault> {
    read(row).map_err(|source| damaged(row, source))
}

fn part(row: &Row) -> Result<UploadPart, Fault> {
    let read = || -> Result<UploadPart, Source> {
        Ok(UploadPart {
            provider: row::parse(row, 0)?,
            key: row::parse(row, 1)?,
            offset: u64::try_from(row.try_get::<_, i64>(2)?)?,
            size_bytes: u64::try_from(row.try_get::<_, i64>(3)?)?,
            late_until: row::instant(row, 4)?,
        })
    };
    read().map_err(|source| Fault::Row { what: "a part of an upload".into(), source })
}

fn damaged(row: &Row, source: Source) -> Fault {
    let id: &str = row.try_get(0).unwrap_or("?");
    Fault::Row { what: format!("upload {id}"), source }
}

fn read(row: &Row) -> Result<UploadRow, Source> {
    RawUpload {
        upload_id: row.try_get(0)?,
        organization_id: row.try_get(1)?,
        server: row.try_get(2)?,
        blob_id: row.try_get(3)?,
        stage: row.try_get(4)?,
        era: row.try_get(5)?,
        epoch: row.try_get(6)?,
        offset: row.try_get(7)?,
        length: row.try_get(8)?,
        held_bytes: row.try_get(9)?,
        digest: row.try_get(10)?,
        head: row.try_get(11)?,
        terms: row.try_get(12)?,
        idempotency: row.try_get(13)?,
        file_id: row.try_get(14)?,
        failure_code: row.try_get(15)?,
        failure_message: row.try_get(16)?,
        created_at: row.try_get(17)?,
        updated_at: row.try_get(18)?,
        expires_at: row.try_get(19)?,
    }
    .row()
}
