//! Secrets that sign URLs, and signed uploads that were made.

use rusqlite::{Connection, Row, params};

use crate::domain::clock::Timestamp;
use crate::domain::signature::SigningSecret;
use crate::domain::signed_url::UploadPermit;
use crate::metadata::StoredSecret;

use super::fault::{Fault, Source};
use super::row;

const ALL: &str =
    "SELECT kid, secret, created_at, valid_until FROM signing_secrets ORDER BY created_at, kid";

const RETIRE: &str = "UPDATE signing_secrets SET valid_until = ?1 WHERE valid_until IS NULL";

const PUT: &str = "INSERT INTO signing_secrets (kid, secret, created_at) VALUES (?1, ?2, ?3)";

pub(super) const REVOKE: &str = "DELETE FROM signing_secrets WHERE kid = ?1";

const FORGET: &str = "DELETE FROM signing_secrets WHERE valid_until <= ?1";

pub(super) const IS_USED: &str = "SELECT 1 FROM used_permits WHERE nonce = ?1";

const USE: &str = "INSERT INTO used_permits (nonce, kept_until) VALUES (?1, ?2)";

pub(super) const FORGET_USED: &str = "DELETE FROM used_permits WHERE nonce IN
     (SELECT nonce FROM used_permits WHERE kept_until <= ?1 ORDER BY kept_until LIMIT ?2)";

/// Reads all secrets, the oldest first.
pub(super) fn all(sql: &Connection) -> Result<Vec<StoredSecret>, Fault> {
    row::collect(sql, ALL, [], |row| {
        secret(row).map_err(|source| {
            let kid = row.get(0).unwrap_or_else(|_| String::from("?"));
            Fault::Row { what: format!("the signing secret {kid}"), source }
        })
    })
}

fn secret(row: &Row<'_>) -> Result<StoredSecret, Source> {
    let (kid, bytes): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
    Ok(StoredSecret {
        secret: SigningSecret::new(kid, bytes)?,
        created_at: Timestamp::from_millis(row.get(2)?),
        valid_until: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis),
    })
}

/// Lets the secret sign from now on, and the one before it verify until `old_until`.
pub(super) fn rotate(
    sql: &Connection,
    new: &SigningSecret,
    now: Timestamp,
    old_until: Timestamp,
) -> Result<(), Fault> {
    row::execute(sql, RETIRE, [old_until.as_millis()])?;
    row::execute(sql, PUT, params![new.kid(), new.bytes(), now.as_millis()]).map(drop)
}

pub(super) fn revoke(sql: &Connection, kid: &str) -> Result<bool, Fault> {
    Ok(row::execute(sql, REVOKE, [kid])? > 0)
}

pub(super) fn forget(sql: &Connection, now: Timestamp) -> Result<u64, Fault> {
    Ok(row::execute(sql, FORGET, [now.as_millis()])? as u64)
}

/// Tells if an upload with the permit was made, or comes so late that this is not known any more.
pub(super) fn is_spent(
    sql: &Connection,
    permit: &UploadPermit,
    now: Timestamp,
) -> Result<bool, Fault> {
    Ok(permit.kept_until() <= now || is_used(sql, &permit.nonce)?)
}

pub(super) fn is_used(sql: &Connection, nonce: &str) -> Result<bool, Fault> {
    Ok(row::first(sql, IS_USED, [nonce], |_| Ok(()))?.is_some())
}

/// Notes that an upload with the permit was made.
pub(super) fn spend(sql: &Connection, permit: &UploadPermit) -> Result<(), Fault> {
    let params = params![permit.nonce, permit.kept_until().as_millis()];
    row::execute(sql, USE, params).map(drop)
}

pub(super) fn forget_used(sql: &Connection, now: Timestamp, limit: usize) -> Result<u64, Fault> {
    Ok(row::execute(sql, FORGET_USED, params![now.as_millis(), row::limit(limit)])? as u64)
}
