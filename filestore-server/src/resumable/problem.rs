//! The problem types that the drafts register ("HTTP Problem Types" in their section "IANA Considerations").

use filestore_core::api::{ErrorCode, Problem};

/// The registry, up to the name of a type.
const REGISTRY: &str = "https://iana.org/assignments/http-problem-types#";

/// Gives a problem its registered type, if it has one. `expected` is the offset of the upload, and `provided` that of
/// the request.
///
/// The drafts recommend 400 for a completed upload. The status stays that of the code.
pub(crate) fn register(problem: &mut Problem, expected: Option<u64>, provided: Option<u64>) {
    let (name, title) = match problem.code {
        // A request that a newer one ended names the field: it can begin at its offset again.
        ErrorCode::UploadOffsetMismatch if expected == provided && problem.field.is_none() => {
            ("completed-upload", "Upload Is Completed")
        }
        ErrorCode::UploadOffsetMismatch => {
            (problem.expected_offset, problem.provided_offset) = (expected, provided);
            ("mismatching-upload-offset", "Mismatching Upload Offset")
        }
        ErrorCode::UploadLengthInconsistent => {
            ("inconsistent-upload-length", "Inconsistent Upload Length Values")
        }
        _ => return,
    };
    problem.kind = format!("{REGISTRY}{name}");
    title.clone_into(&mut problem.title);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_is_complete_only_if_no_field_is_wrong() {
        for (field, kind) in
            [(None, "completed-upload"), (Some("Upload-Offset"), "mismatching-upload-offset")]
        {
            let mut problem = Problem::new(ErrorCode::UploadOffsetMismatch, 409, "id");
            problem.field = field.map(str::to_owned);
            register(&mut problem, Some(0), Some(0));
            assert!(problem.kind.ends_with(kind), "{}", problem.kind);
        }
    }
}
