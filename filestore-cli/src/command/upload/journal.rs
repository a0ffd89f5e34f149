//! The journal of a recursive upload. With a journal, you can interrupt an upload and resume it later.
//!
//! # Purpose
//! The first line names the upload: target, directory, organization and sub-system. Every other
//! line is the JSON of one acknowledged file. The idempotency keys contain the journal's id. If the
//! reply to an upload gets lost, the next run therefore does not store the file twice. A new
//! journal is a new upload.
//!
//! # Locking
//! A run locks the file, because two runs would upload every file twice.
//!
//! # Crash safety
//! A run writes a line after the target has acknowledged the file. If a crash cuts off a line, the
//! next run removes it and uploads the file again with the same idempotency key. Lines are not
//! flushed one by one, because the same keys cover lines that a power cut removes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use filestore_core::{FileId, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::walk::Found;
use crate::failure::{Failure, Result};

/// The version of the journal's format.
const VERSION: u32 = 1;

/// The first bytes of every journal.
const HEADER_START: &[u8] = b"{\"journal\":";

/// The error for a file that is not a journal.
const FOREIGN: &str = "the file is not an upload journal";

/// The upload of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Subject {
    pub(super) target: String,
    pub(super) directory: String,
    pub(super) organization_id: String,
    pub(super) sub_system: String,
}

/// A file with an acknowledged upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) found: Found,
    /// The SHA-256 of its bytes, in hex.
    pub(super) sha256: String,
    pub(super) file_id: String,
}

/// The record of a recursive upload.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    id: String,
    done: HashMap<PathBuf, Entry>,
}

/// Creates the idempotency keys of a journal.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    journal: String,
}

impl Keys {
    /// Returns the key for one content of one file, after the upload `previous` of the same file.
    ///
    /// The id of the previous upload matters if a file returns to an older content. Without the id,
    /// the server would return the stored reply of the older upload, which might be deleted by now.
    pub(super) fn of(&self, relative: &Path, sha256: &str, previous: Option<&str>) -> String {
        let parts = [self.journal.as_bytes(), relative.as_os_str().as_bytes(), sha256.as_bytes()];

        let mut hasher = Sha256::new();
        for part in parts.into_iter().chain(previous.map(str::as_bytes)) {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        format!("filestore-upload-{}", hex::encode(hasher.finalize()))
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    journal: u32,
    id: String,
    #[serde(flatten)]
    subject: Subject,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    path: String,
    /// The path's bytes, if the path is not Unicode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    size: u64,
    mtime_ns: i64,
    sha256: String,
    file_id: String,
}

impl Journal {
    /// Opens the journal at `path`, or starts a new one. Fails if the journal belongs to another
    /// upload or is in use, or if the file is not a journal.
    pub(super) fn open(path: &Path, subject: &Subject) -> Result<Self> {
        let mut file = open_locked(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|e| cannot_use(path, &e))?;

        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let cut_off = &text[whole..];
        let read = match whole {
            0 if !HEADER_START.starts_with(cut_off) && !cut_off.starts_with(HEADER_START) => {
                Err(FOREIGN.to_owned())
            }
            _ => read(&text[..whole], subject),
        };
        let (id, done) = read.map_err(|why| unusable(path, &why))?;
        // Not earlier, because until here it could be any file.
        if !cut_off.is_empty() {
            file.set_len(whole as u64).map_err(|e| cannot_use(path, &e))?;
        }

        let mut journal = Self { file, path: path.to_owned(), id: id.unwrap_or_default(), done };
        if journal.id.is_empty() {
            journal.begin(subject)?;
        }

        Ok(journal)
    }

    /// Returns the file as the target acknowledged it.
    pub(super) fn entry(&self, relative: &Path) -> Option<&Entry> {
        self.done.get(relative)
    }

    /// Returns the source of idempotency keys for this journal.
    pub(super) fn keys(&self) -> Keys {
        Keys { journal: self.id.clone() }
    }

    /// Adds an acknowledged file.
    pub(super) fn add(&mut self, entry: Entry) -> Result<()> {
        let path = entry.found.relative.as_os_str();
        let line = Line {
            path: path.to_string_lossy().into_owned(),
            path_hex: path.to_str().is_none().then(|| hex::encode(path.as_bytes())),
            size: entry.found.size_bytes,
            mtime_ns: entry.found.modified_ns,
            sha256: entry.sha256.clone(),
            file_id: entry.file_id.clone(),
        };

        self.write(&line)?;
        self.done.insert(entry.found.relative.clone(), entry);
        Ok(())
    }

    fn begin(&mut self, subject: &Subject) -> Result<()> {
        self.id = FileId::generate(Timestamp::now()).to_string();
        self.write(&Header { journal: VERSION, id: self.id.clone(), subject: subject.clone() })?;
        // The id must be durable before uploads use it.
        self.file.sync_all().map_err(|e| self.failed(&e))
    }

    fn write<T: Serialize>(&mut self, line: &T) -> Result<()> {
        let mut text =
            serde_json::to_vec(line).expect("a line has string keys and no failing parts");
        text.push(b'\n');
        self.file.write_all(&text).map_err(|e| self.failed(&e))
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        Failure::io(format!("cannot write the journal {}", self.path.display()), error)
    }
}

/// Opens or creates the file of a journal, and locks it for this run.
fn open_locked(path: &Path) -> Result<File> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let missing = parent.ancestors().take_while(|dir| !named(dir).exists()).count();
    std::fs::create_dir_all(parent).map_err(|e| cannot_use(path, &e))?;
    let opened = OpenOptions::new().read(true).append(true).create(true).open(path);
    let file = opened.map_err(|e| cannot_use(path, &e))?;

    // The names of the journal and of new directories must be durable too.
    for dir in parent.ancestors().take(missing + 1) {
        let synced = File::open(named(dir)).and_then(|dir| dir.sync_all());
        synced.map_err(|e| cannot_use(path, &e))?;
    }

    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = format!("another upload is using the journal {}", path.display());
            Err(Failure::failed(message).hint("wait until it ends"))
        }
        Err(TryLockError::Error(error)) => Err(cannot_use(path, &error)),
    }
}

