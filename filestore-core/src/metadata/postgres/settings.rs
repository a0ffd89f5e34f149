//! The store's own settings: what a server last worked by, beside the store's id.

use std::collections::BTreeMap;

use super::fault::Fault;
use super::schema::STORE_ID;
use super::sql::Sql;

const ALL: &str = "SELECT name, value FROM settings WHERE name <> $1";

const PUT: &str = "INSERT INTO settings (name, value)
     SELECT * FROM unnest($1::text[], $2::text[]) ORDER BY 1
     ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE settings.value <> excluded.value";

/// Reads all settings but the id.
pub(super) async fn all(sql: &Sql) -> Result<BTreeMap<String, String>, Fault> {
    let rows = sql.rows(ALL, &[&STORE_ID]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// Writes settings, in the place of earlier values of the same names.
pub(super) async fn put(sql: &Sql, values: &BTreeMap<String, String>) -> Result<(), Fault> {
    let (names, values): (Vec<&String>, Vec<&String>) = values.iter().unzip();
    sql.execute(PUT, &[&names, &values]).await.map(drop)
}
