//! The types of events.

use super::open_word;

open_word! {
    /// The type of an event: what happened.
    EventType {
        /// A file was uploaded. One event for each file of a batch. `data` has `status`.
        FileUploaded = "file.uploaded",
        /// A restore from a snapshot put the file back. `data` has `status`.
        FilePutBack = "file.put_back",
        /// A TEMP file became a THUMBNAIL.
        FileThumbnail = "file.thumbnail",
        /// A file became READY.
        FileReady = "file.ready",
        /// A file got new bytes, and a new version.
        FileReplaced = "file.replaced",
        /// Name, type or custom metadata were edited. `data` has `changed`.
        FileEdited = "file.edited",
        /// A file was deleted by a request. `data` has `by`.
        FileDeleted = "file.deleted",
        /// A TEMP file expired.
        FileExpired = "file.expired",
        /// A deleted file was restored. `data` has `status`.
        FileRestored = "file.restored",
        /// The bytes and the record of a deleted file are gone.
        FilePurged = "file.purged",
        /// A file was copied to its organization's provider, which serves it from now on. `data` has `from`, `to`.
        FileSynced = "file.synced",
        /// A file moved to another holder. `data` has `from`, `to`.
        FileMigrated = "file.migrated",
        /// All attempts to copy a file failed. `data` has `attempts`.
        FileSyncFailed = "file.sync_failed",
        /// A check found bytes of a live file missing or wrong. `data` has `reason`, `ok` (repaired).
        FileDamaged = "file.damaged",
        /// An organization was erased. `data` has `files`, `bytes`.
        OrganizationErased = "organization.erased",
        /// An organization was bound to a provider. `data` has `to`.
        BindingCreated = "binding.created",
        /// A binding was changed or ended. `data` has `to`, `ok` (active).
        BindingChanged = "binding.changed",
        /// An API key was created. `data` has `key_id`.
        KeyCreated = "key.created",
        /// An API key got a new secret. `data` has `key_id`.
        KeyRotated = "key.rotated",
        /// The scopes, organizations or lifetime of an API key changed. `data` has `key_id`.
        KeyChanged = "key.changed",
        /// An API key was revoked. `data` has `key_id`.
        KeyRevoked = "key.revoked",
        /// A webhook gets no more events. `data` has `webhook_id` and `reason`.
        WebhookDisabled = "webhook.disabled",
        /// A webhook gets events again. `data` has `webhook_id`.
        WebhookEnabled = "webhook.enabled",
        /// A check of the store ended. `data` has `reason` (`asked` or `scrub`), `files`, `ok` (nothing was found).
        FsckEnded = "fsck.ended",
        /// A backup ended, or failed. `data` has `reason` (name of the destination, if it has one), `ok`.
        BackupEnded = "backup.ended",
        /// A migration of an organization ended. `data` has `to`, `files`, `ok` (no file is left).
        MigrationEnded = "migration.ended",
        /// Changes before this event can lack their events. `data` has `off_since`.
        LogGap = "log.gap",
    }
}
