//! The database itself: settings, health and closing.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::domain::config::Durability;
use crate::domain::error::Result;
use crate::domain::file::damage::Damage;
use crate::domain::id::StoreId;
use crate::domain::report::Schema;
use crate::domain::report::load::QueueLoad;
use crate::metadata::Upkeep;

use super::fault::Fault;
use super::reread;
use super::schema::MIGRATIONS;
use super::store_id::STORE_ID;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::tables::row;

const ALL: &str = "SELECT name, value FROM settings";

const PUT: &str = "INSERT INTO settings (name, value) VALUES (?1, ?2)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value <> excluded.value";

#[async_trait]
impl Upkeep for SqliteMetadata {
    fn damage(&self) -> Damage {
        self.health.damaged.damage()
    }

    fn queued_writes(&self) -> QueueLoad {
        self.writer.load()
    }

    fn schema(&self) -> Schema {
        Schema { engine: "SQLite", version: MIGRATIONS.len() }
    }

    fn store_id(&self) -> StoreId {
        self.store_id
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>> {
        self.readers
            .run("reading the settings", |sql| {
                let all = row::collect(sql, ALL, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
                let mut all: BTreeMap<String, String> = all.into_iter().collect();
                all.remove(STORE_ID);
                Ok(all)
            })
            .await
    }

    async fn put_settings(&self, values: BTreeMap<String, String>) -> Result<()> {
        self.writer
            .run("storing settings", move |tx| {
                values.iter().try_for_each(|(name, value)| {
                    row::execute(tx.sql, PUT, [name, value]).map(drop)
                })
            })
            .await
    }

    async fn flush(&self) -> Result<()> {
        if self.durability == Durability::Full {
            return Ok(());
        }
        let path = self.path.clone();
        self.readers
            .run("flushing the database", move |_| reread::flush_log(&path).map_err(Fault::Flush))
            .await
    }

    async fn ping(&self) -> Result<()> {
        self.readers
            .run("asking the database", |sql| {
                Ok(sql.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?)
            })
            .await
    }

    async fn poisoned(&self) -> String {
        self.health.poisoned().await
    }

    async fn close(&self) {
        self.readers.close();
        self.writer.close().await;
    }
}
