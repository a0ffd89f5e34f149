//! The terms of claims: renewal, release, end at startup, and waits after failures.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Claims, Lease, Leases};

use super::destinations::{Destination, Destinations, pairs};
use super::{holds, intents, syncs, webhooks};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::members::servers;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::{OwnedLease, Param, Sql};
use crate::metadata::postgres::tables::row;

pub(in crate::metadata::postgres) const RENEW_PURGES: &str =
    "UPDATE files SET purge_not_before = $2 WHERE purge_owner = $1";

pub(in crate::metadata::postgres) const RELEASE_PURGES: &str =
    "UPDATE files SET purge_owner = NULL, purge_not_before = 0 WHERE purge_owner = $1";

pub(in crate::metadata::postgres) const RENEW_BLOBS: &str =
    "UPDATE blob_gc SET not_before = $2 WHERE owner = $1";

pub(in crate::metadata::postgres) const RELEASE_BLOBS: &str =
    "UPDATE blob_gc SET owner = NULL, not_before = 0 WHERE owner = $1";

pub(in crate::metadata::postgres) const RENEW_SYNCS: &str =
    "UPDATE files SET sync_not_before = $2 WHERE sync_owner = $1 AND sync_status = 'SYNCING'";

pub(in crate::metadata::postgres) const RELEASE_SYNCS: &str =
    "UPDATE files SET sync_status = 'PENDING', sync_owner = NULL, sync_not_before = 0
     WHERE sync_owner = $1 AND sync_status = 'SYNCING'";

pub(in crate::metadata::postgres) const CLEAR_PURGES: &str =
    "UPDATE files SET purge_owner = NULL, purge_not_before = 0 WHERE purge_owner IS NOT NULL";

pub(in crate::metadata::postgres) const CLEAR_BLOBS: &str =
    "UPDATE blob_gc SET owner = NULL, not_before = 0 WHERE owner IS NOT NULL";

/// Each of these statements reads every waiting row. The statements run once, at startup.
const CAP_PURGES: &str = "UPDATE files SET purge_not_before = $1
     WHERE purge_claimed AND purge_not_before > $1 AND purge_owner IS NULL";

const CAP_SYNCS: &str = "UPDATE files SET sync_not_before = $1
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND sync_not_before > $1";

const CAP_BLOBS: &str = "UPDATE blob_gc SET not_before = $1, kept_until = least(kept_until, $1)
     WHERE not_before > $1";

pub(in crate::metadata::postgres) const END_WAITS_OF_PURGES: &str = "WITH waiting AS MATERIALIZED (
     SELECT file_id FROM files WHERE purge_claimed AND storage_provider = $1 AND purge_not_before > $2
     AND purge_owner IS NULL LIMIT $3 FOR UPDATE SKIP LOCKED)
     UPDATE files SET purge_not_before = $2 FROM waiting WHERE files.file_id = waiting.file_id";

pub(in crate::metadata::postgres) const END_WAITS_OF_BLOBS: &str = "WITH waiting AS MATERIALIZED (
     SELECT id FROM blob_gc WHERE attempts > 0 AND storage_provider = $1 AND not_before > $2
     AND owner IS NULL LIMIT $3 FOR UPDATE SKIP LOCKED)
     UPDATE blob_gc SET not_before = $2 FROM waiting WHERE blob_gc.id = waiting.id";

pub(in crate::metadata::postgres) const END_WAITS_OF_SYNCS: &str = "WITH waiting AS MATERIALIZED (
     SELECT file_id FROM files WHERE sync_status = 'PENDING' AND purge_status IS NULL
     AND organization_id = $1 AND storage_provider = $2 AND sync_not_before > $3 LIMIT $4
     FOR UPDATE SKIP LOCKED)
     UPDATE files SET sync_not_before = $3 FROM waiting WHERE files.file_id = waiting.file_id";

