//! The secrets that sign URLs, and the signed uploads that were made.

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::signature::SigningSecret;
use crate::metadata::sqlite::{SqliteMetadata, signing};
use crate::metadata::{Signatures, StoredSecret};

#[async_trait]
impl Signatures for SqliteMetadata {
    async fn signing_secrets(&self) -> Result<Vec<StoredSecret>> {
        self.readers.run("reading the signing secrets", signing::all).await
    }

    async fn rotate_signing_secret(
        &self,
        new: SigningSecret,
        now: Timestamp,
        old_until: Timestamp,
    ) -> Result<()> {
        self.writer
            .run("rotating the signing secret", move |tx| {
                signing::rotate(tx.sql, &new, now, old_until)
            })
            .await
    }

    async fn revoke_signing_secret(&self, kid: &str) -> Result<bool> {
        let kid = kid.to_owned();
        self.writer.run("revoking a signing secret", move |tx| signing::revoke(tx.sql, &kid)).await
    }

    async fn forget_signing_secrets(&self, now: Timestamp) -> Result<u64> {
        self.writer.run("forgetting secrets", move |tx| signing::forget(tx.sql, now)).await
    }

    async fn is_permit_used(&self, nonce: &str) -> Result<bool> {
        let nonce = nonce.to_owned();
        self.readers.run("looking up a permit", move |sql| signing::is_used(sql, &nonce)).await
    }

    async fn forget_permits(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.writer
            .run("forgetting permits", move |tx| signing::forget_used(tx.sql, now, limit))
            .await
    }
}
