//! Errors in JSON: `application/problem+json` (RFC 9457).

use serde::{Deserialize, Serialize};

use super::vocabulary::ErrorCode;

/// The body of every error reply: a problem document (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Problem {
    /// Problem type: `urn:filestore:problem:<code>`. In replies to the drafts of the IETF for resumable uploads, the
    /// type that the draft registers, if there is one.
    #[serde(rename = "type")]
    pub kind: String,
    /// HTTP status in words, for example `Not Found`. For a registered type, the title of that type.
    pub title: String,
    /// HTTP status, for example 404.
    pub status: u16,
    /// Explanation for people.
    pub detail: String,
    /// Request URN: `urn:request:<request id>`.
    pub instance: String,
    /// Stable error code. Use this field to decide in a program.
    pub code: ErrorCode,
    /// Request id, as in the header `X-Request-Id` and in the server's log.
    pub request_id: String,
    /// Field, parameter or key with the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Index of the batch item with the error, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// Allowed values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// Limit that the request exceeded. Sizes are in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Current state, if the state does not allow the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Requested state, if the state does not allow the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Offset at which the resumable upload continues. Only in replies to the drafts of the IETF.
    #[serde(rename = "expected-offset", default, skip_serializing_if = "Option::is_none")]
    pub expected_offset: Option<u64>,
    /// Offset in the request, next to `expected-offset`.
    #[serde(rename = "provided-offset", default, skip_serializing_if = "Option::is_none")]
    pub provided_offset: Option<u64>,
}

impl Problem {
    /// Creates the document for a code, with its type and instance. Fill in title, detail and the
    /// optional fields.
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
            expected_offset: None,
            provided_offset: None,
        }
    }
}
