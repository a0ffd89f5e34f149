//! Migrations of an organization's files from one provider to another.

use serde::{Deserialize, Serialize};

use super::WorkFailure;
use crate::api::vocabulary::Status;

/// The files of an organization that one provider holds in one status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MigrateHolding {
    /// Code of the provider that holds the bytes.
    pub provider_code: String,
    /// Status of these files.
    pub status: Status,
    /// Number of files at that provider.
    pub files: u64,
    /// Sum of the sizes of these files, in bytes.
    pub bytes: u64,
    /// True if the provider is in the configuration.
    pub available: bool,
}

impl MigrateHolding {
    /// Names the holder and the status of no files yet.
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

/// The work of a migration, before it begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MigratePlan {
    /// Code of the target provider.
    pub to: String,
    /// Number of files to move.
    pub move_files: u64,
    /// Bytes of the files to move.
    pub move_bytes: u64,
    /// Holders of the files that are to move.
    pub from: Vec<MigrateHolding>,
    /// READY files that are at the target.
    pub there_files: u64,
    /// Bytes of the READY files that are at the target.
    pub there_bytes: u64,
    /// TEMP and THUMBNAIL files: they stay LOCAL.
    pub stay_files: u64,
    /// Bytes of the files that stay.
    pub stay_bytes: u64,
    /// Reason why the target takes no files, if it does not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused: Option<String>,
}

/// The body of POST `/admin/migrate/run`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MigrateRunRequest {
    /// Number of the organization.
    #[serde(rename = "organizationId")]
    pub organization_id: i64,
    /// Code of the target: the provider of the organization's active binding.
    pub to: String,
    /// Most bytes read per second; unlimited if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes_per_second: Option<u64>,
}

impl MigrateRunRequest {
    /// Asks to move the organization's files to the provider `to`, as fast as it goes.
    pub fn new(organization_id: i64, to: impl Into<String>) -> Self {
        Self { organization_id, to: to.into(), bytes_per_second: None }
    }

    /// Limits how many bytes are read per second.
    #[must_use]
    pub fn bytes_per_second(mut self, limit: impl Into<Option<u64>>) -> Self {
        self.bytes_per_second = limit.into();
        self
    }
}

/// The body of POST `/admin/migrate/verify`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MigrateVerifyRequest {
    /// Number of the organization.
    #[serde(rename = "organizationId")]
    pub organization_id: i64,
    /// Code of the provider whose files are read.
    pub to: String,
}

impl MigrateVerifyRequest {
    /// Asks to read the organization's files at the provider `to`.
    pub fn new(organization_id: i64, to: impl Into<String>) -> Self {
        Self { organization_id, to: to.into() }
    }
}

/// The body of POST `/admin/migrate/stop`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MigrateStopRequest {
    /// Number of the organization.
    #[serde(rename = "organizationId")]
    pub organization_id: i64,
}

impl MigrateStopRequest {
    /// Asks to stop the organization's migration.
    pub fn new(organization_id: i64) -> Self {
        Self { organization_id }
    }
}

/// The result of a migration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MigrateReport {
    /// Number of files that were moved.
    pub moved_files: u64,
    /// Bytes of the files that were moved.
    pub moved_bytes: u64,
    /// READY files that are still elsewhere.
    pub left_files: u64,
    /// Bytes of the READY files that are still elsewhere.
    pub left_bytes: u64,
    /// True if the migration was told to stop.
    pub stopped: bool,
    /// Files that could not be moved; a later run attempts them again.
    #[serde(default)]
    pub failed: u64,
    /// The first of these, 100 at most.
    pub failures: Vec<WorkFailure>,
}

/// A migration under way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MigrateRunning {
    /// Code of the target provider.
    pub to: String,
    /// Files moved so far.
    pub files: u64,
    /// Bytes moved so far.
    pub bytes: u64,
}

/// The places where an organization's files are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MigrateStatus {
    /// Number of the organization.
    #[serde(rename = "organizationId")]
    pub organization_id: i64,
    /// Code of the provider of the active binding.
    pub bound_to: Option<String>,
    /// Files by provider and status.
    pub holdings: Vec<MigrateHolding>,
    /// Migration under way, if there is one.
    pub running: Option<MigrateRunning>,
}

/// The result of reading the files at a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MigrateVerifyReport {
    /// Number of files that were read.
    pub checked_files: u64,
    /// Bytes of the files that were read.
    pub checked_bytes: u64,
    /// READY files that are elsewhere and so were not read.
    pub elsewhere: u64,
    /// Files that cannot be read, or whose digest is not the record's.
    #[serde(default)]
    pub failed: u64,
    /// The first of these, 10,000 at most.
    pub failures: Vec<WorkFailure>,
}
