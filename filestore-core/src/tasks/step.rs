//! Steps of the protocol: the moments at which the disk, the database or a provider has just changed,
//! and the calls that a failing disk refuses.
//!
//! # Purpose
//! A crash may come after any step, and a call may fail at any time. The feature `sabotage`, which
//! tests alone have, ends the process at a step, lets a call fail, or takes a part of the protocol
//! away; see the module `sabotage`. Without the feature the functions of this module do
//! nothing and cost nothing.
//!
//! # Use
//! Code that changes anything that outlives the process says so with [`reached`], right after the
//! change. A step that is new goes into the list here; the crash harness then fails until one of its
//! scenarios comes to that step.

macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A step of the protocol.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Step {
            $($(#[$doc])* $name,)*
        }

        impl Step {
            /// All steps, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the name of the step, as in the log of the crash harness.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

steps! {
    /// The data directory is locked, and its parts are made.
    DirectoryOpened,
    /// The file that room is kept in for deletes was made.
    ReserveMade,
    /// The database file was made, and nothing is in there.
    DatabaseMade,
    /// The rows that the last process left in the log are in the database.
    LogWrittenBack,
    /// A step of the schema's migration is committed.
    SchemaMigrated,
    /// A marker of the store is written.
    MarkerWritten,
    /// Recovery renamed what records name.
    StagedForwarded,
    /// Recovery unlinked what no record names.
    StagedUndone,
    /// Recovery handed the objects of broken writes over.
    StaleWritesWithdrawn,
    /// Recovery ended the leases of the last process.
    LeasesEnded,
    /// A staged file exists, and holds nothing.
    StagedFileMade,
    /// A block of a staged file is written.
    StagedBlockWritten,
    /// A staged file is synced.
    StagedFileSynced,
    /// The names in the staging directory are synced.
    StagingSynced,
    /// A transaction is complete, and not committed.
    CommitPrepared,
    /// A transaction is committed, and nobody was told.
    Committed,
    /// The log of the database was checkpointed.
    Checkpointed,
    /// A directory of blobs was made, and its name is not synced.
    DirectoryMade,
    /// The name of a new directory of blobs is synced.
    DirectorySynced,
    /// A blob has its final name.
    BlobRenamed,
    /// Final names are synced.
    RenamesSynced,
    /// A staged file is unlinked that no record will name.
    StagedDiscarded,
    /// The purge has claimed files.
    PurgeClaimed,
    /// The variants of a claimed file are removed.
    VariantsRemoved,
    /// The staged name of a blob is unlinked, the final one not yet.
    StagedNameRemoved,
    /// Both names of a blob are unlinked, and the directories are not synced.
    BlobRemoved,
    /// The directories of removed blobs are synced.
    RemovalSynced,
    /// An empty directory of blobs is removed.
    DirectoryPruned,
    /// The records of purged files are deleted.
    PurgeFinished,
    /// Dropped blobs are removed, and still listed as dropped.
    DroppedRemoved,
    /// Dropped blobs are listed no more.
    DroppedFinished,
    /// A write to a provider is noted, and nothing of it was sent.
    WriteNoted,
    /// An object is whole at its provider, verified, and no record refers to it.
    ObjectPut,
    /// An object at a provider was removed again.
    ObjectRemoved,
    /// A sync has claimed a file.
    SyncClaimed,
    /// A copy from a provider is staged here.
    CopyStaged,
    /// A record refers to a copy elsewhere.
    CopyReferred,
    /// A run has claimed a destination of backups that is a provider.
    DestinationClaimed,
    /// The place of a snapshot is made, and nothing is in there.
    SnapshotBegun,
    /// A destination of backups has a content.
    ContentTaken,
    /// A destination of backups that is a provider has the copy of the database.
    DatabaseTaken,
    /// The manifest of a snapshot has its name.
    SnapshotFinished,
    /// The manifest of a snapshot is removed, and the rest is not.
    SnapshotUnnamed,
    /// A content that no snapshot holds is removed.
    ContentSwept,
}

/// A kind of call to the operating system that a failing or full disk refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Making or opening a file.
    Open,
    /// Writing bytes.
    Write,
    /// Syncing a file or directory.
    Sync,
    /// Renaming.
    Rename,
    /// Making a directory.
    MakeDirectory,
    /// Removing a name.
    Unlink,
    /// Reading bytes.
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

/// Notes that a step is done: a crash may come now.
#[cfg(not(feature = "sabotage"))]
#[inline]
pub fn reached(_step: Step) {}

/// Fails where a test wants the next call of this kind to fail.
#[cfg(not(feature = "sabotage"))]
#[inline]
#[cfg_attr(
    not(feature = "internals"),
    expect(clippy::unnecessary_wraps, reason = "with the feature sabotage it fails")
)]
pub fn attempt(_call: Call) -> Result<(), rustix::io::Errno> {
    Ok(())
}
