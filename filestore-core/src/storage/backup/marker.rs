//! The marker of a snapshot directory, with the format version and the directory's id.
//!
//! # Format
//! Lines with a word and a value: `format 1`, then `id` and a ULID. Markers of earlier versions have no id.
//! The next snapshot adds it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::files::{BACKING_UP, READING, full, write_durably};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::DestinationId;

pub(super) const MARKER: &str = "filestore-backup";

/// The temporary name of a marker while it is written.
const NEW: &str = "filestore-backup.new";

/// The line that identifies a directory of snapshots.
pub(super) const FORMAT: &str = "format 1";

/// Returns true if a directory is marked as a directory of snapshots.
pub(super) fn is_in(path: &Path) -> bool {
    path.join(MARKER).is_file()
}

/// Marks an empty directory as a directory of snapshots, durably. The directory has no id yet.
pub(super) fn make(path: &Path) -> Result<()> {
    write_durably(&path.join(MARKER), &format!("{FORMAT}\n"))
}

/// Reads the id of a snapshot directory. `None` if it has no id yet. `Unusable` if the id is invalid.
pub(super) fn read_id(path: &Path) -> Result<Option<DestinationId>> {
    let text = match fs::read_to_string(path.join(MARKER)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(READING, error)),
    };

    let id = text.lines().find_map(|line| line.strip_prefix("id "));
    id.map(str::parse).transpose().map_err(|_| {
        let message = format!("the file {MARKER} in {} has an id that is none", path.display());
        Error::new(ErrorKind::Unusable, message)
    })
}

/// Writes the id of a snapshot directory, durably.
pub(super) fn write_id(path: &Path, id: DestinationId) -> Result<()> {
    let new = path.join(NEW);
    write_durably(&new, &format!("{FORMAT}\nid {id}\n"))?;
    let named = fs::rename(&new, path.join(MARKER)).and_then(|()| File::open(path)?.sync_all());
    named.map_err(|error| full(Error::io(BACKING_UP, error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::clock::Timestamp;

    #[test]
    fn an_id_is_read_as_it_was_written_and_anything_else_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        assert_eq!(read_id(path).unwrap(), None);
        make(path).unwrap();
        assert!(is_in(path));
        assert_eq!(read_id(path).unwrap(), None);

        let id = DestinationId::generate(Timestamp::from_millis(7));
        write_id(path, id).unwrap();
        assert_eq!(read_id(path).unwrap(), Some(id));
        assert_eq!(
            fs::read_dir(path).unwrap().count(),
            1,
            "the new marker took the old one's name"
        );

        fs::write(path.join(MARKER), "format 1\nid nonsense\n").unwrap();
        assert_eq!(read_id(path).unwrap_err().kind(), ErrorKind::Unusable);
    }
}
