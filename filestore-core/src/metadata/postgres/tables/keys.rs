//! API keys. A store has few keys, and the engine reads all keys at once.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::access::key::{ApiKey, KeyDigest};
use crate::domain::error::Result;
use crate::domain::event::EventKind;
use crate::domain::id::KeyId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::events::of_key;
use crate::metadata::stored::{organizations, organizations_text, scopes, scopes_text};
use crate::metadata::{KeyChange, KeyOutcome, Keys, StoredKey};

use super::{events, row};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::Lock;

macro_rules! columns {
    () => {
        "key_id, name, organizations, scopes, digest, former_digest, former_until, created_at, expires_at, \
         rotated_at, revoked_at, last_used_at"
    };
}

const LIST: &str = concat!("SELECT ", columns!(), " FROM api_keys ORDER BY key_id");

pub(in crate::metadata::postgres) const ONE: &str =
    concat!("SELECT ", columns!(), " FROM api_keys WHERE key_id = $1 FOR UPDATE");

const ANY: &str = "SELECT 1 FROM api_keys LIMIT 1";

const COUNT: &str = "SELECT count(*) FROM api_keys";

const INSERT: &str =
    "INSERT INTO api_keys (key_id, name, organizations, scopes, digest, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)";

const OLDEST_DEAD: &str =
    "SELECT key_id FROM api_keys WHERE revoked_at IS NOT NULL OR expires_at <= $1
     ORDER BY key_id LIMIT 1";

pub(in crate::metadata::postgres) const FORGET: &str = "DELETE FROM api_keys WHERE key_id = $1";

pub(in crate::metadata::postgres) const REVOKE: &str =
    "UPDATE api_keys SET revoked_at = $2 WHERE key_id = $1";

pub(in crate::metadata::postgres) const ROTATE: &str =
    "UPDATE api_keys SET former_digest = digest, former_until = $4, digest = $2, rotated_at = $3
     WHERE key_id = $1";

pub(in crate::metadata::postgres) const NARROW: &str =
    "UPDATE api_keys SET organizations = $2 WHERE key_id = $1";

/// Updates rows in a fixed order, so that two servers do not deadlock.
pub(in crate::metadata::postgres) const NOTE_USES: &str = "WITH used AS MATERIALIZED (
     SELECT key_id, at FROM api_keys JOIN (
      SELECT key_id, max(at) AS at FROM unnest($1::text[], $2::bigint[]) AS noted (key_id, at) GROUP BY key_id
     ) AS latest USING (key_id) WHERE last_used_at IS NULL OR last_used_at < at
     ORDER BY key_id FOR UPDATE OF api_keys)
     UPDATE api_keys SET last_used_at = used.at FROM used WHERE api_keys.key_id = used.key_id";

#[async_trait]
impl Keys for PostgresMetadata {
    async fn keys(&self) -> Result<Vec<StoredKey>> {
        self.engine
            .read("reading the keys", &(), |sql, ()| Box::pin(sql.collect(LIST, &[], key)))
            .await
    }

    async fn has_keys(&self) -> Result<bool> {
        self.engine.read("looking for keys", &(), |sql, ()| Box::pin(sql.exists(ANY, &[]))).await
    }

    async fn insert_key(&self, key: StoredKey, most: usize) -> Result<KeyOutcome> {
        self.engine
            .write("making a key", (key, most), |sql, (new, most)| {
                Box::pin(async move {
                    sql.lock(Lock::Keys).await?;
                    let mut forgotten = Vec::new();
                    let count =
                        sql.first(COUNT, &[]).await?.map_or(Ok(0), |row| row::count(&row, 0))?;
                    if count >= *most as u64 {
                        let dead =
                            sql.first(OLDEST_DEAD, &[&new.key.created_at.as_millis()]).await?;
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
                    let created = of_key(EventKind::KeyCreated, key.id, key.created_at);
                    events::put(sql, &created).await?;
                    Ok(KeyOutcome::Done(Box::new(new.clone()), forgotten))
                })
            })
            .await
    }

    async fn change_key(&self, id: KeyId, change: KeyChange) -> Result<KeyOutcome> {
        self.engine
            .write("changing a key", (id.to_string(), change), |sql, (name, change)| {
                Box::pin(async move {
                    let row = sql.first(ONE, &[name]).await?;
                    let Some(mut stored) = row.map(|row| key(&row)).transpose()? else {
                        return Ok(KeyOutcome::Unknown);
                    };

                    let mut told = None;
                    match change {
                        KeyChange::Revoke { at } => {
                            if stored.key.revoked_at.is_none() {
                                sql.execute(REVOKE, &[name, &at.as_millis()]).await?;
                                stored.key.revoked_at = Some(*at);
                                told = Some((EventKind::KeyRevoked, *at));
                            }
                        }
                        KeyChange::Narrow { organizations, at } => {
                            sql.execute(NARROW, &[name, &organizations_text(organizations)])
                                .await?;
                            stored.key.organizations = organizations.clone().into();
                            told = Some((EventKind::KeyChanged, *at));
                        }
                        KeyChange::Rotate { .. } if stored.key.revoked_at.is_some() => {
                            return Ok(KeyOutcome::Revoked);
                        }
                        KeyChange::Rotate { digest, at, former_until } => {
                            let (bytes, until) =
                                (digest.as_bytes().as_slice(), former_until.as_millis());
                            sql.execute(ROTATE, &[name, &bytes, &at.as_millis(), &until]).await?;
                            stored.former = Some((stored.digest, *former_until));
                            stored.digest = *digest;
                            stored.key.rotated_at = Some(*at);
                            told = Some((EventKind::KeyRotated, *at));
                        }
                    }
                    if let Some((kind, at)) = told {
                        events::put(sql, &of_key(kind, stored.key.id, at)).await?;
                    }
                    Ok(KeyOutcome::Done(Box::new(stored), Vec::new()))
                })
            })
            .await
    }

    async fn note_key_uses(&self, uses: Vec<(KeyId, Timestamp)>) -> Result<()> {
        self.engine
            .write("noting uses of keys", uses, |sql, uses| {
                Box::pin(async move {
                    let ids: Vec<String> = uses.iter().map(|(id, _)| id.to_string()).collect();
                    let instants: Vec<i64> = uses.iter().map(|(_, at)| at.as_millis()).collect();
                    sql.execute(NOTE_USES, &[&ids, &instants]).await.map(drop)
                })
            })
            .await
    }
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
            old_valid_until: None,
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
