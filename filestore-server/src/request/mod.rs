//! Requests: what handlers see of one, and what they read from its body.

pub(crate) mod call;
pub(crate) mod base;
pub(crate) mod incoming;
pub(crate) mod form;
pub(crate) mod fields;
pub(crate) mod json;
pub(crate) mod object;
pub(crate) mod preconditions;
pub(crate) mod room;
pub(crate) mod upload_claims;
pub(crate) mod signed;
