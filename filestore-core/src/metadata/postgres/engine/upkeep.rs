//! The database itself: its settings, its health and its end.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::damage::Damage;
use crate::domain::error::Result;
use crate::domain::id::StoreId;
use crate::domain::load::QueueLoad;
use crate::metadata::Upkeep;
use crate::metadata::postgres::{
    PostgresMetadata, dropped, entries, holds, purge, settings, sync, waits,
};

#[async_trait]
impl Upkeep for PostgresMetadata {
    fn damage(&self) -> Damage {
        self.engine.damaged.damage()
    }

    fn queued_writes(&self) -> QueueLoad {
        self.engine.load()
    }

    fn store_id(&self) -> StoreId {
        self.engine.store
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>> {
        self.engine.read("reading the settings", &(), |sql, ()| Box::pin(settings::all(sql))).await
    }

    async fn put_settings(&self, values: BTreeMap<String, String>) -> Result<()> {
        self.engine
            .write("storing settings", values, |sql, values| Box::pin(settings::put(sql, values)))
            .await
    }

    async fn clear_leases(&self) -> Result<()> {
        self.engine
            .write("ending leases", (), |sql, ()| {
                Box::pin(async move {
                    sql.be_patient().await?;
                    purge::clear_leases(sql).await?;
                    dropped::clear_leases(sql).await?;
                    holds::clear(sql).await?;
                    entries::clear(sql).await?;
                    sync::clear_leases(sql).await
                })
            })
            .await
    }

    async fn cap_waits(&self, retries: Timestamp, blobs: Timestamp) -> Result<()> {
        self.engine
            .write("cutting waits short", (retries, blobs), |sql, &(retries, blobs)| {
                Box::pin(waits::cap(sql, retries, blobs))
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
        self.engine.outcomes_known().await
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
