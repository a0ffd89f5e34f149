//! Variants on disk: `<root>/<last two characters of the file id>/<file id>/<key digest>`.
//!
//! # Purpose
//! The disk cache survives a restart, and is much larger than the memory cache. The path contains the file
//! id, so a file's variants can be removed without their keys. There is no index in memory. The file's time
//! is the entry's last use, and is renewed hourly. A sweep reduces the cache to 90 % of the budget.
//!
//! # Locking
//! Entries have no locks, because other threads see only the file system's rename and unlink. One mutex
//! protects an estimate of the size, and the entries that a running sweep may have missed.
//!
//! # Crash safety
//! An entry is written under a temporary name and renamed, without fsync. After a power cut, it can contain
//! any bytes. The length and checksum in its header then cause a miss, never a wrong picture. Leftover
//! temporary files are removed when the cache is opened.
//!
//! # Compatibility
//! An entry of another format, recipe or quality is a miss and is replaced. So is an entry of a kind that was
//! added later.

use std::fs::{self, DirBuilder, DirEntry, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::domain::config::AnimationLimits;
use crate::domain::error::{Error, Result};
use crate::domain::id::FileId;
use crate::variant::Variant;
use crate::variant::key::{KeyDigest, RECIPE};

/// The directory in which entries are written before they are renamed. The directories that contain files
/// have names of two characters.
const TEMPORARY: &str = "tmp";
const MAGIC: [u8; 4] = *b"FSVR";
/// Magic, format, kind, two reserved bytes, recipe, quality, body length, checksum.
const HEADER_BYTES: usize = 4 + 1 + 1 + 2 + 4 + 4 + 4 + 16;
const FORMAT: u8 = 1;
/// The maximum size of a file that is read. No variant is larger.
const MAX_ENTRY_BYTES: u64 = AnimationLimits::MOST_BYTES + HEADER_BYTES as u64;
/// The age of the recorded last use at which a hit renews it.
const TOUCH_AFTER: Duration = Duration::from_hours(1);

/// The settings that decide on a variant's look in addition to the key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Recipe {
    /// The quality of the WebP file, 0 to 100.
    pub(super) quality: f32,
}

/// The number of entries, and their size in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// The cache. All methods block.
pub(super) struct DiskCache {
    root: PathBuf,
    recipe: Recipe,
    budget_bytes: u64,
    size: Mutex<Size>,
}

/// The known size of the cache.
#[derive(Debug, Default)]
struct Size {
    /// The size. The size is exact after a sweep, and then an estimate until the next sweep.
    usage: Usage,
    /// The entries written since a running sweep began. The walk of the sweep might have missed these
    /// entries.
    missed: Option<Usage>,
}

impl Size {
    fn add(&mut self, bytes: u64) {
        for usage in [Some(&mut self.usage), self.missed.as_mut()].into_iter().flatten() {
            usage.entries += 1;
            usage.bytes += bytes;
        }
    }
}

/// Creates a directory that only its owner can enter, and its missing parents.
fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(path)
}

impl DiskCache {
    /// Opens the cache at `root`, and creates the directory if necessary. The first [`sweep`](Self::sweep)
    /// counts the entries.
    pub(super) fn open(root: &Path, recipe: Recipe, budget_bytes: u64) -> Result<Self> {
        let temporary = root.join(TEMPORARY);
        let made = remove_tree(&temporary).and_then(|()| make_directory(&temporary));
        made.map_err(|error| Error::io("opening the variant cache", error))?;
        Ok(Self { root: root.to_owned(), recipe, budget_bytes, size: Mutex::default() })
    }

    /// Reads the entry if it is in the cache and intact. Removes a bad entry.
    pub(super) fn read(&self, file_id: FileId, digest: KeyDigest) -> Option<Stored> {
        let path = self.path(file_id, digest);
        let mut file = File::open(&path).ok()?;
        let metadata = file.metadata().ok()?;
        if let Some(stored) = self.read_entry(&mut file, metadata.len(), digest) {
            touch(&file, &metadata);
            return Some(stored);
        }
        self.forget(&path, &metadata);
        None
    }

