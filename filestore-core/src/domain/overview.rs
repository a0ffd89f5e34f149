//! The whole store at a glance, and what to do next about each thing that is not well.

use std::path::PathBuf;
use std::time::Duration;

use super::backlog::ProviderBacklog;
use super::clock::Timestamp;
use super::damage::Damage;
use super::fsck::FsckStatus;
use super::id::{OrganizationId, StoreId};
use super::provider_health::{BreakerState, ProviderHealth};
use super::report::{MigrateRunning, ProviderInfo, PurgeReport, SyncStatusReport};

/// Age from which work that waits for a sound holder is worth a look.
const LONG: Duration = Duration::from_hours(1);

/// Free space below which room should be made.
const LITTLE_BYTES: u64 = 1 << 30;

/// The state of a store and of everything it stands on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Overview {
    /// The id of the store.
    pub store_id: StoreId,
    /// The version of this library.
    pub version: &'static str,
    /// The instant at which the store was opened.
    pub opened_at: Timestamp,
    /// The instant that the overview is of.
    pub at: Timestamp,
    /// The data directory.
    pub data_dir: PathBuf,
    /// The reason why the database does not answer, if it does not.
    pub database_fault: Option<String>,
    /// The reason why the storage takes no bytes, if it takes none.
    pub storage_fault: Option<String>,
    /// The disk of the data directory; `None` if it cannot be looked at.
    pub disk: Option<DiskSpace>,
    /// Files that are staged without a commit.
    pub unfinished: Unfinished,
    /// The providers, `LOCAL` first, then those that are gone from the configuration and have work.
    pub providers: Vec<ProviderStatus>,
    /// Files by sync status.
    pub sync: SyncStatusReport,
    /// Work that a purge would find now.
    pub purge: PurgeReport,
    /// The migrations under way.
    pub migrations: Vec<(OrganizationId, MigrateRunning)>,
    /// Checks of the store: the one under way, and the last results.
    pub checks: FsckStatus,
    /// Damage that the store has met and cannot repair by itself.
    pub damage: Damage,
}

/// The space on the disk of a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskSpace {
    /// Bytes that this process may still write.
    pub free_bytes: u64,
    /// Bytes of the file system.
    pub total_bytes: u64,
    /// Bytes that are kept back from uploads.
    pub reserve_bytes: u64,
    /// True if there is room for uploads.
    pub takes_uploads: bool,
}

impl DiskSpace {
    pub(crate) fn new(free_bytes: u64, total_bytes: u64, reserve_bytes: u64) -> Self {
        Self { free_bytes, total_bytes, reserve_bytes, takes_uploads: true }
    }
}

/// Uploads that are being received or wait for their commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// The number of files.
    pub files: u64,
    /// The bytes of these files so far.
    pub bytes: u64,
    /// The most files there may be.
    pub max_files: u64,
    /// The most bytes there may be.
    pub max_bytes: u64,
}

impl Unfinished {
    pub(crate) fn new(files: u64, bytes: u64, max_files: u64, max_bytes: u64) -> Self {
        Self { files, bytes, max_files, max_bytes }
    }
}

/// A provider with its present state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderStatus {
    /// The provider.
    pub info: ProviderInfo,
    /// True if the provider is in the configuration; `LOCAL` is always.
    pub is_configured: bool,
    /// How the provider answers; `None` for `LOCAL`, and for one that is gone from the configuration.
    pub health: Option<ProviderHealth>,
    /// The work that waits for the provider.
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

    /// Returns the state of the worse of the provider's breakers; `None` where there is none.
    pub fn state(&self) -> Option<BreakerState> {
        self.health.as_ref().map(|health| health.worst().state)
    }

    /// Returns the age that the oldest waiting work has at `now`.
    pub fn oldest_age(&self, now: Timestamp) -> Option<Duration> {
        let millis = now.as_millis().saturating_sub(self.backlog.oldest()?.as_millis());
        Some(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
    }
}

/// Something that is not well, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advice {
    /// The part that is not well: `database`, `disk`, `sync`, the code of a provider.
    pub about: String,
    /// The problem of that part.
    pub problem: String,
    /// The next step to take.
    pub next: String,
}

impl Advice {
    fn new(about: &str, problem: impl Into<String>, next: impl Into<String>) -> Self {
        Self { about: about.to_owned(), problem: problem.into(), next: next.into() }
    }
}

impl Overview {
    /// Lists what is not well, the gravest first, with what to do about each.
    pub fn advice(&self) -> Vec<Advice> {
        let mut all = Vec::new();
        all.extend(self.database_fault.as_ref().map(|fault| {
            let next =
                "look at the log, and restart the server: it reads the database from the disk anew";
            Advice::new("database", fault, next)
        }));
        all.extend(self.storage_advice());
        all.extend(self.damage_advice());
        all.extend(self.checks_advice());
        all.extend(self.unfinished_advice());
        all.extend(self.providers.iter().filter_map(|provider| self.provider_advice(provider)));
        all.extend(self.sync_advice());
        all
    }

    fn storage_advice(&self) -> Option<Advice> {
        if let Some(disk) = self.disk.filter(|disk| !disk.takes_uploads) {
            let problem = format!("full: {} bytes free, uploads are refused", disk.free_bytes);
            let next =
                "make room on the disk of the data directory; deleting files works, and purges";
            return Some(Advice::new("disk", problem, next));
        }
        if let Some(fault) = &self.storage_fault {
            let next =
                "look at the log and at the disk of the data directory: mounted, writable, sound?";
            return Some(Advice::new("storage", fault, next));
        }

        let disk = self.disk.filter(|disk| disk.free_bytes < LITTLE_BYTES)?;
        let problem = format!("less than 1 GiB free: {} bytes", disk.free_bytes);
        Some(Advice::new("disk", problem, "make room before uploads are refused"))
    }

