//! The identity of a data directory: markers with the id of its store.
//!
//! ```text
//! store-id         the id of the store, as the database has it
//! blobs/.store-id  the same, as `blobs/` may be a disk of its own that is not mounted
//! server-id        the name of the server that works in the directory, where several share a database
//! ```
//!
//! # Purpose
//! The store treats a missing file as removed, and a staged blob without a record as never acknowledged. Both
//! conclusions are correct only if the directory belongs to the database.
//!
//! # Crash safety
//! A marker is written and synced under another name, and then renamed. It is therefore always complete or
//! absent.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::data_dir::DataDir;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::StoreId;
use crate::tasks;
use crate::tasks::step::{Step, reached};

const MARKER: &str = "store-id";

/// The name of the marker in `blobs/`. Directories of organizations never begin with a dot.
const BLOBS_MARKER: &str = ".store-id";

const SERVER: &str = "server-id";

/// Whether earlier openings of a store wrote markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Markers {
    /// Markers can be missing, because no earlier opening wrote them.
    Expected,
    /// An earlier opening wrote the markers. If the markers are missing, this is another directory.
    Required,
}

impl DataDir {
    /// Returns true if the directory contains a database.
    pub fn has_database(&self) -> bool {
        fs::metadata(self.database()).is_ok_and(|database| database.len() > 0)
    }

    /// Returns the id in the directory's marker. Call this method before the database is opened, because
    /// opening creates a missing database.
    ///
    /// Returns [`ErrorKind::Unusable`] if the directory has a marker or stored bytes, but no database.
    /// Blocks.
    pub fn identify(&self) -> Result<Option<StoreId>> {
        let marker = self.path().join(MARKER);
        let text = read(&marker)?;

        if !self.has_database() && (text.is_some() || holds_bytes(self)?) {
            return Err(self.without_database());
        }
        match text {
            Some(text) => text.parse().map(Some).map_err(|_| unreadable(&marker)),
            None => Ok(None),
        }
    }

    /// Returns true if no store has used the directory: it has no database, no marker and no blobs. Blocks.
    pub fn is_unused(&self) -> Result<bool> {
        let marker = read(&self.path().join(MARKER))?;
        Ok(marker.is_none() && !self.has_database() && !holds_bytes(self)?)
    }

    /// Renames the closed SQLite database to the name of a former database. The rename is durable when this
    /// returns. [`ErrorKind::Unusable`] if the database was not closed, because the log then contains a part
    /// of the database. Blocks.
    pub fn retire_database(&self) -> Result<()> {
        let (database, former) = (self.database(), self.former_database());
        let mut log = database.clone().into_os_string();
        log.push("-wal");
        if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
            let message = format!("the database {} is in use", database.display());
            return Err(Error::new(ErrorKind::Unusable, message));
        }

