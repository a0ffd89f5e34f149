//! Walks over records and write intents, page by page.

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
use crate::metadata::postgres::tables::row::{COLUMNS, columns};
use crate::metadata::{NamedBlob, PurgeClaimed, Walk, WalkedFile, WalkedFiles};

pub(super) const WALK: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_claimed FROM files WHERE file_id > $1 ORDER BY file_id LIMIT $2"
);

pub(super) const NAMED: &str =
    "SELECT wanted.number FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY
     AS wanted (file_id, blob_key, storage_provider, number)
     JOIN files USING (file_id, blob_key, storage_provider) WHERE NOT files.purge_claimed";

pub(super) const KNOWN: &str = "SELECT file_id FROM files WHERE file_id = ANY ($1)";

pub(super) const OLD_WRITES: &str = "SELECT storage_provider, blob_key FROM write_intents
     WHERE begun_at < $1 ORDER BY begun_at LIMIT $2";

#[async_trait]
impl Walk for PostgresMetadata {
    async fn walk_files(&self, after: &str, limit: usize) -> Result<WalkedFiles> {
        self.engine
            .read("walking over the records", &(after, limit), |sql, (after, limit)| {
                Box::pin(async move {
                    let rows = sql.rows(WALK, &[after, &row::limit(*limit)]).await?;
                    let mut page = WalkedFiles::default();
                    for row in &rows {
                        page.files.push(walked(sql, row)?);
                    }
                    page.next = rows.last().filter(|_| rows.len() == *limit).map(row::raw_id);
                    Ok(page)
                })
            })
            .await
    }

    async fn still_named(&self, blobs: &[NamedBlob]) -> Result<Vec<bool>> {
        self.engine
            .read("looking blobs up", &blobs, |sql, blobs| Box::pin(still_named(sql, blobs)))
            .await
    }

    async fn known_files(&self, ids: &[FileId]) -> Result<Vec<bool>> {
        self.engine
            .read("looking files up", &ids, |sql, ids| {
                Box::pin(async move {
                    let ids = row::ids(ids);
                    let mut known = std::collections::BTreeSet::new();
                    for row in sql.rows(KNOWN, &[&ids]).await? {
                        known.insert(row::raw_id(&row));
                    }
                    Ok(ids.iter().map(|id| known.contains(id)).collect())
                })
            })
            .await
    }

    async fn old_writes(
        &self,
        begun_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<(ProviderCode, BlobKey)>> {
        self.engine
            .read(
                "looking for old writes",
                &(begun_before, limit),
                |sql, &(begun_before, limit)| {
                    Box::pin(async move {
                        sql.collect(
                            OLD_WRITES,
                            &[&begun_before.as_millis(), &row::limit(limit)],
                            |row| {
                                let read = row::parse(row, 0)
                                    .and_then(|holder| Ok((holder, row::parse(row, 1)?)));
                                read.map_err(|source| Fault::Row {
                                    what: "a write intent".into(),
                                    source,
                                })
                            },
                        )
                        .await
                    })
                },
            )
            .await
    }
}

fn walked(sql: &Sql, row: &Row) -> Result<WalkedFile, Fault> {
    let fault = match row::record(row) {
        Ok(record) => {
            let claimed = if row.try_get(COLUMNS)? { PurgeClaimed::Yes } else { PurgeClaimed::No };
            return Ok(WalkedFile::Sound(Box::new(record), claimed));
        }
        Err(fault) => fault,
    };

    let reason = fault.to_string();
    sql.pass_over(Err::<(), _>(fault))?;
    Ok(WalkedFile::Damaged { file_id: row::raw_id(row), reason })
}

pub(super) async fn still_named(sql: &Sql, blobs: &[NamedBlob]) -> Result<Vec<bool>, Fault> {
    let files: Vec<String> = blobs.iter().map(|blob| row::id(blob.file_id)).collect();
    let keys: Vec<&str> = blobs.iter().map(|blob| blob.key.as_str()).collect();
    let holders: Vec<&str> = blobs.iter().map(|blob| blob.holder.as_str()).collect();

    let mut named = vec![false; blobs.len()];
    for row in sql.rows(NAMED, &[&files, &keys, &holders]).await? {
        let number: i64 = row.try_get(0)?;
        named[usize::try_from(number - 1)?] = true;
    }
    Ok(named)
}
