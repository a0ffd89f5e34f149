//! The names of the objects in a snapshot.

use std::fmt;

use super::{RunKind, Stored};
use crate::domain::id::{Sha256, SnapshotId, StoreId};

pub(super) const MARKER: &str = ".filestore-backup/marker";
pub(super) const SNAPSHOTS: &str = ".filestore-backup/snapshots/";
pub(super) const DAMAGED: &str = ".filestore-backup/damaged/";
pub(super) const RUNS: &str = ".filestore-backup/runs/";

/// The number of directories for contents.
pub(super) const SHARDS: u16 = 256;

/// Returns the directory for contents with this first byte of the digest.
pub(super) fn shard(first: u8) -> String {
    format!(".filestore-backup/blobs/{first:02x}/")
}

/// A content, by its digest and its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ContentName {
    pub(super) sha256: [u8; 32],
    pub(super) by: SnapshotId,
}

impl ContentName {
    pub(super) fn new(sha256: Sha256, by: SnapshotId) -> Self {
        Self { sha256: sha256.0, by }
    }

    /// Returns the name of a content in a manifest. `None` for a content of a directory.
    pub(super) fn of(content: Stored) -> Option<Self> {
        content.by.map(|by| Self::new(content.expected.sha256, by))
    }

    /// Parses the last part of a name.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (sha256, by) = text.split_once('.')?;
        Some(Self::new(sha256.parse().ok()?, by.parse().ok()?))
    }

    /// Returns the object's name.
    pub(super) fn object(self) -> String {
        format!("{}{self}", shard(self.sha256[0]))
    }

    /// Returns the name of the note that marks the content as damaged.
    pub(super) fn damage_note(self) -> String {
        format!("{DAMAGED}{self}")
    }
}

impl fmt::Display for ContentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", Sha256(self.sha256).to_hex(), self.by)
    }
}

/// A part of a snapshot, except its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Database,
    Manifest,
    /// The note that the run is considered dead. A manifest that it writes later does not count.
    Revoked,
}

impl Part {
    pub(super) fn object(self, id: SnapshotId) -> String {
        format!("{SNAPSHOTS}{id}.{}", self.extension())
    }

    /// Parses the last part of a name.
    pub(super) fn parse(text: &str) -> Option<(SnapshotId, Self)> {
        let (id, extension) = text.split_once('.')?;
        let all = [Self::Database, Self::Manifest, Self::Revoked];
        let part = all.into_iter().find(|part| part.extension() == extension)?;
        Some((id.parse().ok()?, part))
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Database => "sqlite3",
            Self::Manifest => "jsonl",
            Self::Revoked => "revoked",
        }
    }
}

/// A beat of a run's lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BeatName {
    pub(super) run: SnapshotId,
    pub(super) kind: RunKind,
    pub(super) store: Option<StoreId>,
    pub(super) number: u64,
}

impl BeatName {
    pub(super) fn object(self) -> String {
        let store = self.store.map_or_else(|| "-".to_owned(), |store| store.to_string());
        format!("{RUNS}{}.{}.{store}.{}", self.run, word(self.kind), self.number)
    }

    /// Parses the last part of a name.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let (run, kind, store, number) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let kinds = [RunKind::Create, RunKind::Verify, RunKind::Restore, RunKind::Prune];
        Some(Self {
            run: run.parse().ok()?,
            kind: kinds.into_iter().find(|known| word(*known) == kind)?,
            store: if store == "-" { None } else { Some(store.parse().ok()?) },
            number: number.parse().ok()?,
        })
    }
}

fn word(kind: RunKind) -> &'static str {
    match kind {
        RunKind::Create => "create",
        RunKind::Verify => "verify",
        RunKind::Restore => "restore",
        RunKind::Prune => "prune",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAZ";

    #[test]
    fn every_name_is_read_as_it_was_written() {
        let run: SnapshotId = RUN.parse().unwrap();
        let last = |name: String| name.rsplit('/').next().unwrap().to_owned();

        let content = ContentName::new(Sha256([7; 32]), run);
        assert_eq!(ContentName::parse(&last(content.object())), Some(content));
        assert_eq!(ContentName::parse(&last(content.damage_note())), Some(content));
        for part in [Part::Database, Part::Manifest, Part::Revoked] {
            assert_eq!(Part::parse(&last(part.object(run))), Some((run, part)));
        }
        for kind in [RunKind::Create, RunKind::Verify, RunKind::Restore, RunKind::Prune] {
            for store in [None, Some("01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap())] {
                let beat = BeatName { run, kind, store, number: 12 };
                assert_eq!(BeatName::parse(&last(beat.object())), Some(beat));
            }
        }
        for other in ["", "x", ".", "a.b", "a.b.c.d", &format!("{RUN}.other"), RUN] {
            assert_eq!(ContentName::parse(other), None);
            assert_eq!((Part::parse(other), BeatName::parse(other)), (None, None));
        }
    }
}
