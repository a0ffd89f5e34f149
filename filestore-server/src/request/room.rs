//! The room that a request takes of its organization's quota while its bytes arrive.

use filestore_core::Result;
use filestore_core::uploads::{QuotaReservation, StagingWriter};

use super::call::Call;

/// The bytes that may arrive before their room is reserved, and the step in which the room grows.
/// Announced bytes are reserved before.
const FIRST_BYTES: u64 = 64 << 10;
const STEP_BYTES: u64 = 1 << 20;

/// The reserved room of a request, while one of its files is received.
#[derive(Debug, Default)]
pub(crate) struct Room {
    reservation: Option<QuotaReservation>,
    before: u64,
    freed: u64,
}

/// A file that is being received, with the room for it.
pub(crate) struct Incoming {
    pub(crate) writer: StagingWriter,
    pub(crate) room: Room,
}

impl Room {
    /// Makes the room of a file that comes after `before` bytes of others.
    pub(crate) fn after(before: u64, reservation: Option<QuotaReservation>) -> Self {
        Self { reservation, before, freed: 0 }
    }

    /// Makes the room of a file in whose place `freed` bytes go.
    pub(crate) fn in_place_of(freed: u64, reservation: Option<QuotaReservation>) -> Self {
        Self { reservation, before: 0, freed }
    }

    /// Returns what is reserved, to be held until the commit.
    pub(crate) fn into_reservation(self) -> Option<QuotaReservation> {
        self.reservation
    }

    /// Makes sure of the room for the bytes of a file that have arrived; `QuotaExceeded` if there is
    /// none. Returns the number of bytes at which to ask again.
    pub(crate) async fn grow(&mut self, call: &Call, received: u64) -> Result<u64> {
        if let Some(reservation) = &mut self.reservation {
            let wanted = self.before.saturating_add(received).saturating_sub(self.freed);
            call.store().uploads().extend_quota(reservation, wanted).await?;
        }
        Ok(received + STEP_BYTES)
    }

    /// Returns the number of bytes at which to ask first.
    pub(crate) fn first(&self) -> u64 {
        FIRST_BYTES.saturating_sub(self.before)
    }
}
