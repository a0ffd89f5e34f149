//! The state of the whole store, with advice on each problem.

use std::path::PathBuf;
use std::time::Duration;

use super::fsck::FsckStatus;
use super::load::{EventLogLoad, ResumableLoad};
use super::webhooks::WebhooksOverview;
use super::{MigrateRunning, ProviderInfo, PurgeReport, SyncStatusReport};
use crate::domain::file::damage::Damage;
use crate::domain::file::usage::Stored;
use crate::domain::id::{OrganizationId, StoreId};
use crate::domain::provider::ProviderCode;
use crate::domain::provider::backlog::ProviderBacklog;
use crate::domain::provider::health::{BreakerState, ProviderHealth};
use crate::domain::time::clock::Timestamp;

/// Age from which waiting work of a working provider is a problem.
const LONG: Duration = Duration::from_hours(1);

/// Time from which events that readers cannot see are a problem.
const HELD_BACK: Duration = Duration::from_mins(1);

/// Free space below which an administrator should act, in bytes.
const LITTLE_BYTES: u64 = 1 << 30;

/// The store's state.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Overview {
    /// Store id.
    pub store_id: StoreId,
    /// This library's version.
    pub version: &'static str,
    /// Time at which the store was opened.
    pub opened_at: Timestamp,
    /// Time at which the figures were taken.
    pub at: Timestamp,
    /// Data directory.
    pub data_dir: PathBuf,
    /// Reason why the database does not answer. `None` if it does.
    pub database_fault: Option<String>,
    /// Reason why the storage accepts no bytes. `None` if it does.
    pub storage_fault: Option<String>,
    /// The data directory's disk. `None` if its size is unknown.
    pub disk: Option<DiskSpace>,
    /// Staged files without a commit.
    pub unfinished: Unfinished,
    /// Resumable uploads.
    pub resumable: ResumableLoad,
    /// The log of events. `None` if the database does not answer.
    pub events: Option<EventLogLoad>,
    /// Webhooks. `None` if the database does not answer.
    pub webhooks: Option<WebhooksOverview>,
    /// Providers: `LOCAL` first, then the configured providers, then removed providers with waiting
    /// work.
    pub providers: Vec<ProviderStatus>,
    /// Figures for all files, TEMP files and deleted files included.
    pub total: Stored,
    /// Files by sync status.
    pub sync: SyncStatusReport,
    /// Organization of the newest file without copy attempts left, if there is one.
    pub sync_failed_in: Option<OrganizationId>,
    /// Work for a purge now.
    pub purge: PurgeReport,
    /// Running migrations.
    pub migrations: Vec<(OrganizationId, MigrateRunning)>,
    /// Checks: the running check and the last results.
    pub checks: FsckStatus,
    /// Damage that the store has found and cannot repair automatically.
    pub damage: Damage,
}

/// Space on a data directory's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskSpace {
    /// Free space for this process, in bytes.
    pub free_bytes: u64,
    /// File system size, in bytes.
    pub total_bytes: u64,
    /// Space that uploads cannot use, in bytes.
    pub reserve_bytes: u64,
    /// True if there is space for uploads.
    pub takes_uploads: bool,
}

impl DiskSpace {
    pub(crate) fn new(free_bytes: u64, total_bytes: u64, reserve_bytes: u64) -> Self {
        Self { free_bytes, total_bytes, reserve_bytes, takes_uploads: true }
    }
}

/// Uploads without a commit: still arriving, or waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// File count.
    pub files: u64,
    /// Bytes in these files so far.
    pub bytes: u64,
    /// Maximum files.
    pub max_files: u64,
    /// Maximum bytes.
    pub max_bytes: u64,
}

impl Unfinished {
    pub(crate) fn new(files: u64, bytes: u64, max_files: u64, max_bytes: u64) -> Self {
        Self { files, bytes, max_files, max_bytes }
    }
}

/// A provider with its current state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderStatus {
    /// The provider.
    pub info: ProviderInfo,
    /// True if the provider is in the configuration. `LOCAL` always is.
    pub is_configured: bool,
    /// The provider's health. `None` for `LOCAL`, and for a provider that is not in the
    /// configuration.
    pub health: Option<ProviderHealth>,
    /// Work that waits for the provider.
    pub backlog: ProviderBacklog,
}

impl ProviderStatus {
    pub(crate) fn new(
        info: ProviderInfo,
        is_configured: bool,
        health: Option<ProviderHealth>,
        backlog: ProviderBacklog,
    ) -> Self {
        Self { info, is_configured, health, backlog }
    }

