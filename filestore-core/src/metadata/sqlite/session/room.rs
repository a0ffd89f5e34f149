//! Tests if there is space for the database by writing a file.
//!
//! A disk quota differs from a full disk: the system's free space does not show it, and SQLite reports a
//! refused write as an I/O error.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The number of bytes in the test. The test exceeds the log of one change.
const PROBE_BYTES: usize = 128 << 10;

/// Returns true if a file next to the database at `path` cannot be written because there is no space.
pub(super) fn is_used_up(path: &Path) -> bool {
    let probe = path.with_extension("probe");
    let refused = write(&probe).err().map(|error| error.kind());
    // The next probe writes over one that stays.
    fs::remove_file(&probe).ok();

    matches!(refused, Some(io::ErrorKind::QuotaExceeded | io::ErrorKind::StorageFull))
}

fn write(probe: &Path) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(probe)?;
    file.write_all(&vec![0; PROBE_BYTES])?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_file_can_be_written_there_is_room_and_nothing_is_left() {
        let home = tempfile::tempdir().unwrap();
        assert!(!is_used_up(&home.path().join("metadata.sqlite3")));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        assert!(!is_used_up(&home.path().join("missing/metadata.sqlite3")), "another fault");
    }
}
