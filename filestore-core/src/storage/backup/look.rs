//! Searches a directory of snapshots for contents, while other runs can work on it.
//!
//! # Locking
//! The search takes no lock, because it writes no files and receipts must be available during a snapshot. A
//! run that removes snapshots first removes a manifest and then the bytes. In between, the search reports
//! these bytes as loose.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::damaged::DAMAGED;
use super::directory::{BLOBS, DATABASE, MANIFEST, SNAPSHOTS};
use super::files::{READING, open_regular};
use super::intake::INCOMING;
use super::manifest::{self, Manifest};
use super::marker;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{DestinationId, Sha256, SnapshotId};
use crate::domain::report::receipt::LooseContent;
use crate::domain::time::clock::Timestamp;

/// The snapshots in a directory that contain some of the searched contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LookedFor {
    /// The directory's id, if it has an id.
    pub id: Option<DestinationId>,
    /// The snapshots that contain a searched content, oldest first: id, time, and the sorted digests.
    pub snapshots: Vec<(SnapshotId, Timestamp, Vec<Sha256>)>,
    /// Searched contents in the directory that belong to no finished snapshot, in the order of their digests.
    /// A content can appear several times.
    pub loose: Vec<LooseContent>,
}

/// Whether the store has used a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The store took snapshots to it.
    Used,
    /// The store knows of no snapshot there.
    Unused,
}

/// The current destination at a path or a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    /// No destination. The disk might not be mounted.
    Nothing,
    /// A destination without an id.
    Unnamed,
    /// A destination with this id.
    Named(DestinationId),
}

/// Returns the current snapshot directory at a path. Blocks.
pub fn present_at(path: &Path) -> Result<Present> {
    if !marker::is_in(path) {
        return Ok(Present::Nothing);
    }
    Ok(marker::read_id(path)?.map_or(Present::Unnamed, Present::Named))
}

/// Searches a directory of snapshots for contents. An unused directory counts as empty. Blocks.
///
/// Returns `Unusable` if the directory is missing, or if it was [used](Known::Used) and its snapshots are
/// missing. The disk might not be mounted.
pub fn look_for(path: &Path, digests: &[Sha256], known: Known) -> Result<LookedFor> {
    if !marker::is_in(path) {
        if known == Known::Used || !path.is_dir() {
            let message = format!("the backup destination is not there: {}", path.display());
            return Err(Error::new(ErrorKind::Unusable, message));
        }
        return Ok(LookedFor::default());
    }

    let id = marker::read_id(path)?;
    let mut digests = digests.to_vec();
    digests.sort_unstable_by_key(|sha256| sha256.0);
    digests.dedup();
    let mut loose = Vec::new();
    for &sha256 in &digests {
        lying_in(path, sha256, &mut loose)?;
    }
    if loose.is_empty() {
        return Ok(LookedFor { id, ..LookedFor::default() });
    }
    if let Some(unfinished) = unfinished_in(path)? {
        for loose in &mut loose {
            unfinished.narrow(loose);
        }
    }

    let mut here: Vec<_> = loose.iter().map(|loose| loose.sha256).collect();
    here.dedup();
    let mut found = LookedFor { id, snapshots: Vec::new(), loose };
    for (id, manifest) in manifests(path)? {
        let Some(mut file) = opened(&manifest)? else { continue };
        let mut held = Vec::new();
        for &sha256 in &here {
            if manifest::find(&mut file, sha256)?.is_some() {
                held.push(sha256);
            }
        }

        if !held.is_empty() {
            found.loose.retain(|loose| !held.contains(&loose.sha256));
            let created_at = Manifest::open(file)?.info().created_at;
            found.snapshots.push((id, created_at, held));
        }
    }
    Ok(found)
}

