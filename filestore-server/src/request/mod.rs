//! Requests: the handlers' view of a request, and the readers of its body.

pub(crate) mod call;
pub(crate) mod gate;
pub(crate) mod log_sight;
pub(crate) mod notes;
pub(crate) mod incoming;
pub(crate) mod form;
pub(crate) mod fields;
pub(crate) mod json;
pub(crate) mod object;
pub(crate) mod preconditions;
pub(crate) mod upload_claims;
pub(crate) mod signed;
