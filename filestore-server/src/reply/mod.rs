//! Replies: documents, redirects and problem documents, with their statuses and caching headers.
//!
//! # Statuses
//!
//! Only two places name HTTP statuses, which a test below checks:
//!
//! - `crate::error` has the statuses of the server's own refusals (4xx and 5xx). The core's errors get theirs
//!   from `ErrorKind::http_status`.
//! - [`success`] has a constructor for each other status (200, 201, 202, 204, 206, 302, 303, 304, 308).
//!
//! A handler calls a constructor or returns a [`Failure`].

mod request_id;
mod document;
mod error;
mod not_ready;
mod success;
mod packed;
mod unshared;

pub(crate) use document::NOSNIFF;
pub(crate) use error::{Failure, MERGE_PATCH, without_gone};
pub(crate) use not_ready::not_ready;
pub(crate) use packed::ok_packed;
pub(crate) use request_id::{RequestId, X_REQUEST_ID};
pub(crate) use success::{
    EVENT_STREAM, Empty, Unfinished, accepted, as_ok, created, created_again, empty, event_stream,
    found, json_text, metrics, moved, not_modified, ok, ok_streamed, page, preflight, see_other,
    with_etag,
};

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    /// Every source file beneath `folder` that is no file of tests.
    fn sources(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("tests") {
                continue;
            }
            if path.is_dir() {
                found.extend(sources(&path));
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("tests.rs")
            {
                found.push(path);
            }
        }
        found
    }

    #[test]
    fn only_replies_and_errors_name_statuses() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let own = root.join("reply");

        for path in sources(&root) {
            let names_one = std::fs::read_to_string(&path).unwrap().contains("StatusCode");
            let may = path.starts_with(&own) || path == root.join("error.rs");
            assert!(!names_one || may, "{} names a status", path.display());
        }
    }

    #[test]
    fn replies_name_no_status_of_a_failure() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/reply");
        let error = std::fs::read_to_string(own.join("error.rs")).unwrap();
        let success = std::fs::read_to_string(own.join("success.rs")).unwrap();

        for name in ["OK", "CREATED", "PARTIAL_CONTENT", "FOUND", "NOT_MODIFIED"] {
            assert!(!error.contains(&format!("StatusCode::{name}")), "{name} in error.rs");
        }
        for name in ["BAD_REQUEST", "NOT_FOUND", "CONFLICT", "SERVICE_UNAVAILABLE", "INTERNAL"] {
            assert!(!success.contains(&format!("StatusCode::{name}")), "{name} in success.rs");
        }
    }
}
