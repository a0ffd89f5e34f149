//! Secrets that sign URLs, and completed signed uploads.

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::access::signature::SigningSecret;
use crate::domain::access::signed_url::UploadPermit;
use crate::domain::error::Result;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Signing, StoredSecret};

use super::row;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::Sql;

const ALL: &str =
    "SELECT kid, secret, created_at, valid_until FROM signing_secrets ORDER BY created_at, kid";

const RETIRE: &str = "UPDATE signing_secrets SET valid_until = $1 WHERE valid_until IS NULL";

const PUT: &str = "INSERT INTO signing_secrets (kid, secret, created_at) VALUES ($1, $2, $3)";

pub(in crate::metadata::postgres) const REVOKE: &str = "DELETE FROM signing_secrets WHERE kid = $1";

const FORGET: &str = "DELETE FROM signing_secrets WHERE valid_until <= $1";

pub(in crate::metadata::postgres) const IS_USED: &str =
    "SELECT 1 FROM used_permits WHERE nonce = $1";

/// Waits for another transaction with the same permit. Changes nothing if that transaction used it.
const USE: &str =
    "INSERT INTO used_permits (nonce, kept_until) VALUES ($1, $2) ON CONFLICT (nonce) DO NOTHING";

pub(in crate::metadata::postgres) const FORGET_USED: &str = "WITH old AS MATERIALIZED (
     SELECT nonce FROM used_permits WHERE kept_until <= $1 ORDER BY kept_until LIMIT $2
     FOR UPDATE SKIP LOCKED)
     DELETE FROM used_permits USING old WHERE used_permits.nonce = old.nonce";

#[async_trait]
impl Signing for PostgresMetadata {
    async fn signing_secrets(&self) -> Result<Vec<StoredSecret>> {
        self.engine
            .read("reading the signing secrets", &(), |sql, ()| {
                Box::pin(sql.collect(ALL, &[], secret))
            })
            .await
    }

    async fn rotate_signing_secret(
        &self,
        new: SigningSecret,
        now: Timestamp,
        old_until: Timestamp,
    ) -> Result<()> {
        let wanted = (new, now, old_until);
        self.engine
            .write("rotating the signing secret", wanted, |sql, (new, now, old_until)| {
                Box::pin(async move {
                    // A rotation by another server at the same moment comes before or after this one.
                    sql.execute(RETIRE, &[&old_until.as_millis()]).await?;
                    match sql.execute(PUT, &[&new.kid(), &new.bytes(), &now.as_millis()]).await {
                        Err(fault) if fault.is_duplicate() => Err(Fault::Overtaken),
                        outcome => outcome.map(drop),
                    }
                })
            })
            .await
    }

    async fn revoke_signing_secret(&self, kid: &str) -> Result<bool> {
        self.engine
            .write("revoking a signing secret", kid.to_owned(), |sql, kid| {
                Box::pin(async move { Ok(sql.execute(REVOKE, &[kid]).await? > 0) })
            })
            .await
    }

    async fn forget_signing_secrets(&self, now: Timestamp) -> Result<u64> {
        self.engine
            .write("forgetting secrets", now, |sql, now| {
                Box::pin(async move { sql.execute(FORGET, &[&now.as_millis()]).await })
            })
            .await
    }

    async fn is_permit_used(&self, nonce: &str) -> Result<bool> {
        self.engine
            .read("looking up a permit", &nonce, |sql, nonce| {
                Box::pin(async move { sql.exists(IS_USED, &[nonce]).await })
            })
            .await
    }

    async fn forget_permits(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.engine
            .write("forgetting permits", (now, limit), |sql, &(now, limit)| {
                Box::pin(async move {
                    sql.execute(FORGET_USED, &[&now.as_millis(), &row::limit(limit)]).await
                })
            })
            .await
    }
}

fn secret(row: &Row) -> Result<StoredSecret, Fault> {
    read(row).map_err(|source| {
        let what = format!("the signing secret {}", row::raw_id(row));
        Fault::Row { what, source }
    })
}

fn read(row: &Row) -> Result<StoredSecret, Source> {
    let (kid, bytes): (String, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
    Ok(StoredSecret {
        secret: SigningSecret::new(kid, bytes)?,
        created_at: row::instant(row, 2)?,
        valid_until: row::instant_or_none(row, 3)?,
    })
}

/// Records that an upload used the permit. Returns false if it was used before, or if the permit is so old
/// that this is unknown.
pub(super) async fn spend(sql: &Sql, permit: &UploadPermit, now: Timestamp) -> Result<bool, Fault> {
    if permit.kept_until() <= now {
        return Ok(false);
    }
    Ok(sql.execute(USE, &[&permit.nonce, &permit.kept_until().as_millis()]).await? > 0)
}
