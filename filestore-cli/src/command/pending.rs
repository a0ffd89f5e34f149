//! Notes of unfinished uploads, so that the same command continues an upload.
//!
//! # Purpose
//! A server keeps the bytes of an unfinished upload under its idempotency key. A note in the user's state directory
//! keeps this key until the upload ends. The note contains no API key and no URL.
//!
//! # Names
//! The name of a note is the digest of everything that the upload depends on, for example the size and the
//! modification time of the file. So a changed file, or a command with other options, starts a new upload.
//!
//! # Locking
//! A run locks its note. A second run of the same command at the same time uploads the file on its own.
//!
//! # Crash safety
//! A note that a crash cuts off is replaced. The upload then starts again.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use filestore_core::{FileId, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::journal::state_directory;

/// The size from which a file has a note, in bytes: the client sends such files in pieces.
pub(super) const FROM_BYTES: u64 = 16 << 20;

/// The start of the name of each note.
const PREFIX: &str = "pending-";

/// The time after which a server no longer has an unfinished upload by default.
const KEPT: Duration = Duration::from_hours(7 * 24);

/// The note of an upload, locked for this run.
#[derive(Debug)]
pub(super) struct Pending {
    /// Held for its lock.
    _file: File,
    path: PathBuf,
    key: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Note {
    key: String,
}

impl Pending {
    /// Opens the note of the upload that `subject` describes, or writes a new note. `None` if there can be no note:
    /// then the upload cannot continue later.
    pub(super) fn open(subject: &impl Serialize) -> Option<Self> {
        let directory = state_directory()?.join("filestore");
        Self::open_in(&directory, subject).ok().flatten()
    }

    fn open_in(directory: &Path, subject: &impl Serialize) -> std::io::Result<Option<Self>> {
        std::fs::create_dir_all(directory)?;
        remove_old(directory);
        let digest = hex::encode(&Sha256::digest(serde_json::to_vec(subject)?)[..12]);
        let path = directory.join(format!("{PREFIX}{digest}.json"));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)?;
        if file.try_lock().is_err() {
            return Ok(None);
        }

        let mut text = String::new();
        file.read_to_string(&mut text)?;
        if let Ok(Note { key }) = serde_json::from_str(&text) {
            return Ok(Some(Self { _file: file, path, key }));
        }
        let key = format!("filestore-upload-{}", FileId::generate(Timestamp::now()));
        let text = serde_json::to_vec(&Note { key: key.clone() })?;
        // A note that was cut off has the length 0 now.
        file.set_len(0)?;
        file.write_all_at(&text, 0)?;
        Ok(Some(Self { _file: file, path, key }))
    }

    /// Returns the idempotency key.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Removes the note, because the upload has ended.
    pub(super) fn end(self) {
        // A note that stays finds the finished upload for a day, and is old after a week.
        std::fs::remove_file(&self.path).ok();
    }
}

/// Removes notes of uploads that no server has any more.
fn remove_old(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let is_note = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = modified.is_ok_and(|at| at.elapsed().is_ok_and(|passed| passed > KEPT));
        if is_note && is_old {
            // Another run may be faster.
            std::fs::remove_file(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn open(directory: &Path, subject: &str) -> Option<Pending> {
        Pending::open_in(directory, &subject).unwrap()
    }

    #[test]
    fn the_same_upload_has_one_key_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let first = open(dir.path(), "a").unwrap();
        let key = first.key().to_owned();
        let mode = std::fs::metadata(&first.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(open(dir.path(), "a").is_none(), "another run has the note");
        assert_ne!(open(dir.path(), "b").unwrap().key(), key);
        drop(first);

        let again = open(dir.path(), "a").unwrap();
        assert_eq!(again.key(), key);
        again.end();
        assert_ne!(open(dir.path(), "a").unwrap().key(), key);
    }

    #[test]
    fn a_note_that_was_cut_off_is_replaced_and_an_old_note_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = open(dir.path(), "a").unwrap().path.clone();
        std::fs::write(&path, "{\"key\":\"filest").unwrap();
        let key = open(dir.path(), "a").unwrap().key().to_owned();
        assert_eq!(open(dir.path(), "a").unwrap().key(), key);

        let file = File::open(&path).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        file.set_modified(modified - Duration::from_hours(8 * 24)).unwrap();
        open(dir.path(), "b").unwrap();
        assert!(!path.exists());
    }
}
