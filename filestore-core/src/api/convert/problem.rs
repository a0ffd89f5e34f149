//! Errors as problem documents.

use crate::api::{Problem, field_name};
use crate::domain::error::Error;

/// Makes the problem document of an error, for the request `request_id`. The document has the message and the
/// details, but nothing of the source.
pub fn problem_of(error: &Error, request_id: impl Into<String>) -> Problem {
    let (status, details) = (error.kind().http_status(), error.details());
    let mut problem = Problem::new(error.kind(), status.as_u16(), request_id);
    // Only the 460 of tus is not registered.
    status.canonical_reason().unwrap_or("Checksum Mismatch").clone_into(&mut problem.title);
    error.message().clone_into(&mut problem.detail);
    problem.field = field_name(error);
    problem.item = details.item;
    problem.allowed.clone_from(&details.allowed);
    problem.limit = details.limit;
    problem.from.clone_from(&details.from);
    problem.to.clone_from(&details.to);
    problem
}
