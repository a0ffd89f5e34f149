//! Which events a change of a record makes. The triggers of each engine say the same in SQL, and the contract
//! suite compares both.

use super::{EventDetails, EventKind};
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::{Location, Status, SyncStatus};
use crate::domain::provider::ProviderCode;
use crate::domain::report::receipt::DeletedBy;

/// Returns the events of a change from `old` (`None` for an insert) to `new`, in their order. `deleted_by` tells
/// who deleted `new`, if it is deleted.
///
/// An erasure tells nothing about its files.
pub fn of(
    old: Option<&FileRecord>,
    new: &FileRecord,
    deleted_by: &DeletedBy,
) -> Vec<(EventKind, EventDetails)> {
    let Some(old) = old else {
        let is_back = new.updated_at > new.created_at;
        let kind = if is_back { EventKind::FilePutBack } else { EventKind::FileUploaded };
        return vec![(kind, of_status(new))];
    };

    let mut events = Vec::new();
    if new.version != old.version {
        events.push((EventKind::FileReplaced, EventDetails::default()));
    }
    events.extend(of_promotion(old, new));
    if new.edited_at != old.edited_at && new.edited_at.is_some() {
        let details = EventDetails { changed: changed(old, new), ..EventDetails::default() };
        events.push((EventKind::FileEdited, details));
    }
    events.extend(of_deletion(old, new, deleted_by));
    events.extend(of_move(old, new));
    if new.state.sync() == SyncStatus::Failed && old.state.sync() != SyncStatus::Failed {
        let attempts = Some(u64::from(new.sync_attempts));
        events.push((
            EventKind::FileSyncFailed,
            EventDetails { attempts, ..EventDetails::default() },
        ));
    }
    events
}

fn of_status(record: &FileRecord) -> EventDetails {
    EventDetails { status: Some(record.state.status()), ..EventDetails::default() }
}

fn of_promotion(old: &FileRecord, new: &FileRecord) -> Option<(EventKind, EventDetails)> {
    if new.state.status() == old.state.status() {
        return None;
    }
    let kind = match new.state.status() {
        Status::Temp => return None,
        Status::Thumbnail => EventKind::FileThumbnail,
        Status::Ready => EventKind::FileReady,
    };
    Some((kind, EventDetails::default()))
}

fn changed(old: &FileRecord, new: &FileRecord) -> Vec<String> {
    let parts = [
        ("name", old.original_name != new.original_name),
        ("type", old.mime_type != new.mime_type),
        ("metadata", old.metadata != new.metadata),
    ];
    parts.iter().filter(|(_, is_other)| *is_other).map(|(name, _)| (*name).to_owned()).collect()
}

fn of_deletion(
    old: &FileRecord,
    new: &FileRecord,
    by: &DeletedBy,
) -> Option<(EventKind, EventDetails)> {
    match (old.state.is_deleted(), new.state.is_deleted()) {
        (false, true) => match by {
            DeletedBy::Erasure => None,
            DeletedBy::Expiry => Some((EventKind::FileExpired, EventDetails::default())),
            by => {
                let by = Some(by.kind().to_owned());
                Some((EventKind::FileDeleted, EventDetails { by, ..EventDetails::default() }))
            }
        },
        (true, false) => Some((EventKind::FileRestored, of_status(new))),
        _ => None,
    }
}

/// New bytes at another provider are told as a replacement only.
fn of_move(old: &FileRecord, new: &FileRecord) -> Option<(EventKind, EventDetails)> {
    let (from, to) = (shown(old), shown(new));
    if from == to || new.version != old.version {
        return None;
    }
    let is_sync = (old.state.sync(), new.state.sync()) == (SyncStatus::Syncing, SyncStatus::Synced);
    let kind = if is_sync { EventKind::FileSynced } else { EventKind::FileMigrated };
    Some((kind, EventDetails { from: Some(from), to: Some(to), ..EventDetails::default() }))
}

/// Returns the provider that the record shows. The backend of LOCAL files stays hidden.
fn shown(record: &FileRecord) -> ProviderCode {
    match record.state.location() {
        Location::Local => ProviderCode::local(),
        Location::Cloud => record.blob.provider.clone(),
    }
}
