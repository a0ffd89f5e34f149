//! The keys of the API.

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::KeyId;

use super::types::{KeyChange, KeyOutcome, StoredKey};

/// The keys of the API.
#[async_trait]
pub trait Keys: Send + Sync + 'static {
    /// Lists all keys, revoked and expired ones included, oldest first.
    async fn keys(&self) -> Result<Vec<StoredKey>>;

    /// Tells if a key was ever made. Rows that cannot be read count as well.
    async fn has_keys(&self) -> Result<bool>;

    /// Makes a key. Where there are `most` already, the oldest that is revoked or has expired by the
    /// key's `created_at` makes room.
    async fn insert_key(&self, key: StoredKey, most: usize) -> Result<KeyOutcome>;

    /// Changes a key.
    async fn change_key(&self, id: KeyId, change: KeyChange) -> Result<KeyOutcome>;

    /// Notes when keys were last used; earlier notes of a later use stay.
    async fn note_key_uses(&self, uses: Vec<(KeyId, Timestamp)>) -> Result<()>;
}
