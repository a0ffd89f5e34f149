//! The register of running checks. Each server runs one check at a time. If there are several servers, only
//! one runs the requested check, and only one runs the scrub (`under_way`).
//!
//! # Locking
//! `turn` is held for a whole check, and `running` for a few instructions. A requested check stops the scrub,
//! and waits for `turn`. The scrub can resume later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use super::background::Background;
use super::under_way::{Entered, Entry, ShownToOthers};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::report::fsck::FsckRunning;
use crate::metadata::CheckName;

/// The names of the entries for the requested check and for the scrub.
const ASKED: &str = "check";
const SCRUB: &str = "scrub";

/// The checks of a store. All clones are the same register.
#[derive(Clone, Default)]
pub(crate) struct Checks(Arc<Register>);

#[derive(Default)]
struct Register {
    turn: Arc<tokio::sync::Mutex<()>>,
    running: Mutex<Option<Arc<CheckProgress>>>,
    /// True while a requested check runs, or waits to run.
    is_asked: AtomicBool,
}

/// The state of a running check, shared with its observers.
pub(crate) struct CheckProgress {
    name: CheckName,
    part: Mutex<String>,
    files: AtomicU64,
    bytes: AtomicU64,
    names: AtomicU64,
    found: AtomicU64,
    is_told_to_stop: AtomicBool,
}

/// The entry of a check in the register. Dropping it removes the check.
pub(crate) struct RegisteredCheck {
    register: Arc<Register>,
    progress: Arc<CheckProgress>,
    entry: Option<Entry>,
    _wish: Option<Wish>,
    _turn: OwnedMutexGuard<()>,
}

/// The right to run a requested check. Dropping it allows the next request.
struct Wish(Arc<Register>);

impl Drop for Wish {
    fn drop(&mut self) {
        self.0.is_asked.store(false, Ordering::Release);
    }
}

impl Checks {
    /// Registers a requested check, and tells a running scrub to stop. `Conflict` while another requested
    /// check runs.
    async fn begin_asked(&self) -> Result<RegisteredCheck> {
        let register = &self.0;
        if register.is_asked.swap(true, Ordering::AcqRel) {
            return Err(Error::new(ErrorKind::Conflict, "a check of the store is under way"));
        }

        let wish = Wish(Arc::clone(register));
        self.stop();
        let turn = Arc::clone(&register.turn).lock_owned().await;
        Ok(self.enter(CheckName::Asked, Some(wish), turn))
    }

    /// Registers a scrub. `None` while another check runs.
    fn begin_scrub(&self) -> Option<RegisteredCheck> {
        if self.0.is_asked.load(Ordering::Acquire) {
            return None;
        }
        let turn = Arc::clone(&self.0.turn).try_lock_owned().ok()?;
        Some(self.enter(CheckName::Scrub, None, turn))
    }

    fn enter(
        &self,
        name: CheckName,
        wish: Option<Wish>,
        turn: OwnedMutexGuard<()>,
    ) -> RegisteredCheck {
        let progress = Arc::new(CheckProgress {
            name,
            part: Mutex::default(),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            names: AtomicU64::new(0),
            found: AtomicU64::new(0),
            is_told_to_stop: AtomicBool::new(false),
        });
        *self.0.running.lock() = Some(Arc::clone(&progress));
        let register = Arc::clone(&self.0);
        RegisteredCheck { register, progress, entry: None, _wish: wish, _turn: turn }
    }

    /// Describes the check that runs on this server, if any.
    pub(crate) fn running(&self) -> Option<FsckRunning> {
        self.0.running.lock().as_ref().map(|progress| progress.describe())
    }

    /// Tells the check on this server to stop. Returns false if no check runs.
    pub(crate) fn stop(&self) -> bool {
        let running = self.0.running.lock();
        let Some(progress) = &*running else { return false };
        progress.stop();
        true
    }
}

impl Background {
    /// Registers a requested check on this server and for all other servers. `Conflict` while another
    /// requested check runs on any server.
    pub(crate) async fn begin_asked_check(&self) -> Result<RegisteredCheck> {
        let mut check = self.checks.begin_asked().await?;
        match self.enter(ASKED.to_owned()).await? {
            Entered::Alone(entry) => check.entry = entry,
            Entered::Elsewhere => {
                let message = "a check of the store is under way on another server";
                return Err(Error::new(ErrorKind::Conflict, message));
            }
        }
        check.show().await?;
        Ok(check)
    }

    /// Registers a scrub. `None` while another check runs here, or while a scrub runs on another server.
    pub(crate) async fn begin_scrub(&self) -> Result<Option<RegisteredCheck>> {
        let Some(mut check) = self.checks.begin_scrub() else { return Ok(None) };
        match self.enter(SCRUB.to_owned()).await? {
            Entered::Alone(entry) => check.entry = entry,
            Entered::Elsewhere => return Ok(None),
        }
        check.show().await?;
        Ok(Some(check))
    }

