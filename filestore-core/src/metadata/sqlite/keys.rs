//! Keys of the API. There are few, and all of them are read at once.

use std::sync::Arc;

use rusqlite::{Connection, Row, params};

use crate::domain::clock::Timestamp;
use crate::domain::id::KeyId;
use crate::domain::key::{ApiKey, KeyDigest};
use crate::metadata::stored::{organizations, organizations_text, scopes, scopes_text};
use crate::metadata::{KeyChange, KeyOutcome, StoredKey};

use super::fault::{Fault, Source};
use super::row;

macro_rules! columns {
    () => {
        "key_id, name, organizations, scopes, digest, former_digest, former_until, created_at, expires_at, \
         rotated_at, revoked_at, last_used_at"
    };
}

const LIST: &str = concat!("SELECT ", columns!(), " FROM api_keys ORDER BY key_id");

pub(super) const ONE: &str = concat!("SELECT ", columns!(), " FROM api_keys WHERE key_id = ?1");

const ANY: &str = "SELECT EXISTS (SELECT 1 FROM api_keys)";

const COUNT: &str = "SELECT count(*) FROM api_keys";

const INSERT: &str = concat!(
    "INSERT INTO api_keys (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, NULL, NULL, ?6, ?7, NULL, NULL, NULL)"
);

const OLDEST_DEAD: &str =
    "SELECT key_id FROM api_keys WHERE revoked_at IS NOT NULL OR expires_at <= ?1
     ORDER BY key_id LIMIT 1";

pub(super) const FORGET: &str = "DELETE FROM api_keys WHERE key_id = ?1";

pub(super) const REVOKE: &str = "UPDATE api_keys SET revoked_at = ?2 WHERE key_id = ?1";

pub(super) const ROTATE: &str =
    "UPDATE api_keys SET former_digest = digest, former_until = ?4, digest = ?2, rotated_at = ?3
     WHERE key_id = ?1";

pub(super) const NARROW: &str = "UPDATE api_keys SET organizations = ?2 WHERE key_id = ?1";

pub(super) const NOTE_USE: &str = "UPDATE api_keys SET last_used_at = ?2
     WHERE key_id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)";

/// Lists all keys, oldest first.
pub(super) fn list(sql: &Connection) -> Result<Vec<StoredKey>, Fault> {
    row::collect(sql, LIST, [], key)
}

/// Tells if there is any row.
pub(super) fn any(sql: &Connection) -> Result<bool, Fault> {
    Ok(row::first(sql, ANY, [], |row| Ok(row.get(0)?))?.unwrap_or(false))
}

/// Inserts a key; the oldest dead one makes room if there are `most`.
pub(super) fn insert(sql: &Connection, new: &StoredKey, most: usize) -> Result<KeyOutcome, Fault> {
    let mut forgotten = Vec::new();
    let count = row::first(sql, COUNT, [], |row| row::count(row, 0))?.unwrap_or(0);
    if count >= most as u64 {
        let now = new.key.created_at.as_millis();
        let dead: Option<String> = row::first(sql, OLDEST_DEAD, [now], |row| Ok(row.get(0)?))?;
        let Some(dead) = dead else { return Ok(KeyOutcome::Full) };
        row::execute(sql, FORGET, [&dead])?;
        forgotten.extend(dead.parse::<KeyId>().ok());
    }

    let key = &new.key;
    let params = params![
        key.id.to_string(),
        key.name,
        organizations_text(&key.organizations),
        scopes_text(key.scopes),
        new.digest.as_bytes(),
        key.created_at.as_millis(),
        key.expires_at.map(Timestamp::as_millis),
    ];
    row::execute(sql, INSERT, params)?;
    Ok(KeyOutcome::Done(Box::new(new.clone()), forgotten))
}

/// Changes a key that is not revoked.
pub(super) fn change(sql: &Connection, id: KeyId, change: KeyChange) -> Result<KeyOutcome, Fault> {
    let Some(mut stored) = one(sql, id)? else { return Ok(KeyOutcome::Unknown) };

    match change {
        KeyChange::Revoke { at } => {
            if stored.key.revoked_at.is_none() {
                row::execute(sql, REVOKE, params![id.to_string(), at.as_millis()])?;
                stored.key.revoked_at = Some(at);
            }
        }
        KeyChange::Narrow { organizations } => {
            row::execute(sql, NARROW, params![id.to_string(), organizations_text(&organizations)])?;
            stored.key.organizations = organizations.into();
        }
        KeyChange::Rotate { .. } if stored.key.revoked_at.is_some() => {
            return Ok(KeyOutcome::Revoked);
        }
        KeyChange::Rotate { digest, at, former_until } => {
            let (bytes, until) = (digest.as_bytes(), former_until.as_millis());
            row::execute(sql, ROTATE, params![id.to_string(), bytes, at.as_millis(), until])?;
            stored.former = Some((stored.digest, former_until));
            stored.digest = digest;
            stored.key.rotated_at = Some(at);
        }
    }
    Ok(KeyOutcome::Done(Box::new(stored), Vec::new()))
}

/// Notes the last uses.
pub(super) fn note_uses(sql: &Connection, uses: &[(KeyId, Timestamp)]) -> Result<(), Fault> {
    uses.iter().try_for_each(|(id, at)| {
        row::execute(sql, NOTE_USE, params![id.to_string(), at.as_millis()]).map(drop)
    })
}

fn one(sql: &Connection, id: KeyId) -> Result<Option<StoredKey>, Fault> {
    row::first(sql, ONE, [id.to_string()], key)
}

fn key(row: &Row<'_>) -> Result<StoredKey, Fault> {
    read(row).map_err(|source| {
        let id: String = row.get(0).unwrap_or_default();
        Fault::Row { what: format!("key {id}"), source }
    })
}

fn read(row: &Row<'_>) -> Result<StoredKey, Source> {
    let instant = |column| -> Result<Option<Timestamp>, Source> {
        Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
    };
    let former: Option<[u8; 32]> = row.get(5)?;

    Ok(StoredKey {
        key: ApiKey {
            id: row::parse(row, 0)?,
            name: row.get(1)?,
            organizations: Arc::new(organizations(&row.get::<_, String>(2)?)?),
            scopes: scopes(&row.get::<_, String>(3)?)?,
            created_at: Timestamp::from_millis(row.get(7)?),
            expires_at: instant(8)?,
            rotated_at: instant(9)?,
            revoked_at: instant(10)?,
            last_used_at: instant(11)?,
        },
        digest: KeyDigest::from_bytes(row.get(4)?),
        former: former.map(KeyDigest::from_bytes).zip(instant(6)?),
    })
}
