//! Steps of the protocol: moments after a change of the disk, the database or a provider, and calls
//! that can fail.
//!
//! # Purpose
//! A crash can happen after any step, and a call can fail at any time. With the feature `sabotage`,
//! only for tests, a step can kill the process, a call can fail, or a part of the protocol is
//! missing (see the module `sabotage`). Without the feature, the functions do nothing and cost
//! nothing.
//!
//! # Use
//! If your code changes anything that outlives the process, call [`reached`] right after the
//! change. For example, `reached(Step::Committed)` follows each commit. If you add a step to this
//! list, the crash harness fails until one of its scenarios reaches the step.

macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A step of the protocol.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Step {
            $($(#[$doc])* $name,)*
        }

        impl Step {
            /// All steps, in declaration order.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the step's name, as in the log of the crash harness.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

steps! {
    /// The data directory is locked, and its folders exist.
    DirectoryOpened,
    /// The reserve file for deletes was created.
    ReserveMade,
    /// The database file was created and is empty.
    DatabaseMade,
    /// The log of the last process is written back to the database.
    LogWrittenBack,
    /// One migration of the schema is committed.
    SchemaMigrated,
    /// A marker of the store is written.
    MarkerWritten,
    /// Recovery renamed a staged file with a record.
    StagedForwarded,
    /// Recovery unlinked a staged file without a record.
    StagedUndone,
    /// Recovery gave the objects of interrupted writes to the purge.
    StaleWritesWithdrawn,
    /// Recovery ended the leases of the last process.
    LeasesEnded,
    /// A staged file was created and is empty.
    StagedFileMade,
    /// A block of a staged file is written.
    StagedBlockWritten,
    /// A staged file is synced.
    StagedFileSynced,
    /// A staged file of a resumable upload lost the bytes past its offset.
    StagedFileCut,
    /// A staged file of a resumable upload is synced, and no offset was told.
    CheckpointSynced,
    /// A resumable upload is stored and has no file.
    ResumableBegun,
    /// A resumable upload has another offset, and no client knows.
    OffsetKept,
    /// All bytes of a resumable upload are durable, and its commit was not begun.
    ResumableCompleting,
    /// A resumable upload has failed, has expired or was cancelled, and its bytes are there.
    ResumableEnded,
    /// The staging directory is synced.
    StagingSynced,
    /// A transaction is complete and not yet committed.
    CommitPrepared,
    /// A transaction is committed, and the caller does not know yet.
    Committed,
    /// The log of the database was checkpointed.
    Checkpointed,
    /// A blob directory was created, and its name is not synced.
    DirectoryMade,
    /// The name of a new blob directory is synced.
    DirectorySynced,
    /// A blob has its final name.
    BlobRenamed,
    /// Final names are synced.
    RenamesSynced,
    /// A staged file without a record is unlinked.
    StagedDiscarded,
    /// The purge has claimed files.
    PurgeClaimed,
    /// The variants of a claimed file are removed.
    VariantsRemoved,
    /// The staged name of a blob is unlinked, and the final name is not.
    StagedNameRemoved,
    /// Both names of a blob are unlinked, and the directories are not synced.
    BlobRemoved,
    /// The directories of removed blobs are synced.
    RemovalSynced,
    /// An empty blob directory is removed.
    DirectoryPruned,
    /// The records of purged files are deleted.
    PurgeFinished,
    /// Replaced blobs are removed and still listed.
    DroppedRemoved,
    /// Replaced blobs are no longer listed.
    DroppedFinished,
    /// A write intent is stored, and no byte was sent.
    WriteNoted,
    /// An object at its provider is complete and verified, and no record refers to it.
    ObjectPut,
    /// An object at a provider was removed again.
    ObjectRemoved,
    /// An erasure has taken the rights of one key.
    RightTaken,
    /// An erasure has ended the era of its organization.
    EraEnded,
    /// An erasure has removed the rows of its organization that are not about files.
    OrganizationForgotten,
    /// An erasure has blanked events of its organization.
    EventsBlanked,
    /// Old events are removed from the log.
    EventsForgotten,
    /// An endpoint has answered, and its lane has not saved the answer.
    DeliveryAnswered,
    /// The progress of a lane is saved.
    DeliverySaved,
    /// A webhook is disabled, because of its endpoint.
    EndpointDisabled,
    /// A sync has claimed a file.
    SyncClaimed,
    /// A copy from a provider is staged.
    CopyStaged,
    /// A record refers to a copy at another provider.
    CopyReferred,
    /// A backup run has claimed a destination at a provider.
    DestinationClaimed,
    /// The database keeps the bytes that a snapshot will name.
    HoldTaken,
    /// The place of a snapshot was created and is empty.
    SnapshotBegun,
    /// The copy of the records for a snapshot is complete, and not flushed.
    RecordsCopied,
    /// A backup destination has a blob.
    ContentTaken,
    /// A backup destination at a provider has the database copy.
    DatabaseTaken,
    /// The manifest of a snapshot has its name.
    SnapshotFinished,
    /// The manifest of a snapshot is removed, and the rest is not.
    SnapshotUnnamed,
    /// A blob without a snapshot is removed.
    ContentSwept,
}

/// A kind of call to the operating system that can fail, for example because the disk is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Create or open a file.
    Open,
    /// Write bytes.
    Write,
    /// Sync a file or directory.
    Sync,
    /// Rename.
    Rename,
    /// Create a directory.
    MakeDirectory,
    /// Unlink a name.
    Unlink,
    /// Read bytes.
    Read,
}

impl Call {
    /// All kinds of calls.
    pub const ALL: &[Self] = &[
        Self::Open,
        Self::Write,
        Self::Sync,
        Self::Rename,
        Self::MakeDirectory,
        Self::Unlink,
        Self::Read,
    ];
}

#[cfg(feature = "sabotage")]
pub use super::sabotage::{attempt, reached, takes};

/// Records that a step is done. A crash can follow.
#[cfg(not(feature = "sabotage"))]
#[inline]
pub fn reached(_step: Step) {}

/// Fails if a test wants the next call of this kind to fail.
#[cfg(not(feature = "sabotage"))]
#[inline]
#[cfg_attr(
    not(feature = "internals"),
    expect(clippy::unnecessary_wraps, reason = "with the feature sabotage it fails")
)]
pub fn attempt(_call: Call) -> Result<(), rustix::io::Errno> {
    Ok(())
}
