//! Work that waits for a provider, by kind and age.

use super::ProviderCode;
use crate::domain::time::clock::Timestamp;

/// Waiting work of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// Number of files or blobs.
    pub count: u64,
    /// Time from which the oldest job could run. `None` if no work waits.
    pub oldest: Option<Timestamp>,
}

impl Waiting {
    /// Converts the oldest deletion time to the time at which that file's grace period ended: files
    /// deleted at `marked_before` are due at `now`.
    pub(crate) fn due_after(self, marked_before: Timestamp, now: Timestamp) -> Self {
        let grace = now.as_millis().saturating_sub(marked_before.as_millis());
        let due = |mark: Timestamp| Timestamp::from_millis(mark.as_millis().saturating_add(grace));
        Self { oldest: self.oldest.map(|mark| due(mark).min(now)), ..self }
    }

    /// Adds work of the same kind.
    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.oldest = match (self.oldest, other.oldest) {
            (Some(one), Some(another)) => Some(one.min(another)),
            (one, another) => one.or(another),
        };
    }
}

/// The work that waits for one provider, with failed work that will be retried.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderBacklog {
    /// Provider code. The provider might be gone from the configuration.
    pub provider: ProviderCode,
    /// Files to copy to the provider, with copies in progress.
    pub sync: Waiting,
    /// Deleted files with bytes at the provider, after their grace period or claimed by a run.
    pub purge: Waiting,
    /// Replaced blobs at the provider, after their grace period.
    pub dropped: Waiting,
}

impl ProviderBacklog {
    /// Creates an empty backlog for a provider.
    pub(crate) fn new(provider: ProviderCode) -> Self {
        Self {
            provider,
            sync: Waiting::default(),
            purge: Waiting::default(),
            dropped: Waiting::default(),
        }
    }

    /// Tests whether no work waits for the provider.
    pub fn is_empty(&self) -> bool {
        self.sync.count + self.purge.count + self.dropped.count == 0
    }

    /// Returns the time from which the oldest job of any kind could run.
    pub fn oldest(&self) -> Option<Timestamp> {
        [self.sync, self.purge, self.dropped].iter().filter_map(|waiting| waiting.oldest).min()
    }
}
