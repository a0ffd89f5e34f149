//! The enums of `domain` and the words of the API, in both directions.
//!
//! Each match towards the API is exhaustive, so that a new state or kind cannot be forgotten.

use crate::api;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::event::EventKind;
use crate::domain::file::disposition::Disposition;
use crate::domain::file::listing::ListOrder;
use crate::domain::file::status::{Location, PurgeStatus, Status, SyncStatus};
use crate::domain::file::variant::Fit;
use crate::domain::provider::health::BreakerState;
use crate::domain::report::overview::AdviceCode;
use crate::storage::CheckOutcome;

/// Converts an enum of the domain to its open word in the API.
macro_rules! to_wire {
    ($from:ty => $to:ident { $($name:ident,)* }) => {
        impl From<$from> for api::$to {
            fn from(value: $from) -> Self {
                match value { $(<$from>::$name => Self::$name,)* }
            }
        }
    };
}

/// Converts an open word to the enum of the domain. Refuses unknown words.
macro_rules! from_wire {
    ($from:ident => $to:ty) => {
        impl TryFrom<&api::$from> for $to {
            type Error = Error;

            fn try_from(word: &api::$from) -> Result<Self> {
                word.as_str().parse()
            }
        }
    };
}

to_wire!(Status => Status { Temp, Thumbnail, Ready, });
to_wire!(SyncStatus => SyncStatus { None, Pending, Syncing, Synced, Failed, });
to_wire!(PurgeStatus => PurgeStatus { SystemPurge, });
to_wire!(Location => StorageLocation { Local, Cloud, });
to_wire!(BreakerState => BreakerState { Closed, HalfOpen, Open, });
to_wire!(AdviceCode => AdviceCode {
    DatabaseFault,
    StorageFault,
    DiskFull,
    DiskLow,
    DamagedRows,
    MissingBlobs,
    OpenFindings,
    UnfinishedUploads,
    ProviderFailing,
    ProviderMissing,
    ProviderInactive,
    WorkWaiting,
    SyncFailed,
    EventsHeldBack,
    WebhookFailing,
    WebhookDisabled,
    Other,
});
to_wire!(CheckOutcome => CheckOutcome { Ok, Cannot, Failed, Skipped, });

to_wire!(EventKind => EventType {
    FileUploaded,
    FilePutBack,
    FileThumbnail,
    FileReady,
    FileReplaced,
    FileEdited,
    FileDeleted,
    FileExpired,
    FileRestored,
    FilePurged,
    FileSynced,
    FileMigrated,
    FileSyncFailed,
    FileDamaged,
    OrganizationErased,
    BindingCreated,
    BindingChanged,
    KeyCreated,
    KeyRotated,
    KeyChanged,
    KeyRevoked,
    WebhookDisabled,
    WebhookEnabled,
    FsckEnded,
    BackupEnded,
    MigrationEnded,
    LogGap,
});

from_wire!(Status => Status);
from_wire!(SyncStatus => SyncStatus);
from_wire!(PurgeStatus => PurgeStatus);
from_wire!(StorageLocation => Location);

to_wire!(ErrorKind => ErrorCode {
    InvalidField,
    MissingField,
    MalformedBody,
    Forbidden,
    SignatureInvalid,
    SignatureExpired,
    SignatureUsed,
    NotFound,
    InvalidTransition,
    Conflict,
    AlreadyPurging,
    BindingRequired,
    BindingAlreadyActive,
    NoActiveBinding,
    UnknownProvider,
    ProviderInactive,
    ProviderUnavailable,
    PreconditionFailed,
    IdempotencyMismatch,
    IdempotencyInProgress,
    DigestMismatch,
    EventsGone,
    EventsOff,
    UrlRefused,
    TooLarge,
    TooManyItems,
    QuotaExceeded,
    NotAnImage,
    ConversionFailed,
    CorruptImage,
    ImageTooLarge,
    UploadOffsetMismatch,
    UploadLengthInconsistent,
    UploadLengthExceeded,
    UploadSuperseded,
    UploadFinal,
    UploadGone,
    UploadStalled,
    UploadElsewhere,
    TooManyUploads,
    ChecksumMismatch,
    Busy,
    OutcomeUnknown,
    StorageFull,
    DatabaseFull,
    Locked,
    Unusable,
    RecordDamaged,
    Internal,
});

