//! The lifecycle of a file: THE state machine. Pure; no I/O, no clock.
//!
//! | from | event | to |
//! |---|---|---|
//! | – | [`FileState::uploaded`] | READY, sync PENDING |
//! | – | [`FileState::uploaded_temp`] | TEMP, sync NONE |
//! | TEMP | [`FileState::make_thumbnail`] | THUMBNAIL, sync NONE |
//! | any status | [`FileState::make_ready`] | READY, sync PENDING |
//! | any status | [`FileState::replace_blob`] | the same status; sync PENDING for READY, else NONE |
//! | any | [`FileState::delete`] | purge SYSTEM_PURGE |
//! | SYSTEM_PURGE | [`FileState::restore`] | purge none |
//! | TEMP | [`FileState::expire`] | purge SYSTEM_PURGE |
//! | PENDING | [`FileState::settle`] | sync NONE |
//! | PENDING | [`FileState::claim`] | sync SYNCING |
//! | SYNCING | [`FileState::postpone`] | sync PENDING |
//! | SYNCING | [`FileState::fail`] | sync FAILED |
//! | READY | [`FileState::move_to`] | SYNCED and CLOUD, or NONE and LOCAL |
//! | NONE, SYNCED, FAILED of READY | [`FileState::enqueue`] | sync PENDING |
//!
//! The same state again is allowed and changes nothing. Everything else is [`Refused`]. The
//! database applies an event as a compare-and-set on the state it was decided from; nothing outside
//! this file compares statuses to decide what is allowed.

use super::error::{Error, ErrorKind};
use super::status::{Location, PurgeStatus, Status, SyncStatus};

/// A file's place on all four axes. Only consistent combinations exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileState {
    status: Status,
    sync: SyncStatus,
    purge: Option<PurgeStatus>,
    location: Location,
}

/// An event that the state does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The file is deleted: only `info` and `restore` still find it.
    #[error("the file is deleted")]
    Deleted,
    /// The status does not allow the change.
    #[error("a {from} file cannot become {to}")]
    Transition {
        /// The file's status.
        from: Status,
        /// The status that the change would give it.
        to: Status,
    },
    /// The worker's event does not apply to this state.
    #[error("nothing to do in this state")]
    NothingToDo,
}

/// A stored combination that no event produces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("inconsistent state {status} {sync} {location}")]
pub struct Inconsistent {
    status: Status,
    sync: SyncStatus,
    location: Location,
}

impl FileState {
    /// Checks a state as it was stored: TEMP and THUMBNAIL are LOCAL with sync NONE, and SYNCED
    /// is CLOUD.
    pub fn from_row(
        status: Status,
        sync: SyncStatus,
        purge: Option<PurgeStatus>,
        location: Location,
    ) -> Result<Self, Inconsistent> {
        let local_only = !matches!(status, Status::Ready);
        let consistent = if local_only {
            location == Location::Local && sync == SyncStatus::None
        } else {
            sync != SyncStatus::Synced || location == Location::Cloud
        };

        if consistent {
            Ok(Self { status, sync, purge, location })
        } else {
            Err(Inconsistent { status, sync, location })
        }
    }

    /// Begins the life of a normal upload. One that was written through is PENDING as well, until
    /// the worker finds that its bytes are where they belong.
    pub fn uploaded(location: Location) -> Self {
        Self { status: Status::Ready, sync: SyncStatus::Pending, purge: None, location }
    }

    /// Begins the life of an upload with `upload_temp=true`: it stays LOCAL whatever the binding.
    pub fn uploaded_temp() -> Self {
        Self {
            status: Status::Temp,
            sync: SyncStatus::None,
            purge: None,
            location: Location::Local,
        }
    }

    /// Returns the file's status.
    pub fn status(self) -> Status {
        self.status
    }

    /// Returns the file's sync status.
    pub fn sync(self) -> SyncStatus {
        self.sync
    }

    /// Returns the purge status of a deleted file.
    pub fn purge(self) -> Option<PurgeStatus> {
        self.purge
    }

