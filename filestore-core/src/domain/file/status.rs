//! The parts of a file's state, with their stable names.

use std::fmt;
use std::str::FromStr;

use crate::domain::error::{Error, Result};

macro_rules! names {
    ($(#[$doc:meta])* $type:ident $field:literal { $($(#[$vdoc:meta])* $name:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[$vdoc])* $name,)* }

        impl $type {
            /// Every value, in declaration order.
            pub const ALL: &'static [$type] = &[$($type::$name,)*];

            /// Returns the stable name, as in the API and the database.
            pub const fn as_str(self) -> &'static str {
                match self { $($type::$name => $text,)* }
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                match text {
                    $($text => Ok(Self::$name),)*
                    _ => Err(Error::invalid($field, concat!($field, " has an unknown value"))
                        .with_allowed(Self::ALL.iter().map(|value| value.as_str()))),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

names! {
    /// The lifecycle status of a file.
    Status "status" {
        /// Temporary. Stored locally, and expires.
        Temp = "TEMP",
        /// Source of thumbnails. Stored locally, and does not expire.
        Thumbnail = "THUMBNAIL",
        /// An ordinary file. Stays until you delete it.
        Ready = "READY",
    }
}

names! {
    /// The progress of a file towards its organization's provider.
    SyncStatus "sync_status" {
        /// The file needs no copy.
        None = "NONE",
        /// Waits for the sync worker.
        Pending = "PENDING",
        /// Claimed by the sync worker.
        Syncing = "SYNCING",
        /// Copied, verified and served from the provider.
        Synced = "SYNCED",
        /// All attempts failed. The file is served from its old location.
        Failed = "FAILED",
    }
}

names! {
    /// The purge status of a deleted file.
    PurgeStatus "purge_status" {
        /// Deleted. The purge removes the bytes and then the record.
        SystemPurge = "SYSTEM_PURGE",
    }
}

names! {
    /// The location that serves a file's bytes.
    Location "storage_location" {
        /// The store sends the bytes.
        Local = "LOCAL",
        /// A provider sends the bytes, after a redirect.
        Cloud = "CLOUD",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_status_names_the_allowed_ones() {
        let error = "ready".parse::<Status>().unwrap_err();
        assert_eq!(error.details().field.as_deref(), Some("status"));
        assert_eq!(error.details().allowed, ["TEMP", "THUMBNAIL", "READY"]);
    }
}
