//! The memory of the puts to one provider.
//!
//! The limit is in bytes, not in files: eight large files use as much as eight hundred small files. Requests,
//! background copies, and each group of slowed-down copies have separate limits, so that they do not wait for
//! each other.
//!
//! A put takes its share once, when its source starts to yield, and keeps it. OpenDAL's writers hold a part
//! until the next part arrives. Puts that took memory part by part would therefore block each other forever.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::gate::{Gate, Pass, Patience, Waited};
use super::turns::BACKGROUND_PATIENCE;
use crate::storage::Priority;

/// The maximum bytes that puts of requests hold together. Background copies have the same limit.
pub(in crate::storage::cloud) const PUT_MEMORY_BYTES: usize = 32 << 20;

/// The maximum bytes that the copies of one group hold together: two large files.
const GROUP_MEMORY_BYTES: usize = 21 << 20;

/// The memory of the puts to one provider, for each priority.
pub(in crate::storage::cloud) struct Memory {
    requests: Arc<Gate>,
    background: Arc<Gate>,
    groups: Mutex<HashMap<Priority, Weak<Gate>>>,
}

impl Memory {
    pub(in crate::storage::cloud) fn new() -> Self {
        Self {
            requests: Gate::new(PUT_MEMORY_BYTES),
            background: Gate::new(PUT_MEMORY_BYTES),
            groups: Mutex::default(),
        }
    }

    /// Waits for `bytes`. A request waits at most `limit`. Slowed-down copies wait as long as it takes, because
    /// they wait only for copies of their own group.
    pub(in crate::storage::cloud) async fn take(
        &self,
        bytes: u64,
        priority: &Priority,
        limit: Duration,
    ) -> Result<Pass, Waited> {
        let patience = match priority {
            Priority::Request => Patience::Within(limit),
            Priority::Background => Patience::WhileMoving(BACKGROUND_PATIENCE),
            Priority::CopyFrom(_) | Priority::Paced(_) => Patience::Forever,
        };
        self.gate(priority).pass(bytes, patience).await
    }

    fn gate(&self, priority: &Priority) -> Arc<Gate> {
        match priority {
            Priority::Request => Arc::clone(&self.requests),
            Priority::Background => Arc::clone(&self.background),
            Priority::CopyFrom(_) | Priority::Paced(_) => {
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn copies_that_are_held_back_keep_nobody_else_waiting() {
        let memory = Memory::new();
        let all = u64::MAX;
        let (slow, paced) = (Priority::CopyFrom("slow".parse().unwrap()), Priority::Paced(7));

        let mut held = Vec::new();
        for priority in [&slow, &paced, &Priority::Background, &Priority::Request] {
            held.push(memory.take(all, priority, LIMIT).now_or_never().unwrap().unwrap());
        }

        assert!(memory.take(1, &slow, LIMIT).now_or_never().is_none());
        let others = [Priority::CopyFrom("other".parse().unwrap()), Priority::Paced(8)];
        for priority in others {
            assert!(memory.take(all, &priority, LIMIT).now_or_never().is_some(), "{priority:?}");
        }
    }
}
