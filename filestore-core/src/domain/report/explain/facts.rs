//! Construction of facts and steps.

use super::{Fact, FactCode, Step, StepCode};
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;

impl Fact {
    pub(super) fn new(code: FactCode, sentence: impl Into<String>) -> Self {
        Self {
            code,
            sentence: sentence.into(),
            provider: None,
            since: None,
            until: None,
            count: None,
            error: None,
        }
    }

    pub(super) fn at(self, provider: ProviderCode) -> Self {
        Self { provider: Some(provider), ..self }
    }

    pub(super) fn since(self, at: Timestamp) -> Self {
        Self { since: Some(at), ..self }
    }

    pub(super) fn until(self, at: Option<Timestamp>) -> Self {
        Self { until: at, ..self }
    }

    pub(super) fn counting(self, count: u64) -> Self {
        Self { count: Some(count), ..self }
    }

    pub(super) fn because(self, error: Option<String>) -> Self {
        Self { error, ..self }
    }
}

impl Step {
    pub(super) fn new(code: StepCode, sentence: impl Into<String>) -> Self {
        Self {
            code,
            sentence: sentence.into(),
            provider: None,
            not_before: None,
            attempt: None,
            max_attempts: None,
            waits_for: Vec::new(),
            undo: None,
            then: Vec::new(),
        }
    }

    pub(super) fn at(self, provider: ProviderCode) -> Self {
        Self { provider: Some(provider), ..self }
    }

    pub(super) fn not_before(self, at: Timestamp) -> Self {
        Self { not_before: Some(at), ..self }
    }

    pub(super) fn attempt(self, number: u32) -> Self {
        Self { attempt: Some(number), ..self }
    }

    pub(super) fn waiting_for(self, obstacles: Vec<Fact>) -> Self {
        Self { waits_for: obstacles, ..self }
    }

    pub(super) fn then(self, effects: impl IntoIterator<Item = Fact>) -> Self {
        Self { then: effects.into_iter().collect(), ..self }
    }
}

/// Writes a number with its noun, for example `2 blobs`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Writes a verb for this number of subjects, for example `waits` for one.
pub(super) fn verb(count: u64, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}
