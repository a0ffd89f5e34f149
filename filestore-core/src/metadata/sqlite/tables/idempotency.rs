//! Remembered replies.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use crate::domain::error::Result;
use crate::domain::id::OrganizationId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Idempotency, IdempotencyEntry, stored};

use super::row;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};

pub(in crate::metadata::sqlite) const GET: &str =
    "SELECT fingerprint, file_ids, reply, expires_at FROM idempotency
     WHERE organization_id = ?1 AND key = ?2 AND expires_at > ?3";

pub(in crate::metadata::sqlite) const TAKEN: &str =
    "SELECT 1 FROM idempotency WHERE organization_id = ?1 AND key = ?2 AND expires_at > ?3";

const PUT: &str =
    "INSERT INTO idempotency (organization_id, key, fingerprint, file_ids, reply, expires_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)
     ON CONFLICT (organization_id, key) DO UPDATE SET fingerprint = excluded.fingerprint,
     file_ids = excluded.file_ids, reply = excluded.reply, expires_at = excluded.expires_at";

pub(in crate::metadata::sqlite) const FORGET: &str = "DELETE FROM idempotency WHERE rowid IN
     (SELECT rowid FROM idempotency WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)";

#[async_trait]
impl Idempotency for SqliteMetadata {
    async fn idempotency(
        &self,
        organization: &OrganizationId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyEntry>> {
        let (organization, key) = (organization.clone(), key.to_owned());
        self.readers
            .run("looking up a reply", move |sql| {
                let params = params![organization.as_str(), key, now.as_millis()];
                row::first(sql, GET, params, |row| {
                    entry(row, &organization, &key).map_err(|source| {
                        let what = format!("an idempotency key of organization {organization}");
                        Fault::Row { what, source }
                    })
                })
            })
            .await
    }

    async fn forget_idempotency(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.writer
            .run("forgetting replies", move |tx| {
                let params = params![now.as_millis(), row::limit(limit)];
                Ok(row::execute(tx.sql, FORGET, params)? as u64)
            })
            .await
    }
}

fn entry(
    row: &Row<'_>,
    organization: &OrganizationId,
    key: &str,
) -> Result<IdempotencyEntry, Source> {
    let file_ids: String = row.get(1)?;
    Ok(IdempotencyEntry {
        organization: organization.clone(),
        key: key.to_owned(),
        fingerprint: row.get(0)?,
        file_ids: stored::words(&file_ids)?,
        reply: row.get(2)?,
        expires_at: Timestamp::from_millis(row.get(3)?),
    })
}

/// Returns true if the key is remembered at `now`.
pub(super) fn is_taken(
    sql: &Connection,
    entry: &IdempotencyEntry,
    now: Timestamp,
) -> Result<bool, Fault> {
    let params = params![entry.organization.as_str(), entry.key, now.as_millis()];
    Ok(row::first(sql, TAKEN, params, |_| Ok(()))?.is_some())
}

/// Stores a reply. Replaces an expired reply.
pub(super) fn put(sql: &Connection, entry: &IdempotencyEntry) -> Result<(), Fault> {
    let params = params![
        entry.organization.as_str(),
        entry.key,
        entry.fingerprint.as_slice(),
        stored::file_ids_text(&entry.file_ids),
        entry.reply,
        entry.expires_at.as_millis(),
    ];
    row::execute(sql, PUT, params).map(drop)
}