    fn damage_advice(&self) -> Option<Advice> {
        let Damage { damaged_rows, rows, missing_blobs } = &self.damage;
        if *damaged_rows > 0 {
            let first =
                rows.first().map_or(String::new(), |row| format!(", first of them {}", row.row));
            let problem =
                format!("rows that cannot be read, and are passed over: {damaged_rows}{first}");
            let next =
                "the log names each with the reason; restore them from a backup of the database";
            return Some(Advice::new("records", problem, next));
        }

        (*missing_blobs > 0).then(|| {
            let problem = format!("files without their bytes on the disk: {missing_blobs}");
            let next =
                "the log names each; look if the disk of the data directory is the right one";
            Advice::new("blobs", problem, next)
        })
    }

    fn checks_advice(&self) -> Option<Advice> {
        let last = [&self.checks.last, &self.checks.scrub].into_iter().flatten();
        let ended = last.filter(|check| check.ended_at.is_some());
        let newest = ended.max_by_key(|check| check.ended_at)?;
        let left = newest.found.saturating_sub(newest.repaired);

        (left > 0).then(|| {
            let problem = format!(
                "the last check of the store has found what is not as it should be: {left}"
            );
            Advice::new("checks", problem, "`filestore fsck` shows each, and says what can be done")
        })
    }

    fn unfinished_advice(&self) -> Option<Advice> {
        let Unfinished { files, bytes, max_files, max_bytes } = self.unfinished;
        let is_near = files > max_files / 10 * 9 || bytes > max_bytes / 10 * 9;
        is_near.then(|| {
            let problem = format!("nearly as many unfinished as there may be: {files} files, {bytes} bytes");
            let next = "see below which provider does not answer; limits.staged_files and limits.staged_bytes bound them";
            Advice::new("uploads", problem, next)
        })
    }

    fn provider_advice(&self, provider: &ProviderStatus) -> Option<Advice> {
        let code = provider.info.code.as_str();
        let waiting = provider.backlog.is_empty().then_some("");
        let waiting = waiting.unwrap_or("; what waits goes on by itself when it answers");

        if !provider.is_configured {
            let next = "put it back into the configuration, or move its files with `filestore migrate run`";
            return Some(Advice::new(
                code,
                "gone from the configuration, and work waits for it",
                next,
            ));
        }
        if let Some(health) = provider.health.as_ref().filter(|health| !health.is_good()) {
            let worst = health.worst();
            let error = worst.last_error.as_ref().map_or("", |fault| &fault.text);
            let is_read = health.reads.state == BreakerState::Closed;
            let what = if is_read { "gets no writes" } else { "does not answer" };
            let problem = format!("{what} since {}: {error}", worst.since);
            let next = format!("`filestore provider check {code}` says what fails{waiting}");
            return Some(Advice::new(code, problem, next));
        }
        if !provider.info.is_active && provider.backlog.sync.count > 0 {
            let next =
                "activate it in the configuration, or bind the organizations to another provider";
            return Some(Advice::new(code, "inactive, and files wait to be copied to it", next));
        }

        let age = provider.oldest_age(self.at).filter(|age| *age > LONG)?;
        let problem =
            format!("answers, but work waits for it since {} minutes", age.as_secs() / 60);
        Some(Advice::new(code, problem, "look at the log for what fails, file by file"))
    }

    fn sync_advice(&self) -> Option<Advice> {
        let failed = self.sync.failed;
        (failed > 0).then(|| {
            let problem =
                format!("given up for files, which are served from where they are: {failed}");
            Advice::new("sync", problem, "when the provider is sound: `filestore sync retry`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::backlog::Waiting;
    use crate::domain::damage::DamagedRow;
    use crate::domain::fsck::FsckSummary;
    use crate::domain::provider::ProviderCode;
    use crate::domain::provider_health::{BreakerHealth, ProviderFault};
    use crate::domain::status::Location;

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
            providers: vec![provider("eu")],
            sync: SyncStatusReport::default(),
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
        let cases: [(&str, &str, Change); 10] = [
            ("database", "restart", |all| all.database_fault = Some("locked".to_owned())),
            ("storage", "mounted", |all| all.storage_fault = Some("no space".to_owned())),
            ("disk", "make room", |all| all.disk.as_mut().unwrap().takes_uploads = false),
            ("disk", "make room", |all| all.disk = Some(DiskSpace::new(1 << 20, 100 << 30, 1))),
            ("checks", "filestore fsck", |all| {
                all.checks.scrub = Some(FsckSummary {
                    depth: crate::domain::fsck::FsckDepth::Deep,
                    started_at: Timestamp::from_millis(1),
                    ended_at: Some(Timestamp::from_millis(2)),
                    checked_files: 9,
                    checked_bytes: 9,
                    found: 3,
                    repaired: 1,
                    postponed: Vec::new(),
                });
            }),
            ("uploads", "limits.staged", |all| all.unfinished.files = 95),
            ("eu", "filestore provider check eu", |all| {
                all.providers[0].health.as_mut().unwrap().writes = breaker(BreakerState::Open);
            }),
            ("eu", "put it back", |all| all.providers[0].is_configured = false),
            ("eu", "look at the log", |all| {
                all.providers[0].backlog.purge =
                    Waiting { count: 1, oldest: Some(Timestamp::from_millis(0)) };
            }),
            ("sync", "filestore sync retry", |all| all.sync.failed = 2),
        ];

        for (about, next, change) in cases {
            let advice = advised(change);
            assert_eq!(advice.len(), 1, "{advice:?}");
            assert_eq!(advice[0].about, about);
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
