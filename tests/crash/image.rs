//! A real file system whose power is cut: in a file in memory, mounted by a loop device.
//!
//! The file is copied while the server is stopped: the copy holds what the file system has sent to its
//! device, and no more. It tells a missing fsync of a file from a missing fsync of a directory. Needs
//! root, loop devices and the file system's `mkfs`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

use crate::child::Child;

/// Bytes that are compared at a time.
const BLOCK: usize = 1 << 20;

/// Copies of a device that goes on changing without the server.
const MOST_COPIES: usize = 20;

/// A kind of file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileSystem {
    Ext4,
    Xfs,
    Btrfs,
}

impl FileSystem {
    /// Returns the size of the device: enough for the files of one life, and for the kind itself.
    const fn bytes(self) -> u64 {
        match self {
            Self::Ext4 => 192 << 20,
            // The least that its mkfs takes is 300 MiB.
            Self::Xfs | Self::Btrfs => 320 << 20,
        }
    }

    fn make(self, file: &Path) -> Result<(), String> {
        match self {
            Self::Ext4 => run("mkfs.ext4", &["-q", "-F"], &[file]),
            Self::Xfs => run("mkfs.xfs", &["-q", "-f"], &[file]),
            Self::Btrfs => run("mkfs.btrfs", &["-q", "-f"], &[file]),
        }
    }

    /// Returns the options by which its journal is committed by fsyncs, and by time as late as it
    /// can be.
    const fn options(self) -> &'static str {
        match self {
            Self::Ext4 | Self::Btrfs => "loop,commit=600,noatime",
            Self::Xfs => "loop,noatime",
        }
    }
}

/// A mounted file system, unmounted on drop.
pub(crate) struct Image {
    kind: FileSystem,
    file: PathBuf,
    cut: PathBuf,
    mounted: PathBuf,
}

impl Image {
    /// Makes a file system in `home` and mounts it as the data directory. An error says what is missing
    /// here.
    pub(crate) fn mount(kind: FileSystem, home: &Path) -> Result<Self, String> {
        let image = Self {
            kind,
            file: home.join("disk.img"),
            cut: home.join("cut.img"),
            mounted: home.join("data"),
        };
        let bytes = kind.bytes();
        let made = File::create(&image.file).and_then(|file| file.set_len(bytes));
        made.map_err(|error| format!("a file of {bytes} bytes: {error}"))?;
        fs::create_dir_all(&image.mounted).map_err(|error| error.to_string())?;
        kind.make(&image.file)?;
        image.attach()?;
        Ok(image)
    }

    fn attach(&self) -> Result<(), String> {
        run("mount", &["-o", self.kind.options()], &[&self.file, &self.mounted])
    }

    /// Cuts the power of a running server: keeps what the device has at that moment, ends the server and
    /// mounts what was kept.
    pub(crate) fn cut_power(&self, server: Child) {
        server.pause();
        self.copy_at_one_moment();
        server.kill();
        run("umount", &[], &[&self.mounted]).expect("nobody uses it any more");
        fs::rename(&self.cut, &self.file).expect("a rename");
        self.attach().expect("the file system replays its journal");
    }

    /// Copies the device until nothing has changed meanwhile: calls that were under way end, and the
    /// file system has threads of its own.
    fn copy_at_one_moment(&self) {
        for _ in 0..MOST_COPIES {
            fs::copy(&self.file, &self.cut).expect("there is memory for a copy");
            if are_equal(&self.file, &self.cut).expect("two files that can be read") {
                return;
            }
        }
        panic!("the device changed during each of {MOST_COPIES} copies");
    }
}

/// Compares two files of the same length.
fn are_equal(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    let (mut left, mut right) = (vec![0; BLOCK], vec![0; BLOCK]);
    loop {
        let read = one.read(&mut left)?;
        if read == 0 {
            return Ok(true);
        }
        other.read_exact(&mut right[..read])?;
        if left[..read] != right[..read] {
            return Ok(false);
        }
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
