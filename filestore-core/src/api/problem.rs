//! Errors on the wire: `application/problem+json` (RFC 9457) with the contract's members.

use serde::{Deserialize, Serialize};

use super::vocabulary::ErrorCode;

/// The body of every error reply: a problem document (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Problem {
    /// Type of the problem: `urn:filestore:problem:<code>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// HTTP status in words.
    pub title: String,
    /// HTTP status as a number.
    pub status: u16,
    /// Explanation of what is wrong with this request.
    pub detail: String,
    /// URN of this request: `urn:request:<request id>`.
    pub instance: String,
    /// Stable code to branch on.
    pub code: ErrorCode,
    /// Id under which the server logged the request, as in `X-Request-Id`.
    pub request_id: String,
    /// Field, parameter or key at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Index of the batch item at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// Values that are allowed instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// Limit that was passed, in the unit of the field (bytes for sizes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// State that a refused transition would have left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// State that a refused transition would have entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl Problem {
    /// Makes the document for a code; type and instance follow from the arguments, and title,
    /// detail and the optional members are to be filled in.
    pub fn new(code: impl Into<ErrorCode>, status: u16, request_id: impl Into<String>) -> Self {
        let (code, request_id) = (code.into(), request_id.into());

        Self {
            kind: format!("urn:filestore:problem:{code}"),
            title: String::new(),
            status,
            detail: String::new(),
            instance: format!("urn:request:{request_id}"),
            code,
            request_id,
            field: None,
            item: None,
            allowed: Vec::new(),
            limit: None,
            from: None,
            to: None,
        }
    }
}
