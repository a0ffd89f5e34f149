//! Providers and bindings in JSON. Fields are camelCase.

use serde::{Deserialize, Serialize};

use super::id::OrganizationNumber;

/// A storage provider, visible to every caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProviderReply {
    /// Provider code, for example `LOCAL` or `s3-eu`.
    pub provider_code: String,
    /// The provider's display name.
    pub provider_name: String,
}

/// The body for POST `/organization-storage-bindings/create`.
///
/// ```
/// use filestore_core::api::CreateBinding;
///
/// let mut binding = CreateBinding::new(42.try_into()?, "Example & Sons", "s3-eu");
/// binding.sync_enabled = true;
/// # Ok::<(), filestore_core::api::InvalidId>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateBinding {
    /// Organization number, 1 to 2^53 − 1.
    pub organization_id: OrganizationNumber,
    /// Organization name, 1 to 255 characters.
    pub organization_name: String,
    /// Provider code, for example `s3-eu`.
    pub storage_provider: String,
    /// If true, an upload is stored on the server and copied to the provider later. If false, it
    /// goes to the provider before the reply.
    pub sync_enabled: bool,
}

impl CreateBinding {
    /// Binds an organization to a provider, without background sync. An upload returns when the
    /// provider has the file.
    pub fn new(
        organization_id: OrganizationNumber,
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

/// A binding, in listings and in the reply to its creation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BindingReply {
    /// Binding id.
    pub id: i64,
    /// Organization number.
    pub organization_id: OrganizationNumber,
    /// Organization name.
    pub organization_name: String,
    /// Provider code.
    pub storage_provider: String,
    /// If true, the server stores uploads first and copies them in the background.
    pub sync_enabled: bool,
    /// True while the binding is active.
    pub is_active: bool,
    /// Creation time, in RFC 3339 (UTC, milliseconds), for example `2026-11-21T08:15:30.123Z`.
    pub effective_from: String,
    /// Termination time in RFC 3339. Null while the binding is active.
    pub effective_to: Option<String>,
}

/// The body for PUT `/organization-storage-bindings/update`. Absent fields do not change.
///
/// ```
/// use filestore_core::api::UpdateBinding;
///
/// let mut update = UpdateBinding::new(42.try_into()?);
/// update.is_active = Some(false);
/// # Ok::<(), filestore_core::api::InvalidId>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateBinding {
    /// Organization number of the binding to change.
    pub organization_id: OrganizationNumber,
    /// New organization name, 1 to 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization_name: Option<String>,
    /// New provider code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_provider: Option<String>,
    /// New sync flag. If true, the server stores uploads first and copies them in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_enabled: Option<bool>,
    /// `false` ends the binding. `true` resumes the newest binding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
}

impl UpdateBinding {
    /// Creates an update without changes. Set the fields that you want to change.
    pub fn new(organization_id: OrganizationNumber) -> Self {
        Self {
            organization_id,
            organization_name: None,
            storage_provider: None,
            sync_enabled: None,
            is_active: None,
        }
    }
}

/// The reply to an update of a binding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BindingUpdateReply {
    /// Binding id.
    pub id: i64,
    /// Organization number.
    pub organization_id: OrganizationNumber,
    /// True while the binding is active.
    pub is_active: bool,
    /// If true, the server stores uploads first and copies them in the background.
    pub sync_enabled: bool,
    /// Provider code.
    pub storage_provider: String,
}
