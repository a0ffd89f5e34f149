//! The keys of the API.

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::KeyId;
use crate::metadata::sqlite::{SqliteMetadata, keys};
use crate::metadata::{KeyChange, KeyOutcome, Keys, StoredKey};

#[async_trait]
impl Keys for SqliteMetadata {
    async fn keys(&self) -> Result<Vec<StoredKey>> {
        self.readers.run("reading the keys", keys::list).await
    }

    async fn has_keys(&self) -> Result<bool> {
        self.readers.run("looking for keys", keys::any).await
    }

    async fn insert_key(&self, key: StoredKey, most: usize) -> Result<KeyOutcome> {
        self.writer.run("making a key", move |tx| keys::insert(tx.sql, &key, most)).await
    }

    async fn change_key(&self, id: KeyId, change: KeyChange) -> Result<KeyOutcome> {
        self.writer.run("changing a key", move |tx| keys::change(tx.sql, id, change.clone())).await
    }

    async fn note_key_uses(&self, uses: Vec<(KeyId, Timestamp)>) -> Result<()> {
        self.writer.run("noting uses of keys", move |tx| keys::note_uses(tx.sql, &uses)).await
    }
}
