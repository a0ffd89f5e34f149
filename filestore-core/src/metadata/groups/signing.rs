//! The secrets that sign URLs, and the completed signed uploads.

use async_trait::async_trait;

use crate::domain::access::signature::SigningSecret;
use crate::domain::error::Result;
use crate::domain::time::clock::Timestamp;
use crate::metadata::types::StoredSecret;

/// The secrets that sign URLs, and the completed signed uploads.
#[async_trait]
pub trait Signing: Send + Sync + 'static {
    /// Returns all secrets that sign or verify URLs, oldest first.
    async fn signing_secrets(&self) -> Result<Vec<StoredSecret>>;

    /// Makes `new` sign from `now` on. The previous secret verifies until `old_until`.
    async fn rotate_signing_secret(
        &self,
        new: SigningSecret,
        now: Timestamp,
        old_until: Timestamp,
    ) -> Result<()>;

    /// Removes a secret at once. Returns false if there is no secret with this name.
    async fn revoke_signing_secret(&self, kid: &str) -> Result<bool>;

    /// Removes the secrets that have expired at `now`. Returns their number.
    async fn forget_signing_secrets(&self, now: Timestamp) -> Result<u64>;

    /// Returns true if an upload with this permit was completed.
    async fn is_permit_used(&self, nonce: &str) -> Result<bool>;

    /// Removes at most `limit` used permits that are no longer accepted at `now`. Returns their number.
    async fn forget_permits(&self, now: Timestamp, limit: usize) -> Result<u64>;
}
