//! Errors on the wire: `application/problem+json` (RFC 9457) with the contract's members.

use serde::{Deserialize, Serialize};

/// A problem document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// `urn:filestore:problem:<code>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong with this request.
    pub detail: String,
    /// `urn:request:<request id>`.
    pub instance: String,
    /// Stable snake_case code.
    pub code: String,
    /// As in `X-Request-Id`.
    pub request_id: String,
    /// The field, parameter or key at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The index of the batch item at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// The allowed values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// The limit that was passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The state a refused transition would have left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The state a refused transition would have entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}