impl From<api::Fit> for Fit {
    fn from(fit: api::Fit) -> Self {
        match fit {
            api::Fit::Cover => Self::Cover,
            api::Fit::Inside => Self::Inside,
        }
    }
}

impl From<api::ListOrder> for ListOrder {
    fn from(order: api::ListOrder) -> Self {
        match order {
            api::ListOrder::Newest => Self::Newest,
            api::ListOrder::Oldest => Self::Oldest,
            api::ListOrder::Deleted => Self::Deleted,
        }
    }
}

impl From<api::Disposition> for Disposition {
    fn from(disposition: api::Disposition) -> Self {
        match disposition {
            api::Disposition::Attachment => Self::Attachment,
            api::Disposition::Inline => Self::Inline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_spelled_on_the_wire_as_in_the_domain() {
        for &status in Status::ALL {
            assert_eq!(api::Status::from(status), status.as_str());
            assert_eq!(Status::try_from(&api::Status::from(status)).unwrap(), status);
        }
        for &status in SyncStatus::ALL {
            assert_eq!(api::SyncStatus::from(status), status.as_str());
        }
        for &status in PurgeStatus::ALL {
            assert_eq!(api::PurgeStatus::from(status), status.as_str());
        }
        for &location in Location::ALL {
            assert_eq!(api::StorageLocation::from(location), location.as_str());
        }
        assert_eq!(api::Status::KNOWN.len(), Status::ALL.len());
        assert_eq!(api::SyncStatus::KNOWN.len(), SyncStatus::ALL.len());
        assert_eq!(api::PurgeStatus::KNOWN.len(), PurgeStatus::ALL.len());
        assert_eq!(api::StorageLocation::KNOWN.len(), Location::ALL.len());
    }

    #[test]
    fn kinds_of_events_are_spelled_on_the_wire_as_in_the_domain() {
        for &kind in EventKind::ALL {
            assert_eq!(api::EventType::from(kind), kind.as_str());
        }
        assert_eq!(api::EventType::KNOWN.len(), EventKind::ALL.len());
    }

    #[test]
    fn codes_of_advice_are_spelled_on_the_wire_as_in_the_domain() {
        for &code in AdviceCode::ALL {
            assert_eq!(api::AdviceCode::from(code), code.as_str());
        }
        assert_eq!(api::AdviceCode::KNOWN.len(), AdviceCode::ALL.len());
    }

    #[test]
    fn a_word_of_the_future_is_no_state_of_the_domain() {
        let error = Status::try_from(&api::Status::from("ARCHIVED")).unwrap_err();
        assert_eq!(error.details().allowed, ["TEMP", "THUMBNAIL", "READY"]);
    }

    #[test]
    fn every_kind_of_error_has_its_code_on_the_wire() {
        for &kind in ErrorKind::ALL {
            assert_eq!(api::ErrorCode::from(kind), kind.code());
            assert!(api::ErrorCode::KNOWN.contains(&kind.code().into()));
        }
    }

    #[test]
    fn outcomes_of_a_check_are_spelled_as_they_are_shown() {
        use CheckOutcome::{Cannot, Failed, Ok, Skipped};
        for outcome in [Ok, Cannot, Failed, Skipped] {
            assert_eq!(api::CheckOutcome::from(outcome), outcome.as_str());
        }
    }

    #[test]
    fn choices_are_read_alike_by_the_wire_and_the_domain() {
        for &fit in api::Fit::ALL {
            assert_eq!(fit.as_str().parse::<Fit>().unwrap(), Fit::from(fit));
        }
        for &order in api::ListOrder::ALL {
            assert_eq!(order.as_str().parse::<ListOrder>().unwrap(), ListOrder::from(order));
        }
        assert_eq!(api::ListOrder::ALL.len(), ListOrder::ALL.len());
    }
}
