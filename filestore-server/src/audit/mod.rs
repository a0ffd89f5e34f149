//! The audit log: who did what, when, and with which result, as one JSON object per line.
//!
//! # Purpose
//! Deletions, changes of bindings and keys, and administration are on record apart from the log of
//! requests, also when they were refused. A line holds no secret: no key and no query. It holds the body of
//! a request that was let in and is JSON, whether or not its route took it.
//!
//! Lines go to a file of their own if one is configured, else to the log under the target
//! `filestore_server::audit`.
//!
//! # Locking
//! One thread writes the file. Requests hand their lines over through a bounded channel and never wait:
//! a line that finds the channel full goes to the log.
//!
//! # Crash safety
//! A line is one write to the end of the file, so that lines of several processes do not mix. Lines are
//! not flushed one by one: a power cut may take the last seconds.

mod file;
mod record;

use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use file::AuditFile;
pub(crate) use record::Audited;

/// The place that audit lines go to.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    file: Option<AuditFile>,
}

/// One line.
#[derive(Debug, Serialize)]
pub(crate) struct Entry<'a> {
    /// The instant of the outcome, ISO 8601 UTC with milliseconds.
    pub(crate) time: String,
    /// The id of the request, as its reply and the log have it.
    pub(crate) request_id: String,
    /// The trace that the request belongs to, if its client named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace_id: Option<&'a str>,
    /// The one who asked.
    #[serde(flatten)]
    pub(crate) actor: Actor,
    /// The address of the client; absent on the admin socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<String>,
    /// The method and the template of the path, as the reference has them.
    pub(crate) action: String,
    /// The path as it was asked for, without its query.
    pub(crate) path: &'a str,
    /// The body of the request, where it was JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<Value>,
    /// The result of each part of the request, where parts may end in different ways.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) report: Option<&'a Value>,
    /// The status of the reply; absent if the client went away before there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// The end of it.
    pub(crate) result: Outcome,
}

/// The one who asked for something.
#[derive(Debug, Serialize)]
#[serde(tag = "actor", rename_all = "snake_case")]
pub(crate) enum Actor {
    /// The holder of a key.
    Key {
        /// The id of the key.
        key_id: String,
    },
    /// The holder of a signed URL.
    SignedUrl,
    /// A process that may open the admin socket.
    AdminSocket,
    /// Anybody: the server has no keys, or the request named none that is valid.
    Anonymous,
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// It was done.
    Done,
    /// It was accepted and goes on: another line with the same request id says how it ended.
    Begun,
    /// The client went away before the reply: the request may have been done.
    Abandoned,
    /// The request was at fault, or not allowed.
    Refused,
    /// The service was at fault.
    Failed,
}

impl Outcome {
    /// Returns the outcome that a status stands for.
    pub(crate) fn of(status: u16) -> Self {
        match status {
            0..400 => Self::Done,
            400..500 => Self::Refused,
            _ => Self::Failed,
        }
    }
}

impl Audit {
    /// Writes lines to the file at `path`, which is created if it is missing; without one, to the log.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        Ok(Self { file: path.map(AuditFile::open).transpose()? })
    }

    /// Puts an entry on record.
    pub(crate) fn write(&self, entry: &Entry<'_>) {
        let line =
            serde_json::to_string(entry).expect("an entry has string keys and no failing parts");
        let left = match &self.file {
            Some(file) => file.write(line),
            None => Some(line),
        };
        if let Some(line) = left {
            tracing::info!(target: "filestore_server::audit", "{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> Entry<'_> {
        Entry {
            time: "2026-11-22T08:00:00.000Z".to_owned(),
            request_id: "01R".to_owned(),
            trace_id: None,
            actor: Actor::Key { key_id: "01K".to_owned() },
            client: Some("192.0.2.1".to_owned()),
            action: "DELETE /files/{file_id}".to_owned(),
            path,
            request: None,
            report: None,
            status: Some(200),
            result: Outcome::of(200),
        }
    }

    #[test]
    fn an_entry_is_one_line_of_json_whatever_the_path_holds() {
        let line = serde_json::to_string(&entry("/api/v1/files/a\nb\u{1b}")).unwrap();
        assert_eq!(
            line,
            r#"{"time":"2026-11-22T08:00:00.000Z","request_id":"01R","actor":"key","key_id":"01K","client":"192.0.2.1","action":"DELETE /files/{file_id}","path":"/api/v1/files/a\nb\u001b","status":200,"result":"done"}"#
        );
    }

    #[test]
    fn the_file_is_private_and_is_followed_by_a_new_one_when_it_is_rotated() {
        use std::os::unix::fs::PermissionsExt as _;

        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("audit.jsonl"), dir.path().join("audit.jsonl.1"));
        let audit = Audit::open(Some(&path)).unwrap();
        audit.write(&entry("/1"));
        while std::fs::read(&path).unwrap().is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        std::fs::rename(&path, &old).unwrap();
        audit.write(&entry("/2"));
        drop(audit);
        assert!(std::fs::read_to_string(&old).unwrap().contains("\"/1\""));
        let new = std::fs::read_to_string(&path).unwrap();
        assert!(new.contains("\"/2\"") && new.ends_with("}\n"), "{new}");
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Audit::open(Some(&dir.path().join("absent/audit.jsonl"))).is_err());
    }
}
