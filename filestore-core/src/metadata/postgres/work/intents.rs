//! Write intents: objects at providers without a record yet.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::Blob;
use crate::domain::time::clock::Timestamp;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::Sql;
use crate::metadata::postgres::tables::row::{self, id};
use crate::metadata::{Intents, WriteIntent};

const BEGIN: &str =
    "INSERT INTO write_intents (blob_key, storage_provider, file_id, begun_at, owner)
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])";

/// Intents end in a fixed order, so that two transactions do not deadlock.
pub(in crate::metadata::postgres) const END: &str = "WITH noted AS MATERIALIZED (
     SELECT n.blob_key FROM unnest($1::text[], $2::text[]) AS wanted (blob_key, storage_provider)
     JOIN write_intents AS n USING (blob_key, storage_provider) ORDER BY n.blob_key FOR UPDATE OF n)
     DELETE FROM write_intents USING noted WHERE write_intents.blob_key = noted.blob_key";

pub(in crate::metadata::postgres) const HAND_OVER: &str = "WITH noted AS MATERIALIZED (
     SELECT blob_key FROM write_intents WHERE blob_key = ANY ($1) ORDER BY blob_key FOR UPDATE
     ), gone AS (
     DELETE FROM write_intents USING noted WHERE write_intents.blob_key = noted.blob_key
     RETURNING write_intents.file_id, write_intents.storage_provider, write_intents.blob_key)
     INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until)
     SELECT file_id, storage_provider, blob_key, $2, $2 FROM gone";

pub(in crate::metadata::postgres) const WITHDRAW_OLD: &str = "WITH noted AS MATERIALIZED (
     SELECT blob_key FROM write_intents WHERE begun_at < $1 ORDER BY begun_at LIMIT $3 FOR UPDATE SKIP LOCKED
     ), gone AS (
     DELETE FROM write_intents USING noted WHERE write_intents.blob_key = noted.blob_key
     RETURNING write_intents.file_id, write_intents.storage_provider, write_intents.blob_key)
     INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until)
     SELECT file_id, storage_provider, blob_key, $2, $2 FROM gone";

pub(in crate::metadata::postgres) const ANY_OLD: &str =
    "SELECT 1 FROM write_intents WHERE begun_at < $1 ORDER BY begun_at LIMIT 1";

/// Renewed intents count as new, as if their writes had just begun.
pub(in crate::metadata::postgres) const RENEW: &str =
    "UPDATE write_intents SET begun_at = $2 WHERE owner = $1";

#[async_trait]
impl Intents for PostgresMetadata {
    async fn begin_writes(&self, intents: Vec<WriteIntent>) -> Result<()> {
        let request = self.engine.member().map(|member| member.request_name());
        self.engine
            .write("noting writes", (intents, request), |sql, (intents, request)| {
                Box::pin(begin(sql, intents, request.as_deref()))
            })
            .await
    }

    async fn withdraw_writes(&self, keys: &[BlobKey], not_before: Timestamp) -> Result<()> {
        let withdrawn = (keys.to_vec(), not_before.as_millis());
        self.engine
            .write("abandoning writes", withdrawn, |sql, (keys, not_before)| {
                Box::pin(async move {
                    let keys: Vec<&str> = keys.iter().map(BlobKey::as_str).collect();
                    sql.execute(HAND_OVER, &[&keys, not_before]).await.map(drop)
                })
            })
            .await
    }

    async fn renew_writes(&self, owner: &str, now: Timestamp) -> Result<()> {
        self.engine
            .write("renewing writes", (owner.to_owned(), now), |sql, (owner, now)| {
                Box::pin(renew(sql, owner, *now))
            })
            .await
    }

    async fn withdraw_old_writes(
        &self,
        begun_before: Timestamp,
        not_before: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        let (begun_before, not_before) = (begun_before.as_millis(), not_before.as_millis());
        let is_any = self
            .engine
            .read("looking for old writes", &begun_before, |sql, begun_before| {
                Box::pin(async move { sql.exists(ANY_OLD, &[begun_before]).await })
            })
            .await?;
        if !is_any {
            return Ok(0);
        }

        let wanted = (begun_before, not_before, row::limit(limit));
        self.engine
            .write("abandoning writes", wanted, |sql, (begun_before, not_before, limit)| {
                Box::pin(async move {
                    sql.execute(WITHDRAW_OLD, &[begun_before, not_before, limit]).await
                })
            })
            .await
    }
}

/// Records objects. Intents without a run get the owner `request`, if set.
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

/// Ends the intents of blobs that get their records now. Returns false if an intent no longer exists: no
/// record can then refer to its blob. LOCAL blobs need no intent, because they are staged on the local disk.
pub(in crate::metadata::postgres) async fn end(sql: &Sql, blobs: &[&Blob]) -> Result<bool, Fault> {
    let noted = || blobs.iter().filter(|blob| !blob.provider.is_local());
    let keys: Vec<&str> = noted().map(|blob| blob.key.as_str()).collect();
    let providers: Vec<&str> = noted().map(|blob| blob.provider.as_str()).collect();
    if keys.is_empty() { Ok(true) } else { end_all(sql, &keys, &providers).await }
}

/// Ends the intent of one object, like [`end`].
pub(in crate::metadata::postgres) async fn end_one(
    sql: &Sql,
    key: &str,
    provider: &str,
) -> Result<bool, Fault> {
    end_all(sql, &[key], &[provider]).await
}

async fn end_all(sql: &Sql, keys: &[&str], providers: &[&str]) -> Result<bool, Fault> {
    let ended = sql.execute(END, &[&keys, &providers]).await?;
    let all_stood = ended == keys.len() as u64;
    if !all_stood {
        sql.abandon();
    }
    Ok(all_stood)
}

/// Renews the intents of `owner`, as if the writes began at `now`.
pub(super) async fn renew(sql: &Sql, owner: &str, now: Timestamp) -> Result<(), Fault> {
    sql.execute(RENEW, &[&owner, &now.as_millis()]).await.map(drop)
}
