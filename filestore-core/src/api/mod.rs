//! The wire contract of `/api/v1`: serde types with exactly the contract's names and casing.
//!
//! This is the only place that knows the mix of `snake_case` and `camelCase`. Replies may gain
//! fields at any time; readers ignore what they do not know. Enumerated values are strings here,
//! because a client must treat unknown ones as open.

mod admin;
mod binding;
#[cfg(feature = "store")]
mod convert;
mod file;
mod problem;

pub use admin::{
    AdminProvider, MigrateHolding, MigratePlan, MigrateReport, MigrateRunRequest, MigrateRunning,
    MigrateStatus, MigrateStopRequest, MigrateVerifyReport, MigrateVerifyRequest,
    ProviderCheckReport, ProviderCheckStep, PurgeReport, PurgeRunRequest, SyncQueueReport,
    SyncQueueRequest, SyncReport, SyncStatusReport, VariantCacheReport, WorkFailure,
};
pub use binding::{BindingReply, BindingUpdateReply, CreateBinding, ProviderReply, UpdateBinding};
#[cfg(feature = "store")]
pub use convert::field_name;
pub use file::{ChangeReply, DeleteReply, FileRecord, HealthReply, ListReply, ReadyReply};
pub use problem::Problem;

/// The path prefix every endpoint has.
pub const PREFIX: &str = "/api/v1";

/// The sides a gallery variant may have, in pixels.
pub const VARIANT_SIZES: [u32; 7] = [200, 250, 300, 400, 500, 700, 1000];
