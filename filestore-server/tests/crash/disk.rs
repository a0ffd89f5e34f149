//! A simulated disk below the server's database: what is written and not synced is lost at a power
//! cut, and so is what a failed fsync left in the page cache. See `disk.c`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files that the disk holds.
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
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/disk.c");
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

    /// Cuts the power of a server that was killed: its database is what the disk holds.
    pub(crate) fn cut_power(&self, data_dir: &Path) {
        for name in WATCHED {
            for suffix in [".dirty", ".cut"] {
                // Absent if everything was synced.
                let _ = fs::remove_file(self.held.join(format!("{name}{suffix}")));
            }
            fs::copy(self.held.join(name), data_dir.join(name)).expect("the disk holds the file");
        }

        // Never synced, and made anew from the log.
        fs::remove_file(data_dir.join("metadata.sqlite3-shm")).expect("a killed server left it");
    }
}
