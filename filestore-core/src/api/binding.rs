//! Providers and bindings on the wire: camelCase.

use serde::{Deserialize, Serialize};

/// A storage provider, as anybody may see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProviderReply {
    /// Code of the provider, such as `LOCAL`.
    pub provider_code: String,
    /// Name of the provider, for people.
    pub provider_name: String,
}

/// The body of POST `/organization-storage-bindings/create`.
///
/// ```
/// use filestore_core::api::CreateBinding;
///
/// let mut binding = CreateBinding::new(42, "Example & Sons", "s3-eu");
/// binding.sync_enabled = true;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateBinding {
    /// Number of the organization, 1 … 2^53−1.
    pub organization_id: i64,
    /// Name of the organization, 1 to 255 characters.
    pub organization_name: String,
    /// Code of the provider.
    pub storage_provider: String,
    /// True if uploads are stored on the server first and copied in the background.
    pub sync_enabled: bool,
}

impl CreateBinding {
    /// Binds an organization to a provider, without background sync: uploads are answered once the
    /// provider has them.
    pub fn new(
        organization_id: i64,
        organization_name: impl Into<String>,
        storage_provider: impl Into<String>,
    ) -> Self {
        Self {
            organization_id,
            organization_name: organization_name.into(),
            storage_provider: storage_provider.into(),
            sync_enabled: false,
        }
    }
}

/// A binding, as listings and the reply to its creation show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BindingReply {
    /// Id of the binding.
    pub id: i64,
    /// Number of the organization.
    pub organization_id: i64,
    /// Name of the organization.
    pub organization_name: String,
    /// Code of the provider.
    pub storage_provider: String,
    /// True if uploads are stored on the server first and copied in the background.
    pub sync_enabled: bool,
    /// True while the binding is in force.
    pub is_active: bool,
    /// Time of the creation, ISO 8601 UTC with milliseconds.
    pub effective_from: String,
    /// Time of the termination, in the same form; null while the binding is active.
    pub effective_to: Option<String>,
}

/// The body of PUT `/organization-storage-bindings/update`: fields that are absent stay as they are.
///
/// ```
/// use filestore_core::api::UpdateBinding;
///
/// let mut update = UpdateBinding::new(42);
/// update.is_active = Some(false);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateBinding {
    /// Number of the organization whose binding changes.
    pub organization_id: i64,
    /// New name of the organization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization_name: Option<String>,
    /// Code of the new provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_provider: Option<String>,
    /// New sync flag: true if uploads are stored on the server first and copied in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_enabled: Option<bool>,
    /// `false` terminates the binding, `true` resumes the newest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
}

impl UpdateBinding {
    /// Starts an update of the organization's binding that changes nothing yet.
    pub fn new(organization_id: i64) -> Self {
        Self { organization_id, ..Self::default() }
    }
}

/// The reply to an update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BindingUpdateReply {
    /// Id of the binding.
    pub id: i64,
    /// Number of the organization.
    pub organization_id: i64,
    /// True while the binding is in force.
    pub is_active: bool,
    /// True if uploads are stored on the server first and copied in the background.
    pub sync_enabled: bool,
    /// Code of the provider.
    pub storage_provider: String,
}
