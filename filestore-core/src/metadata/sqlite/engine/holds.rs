//! Holds of snapshots, in SQLite.

use std::path::Path;

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::{Error, Result};
use crate::metadata::Holds;
use crate::metadata::sqlite::{SqliteMetadata, holds, snapshot};
use crate::tasks;

#[async_trait]
impl Holds for SqliteMetadata {
    async fn take_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<()> {
        let id = id.to_owned();
        self.writer.run("taking a hold", move |tx| holds::take(tx.sql, &id, now, until)).await
    }

    async fn renew_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<bool> {
        let id = id.to_owned();
        self.writer.run("renewing a hold", move |tx| holds::renew(tx.sql, &id, now, until)).await
    }

    async fn narrow_hold(&self, id: &str, last_row: i64) -> Result<()> {
        let id = id.to_owned();
        self.writer.run("narrowing a hold", move |tx| holds::narrow(tx.sql, &id, last_row)).await
    }

    async fn release_hold(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.writer.run("releasing a hold", move |tx| holds::release(tx.sql, &id)).await
    }

    async fn snapshot_to(&self, path: &Path) -> Result<()> {
        self.readers.check()?;
        let (live, copy) = (self.path.clone(), path.to_owned());
        tasks::blocking(move || snapshot::copy(&live, &copy))
            .await
            .unwrap_or_else(|lost| Err(Error::internal("copying the database", lost)))
    }
}
