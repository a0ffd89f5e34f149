//! The state of the whole service.

use crate::api;
use crate::domain::provider::health::{ProviderFault, ProviderHealth};
use crate::domain::report::PurgeReport;
use crate::domain::report::load::{EventLogLoad, ResumableLoad};
use crate::domain::report::overview::{Advice, DiskSpace, Overview, ProviderStatus, Unfinished};
use crate::domain::report::webhooks::WebhooksOverview;
use crate::domain::time::clock::Timestamp;
use crate::variant::CacheReport;

impl api::StatusReply {
    /// Converts the store state, with the size of its variant cache.
    pub fn of(overview: &Overview, variants: CacheReport) -> Self {
        let providers = overview.providers.iter();
        let migrations = overview.migrations.iter().cloned();

        Self {
            store: api::StatusStore {
                id: overview.store_id.to_string(),
                version: overview.version.to_owned(),
                opened_at: overview.opened_at.to_string(),
                uptime_secs: secs_between(overview.opened_at, overview.at),
                data_dir: overview.data_dir.display().to_string(),
            },
            database: fault_or_ok(overview.database_fault.as_ref()),
            storage: fault_or_ok(overview.storage_fault.as_ref()),
            disk: overview.disk.map(Into::into),
            unfinished: overview.unfinished.into(),
            resumable: overview.resumable.into(),
            events: overview.events.map(Into::into),
            webhooks: overview.webhooks.as_ref().map(Into::into),
            providers: providers.map(|one| api::AdminProvider::of(one, overview.at)).collect(),
            files: overview.total.files,
            bytes: overview.total.bytes,
            sync: overview.sync.clone().into(),
            purge: (&overview.purge).into(),
            migrations: migrations
                .map(|(organization, running)| api::StatusMigration {
                    organization_id: organization.to_string(),
                    running: running.into(),
                })
                .collect(),
            checks: overview.checks.clone().into(),
            variants: variants.into(),
            advice: overview.advice().into_iter().map(Into::into).collect(),
        }
    }
}

impl From<EventLogLoad> for api::StatusEvents {
    fn from(log: EventLogLoad) -> Self {
        let EventLogLoad { is_on, kept, oldest_at, gap_at, held_back, held_back_for } = log;
        Self {
            is_on,
            kept,
            oldest_at: oldest_at.map(|at| at.to_string()),
            gap_at: gap_at.map(|at| at.to_string()),
            held_back,
            held_back_secs: held_back_for.as_secs(),
        }
    }
}

impl From<&WebhooksOverview> for api::StatusWebhooks {
    fn from(webhooks: &WebhooksOverview) -> Self {
        Self {
            ok: webhooks.ok,
            failing: webhooks.failing,
            disabled: webhooks.disabled,
            gaps: webhooks.gaps,
            failing_since: webhooks.failing_since.map(|at| at.to_string()),
            oldest_waiting_at: webhooks.oldest_waiting_at.map(|at| at.to_string()),
        }
    }
}

fn fault_or_ok(fault: Option<&String>) -> String {
    fault.cloned().unwrap_or_else(|| "ok".to_owned())
}

impl api::AdminProvider {
    /// Converts a provider with its state at `now`.
    pub fn of(status: &ProviderStatus, now: Timestamp) -> Self {
        let last_error = status.health.as_ref().and_then(last_error);

        Self {
            is_configured: status.is_configured,
            state: status.state().map(Into::into),
            state_since: status.health.as_ref().map(|health| health.worst().since.to_string()),
            last_error: last_error.map(|fault| fault.text.clone()),
            last_error_at: last_error.map(|fault| fault.at.to_string()),
            backlog: backlog(status, now),
            ..status.info.clone().into()
        }
    }
}

impl api::ReadyProvider {
    /// Converts the readiness of a provider, with its waiting work, at `now`.
    pub fn of(status: &ProviderStatus, now: Timestamp) -> Self {
        let last_error = status.health.as_ref().and_then(last_error);

        Self {
            provider_code: status.info.code.to_string(),
            state: status.state().map(Into::into),
            last_error: last_error.map(|fault| fault.text.clone()),
            backlog: backlog(status, now),
        }
    }
}

/// Returns the last error of a provider: of reads or of writes.
fn last_error(health: &ProviderHealth) -> Option<&ProviderFault> {
    let all = [&health.writes, &health.reads];
    all.into_iter().filter_map(|breaker| breaker.last_error.as_ref()).max_by_key(|fault| fault.at)
}

fn backlog(status: &ProviderStatus, now: Timestamp) -> api::ProviderBacklog {
    api::ProviderBacklog {
        sync: status.backlog.sync.count,
        purge: status.backlog.purge.count,
        dropped: status.backlog.dropped.count,
        oldest_secs: status.oldest_age(now).map(|age| age.as_secs()),
    }
}

fn secs_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_secs() - from.as_secs()).unwrap_or(0)
}

impl From<DiskSpace> for api::StatusDisk {
    fn from(disk: DiskSpace) -> Self {
        let DiskSpace { free_bytes, total_bytes, reserve_bytes, takes_uploads } = disk;
        Self { free_bytes, total_bytes, reserve_bytes, takes_uploads }
    }
}

impl From<Unfinished> for api::StatusUnfinished {
    fn from(unfinished: Unfinished) -> Self {
        let Unfinished { files, bytes, max_files, max_bytes } = unfinished;
        Self { files, bytes, max_files, max_bytes }
    }
}

impl From<ResumableLoad> for api::StatusResumable {
    fn from(load: ResumableLoad) -> Self {
        Self { open: load.open, open_bytes: load.open_bytes, transfers: load.transfers }
    }
}

impl From<&PurgeReport> for api::StatusPurge {
    fn from(purge: &PurgeReport) -> Self {
        Self {
            due: purge.purged,
            due_bytes: purge.purged_bytes,
            waiting: purge.waiting,
            waiting_bytes: purge.waiting_bytes,
            next_due_at: purge.next_due_at.map(|at| at.to_string()),
            expired: purge.expired,
            due_blobs: purge.blobs_removed,
        }
    }
}

impl From<Advice> for api::StatusAdvice {
    fn from(advice: Advice) -> Self {
        let Advice { code, about, problem, next, provider, organization, command } = advice;
        Self {
            code: code.into(),
            about,
            problem,
            next,
            provider_code: provider.map(|code| code.to_string()),
            organization_id: organization.map(|id| id.to_string()),
            command,
        }
    }
}