    /// Returns the location that serves the bytes.
    pub fn location(self) -> Location {
        self.location
    }

    /// Tells if the file is deleted, and so unreadable.
    pub fn is_deleted(self) -> bool {
        self.purge.is_some()
    }

    /// Tells if the file may leave the data directory at all.
    pub fn may_leave_local(self) -> bool {
        self.status == Status::Ready
    }

    /// Makes a TEMP file a THUMBNAIL.
    pub fn make_thumbnail(self) -> Result<Self, Refused> {
        self.live()?;
        match self.status {
            Status::Temp => Ok(Self { status: Status::Thumbnail, sync: SyncStatus::None, ..self }),
            Status::Thumbnail => Ok(self),
            Status::Ready => Err(Refused::Transition { from: self.status, to: Status::Thumbnail }),
        }
    }

    /// Makes a file of any status READY and PENDING, so that a promoted file still reaches its
    /// provider. A file that is READY stays exactly as it is.
    pub fn make_ready(self) -> Result<Self, Refused> {
        self.live()?;
        match self.status {
            Status::Temp | Status::Thumbnail => {
                Ok(Self { status: Status::Ready, sync: SyncStatus::Pending, ..self })
            }
            Status::Ready => Ok(self),
        }
    }

    /// Gives the file new bytes, now at `location` (LOCAL for a file that may not leave).
    pub fn replace_blob(self, location: Location) -> Result<Self, Refused> {
        self.live()?;
        match self.status {
            Status::Ready => Ok(Self { sync: SyncStatus::Pending, location, ..self }),
            Status::Temp | Status::Thumbnail => Ok(self),
        }
    }

    /// Deletes the file; a deleted one stays so.
    #[must_use]
    pub fn delete(self) -> Self {
        Self { purge: Some(PurgeStatus::SystemPurge), ..self }
    }

    /// Brings a deleted file back and takes a copy that was under way up again; any other file
    /// stays exactly as it is.
    #[must_use]
    pub fn restore(self) -> Self {
        match (self.purge, self.sync) {
            (None, _) => self,
            (Some(PurgeStatus::SystemPurge), SyncStatus::Syncing) => {
                Self { purge: None, sync: SyncStatus::Pending, ..self }
            }
            (Some(PurgeStatus::SystemPurge), _) => Self { purge: None, ..self },
        }
    }

    /// Deletes a TEMP file whose time is over.
    pub fn expire(self) -> Result<Self, Refused> {
        match (self.status, self.purge) {
            (Status::Temp, None) => Ok(self.delete()),
            _ => Err(Refused::NothingToDo),
        }
    }

    /// Ends the wait of a file that has nowhere to go, or is there already.
    pub fn settle(self) -> Result<Self, Refused> {
        match (self.sync, self.purge) {
            (SyncStatus::Pending, None) => Ok(Self { sync: SyncStatus::None, ..self }),
            _ => Err(Refused::NothingToDo),
        }
    }

    /// Begins the copy of a waiting file.
    pub fn claim(self) -> Result<Self, Refused> {
        match (self.sync, self.purge) {
            (SyncStatus::Pending, None) => Ok(Self { sync: SyncStatus::Syncing, ..self }),
            _ => Err(Refused::NothingToDo),
        }
    }

    /// Postpones a copy that failed.
    pub fn postpone(self) -> Result<Self, Refused> {
        self.end_copy(SyncStatus::Pending)
    }

    /// Ends the attempts: a copy failed for the last time.
    pub fn fail(self) -> Result<Self, Refused> {
        self.end_copy(SyncStatus::Failed)
    }

    fn end_copy(self, sync: SyncStatus) -> Result<Self, Refused> {
        match self.sync {
            SyncStatus::Syncing => Ok(Self { sync, ..self }),
            _ => Err(Refused::NothingToDo),
        }
    }