    /// Writes the entry. The error is only for the log, because a cache without write access just misses.
    pub(super) fn write(
        &self,
        file_id: FileId,
        digest: KeyDigest,
        stored: &Stored,
    ) -> io::Result<()> {
        let temporary = self.root.join(TEMPORARY).join(format!("{:032x}", fastrand::u128(..)));
        let outcome = self.write_temporary(&temporary, digest, stored).and_then(|bytes| {
            self.rename_into_place(&temporary, file_id, digest)?;
            self.size.lock().add(bytes);
            Ok(())
        });
        if outcome.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        outcome
    }

    /// Removes one entry, if present.
    pub(super) fn remove(&self, file_id: FileId, digest: KeyDigest) {
        let path = self.path(file_id, digest);
        if let Ok(metadata) = fs::metadata(&path) {
            self.forget(&path, &metadata);
        }
    }

    /// Removes all entries of a file. Succeeds if there are none.
    pub(super) fn remove_file(&self, file_id: FileId) -> io::Result<()> {
        let directory = self.directory(file_id);
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            match entry.metadata() {
                Ok(metadata) => self.forget(&entry.path(), &metadata),
                // A sweep was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        remove_tree(&directory)
    }

    /// Returns true if the budget is exceeded and no sweep is running.
    pub(super) fn is_over_budget(&self) -> bool {
        let size = self.size.lock();
        size.usage.bytes > self.budget_bytes && size.missed.is_none()
    }

    /// Counts everything. If the cache exceeds its budget, removes the least recently used entries until a
    /// tenth of the budget is free. Returns at once if another sweep is running.
    pub(super) fn sweep(&self) {
        {
            let mut size = self.size.lock();
            if size.missed.is_some() {
                return;
            }
            size.missed = Some(Usage::default());
        }

        loop {
            let mut usage = self.walk_and_evict();

            let mut size = self.size.lock();
            let missed = size.missed.take().unwrap_or_default();
            // An entry that the walk did see counts twice, until the next sweep.
            usage.entries += missed.entries;
            usage.bytes += missed.bytes;
            size.usage = usage;
            if missed.bytes == 0 || usage.bytes <= self.budget_bytes {
                return;
            }
            // The writers of these left the budget to this sweep.
            size.missed = Some(Usage::default());
        }
    }

    fn walk_and_evict(&self) -> Usage {
        let mut found = Vec::new();
        self.each_entry(|entry| found.push(entry));

        let mut usage = Usage {
            entries: found.len() as u64,
            bytes: found.iter().map(|entry| entry.bytes).sum(),
        };
        if usage.bytes > self.budget_bytes {
            found.sort_unstable_by_key(|entry| entry.used);
            let goal = self.budget_bytes - self.budget_bytes / 10;
            for entry in found {
                if usage.bytes <= goal {
                    break;
                }
                self.evict(&entry);
                usage.entries -= 1;
                usage.bytes -= entry.bytes;
            }
        }

        usage
    }

    /// Returns the known size. See [`Size`].
    pub(super) fn known(&self) -> Usage {
        self.size.lock().usage
    }

    /// Counts the entries by walking all directories.
    pub(super) fn count(&self) -> Usage {
        let mut usage = Usage::default();
        self.each_entry(|entry| {
            usage.entries += 1;
            usage.bytes += entry.bytes;
        });
        usage
    }

    /// Removes everything. Returns the removed entries.
    pub(super) fn clear(&self) -> Usage {
        let mut removed = Usage::default();
        self.each_entry(|entry| {
            removed.entries += 1;
            removed.bytes += entry.bytes;
            self.evict(&entry);
        });
        self.size.lock().usage = Usage::default();
        removed
    }

    /// Lists the directories of the first level, in order.
    pub(super) fn shards(&self) -> Vec<String> {
        let names = children(&self.root).map(|shard| shard.file_name());
        let mut names: Vec<_> = names.filter_map(|name| name.into_string().ok()).collect();
        names.retain(|name| name != TEMPORARY);
        names.sort_unstable();
        names
    }

    /// Lists the files with entries in a directory of the first level.
    pub(super) fn files_in(&self, shard: &str) -> Vec<FileId> {
        let shard = self.root.join(shard);
        let names = children(&shard).map(|directory| directory.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).collect()
    }

    /// Returns true if a file has entries.
    pub(super) fn has_file(&self, file_id: FileId) -> bool {
        self.directory(file_id).is_dir()
    }

    /// Counts the unreadable entries of a file. Reads all of them, and changes nothing.
    pub(super) fn bad_entries(&self, file_id: FileId) -> u64 {
        let directory = self.directory(file_id);
        children(&directory).filter(|entry| self.is_bad(entry) == Some(true)).count() as u64
    }

    /// Returns true if an entry is unreadable. `None` if it is not an entry, or no longer exists.
    fn is_bad(&self, entry: &DirEntry) -> Option<bool> {
        let digest = entry.file_name().to_str().and_then(KeyDigest::from_hex)?;
        let mut file = File::open(entry.path()).ok()?;
        let len = file.metadata().ok()?.len();
        Some(self.read_entry(&mut file, len, digest).is_none())
    }

    fn directory(&self, file_id: FileId) -> PathBuf {
        let mut buffer = [0; 26];
        let id = file_id.encode(&mut buffer);
        self.root.join(&id[id.len() - 2..]).join(id)
    }

    fn path(&self, file_id: FileId, digest: KeyDigest) -> PathBuf {
        self.directory(file_id).join(digest.to_hex())
    }

    fn read_entry(&self, file: &mut File, len: u64, digest: KeyDigest) -> Option<Stored> {
        if !(HEADER_BYTES as u64..=MAX_ENTRY_BYTES).contains(&len) {
            return None;
        }
        let mut entry = Vec::with_capacity(usize::try_from(len).ok()?);
        file.take(MAX_ENTRY_BYTES).read_to_end(&mut entry).ok()?;
        let entry = Bytes::from(entry);

        let body = entry.slice_ref(entry.get(HEADER_BYTES..)?);
        let kind = entry[5];
        if entry[..HEADER_BYTES] != self.header(digest, kind, &body)? {
            return None;
        }
        unpack(kind, body)
    }

    /// Returns the header of an entry with this body, including the checksum.
    fn header(&self, digest: KeyDigest, kind: u8, body: &[u8]) -> Option<[u8; HEADER_BYTES]> {
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend(MAGIC);
        header.extend([FORMAT, kind, 0, 0]);
        header.extend(RECIPE.to_le_bytes());
        header.extend(self.recipe.quality.to_le_bytes());
        header.extend(u32::try_from(body.len()).ok()?.to_le_bytes());

        let mut hasher = Sha256::new();
        hasher.update(&header);
        hasher.update(digest.0);
        hasher.update(body);
        header.extend(&hasher.finalize()[..16]);
        header.try_into().ok()
    }

    /// Writes an entry under a temporary name. Returns the disk space of the file.
    fn write_temporary(&self, path: &Path, digest: KeyDigest, stored: &Stored) -> io::Result<u64> {
        let (kind, body) = pack(stored);
        let header = self.header(digest, kind, body).ok_or(io::ErrorKind::FileTooLarge)?;

        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(&header)?;
        file.write_all(body)?;
        Ok(room((header.len() + body.len()) as u64))
    }

    fn rename_into_place(
        &self,
        temporary: &Path,
        file_id: FileId,
        digest: KeyDigest,
    ) -> io::Result<()> {
        let directory = self.directory(file_id);
        let target = directory.join(digest.to_hex());
        make_directory(&directory)?;
        match fs::rename(temporary, &target) {
            // The directory went while this ran (an eviction took its last entry): once more.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_directory(&directory)?;
                fs::rename(temporary, &target)
            }
            other => other,
        }
    }

