//! Webhooks, their lanes and failures.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::event::EventId;
use crate::domain::id::{OrganizationId, WebhookId};
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::FailureState;
use crate::metadata::types::Lease;
use crate::metadata::webhook::{
    ClaimedLane, FailureRow, LaneSave, LaneSaved, Requeued, WebhookChange, WebhookMade, WebhookRow,
};

/// Webhooks, their lanes and failures.
///
/// A lane has one owner at a time. Its saves change nothing after another owner has claimed it.
#[async_trait]
pub trait Webhooks: Send + Sync + 'static {
    /// Stores a new webhook, unless there are `most` webhooks.
    async fn insert_webhook(&self, row: WebhookRow, most: usize) -> Result<WebhookMade>;

    /// Lists all webhooks, oldest first, or only the one with an id.
    async fn webhooks(&self, only: Option<WebhookId>) -> Result<Vec<WebhookRow>>;

    /// Changes a webhook. Returns it as it is then, or `None` if it does not exist. Another URL ends a pause, and so
    /// does enabling. Both take the lane from its owner.
    async fn change_webhook(
        &self,
        id: WebhookId,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<WebhookRow>>;

    /// Deletes a webhook with its secrets and failures. Returns true if it existed.
    async fn delete_webhook(&self, id: WebhookId) -> Result<bool>;

    /// Claims the lane of an enabled webhook. `None` if another owner has it, or if it is disabled or deleted.
    async fn claim_lane(&self, id: WebhookId, lease: Lease<'_>) -> Result<Option<ClaimedLane>>;

    /// Extends the leases of all lanes of an owner. Returns their webhooks: the owner has lost all other lanes.
    async fn renew_lanes(&self, lease: Lease<'_>) -> Result<Vec<WebhookId>>;

    /// Gives a lane back.
    async fn release_lane(&self, id: WebhookId, owner: &str) -> Result<()>;

    /// Saves the progress of a lane. `None` if its owner has lost it.
    async fn save_lane(&self, save: LaneSave) -> Result<Option<LaneSaved>>;

    /// Lists up to `limit` failures of a webhook that are due at `now`, in the order in which they became due.
    async fn due_failures(
        &self,
        id: WebhookId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<FailureRow>>;

    /// Lists up to `limit` failures of a webhook in the order of their rows above `after`.
    async fn failures(
        &self,
        id: WebhookId,
        state: Option<FailureState>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<FailureRow>>;

    /// Returns the failure of one event.
    async fn failure_of(&self, id: WebhookId, event: EventId) -> Result<Option<FailureRow>>;

    /// Makes events due at `now`, as repeats, whatever became of them before. Events that wait become due as they
    /// are, and held events stay held. Leaves events of an organization out that was erased after `era`, in which the
    /// events were read.
    async fn requeue(
        &self,
        id: WebhookId,
        rows: Vec<FailureRow>,
        era: Era,
        now: Timestamp,
    ) -> Result<Requeued>;

    /// Forgets up to `limit` failed events whose last attempt was before `before`. Returns how many.
    async fn forget_failures(&self, before: Timestamp, limit: usize) -> Result<u64>;

    /// Deletes the webhooks of an organization, and its events among the failures of others. Spares events of files that
    /// exist, because they were uploaded after the erasure. Returns the number of webhooks. Takes all lanes from their owners, so that no lane stores an event that it read before. Call it after
    /// the events are blank.
    async fn forget_webhooks_of(&self, organization: &OrganizationId) -> Result<u64>;
}
