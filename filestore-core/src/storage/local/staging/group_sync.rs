//! Shares one fsync among all waiting callers.
//!
//! The first caller leads: it makes the fsync run on a thread that can block. Later callers may have changed
//! the directory after this fsync began. Later callers wait for the next fsync, which serves all callers that
//! arrived until then. A single caller never waits for others.

use std::io;
use std::mem;

use parking_lot::Mutex;

type Fsync = Box<dyn Fn() -> io::Result<()> + Send + Sync>;
type Done = Box<dyn FnOnce(io::Result<()>) + Send>;

/// An fsync that its callers share.
pub(in crate::storage::local) struct GroupSync {
    fsync: Fsync,
    queue: Mutex<Queue>,
}

/// The role of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage::local) enum Lead {
    /// The caller leads.
    IsYours,
    /// An earlier caller leads.
    IsTaken,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Done>,
    is_led: bool,
}

impl GroupSync {
    /// Creates the group of `fsync`. An fsync makes all changes before its call durable.
    pub(in crate::storage::local) fn new(
        fsync: impl Fn() -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self { fsync: Box::new(fsync), queue: Mutex::default() }
    }

    /// Calls `done` with the result of an fsync that begins after this call. A failed fsync is not retried
    /// for its callers. `done` runs on the leader's thread, and must neither block nor panic.
    ///
    /// Returns at once. A caller that leads must make [`lead`](Self::lead) run.
    #[must_use = "nobody is served unless somebody leads"]
    pub(in crate::storage::local) fn join(
        &self,
        done: impl FnOnce(io::Result<()>) + Send + 'static,
    ) -> Lead {
        let mut queue = self.queue.lock();
        queue.waiting.push(Box::new(done));

        if mem::replace(&mut queue.is_led, true) { Lead::IsTaken } else { Lead::IsYours }
    }

    /// Ends a lead that did not run, for example because its runtime ended. Waiting callers get an error, and
    /// the next caller leads.
    pub(super) fn give_up(&self) {
        let waiting = {
            let mut queue = self.queue.lock();
            queue.is_led = false;
            mem::take(&mut queue.waiting)
        };
        for done in waiting {
            done(Err(io::ErrorKind::Interrupted.into()));
        }
    }

    /// Runs fsyncs until no caller waits. Blocks.
    pub(super) fn lead(&self) {
        while let Some(round) = self.next_round() {
            let outcome = (self.fsync)();
            for done in round {
                done(outcome.as_ref().copied().map_err(same));
            }
        }
    }

    fn next_round(&self) -> Option<Vec<Done>> {
        let mut queue = self.queue.lock();
        queue.is_led = !queue.waiting.is_empty();
        queue.is_led.then(|| mem::take(&mut queue.waiting))
    }
}

/// Copies a failure for another caller.
fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn all_who_arrive_during_an_fsync_are_served_by_the_next_one() {
        let (entered, has_entered) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let released = Mutex::new(released);
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        let group = Arc::new(GroupSync::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            entered.send(()).unwrap();
            released.lock().recv().unwrap();
            Ok(())
        }));
        let (served, serving) = mpsc::channel();
        let report = |who: u32| {
            let (served, calls) = (served.clone(), Arc::clone(&calls));
            move |outcome: io::Result<()>| {
                outcome.unwrap();
                served.send((who, calls.load(Ordering::SeqCst))).unwrap();
            }
        };

        let leader = thread::spawn({
            let (group, report) = (Arc::clone(&group), report(0));
            move || {
                assert_eq!(group.join(report), Lead::IsYours);
                group.lead();
            }
        });
        has_entered.recv().unwrap();
        for who in 1..=10 {
            assert_eq!(group.join(report(who)), Lead::IsTaken);
        }
        assert!(serving.try_recv().is_err(), "nobody is served before an fsync ends");
        release.send(()).unwrap();
        has_entered.recv().unwrap();
        release.send(()).unwrap();
        leader.join().unwrap();

        let served: Vec<_> = serving.try_iter().collect();
        assert_eq!(served[0], (0, 1), "the leader is not delayed by the second round");
        assert_eq!(served[1..], (1..=10).map(|who| (who, 2)).collect::<Vec<_>>());
    }

    #[test]
    fn a_failed_fsync_fails_its_own_waiters_only() {
        let calls = AtomicU32::new(0);
        let group = GroupSync::new(move || match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Err(io::Error::from_raw_os_error(5)),
            _ => Ok(()),
        });
        let (send, outcomes) = mpsc::channel();
        for _ in 0..2 {
            let send = send.clone();
            let done = move |outcome: io::Result<()>| {
                send.send(outcome.map_err(|e| e.raw_os_error())).unwrap();
            };
            assert_eq!(group.join(done), Lead::IsYours);
            group.lead();
        }
        assert_eq!(outcomes.try_iter().collect::<Vec<_>>(), [Err(Some(5)), Ok(())]);
    }
}
