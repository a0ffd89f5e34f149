//! A real file system whose power is cut: ext4 in a file in memory, mounted by a loop device.
//!
//! The file is copied while the server is stopped: the copy holds what the file system has sent to its
//! device, and no more. It tells a missing fsync of a file from a missing fsync of a directory. Needs
//! root, loop devices and `mkfs.ext4`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::child::Child;

/// Large enough for the files of one life.
const BYTES: u64 = 192 << 20;

/// A mounted file system, unmounted on drop.
pub(crate) struct Image {
    file: PathBuf,
    cut: PathBuf,
    mounted: PathBuf,
}

impl Image {
    /// Makes a file system in `home` and mounts it as the data directory. An error says what is missing
    /// here.
    pub(crate) fn mount(home: &Path) -> Result<Self, String> {
        let image = Self {
            file: home.join("disk.img"),
            cut: home.join("cut.img"),
            mounted: home.join("data"),
        };
        let made = File::create(&image.file).and_then(|file| file.set_len(BYTES));
        made.map_err(|error| format!("a file of {BYTES} bytes: {error}"))?;
        fs::create_dir_all(&image.mounted).map_err(|error| error.to_string())?;
        run("mkfs.ext4", &["-q", "-F"], &[&image.file])?;
        image.attach()?;
        Ok(image)
    }

    /// The journal is not committed by time, but by fsyncs alone.
    fn attach(&self) -> Result<(), String> {
        run("mount", &["-o", "loop,commit=600,noatime"], &[&self.file, &self.mounted])
    }

    /// Cuts the power of a running server: keeps what the device has at that moment, ends the server and
    /// mounts what was kept.
    pub(crate) fn cut_power(&self, server: Child) {
        server.pause();
        fs::copy(&self.file, &self.cut).expect("there is memory for a copy");
        server.kill();
        run("umount", &[], &[&self.mounted]).expect("nobody uses it any more");
        fs::rename(&self.cut, &self.file).expect("a rename");
        self.attach().expect("ext4 replays its journal");
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = run("umount", &[], &[&self.mounted]);
    }
}

fn run(program: &str, arguments: &[&str], paths: &[&Path]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).args(paths).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}: {}", output.status, said.trim()))
}
