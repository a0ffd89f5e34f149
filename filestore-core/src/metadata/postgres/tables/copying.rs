//! Writes rows of tables that come from another engine.
//!
//! # Crash safety
//! A page of rows is one transaction. Before the first table is created, and until the copy is complete, the
//! schema contains a mark, and no server opens it (`schema`). A stopped copy continues behind the last row of
//! each table. The final comparison finds rows that changed in the meantime.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::domain::error::Result;
use crate::domain::id::StoreId;
use crate::metadata::copying::{Cell, Cells, Column, CopySource, Kind, Table};

use super::row;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::{Limits, Param, Sql};
use crate::metadata::postgres::session::{pool, schema};
use crate::metadata::postgres::{PostgresMetadata, PostgresOptions, opened};

/// Tables with numbered rows, and the column with the number.
const NUMBERED: [(&str, &str); 4] =
    [("files", "row_id"), ("blob_gc", "id"), ("bindings", "id"), ("webhook_failures", "row_id")];

/// The number that the last binding got: no transaction takes it back.
const LAST_BINDING: &str = "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('bindings', 'id')::regclass), 0)";

/// A value of a parameter, or a column of them.
type Owned = Box<dyn ToSql + Send + Sync>;

impl PostgresMetadata {
    /// Opens a schema for copying the records of `store`, and creates it if necessary. Reopens a schema with
    /// an unfinished copy of the same store. Refuses any other schema with contents.
    pub async fn open_to_copy(
        store: StoreId,
        source: CopySource,
        options: &PostgresOptions,
    ) -> Result<Self> {
        options.check()?;
        let (pool, limits) = (pool::pool(options)?, Limits::of(options));
        opened(limits.opening(), async {
            let mut connection = pool::get(&pool, limits).await?;
            schema::begin_copy(&mut connection, &options.schema, store, source).await
        })
        .await?;
        Self::migrated(pool, store, options).await
    }

    /// Returns true if a schema contains the complete records of `store`. Only reads.
    pub async fn has_store(store: StoreId, options: &PostgresOptions) -> Result<bool> {
        options.check()?;
        let (pool, limits) = (pool::pool(options)?, Limits::of(options));
        opened(limits.opening(), async {
            let connection = pool::get(&pool, limits).await?;
            schema::has_store(&connection, &options.schema, store).await
        })
        .await
    }

    /// Reads at most `limit` rows of a table behind a key, in key order.
    pub async fn rows_of(
        &self,
        table: &'static Table,
        after: Option<Cells>,
        limit: usize,
    ) -> Result<Vec<Cells>> {
        let wanted = (table, after, limit);
        self.engine
            .read("reading a table", &wanted, |sql, (table, after, limit)| {
                Box::pin(rows(sql, table, after.as_deref(), *limit))
            })
            .await
    }

    /// Returns the key of a table's last row.
    pub async fn last_key(&self, table: &'static Table) -> Result<Option<Cells>> {
        self.engine
            .read("reading a table", &table, |sql, table| Box::pin(last_key(sql, table)))
            .await
    }

    /// Stores rows. Existing rows with the same keys stay unchanged.
    pub async fn put_rows(&self, table: &'static Table, rows: Vec<Cells>) -> Result<()> {
        self.engine
            .write("copying rows", (table, rows), |sql, (table, rows)| {
                Box::pin(put(sql, table, rows))
            })
            .await
    }

    /// Removes all rows of a table except the store's id.
    pub async fn empty(&self, table: &'static Table) -> Result<()> {
        self.engine
            .write("emptying a table", table, |sql, table| {
                Box::pin(async move {
                    sql.be_patient().await?;
                    let statement = match table.name {
                        "settings" => "DELETE FROM settings WHERE name <> 'store_id'".to_owned(),
                        name => format!("DELETE FROM {name}"),
                    };
                    sql.execute(&statement, &[]).await.map(drop)
                })
            })
            .await
    }

    /// Continues the numbering of rows behind the copied rows, and behind the last binding that ever existed.
    /// Updates the planner's statistics.
    pub async fn number_on(&self, last_binding: i64) -> Result<()> {
        self.engine
            .write("numbering rows", last_binding, |sql, last| Box::pin(number_on(sql, *last)))
            .await
    }

    /// Ends the copy. A server can open the schema from now on.
    pub async fn end_copy(&self) -> Result<()> {
        self.engine
            .write("ending the copy", (), |sql, ()| Box::pin(sql.batch(schema::END_COPY)))
            .await
    }
}

