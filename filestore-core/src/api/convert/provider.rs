//! Providers.

use crate::api;
use crate::domain::provider::Provider;

impl From<&Provider> for api::ProviderReply {
    fn from(provider: &Provider) -> Self {
        Self { provider_code: provider.code.to_string(), provider_name: provider.name.clone() }
    }
}
