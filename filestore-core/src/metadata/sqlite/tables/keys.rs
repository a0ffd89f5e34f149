//! API keys. A store has few keys, and the engine reads all keys at once.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use crate::domain::access::key::{ApiKey, KeyDigest};
use crate::domain::error::Result;
use crate::domain::event::EventKind;
use crate::domain::id::KeyId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::events::of_key;
use crate::metadata::stored::{organizations, organizations_text, scopes, scopes_text};
use crate::metadata::{KeyChange, KeyOutcome, Keys, StoredKey};

use super::{events, row};
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};

macro_rules! columns {
    () => {
        "key_id, name, organizations, scopes, digest, former_digest, former_until, created_at, expires_at, \
         rotated_at, revoked_at, last_used_at"
    };
}

const LIST: &str = concat!("SELECT ", columns!(), " FROM api_keys ORDER BY key_id");

pub(in crate::metadata::sqlite) const ONE: &str =
    concat!("SELECT ", columns!(), " FROM api_keys WHERE key_id = ?1");

pub(in crate::metadata::sqlite) const ANY: &str = "SELECT EXISTS (SELECT 1 FROM api_keys)";

const COUNT: &str = "SELECT count(*) FROM api_keys";

const INSERT: &str = concat!(
    "INSERT INTO api_keys (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, NULL, NULL, ?6, ?7, NULL, NULL, NULL)"
);

const OLDEST_DEAD: &str =
    "SELECT key_id FROM api_keys WHERE revoked_at IS NOT NULL OR expires_at <= ?1
     ORDER BY key_id LIMIT 1";

pub(in crate::metadata::sqlite) const FORGET: &str = "DELETE FROM api_keys WHERE key_id = ?1";

pub(in crate::metadata::sqlite) const REVOKE: &str =
    "UPDATE api_keys SET revoked_at = ?2 WHERE key_id = ?1";

pub(in crate::metadata::sqlite) const ROTATE: &str =
    "UPDATE api_keys SET former_digest = digest, former_until = ?4, digest = ?2, rotated_at = ?3
     WHERE key_id = ?1";

pub(in crate::metadata::sqlite) const NARROW: &str =
    "UPDATE api_keys SET organizations = ?2 WHERE key_id = ?1";

pub(in crate::metadata::sqlite) const NOTE_USE: &str = "UPDATE api_keys SET last_used_at = ?2
     WHERE key_id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)";

#[async_trait]
impl Keys for SqliteMetadata {
    async fn keys(&self) -> Result<Vec<StoredKey>> {
        self.readers.run("reading the keys", list).await
    }

    async fn has_keys(&self) -> Result<bool> {
        self.readers
            .run("looking for keys", |sql| {
                Ok(row::first(sql, ANY, [], |row| Ok(row.get(0)?))?.unwrap_or(false))
            })
            .await
    }

    async fn insert_key(&self, key: StoredKey, most: usize) -> Result<KeyOutcome> {
        self.writer
            .run("making a key", move |tx| {
                let mut forgotten = Vec::new();
                let count = row::first(tx.sql, COUNT, [], |row| row::count(row, 0))?.unwrap_or(0);
                if count >= most as u64 {
                    let now = key.key.created_at.as_millis();
                    let dead: Option<String> =
                        row::first(tx.sql, OLDEST_DEAD, [now], |row| Ok(row.get(0)?))?;
                    let Some(dead) = dead else { return Ok(KeyOutcome::Full) };
                    row::execute(tx.sql, FORGET, [&dead])?;
                    forgotten.extend(dead.parse::<KeyId>().ok());
                }

                let new = &key.key;
                let params = params![
                    new.id.to_string(),
                    new.name,
                    organizations_text(&new.organizations),
                    scopes_text(new.scopes),
                    key.digest.as_bytes(),
                    new.created_at.as_millis(),
                    new.expires_at.map(Timestamp::as_millis),
                ];
                row::execute(tx.sql, INSERT, params)?;
                events::put(tx.sql, &of_key(EventKind::KeyCreated, new.id, new.created_at))?;
                Ok(KeyOutcome::Done(Box::new(key.clone()), forgotten))
            })
            .await
    }

    async fn change_key(&self, id: KeyId, change: KeyChange) -> Result<KeyOutcome> {
        self.writer
            .run("changing a key", move |tx| {
                let Some(mut stored) = one(tx.sql, id)? else { return Ok(KeyOutcome::Unknown) };

                let (sql, name) = (tx.sql, id.to_string());
                match change.clone() {
                    KeyChange::Revoke { at } => {
                        if stored.key.revoked_at.is_none() {
                            row::execute(sql, REVOKE, params![name, at.as_millis()])?;
                            stored.key.revoked_at = Some(at);
                            events::put(sql, &of_key(EventKind::KeyRevoked, id, at))?;
                        }
                    }
                    KeyChange::Narrow { organizations, at } => {
                        row::execute(
                            sql,
                            NARROW,
                            params![name, organizations_text(&organizations)],
                        )?;
                        stored.key.organizations = organizations.into();
                        events::put(sql, &of_key(EventKind::KeyChanged, id, at))?;
                    }
                    KeyChange::Rotate { .. } if stored.key.revoked_at.is_some() => {
                        return Ok(KeyOutcome::Revoked);
                    }
                    KeyChange::Rotate { digest, at, former_until } => {
                        let (bytes, until) = (digest.as_bytes(), former_until.as_millis());
                        row::execute(sql, ROTATE, params![name, bytes, at.as_millis(), until])?;
                        stored.former = Some((stored.digest, former_until));
                        stored.digest = digest;
                        stored.key.rotated_at = Some(at);
                        events::put(sql, &of_key(EventKind::KeyRotated, id, at))?;
                    }
                }
                Ok(KeyOutcome::Done(Box::new(stored), Vec::new()))
            })
            .await
    }

    async fn note_key_uses(&self, uses: Vec<(KeyId, Timestamp)>) -> Result<()> {
        self.writer
            .run("noting uses of keys", move |tx| {
                uses.iter().try_for_each(|(id, at)| {
                    row::execute(tx.sql, NOTE_USE, params![id.to_string(), at.as_millis()])
                        .map(drop)
                })
            })
            .await
    }
}

/// Lists all keys, oldest first.
pub(in crate::metadata::sqlite) fn list(sql: &Connection) -> Result<Vec<StoredKey>, Fault> {
    row::collect(sql, LIST, [], key)
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
            old_valid_until: None,
            revoked_at: instant(10)?,
            last_used_at: instant(11)?,
        },
        digest: KeyDigest::from_bytes(row.get(4)?),
        former: former.map(KeyDigest::from_bytes).zip(instant(6)?),
    })
}
