//! The terms of claims: renewal, release, end at startup, and waits after failures.
//!
//! Claims of dropped blobs are not stored, because one process uses the database alone.

use async_trait::async_trait;
use rusqlite::{Connection, params};

use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Claims, Lease, Leases};

use super::destinations::{destination, next_pair};
use super::{holds, intents, syncs, webhooks};
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::Fault;
use crate::metadata::sqlite::session::writer::WriteTx;
use crate::metadata::sqlite::tables::row;

pub(in crate::metadata::sqlite) const RENEW_PURGES: &str = "UPDATE files SET purge_not_before = ?2
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_purge_leased WHERE purge_owner = ?1)";

pub(in crate::metadata::sqlite) const RELEASE_PURGES: &str =
    "UPDATE files SET purge_owner = NULL, purge_not_before = 0
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_purge_leased WHERE purge_owner = ?1)";

pub(in crate::metadata::sqlite) const RENEW_SYNCS: &str = "UPDATE files SET sync_not_before = ?2
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_syncing
     WHERE sync_status = 'SYNCING' AND sync_not_before >= 0 AND sync_owner = ?1)";

pub(in crate::metadata::sqlite) const OWNED_SYNCS: &str =
    "SELECT file_id FROM files INDEXED BY files_syncing
     WHERE sync_status = 'SYNCING' AND sync_not_before >= 0 AND sync_owner = ?1";

pub(in crate::metadata::sqlite) const CLEAR_PURGES: &str =
    "UPDATE files SET purge_owner = NULL, purge_not_before = 0
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_purge_leased WHERE purge_owner > '')";

/// Reads every claimed row. This statement and the others run once, at startup.
const CAP_PURGES: &str = "UPDATE files SET purge_not_before = ?1
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND purge_not_before > ?1 AND purge_owner IS NULL)";

/// Reads only waiting rows, because a store without providers can have millions of pending rows. The query
/// looks up the organizations and their providers one by one, and the waiting rows of each pair.
pub(in crate::metadata::sqlite) const CAP_SYNCS: &str = "WITH RECURSIVE
     organizations (organization) AS (
         SELECT min(organization_id) FROM files INDEXED BY files_pending
         WHERE sync_status = 'PENDING' AND purge_status IS NULL
         UNION ALL
         SELECT (SELECT min(organization_id) FROM files INDEXED BY files_pending
             WHERE sync_status = 'PENDING' AND purge_status IS NULL
             AND organization_id > organization)
         FROM organizations WHERE organization IS NOT NULL),
     pairs (organization, provider) AS (
         SELECT organization, (SELECT min(storage_provider) FROM files INDEXED BY files_pending
             WHERE sync_status = 'PENDING' AND purge_status IS NULL
             AND organization_id = organization)
         FROM organizations WHERE organization IS NOT NULL
         UNION ALL
         SELECT organization, (SELECT min(storage_provider) FROM files INDEXED BY files_pending
             WHERE sync_status = 'PENDING' AND purge_status IS NULL
             AND organization_id = organization AND storage_provider > provider)
         FROM pairs WHERE provider IS NOT NULL)
     UPDATE files SET sync_not_before = ?1 WHERE rowid IN (
         SELECT files.rowid FROM pairs CROSS JOIN files INDEXED BY files_pending
         WHERE provider IS NOT NULL AND sync_status = 'PENDING' AND purge_status IS NULL
         AND organization_id = organization AND storage_provider = provider
         AND sync_not_before > ?1)";

const CAP_BLOBS: &str = "UPDATE blob_gc SET not_before = ?1, kept_until = min(kept_until, ?1)
     WHERE not_before > ?1";

pub(in crate::metadata::sqlite) const END_WAITS_OF_PURGES: &str = "UPDATE files SET purge_not_before = ?2
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND storage_provider = ?1 AND purge_not_before > ?2 AND purge_owner IS NULL LIMIT ?3)";

pub(in crate::metadata::sqlite) const END_WAITS_OF_BLOBS: &str =
    "UPDATE blob_gc SET not_before = ?2
     WHERE id IN (SELECT id FROM blob_gc INDEXED BY blob_gc_failed
     WHERE attempts > 0 AND storage_provider = ?1 AND not_before > ?2 LIMIT ?3)";

