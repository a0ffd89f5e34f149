//! Removes all data of an organization from the database.

use async_trait::async_trait;
use rusqlite::{Connection, params};

use crate::domain::error::Result;
use crate::domain::id::OrganizationId;
use crate::domain::report::erasure::{Era, LeftInDatabase, Removed};
use crate::domain::time::clock::Timestamp;
use crate::metadata::Erasures;

use super::{resumables, row};
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::Fault;

/// Selects the last era of all organizations.
pub(in crate::metadata::sqlite) const LAST: &str = "SELECT coalesce(max(era), 0) FROM erasures";

pub(super) const ERA_OF: &str = "SELECT era FROM erasures WHERE organization_id = ?1";

const END: &str = "INSERT INTO erasures (organization_id, era) VALUES (?1, ?2)
     ON CONFLICT (organization_id) DO UPDATE SET era = excluded.era";

/// Makes deleted files that no purge has claimed due at once.
pub(super) const HASTEN_FILES: &str = "UPDATE files SET purge_marked_at = 0
     WHERE organization_id = ?1 AND purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0
     AND purge_marked_at > 0";

/// Ends the waits of claimed files after failures.
const HASTEN_CLAIMED: &str = "UPDATE files SET purge_not_before = min(purge_not_before, ?2)
     WHERE organization_id = ?1 AND purge_status = 'SYSTEM_PURGE' AND purge_claimed = 1
     AND purge_owner IS NULL";

/// Selects one organization's range of keys. The character after the slash is zero.
pub(super) const HASTEN_DROPPED: &str = "UPDATE blob_gc SET not_before = min(not_before, ?2)
     WHERE blob_key > ?1 || '/' AND blob_key < ?1 || '0' AND is_absent = 0";

const FORGET_BINDINGS: &str = "DELETE FROM bindings WHERE organization_id = ?1";

const FORGET_REPLIES: &str = "DELETE FROM idempotency WHERE organization_id = ?1";

const FORGET_USAGE: &str =
    "DELETE FROM organization_usage WHERE organization_id = ?1 AND files = 0";

const FORGET_PARTS: &str = "DELETE FROM sub_system_usage WHERE organization_id = ?1 AND files = 0";

/// Counts of what is left. They read every row of the tables, and so find rows that are damaged as well.
const COUNTS: [&str; 8] = [
    "SELECT count(*) FROM files WHERE organization_id = ?1 OR (blob_key > ?1 || '/' AND blob_key < ?1 || '0')",
    "SELECT count(*) FROM blob_gc WHERE blob_key > ?1 || '/' AND blob_key < ?1 || '0'",
    "SELECT count(*) FROM write_intents WHERE blob_key > ?1 || '/' AND blob_key < ?1 || '0'",
    "SELECT count(*) FROM bindings WHERE CAST(organization_id AS TEXT) = ?1",
    "SELECT count(*) FROM idempotency WHERE organization_id = ?1",
    "SELECT count(*) FROM resumable_uploads WHERE organization_id = ?1",
    "SELECT count(*) FROM events WHERE organization_id = ?1 AND kind <> 'organization.erased'
     AND NOT EXISTS (SELECT 1 FROM files WHERE files.file_id = events.file_id)",
    "SELECT (SELECT count(*) FROM webhooks WHERE organization_id = ?1)
     + (SELECT count(*) FROM webhook_failures WHERE organization_id = ?1 AND kind <> 'organization.erased'
     AND NOT EXISTS (SELECT 1 FROM files WHERE files.file_id = webhook_failures.file_id))",
];

#[async_trait]
impl Erasures for SqliteMetadata {
    fn era(&self) -> Era {
        self.caches.era()
    }

    async fn end_era(&self, organization: &OrganizationId, now: Timestamp) -> Result<u64> {
        let organization = organization.clone();
        self.writer
            .run("ending an era", move |tx| {
                let (sql, name) = (tx.sql, organization.as_str());
                let era = last_era(sql)?.next(now);
                tx.begin_era(era);
                row::execute(sql, END, params![name, era.number()])?;

                row::execute(sql, HASTEN_FILES, [name])?;
                let params = params![name, now.as_millis()];
                row::execute(sql, HASTEN_CLAIMED, params)?;
                row::execute(sql, HASTEN_DROPPED, params)?;
                row::execute(sql, resumables::ERASE, [name])?;
                Ok(row::execute(sql, FORGET_REPLIES, [name])? as u64)
            })
            .await
    }

    async fn is_erased_since(&self, organization: &OrganizationId, era: Era) -> Result<bool> {
        let organization = organization.clone();
        self.readers
            .run("looking for an erasure", move |sql| is_since(sql, &organization, era))
            .await
    }

    async fn forget_organization(&self, organization: &OrganizationId) -> Result<Removed> {
        let organization = organization.clone();
        self.writer
            .run("forgetting an organization", move |tx| {
                let (sql, name) = (tx.sql, organization.as_str());
                tx.touch_bindings();
                // An organization that is no number has no bindings.
                let bindings = match name.parse::<i64>() {
                    Ok(number) => row::execute(sql, FORGET_BINDINGS, [number])? as u64,
                    Err(_) => 0,
                };
                let replies = row::execute(sql, FORGET_REPLIES, [name])? as u64;
                row::execute(sql, resumables::FORGET_OF, [name])?;
                row::execute(sql, FORGET_USAGE, [name])?;
                row::execute(sql, FORGET_PARTS, [name])?;
                Ok(Removed { bindings, replies, ..Removed::default() })
            })
            .await
    }

    async fn left_of(&self, organization: &OrganizationId) -> Result<LeftInDatabase> {
        let organization = organization.clone();
        self.readers
            .run("looking for an organization", move |sql| {
                let snapshot = sql.unchecked_transaction()?;
                let mut counts = [0; COUNTS.len()];
                for (count, query) in counts.iter_mut().zip(COUNTS) {
                    let name = [organization.as_str()];
                    let counted = row::first(&snapshot, query, name, |row| row::count(row, 0))?;
                    *count = counted.unwrap_or_default();
                }
                let [files, dropped, notes, bindings, replies, uploads, events, webhooks] = counts;
                Ok(LeftInDatabase {
                    files,
                    dropped,
                    notes,
                    bindings,
                    replies,
                    uploads,
                    events,
                    webhooks,
                })
            })
            .await
    }
}

/// Returns the last era of all organizations.
pub(in crate::metadata::sqlite) fn last_era(sql: &Connection) -> Result<Era, Fault> {
    let last = row::first(sql, LAST, [], |row| Ok(row.get(0)?))?;
    Ok(Era::from_number(last.unwrap_or_default()))
}

/// Returns true if the organization was erased after `era`.
pub(in crate::metadata::sqlite) fn is_since(
    sql: &Connection,
    organization: &OrganizationId,
    era: Era,
) -> Result<bool, Fault> {
    let ended = row::first(sql, ERA_OF, [organization.as_str()], |row| Ok(row.get(0)?))?;
    Ok(ended.is_some_and(|ended| Era::from_number(ended) > era))
}
