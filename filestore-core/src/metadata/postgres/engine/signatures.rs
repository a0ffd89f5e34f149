//! The secrets that sign URLs, and the signed uploads that were made.

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::signature::SigningSecret;
use crate::metadata::postgres::{PostgresMetadata, signing};
use crate::metadata::{Signatures, StoredSecret};

#[async_trait]
impl Signatures for PostgresMetadata {
    async fn signing_secrets(&self) -> Result<Vec<StoredSecret>> {
        self.engine
            .read("reading the signing secrets", &(), |sql, ()| Box::pin(signing::all(sql)))
            .await
    }

    async fn rotate_signing_secret(
        &self,
        new: SigningSecret,
        now: Timestamp,
        old_until: Timestamp,
    ) -> Result<()> {
        let wanted = (new, now, old_until);
        self.engine
            .write("rotating the signing secret", wanted, |sql, (new, now, old_until)| {
                Box::pin(signing::rotate(sql, new, *now, *old_until))
            })
            .await
    }

    async fn revoke_signing_secret(&self, kid: &str) -> Result<bool> {
        self.engine
            .write("revoking a signing secret", kid.to_owned(), |sql, kid| {
                Box::pin(signing::revoke(sql, kid))
            })
            .await
    }

    async fn forget_signing_secrets(&self, now: Timestamp) -> Result<u64> {
        self.engine
            .write("forgetting secrets", now, |sql, now| Box::pin(signing::forget(sql, *now)))
            .await
    }

    async fn is_permit_used(&self, nonce: &str) -> Result<bool> {
        self.engine
            .read("looking up a permit", &nonce, |sql, nonce| {
                Box::pin(signing::is_used(sql, nonce))
            })
            .await
    }

    async fn forget_permits(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.engine
            .write("forgetting permits", (now, limit), |sql, &(now, limit)| {
                Box::pin(signing::forget_used(sql, now, limit))
            })
            .await
    }
}
