//! Damaged contents, kept aside so that no snapshot relies on them.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use super::directory::BackupDirectory;
use super::files::make_directory;
use super::sweep::list;
use crate::domain::error::{Error, Result};
use crate::domain::id::Sha256;

pub(super) const DAMAGED: &str = "damaged";

const SETTING_ASIDE: &str = "setting damaged bytes aside";

impl BackupDirectory {
    /// Moves a damaged content to `damaged/`, durably. The next snapshot then stores the content again.
    /// Returns false if there is no such content.
    pub(super) fn move_aside(&self, sha256: Sha256) -> Result<bool> {
        let (from, aside) = (self.blob_path(sha256), self.damaged_path());
        make_directory(&aside)?;

        match fs::rename(&from, aside.join(sha256.to_hex())) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::io(SETTING_ASIDE, error)),
        }
        for directory in [aside.as_path(), self.path()].into_iter().chain(from.parent()) {
            let synced = File::open(directory).and_then(|directory| directory.sync_all());
            synced.map_err(|error| Error::io(SETTING_ASIDE, error))?;
        }
        Ok(true)
    }

    /// Lists the digests of the contents in `damaged/`, in order.
    pub(super) fn damaged(&self) -> Result<Vec<Sha256>> {
        let mut names = Vec::new();
        list(&self.damaged_path(), &mut names)?;
        Ok(names)
    }

    pub(super) fn damaged_path(&self) -> PathBuf {
        self.path().join(DAMAGED)
    }
}