pub(in crate::metadata::sqlite) const END_WAITS_OF_SYNCS: &str = "UPDATE files SET sync_not_before = ?3
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_pending
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND organization_id = ?1 AND storage_provider = ?2
     AND sync_not_before > ?3 LIMIT ?4)";

#[async_trait]
impl Leases for SqliteMetadata {
    async fn renew_claims(&self, claims: Claims, lease: Lease<'_>) -> Result<()> {
        let Lease { owner, now, until } = lease;
        let (owner, until) = (owner.to_owned(), until.as_millis());
        let statement = match claims {
            Claims::Purges => RENEW_PURGES,
            Claims::Syncs => RENEW_SYNCS,
            Claims::Dropped => return Ok(()),
        };
        self.writer
            .run("renewing leases", move |tx| {
                row::execute(tx.sql, statement, params![owner, until])?;
                if claims == Claims::Syncs {
                    intents::renew(tx.sql, &owner, now)?;
                }
                Ok(())
            })
            .await
    }

    async fn release_claims(&self, claims: Claims, owner: &str) -> Result<()> {
        let owner = owner.to_owned();
        match claims {
            Claims::Purges => {
                let work = move |tx: &mut WriteTx<'_>| {
                    row::execute(tx.sql, RELEASE_PURGES, [&owner]).map(drop)
                };
                self.writer.run("releasing purges", work).await
            }
            Claims::Syncs => {
                let work = move |tx: &mut WriteTx<'_>| {
                    let owned = syncs::file_ids(tx.sql, OWNED_SYNCS, [&owner])?;
                    owned.into_iter().try_for_each(|file| syncs::release_one(tx, file))
                };
                self.writer.run("giving syncs back", work).await
            }
            Claims::Dropped => Ok(()),
        }
    }

    async fn end_leases(
        &self,
        max_retry_at: Timestamp,
        max_blob_wait_until: Timestamp,
    ) -> Result<()> {
        self.writer
            .run("ending leases", move |tx| {
                row::execute(tx.sql, CLEAR_PURGES, [])?;
                holds::clear(tx.sql)?;
                webhooks::end_leases(tx.sql)?;
                let syncing = syncs::file_ids(tx.sql, syncs::OVERDUE, [i64::MAX])?;
                syncing.into_iter().try_for_each(|file| syncs::release_one(tx, file))?;
                cap_waits(tx.sql, max_retry_at, max_blob_wait_until)
            })
            .await
    }

    async fn end_waits(
        &self,
        provider: &ProviderCode,
        now: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        let provider = provider.clone();
        self.writer
            .run("ending waits", move |tx| {
                let mut ended = 0;
                for statement in [END_WAITS_OF_PURGES, END_WAITS_OF_BLOBS] {
                    let params = params![provider.as_str(), now.as_millis(), row::limit(limit)];
                    ended += row::execute(tx.sql, statement, params)?;
                }
                ended += end_waits_of_syncs(tx.sql, &provider, now, limit)?;
                Ok(ended as u64)
            })
            .await
    }
}

/// Limits the waits of failed purges and syncs to `max_retry_at`, and of dropped blobs to
/// `max_blob_wait_until`.
pub(in crate::metadata::sqlite) fn cap_waits(
    sql: &Connection,
    max_retry_at: Timestamp,
    max_blob_wait_until: Timestamp,
) -> Result<(), Fault> {
    row::execute(sql, CAP_PURGES, [max_retry_at.as_millis()])?;
    row::execute(sql, CAP_SYNCS, [max_retry_at.as_millis()])?;
    row::execute(sql, CAP_BLOBS, [max_blob_wait_until.as_millis()])?;
    Ok(())
}

/// Ends the waits of at most `limit` files with the target `target`. Returns their number.
fn end_waits_of_syncs(
    sql: &Connection,
    target: &ProviderCode,
    now: Timestamp,
    limit: usize,
) -> Result<usize, Fault> {
    let mut ended = 0;
    let mut pair = next_pair(sql, "", "")?;
    while let Some((organization, holder)) = pair
        && ended < limit
    {
        let to = destination(sql, &organization, &holder)?.provider();
        if to.is_some_and(|to| to == *target) {
            let left = row::limit(limit - ended);
            let params = params![organization.as_str(), holder.as_str(), now.as_millis(), left];
            ended += row::execute(sql, END_WAITS_OF_SYNCS, params)?;
        }
        pair = next_pair(sql, organization.as_str(), holder.as_str())?;
    }
    Ok(ended)
}