        fs::rename(&database, &former).map_err(|error| failed(&database, error))?;
        let synced = File::open(self.path()).and_then(|dir| dir.sync_all());
        synced.map_err(|error| failed(self.path(), error))
    }

    /// Checks that the directory's markers contain `id`, and writes missing markers if they are expected. On
    /// a full disk, a later opening writes the rest. Returns true if all markers exist. Blocks.
    ///
    /// Returns [`ErrorKind::Unusable`] if a marker contains another id, or if an expected marker is required.
    pub fn check_markers(&self, id: StoreId, markers: Markers) -> Result<bool> {
        let places = [self.path().join(MARKER), self.blobs().join(BLOBS_MARKER)];
        let mut are_complete = true;

        for marker in places {
            match read(&marker)? {
                Some(text) if text == id.to_string() => {}
                Some(text) => return Err(foreign(&marker, &text, id)),
                None if markers == Markers::Required => return Err(missing(&marker, id)),
                None => are_complete &= write_if_room(&marker, &id.to_string())?,
            }
        }
        Ok(are_complete)
    }

    /// Returns the name of the server that works in the directory. The name stays the same after a restart,
    /// so a server can find the leftovers of its earlier process. On a full disk, the name is valid for this
    /// process only. Blocks.
    ///
    /// Returns [`ErrorKind::Unusable`] if the file with the name has other contents.
    pub fn server_name(&self) -> Result<String> {
        let place = self.path().join(SERVER);
        let Some(name) = read(&place)? else {
            let name = tasks::random_name();
            write_if_room(&place, &name)?;
            return Ok(name);
        };

        if (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Ok(name);
        }
        let message = format!(
            "the file {} holds no name of a server: remove it, and a new one is made",
            place.display()
        );
        Err(Error::new(ErrorKind::Unusable, message))
    }

    fn without_database(&self) -> Error {
        if self.former_database().exists() {
            let message = format!(
                "the records of the data directory {} are in PostgreSQL, where `filestore metadata copy` took them: \
                 start the server with the configuration that names the database",
                self.path().display()
            );
            return Error::new(ErrorKind::Unusable, message);
        }
        let message = format!(
            "the database metadata.sqlite3 is missing from the data directory {}, which holds a store: restore \
             the database from a backup. To start again without the stored files, move blobs, staging and {MARKER} \
             out of the directory",
            self.path().display()
        );
        Error::new(ErrorKind::Unusable, message)
    }
}

/// Marks a directory that becomes a store, with its blobs, as that of `id`. Durable when this returns. Blocks.
pub(super) fn mark(directory: &Path, blobs: &Path, id: StoreId) -> Result<()> {
    for marker in [directory.join(MARKER), blobs.join(BLOBS_MARKER)] {
        write(&marker, &id.to_string()).map_err(|error| failed(&marker, error))?;
    }
    Ok(())
}

/// Tells whether there are blobs, staged or under their final names.
fn holds_bytes(dir: &DataDir) -> Result<bool> {
    for part in [dir.blobs(), dir.staging()] {
        let mut entries = fs::read_dir(&part).map_err(|error| failed(&part, error))?;
        if entries.next().is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read(marker: &Path) -> Result<Option<String>> {
    match fs::read(marker) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(marker, error)),
    }
}

/// Writes a marker. Returns false if the disk is full.
fn write_if_room(marker: &Path, id: &str) -> Result<bool> {
    match write(marker, id) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            tracing::warn!(marker = %marker.display(), "the disk is full: the directory is not marked yet");
            Ok(false)
        }
        Err(error) => Err(failed(marker, error)),
    }
}

fn write(marker: &Path, id: &str) -> io::Result<()> {
    let mut unfinished = PathBuf::from(marker);
    unfinished.set_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    writeln!(file, "{id}")?;
    file.sync_all()?;

    fs::rename(&unfinished, marker)?;
    marker.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())?;
    reached(Step::MarkerWritten);
    Ok(())
}

fn missing(marker: &Path, id: StoreId) -> Error {
    let message = format!(
        "the marker {} is missing, so these files might not belong to the store {id}. If a disk is not mounted, \
         mount the disk. If the files belong to the store, write the id into the marker",
        marker.display()
    );
    Error::new(ErrorKind::Unusable, message)
}

fn foreign(marker: &Path, found: &str, id: StoreId) -> Error {
    let message = format!(
        "the marker {} names the store {found}, and the database belongs to the store {id}: bring back the original \
         directory or database. If both belong together, write the database's id into the marker",
        marker.display()
    );
    Error::new(ErrorKind::Unusable, message)
}

fn unreadable(marker: &Path) -> Error {
    let message = format!(
        "the marker {} holds no store id: restore the marker from a backup. If the database in the same directory \
         belongs to the files, remove the marker",
        marker.display()
    );
    Error::new(ErrorKind::Unusable, message)
}

fn failed(path: &Path, error: io::Error) -> Error {
    let message = format!("the data directory cannot be read or marked: {}", path.display());
    Error::new(ErrorKind::Unusable, message).with_source(error)
}
