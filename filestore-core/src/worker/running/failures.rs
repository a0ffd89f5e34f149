//! The failures of a run. All are counted. The first are listed if a caller waits for the report.

use crate::domain::error::Error;
use crate::domain::id::FileId;
use crate::domain::report::WorkFailure;

/// The maximum number of failures in a report.
pub(in crate::worker) const LISTED: usize = 100;

/// The maximum number of failures in the report of a verification.
const LISTED_TO_AUDITORS: usize = 10_000;

/// The reader of a run's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum Audience {
    /// A caller who sees the first failures.
    Caller,
    /// A caller who looks for damage and needs all damaged files.
    Auditor,
    /// No reader: the background workers never end, and would collect failures forever.
    Nobody,
}

/// The failures of a run.
#[derive(Debug)]
pub(in crate::worker) struct Failures {
    listed: Vec<WorkFailure>,
    count: u64,
    room: usize,
}

impl Failures {
    pub(in crate::worker) fn of(audience: Audience) -> Self {
        let room = match audience {
            Audience::Caller => LISTED,
            Audience::Auditor => LISTED_TO_AUDITORS,
            Audience::Nobody => 0,
        };
        Self { listed: Vec::new(), count: 0, room }
    }

    /// Records a failure for a file.
    pub(in crate::worker) fn note(&mut self, file: FileId, error: &Error) {
        self.count += 1;
        if self.listed.len() < self.room {
            self.listed.push(WorkFailure::new(file, error));
        }
    }

    /// Adds the failures of another lane in the same run.
    pub(in crate::worker) fn add(&mut self, other: Self) {
        self.count += other.count;
        let room = self.room - self.listed.len();
        self.listed.extend(other.listed.into_iter().take(room));
    }

    /// Removes all failures, because the work starts again.
    pub(in crate::worker) fn clear(&mut self) {
        self.count = 0;
        self.listed.clear();
    }

    /// Returns the first failures, and the total number.
    pub(in crate::worker) fn into_parts(self) -> (Vec<WorkFailure>, u64) {
        (self.listed, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::clock::Timestamp;

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
