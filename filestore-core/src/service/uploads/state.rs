//! What the uploads of a store share while they run.

use std::sync::Arc;

use super::idempotency::KeysInUse;
use super::permits::PermitsInUse;
use super::publish::PublishQueue;
use super::quota::Ledger;
use super::resumable::state::ResumableState;
use crate::storage::{StagedLedger, StagedLimits};

/// The uploads under way, and the bytes that they have staged.
pub(crate) struct UploadState {
    /// Committed blobs on their way to their final names.
    pub(crate) publishing: Arc<PublishQueue>,
    pub(super) idempotency: Arc<KeysInUse>,
    pub(super) permits: Arc<PermitsInUse>,
    pub(super) quota: Arc<Ledger>,
    /// Uploads that outlive their requests.
    pub(in crate::service) resumable: Arc<ResumableState>,
    /// The room for bytes that are staged without a commit.
    pub(in crate::service) staged: Arc<StagedLedger>,
}

impl UploadState {
    /// Begins without any upload under way.
    pub(in crate::service) fn new(limits: StagedLimits) -> Self {
        Self {
            publishing: Arc::new(PublishQueue::new()),
            idempotency: Arc::default(),
            permits: Arc::default(),
            quota: Arc::default(),
            resumable: Arc::default(),
            staged: StagedLedger::new(limits),
        }
    }
}
