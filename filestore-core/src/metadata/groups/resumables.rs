//! Resumable uploads.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::file::resumable::UploadTotals;
use crate::domain::id::{BlobId, OrganizationId, UploadId};
use crate::domain::time::clock::Timestamp;
use crate::metadata::resumable::{
    UploadChange, UploadChanged, UploadCreated, UploadLimits, UploadPart, UploadRow,
};

/// Resumable uploads. [`InsertFiles::upload`] and [`UpdateFile::upload`] finish one.
///
/// [`InsertFiles::upload`]: crate::metadata::InsertFiles::upload
/// [`UpdateFile::upload`]: crate::metadata::UpdateFile::upload
#[async_trait]
pub trait Resumables: Send + Sync + 'static {
    /// Stores a new upload, if there is room for it within `limits`.
    async fn create_upload(&self, row: UploadRow, limits: UploadLimits) -> Result<UploadCreated>;

    /// Returns an upload.
    async fn upload(&self, id: UploadId) -> Result<Option<UploadRow>>;

    /// Returns the upload, live or finished, that was created with an idempotency key.
    async fn upload_of_key(
        &self,
        organization: &OrganizationId,
        key: &str,
    ) -> Result<Option<UploadRow>>;

    /// Tells whether staged bytes are those of an upload, live or ended.
    async fn is_of_upload(&self, blob: BlobId) -> Result<bool>;

    /// Lists up to `limit` uploads of an organization, or of all, in the order of their ids above `after`.
    async fn uploads_of(
        &self,
        organization: Option<&OrganizationId>,
        after: Option<UploadId>,
        limit: usize,
    ) -> Result<Vec<UploadRow>>;

    /// Changes an upload, if it is still as the change expects it. However an upload ends, its parts become
    /// dropped blobs in the same transaction.
    async fn change_upload(&self, change: UploadChange) -> Result<UploadChanged>;

    /// Lists up to `limit` parts of an upload with bytes behind `offset`, in the order of their offsets. Only a live
    /// upload has parts, and only an engine for several servers stores them.
    async fn upload_parts(
        &self,
        id: UploadId,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<UploadPart>>;

    /// Returns up to `limit` last parts of an upload, the last one first.
    async fn last_parts(&self, id: UploadId, limit: usize) -> Result<Vec<UploadPart>>;

    /// Lists up to `limit` completing uploads of a server, in the order of their ids.
    async fn completing_uploads(&self, server: &str, limit: usize) -> Result<Vec<UploadRow>>;

    /// Forgets an upload in the epoch, unless it is completing; false if it is not there like that.
    async fn forget_upload(&self, id: UploadId, epoch: u64) -> Result<bool>;

    /// Lists up to `limit` live uploads of a server, in the order of their ids above `after`.
    async fn live_uploads(
        &self,
        server: &str,
        after: Option<UploadId>,
        limit: usize,
    ) -> Result<Vec<UploadRow>>;

    /// Lists up to `limit` open uploads that expire at `now` or before, of all servers.
    async fn due_uploads(&self, now: Timestamp, limit: usize) -> Result<Vec<UploadRow>>;

    /// Lists up to `limit` ended uploads of a server whose bytes may still be on its disk.
    async fn ended_uploads(&self, server: &str, limit: usize) -> Result<Vec<(UploadId, BlobId)>>;

    /// Notes that the bytes of ended uploads are gone.
    async fn note_cleared(&self, ids: &[UploadId]) -> Result<()>;

    /// Forgets up to `limit` ended uploads without bytes whose time is over; returns how many.
    async fn forget_ended(&self, now: Timestamp, limit: usize) -> Result<u64>;

    /// Returns the number of live uploads of all servers, and the bytes that they hold.
    async fn upload_totals(&self) -> Result<UploadTotals>;

    /// Returns the secret from which the tokens of uploads are made. A store without one gets `fresh`.
    async fn upload_secret(&self, fresh: &str) -> Result<String>;
}