    /// Describes the check that runs on any server. A requested check has priority over a scrub.
    pub(crate) async fn running_check(&self) -> Result<Option<FsckRunning>> {
        let here = self.checks.running();
        if here.as_ref().is_some_and(|running| !running.is_scrub) {
            return Ok(here);
        }
        let asked = self.check_elsewhere(ASKED).await?;
        if asked.is_some() || here.is_some() {
            return Ok(asked.or(here));
        }
        self.check_elsewhere(SCRUB).await
    }

    async fn check_elsewhere(&self, name: &str) -> Result<Option<FsckRunning>> {
        let Some(servers) = self.metadata.servers() else { return Ok(None) };
        let shown = servers.shown(name).await?;
        let shown = shown.into_iter().find(|work| work.name == name);
        Ok(shown.and_then(|work| read(&work.shown, name == SCRUB)))
    }

    /// Tells all checks on any server to stop. Returns false if no check runs.
    pub(crate) async fn stop_checks(&self) -> Result<bool> {
        let here = self.checks.stop();
        let Some(servers) = self.metadata.servers() else { return Ok(here) };
        let asked = servers.tell_to_stop(ASKED).await?;
        let scrub = servers.tell_to_stop(SCRUB).await?;
        Ok(here || asked || scrub)
    }
}

/// Parses the text of [`CheckProgress`]. Later versions can append further values.
fn read(shown: &str, is_scrub: bool) -> Option<FsckRunning> {
    let mut words = shown.split(' ');
    Some(FsckRunning {
        is_scrub,
        part: words.next()?.to_owned(),
        checked_files: words.next()?.parse().ok()?,
        checked_bytes: words.next()?.parse().ok()?,
        checked_names: words.next()?.parse().ok()?,
        found: words.next()?.parse().ok()?,
    })
}

impl CheckProgress {
    fn describe(&self) -> FsckRunning {
        FsckRunning {
            is_scrub: self.name == CheckName::Scrub,
            part: self.part.lock().clone(),
            checked_files: self.files.load(Ordering::Relaxed),
            checked_bytes: self.bytes.load(Ordering::Relaxed),
            checked_names: self.names.load(Ordering::Relaxed),
            found: self.found.load(Ordering::Relaxed),
        }
    }

    /// Updates the check's progress.
    pub(crate) fn show(&self, part: &str, files: u64, names: u64, found: u64) {
        part.clone_into(&mut self.part.lock());
        self.files.store(files, Ordering::Relaxed);
        self.names.store(names, Ordering::Relaxed);
        self.found.store(found, Ordering::Relaxed);
    }

    /// Adds to the number of bytes read.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the number of bytes read.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns true if the check must stop.
    pub(crate) fn is_told_to_stop(&self) -> bool {
        self.is_told_to_stop.load(Ordering::Relaxed)
    }
}

impl ShownToOthers for CheckProgress {
    fn shown(&self) -> String {
        let FsckRunning { is_scrub: _, part, checked_files, checked_bytes, checked_names, found } =
            self.describe();
        format!("{part} {checked_files} {checked_bytes} {checked_names} {found}")
    }

    fn stop(&self) {
        self.is_told_to_stop.store(true, Ordering::Relaxed);
    }
}

impl RegisteredCheck {
    async fn show(&mut self) -> Result<()> {
        let Some(entry) = &mut self.entry else { return Ok(()) };
        let progress = Arc::clone(&self.progress);
        entry.show(progress).await
    }

    /// Removes the check, also for other servers, before it returns.
    pub(crate) async fn finish(mut self) {
        if let Some(entry) = self.entry.take() {
            entry.finish().await;
        }
    }

    /// Returns the state for observers.
    pub(crate) fn progress(&self) -> &CheckProgress {
        &self.progress
    }
}

impl Drop for RegisteredCheck {
    fn drop(&mut self) {
        *self.register.running.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_check_runs_and_the_scrub_makes_way() {
        let checks = Checks::default();
        let scrub = checks.begin_scrub().unwrap();
        assert!(checks.begin_scrub().is_none());
        assert!(checks.running().unwrap().is_scrub);

        let (waiting, checking) = (checks.clone(), checks.clone());
        let asked = tokio::spawn(async move { waiting.begin_asked().await });
        while !scrub.progress().is_told_to_stop() {
            tokio::task::yield_now().await;
        }
        drop(scrub);

        let asked = asked.await.unwrap().unwrap();
        let refused = checking.begin_asked().await.err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::Conflict));
        assert!(checks.begin_scrub().is_none());

        drop(asked);
        assert!(checks.running().is_none() && checks.begin_scrub().is_some());
    }

    #[tokio::test]
    async fn a_check_that_is_given_up_before_its_turn_lets_the_next_one_in() {
        let checks = Checks::default();
        let scrub = checks.begin_scrub().unwrap();
        let waiting = checks.clone();
        let given_up = tokio::spawn(async move { waiting.begin_asked().await.map(drop) });
        while !scrub.progress().is_told_to_stop() {
            tokio::task::yield_now().await;
        }
        given_up.abort();
        assert!(given_up.await.is_err());
        drop(scrub);
        checks.begin_asked().await.unwrap();
    }
}