    /// Returns the worse breaker state: of reads or of writes. `None` if the provider has no
    /// breaker.
    pub fn state(&self) -> Option<BreakerState> {
        self.health.as_ref().map(|health| health.worst().state)
    }

    /// Returns the oldest waiting work's age at `now`.
    pub fn oldest_age(&self, now: Timestamp) -> Option<Duration> {
        let millis = now.as_millis().saturating_sub(self.backlog.oldest()?.as_millis());
        Some(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
    }
}

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdviceCode {
    /// The database does not answer, or its figures cannot be read.
    DatabaseFault,
    /// The storage accepts no bytes.
    StorageFault,
    /// Uploads are refused, because the disk is full.
    DiskFull,
    /// The disk is nearly full.
    DiskLow,
    /// The store skips damaged rows.
    DamagedRows,
    /// Files have no bytes on the disk.
    MissingBlobs,
    /// The last check has open findings.
    OpenFindings,
    /// Uploads without a commit are close to their limit.
    UnfinishedUploads,
    /// A provider does not answer, or gets no writes.
    ProviderFailing,
    /// Work waits for a provider that the configuration no longer contains.
    ProviderMissing,
    /// Files wait for a copy to an inactive provider.
    ProviderInactive,
    /// A provider answers, and work still waits for it.
    WorkWaiting,
    /// Files have no copy attempts left.
    SyncFailed,
    /// Readers of events wait for an open transaction.
    EventsHeldBack,
    /// The endpoint of a webhook accepts no event for a long time.
    WebhookFailing,
    /// The server has disabled a webhook.
    WebhookDisabled,
    /// Another problem. `about` names its subject.
    Other,
}

impl AdviceCode {
    /// Every code.
    pub const ALL: &'static [Self] = &[
        Self::DatabaseFault,
        Self::StorageFault,
        Self::DiskFull,
        Self::DiskLow,
        Self::DamagedRows,
        Self::MissingBlobs,
        Self::OpenFindings,
        Self::UnfinishedUploads,
        Self::ProviderFailing,
        Self::ProviderMissing,
        Self::ProviderInactive,
        Self::WorkWaiting,
        Self::SyncFailed,
        Self::EventsHeldBack,
        Self::WebhookFailing,
        Self::WebhookDisabled,
        Self::Other,
    ];

    /// Returns the word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DatabaseFault => "database_fault",
            Self::StorageFault => "storage_fault",
            Self::DiskFull => "disk_full",
            Self::DiskLow => "disk_low",
            Self::DamagedRows => "damaged_rows",
            Self::MissingBlobs => "missing_blobs",
            Self::OpenFindings => "open_findings",
            Self::UnfinishedUploads => "unfinished_uploads",
            Self::ProviderFailing => "provider_failing",
            Self::ProviderMissing => "provider_missing",
            Self::ProviderInactive => "provider_inactive",
            Self::WorkWaiting => "work_waiting",
            Self::SyncFailed => "sync_failed",
            Self::EventsHeldBack => "events_held_back",
            Self::WebhookFailing => "webhook_failing",
            Self::WebhookDisabled => "webhook_disabled",
            Self::Other => "other",
        }
    }
}

/// A problem, with advice.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advice {
    /// Kind of the problem, for programs.
    pub code: AdviceCode,
    /// Subject: `database`, `disk`, `sync`, `events`, `webhook` with its id, or a provider code.
    pub about: String,
    /// Explanation for the problem.
    pub problem: String,
    /// Next step.
    pub next: String,
    /// Provider with the problem. `None` for other problems.
    pub provider: Option<ProviderCode>,
    /// Organization of the newest file with the problem. `None` for problems without a file.
    pub organization: Option<OrganizationId>,
    /// Command line of the next step, if one command does it.
    pub command: Option<String>,
}

impl Advice {
    pub(super) fn new(about: &str, problem: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            code: AdviceCode::Other,
            about: about.to_owned(),
            problem: problem.into(),
            next: next.into(),
            provider: None,
            organization: None,
            command: None,
        }
    }

    pub(super) fn coded(self, code: AdviceCode) -> Self {
        Self { code, ..self }
    }

    pub(super) fn with_command(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }
}

