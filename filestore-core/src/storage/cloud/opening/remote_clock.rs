//! The clock of a provider, from its replies. Signatures contain times, so a difference matters.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use http::HeaderMap;
use http::header::DATE;

/// The difference between a provider's clock and ours, from the `Date` of its last reply.
#[derive(Debug)]
pub(in crate::storage::cloud) struct RemoteClock(AtomicI64);

impl RemoteClock {
    const UNKNOWN: i64 = i64::MIN;

    pub(in crate::storage::cloud) fn new() -> Self {
        Self(AtomicI64::new(Self::UNKNOWN))
    }

    /// Returns by how many seconds the provider's clock is ahead. `None` before the first reply.
    pub(in crate::storage::cloud) fn ahead_secs(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|secs| *secs != Self::UNKNOWN)
    }

    /// Reads the time from a reply's headers, if present.
    #[expect(clippy::disallowed_methods, reason = "compares the clocks of two machines")]
    pub(in crate::storage::cloud) fn hear(&self, headers: &HeaderMap) {
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        let Some(theirs) = date.and_then(|date| httpdate::parse_http_date(date).ok()) else {
            return;
        };

        let ahead = match theirs.duration_since(SystemTime::now()) {
            Ok(ahead) => i64::try_from(ahead.as_secs()),
            Err(behind) => i64::try_from(behind.duration().as_secs()).map(|secs| -secs),
        };
        self.0.store(ahead.unwrap_or(Self::UNKNOWN), Ordering::Relaxed);
    }
}
