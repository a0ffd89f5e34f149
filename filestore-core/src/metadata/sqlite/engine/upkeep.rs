//! The database itself: its settings, its health and its end.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::config::Durability;
use crate::domain::damage::Damage;
use crate::domain::error::Result;
use crate::domain::id::StoreId;
use crate::domain::load::QueueLoad;
use crate::metadata::Upkeep;
use crate::metadata::sqlite::fault::Fault;
use crate::metadata::sqlite::{SqliteMetadata, holds, purge, reread, settings, sync, waits};

#[async_trait]
impl Upkeep for SqliteMetadata {
    fn damage(&self) -> Damage {
        self.health.damaged.damage()
    }

    fn queued_writes(&self) -> QueueLoad {
        self.writer.load()
    }

    fn store_id(&self) -> StoreId {
        self.store_id
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>> {
        self.readers.run("reading the settings", settings::all).await
    }

    async fn put_settings(&self, values: BTreeMap<String, String>) -> Result<()> {
        self.writer.run("storing settings", move |tx| settings::put(tx.sql, &values)).await
    }

    async fn clear_leases(&self) -> Result<()> {
        self.writer
            .run("ending leases", |tx| {
                purge::clear_leases(tx.sql)?;
                holds::clear(tx.sql)?;
                sync::clear_leases(tx)
            })
            .await
    }

    async fn cap_waits(&self, retries: Timestamp, blobs: Timestamp) -> Result<()> {
        self.writer.run("cutting waits short", move |tx| waits::cap(tx.sql, retries, blobs)).await
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
