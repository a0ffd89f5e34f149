//! Everything that may refer to a blob: records, dropped blobs, notes of writes.

use rusqlite::{Connection, Row, params};

use crate::domain::clock::Timestamp;
use crate::domain::id::FileId;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::metadata::sqlite::fault::Fault;
use crate::metadata::sqlite::{dropped, intents, row};
use crate::metadata::{DroppedBlob, NamedBlob, Referrer};

use super::{exists, walk};

pub(super) const BY_BLOB: &str = "SELECT file_id, storage_provider, blob_key
     FROM files INDEXED BY files_by_blob WHERE blob_id = ?1";

pub(super) const DROPPED: &str = "SELECT 1 FROM blob_gc INDEXED BY blob_gc_by_key
     WHERE blob_key = ?1 AND storage_provider = ?2";

/// Reads all dropped blobs, and for each the record of its blob, if there is one.
const DOOMED_DROPPED: &str = "SELECT f.file_id, f.storage_provider, f.blob_key
     FROM blob_gc g CROSS JOIN files f INDEXED BY files_by_blob
     WHERE f.blob_id = substr(g.blob_key, -26) AND f.blob_key = g.blob_key
     AND f.storage_provider = g.storage_provider AND f.purge_claimed = 0 LIMIT ?1";

const DOOMED_NOTED: &str = "SELECT f.file_id, f.storage_provider, f.blob_key
     FROM write_intents g CROSS JOIN files f INDEXED BY files_by_blob
     WHERE f.blob_id = substr(g.blob_key, -26) AND f.blob_key = g.blob_key
     AND f.storage_provider = g.storage_provider AND f.purge_claimed = 0 LIMIT ?1";

const SPARE_DROPPED: &str = "DELETE FROM blob_gc WHERE blob_key = ?1 AND storage_provider = ?2";

const SPARE_NOTED: &str = "DELETE FROM write_intents WHERE blob_key = ?1 AND storage_provider = ?2";

pub(super) fn of_all(
    sql: &Connection,
    holder: &ProviderCode,
    keys: &[BlobKey],
) -> Result<Vec<Referrer>, Fault> {
    // One snapshot: a blob that goes from a note to its record is seen at one of them.
    let snapshot = sql.unchecked_transaction()?;
    keys.iter().map(|key| of_one(&snapshot, holder, key)).collect()
}

fn of_one(sql: &Connection, holder: &ProviderCode, key: &BlobKey) -> Result<Referrer, Fault> {
    let record = row::first(sql, BY_BLOB, [key.blob_id().to_string()], |row| {
        Ok((lossy(row, 0)?, lossy(row, 1)?, lossy(row, 2)?))
    })?;
    if let Some((_, provider, named)) = &record
        && (provider, named.as_str()) == (&holder.to_string(), key.as_str())
    {
        return Ok(Referrer::Record);
    }

    let params = [key.as_str(), holder.as_str()];
    if exists(sql, DROPPED, params)? {
        return Ok(Referrer::Dropped);
    }
    if exists(sql, intents::STANDS, params)? {
        return Ok(Referrer::Note);
    }
    Ok(match record {
        Some((file_id, holder, key)) => Referrer::Elsewhere { file_id, holder, key },
        None => Referrer::Nobody,
    })
}

/// Reads a text of a row that may be damaged: what is no UTF-8 equals no name.
fn lossy(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    let value = row.get_ref(column)?;
    Ok(value.as_bytes().map(String::from_utf8_lossy).unwrap_or_default().into_owned())
}

/// Hands keys over that nothing refers to. They belong to no file: each gets an id that no file has.
pub(super) fn adopt(
    sql: &Connection,
    holder: &ProviderCode,
    keys: &[BlobKey],
    not_before: Timestamp,
) -> Result<Vec<bool>, Fault> {
    let mut adopted = Vec::with_capacity(keys.len());
    for key in keys {
        let is_orphan = matches!(of_one(sql, holder, key)?, Referrer::Nobody);
        if is_orphan {
            let (file_id, key) = (FileId::generate(not_before), key.clone());
            let blob =
                DroppedBlob { file_id, provider: holder.clone(), key, content: None, not_before };
            dropped::put(sql, &blob)?;
        }
        adopted.push(is_orphan);
    }
    Ok(adopted)
}

pub(super) fn doomed(sql: &Connection, limit: usize) -> Result<Vec<NamedBlob>, Fault> {
    let mut all = row::collect(sql, DOOMED_DROPPED, [row::limit(limit)], named)?;
    let left = limit - all.len();
    all.extend(row::collect(sql, DOOMED_NOTED, [row::limit(left)], named)?);
    Ok(all)
}

fn named(row: &Row<'_>) -> Result<NamedBlob, Fault> {
    let read = || {
        Ok(NamedBlob {
            file_id: row::parse(row, 0)?,
            holder: row::parse(row, 1)?,
            key: row::parse(row, 2)?,
        })
    };
    read().map_err(|source| Fault::Row { what: "a doomed blob".into(), source })
}

pub(super) fn spare(sql: &Connection, blob: &NamedBlob) -> Result<bool, Fault> {
    if !walk::still_named(sql, std::slice::from_ref(blob))?[0] {
        return Ok(false);
    }
    let params = params![blob.key.as_str(), blob.holder.as_str()];
    let dropped = row::execute(sql, SPARE_DROPPED, params)?;
    Ok(dropped + row::execute(sql, SPARE_NOTED, params)? > 0)
}
