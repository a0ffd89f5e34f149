//! The objects on their way to a provider, and the holders of files.

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::metadata::sqlite::{SqliteMetadata, holdings, intents};
use crate::metadata::{Holding, Intents, WriteIntent};

#[async_trait]
impl Intents for SqliteMetadata {
    async fn begin_writes(&self, intents: Vec<WriteIntent>) -> Result<()> {
        self.writer.run("noting writes", move |tx| intents::begin(tx.sql, &intents)).await
    }

    async fn withdraw_writes(&self, keys: &[BlobKey], not_before: Timestamp) -> Result<()> {
        let keys = keys.to_vec();
        self.writer
            .run("abandoning writes", move |tx| intents::withdraw(tx.sql, &keys, not_before))
            .await
    }

    async fn renew_writes(&self, owner: &str, now: Timestamp) -> Result<()> {
        let owner = owner.to_owned();
        self.writer.run("renewing writes", move |tx| intents::renew(tx.sql, &owner, now)).await
    }

    async fn withdraw_old_writes(
        &self,
        begun_before: Timestamp,
        not_before: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        let keys = self
            .readers
            .run("looking for old writes", move |sql| intents::old(sql, begun_before, limit))
            .await?;
        if keys.is_empty() {
            return Ok(0);
        }

        self.withdraw_writes(&keys, not_before).await.map(|()| keys.len() as u64)
    }

    async fn files_elsewhere(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>> {
        let (organization, target) = (organization.clone(), target.clone());
        self.readers
            .run("listing files elsewhere", move |sql| {
                holdings::elsewhere(sql, &organization, &target, after, limit)
            })
            .await
    }

    async fn holdings(&self, organization: &OrganizationId) -> Result<Vec<Holding>> {
        let organization = organization.clone();
        self.readers.run("counting holdings", move |sql| holdings::count(sql, &organization)).await
    }

    async fn blobs_at(&self, provider: &ProviderCode, limit: usize) -> Result<Vec<(BlobKey, u64)>> {
        let provider = provider.clone();
        self.readers
            .run("looking for blobs", move |sql| holdings::some(sql, &provider, limit))
            .await
    }
}
