//! The end of an outage: what waits after failures at a provider is due again as soon as the provider
//! answers.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::FileStore;
use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::domain::provider_health::BreakerState;

/// Rows whose waits end in one transaction.
const PAGE: usize = 500;

/// The providers whose outage has been seen, and not yet its end.
#[derive(Default)]
pub(super) struct Outages(Mutex<BTreeMap<ProviderCode, Timestamp>>);

impl Outages {
    /// Ends the waits at every provider that answers again.
    pub(super) async fn end_waits(&self, store: &FileStore) -> Result<()> {
        for provider in self.recovered(store) {
            let since = self.0.lock().get(&provider).copied();
            let ended = store.end_waits(&provider).await?;
            tracing::info!(%provider, ended, "a provider answers again: what waited for it is due");

            // If it went out again meanwhile, its next end is another one.
            let mut seen = self.0.lock();
            if seen.get(&provider).copied() == since {
                seen.remove(&provider);
            }
        }
        Ok(())
    }

    /// Notes outages, and lists the providers that were out and answer again.
    fn recovered(&self, store: &FileStore) -> Vec<ProviderCode> {
        let mut seen = self.0.lock();
        let mut recovered = Vec::new();

        for health in store.providers().health() {
            let (state, since) = (health.worst().state, health.worst().since);
            if state != BreakerState::Closed {
                seen.insert(health.provider, since);
            } else if seen.contains_key(&health.provider) {
                recovered.push(health.provider);
            }
        }
        recovered
    }
}

impl FileStore {
    /// Ends the waits of everything that failed at the provider; returns how much there was.
    async fn end_waits(&self, provider: &ProviderCode) -> Result<u64> {
        let mut ended = 0;
        loop {
            let now = self.inner().now();
            let some = self.inner().metadata.end_waits(provider, now, PAGE).await?;
            ended += some;
            if some == 0 {
                break;
            }
        }

        self.inner().purge_wanted.notify();
        self.inner().sync_wanted.notify();
        Ok(ended)
    }
}
