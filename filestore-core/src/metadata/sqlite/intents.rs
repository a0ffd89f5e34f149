//! Write intents: objects at providers that no record refers to yet.

use rusqlite::{Connection, params};

use crate::domain::clock::Timestamp;
use crate::domain::path::BlobKey;
use crate::domain::record::Blob;
use crate::metadata::WriteIntent;

use super::fault::Fault;
use super::row;

const BEGIN: &str =
    "INSERT INTO write_intents (blob_key, storage_provider, file_id, begun_at, owner)
     VALUES (?1, ?2, ?3, ?4, ?5)";

pub(super) const STANDS: &str =
    "SELECT 1 FROM write_intents WHERE blob_key = ?1 AND storage_provider = ?2";

pub(super) const END: &str = "DELETE FROM write_intents WHERE blob_key = ?1";

pub(super) const HAND_OVER: &str =
    "INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until)
     SELECT file_id, storage_provider, blob_key, ?2, ?2 FROM write_intents WHERE blob_key = ?1";

pub(super) const OLD: &str = "SELECT blob_key FROM write_intents INDEXED BY write_intents_by_age
     WHERE begun_at < ?1 ORDER BY begun_at LIMIT ?2";

/// Renewed notes are as young as if their writes had begun just now.
pub(super) const RENEW: &str = "UPDATE write_intents SET begun_at = ?2 WHERE owner = ?1";

pub(super) fn begin(sql: &Connection, intents: &[WriteIntent]) -> Result<(), Fault> {
    for intent in intents {
        let params = params![
            intent.key.as_str(),
            intent.provider.as_str(),
            row::id(intent.file_id),
            intent.begun_at.as_millis(),
            intent.owner.as_deref(),
        ];
        row::execute(sql, BEGIN, params)?;
    }
    Ok(())
}

/// Tells if a record may refer to the blob: LOCAL ones need no intent.
pub(super) fn stands(sql: &Connection, blob: &Blob) -> Result<bool, Fault> {
    if !is_noted(blob) {
        return Ok(true);
    }
    let found = row::first(sql, STANDS, [blob.key.as_str(), blob.provider.as_str()], |_| Ok(()))?;
    Ok(found.is_some())
}

/// Ends the intent of a blob that has its record now.
pub(super) fn end(sql: &Connection, blob: &Blob) -> Result<(), Fault> {
    if is_noted(blob) { forget(sql, std::slice::from_ref(&blob.key)) } else { Ok(()) }
}

/// Tells whether the write of a blob is noted. The service's own disk stages blobs instead.
fn is_noted(blob: &Blob) -> bool {
    !blob.provider.is_local()
}

fn forget(sql: &Connection, keys: &[BlobKey]) -> Result<(), Fault> {
    keys.iter().try_for_each(|key| row::execute(sql, END, [key.as_str()]).map(drop))
}

pub(super) fn withdraw(
    sql: &Connection,
    keys: &[BlobKey],
    not_before: Timestamp,
) -> Result<(), Fault> {
    for key in keys {
        row::execute(sql, HAND_OVER, params![key.as_str(), not_before.as_millis()])?;
    }
    forget(sql, keys)
}

/// Makes the notes of `owner` as young as those of writes that begin at `now`.
pub(super) fn renew(sql: &Connection, owner: &str, now: Timestamp) -> Result<(), Fault> {
    row::execute(sql, RENEW, params![owner, now.as_millis()]).map(drop)
}

pub(super) fn old(
    sql: &Connection,
    begun_before: Timestamp,
    limit: usize,
) -> Result<Vec<BlobKey>, Fault> {
    row::collect(sql, OLD, params![begun_before.as_millis(), row::limit(limit)], |row| {
        row::parse(row, 0).map_err(|source| Fault::Row { what: "a write intent".into(), source })
    })
}
