//! The secrets that sign URLs, and the signed uploads that were made.

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::signature::SigningSecret;

use super::types::StoredSecret;

/// The secrets that sign URLs, and the signed uploads that were made.
#[async_trait]
pub trait Signatures: Send + Sync + 'static {
    /// Returns all secrets that sign or verify URLs, the oldest first.
    async fn signing_secrets(&self) -> Result<Vec<StoredSecret>>;

    /// Lets `new` sign from `now` on, and the one that signed before verify until `old_until`.
    async fn rotate_signing_secret(
        &self,
        new: SigningSecret,
        now: Timestamp,
        old_until: Timestamp,
    ) -> Result<()>;

    /// Forgets a secret at once; returns false if there is none of the name.
    async fn revoke_signing_secret(&self, kid: &str) -> Result<bool>;

    /// Forgets the secrets that are not valid any more at `now`; returns how many.
    async fn forget_signing_secrets(&self, now: Timestamp) -> Result<u64>;

    /// Tells if an upload with the permit was made.
    async fn is_permit_used(&self, nonce: &str) -> Result<bool>;

    /// Forgets up to `limit` spent permits that no upload is taken with any more at `now`; returns how
    /// many.
    async fn forget_permits(&self, now: Timestamp, limit: usize) -> Result<u64>;
}
