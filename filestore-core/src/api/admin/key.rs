//! Keys of the API on the wire.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The organizations of a key that reaches all of them.
pub const ALL_ORGANIZATIONS: &str = "*";

/// The body of POST `/admin/keys`.
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
    /// Name for people, 1 to 255 characters; `unnamed` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Organizations whose files the key reaches: 1 to 100 ids, or `*` alone for all.
    pub organizations: Vec<String>,
    /// Kinds of work: `read`, `write`, `delete`, `admin`.
    pub scopes: Vec<String>,
    /// Life of the key in seconds; without end if absent.
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

    /// Names the key.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the life of the key, in seconds.
    #[must_use]
    pub fn expires_in_s(mut self, secs: u64) -> Self {
        self.expires_in_s = Some(secs);
        self
    }
}

/// The body of POST `/admin/keys/{key_id}/rotate`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RotateKey {
    /// Seconds for which the text before stays good, 2592000 at most; 0 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap_s: Option<u64>,
}

impl RotateKey {
    /// Refuses the text before at once.
    pub fn at_once() -> Self {
        Self::default()
    }

    /// Accepts the text before for some seconds more.
    pub fn with_overlap_s(secs: u64) -> Self {
        Self { overlap_s: Some(secs) }
    }
}

/// A key, without its text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct KeyReply {
    /// Id of the key.
    pub id: String,
    /// Name that people gave it.
    pub name: String,
    /// Organizations whose files the key reaches; `*` alone is all.
    pub organizations: Vec<String>,
    /// Kinds of work that the key allows.
    pub scopes: Vec<String>,
    /// Time of its making.
    pub created_at: String,
    /// Time from which it is refused; null for a key without end.
    pub expires_at: Option<String>,
    /// Time of its last new text; null before the first rotation.
    pub rotated_at: Option<String>,
    /// Time of its revocation; null for a key that is not revoked.
    pub revoked_at: Option<String>,
    /// Time of the last request with it, to the minute; null before the first.
    pub last_used_at: Option<String>,
}

/// A key with its text, which no other reply shows.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct NewKeyReply {
    /// Text of the key, for the header `Authorization: Bearer`.
    pub key: String,
    /// Everything else about it.
    #[serde(flatten)]
    pub about: KeyReply,
}

/// Hides the text of the key.
impl fmt::Debug for NewKeyReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKeyReply").field("about", &self.about).finish_non_exhaustive()
    }
}

impl NewKeyReply {
    /// Shows a key with its text.
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
