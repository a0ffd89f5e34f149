//! Migrations in JSON: moving the files of an organization to another provider.

use serde::{Deserialize, Serialize};

use super::WorkFailure;
use crate::api::id::OrganizationNumber;
use crate::api::vocabulary::Status;

/// An organization's files with one status at one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MigrateHolding {
    /// Code of the provider that stores the bytes.
    pub provider_code: String,
    /// File status.
    pub status: Status,
    /// File count.
    pub files: u64,
    /// Total size, in bytes.
    pub bytes: u64,
    /// True if the provider is in the configuration.
    pub available: bool,
}

impl MigrateHolding {
    /// Creates an entry without files.
    pub fn new(provider_code: impl Into<String>, status: impl Into<Status>) -> Self {
        Self {
            provider_code: provider_code.into(),
            status: status.into(),
            files: 0,
            bytes: 0,
            available: false,
        }
    }
}

/// A migration plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MigratePlan {
    /// Target provider code.
    pub to: String,
    /// Files to move.
    pub move_files: u64,
    /// Their total size, in bytes.
    pub move_bytes: u64,
    /// The files' current providers.
    pub from: Vec<MigrateHolding>,
    /// `READY` files that are already at the target.
    pub there_files: u64,
    /// Their total size, in bytes.
    pub there_bytes: u64,
    /// `TEMP` and `THUMBNAIL` files, which stay `LOCAL`.
    pub stay_files: u64,
    /// Their total size, in bytes.
    pub stay_bytes: u64,
    /// Reason why the target accepts no files. Absent if it does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused: Option<String>,
}

/// The body for POST `/admin/migrate/run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MigrateRunRequest {
    /// Organization number.
    #[serde(rename = "organizationId")]
    pub organization_id: OrganizationNumber,
    /// Target code: the active binding's provider.
    pub to: String,
    /// Maximum read rate, in bytes per second. Unlimited if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes_per_second: Option<u64>,
    /// If true, the reply is 202 with the status, and the migration continues without the client.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detach: Option<bool>,
}

impl MigrateRunRequest {
    /// Moves the organization's files to the provider `to`, without a rate limit.
    pub fn new(organization_id: OrganizationNumber, to: impl Into<String>) -> Self {
        Self { organization_id, to: to.into(), bytes_per_second: None, detach: None }
    }

    /// Limits the read rate, in bytes per second.
    #[must_use]
    pub fn bytes_per_second(mut self, limit: impl Into<Option<u64>>) -> Self {
        self.bytes_per_second = limit.into();
        self
    }
}

/// The body for POST `/admin/migrate/verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MigrateVerifyRequest {
    /// Organization number.
    #[serde(rename = "organizationId")]
    pub organization_id: OrganizationNumber,
    /// Code of the provider to read from.
    pub to: String,
}

impl MigrateVerifyRequest {
    /// Reads every file that the organization has at `to`, and compares its digest.
    pub fn new(organization_id: OrganizationNumber, to: impl Into<String>) -> Self {
        Self { organization_id, to: to.into() }
    }
}

/// The body for POST `/admin/migrate/stop`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MigrateStopRequest {
    /// Organization number.
    #[serde(rename = "organizationId")]
    pub organization_id: OrganizationNumber,
}

impl MigrateStopRequest {
    /// Stops the organization's migration.
    pub fn new(organization_id: OrganizationNumber) -> Self {
        Self { organization_id }
    }
}

/// The migration result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MigrateReport {
    /// Moved files.
    pub moved_files: u64,
    /// Their total size, in bytes.
    pub moved_bytes: u64,
    /// `READY` files that are still at another provider.
    pub left_files: u64,
    /// Their total size, in bytes.
    pub left_bytes: u64,
    /// True if the migration was stopped.
    pub stopped: bool,
    /// Files that could not be moved. Run the migration again to retry.
    #[serde(default)]
    pub failed: u64,
    /// The first failures, at most 100.
    pub failures: Vec<WorkFailure>,
}

/// A running migration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MigrateRunning {
    /// Target provider code.
    pub to: String,
    /// Files moved so far.
    pub files: u64,
    /// Bytes moved so far.
    pub bytes: u64,
    /// Files to move, counted when the migration began. Null before the count.
    #[serde(default)]
    pub planned_files: Option<u64>,
    /// Their total size, in bytes. Null before the count.
    #[serde(default)]
    pub planned_bytes: Option<u64>,
    /// Start time in RFC 3339 (UTC, milliseconds). Null for a migration on an older server.
    #[serde(default)]
    pub started_at: Option<String>,
}

/// The providers of an organization's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MigrateStatus {
    /// Organization number.
    #[serde(rename = "organizationId")]
    pub organization_id: OrganizationNumber,
    /// The active binding's provider code.
    pub bound_to: Option<String>,
    /// Files for each provider and status.
    pub holdings: Vec<MigrateHolding>,
    /// The running migration, if there is one.
    pub running: Option<MigrateRunning>,
}

/// The `migrate verify` result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MigrateVerifyReport {
    /// Files that were read.
    pub checked_files: u64,
    /// Their total size, in bytes.
    pub checked_bytes: u64,
    /// `READY` files at other providers, which were not read.
    pub elsewhere: u64,
    /// Files that cannot be read, or do not match the digest in the record.
    #[serde(default)]
    pub failed: u64,
    /// The first failures, at most 10,000.
    pub failures: Vec<WorkFailure>,
}
