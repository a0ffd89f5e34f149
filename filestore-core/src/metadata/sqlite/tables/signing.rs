//! Secrets that sign URLs, and completed signed uploads.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use crate::domain::access::signature::SigningSecret;
use crate::domain::access::signed_url::UploadPermit;
use crate::domain::error::Result;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Signing, StoredSecret};

use super::row;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};

const ALL: &str =
    "SELECT kid, secret, created_at, valid_until FROM signing_secrets ORDER BY created_at, kid";

const RETIRE: &str = "UPDATE signing_secrets SET valid_until = ?1 WHERE valid_until IS NULL";

const PUT: &str = "INSERT INTO signing_secrets (kid, secret, created_at) VALUES (?1, ?2, ?3)";

pub(in crate::metadata::sqlite) const REVOKE: &str = "DELETE FROM signing_secrets WHERE kid = ?1";

const FORGET: &str = "DELETE FROM signing_secrets WHERE valid_until <= ?1";

pub(in crate::metadata::sqlite) const IS_USED: &str = "SELECT 1 FROM used_permits WHERE nonce = ?1";

const USE: &str = "INSERT INTO used_permits (nonce, kept_until) VALUES (?1, ?2)";

pub(in crate::metadata::sqlite) const FORGET_USED: &str = "DELETE FROM used_permits WHERE nonce IN
     (SELECT nonce FROM used_permits WHERE kept_until <= ?1 ORDER BY kept_until LIMIT ?2)";

#[async_trait]
impl Signing for SqliteMetadata {
    async fn signing_secrets(&self) -> Result<Vec<StoredSecret>> {
        self.readers.run("reading the signing secrets", all).await
    }

    async fn rotate_signing_secret(
        &self,
        new: SigningSecret,
        now: Timestamp,
        old_until: Timestamp,
    ) -> Result<()> {
        self.writer
            .run("rotating the signing secret", move |tx| {
                row::execute(tx.sql, RETIRE, [old_until.as_millis()])?;
                let params = params![new.kid(), new.bytes(), now.as_millis()];
                row::execute(tx.sql, PUT, params).map(drop)
            })
            .await
    }

    async fn revoke_signing_secret(&self, kid: &str) -> Result<bool> {
        let kid = kid.to_owned();
        self.writer
            .run("revoking a signing secret", move |tx| {
                Ok(row::execute(tx.sql, REVOKE, [&kid])? > 0)
            })
            .await
    }

    async fn forget_signing_secrets(&self, now: Timestamp) -> Result<u64> {
        self.writer
            .run("forgetting secrets", move |tx| {
                Ok(row::execute(tx.sql, FORGET, [now.as_millis()])? as u64)
            })
            .await
    }

    async fn is_permit_used(&self, nonce: &str) -> Result<bool> {
        let nonce = nonce.to_owned();
        self.readers.run("looking up a permit", move |sql| is_used(sql, &nonce)).await
    }

    async fn forget_permits(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.writer
            .run("forgetting permits", move |tx| {
                let params = params![now.as_millis(), row::limit(limit)];
                Ok(row::execute(tx.sql, FORGET_USED, params)? as u64)
            })
            .await
    }
}

/// Reads all secrets, oldest first.
pub(in crate::metadata::sqlite) fn all(sql: &Connection) -> Result<Vec<StoredSecret>, Fault> {
    row::collect(sql, ALL, [], secret)
}

fn secret(row: &Row<'_>) -> Result<StoredSecret, Fault> {
    read(row).map_err(|source| {
        let kid = row.get(0).unwrap_or_else(|_| String::from("?"));
        Fault::Row { what: format!("the signing secret {kid}"), source }
    })
}

fn read(row: &Row<'_>) -> Result<StoredSecret, Source> {
    let (kid, bytes): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
    Ok(StoredSecret {
        secret: SigningSecret::new(kid, bytes)?,
        created_at: Timestamp::from_millis(row.get(2)?),
        valid_until: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis),
    })
}

/// Returns true if an upload used the permit, or if the permit is so old that this is unknown.
pub(super) fn is_spent(
    sql: &Connection,
    permit: &UploadPermit,
    now: Timestamp,
) -> Result<bool, Fault> {
    Ok(permit.kept_until() <= now || is_used(sql, &permit.nonce)?)
}

fn is_used(sql: &Connection, nonce: &str) -> Result<bool, Fault> {
    Ok(row::first(sql, IS_USED, [nonce], |_| Ok(()))?.is_some())
}

/// Records that an upload used the permit.
pub(super) fn spend(sql: &Connection, permit: &UploadPermit) -> Result<(), Fault> {
    let params = params![permit.nonce, permit.kept_until().as_millis()];
    row::execute(sql, USE, params).map(drop)
}
