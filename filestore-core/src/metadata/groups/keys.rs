//! The API keys.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::id::KeyId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::types::{KeyChange, KeyOutcome, StoredKey};

/// The API keys.
#[async_trait]
pub trait Keys: Send + Sync + 'static {
    /// Lists all keys, including revoked and expired keys, oldest first.
    async fn keys(&self) -> Result<Vec<StoredKey>>;

    /// Returns true if a key was ever created. Unreadable rows count too.
    async fn has_keys(&self) -> Result<bool>;

    /// Creates a key. If there are already `most` keys, it replaces the oldest key that is revoked or has
    /// expired at the new key's `created_at`.
    async fn insert_key(&self, key: StoredKey, most: usize) -> Result<KeyOutcome>;

    /// Changes a key.
    async fn change_key(&self, id: KeyId, change: KeyChange) -> Result<KeyOutcome>;

    /// Records when keys were last used. Later uses that are already recorded stay.
    async fn note_key_uses(&self, uses: Vec<(KeyId, Timestamp)>) -> Result<()>;
}
