//! The register of migrations on this server, at most one for each organization. Other servers see a
//! migration through its entry (`under_way`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::background::Background;
use super::under_way::{Entered, Entry, ShownToOthers};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::usage::Stored;
use crate::domain::id::OrganizationId;
use crate::domain::provider::ProviderCode;
use crate::domain::report::MigrateRunning;
use crate::domain::time::clock::Timestamp;

/// The prefix of entry names. The organization follows.
const PREFIX: &str = "migration ";

type Entries = HashMap<OrganizationId, Arc<MigrationProgress>>;

/// The running migrations. All clones are the same register.
#[derive(Clone, Default)]
pub(crate) struct Migrations(Arc<Mutex<Entries>>);

/// The state of a running migration, shared by its run, its copies and its observers.
pub(crate) struct MigrationProgress {
    target: ProviderCode,
    files: AtomicU64,
    bytes: AtomicU64,
    planned: OnceLock<Stored>,
    started_at: Timestamp,
    is_told_to_stop: AtomicBool,
}

/// The entry of a migration in the register. Dropping it removes the migration.
pub(crate) struct RegisteredMigration {
    all: Migrations,
    organization: OrganizationId,
    progress: Arc<MigrationProgress>,
    entry: Option<Entry>,
}

impl Migrations {
    /// Registers a migration of `organization` to `target`. `Conflict` while another migration runs.
    fn begin(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        now: Timestamp,
    ) -> Result<RegisteredMigration> {
        let mut entries = self.0.lock();
        if entries.contains_key(organization) {
            return Err(under_way(organization, ""));
        }

        let progress = Arc::new(MigrationProgress {
            target: target.clone(),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            planned: OnceLock::new(),
            started_at: now,
            is_told_to_stop: AtomicBool::new(false),
        });
        entries.insert(organization.clone(), Arc::clone(&progress));

        let organization = organization.clone();
        Ok(RegisteredMigration { all: self.clone(), organization, progress, entry: None })
    }

    /// Returns the progress of the organization's migration, if the migration runs on this server.
    fn progress(&self, organization: &OrganizationId) -> Option<MigrateRunning> {
        self.0.lock().get(organization).map(|progress| progress.report())
    }

    /// Returns the progress of all migrations on this server.
    fn all(&self) -> Vec<(OrganizationId, MigrateRunning)> {
        self.0.lock().iter().map(|(id, progress)| (id.clone(), progress.report())).collect()
    }

    /// Tells the migration of `organization` to stop. Returns false if none runs on this server.
    fn stop(&self, organization: &OrganizationId) -> bool {
        let entries = self.0.lock();
        let Some(progress) = entries.get(organization) else { return false };
        progress.stop();
        true
    }

    /// Tells all migrations on this server to stop.
    pub(crate) fn stop_all(&self) {
        for progress in self.0.lock().values() {
            progress.stop();
        }
    }
}

impl Background {
    /// Registers a migration, which begins `now`, on this server and for all others. `Conflict` while another
    /// migration runs on any server.
    pub(crate) async fn begin_migration(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        now: Timestamp,
    ) -> Result<RegisteredMigration> {
        let mut registered = self.migrations.begin(organization, target, now)?;
        match self.enter(name_of(organization)).await? {
            Entered::Alone(entry) => registered.entry = entry,
            Entered::Elsewhere => return Err(under_way(organization, " on another server")),
        }
        if let Some(entry) = &mut registered.entry {
            let progress = Arc::clone(&registered.progress);
            entry.show(progress).await?;
        }
        Ok(registered)
    }

    /// Returns the progress of the organization's migration, if the migration runs on any server.
    pub(crate) async fn running_migration(
        &self,
        organization: &OrganizationId,
    ) -> Result<Option<MigrateRunning>> {
        if let Some(here) = self.migrations.progress(organization) {
            return Ok(Some(here));
        }
        let Some(servers) = self.metadata.servers() else { return Ok(None) };
        let name = name_of(organization);
        let shown = servers.shown(&name).await?;
        let shown = shown.into_iter().find(|work| work.name == name);
        Ok(shown.and_then(|work| read(&work.shown)))
    }

    /// Returns the progress of all migrations on any server. While the database does not answer, returns only
    /// the migrations on this server.
    pub(crate) async fn running_migrations(&self) -> Vec<(OrganizationId, MigrateRunning)> {
        let mut all = self.migrations.all();
        let elsewhere = match self.metadata.servers() {
            Some(servers) => servers.shown(PREFIX).await.unwrap_or_default(),
            None => Vec::new(),
        };
        for work in elsewhere {
            let organization = work.name.strip_prefix(PREFIX).and_then(|id| id.parse().ok());
            all.extend(organization.and_then(|id| Some((id, read(&work.shown)?))));
        }
        all.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
        all
    }