    /// Unlinks an entry, and subtracts it from the estimate.
    fn forget(&self, path: &Path, metadata: &fs::Metadata) {
        if fs::remove_file(path).is_ok() {
            let usage = &mut self.size.lock().usage;
            usage.entries = usage.entries.saturating_sub(1);
            usage.bytes = usage.bytes.saturating_sub(room(metadata.len()));
        }
    }

    fn evict(&self, entry: &Found) {
        let directory = self.directory(entry.file_id);
        let _ = fs::remove_file(directory.join(entry.digest.to_hex()));
        // Fails, as it should, while other entries are in it.
        let _ = fs::remove_dir(directory);
    }

    /// Calls `visit` for every entry. Omits entries that disappear or cannot be read.
    fn each_entry(&self, mut visit: impl FnMut(Found)) {
        for shard in children(&self.root).filter(|shard| shard.file_name() != TEMPORARY) {
            for directory in children(&shard.path()) {
                let file_id = directory.file_name().to_str().and_then(|name| name.parse().ok());
                let Some(file_id) = file_id else { continue };
                for entry in children(&directory.path()) {
                    if let Some(found) = Found::of(file_id, &entry) {
                        visit(found);
                    }
                }
            }
        }
    }
}

/// An entry as a directory walk sees it.
struct Found {
    file_id: FileId,
    digest: KeyDigest,
    bytes: u64,
    used: SystemTime,
}

