//! Repairs damaged rows from the undamaged parts of the row.

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::id::{BlobId, OrganizationId, SubSystem};
use crate::domain::time::clock::Timestamp;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::Sql;
use crate::metadata::postgres::tables::damage;
use crate::metadata::postgres::tables::damage::{PURGE_NEVER, SYNC_NEVER};
use crate::metadata::postgres::tables::files::BY_ID;
use crate::metadata::postgres::tables::row;
use crate::metadata::{Mend, MendLocation, MendedRow, NamedBlob};

/// If a file is no longer a copy, its sync status is decided again.
pub(super) const LOCATION: &str = "UPDATE files SET storage_location = $4::text,
     sync_status = CASE WHEN $4::text = 'LOCAL' AND sync_status = 'SYNCED' THEN 'PENDING' ELSE sync_status END
     WHERE file_id = $1 AND blob_key = $2 AND storage_provider = $3 AND NOT purge_claimed
     AND storage_location <> $4::text AND ($4::text = 'LOCAL' OR status = 'READY')";

const TEXTS: &str = "SELECT organization_id, sub_system, blob_key, created_at FROM files
     WHERE file_id = $1 FOR UPDATE";

const PUT_OWNER: &str = "UPDATE files SET organization_id = $2, sub_system = $3 WHERE file_id = $1";

const PUT_KEY: &str = "UPDATE files SET blob_key = $2 WHERE file_id = $1";

/// The combinations that [`FileState::from_row`](crate::domain::file::lifecycle::FileState::from_row) refuses.
const PUT_SYNC: &str = "UPDATE files SET sync_owner = NULL,
     sync_status = CASE WHEN status = 'READY' THEN 'PENDING' ELSE 'NONE' END
     WHERE file_id = $1 AND ((status <> 'READY' AND sync_status <> 'NONE')
     OR (sync_status = 'SYNCED' AND storage_location = 'LOCAL'))";

const PUT_DIMENSIONS: &str = "UPDATE files SET width = NULL, height = NULL WHERE file_id = $1
     AND NOT (coalesce(width, 0) BETWEEN 0 AND 4294967295 AND coalesce(height, 0) BETWEEN 0 AND 4294967295
     AND (width IS NULL) = (height IS NULL))";

/// Bytes as hexadecimal digits, as in every engine.
const WHOLE_ROW: &str =
    "SELECT (to_jsonb(files) || jsonb_build_object('sha256', encode(sha256, 'hex'),
     'thumbhash', encode(thumbhash, 'hex')))::text FROM files WHERE file_id = $1";

#[async_trait]
impl Mend for PostgresMetadata {
    async fn mend_location(&self, blob: &NamedBlob, location: MendLocation) -> Result<bool> {
        self.engine
            .write("mending a location", (blob.clone(), location), |sql, (blob, location)| {
                Box::pin(async move {
                    let location = match location {
                        MendLocation::Local => "LOCAL",
                        MendLocation::Cloud => "CLOUD",
                    };
                    let (key, holder) = (blob.key.as_str(), blob.holder.as_str());
                    Ok(sql
                        .execute(LOCATION, &[&row::id(blob.file_id), &key, &holder, &location])
                        .await?
                        > 0)
                })
            })
            .await
    }

    async fn mend_file(&self, file_id: &str) -> Result<MendedRow> {
        let mended = self
            .engine
            .write("mending a record", file_id.to_owned(), |sql, file| {
                Box::pin(mend_row(sql, file))
            })
            .await?;

        if mended != MendedRow::SetAside {
            self.engine.damaged.forget(|| format!("file {file_id}"));
        }
        Ok(mended)
    }

    async fn row_text(&self, file_id: &str) -> Result<Option<String>> {
        self.engine
            .read("reading a row", &file_id, |sql, file_id| {
                Box::pin(async move {
                    let row = sql.first(WHOLE_ROW, &[file_id]).await?;
                    Ok(row.map(|row| row.try_get(0)).transpose()?)
                })
            })
            .await
    }
}

/// Repairs a row, or restores it and sets it aside.
async fn mend_row(sql: &Sql, file_id: &str) -> Result<MendedRow, Fault> {
    if is_sound(sql, file_id).await? {
        return Ok(MendedRow::Sound);
    }

    sql.batch("SAVEPOINT mending").await?;
    let changes = match mend(sql, file_id).await {
        Ok(changes) => changes,
        // The rest of the row keeps the constraints from letting it be changed.
        Err(fault) if fault.is_constraint() => Vec::new(),
        Err(fault) => return Err(fault),
    };
    // A transaction that failed answers nothing more.
    let is_mended = !changes.is_empty() && is_sound(sql, file_id).await?;
    if !is_mended {
        sql.batch("ROLLBACK TO SAVEPOINT mending").await?;
    }
    sql.batch("RELEASE SAVEPOINT mending").await?;

    if is_mended {
        return Ok(MendedRow::SetRight(changes.join(", ")));
    }
    damage::set_file_aside(sql, PURGE_NEVER, file_id).await?;
    damage::set_file_aside(sql, SYNC_NEVER, file_id).await?;
    Ok(MendedRow::SetAside)
}

async fn is_sound(sql: &Sql, file_id: &str) -> Result<bool, Fault> {
    let row = sql.first(BY_ID, &[&file_id]).await?;
    match row.map(|row| row::record(&row)).transpose() {
        Ok(_) => Ok(true),
        Err(fault) if fault.damaged_row().is_some() => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Writes the values that follow from the rest of the row. Returns their names.
async fn mend(sql: &Sql, file_id: &str) -> Result<Vec<&'static str>, Fault> {
    let mut changes = mend_names(sql, file_id).await?;
    if sql.execute(PUT_SYNC, &[&file_id]).await? > 0 {
        changes.push("its sync status follows from its status and location");
    }
    if sql.execute(PUT_DIMENSIONS, &[&file_id]).await? > 0 {
        changes.push("its dimensions were no numbers of pixels, and are unknown now");
    }
    Ok(changes)
}

/// Restores organization and sub-system from the key, or the key from them.
async fn mend_names(sql: &Sql, file_id: &str) -> Result<Vec<&'static str>, Fault> {
    let Some(row) = sql.first(TEXTS, &[&file_id]).await? else { return Ok(Vec::new()) };
    let (organization, sub_system, key, created_at) = texts(&row)?;
    let owner = (organization.parse::<OrganizationId>(), sub_system.parse::<SubSystem>());

    match (owner, key.parse::<BlobKey>()) {
        ((Ok(_), Ok(_)), Ok(_)) => Ok(Vec::new()),
        (_, Ok(key)) => {
            let mut parts = key.as_str().split('/');
            sql.execute(PUT_OWNER, &[&file_id, &parts.next(), &parts.next()]).await?;
            Ok(vec!["its organization and sub-system follow from its key"])
        }
        ((Ok(organization), Ok(sub_system)), Err(_)) => {
            let Some(blob) = last_part(key) else { return Ok(Vec::new()) };
            let key = BlobKey::new(&organization, &sub_system, created_at, blob);
            sql.execute(PUT_KEY, &[&file_id, &key.as_str()]).await?;
            Ok(vec!["its key follows from its organization, sub-system and first day"])
        }
        _ => Ok(Vec::new()),
    }
}

fn texts(row: &Row) -> Result<(&str, &str, &str, Timestamp), Fault> {
    let created_at = Timestamp::from_millis(row.try_get(3)?);
    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, created_at))
}

fn last_part(key: &str) -> Option<BlobId> {
    key.get(key.len().checked_sub(26)?..)?.parse().ok()
}
