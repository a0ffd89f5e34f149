//! The lifecycle of a file: THE state machine. Without I/O and without a clock.
//!
//! | from | event | to |
//! |---|---|---|
//! | – | [`FileState::uploaded`] | READY, sync PENDING |
//! | – | [`FileState::uploaded_temp`] | TEMP, sync NONE |
//! | TEMP | [`FileState::make_thumbnail`] | THUMBNAIL, sync NONE |
//! | any status | [`FileState::make_ready`] | READY, sync PENDING |
//! | any status | [`FileState::replace_blob`] | the same status. Sync PENDING for READY, else NONE |
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
//! An event to the current state is allowed and changes nothing. Every other event is [`Refused`].
//! The database applies an event as a compare-and-set on the state that the event was decided from.
//! Only this file compares statuses to decide if a change is allowed.

use super::status::{Location, PurgeStatus, Status, SyncStatus};
use crate::domain::error::{Error, ErrorKind};

/// The file state: status, sync status, purge status and location. Only valid combinations
/// exist.
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
    /// The file is deleted. Only `info` and `restore` find it.
    #[error("the file is deleted")]
    Deleted,
    /// The status does not allow the change.
    #[error("a {from} file cannot become {to}")]
    Transition {
        /// Current status.
        from: Status,
        /// Status that the change would set.
        to: Status,
    },
    /// The event of a worker does not apply to this state.
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
    /// Checks a stored state: TEMP and THUMBNAIL are LOCAL with sync NONE, and SYNCED is CLOUD.
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

    /// Returns the first state of an ordinary upload. A file that was written to its provider
    /// before the reply is PENDING too, until the worker finds the bytes in place.
    pub fn uploaded(location: Location) -> Self {
        Self { status: Status::Ready, sync: SyncStatus::Pending, purge: None, location }
    }

    /// Returns the first state of an upload with `upload_temp=true`. The file stays LOCAL with any
    /// binding.
    pub fn uploaded_temp() -> Self {
        Self {
            status: Status::Temp,
            sync: SyncStatus::None,
            purge: None,
            location: Location::Local,
        }
    }

    /// Returns the status.
    pub fn status(self) -> Status {
        self.status
    }

    /// Returns the sync status.
    pub fn sync(self) -> SyncStatus {
        self.sync
    }

    /// Returns the purge status. `None` if the file is not deleted.
    pub fn purge(self) -> Option<PurgeStatus> {
        self.purge
    }

    /// Returns the location that serves the bytes.
    pub fn location(self) -> Location {
        self.location
    }

    /// Tests whether the file is deleted. A deleted file is not readable.
    pub fn is_deleted(self) -> bool {
        self.purge.is_some()
    }

    /// Tests whether the file can move to a provider.
    pub fn may_leave_local(self) -> bool {
        self.status == Status::Ready
    }

    /// Changes a TEMP file to THUMBNAIL.
    pub fn make_thumbnail(self) -> Result<Self, Refused> {
        self.live()?;
        match self.status {
            Status::Temp => Ok(Self { status: Status::Thumbnail, sync: SyncStatus::None, ..self }),
            Status::Thumbnail => Ok(self),
            Status::Ready => Err(Refused::Transition { from: self.status, to: Status::Thumbnail }),
        }
    }

    /// Changes a file of any status to READY and PENDING, so that a promoted file reaches its
    /// provider. A READY file does not change.
    pub fn make_ready(self) -> Result<Self, Refused> {
        self.live()?;
        match self.status {
            Status::Temp | Status::Thumbnail => {
                Ok(Self { status: Status::Ready, sync: SyncStatus::Pending, ..self })
            }
            Status::Ready => Ok(self),
        }
    }

    /// Gives the file new bytes at `location` (LOCAL if the file cannot move).
    pub fn replace_blob(self, location: Location) -> Result<Self, Refused> {
        self.live()?;
        match self.status {
            Status::Ready => Ok(Self { sync: SyncStatus::Pending, location, ..self }),
            Status::Temp | Status::Thumbnail => Ok(self),
        }
    }

    /// Deletes the file. A deleted file does not change.
    #[must_use]
    pub fn delete(self) -> Self {
        Self { purge: Some(PurgeStatus::SystemPurge), ..self }
    }

    /// Restores a deleted file, and continues an interrupted copy. Other files do not change.
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

    /// Deletes an expired TEMP file.
    pub fn expire(self) -> Result<Self, Refused> {
        match (self.status, self.purge) {
            (Status::Temp, None) => Ok(self.delete()),
            _ => Err(Refused::NothingToDo),
        }
    }

    /// Ends the wait of a file without another provider, or of a file already at its provider.
    pub fn settle(self) -> Result<Self, Refused> {
        match (self.sync, self.purge) {
            (SyncStatus::Pending, None) => Ok(Self { sync: SyncStatus::None, ..self }),
            _ => Err(Refused::NothingToDo),
        }
    }

    /// Starts the copy of a waiting file.
    pub fn claim(self) -> Result<Self, Refused> {
        match (self.sync, self.purge) {
            (SyncStatus::Pending, None) => Ok(Self { sync: SyncStatus::Syncing, ..self }),
            _ => Err(Refused::NothingToDo),
        }
    }

    /// Postpones a failed copy.
    pub fn postpone(self) -> Result<Self, Refused> {
        self.end_copy(SyncStatus::Pending)
    }

    /// Marks a file as FAILED after its last attempt.
    pub fn fail(self) -> Result<Self, Refused> {
        self.end_copy(SyncStatus::Failed)
    }

    fn end_copy(self, sync: SyncStatus) -> Result<Self, Refused> {
        match self.sync {
            SyncStatus::Syncing => Ok(Self { sync, ..self }),
            _ => Err(Refused::NothingToDo),
        }
    }

    /// Switches a READY file to a verified copy of its bytes at `location`, from a sync or a
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

    /// Queues a READY file for a copy to its organization's provider.
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
