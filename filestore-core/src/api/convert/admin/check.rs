//! The check of a provider.

use crate::api;
use crate::storage::ProviderCheck;

impl From<&ProviderCheck> for api::ProviderCheckReport {
    fn from(check: &ProviderCheck) -> Self {
        let steps = check.steps.iter().map(|step| api::ProviderCheckStep {
            name: step.name.to_owned(),
            outcome: step.outcome.into(),
            detail: step.detail.clone(),
        });
        Self {
            provider_code: check.provider.to_string(),
            can_serve: check.can_serve,
            steps: steps.collect(),
        }
    }
}
