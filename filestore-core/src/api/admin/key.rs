//! API keys in JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The word for "all organizations" in a key.
pub const ALL_ORGANIZATIONS: &str = "*";

/// The scopes that a key can have.
pub const KEY_SCOPES: [&str; 4] = ["read", "write", "delete", "admin"];

/// The body for POST `/admin/keys`.
///
/// ```
/// use filestore_core::api::CreateKey;
///
/// let shop = CreateKey::new(["42"], ["read", "write"]).name("the web shop").expires_in_s(86_400);
/// assert_eq!(shop.organizations, ["42"]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CreateKey {
    /// Display name, 1 to 255 characters (default `unnamed`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Organizations that the key can access: 1 to 100 ids, or only `*` for all.
    pub organizations: Vec<String>,
    /// Scopes: `read`, `write`, `delete`, `admin`.
    pub scopes: Vec<String>,
    /// Lifetime in seconds. Without this field, the key does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
}

impl CreateKey {
    /// Describes a key for these organizations (or `*`) with these scopes.
    pub fn new<O: Into<String>, S: Into<String>>(
        organizations: impl IntoIterator<Item = O>,
        scopes: impl IntoIterator<Item = S>,
    ) -> Self {
        Self {
            organizations: organizations.into_iter().map(Into::into).collect(),
            scopes: scopes.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Sets the display name of the key.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the key lifetime, in seconds.
    #[must_use]
    pub fn expires_in_s(mut self, secs: u64) -> Self {
        self.expires_in_s = Some(secs);
        self
    }
}

/// The body for POST `/admin/keys/{key_id}/rotate`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RotateKey {
    /// Seconds for which the old secret stays valid, 0 to 2592000 (default 0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap_s: Option<u64>,
}

impl RotateKey {
    /// Refuses the old secret at once.
    pub fn at_once() -> Self {
        Self::default()
    }

    /// Accepts the old secret for some more seconds.
    pub fn with_overlap_s(secs: u64) -> Self {
        Self { overlap_s: Some(secs) }
    }
}

/// An API key, without its secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct KeyReply {
    /// Key id.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Organizations that the key can access. Only `*` means all.
    pub organizations: Vec<String>,
    /// Scopes: `read`, `write`, `delete`, `admin`.
    pub scopes: Vec<String>,
    /// Creation time, in RFC 3339 (UTC, milliseconds), for example `2026-11-21T08:15:30.123Z`.
    pub created_at: String,
    /// Expiry time in RFC 3339. Null if the key does not expire.
    pub expires_at: Option<String>,
    /// Last rotation time. Null if the key was never rotated.
    pub rotated_at: Option<String>,
    /// Time until which the secret before the last rotation is valid. Null if that secret is refused.
    #[serde(default)]
    pub old_valid_until: Option<String>,
    /// Revocation time. Null if the key is not revoked.
    pub revoked_at: Option<String>,
    /// Time of the last request with the key, rounded to minutes. Null if the key was never used.
    pub last_used_at: Option<String>,
}

/// A new API key with its secret. No other reply shows the secret.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct NewKeyReply {
    /// The key, for the header `Authorization: Bearer`.
    pub key: String,
    /// All other fields of the key.
    #[serde(flatten)]
    pub about: KeyReply,
}

/// Hides the secret.
impl fmt::Debug for NewKeyReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKeyReply").field("about", &self.about).finish_non_exhaustive()
    }
}

impl NewKeyReply {
    /// Creates the reply with the secret.
    pub fn new(key: impl Into<String>, about: KeyReply) -> Self {
        Self { key: key.into(), about }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_is_not_printed_with_its_text() {
        let about = KeyReply { name: "shop".to_owned(), ..KeyReply::default() };
        let shown = format!("{:?}", NewKeyReply::new("fsk_secret", about));
        assert!(shown.contains("shop") && !shown.contains("fsk_secret"), "{shown}");
    }
}
