//! Lanes: background work for one provider that other providers cannot delay.
//!
//! # Purpose
//! Each provider, including `LOCAL`, has three lanes. One purges deleted files, one removes replaced blobs,
//! and one copies files to the provider. A lane claims, processes and finishes its own work. If its provider
//! does not answer, the lane tries one piece of work whenever the provider's breaker allows a trial, and
//! otherwise waits. Other lanes continue.
//!
//! # Failures
//! A failure during an outage is not the file's fault. Such a file waits at most one minute, and its copy
//! counts no attempt. After an outage of any length, work therefore continues automatically. When the breaker
//! closes, all waits end.

use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::sleep;

use crate::FileStore;
use crate::domain::provider::ProviderCode;
use crate::domain::provider::health::BreakerState;
use crate::worker::back_off_from;

/// The duration of a lease. The lane renews it while it works.
pub(in crate::worker) const LEASE: Duration = Duration::from_mins(10);

/// The maximum wait of work that failed during an outage. This wait is also the longest time until a
/// recovered provider is noticed if no other work is due.
const OUTAGE_PAUSE: Duration = Duration::from_mins(1);

/// The amount of work that the provider can get now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum Admission {
    /// As much as the lane does in parallel.
    Freely,
    /// One piece of work, to test if the provider answers again.
    OneTrial,
    /// No work.
    NotNow,
}

/// Lists the holders with lanes: `LOCAL`, then the configured providers. Work at a provider that is no longer
/// configured waits until the provider is configured again.
pub(in crate::worker) fn holders(store: &FileStore) -> Vec<ProviderCode> {
    store.providers().all().iter().map(|provider| provider.code.clone()).collect()
}

/// Returns how much can be written to, or removed from, the provider now.
pub(in crate::worker) fn admission(store: &FileStore, provider: &ProviderCode) -> Admission {
    let Some(health) = store.providers().health_of(provider) else { return Admission::Freely };
    match health.writes.state {
        BreakerState::Closed => Admission::Freely,
        BreakerState::Open if health.writes.may_try(store.inner().now()) => Admission::OneTrial,
        BreakerState::Open | BreakerState::HalfOpen => Admission::NotNow,
    }
}

/// Lists the providers that cannot be read now.
pub(in crate::worker) fn unreadable(store: &FileStore) -> Vec<ProviderCode> {
    let now = store.inner().now();
    let health = store.providers().health();
    health.into_iter().filter(|at| !at.reads.may_try(now)).map(|at| at.provider).collect()
}

/// Returns true if the provider is known not to answer.
pub(in crate::worker) fn is_out(store: &FileStore, provider: &ProviderCode) -> bool {
    let health = store.providers().health_of(provider);
    !provider.is_local() && health.is_none_or(|health| !health.is_good())
}

/// Returns the pause after a failure at the provider, after `attempts` earlier failures. The first pause is
/// `first`.
pub(in crate::worker) fn pause(
    store: &FileStore,
    provider: &ProviderCode,
    first: Duration,
    attempts: u32,
) -> Duration {
    let pause = back_off_from(first, attempts);
    if is_out(store, provider) { pause.min(OUTAGE_PAUSE) } else { pause }
}

/// Runs `work`, and calls `renew` three times in the duration of a lease.
pub(in crate::worker) async fn while_renewing<T, F>(
    work: impl Future<Output = T>,
    mut renew: impl FnMut() -> F,
) -> T
where
    F: Future<Output = ()>,
{
    let renewing = async {
        loop {
            sleep(LEASE / 3).await;
            renew().await;
        }
    };

    match select(Box::pin(work), Box::pin(renewing)).await {
        Either::Left((done, _)) => done,
        Either::Right((never, _)) => never,
    }
}
