//! The overview of a whole store.

use std::collections::BTreeMap;

use crate::domain::error::{Error, Result};
use crate::domain::file::status::Location;
use crate::domain::provider::ProviderCode;
use crate::domain::provider::backlog::ProviderBacklog;
use crate::domain::report::ProviderInfo;
use crate::domain::report::load::ResumableLoad;
use crate::domain::report::overview::{DiskSpace, ProviderStatus, Unfinished};
use crate::service::FileStore;
use crate::service::providers::overview::list_providers;
use crate::service::uploads::resumable::state::End;

/// Combines every provider with its health and with `backlog`. Providers that are no longer configured come
/// last, if they still have waiting work.
pub(crate) fn provider_states(
    store: &FileStore,
    backlog: Vec<ProviderBacklog>,
) -> Vec<ProviderStatus> {
    let mut waiting: BTreeMap<ProviderCode, ProviderBacklog> =
        backlog.into_iter().map(|backlog| (backlog.provider.clone(), backlog)).collect();

    let mut all = Vec::new();
    for info in list_providers(store) {
        let backlog = waiting.remove(&info.code);
        let backlog = backlog.unwrap_or_else(|| ProviderBacklog::new(info.code.clone()));
        let health = store.providers().health_of(&info.code);
        all.push(ProviderStatus::new(info, true, health, backlog));
    }

    let gone = waiting.into_values().filter(|backlog| !backlog.is_empty());
    all.extend(gone.map(|backlog| {
        ProviderStatus::new(unknown(backlog.provider.clone()), false, None, backlog)
    }));
    all
}

/// Returns the disk space of the data directory. `None` if the query fails.
pub(crate) async fn disk_space(store: &FileStore) -> Option<DiskSpace> {
    let looked = store.inner.stores.local().disk_space().await;
    looked
        .inspect_err(|error| tracing::warn!(error = %error.chain(), "the disk cannot be looked at"))
        .ok()
}

/// Returns the number and size of staged uploads without a commit.
pub(crate) fn unfinished(store: &FileStore) -> Unfinished {
    let (staged, limit) = (store.inner.uploads.staged.staged(), store.inner.uploads.staged.limit());
    Unfinished::new(staged.files as u64, staged.bytes, limit.files as u64, limit.bytes)
}

/// Counts the resumable uploads. The open ones are not counted while the database does not answer.
pub(crate) async fn resumable(store: &FileStore) -> ResumableLoad {
    let state = &store.inner.uploads.resumable;
    let totals = store.inner.metadata.upload_totals().await.ok();
    ResumableLoad {
        open: totals.map(|totals| totals.uploads),
        open_bytes: totals.map(|totals| totals.bytes),
        transfers: state.transfers() as u64,
        finished: state.ended(End::Finished),
        failed: state.ended(End::Failed),
        expired: state.ended(End::Expired),
        cancelled: state.ended(End::Cancelled),
    }
}

/// Returns the faults of the database and the storage, if any.
pub(crate) async fn faults(store: &FileStore) -> (Option<String>, Option<String>) {
    let health = store.check().await;
    (fault("the database", health.database), fault("the storage", health.storage))
}

/// Converts a failed check to a text that is safe to show. The log contains the reason.
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
