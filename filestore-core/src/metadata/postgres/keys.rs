//! Keys of the API. There are few, and all of them are read at once.

use std::sync::Arc;

use tokio_postgres::Row;

use crate::domain::clock::Timestamp;
use crate::domain::id::KeyId;
use crate::domain::key::{ApiKey, KeyDigest};
use crate::metadata::stored::{organizations, organizations_text, scopes, scopes_text};
use crate::metadata::{KeyChange, KeyOutcome, StoredKey};

use super::fault::{Fault, Source};
use super::row;
use super::sql::{Lock, Sql};

macro_rules! columns {
    () => {
        "key_id, name, organizations, scopes, digest, former_digest, former_until, created_at, expires_at, \
         rotated_at, revoked_at, last_used_at"
    };
}

const LIST: &str = concat!("SELECT ", columns!(), " FROM api_keys ORDER BY key_id");

pub(super) const ONE: &str =
    concat!("SELECT ", columns!(), " FROM api_keys WHERE key_id = $1 FOR UPDATE");

const ANY: &str = "SELECT 1 FROM api_keys LIMIT 1";

const COUNT: &str = "SELECT count(*) FROM api_keys";

const INSERT: &str =
    "INSERT INTO api_keys (key_id, name, organizations, scopes, digest, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)";

const OLDEST_DEAD: &str =
    "SELECT key_id FROM api_keys WHERE revoked_at IS NOT NULL OR expires_at <= $1
     ORDER BY key_id LIMIT 1";

pub(super) const FORGET: &str = "DELETE FROM api_keys WHERE key_id = $1";

pub(super) const REVOKE: &str = "UPDATE api_keys SET revoked_at = $2 WHERE key_id = $1";

pub(super) const ROTATE: &str =
    "UPDATE api_keys SET former_digest = digest, former_until = $4, digest = $2, rotated_at = $3
     WHERE key_id = $1";

pub(super) const NARROW: &str = "UPDATE api_keys SET organizations = $2 WHERE key_id = $1";

/// In one order, so that two servers do not wait for each other in a ring.
pub(super) const NOTE_USES: &str = "WITH used AS MATERIALIZED (
     SELECT key_id, at FROM api_keys JOIN (
      SELECT key_id, max(at) AS at FROM unnest($1::text[], $2::bigint[]) AS noted (key_id, at) GROUP BY key_id
     ) AS latest USING (key_id) WHERE last_used_at IS NULL OR last_used_at < at
     ORDER BY key_id FOR UPDATE OF api_keys)
     UPDATE api_keys SET last_used_at = used.at FROM used WHERE api_keys.key_id = used.key_id";

/// Lists all keys, oldest first.
pub(super) async fn list(sql: &Sql) -> Result<Vec<StoredKey>, Fault> {
    sql.collect(LIST, &[], key).await
}

/// Tells if there is any row.
pub(super) async fn any(sql: &Sql) -> Result<bool, Fault> {
    sql.exists(ANY, &[]).await
}

/// Inserts a key; the oldest dead one makes room if there are `most`.
pub(super) async fn insert(sql: &Sql, new: &StoredKey, most: usize) -> Result<KeyOutcome, Fault> {
    sql.lock(Lock::Keys).await?;
    let mut forgotten = Vec::new();
    let count = sql.first(COUNT, &[]).await?.map_or(Ok(0), |row| row::count(&row, 0))?;
    if count >= most as u64 {
        let dead = sql.first(OLDEST_DEAD, &[&new.key.created_at.as_millis()]).await?;
        let Some(dead) = dead else { return Ok(KeyOutcome::Full) };
        let dead: String = dead.try_get(0)?;
        sql.execute(FORGET, &[&dead]).await?;
        forgotten.extend(dead.parse::<KeyId>().ok());
    }

    let key = &new.key;
    sql.execute(
        INSERT,
        &[
            &key.id.to_string(),
            &key.name,
            &organizations_text(&key.organizations),
            &scopes_text(key.scopes),
            &new.digest.as_bytes().as_slice(),
            &key.created_at.as_millis(),
            &key.expires_at.map(Timestamp::as_millis),
        ],
    )
    .await?;
    Ok(KeyOutcome::Done(Box::new(new.clone()), forgotten))
}

/// Changes a key that is not revoked.
pub(super) async fn change(sql: &Sql, id: KeyId, change: &KeyChange) -> Result<KeyOutcome, Fault> {
    let name = id.to_string();
    let row = sql.first(ONE, &[&name]).await?;
    let Some(mut stored) = row.map(|row| key(&row)).transpose()? else {
        return Ok(KeyOutcome::Unknown);
    };

    match change {
        KeyChange::Revoke { at } => {
            if stored.key.revoked_at.is_none() {
                sql.execute(REVOKE, &[&name, &at.as_millis()]).await?;
                stored.key.revoked_at = Some(*at);
            }
        }
        KeyChange::Narrow { organizations } => {
            sql.execute(NARROW, &[&name, &organizations_text(organizations)]).await?;
            stored.key.organizations = organizations.clone().into();
        }
        KeyChange::Rotate { .. } if stored.key.revoked_at.is_some() => {
            return Ok(KeyOutcome::Revoked);
        }
        KeyChange::Rotate { digest, at, former_until } => {
            let (bytes, until) = (digest.as_bytes().as_slice(), former_until.as_millis());
            sql.execute(ROTATE, &[&name, &bytes, &at.as_millis(), &until]).await?;
            stored.former = Some((stored.digest, *former_until));
            stored.digest = *digest;
            stored.key.rotated_at = Some(*at);
        }
    }
    Ok(KeyOutcome::Done(Box::new(stored), Vec::new()))
}

/// Notes the last uses.
pub(super) async fn note_uses(sql: &Sql, uses: &[(KeyId, Timestamp)]) -> Result<(), Fault> {
    let ids: Vec<String> = uses.iter().map(|(id, _)| id.to_string()).collect();
    let instants: Vec<i64> = uses.iter().map(|(_, at)| at.as_millis()).collect();
    sql.execute(NOTE_USES, &[&ids, &instants]).await.map(drop)
}

fn key(row: &Row) -> Result<StoredKey, Fault> {
    read(row).map_err(|source| Fault::Row { what: format!("key {}", row::raw_id(row)), source })
}

fn read(row: &Row) -> Result<StoredKey, Source> {
    let former = row.try_get::<_, Option<&[u8]>>(5)?.map(digest).transpose()?;
    Ok(StoredKey {
        key: ApiKey {
            id: row::parse(row, 0)?,
            name: row.try_get(1)?,
            organizations: Arc::new(organizations(row.try_get(2)?)?),
            scopes: scopes(row.try_get(3)?)?,
            created_at: row::instant(row, 7)?,
            expires_at: row::instant_or_none(row, 8)?,
            rotated_at: row::instant_or_none(row, 9)?,
            revoked_at: row::instant_or_none(row, 10)?,
            last_used_at: row::instant_or_none(row, 11)?,
        },
        digest: digest(row.try_get(4)?)?,
        former: former.zip(row::instant_or_none(row, 6)?),
    })
}

fn digest(bytes: &[u8]) -> Result<KeyDigest, Source> {
    Ok(KeyDigest::from_bytes(bytes.try_into()?))
}
