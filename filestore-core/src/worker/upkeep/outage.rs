//! Ends the waits after an outage: failed work at a provider becomes due as soon as the provider answers
//! again.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::domain::provider::health::BreakerState;
use crate::domain::time::clock::Timestamp;

/// The number of rows in one transaction.
const PAGE: usize = 500;

/// The providers with an outage that has not ended yet.
#[derive(Default)]
pub(in crate::worker) struct Outages(Mutex<BTreeMap<ProviderCode, Timestamp>>);

impl Outages {
    /// Ends the waits at every provider that answers again.
    pub(in crate::worker) async fn end_waits(&self, store: &FileStore) -> Result<()> {
        for provider in self.recovered(store) {
            let since = self.0.lock().get(&provider).copied();
            let ended = end_waits_at(store, &provider).await?;
            tracing::info!(%provider, ended, "a provider answers again, and its waiting work is due");

            // If it went out again meanwhile, its next end is another one.
            let mut seen = self.0.lock();
            if seen.get(&provider).copied() == since {
                seen.remove(&provider);
            }
        }
        Ok(())
    }

    /// Records outages, and lists the providers that answer again.
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

/// Ends the waits of all failed work at the provider. Returns the amount of work.
async fn end_waits_at(store: &FileStore, provider: &ProviderCode) -> Result<u64> {
    let mut ended = 0;
    loop {
        let now = store.inner().now();
        let some = store.inner().metadata.end_waits(provider, now, PAGE).await?;
        ended += some;
        if some == 0 {
            break;
        }
    }

    store.inner().background.purge_wanted.notify();
    store.inner().background.sync_wanted.notify();
    Ok(ended)
}