    /// Switches a READY file to a verified copy of its bytes at `location`, made by a sync or by a
    /// migration.
    pub fn move_to(self, location: Location) -> Result<Self, Refused> {
        self.live()?;
        if !self.may_leave_local() {
            return Err(Refused::NothingToDo);
        }
        let sync = match location {
            Location::Cloud => SyncStatus::Synced,
            Location::Local => SyncStatus::None,
        };
        Ok(Self { sync, location, ..self })
    }

    /// Queues a READY file that rests for a copy to its organization's provider.
    pub fn enqueue(self) -> Result<Self, Refused> {
        self.live()?;
        match self.sync {
            SyncStatus::None | SyncStatus::Synced | SyncStatus::Failed
                if self.may_leave_local() =>
            {
                Ok(Self { sync: SyncStatus::Pending, ..self })
            }
            _ => Err(Refused::NothingToDo),
        }
    }

    fn live(self) -> Result<(), Refused> {
        if self.is_deleted() { Err(Refused::Deleted) } else { Ok(()) }
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Deleted => Error::not_found("file"),
            Refused::Transition { from, to } => {
                let allowed = match from {
                    Status::Temp => &[Status::Temp, Status::Thumbnail, Status::Ready][..],
                    Status::Thumbnail => &[Status::Thumbnail, Status::Ready],
                    Status::Ready => &[Status::Ready],
                };
                Error::new(ErrorKind::InvalidTransition, refused.to_string())
                    .with_transition(from.as_str(), to.as_str())
                    .with_allowed(allowed.iter().map(|status| status.as_str()))
            }
            Refused::NothingToDo => Error::new(ErrorKind::Conflict, refused.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone, Copy)]
    enum Event {
        Thumbnail,
        Ready,
        Replace(Location),
        Delete,
        Restore,
        Expire,
        Settle,
        Claim,
        Postpone,
        Fail,
        Move(Location),
        Enqueue,
    }

    fn apply(state: FileState, event: Event) -> Result<FileState, Refused> {
        match event {
            Event::Thumbnail => state.make_thumbnail(),
            Event::Ready => state.make_ready(),
            Event::Replace(location) => state.replace_blob(location),
            Event::Delete => Ok(state.delete()),
            Event::Restore => Ok(state.restore()),
            Event::Expire => state.expire(),
            Event::Settle => state.settle(),
            Event::Claim => state.claim(),
            Event::Postpone => state.postpone(),
            Event::Fail => state.fail(),
            Event::Move(location) => state.move_to(location),
            Event::Enqueue => state.enqueue(),
        }
    }

    /// The contract's table, written as sentences over strings rather than as code over enums.
    fn model(
        state: (&str, &str, bool, &str),
        event: Event,
    ) -> Option<(String, String, bool, String)> {
        let (status, sync, deleted, location) = state;
        let to = |status: &str, sync: &str, deleted: bool, location: &str| {
            Some((status.to_owned(), sync.to_owned(), deleted, location.to_owned()))
        };

        match event {
            Event::Delete => to(status, sync, true, location),
            Event::Restore if deleted => {
                to(status, if sync == "SYNCING" { "PENDING" } else { sync }, false, location)
            }
            Event::Restore => to(status, sync, false, location),
            // A worker may be at it when the file is deleted.
            Event::Postpone if sync == "SYNCING" => to(status, "PENDING", deleted, location),
            Event::Fail if sync == "SYNCING" => to(status, "FAILED", deleted, location),
            _ if deleted => None,
            Event::Thumbnail if status == "READY" => None,
            Event::Thumbnail => to("THUMBNAIL", "NONE", false, location),
            Event::Ready if status == "READY" => to(status, sync, false, location),
            Event::Ready => to("READY", "PENDING", false, location),
            Event::Replace(new) if status == "READY" => to("READY", "PENDING", false, new.as_str()),
            Event::Replace(_) => to(status, "NONE", false, "LOCAL"),
            Event::Expire if status == "TEMP" => to(status, sync, true, location),
            Event::Settle if sync == "PENDING" => to(status, "NONE", false, location),
            Event::Claim if sync == "PENDING" => to(status, "SYNCING", false, location),
            Event::Move(Location::Cloud) if status == "READY" => {
                to(status, "SYNCED", false, "CLOUD")
            }
            Event::Move(Location::Local) if status == "READY" => to(status, "NONE", false, "LOCAL"),
            Event::Enqueue if status == "READY" && ["NONE", "SYNCED", "FAILED"].contains(&sync) => {
                to(status, "PENDING", false, location)
            }
            Event::Expire
            | Event::Settle
            | Event::Claim
            | Event::Postpone
            | Event::Fail
            | Event::Move(_)
            | Event::Enqueue => None,
        }
    }