impl Overview {
    /// Lists the problems, most serious first, with a next step for each.
    pub fn advice(&self) -> Vec<Advice> {
        let mut all = Vec::new();
        all.extend(self.database_fault.as_ref().map(|fault| {
            let next =
                "look at the log, then restart the server, so that it reads the database from the disk again";
            Advice::new("database", fault, next).coded(AdviceCode::DatabaseFault)
        }));
        all.extend(self.storage_advice());
        all.extend(self.damage_advice());
        all.extend(self.checks_advice());
        all.extend(self.unfinished_advice());
        all.extend(self.providers.iter().filter_map(|provider| self.provider_advice(provider)));
        all.extend(self.sync_advice());
        all.extend(self.events_advice());
        all.extend(self.webhooks.iter().flat_map(|webhooks| webhooks.advice(self.at)));
        all
    }

    fn storage_advice(&self) -> Option<Advice> {
        if let Some(disk) = self.disk.filter(|disk| !disk.takes_uploads) {
            let problem = format!("full: {} bytes free, uploads are refused", disk.free_bytes);
            let next = "make room on the disk of the data directory: delete files, then `filestore purge run --now`";
            let advice = Advice::new("disk", problem, next).coded(AdviceCode::DiskFull);
            return Some(advice.with_command("filestore purge run --now"));
        }
        if let Some(fault) = &self.storage_fault {
            let next = "look at the log, and check that the disk of the data directory is mounted, writable and healthy";
            return Some(Advice::new("storage", fault, next).coded(AdviceCode::StorageFault));
        }

        let disk = self.disk.filter(|disk| disk.free_bytes < LITTLE_BYTES)?;
        let problem = format!("less than 1 GiB free: {} bytes", disk.free_bytes);
        let next = "make room before uploads are refused";
        Some(Advice::new("disk", problem, next).coded(AdviceCode::DiskLow))
    }

    fn damage_advice(&self) -> Option<Advice> {
        let Damage { damaged_rows, rows, missing_blobs } = &self.damage;
        if *damaged_rows > 0 {
            let first =
                rows.first().map_or(String::new(), |row| format!(", first of them {}", row.row));
            let problem = format!("damaged rows, which the store skips: {damaged_rows}{first}");
            let next = "restore them from a backup of the database (the log names each row with the reason)";
            return Some(Advice::new("records", problem, next).coded(AdviceCode::DamagedRows));
        }

        (*missing_blobs > 0).then(|| {
            let problem = format!("files without bytes on the disk: {missing_blobs}");
            let next =
                "check that the disk of the data directory is the right one (the log names each file)";
            Advice::new("blobs", problem, next).coded(AdviceCode::MissingBlobs)
        })
    }

    fn checks_advice(&self) -> Option<Advice> {
        let last = [&self.checks.last, &self.checks.scrub].into_iter().flatten();
        let ended = last.filter(|check| check.ended_at.is_some());
        let newest = ended.max_by_key(|check| check.ended_at)?;
        let left = newest.found.saturating_sub(newest.repaired);

        (left > 0).then(|| {
            let problem = format!("open findings of the last check: {left}");
            let next = "run `filestore fsck` to list the findings and possible repairs";
            let advice = Advice::new("checks", problem, next).coded(AdviceCode::OpenFindings);
            advice.with_command("filestore fsck")
        })
    }

    fn unfinished_advice(&self) -> Option<Advice> {
        let Unfinished { files, bytes, max_files, max_bytes } = self.unfinished;
        let is_near = files > max_files / 10 * 9 || bytes > max_bytes / 10 * 9;
        is_near.then(|| {
            let problem = format!("close to the limit of unfinished uploads: {files} files, {bytes} bytes");
            let next = "look below for a provider that does not answer (limits: limits.staged_files, \
                        limits.staged_bytes)";
            Advice::new("uploads", problem, next).coded(AdviceCode::UnfinishedUploads)
        })
    }

    fn provider_advice(&self, provider: &ProviderStatus) -> Option<Advice> {
        let advice = self.advice_on(provider)?;
        Some(Advice { provider: Some(provider.info.code.clone()), ..advice })
    }

