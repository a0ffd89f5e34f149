//! The record of one file with the work that waits for it, for explanations.

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::domain::report::explain::{FileWork, PurgeWork, ReplacedBlobs, UnfinishedWrite};
use crate::domain::time::clock::Timestamp;
use crate::metadata::Explaining;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::Sql;
use crate::metadata::postgres::tables::bindings;
use crate::metadata::postgres::tables::row::{self, COLUMNS, columns};

macro_rules! work {
    ($where:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            ", deleted_by, sync_not_before, purge_claimed, purge_owner IS NOT NULL, purge_not_before,
     purge_attempts, row_id FROM files WHERE ",
            $where
        )
    };
}

pub(in crate::metadata::postgres) const WORK: &str = work!("file_id = $1");

pub(in crate::metadata::postgres) const WORK_WITHIN: &str =
    work!("file_id = $1 AND organization_id = ANY ($2)");

pub(in crate::metadata::postgres) const REPLACED: &str = "SELECT storage_provider, not_before, attempts FROM blob_gc WHERE file_id = $1 AND NOT is_absent";

pub(in crate::metadata::postgres) const WRITES: &str =
    "SELECT storage_provider, begun_at FROM write_intents WHERE file_id = $1";

/// Reads a table with few rows.
const HELD_UNTIL: &str = "SELECT max(lasts_until) FILTER (WHERE last_row >= $1), max(lasts_until)
     FROM holds WHERE lasts_until > $2";

#[async_trait]
impl Explaining for PostgresMetadata {
    async fn file_work(
        &self,
        file: FileId,
        scope: &Scope,
        now: Timestamp,
    ) -> Result<Option<FileWork>> {
        self.engine
            .read_snapshot(
                "reading the work on a file",
                &(file, scope, now),
                |sql, &(file, scope, now)| Box::pin(work_on(sql, file, scope, now)),
            )
            .await
    }
}

async fn work_on(
    sql: &Sql,
    file: FileId,
    scope: &Scope,
    now: Timestamp,
) -> Result<Option<FileWork>, Fault> {
    let id = row::id(file);
    let found = match scope {
        Scope::All => sql.first(WORK, &[&id]).await?,
        Scope::Organizations(list) => {
            let list: Vec<&str> = list.iter().map(OrganizationId::as_str).collect();
            sql.first(WORK_WITHIN, &[&id, &list]).await?
        }
    };
    let Some(found) = found else { return Ok(None) };
    let mut work = work(&found)?;

    for blob in sql.rows(REPLACED, &[&id]).await? {
        let (provider, due_at) = at_provider(&blob, file)?;
        ReplacedBlobs::add_to(&mut work.replaced, provider, due_at, row::attempts(&blob, 2)?);
    }
    for write in sql.rows(WRITES, &[&id]).await? {
        let (provider, begun_at) = at_provider(&write, file)?;
        work.writes.push(UnfinishedWrite { provider, begun_at });
    }

    let row_number: i64 = found.try_get(COLUMNS + 6)?;
    if let Some(held) = sql.first(HELD_UNTIL, &[&row_number, &now.as_millis()]).await? {
        let until = |column| held.try_get::<_, Option<i64>>(column);
        work.held_until = until(0)?.map(Timestamp::from_millis);
        work.replaced_held_until = until(1)?.map(Timestamp::from_millis);
    }
    if let Some(number) = work.record.organization_id.number() {
        work.binding = bindings::active(sql, number).await?;
    }
    Ok(Some(work))
}

/// Reads the record and the state of its work, without other tables.
fn work(row: &Row) -> Result<FileWork, Fault> {
    let record = row::record(row)?;
    let deleted_by = row.try_get::<_, Option<&str>>(COLUMNS)?.map(str::parse).transpose();
    let damaged =
        |source| Fault::Record { file_id: row::raw_id(row), source: Source::from(source) };
    Ok(FileWork {
        record,
        deleted_by: deleted_by.map_err(damaged)?,
        sync_not_before: Timestamp::from_millis(row.try_get(COLUMNS + 1)?),
        purge: PurgeWork {
            is_claimed: row.try_get(COLUMNS + 2)?,
            is_leased: row.try_get(COLUMNS + 3)?,
            not_before: Timestamp::from_millis(row.try_get(COLUMNS + 4)?),
            attempts: row::attempts(row, COLUMNS + 5)?,
        },
        replaced: Vec::new(),
        writes: Vec::new(),
        held_until: None,
        replaced_held_until: None,
        binding: None,
    })
}

/// Reads a provider and an instant.
fn at_provider(row: &Row, file: FileId) -> Result<(ProviderCode, Timestamp), Fault> {
    let damaged = |source| Fault::Row { what: format!("a blob of file {file}"), source };
    let provider = row::parse(row, 0).map_err(damaged)?;
    Ok((provider, Timestamp::from_millis(row.try_get(1)?)))
}