/// Returns the query for a page of a table, behind a key of `key_length` values, or 0 for the first page.
pub(in crate::metadata::postgres) fn query(table: &Table, key_length: usize) -> String {
    let (all, key) = table.names();
    let (columns, key) = (all.join(", "), key.join(", "));
    let behind = match key_length {
        0 => String::new(),
        length => format!(" WHERE ({key}) > ({})", numbers(length)),
    };
    let limit = key_length + 1;
    format!("SELECT {columns} FROM {}{behind} ORDER BY {key} LIMIT ${limit}", table.name)
}

/// Reads up to `limit` rows of a table behind a key, in the order of the keys.
pub(in crate::metadata::postgres) async fn rows(
    sql: &Sql,
    table: &Table,
    after: Option<&[Cell]>,
    limit: usize,
) -> Result<Vec<Cells>, Fault> {
    let after = after.unwrap_or_default();
    let mut params: Vec<Owned> = Vec::new();
    for (column, cell) in table.columns.iter().zip(after) {
        params.push(single(column, cell).map_err(|source| damaged(table, source))?);
    }
    params.push(Box::new(row::limit(limit)));
    let found = sql.rows(&query(table, after.len()), &borrowed(&params)).await?;
    found.iter().map(|row| cells(table, row)).collect()
}

/// Returns the largest id that a binding ever had.
pub(in crate::metadata::postgres) async fn last_binding(sql: &Sql) -> Result<i64, Fault> {
    let row = sql.first(LAST_BINDING, &[]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default())
}

async fn last_key(sql: &Sql, table: &Table) -> Result<Option<Cells>, Fault> {
    let (all, key) = table.names();
    let last = key.iter().map(|name| format!("{name} DESC")).collect::<Vec<_>>().join(", ");
    let query = format!("SELECT {} FROM {} ORDER BY {last} LIMIT 1", all.join(", "), table.name);
    let Some(row) = sql.first(&query, &[]).await? else { return Ok(None) };
    let mut cells = cells(table, &row)?;
    cells.truncate(table.key);
    Ok(Some(cells))
}

async fn put(sql: &Sql, table: &Table, rows: &[Cells]) -> Result<(), Fault> {
    let arrays = table.columns.iter().enumerate().map(|(at, column)| array(column, at, rows));
    let arrays = arrays.collect::<Result<Vec<Owned>, Source>>();
    let arrays = arrays.map_err(|source| damaged(table, source))?;

    let casts = table.columns.iter().enumerate();
    let casts = casts.map(|(at, column)| format!("${}::{}[]", at + 1, type_name(column.kind)));
    let (columns, casts) = (table.names().0.join(", "), casts.collect::<Vec<_>>().join(", "));
    let statement = format!(
        "INSERT INTO {} ({columns}) OVERRIDING SYSTEM VALUE SELECT * FROM unnest({casts}) ON CONFLICT DO NOTHING",
        table.name
    );
    sql.execute(&statement, &borrowed(&arrays)).await.map(drop)
}

async fn number_on(sql: &Sql, last_binding: i64) -> Result<(), Fault> {
    sql.be_patient().await?;
    for (table, column) in NUMBERED {
        let least = if table == "bindings" { last_binding.max(1) } else { 1 };
        let statement = format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), greatest(coalesce(max({column}), 1), $1))
             FROM {table}"
        );
        sql.rows(&statement, &[&least]).await?;
    }
    sql.batch("ANALYZE files, file_terms, blob_gc, idempotency, removed_blobs, purge_receipts")
        .await
}

/// Returns `$1, $2` and so on.
fn numbers(length: usize) -> String {
    (1..=length).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
}

fn borrowed(owned: &[Owned]) -> Vec<Param<'_>> {
    owned.iter().map(|param| &**param as Param<'_>).collect()
}

fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Bytes => "bytea",
        Kind::Integer => "bigint",
        Kind::Small => "integer",
        Kind::Boolean => "boolean",
    }
}

fn damaged(table: &Table, source: Source) -> Fault {
    Fault::Row { what: table.name.to_owned(), source }
}

/// Creates a parameter from one value.
fn single(column: &Column, cell: &Cell) -> Result<Owned, Source> {
    Ok(match column.kind {
        Kind::Text => Box::new(text(cell)?),
        Kind::Bytes => Box::new(bytes(cell)?),
        Kind::Integer => Box::new(integer(cell)?),
        Kind::Small => Box::new(small(cell)?),
        Kind::Boolean => Box::new(boolean(cell)?),
    })
}

/// Creates a parameter from the values of all rows at `at`.
fn array(column: &Column, at: usize, rows: &[Cells]) -> Result<Owned, Source> {
    Ok(match column.kind {
        Kind::Text => Box::new(all(rows, at, text)?),
        Kind::Bytes => Box::new(all(rows, at, bytes)?),
        Kind::Integer => Box::new(all(rows, at, integer)?),
        Kind::Small => Box::new(all(rows, at, small)?),
        Kind::Boolean => Box::new(all(rows, at, boolean)?),
    })
}

