//! Turns limit the number of concurrent operations on a provider, separately for each purpose.
//!
//! Readers can take as long as they want. Therefore no other operation waits for their turns: puts,
//! verifications and copies have their own. A single organization cannot use all turns of readers.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::gate::{Gate, Pass, Patience, Waited};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::storage::Priority;
use crate::storage::cloud::Cloud;

/// The time that background work waits for one part of earlier work. This time is longer than a part on a
/// slow connection.
pub(super) const BACKGROUND_PATIENCE: Duration = Duration::from_mins(10);

/// The turns of one provider.
pub(in crate::storage::cloud) struct Turns {
    /// Requests that send bytes.
    pub(in crate::storage::cloud) sends: Arc<Gate>,
    /// Removals.
    pub(in crate::storage::cloud) removals: Arc<Gate>,
    /// Verifications of puts.
    pub(in crate::storage::cloud) proofs: Arc<Gate>,
    /// Reads of objects that are copied elsewhere.
    pub(in crate::storage::cloud) copies: Arc<Gate>,
    readers: Arc<Gate>,
    /// The maximum number of readers' turns for one organization.
    share: usize,
    organizations: Mutex<HashMap<Box<str>, Weak<Gate>>>,
}

/// The turn of a reader: one of the provider's turns, and one of the organization's turns.
pub(in crate::storage::cloud) struct ReaderTurn {
    _one: Pass,
    _of_organization: Pass,
}

impl Turns {
    /// Creates `concurrency` turns of each kind.
    pub(in crate::storage::cloud) fn new(concurrency: usize) -> Self {
        Self {
            sends: Gate::new(concurrency),
            removals: Gate::new(concurrency),
            proofs: Gate::new(concurrency),
            copies: Gate::new(concurrency),
            readers: Gate::new(concurrency),
            share: concurrency.div_ceil(4),
            organizations: Mutex::default(),
        }
    }

    /// Waits for a turn to read on behalf of `organization`.
    pub(in crate::storage::cloud) async fn reader(
        &self,
        organization: &str,
        patience: Patience,
    ) -> Result<ReaderTurn, Waited> {
        let of_organization = self.of_organization(organization).pass(1, patience).await?;
        let one = self.readers.pass(1, patience).await?;
        Ok(ReaderTurn { _one: one, _of_organization: of_organization })
    }

    fn of_organization(&self, organization: &str) -> Arc<Gate> {
        let mut organizations = self.organizations.lock();
        if let Some(gate) = organizations.get(organization).and_then(Weak::upgrade) {
            return gate;
        }

        organizations.retain(|_, gate| gate.strong_count() > 0);
        let gate = Gate::new(self.share);
        organizations.insert(organization.into(), Arc::downgrade(&gate));
        gate
    }
}

impl Cloud {
    /// Returns `Busy`, the error for work that waited too long for other work.
    pub(in crate::storage::cloud) fn busy(&self, what: &str, Waited(limit): Waited) -> Error {
        let message = format!("too many {what} are under way at the provider: {}", self.code());
        Error::new(ErrorKind::Busy, message)
            .with_source(format!("waited {} s", limit.as_secs_f32()))
    }

    /// Returns how long work of this priority waits for its turn.
    pub(in crate::storage::cloud) fn turn_patience(&self, priority: &Priority) -> Patience {
        match priority {
            Priority::Request => self.request_patience(),
            Priority::Background | Priority::CopyFrom(_) | Priority::Paced(_) => {
                Patience::WhileMoving(BACKGROUND_PATIENCE)
            }
        }
    }

    /// Returns how long a request waits for its turn.
    pub(in crate::storage::cloud) fn request_patience(&self) -> Patience {
        Patience::Within(self.wait_limit())
    }

    /// Returns the maximum wait of a request.
    pub(in crate::storage::cloud) fn wait_limit(&self) -> Duration {
        self.inner.timeout
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn no_organization_gets_all_turns() {
        let turns = Turns::new(8);
        let patience = Patience::Within(Duration::from_secs(30));
        let take = |organization| turns.reader(organization, patience).now_or_never();

        let greedy = [take("1"), take("1")];
        assert!(greedy.iter().all(Option::is_some));
        assert!(take("1").is_none(), "its share is taken");
        assert!(take("2").is_some());

        drop(greedy);
        assert!(take("1").is_some());
    }
}
