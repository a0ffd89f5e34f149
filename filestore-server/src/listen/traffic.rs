//! Counters of listeners, for monitoring.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The counters for one or more accept loops.
///
/// Bytes are HTTP bytes, including heads. With TLS, more bytes are sent.
#[derive(Debug, Default)]
pub struct Traffic {
    connections: AtomicU64,
    accepted: AtomicU64,
    timed_out: AtomicU64,
    requests: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Traffic {
    /// Counts the open connections.
    pub fn connections(&self) -> u64 {
        self.connections.load(Relaxed)
    }

    /// Counts the accepted connections.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Counts the connections that ended because their client was too slow.
    pub fn timed_out(&self) -> u64 {
        self.timed_out.load(Relaxed)
    }

    /// Counts the running requests. A request ends when its whole reply is sent.
    pub fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// Counts the received bytes.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Relaxed)
    }

    /// Counts the sent bytes.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Relaxed)
    }

    pub(super) fn connection_began(&self) {
        self.accepted.fetch_add(1, Relaxed);
        self.connections.fetch_add(1, Relaxed);
    }

    pub(super) fn connection_ended(&self) {
        self.connections.fetch_sub(1, Relaxed);
    }

    pub(super) fn connection_timed_out(&self) {
        self.timed_out.fetch_add(1, Relaxed);
    }

    pub(super) fn request_began(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    pub(super) fn request_ended(&self) {
        self.requests.fetch_sub(1, Relaxed);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
    }
}
