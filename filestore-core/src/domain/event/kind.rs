//! The kinds of events, and their names.

use std::fmt;
use std::str::FromStr;

use crate::domain::error::{Error, Result};

/// Declares the kinds with their names.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Type of a change. A later version can add kinds.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum EventKind {
            $($(#[$doc])* $name,)*
        }

        impl EventKind {
            /// Every kind.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$name,)*];

            /// Returns the name, for example `file.ready`.
            pub const fn as_str(self) -> &'static str {
                match self { $(EventKind::$name => $text,)* }
            }
        }
    };
}

kinds! {
    /// A file was uploaded. One event for each file of a batch. Details: `status`.
    FileUploaded = "file.uploaded",
    /// A restore from a snapshot put the file back. Details: `status`.
    FilePutBack = "file.put_back",
    /// A TEMP file became a THUMBNAIL.
    FileThumbnail = "file.thumbnail",
    /// A file became READY.
    FileReady = "file.ready",
    /// A file got new bytes, and a new version.
    FileReplaced = "file.replaced",
    /// Name, type or custom metadata were edited. Details: `changed`.
    FileEdited = "file.edited",
    /// A file was deleted by a request. Details: `by`.
    FileDeleted = "file.deleted",
    /// A TEMP file expired.
    FileExpired = "file.expired",
    /// A deleted file was restored. Details: `status`.
    FileRestored = "file.restored",
    /// The bytes and the record of a deleted file are gone.
    FilePurged = "file.purged",
    /// A file was copied to its organization's provider, which serves it from now on. Details: `from`, `to`.
    FileSynced = "file.synced",
    /// A file moved to another holder. Details: `from`, `to`.
    FileMigrated = "file.migrated",
    /// All attempts to copy a file failed. Details: `attempts`.
    FileSyncFailed = "file.sync_failed",
    /// A check found bytes of a live file missing or wrong. Details: `reason`, `ok` (repaired).
    FileDamaged = "file.damaged",
    /// An organization was erased. Details: `files`, `bytes`.
    OrganizationErased = "organization.erased",
    /// An organization was bound to a provider. Details: `to`.
    BindingCreated = "binding.created",
    /// A binding was changed or ended. Details: `to`, `ok` (active).
    BindingChanged = "binding.changed",
    /// An API key was created. Details: `key_id`.
    KeyCreated = "key.created",
    /// An API key got a new secret. Details: `key_id`.
    KeyRotated = "key.rotated",
    /// The scopes, organizations or lifetime of an API key changed. Details: `key_id`.
    KeyChanged = "key.changed",
    /// An API key was revoked. Details: `key_id`.
    KeyRevoked = "key.revoked",
    /// A webhook gets no more events. Details: `webhook_id`, `reason`.
    WebhookDisabled = "webhook.disabled",
    /// A webhook gets events again. Details: `webhook_id`.
    WebhookEnabled = "webhook.enabled",
    /// A check of the store ended. Details: `reason` (`asked` or `scrub`), `files`, `ok` (nothing was found).
    FsckEnded = "fsck.ended",
    /// A backup ended, or failed. Details: `reason` (name of the destination, if it has one), `ok`.
    BackupEnded = "backup.ended",
    /// A migration of an organization ended. Details: `to`, `files`, `ok` (no file is left).
    MigrationEnded = "migration.ended",
    /// Events were switched off for a time, or the database was restored or copied: changes before this event can
    /// lack their events. Details: `off_since`.
    LogGap = "log.gap",
}

impl EventKind {
    /// Returns true if the readers of an organization see the event. An administrator of the service sees all.
    pub fn is_of_file(self) -> bool {
        self.as_str().starts_with("file.")
    }

    /// Returns true if every reader sees the event, whatever its scope and filter, because it tells of missing events.
    pub fn is_for_all(self) -> bool {
        matches!(self, Self::LogGap)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EventKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = Self::ALL.iter().find(|kind| kind.as_str() == text);
        known.copied().ok_or_else(|| Error::invalid("types", "not a type of events"))
    }
}
