//! Secrets that sign URLs, and signed uploads that were made.

use tokio_postgres::Row;

use crate::domain::clock::Timestamp;
use crate::domain::signature::SigningSecret;
use crate::domain::signed_url::UploadPermit;
use crate::metadata::StoredSecret;

use super::fault::{Fault, Source};
use super::row;
use super::sql::Sql;

const ALL: &str =
    "SELECT kid, secret, created_at, valid_until FROM signing_secrets ORDER BY created_at, kid";

const RETIRE: &str = "UPDATE signing_secrets SET valid_until = $1 WHERE valid_until IS NULL";

const PUT: &str = "INSERT INTO signing_secrets (kid, secret, created_at) VALUES ($1, $2, $3)";

pub(super) const REVOKE: &str = "DELETE FROM signing_secrets WHERE kid = $1";

const FORGET: &str = "DELETE FROM signing_secrets WHERE valid_until <= $1";

pub(super) const IS_USED: &str = "SELECT 1 FROM used_permits WHERE nonce = $1";

/// Waits for another transaction with the same permit, and changes nothing if that spent it.
const USE: &str =
    "INSERT INTO used_permits (nonce, kept_until) VALUES ($1, $2) ON CONFLICT (nonce) DO NOTHING";

pub(super) const FORGET_USED: &str = "WITH old AS MATERIALIZED (
     SELECT nonce FROM used_permits WHERE kept_until <= $1 ORDER BY kept_until LIMIT $2
     FOR UPDATE SKIP LOCKED)
     DELETE FROM used_permits USING old WHERE used_permits.nonce = old.nonce";

/// Reads all secrets, the oldest first.
pub(super) async fn all(sql: &Sql) -> Result<Vec<StoredSecret>, Fault> {
    sql.collect(ALL, &[], |row| {
        secret(row).map_err(|source| {
            let what = format!("the signing secret {}", row::raw_id(row));
            Fault::Row { what, source }
        })
    })
    .await
}

fn secret(row: &Row) -> Result<StoredSecret, Source> {
    let (kid, bytes): (String, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
    Ok(StoredSecret {
        secret: SigningSecret::new(kid, bytes)?,
        created_at: row::instant(row, 2)?,
        valid_until: row::instant_or_none(row, 3)?,
    })
}

/// Lets the secret sign from now on, and the one before it verify until `old_until`. A rotation by another
/// server at the same moment comes before or after this one.
pub(super) async fn rotate(
    sql: &Sql,
    new: &SigningSecret,
    now: Timestamp,
    old_until: Timestamp,
) -> Result<(), Fault> {
    sql.execute(RETIRE, &[&old_until.as_millis()]).await?;
    match sql.execute(PUT, &[&new.kid(), &new.bytes(), &now.as_millis()]).await {
        Err(fault) if fault.is_duplicate() => Err(Fault::Overtaken),
        outcome => outcome.map(drop),
    }
}

pub(super) async fn revoke(sql: &Sql, kid: &str) -> Result<bool, Fault> {
    Ok(sql.execute(REVOKE, &[&kid]).await? > 0)
}

pub(super) async fn forget(sql: &Sql, now: Timestamp) -> Result<u64, Fault> {
    sql.execute(FORGET, &[&now.as_millis()]).await
}

pub(super) async fn is_used(sql: &Sql, nonce: &str) -> Result<bool, Fault> {
    sql.exists(IS_USED, &[&nonce]).await
}

/// Notes that an upload with the permit was made; false if one was made before, or the permit comes so late
/// that this is not known any more.
pub(super) async fn spend(sql: &Sql, permit: &UploadPermit, now: Timestamp) -> Result<bool, Fault> {
    if permit.kept_until() <= now {
        return Ok(false);
    }
    Ok(sql.execute(USE, &[&permit.nonce, &permit.kept_until().as_millis()]).await? > 0)
}

pub(super) async fn forget_used(sql: &Sql, now: Timestamp, limit: usize) -> Result<u64, Fault> {
    sql.execute(FORGET_USED, &[&now.as_millis(), &row::limit(limit)]).await
}