    fn advice_on(&self, provider: &ProviderStatus) -> Option<Advice> {
        let code = provider.info.code.as_str();
        let waiting = provider.backlog.is_empty().then_some("");
        let waiting = waiting.unwrap_or(". Waiting work continues when the provider answers");

        if !provider.is_configured {
            let next = "put it back into the configuration, or move its files with `filestore migrate run`";
            let problem = "missing in the configuration, and work waits for it";
            return Some(Advice::new(code, problem, next).coded(AdviceCode::ProviderMissing));
        }
        if let Some(health) = provider.health.as_ref().filter(|health| !health.is_good()) {
            let worst = health.worst();
            let error = worst.last_error.as_ref().map_or("", |fault| &fault.text);
            let is_read = health.reads.state == BreakerState::Closed;
            let what = if is_read { "gets no writes" } else { "does not answer" };
            let problem = format!("{what} since {}: {error}", worst.since);
            let command = format!("filestore provider check {code}");
            let next = format!("run `{command}` to see the error{waiting}");
            let advice = Advice::new(code, problem, next).coded(AdviceCode::ProviderFailing);
            return Some(advice.with_command(command));
        }
        if !provider.info.is_active && provider.backlog.sync.count > 0 {
            let next =
                "activate it in the configuration, or bind the organizations to another provider";
            let problem = "inactive, and files wait for a copy to it";
            return Some(Advice::new(code, problem, next).coded(AdviceCode::ProviderInactive));
        }

        let age = provider.oldest_age(self.at).filter(|age| *age > LONG)?;
        let problem = format!("answers, but work has waited for {} minutes", age.as_secs() / 60);
        let next = "look at the log for the error of each file";
        Some(Advice::new(code, problem, next).coded(AdviceCode::WorkWaiting))
    }

    fn events_advice(&self) -> Option<Advice> {
        let log = self.events.filter(|log| log.held_back_for >= HELD_BACK)?;
        let secs = log.held_back_for.as_secs();
        let problem = format!("readers wait for {} events since {secs} seconds", log.held_back);
        let next = "look in `pg_stat_activity` for an old transaction of filestore that is open, and end it";
        Some(Advice::new("events", problem, next).coded(AdviceCode::EventsHeldBack))
    }

