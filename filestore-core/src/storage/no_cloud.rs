//! Replaces `cloud` in a build without the feature `providers`. A store with providers then does not open, and
//! no value of these types exists.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::cloud_types::{Object, UploadsPage, unusable};
use super::{
    BlobInfo, BlobRead, BlobStore, ByteStream, CloudCapabilities, MarkerLedger, PresignRequest,
    Presigned, Priority, ProviderCheck, UnfinishedUpload, UploadsPlace,
};
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::id::{Sha256, StoreId};
use crate::domain::provider::health::ProviderHealth;
use crate::domain::provider::{ProviderCode, ProviderConfig};
use crate::domain::time::clock::Clock;

const NOT_BUILT_IN: &str =
    "this build has no providers: filestore-core needs its feature `providers`";

/// A provider of location CLOUD, which this build does not have.
#[derive(Debug, Clone)]
pub struct Cloud {
    never: Infallible,
    code: ProviderCode,
}

/// A listing of a provider's objects.
pub struct Listing {
    never: Infallible,
}

#[expect(clippy::unused_async, reason = "as in a build with providers")]
impl Listing {
    pub async fn page(&mut self) -> Result<Option<Vec<String>>> {
        match self.never {}
    }
}

#[expect(clippy::unused_async, reason = "as in a build with providers")]
impl Cloud {
    /// Refuses the provider.
    pub(super) fn open(config: &ProviderConfig, _: &Clock) -> Result<Self> {
        Err(unusable(&config.code, NOT_BUILT_IN))
    }

    /// Refuses the provider.
    pub(super) fn check_config(config: &ProviderConfig, clock: &Clock) -> Result<()> {
        Self::open(config, clock).map(drop)
    }

    pub fn code(&self) -> &ProviderCode {
        &self.code
    }

    pub fn capabilities(&self) -> CloudCapabilities {
        match self.never {}
    }

    pub(super) fn late_write_limit(&self) -> Duration {
        match self.never {}
    }

    pub fn health(&self) -> ProviderHealth {
        match self.never {}
    }

    pub fn may_try(&self) -> bool {
        match self.never {}
    }

    pub(super) fn identify(&self, _: StoreId, _: Arc<dyn MarkerLedger>) {
        match self.never {}
    }

    pub async fn check(&self) -> ProviderCheck {
        match self.never {}
    }

    pub async fn check_marker(&self) -> Result<()> {
        match self.never {}
    }

    pub async fn was_used(&self) -> Result<bool> {
        match self.never {}
    }

    pub async fn presign(&self, _: &BlobKey, _: &PresignRequest<'_>) -> Result<Option<Presigned>> {
        match self.never {}
    }

    pub async fn length(&self, _: &BlobKey) -> Result<Option<u64>> {
        match self.never {}
    }

    pub async fn list(&self, _: Option<&str>) -> Result<Listing> {
        match self.never {}
    }

    pub async fn list_below(&self, _: &str) -> Result<Listing> {
        match self.never {}
    }

    pub fn lists_in_order(&self) -> bool {
        match self.never {}
    }

    pub fn may_keep_parts(&self) -> bool {
        match self.never {}
    }

    pub fn lists_uploads(&self) -> bool {
        match self.never {}
    }

    pub async fn unfinished_uploads(&self, _: Option<UploadsPlace>) -> Result<UploadsPage> {
        match self.never {}
    }

    pub async fn abort_upload(&self, _: UnfinishedUpload) -> Result<()> {
        match self.never {}
    }

    pub(super) async fn put_object(&self, _: &str, _: u64, _: Sha256, _: ByteStream) -> Result<()> {
        match self.never {}
    }

    pub(super) async fn put_text(&self, _: &str, _: String) -> Result<()> {
        match self.never {}
    }

    pub(super) async fn read_object(&self, _: &str, _: u64) -> Result<Option<ByteStream>> {
        match self.never {}
    }

    pub(super) async fn read_object_range(
        &self,
        _: &str,
        _: u64,
        _: Range<u64>,
    ) -> Result<Option<Bytes>> {
        match self.never {}
    }

    pub(super) async fn object_size(&self, _: &str) -> Result<Option<u64>> {
        match self.never {}
    }

    pub(super) async fn list_objects(&self, _: &str) -> Result<Vec<Object>> {
        match self.never {}
    }

    pub(super) async fn remove_object(&self, _: &str) -> Result<()> {
        match self.never {}
    }
}

#[async_trait]
impl BlobStore for Cloud {
    async fn put(&self, _: &BlobKey, _: &BlobInfo, _: ByteStream, _: Priority) -> Result<()> {
        match self.never {}
    }

    async fn read(&self, _: &BlobKey, _: u64, _: Range<u64>) -> Result<Option<BlobRead>> {
        match self.never {}
    }

    async fn remove(&self, _: Vec<BlobKey>) -> Vec<Result<()>> {
        match self.never {}
    }
}
