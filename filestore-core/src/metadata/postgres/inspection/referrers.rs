//! The rows that can refer to a blob: records, dropped blobs and write intents.

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::Sql;
use crate::metadata::postgres::tables::row;
use crate::metadata::postgres::work::dropped;
use crate::metadata::{DroppedBlob, NamedBlob, Referrer, Referrers};

use super::walk;

/// Reads everything from one snapshot. A blob that moves from a write intent to a record is therefore seen in
/// one of them. A part of a resumable upload counts as noted: its upload is under way.
pub(super) const REFERRERS: &str = "SELECT named.file_id, named.storage_provider, named.blob_key,
     EXISTS (SELECT 1 FROM blob_gc WHERE blob_gc.blob_key = wanted.blob_key AND blob_gc.storage_provider = $2),
     EXISTS (SELECT 1 FROM write_intents AS noted WHERE noted.blob_key = wanted.blob_key
      AND noted.storage_provider = $2)
     OR EXISTS (SELECT 1 FROM upload_parts AS part WHERE part.blob_key = wanted.blob_key
      AND part.storage_provider = $2)
     FROM unnest($1::text[]) WITH ORDINALITY AS wanted (blob_key, number)
     LEFT JOIN files AS named ON named.blob_id = right(wanted.blob_key, 26) ORDER BY wanted.number";

/// Reads all dropped blobs, and each blob's record, if there is one.
const DOOMED_DROPPED: &str = "SELECT f.file_id, f.storage_provider, f.blob_key
     FROM blob_gc g JOIN files f ON f.blob_id = right(g.blob_key, 26) AND f.blob_key = g.blob_key
     AND f.storage_provider = g.storage_provider WHERE NOT f.purge_claimed LIMIT $1";

const DOOMED_NOTED: &str = "SELECT f.file_id, f.storage_provider, f.blob_key
     FROM write_intents g JOIN files f ON f.blob_id = right(g.blob_key, 26) AND f.blob_key = g.blob_key
     AND f.storage_provider = g.storage_provider WHERE NOT f.purge_claimed LIMIT $1";

const SPARE_DROPPED: &str = "DELETE FROM blob_gc WHERE blob_key = $1 AND storage_provider = $2";

const SPARE_NOTED: &str = "DELETE FROM write_intents WHERE blob_key = $1 AND storage_provider = $2";

const LOCK_NAMED: &str = "SELECT 1 FROM files WHERE file_id = $1 FOR UPDATE";

#[async_trait]
impl Referrers for PostgresMetadata {
    async fn referrers(&self, holder: &ProviderCode, keys: &[BlobKey]) -> Result<Vec<Referrer>> {
        self.engine
            .read("looking for referrers", &(holder, keys), |sql, (holder, keys)| {
                Box::pin(of_all(sql, holder, keys))
            })
            .await
    }

    async fn adopt_orphans(
        &self,
        holder: &ProviderCode,
        keys: &[BlobKey],
        not_before: Timestamp,
    ) -> Result<Vec<bool>> {
        let orphans = (holder.clone(), keys.to_vec(), not_before);
        self.engine
            .write("dropping orphans", orphans, |sql, (holder, keys, not_before)| {
                Box::pin(async move {
                    // Nothing comes to refer to a key meanwhile: a key is used once, and noted first.
                    let mut adopted = Vec::with_capacity(keys.len());
                    for (key, referrer) in keys.iter().zip(of_all(sql, holder, keys).await?) {
                        // An orphan belongs to no file: it gets an id that no file has.
                        let is_orphan = referrer == Referrer::Nobody;
                        if is_orphan {
                            let (file_id, key) = (FileId::generate(*not_before), key.clone());
                            let blob = DroppedBlob {
                                file_id,
                                provider: holder.clone(),
                                key,
                                content: None,
                                not_before: *not_before,
                            };
                            dropped::put(sql, &blob).await?;
                        }
                        adopted.push(is_orphan);
                    }
                    Ok(adopted)
                })
            })
            .await
    }

    async fn doomed_blobs(&self, limit: usize) -> Result<Vec<NamedBlob>> {
        self.engine
            .read_snapshot("looking for doomed blobs", &limit, |sql, limit| {
                Box::pin(async move {
                    sql.be_patient().await?;
                    let mut all =
                        sql.collect(DOOMED_DROPPED, &[&row::limit(*limit)], named).await?;
                    let left = *limit - all.len();
                    all.extend(sql.collect(DOOMED_NOTED, &[&row::limit(left)], named).await?);
                    Ok(all)
                })
            })
            .await
    }

    async fn spare_blob(&self, blob: &NamedBlob) -> Result<bool> {
        self.engine
            .write("sparing a blob", blob.clone(), |sql, blob| {
                Box::pin(async move {
                    sql.exists(LOCK_NAMED, &[&row::id(blob.file_id)]).await?;
                    if !walk::still_named(sql, std::slice::from_ref(blob)).await?[0] {
                        return Ok(false);
                    }
                    let (key, holder) = (blob.key.as_str(), blob.holder.as_str());
                    let dropped = sql.execute(SPARE_DROPPED, &[&key, &holder]).await?;
                    Ok(dropped + sql.execute(SPARE_NOTED, &[&key, &holder]).await? > 0)
                })
            })
            .await
    }
}

/// Finds the referrer of each key.
async fn of_all(
    sql: &Sql,
    holder: &ProviderCode,
    keys: &[BlobKey],
) -> Result<Vec<Referrer>, Fault> {
    let names: Vec<&str> = keys.iter().map(BlobKey::as_str).collect();
    let rows = sql.rows(REFERRERS, &[&names, &holder.as_str()]).await?;
    keys.iter().zip(&rows).map(|(key, row)| referrer(holder, key, row)).collect()
}

fn referrer(holder: &ProviderCode, key: &BlobKey, row: &Row) -> Result<Referrer, Fault> {
    let file_id: Option<String> = row.try_get(0)?;
    let (named_at, named): (Option<String>, Option<String>) = (row.try_get(1)?, row.try_get(2)?);
    let record = file_id.zip(named_at).zip(named);

    if let Some(((_, named_at), named)) = &record
        && (named_at.as_str(), named.as_str()) == (holder.as_str(), key.as_str())
    {
        return Ok(Referrer::Record);
    }
    if row.try_get(3)? {
        return Ok(Referrer::Dropped);
    }
    if row.try_get(4)? {
        return Ok(Referrer::Note);
    }
    Ok(match record {
        Some(((file_id, holder), key)) => Referrer::Elsewhere { file_id, holder, key },
        None => Referrer::Nobody,
    })
}

fn named(row: &Row) -> Result<NamedBlob, Fault> {
    let read = || {
        Ok(NamedBlob {
            file_id: row::parse(row, 0)?,
            holder: row::parse(row, 1)?,
            key: row::parse(row, 2)?,
        })
    };
    read().map_err(|source| Fault::Row { what: "a doomed blob".into(), source })
}
