//! Providers and bindings on the wire: camelCase.

use serde::{Deserialize, Serialize};

/// A storage provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderReply {
    /// Such as `LOCAL`.
    pub provider_code: String,
    /// For people.
    pub provider_name: String,
}

/// The body of POST `/organization-storage-bindings/create`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateBinding {
    /// 1 … 2^53−1.
    pub organization_id: i64,
    /// 1 to 255 characters.
    pub organization_name: String,
    /// A provider code.
    pub storage_provider: String,
    /// Whether files go LOCAL first and follow in the background.
    pub sync_enabled: bool,
}

/// A whole binding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingReply {
    /// Its id.
    pub id: i64,
    /// The organization.
    pub organization_id: i64,
    /// Its name.
    pub organization_name: String,
    /// A provider code.
    pub storage_provider: String,
    /// Whether files go LOCAL first and follow in the background.
    pub sync_enabled: bool,
    /// Whether it is in force.
    pub is_active: bool,
    /// ISO 8601 UTC with milliseconds.
    pub effective_from: String,
    /// When it was terminated, else null.
    pub effective_to: Option<String>,
}

/// The body of PUT `/organization-storage-bindings/update`: what is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateBinding {
    /// Whose binding.
    pub organization_id: i64,
    /// The new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization_name: Option<String>,
    /// The new provider code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_provider: Option<String>,
    /// The new sync flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_enabled: Option<bool>,
    /// `false` terminates, `true` resumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
}

/// The reply to an update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingUpdateReply {
    /// The binding's id.
    pub id: i64,
    /// The organization.
    pub organization_id: i64,
    /// Whether it is in force.
    pub is_active: bool,
    /// The sync flag.
    pub sync_enabled: bool,
    /// A provider code.
    pub storage_provider: String,
}
