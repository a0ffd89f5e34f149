//! Looking for contents in a directory of snapshots, beside whoever works on it.
//!
//! # Locking
//! None: nothing is written, and a receipt is to be had while a snapshot is made. A run that removes
//! snapshots takes a manifest first, then the bytes: in between these show as loose.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::damaged::DAMAGED;
use super::directory::{BLOBS, MANIFEST, READING, SNAPSHOTS};
use super::intake::INCOMING;
use super::manifest::{self, Manifest};
use super::marker;
use crate::domain::clock::Timestamp;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{DestinationId, Sha256, SnapshotId};

/// The snapshots in a directory that have some of the contents that were looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LookedFor {
    /// The id of the directory, if it has one.
    pub id: Option<DestinationId>,
    /// The snapshots that have some, the oldest first: id, instant, digests in order.
    pub snapshots: Vec<(SnapshotId, Timestamp, Vec<Sha256>)>,
    /// Contents that lie there and belong to no finished snapshot, in order.
    pub loose: Vec<Sha256>,
}

/// The record of a store about a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Snapshots were taken to it.
    Used,
    /// None was, as far as the store knows.
    Unused,
}

/// The directory of snapshots that stands at a path, or what a provider has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    /// None: its disk may not be mounted.
    Nothing,
    /// One that has no id yet.
    Unnamed,
    /// One with this id.
    Named(DestinationId),
}

/// Reads which directory of snapshots stands at a path. Blocks.
pub fn present_at(path: &Path) -> Result<Present> {
    if !marker::is_in(path) {
        return Ok(Present::Nothing);
    }
    Ok(marker::read_id(path)?.map_or(Present::Unnamed, Present::Named))
}

/// Looks for contents in a directory of snapshots. One that never had any has nothing. Blocks.
///
/// `Unusable` for a directory that is not there, or that was [used](Known::Used) and shows nothing of
/// its snapshots: the disk that it is on may not be mounted.
pub fn look_for(path: &Path, digests: &[Sha256], known: Known) -> Result<LookedFor> {
    if !marker::is_in(path) {
        if known == Known::Used || !path.is_dir() {
            let message = format!("the backup destination is not there: {}", path.display());
            return Err(Error::new(ErrorKind::Unusable, message));
        }
        return Ok(LookedFor::default());
    }

    let id = marker::read_id(path)?;
    let mut here = Vec::new();
    for &sha256 in digests {
        if lies_in(path, sha256)? {
            here.push(sha256);
        }
    }
    here.sort_unstable_by_key(|sha256| sha256.0);
    here.dedup();
    if here.is_empty() {
        return Ok(LookedFor { id, ..LookedFor::default() });
    }

    let mut found = LookedFor { id, snapshots: Vec::new(), loose: here.clone() };
    for (id, manifest) in manifests(path)? {
        let Some(mut file) = opened(&manifest)? else { continue };
        let mut held = Vec::new();
        for &sha256 in &here {
            if manifest::find(&mut file, sha256)?.is_some() {
                held.push(sha256);
            }
        }

        if !held.is_empty() {
            found.loose.retain(|sha256| !held.contains(sha256));
            let created_at = Manifest::open(file)?.info().created_at;
            found.snapshots.push((id, created_at, held));
        }
    }
    Ok(found)
}

/// Tells if bytes lie in the directory that have the digest, or should have it.
fn lies_in(path: &Path, sha256: Sha256) -> Result<bool> {
    let name = sha256.to_hex();
    let blob = path.join(BLOBS).join(&name[..2]).join(&name);
    let places = [blob.with_extension(INCOMING), path.join(DAMAGED).join(&name), blob];
    for place in places {
        if place.try_exists().map_err(|error| Error::io(READING, error))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lists the manifests of finished snapshots, the oldest first.
fn manifests(path: &Path) -> Result<Vec<(SnapshotId, PathBuf)>> {
    let snapshots = path.join(SNAPSHOTS);
    let entries = match fs::read_dir(&snapshots) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(READING, error)),
    };

    let mut all = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| Error::io(READING, error))?.file_name();
        if let Some(id) = name.to_str().and_then(|name| name.parse::<SnapshotId>().ok()) {
            all.push((id, snapshots.join(name).join(MANIFEST)));
        }
    }
    all.sort_unstable_by_key(|(id, _)| *id);
    Ok(all)
}

fn opened(manifest: &Path) -> Result<Option<File>> {
    match File::open(manifest) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(READING, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::backup::contract::info;
    use crate::storage::backup::directory::new_file;
    use crate::storage::backup::{BackupDirectory, Entry, EntryKind, ManifestWriter};

    fn digest(number: u16) -> Sha256 {
        let mut sum = [0; 32];
        sum[..2].copy_from_slice(&number.to_be_bytes());
        Sha256(sum)
    }

    /// Writes a snapshot that names every third of 600 digests, and holds every second of those.
    fn snapshot(directory: &BackupDirectory, id: SnapshotId) {
        let draft = directory.make(id).unwrap();
        let file = new_file(&draft.manifest).unwrap();
        let mut writer = ManifestWriter::begin(file, info(id), digest(0)).unwrap();
        for number in (0..600).step_by(3) {
            let kind = if number % 2 == 0 { EntryKind::Held(None) } else { EntryKind::Damaged };
            let entry = Entry { sha256: digest(number), size_bytes: u64::from(number), kind };
            writer.add(&entry, 1).unwrap();
        }
        let (_, file) = writer.finish().unwrap();
        directory.name(id, &file).unwrap();
    }

    #[test]
    fn each_content_that_a_manifest_names_is_found_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("backup");
        let directory = BackupDirectory::create(&path).unwrap();
        let id: SnapshotId = "01ARZ3NDEKTSV4RRFFQ69G5FAZ".parse().unwrap();
        snapshot(&directory, id);

        let mut manifest =
            File::open(path.join(SNAPSHOTS).join(id.to_string()).join(MANIFEST)).unwrap();
        for number in 0..700 {
            let is_held = manifest::find(&mut manifest, digest(number)).unwrap().is_some();
            assert_eq!(is_held, number < 600 && number % 6 == 0, "{number}");
        }

        // Beside a process that has the directory: bytes count, not names.
        assert_eq!(look_for(&path, &[digest(6)], Known::Used).unwrap(), LookedFor::default());
        for number in [6, 7] {
            let name = digest(number).to_hex();
            let blob = path.join(BLOBS).join(&name[..2]).join(&name);
            fs::create_dir_all(blob.parent().unwrap()).unwrap();
            fs::write(blob, b"x").unwrap();
        }
        let found = look_for(&path, &[digest(7), digest(6), digest(12)], Known::Used).unwrap();
        assert_eq!(found.snapshots, [(id, Timestamp::from_millis(7), vec![digest(6)])]);
        assert_eq!(found.loose, [digest(7)]);
    }

    #[test]
    fn a_destination_that_is_not_there_is_not_known_to_have_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let unused = look_for(dir.path(), &[digest(1)], Known::Unused).unwrap();
        assert_eq!(unused, LookedFor::default());
        let away = dir.path().join("away");
        for (path, known) in [(dir.path(), Known::Used), (&away, Known::Unused)] {
            let refused = look_for(path, &[digest(1)], known).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unusable);
        }
    }
}