    fn flat(state: FileState) -> (String, String, bool, String) {
        (
            state.status().to_string(),
            state.sync().to_string(),
            state.is_deleted(),
            state.location().to_string(),
        )
    }

    fn location() -> impl Strategy<Value = Location> {
        prop_oneof![Just(Location::Local), Just(Location::Cloud)]
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            Just(Event::Thumbnail),
            Just(Event::Ready),
            location().prop_map(Event::Replace),
            Just(Event::Delete),
            Just(Event::Restore),
            Just(Event::Expire),
            Just(Event::Settle),
            Just(Event::Claim),
            Just(Event::Postpone),
            Just(Event::Fail),
            location().prop_map(Event::Move),
            Just(Event::Enqueue),
        ]
    }

    proptest! {
        #[test]
        fn every_walk_agrees_with_the_table(temp: bool, at in location(), events in prop::collection::vec(event(), 0..40)) {
            let mut state = if temp { FileState::uploaded_temp() } else { FileState::uploaded(at) };
            for event in events {
                let (status, sync, deleted, place) = flat(state);
                let expected = model((&status, &sync, deleted, &place), event);
                let reached = apply(state, event);
                prop_assert_eq!(reached.ok().map(flat), expected, "{:?} in {:?}", event, state);
                state = reached.unwrap_or(state);
                let row = FileState::from_row(state.status(), state.sync(), state.purge(), state.location());
                prop_assert_eq!(row, Ok(state), "reached a state that the database would refuse");
                prop_assert!(state.may_leave_local() || state.location() == Location::Local);
            }
        }
    }

    #[test]
    fn a_normal_upload_is_pending_and_a_temp_one_is_not() {
        assert_eq!(FileState::uploaded(Location::Local).sync(), SyncStatus::Pending);
        assert_eq!(FileState::uploaded_temp().sync(), SyncStatus::None);
    }

    #[test]
    fn the_same_state_again_changes_nothing() {
        let thumbnail = FileState::uploaded_temp().make_thumbnail().unwrap();
        assert_eq!(thumbnail.make_thumbnail(), Ok(thumbnail));
        let ready = thumbnail.make_ready().unwrap().settle().unwrap();
        assert_eq!(ready.make_ready(), Ok(ready));
        assert_eq!(ready.delete().delete(), ready.delete());
        assert_eq!(ready.restore(), ready);
    }

    #[test]
    fn a_refused_transition_says_from_to_and_allowed() {
        let ready = FileState::uploaded(Location::Local);
        let error = Error::from(ready.make_thumbnail().unwrap_err());
        assert_eq!(error.kind(), ErrorKind::InvalidTransition);
        assert_eq!(error.details().from.as_deref(), Some("READY"));
        assert_eq!(error.details().to.as_deref(), Some("THUMBNAIL"));
        assert_eq!(error.details().allowed, ["READY"]);
    }

    #[test]
    fn local_only_files_are_never_stored_as_cloud() {
        for status in [Status::Temp, Status::Thumbnail] {
            assert!(FileState::from_row(status, SyncStatus::None, None, Location::Cloud).is_err());
            assert!(
                FileState::from_row(status, SyncStatus::Pending, None, Location::Local).is_err()
            );
        }

        assert!(
            FileState::from_row(Status::Ready, SyncStatus::Synced, None, Location::Local).is_err()
        );
    }
}