/// Finds files in the directory with this digest, or with the name of this digest.
///
/// The times of a copy tell when it arrived. A hard link has the times of its original file: its modification
/// time is that of the blob, and creating the link set its change time. The bytes arrived between these two
/// times.
fn lying_in(path: &Path, sha256: Sha256, found: &mut Vec<LooseContent>) -> Result<()> {
    let name = sha256.to_hex();
    let blob = path.join(BLOBS).join(&name[..2]).join(&name);
    let places = [blob.with_extension(INCOMING), path.join(DAMAGED).join(&name), blob];
    for place in places {
        match fs::metadata(place) {
            Ok(metadata) => {
                let arrived_from = written_at(&metadata)?;
                let changed_at = metadata.ctime() * 1000 + metadata.ctime_nsec() / 1_000_000;
                let changed_at = Timestamp::from_millis(changed_at);
                let named_until = latest_of(arrived_from.max(changed_at));
                found.push(LooseContent { sha256, arrived_from, named_until });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(READING, error)),
        }
    }
    Ok(())
}

fn written_at(metadata: &fs::Metadata) -> Result<Timestamp> {
    let written = metadata.modified().map_err(|error| Error::io(READING, error))?;
    Ok(written.into())
}

/// The resolution of the clock for file times.
const STEP: Duration = Duration::from_millis(20);

/// Returns the last instant that a file or object time can stand for. A time in whole seconds comes from a
/// place without fractions of a second.
pub(super) fn latest_of(at: Timestamp) -> Timestamp {
    at.plus(if at.as_millis() % 1000 == 0 { Duration::from_secs(1) } else { STEP })
}

/// The last run, if it is running or was interrupted. The next run removes the leftovers of earlier runs.
struct Unfinished {
    began_at: Timestamp,
    /// The time at which its copy of the database was complete.
    copied_at: Timestamp,
}

impl Unfinished {
    /// Narrows the arrival time of bytes from this run. The bytes arrived after the run began. The run's copy
    /// of the database contains no younger bytes.
    fn narrow(&self, loose: &mut LooseContent) {
        if loose.arrived_from >= self.copied_at && loose.arrived_from >= self.began_at {
            loose.named_until = loose.named_until.min(latest_of(self.copied_at));
        }
    }
}

/// Finds a run whose bytes are in no manifest yet, if its copy of the database exists.
fn unfinished_in(path: &Path) -> Result<Option<Unfinished>> {
    let all = manifests(path)?;
    let Some((id, manifest)) = all.last() else { return Ok(None) };
    if opened(manifest)?.is_some() {
        return Ok(None);
    }
    match fs::metadata(manifest.with_file_name(DATABASE)) {
        Ok(metadata) => {
            Ok(Some(Unfinished { began_at: id.made_at(), copied_at: written_at(&metadata)? }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(READING, error)),
    }
}

/// Lists the manifest paths of finished snapshots, oldest first.
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
    match open_regular(manifest) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(READING, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::backup::contract::info;
    use crate::storage::backup::files::new_file;
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
        assert_eq!(found.loose.iter().map(|loose| loose.sha256).collect::<Vec<_>>(), [digest(7)]);
    }

    #[test]
    fn bytes_of_an_unfinished_run_are_named_by_its_copy_of_the_database_at_the_latest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("backup");
        let directory = BackupDirectory::create(&path).unwrap();
        let id = SnapshotId::generate(Timestamp::from_millis(1_000));
        let at = |millis| Timestamp::from_millis(millis).to_system_time();
        let written = |path: &Path, millis| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let file = File::create(path).unwrap();
            file.set_modified(at(millis)).unwrap();
        };
        let blob = |number: u16| {
            let name = digest(number).to_hex();
            path.join(BLOBS).join(&name[..2]).join(&name)
        };
        written(&directory.make(id).unwrap().database, 2_001);
        written(&blob(1), 1_500);
        written(&blob(2), 2_500);

        let found = look_for(&path, &[digest(1), digest(2)], Known::Used).unwrap().loose;
        let [before, since] = &found[..] else { panic!("{found:?}") };
        assert_eq!(before.arrived_from, Timestamp::from_millis(1_500));
        assert!(before.named_until > Timestamp::from_millis(1_000_000), "an earlier run's");
        assert_eq!(since.arrived_from, Timestamp::from_millis(2_500));
        assert_eq!(since.named_until, Timestamp::from_millis(2_021));
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
