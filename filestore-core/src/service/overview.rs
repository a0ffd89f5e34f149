//! The whole store at a glance.

use std::collections::BTreeMap;

use super::FileStore;
use crate::domain::backlog::ProviderBacklog;
use crate::domain::error::{Error, Result};
use crate::domain::overview::{DiskSpace, ProviderStatus, Unfinished};
use crate::domain::provider::ProviderCode;
use crate::domain::report::ProviderInfo;
use crate::domain::status::Location;

impl FileStore {
    /// Joins every provider with how it answers and with `backlog`. Providers that are gone from the
    /// configuration come last, if work waits for them.
    pub(crate) fn provider_states(&self, backlog: Vec<ProviderBacklog>) -> Vec<ProviderStatus> {
        let mut waiting: BTreeMap<ProviderCode, ProviderBacklog> =
            backlog.into_iter().map(|backlog| (backlog.provider.clone(), backlog)).collect();

        let mut all = Vec::new();
        for info in self.list_providers() {
            let backlog = waiting.remove(&info.code);
            let backlog = backlog.unwrap_or_else(|| ProviderBacklog::new(info.code.clone()));
            let health = self.providers().health_of(&info.code);
            all.push(ProviderStatus::new(info, true, health, backlog));
        }

        let gone = waiting.into_values().filter(|backlog| !backlog.is_empty());
        all.extend(gone.map(|backlog| {
            ProviderStatus::new(unknown(backlog.provider.clone()), false, None, backlog)
        }));
        all
    }

    /// Looks at the disk of the data directory; `None` if that fails.
    pub(crate) async fn disk_space(&self) -> Option<DiskSpace> {
        let looked = self.inner.stores.local().disk_space().await;
        looked
            .inspect_err(
                |error| tracing::warn!(error = %error.chain(), "the disk cannot be looked at"),
            )
            .ok()
    }

    /// Returns what is staged without a commit.
    pub(crate) fn unfinished(&self) -> Unfinished {
        let (staged, limit) = (self.inner.staged.staged(), self.inner.staged.limit());
        Unfinished::new(staged.files as u64, staged.bytes, limit.files as u64, limit.bytes)
    }

    /// Returns the reasons why the database and the storage cannot be used, if they cannot.
    pub(crate) async fn faults(&self) -> (Option<String>, Option<String>) {
        let health = self.check().await;
        (fault("the database", health.database), fault("the storage", health.storage))
    }
}

/// Turns a failed check into what may be shown; the log has the reason.
fn fault(what: &str, checked: Result<(), Error>) -> Option<String> {
    let error = checked.err()?;
    tracing::error!(error = %error.chain(), "{what} does not work");
    Some(error.message().to_owned())
}

fn unknown(code: ProviderCode) -> ProviderInfo {
    ProviderInfo {
        name: code.to_string(),
        code,
        location: Location::Cloud,
        is_active: false,
        scheme: "unknown".to_owned(),
        is_tested: false,
    }
}
