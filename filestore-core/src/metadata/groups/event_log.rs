//! The log of events.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::event::NewEvent;
use crate::domain::id::OrganizationId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::events::{LogBounds, LogPart, LogRange, LogSwitch};

/// The log of events. Changes of files write their events themselves, in the same transaction.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Opens the log: switches it, and returns the key of its ids. A log without a key gets `fresh_key`. So does a
    /// log that was off and is switched on, and it begins again with the event `log.gap`. Each webhook
    /// counts the gap, and begins there.
    async fn open_events(
        &self,
        switch: LogSwitch,
        fresh_key: [u8; 32],
        now: Timestamp,
    ) -> Result<[u8; 32]>;

    /// Reads a part of the log. A reader that goes on from part to part misses no event: every event up to
    /// the last row was visible when the part was read, or will never be.
    async fn read_events(&self, range: &LogRange) -> Result<LogPart>;

    /// Waits until events up to a position behind `settled` are visible. The wait can end too early. Costs
    /// nothing after it is dropped.
    async fn await_events(&self, settled: u64) -> Result<()>;

    /// Writes events that no other change writes.
    async fn note_events(&self, events: Vec<NewEvent>) -> Result<()>;

    /// Removes at most `limit` of the oldest events outside the bounds, except the last of them. Returns their
    /// number.
    async fn forget_events(&self, bounds: LogBounds, limit: usize) -> Result<u64>;

    /// Removes everything from at most `limit` events of an organization, except position and time. Spares events
    /// of files that exist, because they were uploaded after the erasure. Returns the number of events.
    async fn blank_events(&self, organization: &OrganizationId, limit: usize) -> Result<u64>;
}
