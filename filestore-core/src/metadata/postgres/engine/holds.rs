//! Holds of snapshots, in PostgreSQL.

use std::path::Path;

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::metadata::Holds;
use crate::metadata::postgres::{PostgresMetadata, holds};

#[async_trait]
impl Holds for PostgresMetadata {
    async fn take_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<()> {
        self.engine
            .write("taking a hold", (id.to_owned(), now, until), |sql, (id, now, until)| {
                Box::pin(holds::take(sql, id, *now, *until))
            })
            .await
    }

    async fn renew_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<bool> {
        self.engine
            .write("renewing a hold", (id.to_owned(), now, until), |sql, (id, now, until)| {
                Box::pin(holds::renew(sql, id, *now, *until))
            })
            .await
    }

    async fn narrow_hold(&self, id: &str, last_row: i64) -> Result<()> {
        self.engine
            .write("narrowing a hold", (id.to_owned(), last_row), |sql, (id, last_row)| {
                Box::pin(holds::narrow(sql, id, *last_row))
            })
            .await
    }

    async fn release_hold(&self, id: &str) -> Result<()> {
        self.engine
            .write("releasing a hold", id.to_owned(), |sql, id| Box::pin(holds::release(sql, id)))
            .await
    }

    async fn snapshot_to(&self, _: &Path) -> Result<()> {
        let message = "the records are in PostgreSQL, which has its own backups: pg_dump, or an archive of its log";
        Err(Error::new(ErrorKind::Unusable, message))
    }
}