#[async_trait]
impl Leases for PostgresMetadata {
    async fn renew_claims(&self, claims: Claims, lease: Lease<'_>) -> Result<()> {
        self.engine
            .write("renewing leases", (claims, OwnedLease::of(lease)), |sql, (claims, lease)| {
                Box::pin(async move {
                    let statement = match claims {
                        Claims::Purges => RENEW_PURGES,
                        Claims::Dropped => RENEW_BLOBS,
                        Claims::Syncs => RENEW_SYNCS,
                    };
                    sql.execute(statement, &[&lease.owner, &lease.until.as_millis()]).await?;
                    if *claims == Claims::Syncs {
                        intents::renew(sql, &lease.owner, lease.now).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    async fn release_claims(&self, claims: Claims, owner: &str) -> Result<()> {
        self.engine
            .write("releasing claims", (claims, owner.to_owned()), |sql, (claims, owner)| {
                Box::pin(async move {
                    let statement = match claims {
                        Claims::Purges => RELEASE_PURGES,
                        Claims::Dropped => RELEASE_BLOBS,
                        Claims::Syncs => RELEASE_SYNCS,
                    };
                    sql.execute(statement, &[owner]).await.map(drop)
                })
            })
            .await
    }

    async fn end_leases(
        &self,
        max_retry_at: Timestamp,
        max_blob_wait_until: Timestamp,
    ) -> Result<()> {
        let caps = (max_retry_at.as_millis(), max_blob_wait_until.as_millis());
        self.engine
            .write("ending leases", caps, |sql, (max_retry_at, max_blob_wait_until)| {
                Box::pin(async move {
                    sql.be_patient().await?;
                    sql.execute(CLEAR_PURGES, &[]).await?;
                    sql.execute(CLEAR_BLOBS, &[]).await?;
                    holds::clear(sql).await?;
                    webhooks::end_leases(sql).await?;
                    servers::clear_entries(sql).await?;
                    sql.execute(syncs::RELEASE_OVERDUE, &[&i64::MAX]).await?;

                    sql.execute(CAP_PURGES, &[max_retry_at]).await?;
                    sql.execute(CAP_SYNCS, &[max_retry_at]).await?;
                    sql.execute(CAP_BLOBS, &[max_blob_wait_until]).await.map(drop)
                })
            })
            .await
    }

    async fn end_waits(
        &self,
        provider: &ProviderCode,
        now: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        self.engine
            .write("ending waits", (provider.clone(), now, limit), |sql, (provider, now, limit)| {
                Box::pin(async move {
                    let mut ended = 0;
                    for statement in [END_WAITS_OF_PURGES, END_WAITS_OF_BLOBS] {
                        let params: [Param<'_>; 3] =
                            [&provider.as_str(), &now.as_millis(), &row::limit(*limit)];
                        ended += sql.execute(statement, &params).await?;
                    }
                    Ok(ended + end_waits_of_syncs(sql, provider, *now, *limit).await?)
                })
            })
            .await
    }
}

/// Ends the waits of at most `limit` files with the target `target`. Returns their number.
async fn end_waits_of_syncs(
    sql: &Sql,
    target: &ProviderCode,
    now: Timestamp,
    limit: usize,
) -> Result<u64, Fault> {
    let pairs = pairs(sql).await?;
    let destinations = Destinations::read(sql, pairs.iter().map(|(one, _)| one)).await?;

    let (mut ended, limit) = (0, limit as u64);
    for (organization, holder) in pairs {
        if ended == limit {
            break;
        }
        if destinations.of(&organization, &holder) == Destination::Provider(target) {
            let left = i64::try_from(limit - ended).unwrap_or(i64::MAX);
            let params: [Param<'_>; 4] =
                [&organization.as_str(), &holder.as_str(), &now.as_millis(), &left];
            ended += sql.execute(END_WAITS_OF_SYNCS, &params).await?;
        }
    }
    Ok(ended)
}
