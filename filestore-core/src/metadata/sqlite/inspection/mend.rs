//! Repairs damaged rows from the undamaged parts of the row.

use async_trait::async_trait;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};
use serde_json::{Map, Value};

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::id::{BlobId, OrganizationId, SubSystem};
use crate::domain::time::clock::Timestamp;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::Fault;
use crate::metadata::sqlite::session::writer::WriteTx;
use crate::metadata::sqlite::tables::damage;
use crate::metadata::sqlite::tables::damage::{PURGE_NEVER, SYNC_NEVER};
use crate::metadata::sqlite::tables::files::BY_ID;
use crate::metadata::sqlite::tables::row;
use crate::metadata::{Mend, MendLocation, MendedRow, NamedBlob};

/// If a file is no longer a copy, its sync status is decided again.
pub(super) const LOCATION: &str = "UPDATE files SET storage_location = ?4,
     sync_status = CASE WHEN ?4 = 'LOCAL' AND sync_status = 'SYNCED' THEN 'PENDING' ELSE sync_status END
     WHERE file_id = ?1 AND blob_key = ?2 AND storage_provider = ?3 AND purge_claimed = 0
     AND storage_location <> ?4 AND (?4 = 'LOCAL' OR status = 'READY')";

const TEXTS: &str =
    "SELECT organization_id, sub_system, blob_key, created_at FROM files WHERE file_id = ?1";

const PUT_OWNER: &str = "UPDATE files SET organization_id = ?2, sub_system = ?3 WHERE file_id = ?1";

const PUT_KEY: &str = "UPDATE files SET blob_key = ?2 WHERE file_id = ?1";

/// The combinations that [`FileState::from_row`](crate::domain::file::lifecycle::FileState::from_row) refuses.
const PUT_SYNC: &str = "UPDATE files SET sync_owner = NULL,
     sync_status = CASE WHEN status = 'READY' THEN 'PENDING' ELSE 'NONE' END
     WHERE file_id = ?1 AND ((status <> 'READY' AND sync_status <> 'NONE')
     OR (sync_status = 'SYNCED' AND storage_location = 'LOCAL'))";

const PUT_DIMENSIONS: &str = "UPDATE files SET width = NULL, height = NULL WHERE file_id = ?1
     AND NOT (coalesce(width, 0) BETWEEN 0 AND 4294967295 AND coalesce(height, 0) BETWEEN 0 AND 4294967295
     AND (width IS NULL) = (height IS NULL))";

const WHOLE_ROW: &str = "SELECT * FROM files WHERE file_id = ?1";

#[async_trait]
impl Mend for SqliteMetadata {
    async fn mend_location(&self, blob: &NamedBlob, location: MendLocation) -> Result<bool> {
        let blob = blob.clone();
        self.writer
            .run("mending a location", move |tx| {
                let location = match location {
                    MendLocation::Local => "LOCAL",
                    MendLocation::Cloud => "CLOUD",
                };
                let params = params![
                    row::id(blob.file_id),
                    blob.key.as_str(),
                    blob.holder.as_str(),
                    location
                ];
                let changed = row::execute(tx.sql, LOCATION, params)?;
                tx.touch(blob.file_id);
                Ok(changed > 0)
            })
            .await
    }

    async fn mend_file(&self, file_id: &str) -> Result<MendedRow> {
        let file = file_id.to_owned();
        let mended = self.writer.run("mending a record", move |tx| mend_row(tx, &file)).await?;

        if mended != MendedRow::SetAside {
            self.health.damaged.forget(|| format!("file {file_id}"));
        }
        Ok(mended)
    }

