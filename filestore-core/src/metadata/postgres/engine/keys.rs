//! The keys of the API.

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::KeyId;
use crate::metadata::postgres::{PostgresMetadata, keys};
use crate::metadata::{KeyChange, KeyOutcome, Keys, StoredKey};

#[async_trait]
impl Keys for PostgresMetadata {
    async fn keys(&self) -> Result<Vec<StoredKey>> {
        self.engine.read("reading the keys", &(), |sql, ()| Box::pin(keys::list(sql))).await
    }

    async fn has_keys(&self) -> Result<bool> {
        self.engine.read("looking for keys", &(), |sql, ()| Box::pin(keys::any(sql))).await
    }

    async fn insert_key(&self, key: StoredKey, most: usize) -> Result<KeyOutcome> {
        self.engine
            .write("making a key", (key, most), |sql, (key, most)| {
                Box::pin(keys::insert(sql, key, *most))
            })
            .await
    }

    async fn change_key(&self, id: KeyId, change: KeyChange) -> Result<KeyOutcome> {
        self.engine
            .write("changing a key", (id, change), |sql, (id, change)| {
                Box::pin(keys::change(sql, *id, change))
            })
            .await
    }

    async fn note_key_uses(&self, uses: Vec<(KeyId, Timestamp)>) -> Result<()> {
        self.engine
            .write("noting uses of keys", uses, |sql, uses| Box::pin(keys::note_uses(sql, uses)))
            .await
    }
}