/// Returns `.` for the working directory, which is the empty ancestor of a relative path.
fn named(dir: &Path) -> &Path {
    if dir.as_os_str().is_empty() { Path::new(".") } else { dir }
}

fn cannot_use(path: &Path, error: &std::io::Error) -> Failure {
    Failure::io(format!("cannot use the journal {}", path.display()), error)
}

/// The acknowledged files by relative path.
type Done = HashMap<PathBuf, Entry>;

/// Reads the id and the entries from the complete lines of a journal. A new journal has no id yet.
fn read(text: &[u8], subject: &Subject) -> Result<(Option<String>, Done), String> {
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return Ok((None, Done::new())) };

    let header: Header = serde_json::from_slice(first).map_err(|_| FOREIGN.to_owned())?;
    if header.journal != VERSION {
        return Err(format!("the journal has the unknown version {}", header.journal));
    }

    if header.subject != *subject {
        let Subject { target, directory, organization_id, sub_system } = header.subject;
        let owner = format!("organization {organization_id}, {sub_system}");
        return Err(format!("it belongs to another upload: {directory} for {owner}, to {target}"));
    }

    let mut done = Done::new();
    for (number, line) in (2..).zip(lines) {
        let entry = serde_json::from_slice::<Line>(line).ok().and_then(Line::entry);
        let entry = entry.ok_or_else(|| format!("line {number} is unreadable"))?;
        done.insert(entry.found.relative.clone(), entry);
    }

    Ok((Some(header.id), done))
}

impl Line {
    fn entry(self) -> Option<Entry> {
        let relative = match &self.path_hex {
            Some(hex) => PathBuf::from(OsString::from_vec(hex::decode(hex).ok()?)),
            None => PathBuf::from(self.path),
        };
        let found = Found { relative, size_bytes: self.size, modified_ns: self.mtime_ns };
        Some(Entry { found, sha256: self.sha256, file_id: self.file_id })
    }
}

fn unusable(path: &Path, why: &str) -> Failure {
    Failure::failed(format!("cannot resume with the journal {}: {why}", path.display()))
        .hint("use another --journal. With a new journal, filestore uploads all files again")
}

/// Returns the default path of a journal. The path is in the user's state directory (XDG Base Directory
/// Specification), never in the uploaded tree.
pub(super) fn default_path(subject: &Subject) -> Result<PathBuf> {
    let state = state_directory().ok_or_else(|| {
        Failure::failed("cannot choose a journal file, because XDG_STATE_HOME and HOME are not set")
            .hint("use --journal PATH")
    })?;
    let subject = serde_json::to_vec(subject).expect("a subject is four strings");

    let digest = hex::encode(&Sha256::digest(subject)[..12]);
    Ok(state.join("filestore").join(format!("upload-{digest}.jsonl")))
}

