//! Remembered replies.

use tokio_postgres::Row;

use crate::domain::clock::Timestamp;
use crate::domain::id::OrganizationId;
use crate::metadata::{IdempotencyEntry, stored};

use super::fault::{Fault, Source};
use super::row;
use super::sql::Sql;

pub(super) const GET: &str = "SELECT fingerprint, file_ids, reply, expires_at FROM idempotency
     WHERE organization_id = $1 AND key = $2 AND expires_at > $3";

/// Waits for another transaction with the same key, and changes nothing if that remembered its reply.
pub(super) const PUT: &str =
    "INSERT INTO idempotency (organization_id, key, fingerprint, file_ids, reply, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (organization_id, key) DO UPDATE SET fingerprint = excluded.fingerprint,
     file_ids = excluded.file_ids, reply = excluded.reply, expires_at = excluded.expires_at
     WHERE idempotency.expires_at <= $7";

pub(super) const FORGET: &str = "WITH expired AS MATERIALIZED (
     SELECT organization_id, key FROM idempotency WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2
     FOR UPDATE SKIP LOCKED)
     DELETE FROM idempotency USING expired WHERE idempotency.organization_id = expired.organization_id
     AND idempotency.key = expired.key";

pub(super) async fn get(
    sql: &Sql,
    organization: &OrganizationId,
    key: &str,
    now: Timestamp,
) -> Result<Option<IdempotencyEntry>, Fault> {
    let row = sql.first(GET, &[&organization.as_str(), &key, &now.as_millis()]).await?;
    let read = |row: Row| {
        entry(&row, organization, key).map_err(|source| {
            let what = format!("an idempotency key of organization {organization}");
            Fault::Row { what, source }
        })
    };
    row.map(read).transpose()
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

/// Remembers a reply, in the place of one that has expired by `now`; false if the key is taken.
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

pub(super) async fn forget(sql: &Sql, now: Timestamp, limit: usize) -> Result<u64, Fault> {
    sql.execute(FORGET, &[&now.as_millis(), &row::limit(limit)]).await
}
