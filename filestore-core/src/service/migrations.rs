//! The register of migrations under way on this server: at most one for an organization. Other servers know of
//! one by its entry (`under_way`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::Inner;
use super::under_way::{Entered, Entry};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::OrganizationId;
use crate::domain::provider::ProviderCode;
use crate::domain::report::MigrateRunning;

type Entries = HashMap<OrganizationId, Arc<MigrationProgress>>;

/// The migrations under way. All clones are the same register.
#[derive(Clone, Default)]
pub(crate) struct Migrations(Arc<Mutex<Entries>>);

/// The state of a migration under way, shared by its run, its copies and its observers.
pub(crate) struct MigrationProgress {
    target: ProviderCode,
    files: AtomicU64,
    bytes: AtomicU64,
    is_told_to_stop: AtomicBool,
}

/// The entry of a migration in the register. Dropping it takes the migration off, however it ends.
pub(crate) struct RegisteredMigration {
    all: Migrations,
    organization: OrganizationId,
    progress: Arc<MigrationProgress>,
    entry: Option<Entry>,
}

impl Migrations {
    /// Enters a migration of `organization` to `target`. `Conflict` while another one is under way.
    fn begin(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
    ) -> Result<RegisteredMigration> {
        let mut entries = self.0.lock();
        if entries.contains_key(organization) {
            return Err(under_way(organization, ""));
        }

        let progress = Arc::new(MigrationProgress {
            target: target.clone(),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            is_told_to_stop: AtomicBool::new(false),
        });
        entries.insert(organization.clone(), Arc::clone(&progress));

        let organization = organization.clone();
        Ok(RegisteredMigration { all: self.clone(), organization, progress, entry: None })
    }

    /// Reports how far the migration of `organization` has come, if one is under way.
    pub(crate) fn progress(&self, organization: &OrganizationId) -> Option<MigrateRunning> {
        self.0.lock().get(organization).map(|progress| progress.report())
    }

    /// Reports on every migration under way.
    pub(crate) fn all(&self) -> Vec<(OrganizationId, MigrateRunning)> {
        let entries = self.0.lock();
        let mut all: Vec<_> =
            entries.iter().map(|(id, progress)| (id.clone(), progress.report())).collect();
        all.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
        all
    }

    /// Tells the migration of `organization` to stop; false if none is under way.
    pub(crate) fn stop(&self, organization: &OrganizationId) -> bool {
        let entries = self.0.lock();
        let Some(progress) = entries.get(organization) else { return false };
        progress.stop();
        true
    }

    /// Tells every migration to stop.
    pub(crate) fn stop_all(&self) {
        for progress in self.0.lock().values() {
            progress.stop();
        }
    }
}

impl Inner {
    /// Enters a migration for this server and all others. `Conflict` while another one is under way on any.
    pub(crate) async fn begin_migration(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
    ) -> Result<RegisteredMigration> {
        let mut registered = self.migrations.begin(organization, target)?;
        match self.enter(format!("migration {organization}")).await? {
            Entered::Alone(entry) => registered.entry = entry,
            Entered::Elsewhere => return Err(under_way(organization, " on another server")),
        }
        Ok(registered)
    }
}

fn under_way(organization: &OrganizationId, place: &str) -> Error {
    let message = format!("a migration of organization {organization} is under way{place}");
    Error::new(ErrorKind::Conflict, message).with_field("organization")
}

impl MigrationProgress {
    /// Returns the provider that the files move to.
    pub(crate) fn target(&self) -> &ProviderCode {
        &self.target
    }

    /// Counts a moved file of `bytes`.
    pub(crate) fn add(&self, bytes: u64) {
        self.files.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns true once the migration was told to stop.
    pub(crate) fn is_told_to_stop(&self) -> bool {
        self.is_told_to_stop.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.is_told_to_stop.store(true, Ordering::Relaxed);
    }

    fn report(&self) -> MigrateRunning {
        MigrateRunning {
            to: self.target.clone(),
            files: self.files.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

impl RegisteredMigration {
    /// Returns the organization as its files name it.
    pub(crate) fn organization(&self) -> &OrganizationId {
        &self.organization
    }

    /// Returns the state that the migration shares.
    pub(crate) fn progress(&self) -> &Arc<MigrationProgress> {
        &self.progress
    }
}

impl Drop for RegisteredMigration {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.organization);
    }
}
