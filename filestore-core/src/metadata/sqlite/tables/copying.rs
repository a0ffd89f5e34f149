//! Reads rows of tables for another engine.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use crate::domain::error::Result;
use crate::metadata::copying::{Cell, Cells, Page, TABLES, Table, size_of_row};

use super::row;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};

/// Selects the number of the last binding.
const LAST_BINDING: &str =
    "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'bindings'";

impl SqliteMetadata {
    /// Reads a page of table rows behind a key, in key order.
    pub async fn rows_of(
        &self,
        table: &'static Table,
        after: Option<Cells>,
        page: Page,
    ) -> Result<Vec<Cells>> {
        self.readers
            .run("reading a table", move |sql| rows(sql, table, after.as_deref(), page))
            .await
    }

    /// Counts the rows of all copied tables.
    pub async fn row_count(&self) -> Result<u64> {
        self.readers
            .run("counting rows", |sql| {
                let mut rows = 0;
                for table in TABLES {
                    let query = format!("SELECT count(*) FROM {}", table.name);
                    rows += row::first(sql, &query, [], |row| row::count(row, 0))?.unwrap_or(0);
                }
                Ok(rows)
            })
            .await
    }

    /// Returns the largest id that a binding ever had.
    pub async fn last_binding(&self) -> Result<i64> {
        let read = self
            .readers
            .run("reading a table", |sql| row::first(sql, LAST_BINDING, [], |row| Ok(row.get(0)?)));
        Ok(read.await?.unwrap_or(0))
    }
}

/// Returns SQLite's name for a column that numbers a table's rows.
fn own_name(name: &'static str) -> &'static str {
    if name == "row_id" { "rowid" } else { name }
}

fn query(table: &Table, goes_on: bool) -> String {
    let (all, key) = table.names();
    let all: Vec<_> = all.into_iter().map(own_name).collect();
    let key: Vec<_> = key.into_iter().map(own_name).collect();

    let (columns, key) = (all.join(", "), key.join(", "));
    let after = if goes_on {
        format!(" WHERE ({key}) > ({})", vec!["?"; table.key].join(", "))
    } else {
        String::new()
    };
    format!("SELECT {columns} FROM {}{after} ORDER BY {key} LIMIT ?", table.name)
}

fn rows(
    sql: &Connection,
    table: &Table,
    after: Option<&[Cell]>,
    page: Page,
) -> Result<Vec<Cells>, Fault> {
    let limit = Cell::Integer(row::limit(page.rows));
    let params = after.unwrap_or_default().iter().chain([&limit]);

    let mut statement = sql.prepare_cached(&query(table, after.is_some()))?;
    let mut found = statement.query(params_from_iter(params))?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while bytes < page.bytes
        && let Some(row) = found.next()?
    {
        let cells = (0..table.columns.len()).map(|at| cell(row.get_ref(at)?));
        let cells = cells.collect::<Result<Cells, Source>>();
        let cells = cells.map_err(|source| Fault::Row { what: table.name.to_owned(), source })?;
        bytes += size_of_row(&cells);
        rows.push(cells);
    }
    Ok(rows)
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Adds rows to a table.
pub(in crate::metadata::sqlite) fn put(
    sql: &Connection,
    table: &Table,
    rows: &[Cells],
) -> Result<(), Fault> {
    let columns: Vec<_> = table.names().0.into_iter().map(own_name).collect();
    let values = vec!["?"; columns.len()].join(", ");
    let insertion =
        format!("INSERT INTO {} ({}) VALUES ({values})", table.name, columns.join(", "));

    let mut statement = sql.prepare_cached(&insertion)?;
    for row in rows {
        statement.execute(params_from_iter(row))?;
    }
    Ok(())
}

fn cell(value: ValueRef<'_>) -> Result<Cell, Source> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Text(text) => Cell::Text(std::str::from_utf8(text)?.to_owned()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return Err("a fraction".into()),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metadata::contract::{put, ready};
    use crate::metadata::sqlite::tests::{file, fresh};

    const WHOLE: Page = Page { rows: 1000, bytes: usize::MAX };

    /// Tables of this engine alone, or kept by triggers, or of processes that have ended.
    const LEFT_OUT: [&str; 8] = [
        "event_log",
        "events",
        "holds",
        "organization_usage",
        "resumable_uploads",
        "sqlite_sequence",
        "sub_system_usage",
        "sync_totals",
    ];

    #[tokio::test]
    async fn every_stored_column_is_copied() {
        let (_metadata, directory) = fresh();
        let sql = Connection::open(file(&directory)).unwrap();
        let query = "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_xinfo(t.name) AS c
             WHERE t.type = 'table' AND c.hidden = 0";
        let mut statement = sql.prepare(query).unwrap();
        let columns = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let mut there: BTreeSet<(String, String)> = columns.map(Result::unwrap).collect();
        there.retain(|(table, _)| !LEFT_OUT.contains(&table.as_str()));

        let mut copied: BTreeSet<(String, String)> = BTreeSet::new();
        for table in TABLES {
            copied.extend(table.names().0.into_iter().map(|name| (table.name.into(), name.into())));
        }
        copied.remove(&("files".to_owned(), "row_id".to_owned()));
        // A place names an event of a log that stays behind, and an owner a server that does.
        for column in ["owner", "place"] {
            assert!(there.remove(&("webhook_lanes".to_owned(), column.to_owned())));
        }
        assert_eq!(there, copied);
    }

    #[tokio::test]
    async fn a_page_ends_with_the_row_that_reaches_its_bytes() {
        let (metadata, _directory) = fresh();
        for _ in 0..5 {
            put(&metadata, ready("acme")).await;
        }
        let files = TABLES.iter().find(|table| table.name == "files").unwrap();
        let row = size_of_row(&metadata.rows_of(files, None, WHOLE).await.unwrap()[0]);

        for (bytes, rows) in [(1, 1), (row + 1, 2), (usize::MAX, 5)] {
            let page = Page { bytes, ..WHOLE };
            assert_eq!(metadata.rows_of(files, None, page).await.unwrap().len(), rows, "{bytes}");
        }
    }
}
