//! The audit log: who requested which change, when, and with which result. Each line is one JSON object.
//!
//! # Purpose
//! Every request that makes a change or creates a signed URL is recorded, even if it was refused. The table
//! of routes lists the requests that write a line. A line contains no secret: no key and no query. It
//! contains the JSON body of an admitted request, even if the route refused it. Exception: the body of an
//! edit is omitted, because it contains the application's metadata.
//!
//! # Unknown callers
//! Callers without a valid key cannot fill the log, see [`strangers`]. Lines are printable ASCII, so that no
//! path or body can change the display of a terminal or an editor.
//!
//! Lines go to their own file if it is configured. Otherwise they go to the log with the target
//! `filestore_server::audit`.
//!
//! # Locking
//! One thread writes the file. Requests send their lines through a bounded channel, and never wait. If the
//! channel is full, the line goes to the log.
//!
//! # Crash safety
//! A line is one write to the end of the file, so lines of several processes do not mix. Lines are not
//! flushed one by one, so a power cut can lose the last seconds.

mod file;
mod strangers;

use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use file::AuditFile;
use strangers::Strangers;

/// The destination of audit lines.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    file: Option<AuditFile>,
    strangers: Strangers,
}

/// One line.
#[derive(Debug, Serialize)]
pub(crate) struct Entry<'a> {
    /// The time of the outcome, ISO 8601 UTC with milliseconds.
    pub(crate) time: String,
    /// The request's id, as in its reply and in the log.
    pub(crate) request_id: String,
    /// The trace of the request, if its client named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace_id: Option<&'a str>,
    /// The caller.
    #[serde(flatten)]
    pub(crate) actor: Actor,
    /// The client's address. Absent on the admin socket, and `unknown` if a proxy did not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<String>,
    /// The method and the path template, as in the reference.
    pub(crate) action: String,
    /// The requested path, without its query.
    pub(crate) path: &'a str,
    /// The request's body, if it was JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<Value>,
    /// Facts that are not in the path or body: the file, the result for the file, each part's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) report: Option<Map<String, Value>>,
    /// The reply's status. Absent if the client disconnected before the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// The outcome of the request.
    pub(crate) result: Outcome,
}

/// The caller of a request.
#[derive(Debug, Serialize)]
#[serde(tag = "actor", rename_all = "snake_case")]
pub(crate) enum Actor {
    /// A caller with a key.
    Key {
        /// The key's id.
        key_id: String,
    },
    /// A caller with a signed URL.
    SignedUrl,
    /// A process with access to the admin socket.
    AdminSocket,
    /// An unknown caller: the server has no keys, or the request has no valid key.
    Anonymous,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// The request succeeded.
    Done,
    /// The request was accepted and continues. A later line with the same request id has the final outcome.
    Begun,
    /// The client disconnected before the reply. The request may have succeeded.
    Abandoned,
    /// The request was invalid or not allowed.
    Refused,
    /// The service failed.
    Failed,
}

impl Outcome {
    /// Returns the outcome for a status.
    pub(crate) fn of(status: u16) -> Self {
        match status {
            0..400 => Self::Done,
            400..500 => Self::Refused,
            _ => Self::Failed,
        }
    }
}

impl Audit {
    /// Writes lines to the file at `path`, and creates it if necessary. Without a path, writes to the log.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let file = path.map(AuditFile::open).transpose()?;
        Ok(Self { file, strangers: Strangers::default() })
    }

    /// Tests whether [`open`](Self::open) can use the file at `path`. Creates nothing.
    pub(crate) fn check(path: &Path) -> io::Result<()> {
        AuditFile::check(path)
    }

    /// Records an entry.
    pub(crate) fn write(&self, entry: &Entry<'_>) {
        for summary in self.strangers.take_due() {
            self.append(&summary);
        }
        self.append(entry);
    }

    /// Records the refusal of an unknown caller at `address`, as a separate line or as part of a count.
    pub(crate) fn write_of_stranger(&self, entry: &Entry<'_>, address: IpAddr) {
        for summary in self.strangers.take_due() {
            self.append(&summary);
        }
        if self.strangers.admit(address, &entry.time) {
            self.append(entry);
        }
    }

    fn append(&self, line: &impl Serialize) {
        let line =
            serde_json::to_string(line).expect("an entry has string keys and no failing parts");
        let line = in_ascii(line);
        let left = match &self.file {
            Some(file) => file.write(line),
            None => Some(line),
        };
        if let Some(line) = left {
            tracing::info!(target: "filestore_server::audit", "{line}");
        }
    }
}

/// Writes the counts of the last minute.
impl Drop for Audit {
    fn drop(&mut self) {
        for summary in self.strangers.take_all() {
            self.append(&summary);
        }
    }
}

/// Escapes all characters in a JSON text that are not printable ASCII (RFC 8259 section 7): C1 control
/// characters, which terminals obey, characters that change the text direction, and additional line ends.
/// JSON is ASCII outside strings.
fn in_ascii(json: String) -> String {
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return json;
    }

    let mut escaped = String::with_capacity(json.len() * 2);
    for character in json.chars() {
        if matches!(character, ' '..='~') {
            escaped.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        }
    }
    escaped
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
    fn a_line_is_printable_ascii_and_reads_back() {
        let path = "/é\u{9b}31m\u{7f}\u{202e}\u{2028}\u{85}😀";
        let line = in_ascii(serde_json::to_string(&entry(path)).unwrap());
        assert!(line.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{line}");
        let escaped = r#""/\u00e9\u009b31m\u007f\u202e\u2028\u0085\ud83d\ude00""#;
        assert!(line.contains(escaped), "{line}");
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["path"], path);
    }

    #[test]
    fn the_counts_of_strangers_are_written_at_the_end_of_the_server() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let audit = Audit::open(Some(&path)).unwrap();
        for _ in 0..200 {
            audit.write_of_stranger(&entry("/x"), "192.0.2.1".parse().unwrap());
        }
        drop(audit);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.ends_with("\"result\":\"refused\"}\n") && text.contains("\"repeated\":199"));
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