    async fn row_text(&self, file_id: &str) -> Result<Option<String>> {
        let file = file_id.to_owned();
        self.readers
            .run("reading a row", move |sql| {
                let mut statement = sql.prepare_cached(WHOLE_ROW)?;
                let names: Vec<String> =
                    statement.column_names().into_iter().map(str::to_owned).collect();
                let mut rows = statement.query([&file])?;
                let Some(row) = rows.next()? else { return Ok(None) };

                let mut object = Map::new();
                for (at, name) in names.into_iter().enumerate() {
                    object.insert(name, json(row.get_ref(at)?));
                }
                Ok(Some(Value::Object(object).to_string()))
            })
            .await
    }
}

/// Repairs a row, or restores it and sets it aside.
fn mend_row(tx: &mut WriteTx<'_>, file_id: &str) -> Result<MendedRow, Fault> {
    if is_sound(tx.sql, file_id)? {
        return Ok(MendedRow::Sound);
    }

    tx.sql.execute_batch("SAVEPOINT mending")?;
    let changes = mend(tx.sql, file_id);
    let is_mended = match &changes {
        Ok(changes) => !changes.is_empty() && is_sound(tx.sql, file_id)?,
        Err(_) => false,
    };
    if !is_mended {
        tx.sql.execute_batch("ROLLBACK TO mending")?;
    }
    tx.sql.execute_batch("RELEASE mending")?;

    if let (true, Ok(changes)) = (is_mended, changes) {
        if let Ok(id) = file_id.parse() {
            tx.touch(id);
        }
        return Ok(MendedRow::SetRight(changes.join(", ")));
    }
    damage::set_file_aside(tx.sql, PURGE_NEVER, file_id)?;
    damage::set_file_aside(tx.sql, SYNC_NEVER, file_id)?;
    Ok(MendedRow::SetAside)
}

fn is_sound(sql: &Connection, file_id: &str) -> Result<bool, Fault> {
    match row::first(sql, BY_ID, [file_id], row::record) {
        Ok(_) => Ok(true),
        Err(fault) if fault.damaged_row().is_some() => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Writes the values that follow from the rest of the row. Returns their names.
fn mend(sql: &Connection, file_id: &str) -> Result<Vec<&'static str>, Fault> {
    let mut changes = mend_names(sql, file_id)?;
    if row::execute(sql, PUT_SYNC, [file_id])? > 0 {
        changes.push("its sync status follows from its status and location");
    }
    if row::execute(sql, PUT_DIMENSIONS, [file_id])? > 0 {
        changes.push("its dimensions were no numbers of pixels, and are unknown now");
    }
    Ok(changes)
}

/// Restores organization and sub-system from the key, or the key from them.
fn mend_names(sql: &Connection, file_id: &str) -> Result<Vec<&'static str>, Fault> {
    let texts = row::first(sql, TEXTS, [file_id], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?, row.get::<_, i64>(3)?))
    })?;
    let Some((organization, sub_system, key, created_at)): Option<(String, String, _, _)> = texts
    else {
        return Ok(Vec::new());
    };
    let owner = (organization.parse::<OrganizationId>(), sub_system.parse::<SubSystem>());

    match (owner, key.parse::<BlobKey>()) {
        ((Ok(_), Ok(_)), Ok(_)) => Ok(Vec::new()),
        (_, Ok(key)) => {
            let mut parts = key.as_str().split('/');
            row::execute(sql, PUT_OWNER, params![file_id, parts.next(), parts.next()])?;
            Ok(vec!["its organization and sub-system follow from its key"])
        }
        ((Ok(organization), Ok(sub_system)), Err(_)) => {
            let Some(blob) = last_part(&key) else { return Ok(Vec::new()) };
            let first = Timestamp::from_millis(created_at);
            let key = BlobKey::new(&organization, &sub_system, first, blob);
            row::execute(sql, PUT_KEY, params![file_id, key.as_str()])?;
            Ok(vec!["its key follows from its organization, sub-system and first day"])
        }
        _ => Ok(Vec::new()),
    }
}

fn last_part(key: &str) -> Option<BlobId> {
    key.get(key.len().checked_sub(26)?..)?.parse().ok()
}

fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => hex::encode(bytes).into(),
    }
}
