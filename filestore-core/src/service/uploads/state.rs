//! The state that running uploads of a store share.

use std::sync::Arc;

use super::idempotency::KeysInUse;
use super::permits::PermitsInUse;
use super::publish::PublishQueue;
use super::quota::Ledger;
use super::resumable::state::ResumableState;
use crate::storage::{StagedLedger, StagedLimits};

/// The running uploads, and their staged bytes.
pub(crate) struct UploadState {
    /// Committed blobs that wait for their final names.
    pub(crate) publishing: Arc<PublishQueue>,
    pub(super) idempotency: Arc<KeysInUse>,
    pub(super) permits: Arc<PermitsInUse>,
    pub(super) quota: Arc<Ledger>,
    /// Uploads that outlive their requests.
    pub(in crate::service) resumable: Arc<ResumableState>,
    /// The limits of bytes that are staged without a commit.
    pub(in crate::service) staged: Arc<StagedLedger>,
}

impl UploadState {
    /// Creates the state without a running upload.
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
