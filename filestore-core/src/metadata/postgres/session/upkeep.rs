//! The database itself: settings, health and closing.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::file::damage::Damage;
use crate::domain::id::StoreId;
use crate::domain::report::Schema;
use crate::domain::report::load::QueueLoad;
use crate::metadata::Upkeep;

use super::schema::{KNOWN, STORE_ID};
use crate::metadata::postgres::PostgresMetadata;

const ALL: &str = "SELECT name, value FROM settings WHERE name <> $1";

const PUT: &str = "INSERT INTO settings (name, value)
     SELECT * FROM unnest($1::text[], $2::text[]) ORDER BY 1
     ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE settings.value <> excluded.value";

#[async_trait]
impl Upkeep for PostgresMetadata {
    fn damage(&self) -> Damage {
        self.engine.damaged.damage()
    }

    fn queued_writes(&self) -> QueueLoad {
        self.engine.load()
    }

    fn schema(&self) -> Schema {
        Schema { engine: "PostgreSQL", version: KNOWN }
    }

    fn store_id(&self) -> StoreId {
        self.engine.store
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>> {
        self.engine
            .read("reading the settings", &(), |sql, ()| {
                Box::pin(async move {
                    let rows = sql.rows(ALL, &[&STORE_ID]).await?;
                    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
                })
            })
            .await
    }

    async fn put_settings(&self, values: BTreeMap<String, String>) -> Result<()> {
        self.engine
            .write("storing settings", values, |sql, values| {
                Box::pin(async move {
                    let (names, values): (Vec<&String>, Vec<&String>) = values.iter().unzip();
                    sql.execute(PUT, &[&names, &values]).await.map(drop)
                })
            })
            .await
    }

    async fn flush(&self) -> Result<()> {
        // A commit that is flushed flushes all before it.
        self.engine
            .write("flushing the database", (), |sql, ()| {
                Box::pin(sql.batch("SET LOCAL synchronous_commit TO on"))
            })
            .await
    }

    async fn outcomes_known(&self) -> Result<()> {
        self.engine.fates.known().await
    }

    async fn ping(&self) -> Result<()> {
        self.engine
            .read("asking the database", &(), |sql, ()| {
                Box::pin(async move {
                    sql.be_brief();
                    sql.exists("SELECT 1", &[]).await.map(drop)
                })
            })
            .await
    }

    async fn poisoned(&self) -> String {
        // What PostgreSQL has lost it finds again by itself.
        let Some(member) = self.engine.member() else { return std::future::pending().await };
        let mut succeeded = member.is_succeeded.subscribe();
        if succeeded.wait_for(|is_succeeded| *is_succeeded).await.is_err() {
            return std::future::pending().await;
        }
        "another process has joined the servers of the store under the name of this one: each needs a data directory \
         of its own, and a copy of one is to lose its file server-id"
            .to_owned()
    }

    async fn close(&self) {
        self.engine.close().await;
    }
}
