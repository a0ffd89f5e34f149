//! The stable codes of facts and steps.

use std::fmt;

macro_rules! codes {
    ($(#[$doc:meta])* $type:ident { $($(#[$vdoc:meta])* $name:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $type { $($(#[$vdoc])* $name,)* }

        impl $type {
            /// Every code, in declaration order.
            pub const ALL: &'static [$type] = &[$($type::$name,)*];

            /// Returns the stable code.
            pub const fn as_str(self) -> &'static str {
                match self { $($type::$name => $text,)* }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

codes! {
    /// The code of a [`Fact`](super::Fact).
    FactCode {
        /// The data directory stores the content.
        DataDirectory = "data_directory",
        /// The backend of `LOCAL` stores the content.
        Backend = "backend",
        /// A provider stores the content.
        Provider = "provider",
        /// A place still stores replaced content.
        Replaced = "replaced",
        /// An object of the file is being written to a provider.
        BeingWritten = "being_written",
        /// A place from which the purge has removed bytes.
        Removed = "removed",
        /// A place at which the purge still removes bytes, or checks again.
        Awaited = "awaited",

        /// A `TEMP` file stays local until it expires or is promoted.
        Temporary = "temporary",
        /// A `THUMBNAIL` file stays local.
        Thumbnail = "thumbnail",
        /// The organization has no active binding.
        NoBinding = "no_binding",
        /// The binding names `LOCAL`.
        BoundToLocal = "bound_to_local",
        /// The binding names a provider. Uploads write there directly.
        Bound = "bound",
        /// The binding names a provider, to which files are copied in the background.
        BoundWithSync = "bound_with_sync",
        /// The sync worker has claimed the file.
        ClaimedBySync = "claimed_by_sync",
        /// A migration of the organization is running.
        Migration = "migration",
        /// The file is deleted.
        Deleted = "deleted",
        /// The purge has claimed the file. A restore is no longer possible.
        ClaimedByPurge = "claimed_by_purge",
        /// The file is purged.
        Purged = "purged",

        /// The provider does not answer.
        ProviderDown = "provider_down",
        /// The provider answers, but does not show the store's marker.
        ProviderMisplaced = "provider_misplaced",
        /// The provider is not, or no longer, configured.
        ProviderMissing = "provider_missing",
        /// The provider accepts no copies.
        ProviderInactive = "provider_inactive",
        /// A running snapshot protects the bytes.
        SnapshotHold = "snapshot_hold",
        /// The clock has jumped forward and is not trusted yet.
        ClockUnsettled = "clock_unsettled",
        /// Replaced content at another provider must go first.
        ReplacedElsewhere = "replaced_elsewhere",

        /// The file will be served from its new place.
        Served = "served",
        /// The bytes at the old place will be removed.
        OldBytesRemoved = "old_bytes_removed",
        /// The file will be deleted, and its bytes will be purged later.
        DeletedByExpiry = "deleted_by_expiry",
        /// A purge receipt will prove that the file is gone.
        Receipt = "receipt",

        /// Copies to the provider failed.
        CopyFailed = "copy_failed",
        /// A copy failed because of an outage, which counts no attempt.
        CopyInterrupted = "copy_interrupted",
        /// Attempts to purge the file failed.
        PurgeFailed = "purge_failed",
        /// Attempts to remove replaced content failed.
        RemovalFailed = "removal_failed",
    }
}

codes! {
    /// The code of a [`Step`](super::Step).
    StepCode {
        /// The sync status becomes `NONE`, because the file needs no copy.
        Settle = "settle",
        /// The file is copied to the provider of the organization's binding.
        Copy = "copy",
        /// The copy is running.
        Copying = "copying",
        /// A running migration moves the file.
        Move = "move",
        /// All copies failed. An operator must start new attempts.
        RetryByHand = "retry_by_hand",
        /// The `TEMP` file expires.
        Expire = "expire",
        /// The bytes and the record are removed.
        Purge = "purge",
        /// The purge waits for replaced content at other providers.
        AwaitReplaced = "await_replaced",
        /// Replaced content is removed.
        RemoveReplaced = "remove_replaced",
        /// The purge receipt is removed.
        ForgetReceipt = "forget_receipt",
        /// The file stays as it is.
        Nothing = "nothing",
    }
}
