//! Lanes: background work of one provider, which no other provider can delay.
//!
//! # Purpose
//! Each provider, `LOCAL` included, has a lane for each kind of work. A lane claims, works and finishes
//! for itself. One that meets a provider which does not answer tries one piece of work when the
//! provider's breaker allows a trial, and waits otherwise; the other lanes go on.
//!
//! # Failures
//! A failure while the provider is out says nothing about the file that met it. Such a file waits a
//! minute at most, and its copy counts no attempt, so that an outage of any length ends without
//! hands.
//!
//! There are three: one purges deleted files, one removes dropped blobs, one copies to the
//! provider. When the breaker closes, all waits end.

use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::sleep;

use super::back_off_from;
use crate::FileStore;
use crate::domain::provider::ProviderCode;
use crate::domain::provider_health::BreakerState;

/// Length of a lease. Renewed while its lane works.
pub(super) const LEASE: Duration = Duration::from_mins(10);

/// The longest wait of work that failed while its provider was out. So long, at most, a provider that
/// has recovered is not noticed for want of work that is due.
const OUTAGE_PAUSE: Duration = Duration::from_mins(1);

/// The amount of work that a provider may be given now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// As much as the lane does at once.
    Freely,
    /// One piece, to find out if the provider answers again.
    OneTrial,
    /// Nothing.
    NotNow,
}

impl FileStore {
    /// Lists the holders that have lanes: `LOCAL`, then the configured providers. What a provider holds
    /// that is gone from the configuration waits until the provider is back.
    pub(super) fn holders(&self) -> Vec<ProviderCode> {
        self.providers().all().iter().map(|provider| provider.code.clone()).collect()
    }

    /// Tells how much may be put to the provider, or removed from it, now.
    pub(super) fn admission(&self, provider: &ProviderCode) -> Admission {
        let Some(health) = self.providers().health_of(provider) else { return Admission::Freely };
        match health.writes.state {
            BreakerState::Closed => Admission::Freely,
            BreakerState::Open if health.writes.may_try(self.inner().now()) => Admission::OneTrial,
            BreakerState::Open | BreakerState::HalfOpen => Admission::NotNow,
        }
    }

    /// Lists the providers from which nothing can be read now.
    pub(super) fn unreadable(&self) -> Vec<ProviderCode> {
        let now = self.inner().now();
        let health = self.providers().health();
        health.into_iter().filter(|at| !at.reads.may_try(now)).map(|at| at.provider).collect()
    }

    /// Returns true if the provider is known not to answer.
    pub(super) fn is_out(&self, provider: &ProviderCode) -> bool {
        let health = self.providers().health_of(provider);
        !provider.is_local() && health.is_none_or(|health| !health.is_good())
    }

    /// Returns the pause after a failure at the provider that followed `attempts` others; the first
    /// such pause is `first`.
    pub(super) fn pause(
        &self,
        provider: &ProviderCode,
        first: Duration,
        attempts: u32,
    ) -> Duration {
        let pause = back_off_from(first, attempts);
        if self.is_out(provider) { pause.min(OUTAGE_PAUSE) } else { pause }
    }
}

/// Does `work` and, three times in the length of a lease meanwhile, what `renew` returns.
pub(super) async fn while_renewing<T, F>(
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