fn all<T>(
    rows: &[Cells],
    at: usize,
    read: fn(&Cell) -> Result<Option<T>, Source>,
) -> Result<Vec<Option<T>>, Source> {
    rows.iter().map(|row| read(&row[at])).collect()
}

fn text(cell: &Cell) -> Result<Option<String>, Source> {
    match cell {
        Cell::Null => Ok(None),
        Cell::Text(text) => Ok(Some(text.clone())),
        _ => Err("no text".into()),
    }
}

fn bytes(cell: &Cell) -> Result<Option<Vec<u8>>, Source> {
    match cell {
        Cell::Null => Ok(None),
        Cell::Bytes(bytes) => Ok(Some(bytes.clone())),
        _ => Err("no bytes".into()),
    }
}

fn integer(cell: &Cell) -> Result<Option<i64>, Source> {
    match cell {
        Cell::Null => Ok(None),
        Cell::Integer(number) => Ok(Some(*number)),
        _ => Err("no number".into()),
    }
}

fn small(cell: &Cell) -> Result<Option<i32>, Source> {
    Ok(integer(cell)?.map(i32::try_from).transpose()?)
}

fn boolean(cell: &Cell) -> Result<Option<bool>, Source> {
    match integer(cell)? {
        None => Ok(None),
        Some(number @ (0 | 1)) => Ok(Some(number == 1)),
        Some(_) => Err("no truth value".into()),
    }
}

fn cells(table: &Table, row: &Row) -> Result<Cells, Fault> {
    let mut cells = Vec::with_capacity(table.columns.len());
    for (at, column) in table.columns.iter().enumerate() {
        cells.push(cell(column.kind, row, at).map_err(|source| damaged(table, source))?);
    }
    Ok(cells)
}

fn cell(kind: Kind, row: &Row, at: usize) -> Result<Cell, Source> {
    let cell = match kind {
        Kind::Text => row.try_get::<_, Option<String>>(at)?.map(Cell::Text),
        Kind::Bytes => row.try_get::<_, Option<Vec<u8>>>(at)?.map(Cell::Bytes),
        Kind::Integer => row.try_get::<_, Option<i64>>(at)?.map(Cell::Integer),
        Kind::Small => {
            row.try_get::<_, Option<i32>>(at)?.map(|number| Cell::Integer(number.into()))
        }
        Kind::Boolean => {
            row.try_get::<_, Option<bool>>(at)?.map(|is_so| Cell::Integer(is_so.into()))
        }
    };
    Ok(cell.unwrap_or(Cell::Null))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metadata::copying::TABLES;
    use crate::metadata::postgres::tests::fresh;

    /// Tables of this engine alone, or kept by triggers, or of processes that have ended.
    const LEFT_OUT: [&str; 13] = [
        "event_log",
        "events",
        "commit_marks",
        "holds",
        "organization_usage",
        "rate_uses",
        "resumable_uploads",
        "schema_versions",
        "secrets_version",
        "servers",
        "sub_system_usage",
        "sync_totals",
        "under_way",
    ];

    /// Columns that say what a process does that has ended, or that name a place in the log that is not copied.
    const OF_A_PROCESS: [(&str, &str); 3] =
        [("blob_gc", "owner"), ("webhook_lanes", "owner"), ("webhook_lanes", "place")];

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "needs PostgreSQL: tests/services/postgres/run"]
    async fn every_stored_column_is_copied() {
        let (_metadata, schema) = fresh();
        let client = pool::pool(&schema.options()).unwrap().get().await.unwrap();
        let query = "SELECT table_name::text, column_name::text, data_type::text
             FROM information_schema.columns WHERE table_schema = $1 AND is_generated = 'NEVER'";
        let mut there = BTreeSet::new();
        for row in client.query(query, &[&schema.name()]).await.unwrap() {
            let column: (String, String, String) = (row.get(0), row.get(1), row.get(2));
            let is_of_a_process = OF_A_PROCESS.contains(&(column.0.as_str(), column.1.as_str()));
            if !LEFT_OUT.contains(&column.0.as_str()) && !is_of_a_process {
                there.insert(column);
            }
        }

        let mut copied = BTreeSet::new();
        for table in TABLES {
            for Column { name, kind } in table.columns {
                copied.insert((table.name.into(), (*name).into(), type_name(*kind).into()));
            }
        }
        assert_eq!(there, copied);
    }
}