impl Found {
    fn of(file_id: FileId, entry: &DirEntry) -> Option<Self> {
        let digest = KeyDigest::from_hex(entry.file_name().to_str()?)?;
        let metadata = entry.metadata().ok()?;
        Some(Self { file_id, digest, bytes: room(metadata.len()), used: metadata.modified().ok()? })
    }
}

fn children(directory: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(directory).into_iter().flatten().flatten()
}

fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Returns the disk space for a file with `bytes` bytes: whole blocks and an inode.
fn room(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096)
}

/// Records that an entry is used now. The access time cannot serve for this, because most disks are mounted
/// without it.
#[expect(clippy::disallowed_methods, reason = "compared with times that the kernel sets")]
fn touch(file: &File, metadata: &fs::Metadata) {
    let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let used = Duration::from_secs(u64::try_from(metadata.mtime()).unwrap_or(0));
    if age.saturating_sub(used) > TOUCH_AFTER {
        // Failing only makes the entry look older than it is.
        let _ = file.set_modified(SystemTime::now());
    }
}

const PASS_THROUGH: u8 = 0;
const WEBP: u8 = 1;
const STILL: u8 = 2;

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stored {
    Variant(Variant),
    /// The picture is not animated, so its still variant is the answer.
    Still,
}

fn pack(stored: &Stored) -> (u8, &[u8]) {
    match stored {
        Stored::Variant(Variant::PassThrough { mime }) => (PASS_THROUGH, mime.as_bytes()),
        Stored::Variant(Variant::WebP(bytes)) => (WEBP, bytes),
        Stored::Still => (STILL, &[]),
    }
}

fn unpack(kind: u8, body: Bytes) -> Option<Stored> {
    const TYPES: [&str; 6] =
        ["image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp", "image/tiff"];
    match kind {
        PASS_THROUGH => TYPES
            .into_iter()
            .find(|mime| mime.as_bytes() == body)
            .map(|mime| Stored::Variant(Variant::PassThrough { mime })),
        WEBP => Some(Stored::Variant(Variant::WebP(body))),
        STILL if body.is_empty() => Some(Stored::Still),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
