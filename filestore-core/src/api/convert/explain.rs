//! Explanations of files.

use crate::api;
use crate::domain::file::record::FileRecord;
use crate::domain::report::explain::{ExplainedFile, Explanation, Fact, History, Step};
use crate::domain::time::clock::Timestamp;

impl From<Explanation> for api::Explanation {
    fn from(explained: Explanation) -> Self {
        let Explanation { explained_at, file, place, why, next, tried, history } = explained;
        let (record, purged_at) = match &file {
            ExplainedFile::Stored(record) => (Some(record_of(record)), None),
            ExplainedFile::Purged(purged) => (None, Some(purged.purged_at.to_string())),
        };
        Self {
            explained_at: explained_at.to_string(),
            file_id: file.file_id().to_string(),
            organization_id: file.organization_id().to_string(),
            record,
            purged_at,
            place: facts(place),
            why: facts(why),
            next: next.into_iter().map(Into::into).collect(),
            tried: facts(tried),
            history: history.into(),
        }
    }
}

impl From<History> for api::ExplainedHistory {
    fn from(history: History) -> Self {
        let History { is_on, is_whole, looked_at, events } = history;
        let events = events.iter().map(Into::into).collect();
        Self { enabled: is_on, whole: is_whole, looked_at, events }
    }
}

fn record_of(record: &FileRecord) -> api::ExplainedRecord {
    let state = record.state;
    api::ExplainedRecord {
        sub_system: record.sub_system.to_string(),
        status: state.status().into(),
        sync_status: state.sync().into(),
        purge_status: state.purge().map(Into::into),
        storage_location: state.location().into(),
        version: record.version,
    }
}

fn facts(facts: Vec<Fact>) -> Vec<api::ExplainedFact> {
    facts.into_iter().map(Into::into).collect()
}

impl From<Fact> for api::ExplainedFact {
    fn from(fact: Fact) -> Self {
        let Fact { code, sentence, provider, since, until, count, error } = fact;
        Self {
            code: code.to_string(),
            sentence,
            provider: provider.map(|code| code.to_string()),
            since: text(since),
            until: text(until),
            count,
            error,
        }
    }
}

impl From<Step> for api::ExplainedStep {
    fn from(step: Step) -> Self {
        let Step { code, sentence, provider, not_before, attempt, max_attempts, .. } = step;
        Self {
            code: code.to_string(),
            sentence,
            provider: provider.map(|code| code.to_string()),
            not_before: text(not_before),
            attempt,
            max_attempts,
            waits_for: facts(step.waits_for),
            undo: step.undo.map(str::to_owned),
            then: facts(step.then),
        }
    }
}

fn text(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}
