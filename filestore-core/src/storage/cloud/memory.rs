//! The memory of the puts to one provider.
//!
//! The bound is in bytes, not in files: eight large files cost no more than eight hundred small
//! ones. Requests, background copies, and each group of copies that something else holds back have
//! a bound of their own, so that none of them waits for another. A put takes its share once, when its
//! source has begun to yield, and keeps it: OpenDAL's writers hold a part back until the next one
//! comes, and puts that took memory part by part would wait for one another for ever.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::gate::{Gate, Pass, Patience, Waited};
use crate::storage::Priority;

/// Bytes that the puts of requests may hold together, and so may background copies.
pub(super) const PUT_MEMORY_BYTES: usize = 32 << 20;

/// Bytes that the copies of one group may hold together: two large files.
const GROUP_MEMORY_BYTES: usize = 21 << 20;

/// Time that background work waits for those ahead to get on by one part. Longer than a part takes
/// on a slow line.
const BACKGROUND_PATIENCE: Duration = Duration::from_mins(10);

/// The memory of the puts to one provider, for each priority.
pub(super) struct Memory {
    requests: Arc<Gate>,
    background: Arc<Gate>,
    groups: Mutex<HashMap<Priority, Weak<Gate>>>,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self {
            requests: Gate::new(PUT_MEMORY_BYTES),
            background: Gate::new(PUT_MEMORY_BYTES),
            groups: Mutex::default(),
        }
    }

    /// Waits for `bytes`; a request no longer than `limit`.
    pub(super) async fn take(
        &self,
        bytes: u64,
        priority: &Priority,
        limit: Duration,
    ) -> Result<Pass, Waited> {
        let patience = match priority {
            Priority::From(_) | Priority::Paced(_) => Patience::Forever,
            Priority::Request | Priority::Background => patience(priority, limit),
        };
        self.gate(priority).pass(bytes, patience).await
    }

    fn gate(&self, priority: &Priority) -> Arc<Gate> {
        match priority {
            Priority::Request => Arc::clone(&self.requests),
            Priority::Background => Arc::clone(&self.background),
            Priority::From(_) | Priority::Paced(_) => {
                let mut groups = self.groups.lock();
                if let Some(gate) = groups.get(priority).and_then(Weak::upgrade) {
                    return gate;
                }

                groups.retain(|_, gate| gate.strong_count() > 0);
                let gate = Gate::new(GROUP_MEMORY_BYTES);
                groups.insert(priority.clone(), Arc::downgrade(&gate));
                gate
            }
        }
    }
}

/// Returns how long work of that priority waits for a turn; a request no longer than `limit`.
pub(super) fn patience(priority: &Priority, limit: Duration) -> Patience {
    match priority {
        Priority::Request => Patience::Within(limit),
        _ => Patience::WhileMoving(BACKGROUND_PATIENCE),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn copies_that_are_held_back_keep_nobody_else_waiting() {
        let memory = Memory::new();
        let all = u64::MAX;
        let (slow, paced) = (Priority::From("slow".parse().unwrap()), Priority::Paced(7));

        let mut held = Vec::new();
        for priority in [&slow, &paced, &Priority::Background, &Priority::Request] {
            held.push(memory.take(all, priority, LIMIT).now_or_never().unwrap().unwrap());
        }

        assert!(memory.take(1, &slow, LIMIT).now_or_never().is_none());
        let others = [Priority::From("other".parse().unwrap()), Priority::Paced(8)];
        for priority in others {
            assert!(memory.take(all, &priority, LIMIT).now_or_never().is_some(), "{priority:?}");
        }
    }
}
