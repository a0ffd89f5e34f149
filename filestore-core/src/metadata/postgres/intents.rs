//! Write intents: objects at providers that no record refers to yet.

use crate::domain::clock::Timestamp;
use crate::domain::path::BlobKey;
use crate::domain::record::Blob;
use crate::metadata::WriteIntent;

use super::fault::Fault;
use super::row::{self, id};
use super::sql::Sql;

const BEGIN: &str =
    "INSERT INTO write_intents (blob_key, storage_provider, file_id, begun_at, owner)
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])";

/// Notes go in one order, so that two transactions do not wait for each other in a ring.
pub(super) const END: &str = "WITH noted AS MATERIALIZED (
     SELECT n.blob_key FROM unnest($1::text[], $2::text[]) AS wanted (blob_key, storage_provider)
     JOIN write_intents AS n USING (blob_key, storage_provider) ORDER BY n.blob_key FOR UPDATE OF n)
     DELETE FROM write_intents USING noted WHERE write_intents.blob_key = noted.blob_key";

pub(super) const HAND_OVER: &str = "WITH noted AS MATERIALIZED (
     SELECT blob_key FROM write_intents WHERE blob_key = ANY ($1) ORDER BY blob_key FOR UPDATE
     ), gone AS (
     DELETE FROM write_intents USING noted WHERE write_intents.blob_key = noted.blob_key
     RETURNING write_intents.file_id, write_intents.storage_provider, write_intents.blob_key)
     INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until)
     SELECT file_id, storage_provider, blob_key, $2, $2 FROM gone";

pub(super) const WITHDRAW_OLD: &str = "WITH noted AS MATERIALIZED (
     SELECT blob_key FROM write_intents WHERE begun_at < $1 ORDER BY begun_at LIMIT $3 FOR UPDATE SKIP LOCKED
     ), gone AS (
     DELETE FROM write_intents USING noted WHERE write_intents.blob_key = noted.blob_key
     RETURNING write_intents.file_id, write_intents.storage_provider, write_intents.blob_key)
     INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until)
     SELECT file_id, storage_provider, blob_key, $2, $2 FROM gone";

pub(super) const ANY_OLD: &str =
    "SELECT 1 FROM write_intents WHERE begun_at < $1 ORDER BY begun_at LIMIT 1";

/// Renewed notes are as young as if their writes had begun just now.
pub(super) const RENEW: &str = "UPDATE write_intents SET begun_at = $2 WHERE owner = $1";

/// Notes objects. Notes without a run get `request` as their owner, if there is one.
pub(super) async fn begin(
    sql: &Sql,
    intents: &[WriteIntent],
    request: Option<&str>,
) -> Result<(), Fault> {
    let keys: Vec<&str> = intents.iter().map(|intent| intent.key.as_str()).collect();
    let providers: Vec<&str> = intents.iter().map(|intent| intent.provider.as_str()).collect();
    let files: Vec<String> = intents.iter().map(|intent| id(intent.file_id)).collect();
    let begun_at: Vec<i64> = intents.iter().map(|intent| intent.begun_at.as_millis()).collect();
    let owners: Vec<Option<&str>> =
        intents.iter().map(|intent| intent.owner.as_deref().or(request)).collect();
    sql.execute(BEGIN, &[&keys, &providers, &files, &begun_at, &owners]).await.map(drop)
}

/// Ends the intents of blobs that get their records now. False if one of them does not stand any more: then
/// no record may refer to its blob. LOCAL blobs need no intent, as the service's own disk stages them.
pub(super) async fn end(sql: &Sql, blobs: &[&Blob]) -> Result<bool, Fault> {
    let noted = || blobs.iter().filter(|blob| !blob.provider.is_local());
    let keys: Vec<&str> = noted().map(|blob| blob.key.as_str()).collect();
    let providers: Vec<&str> = noted().map(|blob| blob.provider.as_str()).collect();
    if keys.is_empty() {
        return Ok(true);
    }

    let ended = sql.execute(END, &[&keys, &providers]).await?;
    let all_stood = ended == keys.len() as u64;
    if !all_stood {
        sql.abandon();
    }
    Ok(all_stood)
}

pub(super) async fn withdraw(
    sql: &Sql,
    keys: &[BlobKey],
    not_before: Timestamp,
) -> Result<(), Fault> {
    let keys: Vec<&str> = keys.iter().map(BlobKey::as_str).collect();
    sql.execute(HAND_OVER, &[&keys, &not_before.as_millis()]).await.map(drop)
}

/// Tells if there is a note from before the instant.
pub(super) async fn is_any_old(sql: &Sql, begun_before: Timestamp) -> Result<bool, Fault> {
    sql.exists(ANY_OLD, &[&begun_before.as_millis()]).await
}

/// Withdraws up to `limit` notes from before the instant, the oldest first; returns how many.
pub(super) async fn withdraw_old(
    sql: &Sql,
    begun_before: Timestamp,
    not_before: Timestamp,
    limit: usize,
) -> Result<u64, Fault> {
    let (begun, until) = (begun_before.as_millis(), not_before.as_millis());
    sql.execute(WITHDRAW_OLD, &[&begun, &until, &row::limit(limit)]).await
}

/// Makes the notes of `owner` as young as those of writes that begin at `now`.
pub(super) async fn renew(sql: &Sql, owner: &str, now: Timestamp) -> Result<(), Fault> {
    sql.execute(RENEW, &[&owner, &now.as_millis()]).await.map(drop)
}
