//! The umask of the process: private for the store, and the user's own for the output of a command.
//!
//! A command that opens a data directory creates files for the owner only, in several threads. The
//! umask applies to the whole process, so this module sets the modes of output files explicitly.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{Mode, chmod, fchmod};
use rustix::process::umask;

/// The user's umask, after a private one replaced it.
static USERS: OnceLock<Mode> = OnceLock::new();

/// Makes all new files of the process private to its owner.
pub(crate) fn make_private() {
    let before = umask(Mode::RWXG | Mode::RWXO);
    USERS.get_or_init(|| before);
}

/// Gives a new file the mode that the user's umask implies.
pub(crate) fn hand_over(file: &File) -> io::Result<()> {
    match USERS.get() {
        Some(mask) => Ok(fchmod(file, Mode::from_raw_mode(0o666).difference(*mask))?),
        None => Ok(()),
    }
}

/// Creates a directory and its missing parents with the modes that the user's umask implies.
pub(crate) fn create_dir_all(path: &Path) -> io::Result<()> {
    let missing: Vec<_> = path
        .ancestors()
        .take_while(|directory| !directory.as_os_str().is_empty() && !directory.exists())
        .collect();
    fs::create_dir_all(path)?;
    if let Some(mask) = USERS.get() {
        for directory in missing {
            chmod(directory, Mode::from_raw_mode(0o777).difference(*mask))?;
        }
    }
    Ok(())
}
