//! The erasure of an organization.

use crate::api;
use crate::domain::report::erasure::{EraseReceipt, ErasedPlace, MayReturn};

impl From<EraseReceipt> for api::EraseReceipt {
    fn from(receipt: EraseReceipt) -> Self {
        Self {
            organization_id: receipt.organization.to_string(),
            store_id: receipt.store_id.to_string(),
            started_at: receipt.started_at.to_string(),
            ended_at: receipt.ended_at.to_string(),
            complete: receipt.is_complete,
            files: receipt.removed.files,
            bytes: receipt.removed.bytes,
            bindings: receipt.removed.bindings,
            replies: receipt.removed.replies,
            keys_revoked: receipt.keys_revoked.iter().map(ToString::to_string).collect(),
            keys_narrowed: receipt.keys_narrowed.iter().map(ToString::to_string).collect(),
            places: receipt.places.into_iter().map(Into::into).collect(),
            may_return: receipt.may_return.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<MayReturn> for api::MayReturn {
    fn from(source: MayReturn) -> Self {
        let MayReturn { place, until, detail } = source;
        Self { place, until: until.map(|at| at.to_string()), detail }
    }
}

impl From<ErasedPlace> for api::ErasedPlace {
    fn from(place: ErasedPlace) -> Self {
        let ErasedPlace { place, is_absent, detail } = place;
        Self { place, absent: is_absent, detail }
    }
}