    /// Tells the migration of `organization` to stop, on any server. Returns false if none runs.
    pub(crate) async fn stop_migration(&self, organization: &OrganizationId) -> Result<bool> {
        if self.migrations.stop(organization) {
            return Ok(true);
        }
        match self.metadata.servers() {
            Some(servers) => servers.tell_to_stop(&name_of(organization)).await,
            None => Ok(false),
        }
    }
}

/// Returns the name of an entry.
fn name_of(organization: &OrganizationId) -> String {
    format!("{PREFIX}{organization}")
}

/// Parses the text of [`MigrationProgress`]. Later versions can append further values, and older versions write fewer.
fn read(shown: &str) -> Option<MigrateRunning> {
    let mut words = shown.split(' ');
    let to = words.next()?.parse().ok()?;
    let mut number = || words.next()?.parse::<u64>().ok();
    let (files, bytes) = (number()?, number()?);
    let started_at = number().and_then(|millis| i64::try_from(millis).ok());
    let planned = number().zip(number()).map(|(files, bytes)| Stored { files, bytes });
    let started_at = started_at.map(Timestamp::from_millis);
    Some(MigrateRunning { to, files, bytes, planned, started_at })
}

fn under_way(organization: &OrganizationId, place: &str) -> Error {
    let message = format!("a migration of organization {organization} is under way{place}");
    Error::new(ErrorKind::Conflict, message).with_field("organization")
}

impl MigrationProgress {
    /// Returns the target provider.
    pub(crate) fn target(&self) -> &ProviderCode {
        &self.target
    }

    /// Sets the files to move. The first call counts.
    pub(crate) fn plan(&self, files: Stored) {
        let _ = self.planned.set(files);
    }

    /// Counts a moved file of `bytes`.
    pub(crate) fn add(&self, bytes: u64) {
        self.files.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns true if the migration must stop.
    pub(crate) fn is_told_to_stop(&self) -> bool {
        self.is_told_to_stop.load(Ordering::Relaxed)
    }

    fn report(&self) -> MigrateRunning {
        MigrateRunning {
            to: self.target.clone(),
            files: self.files.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            planned: self.planned.get().copied(),
            started_at: Some(self.started_at),
        }
    }
}

impl ShownToOthers for MigrationProgress {
    fn shown(&self) -> String {
        let MigrateRunning { to, files, bytes, planned, .. } = self.report();
        let shown = format!("{to} {files} {bytes} {}", self.started_at.as_millis());
        match planned {
            Some(Stored { files, bytes }) => format!("{shown} {files} {bytes}"),
            None => shown,
        }
    }

    fn stop(&self) {
        self.is_told_to_stop.store(true, Ordering::Relaxed);
    }
}

impl RegisteredMigration {
    /// Removes the migration, also for other servers, before it returns.
    pub(crate) async fn finish(mut self) {
        if let Some(entry) = self.entry.take() {
            entry.finish().await;
        }
    }

    /// Returns the organization, as its files name it.
    pub(crate) fn organization(&self) -> &OrganizationId {
        &self.organization
    }

    /// Returns the shared state of the migration.
    pub(crate) fn progress(&self) -> &Arc<MigrationProgress> {
        &self.progress
    }
}

impl Drop for RegisteredMigration {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.organization);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_servers_read_what_a_migration_shows() {
        let organization = "7".parse().unwrap();
        let started_at = Timestamp::from_millis(1_764_280_800_123);
        let all = Migrations::default();
        let entry = all.begin(&organization, &"eu".parse().unwrap(), started_at).unwrap();
        let progress = entry.progress();
        assert_eq!(read(&progress.shown()), all.progress(&organization), "before the count");

        progress.plan(Stored { files: 9, bytes: 90 });
        progress.add(5);
        let running = read(&progress.shown()).unwrap();
        assert_eq!(Some(&running), all.progress(&organization).as_ref());
        assert_eq!((running.files, running.bytes), (1, 5));
        assert_eq!(running.planned, Some(Stored { files: 9, bytes: 90 }));
        assert_eq!(running.started_at, Some(started_at));

        let older = read("eu 3 30").unwrap();
        assert_eq!((older.files, older.planned, older.started_at), (3, None, None));
        assert_eq!(read("eu 3"), None);
    }
}
