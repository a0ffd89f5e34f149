//! Failures of a run: all are counted, and the first are listed if a caller waits for the report.

use crate::domain::error::Error;
use crate::domain::id::FileId;
use crate::domain::report::WorkFailure;

/// Failures that a report lists at most.
pub(super) const LISTED: usize = 100;

/// Failures that the report of a verification lists at most.
const LISTED_TO_AUDITORS: usize = 10_000;

/// The reader of a run's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// A caller, who is shown the first failures.
    Caller,
    /// A caller who looks for damage, and needs to know every file of it.
    Auditor,
    /// Nobody: the background does not end, and would gather failures without end.
    Nobody,
}

/// The failures of a run.
#[derive(Debug)]
pub(super) struct Failures {
    listed: Vec<WorkFailure>,
    count: u64,
    room: usize,
}

impl Failures {
    pub(super) fn of(audience: Audience) -> Self {
        let room = match audience {
            Audience::Caller => LISTED,
            Audience::Auditor => LISTED_TO_AUDITORS,
            Audience::Nobody => 0,
        };
        Self { listed: Vec::new(), count: 0, room }
    }

    /// Notes that the work on a file failed.
    pub(super) fn note(&mut self, file: FileId, error: &Error) {
        self.count += 1;
        if self.listed.len() < self.room {
            self.listed.push(WorkFailure::new(file, error));
        }
    }

    /// Adds the failures of another lane of the same run.
    pub(super) fn add(&mut self, other: Self) {
        self.count += other.count;
        let room = self.room - self.listed.len();
        self.listed.extend(other.listed.into_iter().take(room));
    }

    /// Forgets all failures: the work begins anew.
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.listed.clear();
    }

    /// Returns the first failures, and the number of all.
    pub(super) fn into_parts(self) -> (Vec<WorkFailure>, u64) {
        (self.listed, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::Timestamp;

    fn failed(audience: Audience, times: u64) -> Failures {
        let mut failures = Failures::of(audience);
        for number in 0..times {
            let error = Error::internal("removing", format!("number {number}"));
            failures.note(FileId::generate(Timestamp::from_millis(0)), &error);
        }
        failures
    }

    #[test]
    fn all_failures_are_counted_and_the_first_listed() {
        let mut all = failed(Audience::Caller, 70);
        all.add(failed(Audience::Caller, 1000));
        let (listed, count) = all.into_parts();
        assert_eq!((listed.len(), count), (LISTED, 1070));
    }

    #[test]
    fn the_background_counts_and_lists_none() {
        let (listed, count) = failed(Audience::Nobody, 1000).into_parts();
        assert_eq!((listed.capacity(), count), (0, 1000));
    }
}