    fn sync_advice(&self) -> Option<Advice> {
        let failed = self.sync.failed;
        (failed > 0).then(|| {
            let problem = format!(
                "files without further copy attempts, served from their old location: {failed}"
            );
            let next = "when the provider works again, run `filestore sync retry`";
            let advice = Advice::new("sync", problem, next).coded(AdviceCode::SyncFailed);
            let organization = self.sync_failed_in.clone();
            Advice { organization, ..advice.with_command("filestore sync retry") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::file::damage::DamagedRow;
    use crate::domain::file::status::Location;
    use crate::domain::provider::ProviderCode;
    use crate::domain::provider::backlog::Waiting;
    use crate::domain::provider::health::{BreakerHealth, ProviderFault};
    use crate::domain::report::fsck::FsckSummary;

    fn sound() -> Overview {
        Overview {
            store_id: StoreId::generate(Timestamp::from_millis(0)),
            version: "1",
            opened_at: Timestamp::from_millis(0),
            at: Timestamp::from_millis(10_000_000),
            data_dir: "/data".into(),
            database_fault: None,
            storage_fault: None,
            disk: Some(DiskSpace::new(2 << 30, 100 << 30, 1)),
            unfinished: Unfinished::new(1, 1, 100, 100),
            resumable: ResumableLoad::default(),
            events: None,
            webhooks: None,
            providers: vec![provider("eu")],
            total: Stored::default(),
            sync: SyncStatusReport::default(),
            sync_failed_in: None,
            purge: PurgeReport::default(),
            migrations: Vec::new(),
            checks: FsckStatus::default(),
            damage: Damage::default(),
        }
    }

    #[test]
    fn damage_is_named_and_said_to_be_mended_from_a_backup() {
        let mut damaged = sound();
        damaged.damage.damaged_rows = 2;
        damaged.damage.rows = vec![DamagedRow::new("file X", &"no such status")];

        let advice = damaged.advice();
        assert_eq!(advice[0].about, "records");
        assert!(advice[0].problem.ends_with("2, first of them file X"), "{advice:?}");

        damaged.damage = Damage { missing_blobs: 1, ..Damage::default() };
        assert_eq!(damaged.advice()[0].about, "blobs");
    }

    fn breaker(state: BreakerState) -> BreakerHealth {
        BreakerHealth {
            state,
            since: Timestamp::from_millis(0),
            consecutive_failures: 3,
            last_error: Some(ProviderFault {
                at: Timestamp::from_millis(1),
                text: "connection refused".to_owned(),
            }),
            next_trial: None,
        }
    }

    fn provider(code: &str) -> ProviderStatus {
        let code: ProviderCode = code.parse().unwrap();
        let info = ProviderInfo {
            code: code.clone(),
            name: code.to_string(),
            location: Location::Cloud,
            is_active: true,
            scheme: "s3".to_owned(),
            is_tested: true,
        };
        let health = ProviderHealth {
            provider: code.clone(),
            writes: breaker(BreakerState::Closed),
            reads: breaker(BreakerState::Closed),
            is_misplaced: false,
        };
        ProviderStatus::new(info, true, Some(health), ProviderBacklog::new(code))
    }

    fn advised(change: impl FnOnce(&mut Overview)) -> Vec<Advice> {
        let mut overview = sound();
        change(&mut overview);
        overview.advice()
    }

    #[test]
    fn a_sound_store_needs_no_advice() {
        assert_eq!(sound().advice(), []);
    }

    #[test]
    fn each_thing_that_is_not_well_is_named_with_what_to_do() {
        type Change = fn(&mut Overview);
        let cases: [(&str, AdviceCode, &str, Change); 11] = [
            ("database", AdviceCode::DatabaseFault, "restart", |all| {
                all.database_fault = Some("locked".to_owned());
            }),
            ("storage", AdviceCode::StorageFault, "mounted", |all| {
                all.storage_fault = Some("no space".to_owned());
            }),
            ("disk", AdviceCode::DiskFull, "make room", |all| {
                all.disk.as_mut().unwrap().takes_uploads = false;
            }),
            ("disk", AdviceCode::DiskLow, "make room", |all| {
                all.disk = Some(DiskSpace::new(1 << 20, 100 << 30, 1));
            }),
            ("checks", AdviceCode::OpenFindings, "filestore fsck", |all| {
                all.checks.scrub = Some(FsckSummary {
                    depth: crate::domain::report::fsck::FsckDepth::Deep,
                    started_at: Timestamp::from_millis(1),
                    ended_at: Some(Timestamp::from_millis(2)),
                    checked_files: 9,
                    checked_bytes: 9,
                    found: 3,
                    repaired: 1,
                    postponed: Vec::new(),
                });
            }),
            ("uploads", AdviceCode::UnfinishedUploads, "limits.staged", |all| {
                all.unfinished.files = 95;
            }),
            ("eu", AdviceCode::ProviderFailing, "filestore provider check eu", |all| {
                all.providers[0].health.as_mut().unwrap().writes = breaker(BreakerState::Open);
            }),
            ("eu", AdviceCode::ProviderMissing, "put it back", |all| {
                all.providers[0].is_configured = false;
            }),
            ("eu", AdviceCode::WorkWaiting, "look at the log", |all| {
                all.providers[0].backlog.purge =
                    Waiting { count: 1, oldest: Some(Timestamp::from_millis(0)) };
            }),
            ("sync", AdviceCode::SyncFailed, "filestore sync retry", |all| all.sync.failed = 2),
            ("events", AdviceCode::EventsHeldBack, "pg_stat_activity", |all| {
                let held_back_for = HELD_BACK;
                all.events =
                    Some(EventLogLoad { held_back: 3, held_back_for, ..EventLogLoad::default() });
            }),
        ];

        for (about, code, next, change) in cases {
            let advice = advised(change);
            assert_eq!(advice.len(), 1, "{advice:?}");
            assert_eq!((advice[0].about.as_str(), advice[0].code), (about, code));
            assert_eq!(advice[0].provider.is_some(), about == "eu");
            let command = advice[0].command.as_deref().unwrap_or_default();
            assert!(advice[0].next.contains(command), "{advice:?}");
            assert!(advice[0].next.contains(next), "{advice:?}");
        }
    }

    #[test]
    fn a_provider_that_can_still_be_read_is_not_said_to_be_silent() {
        let advice = advised(|all| {
            all.providers[0].health.as_mut().unwrap().writes = breaker(BreakerState::Open);
        });
        assert!(advice[0].problem.starts_with("gets no writes since"), "{advice:?}");

        let advice = advised(|all| {
            all.providers[0].health.as_mut().unwrap().reads = breaker(BreakerState::Open);
        });
        assert!(advice[0].problem.starts_with("does not answer since"), "{advice:?}");
    }

    #[test]
    fn an_inactive_provider_is_of_interest_only_while_files_wait_for_it() {
        assert_eq!(advised(|all| all.providers[0].info.is_active = false), []);
        let advice = advised(|all| {
            all.providers[0].info.is_active = false;
            all.providers[0].backlog.sync.count = 1;
        });
        assert!(advice[0].next.contains("activate"), "{advice:?}");
    }
}