/// Returns the user's state directory.
pub(super) fn state_directory() -> Option<PathBuf> {
    absolute_path_in("XDG_STATE_HOME")
        .or_else(|| absolute_path_in("HOME").map(|home| home.join(".local/state")))
}

fn absolute_path_in(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> Subject {
        Subject {
            target: "http://h".into(),
            directory: "/photos".into(),
            organization_id: "42".into(),
            sub_system: "gallery".into(),
        }
    }

    fn entry(path: &[u8]) -> Entry {
        let relative = PathBuf::from(OsString::from_vec(path.to_vec()));
        let found = Found { relative, size_bytes: 7, modified_ns: -5 };
        Entry { found, sha256: "ab".repeat(32), file_id: "01J".into() }
    }

    #[test]
    fn a_journal_is_read_back_whatever_bytes_a_path_has() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/j.jsonl");
        let entries = [entry("é\"\n.txt".as_bytes()), entry(b"\xFF\xFE.bin")];
        let mut journal = Journal::open(&path, &subject()).unwrap();
        let key = journal.keys().of(Path::new("a"), "00", None);

        for entry in &entries {
            journal.add(entry.clone()).unwrap();
        }
        drop(journal);

        let journal = Journal::open(&path, &subject()).unwrap();
        for entry in &entries {
            assert_eq!(journal.entry(&entry.found.relative), Some(entry));
        }
        assert_eq!(journal.keys().of(Path::new("a"), "00", None), key);
    }

    #[test]
    fn a_line_that_was_cut_off_is_forgotten_and_the_next_one_is_not_glued_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");

        let mut journal = Journal::open(&path, &subject()).unwrap();
        journal.add(entry(b"a")).unwrap();
        drop(journal);
        let mut text = std::fs::read(&path).unwrap();
        let whole = text.len();

        text.extend_from_slice(b"{\"path\":\"b\",\"si");
        std::fs::write(&path, &text).unwrap();
        let mut journal = Journal::open(&path, &subject()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), whole as u64);

        journal.add(entry(b"c")).unwrap();
        drop(journal);
        let journal = Journal::open(&path, &subject()).unwrap();
        assert!(journal.entry(Path::new("a")).is_some() && journal.entry(Path::new("c")).is_some());
    }

    #[test]
    fn a_journal_of_another_upload_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        drop(Journal::open(&path, &subject()).unwrap());
        let other = Subject { organization_id: "43".into(), ..subject() };
        let failure = Journal::open(&path, &other).unwrap_err();
        assert!(failure.to_string().contains("another upload"), "{failure}");
    }

    #[test]
    fn two_runs_cannot_share_a_journal() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let _first = Journal::open(&path, &subject()).unwrap();
        let failure = Journal::open(&path, &subject()).unwrap_err();
        assert!(failure.to_string().contains("another upload is using"), "{failure}");
    }

    #[test]
    fn a_file_that_is_no_journal_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.txt");
        for text in ["shopping\nlist", "shopping", "{\n}"] {
            std::fs::write(&path, text).unwrap();
            assert!(Journal::open(&path, &subject()).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_journal_that_was_cut_off_in_its_first_line_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        for text in ["{\"jour", "{\"journal\":1,\"id\":\"01"] {
            std::fs::write(&path, text).unwrap();
            drop(Journal::open(&path, &subject()).unwrap());
            Journal::open(&path, &subject()).unwrap();
        }
    }

    #[test]
    fn the_key_depends_on_path_content_previous_upload_and_journal() {
        let dir = tempfile::tempdir().unwrap();
        let one = Journal::open(&dir.path().join("1"), &subject()).unwrap();
        let two = Journal::open(&dir.path().join("2"), &subject()).unwrap();
        let key = one.keys().of(Path::new("a"), "00", None);
        assert_ne!(key, one.keys().of(Path::new("b"), "00", None));
        assert_ne!(key, one.keys().of(Path::new("a"), "01", None));
        assert_ne!(key, one.keys().of(Path::new("a"), "00", Some("01J")));
        assert_ne!(key, two.keys().of(Path::new("a"), "00", None));
    }
}
