//! What was tried and failed.

use super::facts::counted;
use super::{Fact, FactCode, Subject};

impl Subject<'_> {
    /// Lists the failed attempts with the current content, of the purge, and with replaced content.
    pub(super) fn tried(&self) -> Vec<Fact> {
        let mut tried: Vec<Fact> = self.failed_copies().into_iter().collect();

        let attempts = self.work.purge.attempts;
        if attempts > 0 {
            let sentence =
                format!("{} to purge the file failed", counted(attempts.into(), "attempt"));
            tried.push(Fact::new(FactCode::PurgeFailed, sentence).counting(attempts.into()));
        }
        for group in self.work.replaced.iter().filter(|group| group.attempts > 0) {
            let provider = self.seen.shown(&group.provider);
            let attempts = counted(group.attempts.into(), "attempt");
            let sentence = format!("{attempts} to remove replaced content at {provider} failed");
            let fact = Fact::new(FactCode::RemovalFailed, sentence);
            tried.push(fact.at(provider).counting(group.attempts.into()));
        }
        tried
    }

    /// Describes failed copies. A failure during an outage has a reason, but counts no attempt.
    fn failed_copies(&self) -> Option<Fact> {
        let record = self.record();
        let (attempts, error) = (record.sync_attempts, record.sync_error.clone());
        if attempts > 0 {
            let sentence = format!("{} of the content failed", copies(attempts.into()));
            let fact = Fact::new(FactCode::CopyFailed, sentence);
            return Some(fact.counting(attempts.into()).because(error));
        }
        let error = error?;
        let sentence =
            "a copy of the content was interrupted by an outage, which counts no attempt";
        Some(Fact::new(FactCode::CopyInterrupted, sentence).because(Some(error)))
    }
}

fn copies(count: u64) -> String {
    if count == 1 { "1 copy".to_owned() } else { format!("{count} copies") }
}
