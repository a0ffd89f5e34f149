//! The caller and the service in JSON: key, limits, features.

use serde::{Deserialize, Serialize};

use super::vocabulary::AccessMode;

/// The reply to GET `/me`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MeReply {
    /// `open` if callers need no key, `keys` if they do.
    pub mode: AccessMode,
    /// Key of the request. Null without keys and on the admin socket: then the caller can do
    /// everything.
    pub key: Option<MeKey>,
    /// The store.
    pub store: MeStore,
    /// Service limits.
    pub limits: MeLimits,
    /// Optional service features.
    pub features: MeFeatures,
}

/// A request's key, as GET `/me` shows the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MeKey {
    /// Key id.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Organizations that the key can access. Only `*` means all.
    pub organizations: Vec<String>,
    /// Scopes: `read`, `write`, `delete`, `admin`.
    pub scopes: Vec<String>,
    /// Expiry time in RFC 3339 (UTC, milliseconds). Null if the key does not expire.
    pub expires_at: Option<String>,
}

/// The store behind a service, as GET `/me` shows the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MeStore {
    /// Store id.
    pub id: String,
    /// Service version, for example `0.2.0`.
    pub version: String,
}

/// Service limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MeLimits {
    /// Maximum file size, in bytes.
    pub max_file_size: u64,
    /// Maximum files in a batch.
    pub max_batch_items: u64,
    /// Maximum total size of a batch, in bytes.
    pub max_batch_size: u64,
    /// Maximum ids in one POST `/files/delete` or `/files/restore`.
    pub max_ids: u64,
    /// Maximum size of a file that POST `/uploads` receives in several requests, in bytes.
    #[serde(default)]
    pub max_resumable_size: u64,
    /// Lifetime of a temporary file, in seconds.
    pub temp_ttl_secs: u64,
    /// Time between a deletion and the purge, in seconds. You can restore the file until then.
    pub purge_grace_secs: u64,
    /// Maximum files in an organization. Null if there is no limit.
    pub quota_files: Option<u64>,
    /// Maximum total size of an organization's files, in bytes. Null if there is no limit.
    pub quota_bytes: Option<u64>,
}

/// Optional service features.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MeFeatures {
    /// True if `?animated=true` returns animated variants.
    pub animated: bool,
    /// Media types of the configured converters, for example `application/pdf`: files of these
    /// types have variants too.
    pub converted_types: Vec<String>,
    /// True if POST `/uploads` creates resumable uploads.
    #[serde(default)]
    pub resumable: bool,
}
