//! The objects on their way to a provider, and the holders of files.

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::metadata::postgres::{PostgresMetadata, holdings, intents};
use crate::metadata::{Holding, Intents, WriteIntent};

#[async_trait]
impl Intents for PostgresMetadata {
    async fn begin_writes(&self, intents: Vec<WriteIntent>) -> Result<()> {
        let request = self.engine.member().map(|member| member.request_name());
        self.engine
            .write("noting writes", (intents, request), |sql, (intents, request)| {
                Box::pin(intents::begin(sql, intents, request.as_deref()))
            })
            .await
    }

    async fn withdraw_writes(&self, keys: &[BlobKey], not_before: Timestamp) -> Result<()> {
        self.engine
            .write("abandoning writes", (keys.to_vec(), not_before), |sql, (keys, not_before)| {
                Box::pin(intents::withdraw(sql, keys, *not_before))
            })
            .await
    }

    async fn renew_writes(&self, owner: &str, now: Timestamp) -> Result<()> {
        self.engine
            .write("renewing writes", (owner.to_owned(), now), |sql, (owner, now)| {
                Box::pin(intents::renew(sql, owner, *now))
            })
            .await
    }

    async fn withdraw_old_writes(
        &self,
        begun_before: Timestamp,
        not_before: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        let is_any = self
            .engine
            .read("looking for old writes", &begun_before, |sql, begun_before| {
                Box::pin(intents::is_any_old(sql, *begun_before))
            })
            .await?;
        if !is_any {
            return Ok(0);
        }

        let wanted = (begun_before, not_before, limit);
        self.engine
            .write("abandoning writes", wanted, |sql, &(begun_before, not_before, limit)| {
                Box::pin(intents::withdraw_old(sql, begun_before, not_before, limit))
            })
            .await
    }

    async fn files_elsewhere(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>> {
        let wanted = (organization, target, after, limit);
        self.engine
            .read("listing files elsewhere", &wanted, |sql, (one, target, after, limit)| {
                Box::pin(holdings::elsewhere(sql, one, target, *after, *limit))
            })
            .await
    }

    async fn holdings(&self, organization: &OrganizationId) -> Result<Vec<Holding>> {
        self.engine
            .read_snapshot("counting holdings", organization, |sql, one| {
                Box::pin(holdings::count(sql, one))
            })
            .await
    }

    async fn blobs_at(&self, provider: &ProviderCode, limit: usize) -> Result<Vec<(BlobKey, u64)>> {
        self.engine
            .read_snapshot("looking for blobs", &(provider, limit), |sql, (provider, limit)| {
                Box::pin(holdings::some(sql, provider, *limit))
            })
            .await
    }
}
