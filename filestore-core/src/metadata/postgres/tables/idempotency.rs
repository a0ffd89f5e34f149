//! Remembered replies.

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::error::Result;
use crate::domain::id::OrganizationId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Idempotency, IdempotencyEntry, stored};

use super::row;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::Sql;

pub(in crate::metadata::postgres) const GET: &str =
    "SELECT fingerprint, file_ids, reply, expires_at FROM idempotency
     WHERE organization_id = $1 AND key = $2 AND expires_at > $3";

/// Waits for another transaction with the same key. Changes nothing if that transaction stored its reply.
pub(in crate::metadata::postgres) const PUT: &str =
    "INSERT INTO idempotency (organization_id, key, fingerprint, file_ids, reply, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (organization_id, key) DO UPDATE SET fingerprint = excluded.fingerprint,
     file_ids = excluded.file_ids, reply = excluded.reply, expires_at = excluded.expires_at
     WHERE idempotency.expires_at <= $7";

pub(in crate::metadata::postgres) const FORGET: &str = "WITH expired AS MATERIALIZED (
     SELECT organization_id, key FROM idempotency WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2
     FOR UPDATE SKIP LOCKED)
     DELETE FROM idempotency USING expired WHERE idempotency.organization_id = expired.organization_id
     AND idempotency.key = expired.key";

#[async_trait]
impl Idempotency for PostgresMetadata {
    async fn idempotency(
        &self,
        organization: &OrganizationId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyEntry>> {
        let wanted = (organization, key, now);
        self.engine
            .read("looking up a reply", &wanted, |sql, (organization, key, now)| {
                Box::pin(async move {
                    let row =
                        sql.first(GET, &[&organization.as_str(), key, &now.as_millis()]).await?;
                    let read = |row: Row| {
                        entry(&row, organization, key).map_err(|source| {
                            let what = format!("an idempotency key of organization {organization}");
                            Fault::Row { what, source }
                        })
                    };
                    row.map(read).transpose()
                })
            })
            .await
    }

    async fn forget_idempotency(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.engine
            .write("forgetting replies", (now, limit), |sql, &(now, limit)| {
                Box::pin(async move {
                    sql.execute(FORGET, &[&now.as_millis(), &row::limit(limit)]).await
                })
            })
            .await
    }
}

fn entry(row: &Row, organization: &OrganizationId, key: &str) -> Result<IdempotencyEntry, Source> {
    let fingerprint: &[u8] = row.try_get(0)?;
    Ok(IdempotencyEntry {
        organization: organization.clone(),
        key: key.to_owned(),
        fingerprint: fingerprint.try_into()?,
        file_ids: stored::words(row.try_get(1)?)?,
        reply: row.try_get(2)?,
        expires_at: row::instant(row, 3)?,
    })
}

/// Stores a reply, in place of a reply that has expired at `now`. Returns false if the key is taken.
pub(super) async fn put(
    sql: &Sql,
    entry: &IdempotencyEntry,
    now: Timestamp,
) -> Result<bool, Fault> {
    let (file_ids, fingerprint) =
        (stored::file_ids_text(&entry.file_ids), entry.fingerprint.as_slice());
    let changed = sql
        .execute(
            PUT,
            &[
                &entry.organization.as_str(),
                &entry.key,
                &fingerprint,
                &file_ids,
                &entry.reply,
                &entry.expires_at.as_millis(),
                &now.as_millis(),
            ],
        )
        .await?;
    Ok(changed > 0)
}
