//! Walks over records and notes, in pages.

use tokio_postgres::Row;

use crate::domain::clock::Timestamp;
use crate::domain::id::FileId;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::metadata::postgres::fault::Fault;
use crate::metadata::postgres::row::{self, COLUMNS, columns};
use crate::metadata::postgres::sql::Sql;
use crate::metadata::{NamedBlob, PurgeClaimed, WalkedFile, WalkedFiles};

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

pub(super) async fn files(sql: &Sql, after: &str, limit: usize) -> Result<WalkedFiles, Fault> {
    let rows = sql.rows(WALK, &[&after, &row::limit(limit)]).await?;
    let mut page = WalkedFiles::default();
    for row in &rows {
        page.files.push(walked(sql, row)?);
    }
    page.next = rows.last().filter(|_| rows.len() == limit).map(row::raw_id);
    Ok(page)
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

pub(super) async fn known(sql: &Sql, ids: &[FileId]) -> Result<Vec<bool>, Fault> {
    let ids = row::ids(ids);
    let mut known = std::collections::BTreeSet::new();
    for row in sql.rows(KNOWN, &[&ids]).await? {
        known.insert(row::raw_id(&row));
    }
    Ok(ids.iter().map(|id| known.contains(id)).collect())
}

pub(super) async fn old_writes(
    sql: &Sql,
    begun_before: Timestamp,
    limit: usize,
) -> Result<Vec<(ProviderCode, BlobKey)>, Fault> {
    sql.collect(OLD_WRITES, &[&begun_before.as_millis(), &row::limit(limit)], |row| {
        let read = row::parse(row, 0).and_then(|holder| Ok((holder, row::parse(row, 1)?)));
        read.map_err(|source| Fault::Row { what: "a write intent".into(), source })
    })
    .await
}
