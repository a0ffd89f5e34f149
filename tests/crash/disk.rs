//! A simulated disk below the server: what is written and not synced is lost at a power cut, and so is
//! what a failed fsync left in the page cache. See `disk.c`.
//!
//! For each blob, the disk knows how many bytes were synced since the last write, and if its directory was synced. A
//! rename keeps the synced bytes, as in a journal. Objects of a provider are durable at once.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::verify::files_below;

/// The files of the database that the disk holds.
const WATCHED: [&str; 2] = ["metadata.sqlite3", "metadata.sqlite3-wal"];

/// The disk of one data directory.
pub(crate) struct Disk {
    /// The library to preload into the server.
    library: OsString,
    /// The directory of what the disk holds.
    held: PathBuf,
}

impl Disk {
    /// Builds the disk in `home`, which needs a C compiler, as the server itself does.
    pub(crate) fn build(home: &Path) -> Self {
        let (library, held) = (home.join("disk.so"), home.join("disk"));
        let source = home.join("disk.c");
        fs::write(&source, include_str!("disk.c")).expect("a file can be written");
        fs::create_dir(&held).expect("a directory can be made");

        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let compiled = Command::new(compiler)
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .status()
            .expect("a C compiler runs");
        assert!(compiled.success(), "{compiled}");
        Self { library: library.into(), held }
    }

    /// Returns the variables that put a server on this disk.
    pub(crate) fn variables(&self) -> [(&str, &OsStr); 2] {
        [("LD_PRELOAD", &self.library), ("FILESTORE_DISK", self.held.as_os_str())]
    }

    /// Lets the next fsync of the log fail.
    pub(crate) fn fail_next_sync(&self) {
        fs::write(self.held.join("fail"), b"").expect("a file can be written");
    }

    /// Refuses writes to everything but the database while the reserve is gone, and to that too while it
    /// is there: a disk quota is exceeded by less than the reserve.
    pub(crate) fn exceed_quota(&self) {
        fs::write(self.held.join("quota"), b"").expect("a file can be written");
    }

    /// Lets all writes through again.
    pub(crate) fn raise_quota(&self) {
        fs::remove_file(self.held.join("quota")).expect("it was exceeded");
    }

    /// Cuts the power of a server that was killed: its database is what the disk holds, and of its
    /// blobs those are left that were synced and named.
    pub(crate) fn cut_power(&self, data_dir: &Path) {
        for name in WATCHED {
            for suffix in [".dirty", ".cut"] {
                // Absent if everything was synced.
                let _ = fs::remove_file(self.held.join(format!("{name}{suffix}")));
            }
            if fs::copy(self.held.join(name), data_dir.join(name)).is_err() {
                // Never synced: the file has a name and no bytes.
                File::create(data_dir.join(name)).expect("a file can be made");
            }
        }

        // Never synced, and made anew from the log.
        let _ = fs::remove_file(data_dir.join("metadata.sqlite3-shm"));
        for part in ["staging", "blobs"] {
            self.cut_blobs(&data_dir.join(part));
        }
    }

    fn cut_blobs(&self, part: &Path) {
        for blob in files_below(part) {
            let id = blob.rsplit('/').next().expect("a path has parts");
            let has = |suffix: &str| self.held.join(format!("{id}{suffix}")).exists();
            if !has(".named") {
                fs::remove_file(part.join(&blob)).expect("it was there just now");
            } else if has(".unsynced") {
                let synced = fs::read_to_string(self.held.join(format!("{id}.synced")));
                // Absent if the blob was never synced.
                let synced = synced.map_or(0, |text| text.parse().expect("a length"));
                let file = File::options().write(true).open(part.join(&blob));
                let file = file.expect("it was there just now");
                let length = file.metadata().expect("a file has a length").len();
                file.set_len(length.min(synced)).expect("a file can be cut");
            }
        }
    }
}
