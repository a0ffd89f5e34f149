//! Work that waits for a provider: how much of each kind, and since when.

use super::clock::Timestamp;
use super::provider::ProviderCode;

/// Work of one kind that waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// The number of files or blobs that wait.
    pub count: u64,
    /// The instant from which the oldest of them could have been done; `None` if nothing waits.
    pub oldest: Option<Timestamp>,
}

impl Waiting {
    /// Adds work of the same kind.
    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.oldest = match (self.oldest, other.oldest) {
            (Some(one), Some(another)) => Some(one.min(another)),
            (one, another) => one.or(another),
        };
    }
}

/// The work that waits for one provider. Work that failed and is to be attempted again counts too.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderBacklog {
    /// The provider's code. The provider may be gone from the configuration.
    pub provider: ProviderCode,
    /// Files that are to be copied to the provider, those whose copies are under way included.
    pub sync: Waiting,
    /// Deleted files past their grace period whose bytes the provider holds.
    pub purge: Waiting,
    /// Dropped blobs past their grace period that the provider holds.
    pub dropped: Waiting,
}

impl ProviderBacklog {
    /// Starts the count of a provider for which nothing waits.
    pub(crate) fn new(provider: ProviderCode) -> Self {
        Self {
            provider,
            sync: Waiting::default(),
            purge: Waiting::default(),
            dropped: Waiting::default(),
        }
    }

    /// Returns true if nothing waits for the provider.
    pub fn is_empty(&self) -> bool {
        self.sync.count + self.purge.count + self.dropped.count == 0
    }

    /// Returns the instant from which the oldest work of any kind could have been done.
    pub fn oldest(&self) -> Option<Timestamp> {
        [self.sync, self.purge, self.dropped].iter().filter_map(|waiting| waiting.oldest).min()
    }
}
