//! A kill at every step of the protocol, in every kind of work, recovery included.
//!
//! A scenario runs once to its end, and tells the steps that it came to; then again and again, on a copy
//! of the same directory, killed at one step after the other. After each kill the store is opened and
//! compared with what was acknowledged; a second opening must find nothing to do. A step that no
//! scenario comes to fails the run, so that a new one cannot go without a kill.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use clap::Args;
use filestore_core::internals::tasks::step::Step;
use filestore_core::receipts::DeletedBy;
use filestore_core::{FileId, FileRecord, FileStore, Result, Scope};
use filestore_workspace::directory_in_memory;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::backups;
use crate::child::{Deadline, configuration};
use crate::content;
use crate::erasures;
use crate::events;
use crate::oracle::{Oracle, Presence, State};
use crate::scenario::{self, Scenario};
use crate::serve::Sabotage;
use crate::settle::{self, all_records};
use crate::tally::{Kind, Tally};
use crate::verify::{Findings, files_below};

#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Kill at each step that a scenario comes to, however often, rather than at its first and last
    /// time
    #[arg(long)]
    all: bool,

    /// Append the counts to a file, for `sum`
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// The kill of one scenario at one step.
#[derive(Debug, Clone)]
struct Case {
    scenario: Scenario,
    /// The step, and how many times it is passed before.
    step: String,
}

/// Kills at every step and prints the table.
pub(crate) async fn run(options: Options) -> ExitCode {
    let bases = Arc::new(Bases::lay());
    let cases = bases.cases(options.all);
    let (next, killed) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(BTreeSet::new())));
    let total = Arc::new(Mutex::new(Tally::default()));
    let cases = Arc::new(cases);

    let workers = (0..std::thread::available_parallelism().map_or(1, usize::from)).map(|_| {
        let (bases, cases, next) = (Arc::clone(&bases), Arc::clone(&cases), Arc::clone(&next));
        let (total, killed) = (Arc::clone(&total), Arc::clone(&killed));
        tokio::spawn(async move {
            while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut tally = Tally::default();
                let step = bases.kill(case, &mut tally).await;
                killed.lock().expect("nobody panics").extend(step);
                total.lock().expect("nobody panics").merge(&tally);
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.expect("a comparison does not panic");
    }

    let mut tally = total.lock().expect("nobody panics").clone();
    let killed = killed.lock().expect("nobody panics");
    let missed: Vec<_> =
        Step::ALL.iter().map(|step| step.name()).filter(|name| !killed.contains(*name)).collect();
    tally.add("steps listed", Step::ALL.len() as u64);
    tally.add("steps killed at", killed.len() as u64);
    if !missed.is_empty() {
        eprintln!("no scenario was killed at {missed:?}");
        return ExitCode::FAILURE;
    }
    if let Some(report) = &options.report {
        tally.append_to(report);
    }
    tally.conclude()
}

/// The directories that scenarios begin with.
pub(crate) struct Bases {
    dir: TempDir,
}

impl Bases {
    /// Makes an empty base, one with files, and one that a killed process left.
    pub(crate) fn lay() -> Self {
        let bases = Self { dir: directory_in_memory() };
        for name in ["empty", "full", "left"] {
            fs::create_dir(bases.dir.path().join(name)).expect("a directory can be made");
        }

        let full = bases.dir.path().join("full");
        fs::write(full.join("oracle.log"), "").expect("a log can be made");
        let status = live(&full, Scenario::Base, &Sabotage::default());
        assert!(status.success(), "the base was not laid: {status}");

        copy(&full, &bases.dir.path().join("left"));
        make_own(&bases.dir.path().join("left"));
        bases.leave_something();
        bases
    }

    /// Kills lives at moments that leave recovery something of each kind: a staged file with a record
    /// and one without, an object that no record refers to, a leased purge.
    fn leave_something(&self) {
        let left = self.dir.path().join("left");
        for (scenario, step) in [
            (Scenario::Through, Step::ObjectPut),
            (Scenario::Delete, Step::PurgeClaimed),
            (Scenario::Upload, Step::StagedFileSynced),
        ] {
            let kill_at = Some(format!("{}:0", step.name()));
            let status = live(&left, scenario, &Sabotage { kill_at, ..Sabotage::default() });
            assert!(status.signal().is_some(), "{scenario:?} was not killed: {status}");
        }

        // A staged file with a record: as after a commit whose rename did not come.
        let blobs = left.join("data/blobs");
        let key = files_below(&blobs).into_iter().next_back().expect("the base has blobs");
        let id = key.rsplit('/').next().expect("a key has parts");
        fs::rename(blobs.join(&key), left.join("data/staging").join(id)).expect("a rename");
    }

    /// Returns the names of the steps that a scenario comes to when nothing stops it, begun on a copy
    /// of `base`.
    fn steps_of(&self, scenario: Scenario, base: &Path) -> Vec<String> {
        let home = self.home_like(base);
        let log = home.path().join("steps");
        let sabotage = Sabotage { step_log: Some(log.clone()), ..Sabotage::default() };
        let status = live(home.path(), scenario, &sabotage);
        assert!(status.success(), "{scenario:?}: {status}");
        fs::read_to_string(log).expect("steps were logged").lines().map(str::to_owned).collect()
    }

    fn cases(&self, all: bool) -> Vec<Case> {
        let mut cases = Vec::new();
        for scenario in Scenario::ALL {
            let names = self.steps_of(scenario, &self.base_of(scenario));
            for (at, name) in names.iter().enumerate() {
                let passed = names[..at].iter().filter(|other| *other == name).count();
                let is_last = !names[at + 1..].contains(name);
                if all || passed == 0 || is_last {
                    cases.push(Case { scenario, step: format!("{name}:{passed}") });
                }
            }
        }
        cases
    }

    pub(crate) fn base_of(&self, scenario: Scenario) -> PathBuf {
        self.dir.path().join(match scenario {
            Scenario::Fresh => "empty",
            Scenario::Start => "left",
            _ => "full",
        })
    }

    /// Makes a home with the files of `base`.
    pub(crate) fn home_like(&self, base: &Path) -> TempDir {
        let home = TempDir::new_in(self.dir.path()).expect("a temporary directory");
        copy(base, home.path());
        make_own(home.path());
        home
    }

    /// Kills at a step and compares; returns the step's name, or nothing if the life came to its end
    /// before.
    async fn kill(&self, case: &Case, tally: &mut Tally) -> Option<String> {
        let home = self.home_like(&self.base_of(case.scenario));
        let sabotage = Sabotage { kill_at: Some(case.step.clone()), ..Sabotage::default() };
        let status = live(home.path(), case.scenario, &sabotage);
        if status.signal() != Some(Signal::KILL.as_raw()) {
            return None;
        }
        let name = case.step.split(':').next().expect("a step has a name").to_owned();

        let mut findings = Findings::default();
        if case.scenario == Scenario::Erase {
            // In a home of its own: an erasure that was killed and is not started again must leave a sound store.
            let other = self.home_like(home.path());
            findings.add(erasures::check(other.path()).await);
        }
        findings.add(compare(home.path()).await);
        if case.scenario == Scenario::Backup {
            findings.add(backups::check(home.path()).await);
        }
        tally.add("kills", 1);
        note(&format!("{case:?}, after {name}"), &findings, tally);
        Some(name)
    }
}

/// Gives a copied home a configuration that names its own attic.
fn make_own(home: &Path) {
    // The empty base has none.
    let _ = fs::remove_file(home.join("filestore.toml"));
    configuration(home);
}

/// Counts findings, and says where they were made.
pub(crate) fn note(at: &str, findings: &Findings, tally: &mut Tally) {
    tally.add("facts compared", findings.facts);
    tally.add("receipts compared", findings.receipts);
    for violation in &findings.violations {
        eprintln!("{at}:");
        tally.note(0, violation);
    }
}

/// Runs a scenario in a process of its own.
pub(crate) fn live(home: &Path, scenario: Scenario, sabotage: &Sabotage) -> ExitStatus {
    let mut process = Command::new(std::env::current_exe().expect("a running program has a path"))
        .args(["life", "--scenario", &scenario.name(), "--home"])
        .arg(home)
        .args(sabotage.arguments())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let _deadline = Deadline::of(&process);
    process.wait().expect("a child can be awaited")
}

/// Opens the store of `home`, compares it with what was acknowledged, and opens it again: then there
/// must be nothing to do.
pub(crate) async fn compare(home: &Path) -> Findings {
    let mut findings = Findings::default();
    if let Err(error) = compare_opened(home, &mut findings).await {
        findings.expect(false, Kind::Broken, || error.chain());
        return findings;
    }

    findings.add(settle::check(home, &DeletedBy::Library).await);
    findings
}

async fn compare_opened(home: &Path, findings: &mut Findings) -> Result<()> {
    let expected = Oracle::open(home.join("oracle.log")).replay();
    let store = scenario::open(home).await?;
    let records = all_records(&store).await?;
    for record in &records {
        let read = store.scoped(&Scope::All).read(record.file_id).await;
        let tag = read.as_ref().ok().and_then(|bytes| content::identify(bytes));
        findings.expect(tag.is_some(), Kind::NoBytes, || format!("{record:?}: {read:?}"));
        compare_known(record, tag, &expected, findings);
    }
    for (id, file) in &expected.files {
        let is_there = records.iter().any(|record| record.file_id.to_string() == *id);
        let holds = is_there || file.presence != Presence::There;
        findings.expect(holds, Kind::Lost, || format!("{id}: {file:?}"));
        let id: FileId = id.parse()?;
        let is_readable = store.scoped(&Scope::All).read(id).await.is_ok();
        findings.expect(is_readable == is_there, Kind::Undeleted, || id.to_string());
    }
    compare_batches(&records, &expected, findings);
    compare_told(&store, &expected, findings).await;
    store.close().await;
    drop(store);
    events::check(&home.join("data"), findings);

    let before = fingerprint(home);
    let store = scenario::open(home).await?;
    store.close().await;
    drop(store);
    let after = fingerprint(home);
    findings.expect(before == after, Kind::Broken, || {
        format!("a second start found something to do: {before:#?} became {after:#?}")
    });
    Ok(())
}

fn compare_known(
    record: &FileRecord,
    tag: Option<content::Tag>,
    expected: &State,
    findings: &mut Findings,
) {
    let Some(file) = expected.files.get(&record.file_id.to_string()) else { return };
    let holds = tag.is_none_or(|tag| file.tags.contains(&tag));
    findings.expect(holds, Kind::Lost, || format!("{record:?} holds {tag:?}, not {file:?}"));
    let is_back = file.presence == Presence::Gone;
    findings.expect(!is_back, Kind::Undeleted, || format!("{record:?}"));
    let is_temp = record.expires_at.is_some();
    findings.expect(!(file.is_promoted && is_temp), Kind::Lost, || format!("{record:?}"));
}

fn compare_batches(records: &[FileRecord], expected: &State, findings: &mut Findings) {
    for (batch, items) in &expected.batches {
        let name = format!("batch-{batch}");
        let there = records.iter().filter(|record| record.original_name == name).count();
        let acknowledged = expected.acknowledged_batches.contains(batch);
        let holds = there == *items || (there == 0 && !acknowledged);
        findings.expect(holds, Kind::PartialBatch, || format!("{name}: {there} of {items}"));
    }
}

/// Expects that no resumable upload is behind an offset that was told.
async fn compare_told(store: &FileStore, expected: &State, findings: &mut Findings) {
    for (upload, told) in &expected.told {
        let address = upload.parse().expect("an address was logged");
        let found = store.resumable().status(&address, &Scope::All).await;
        let holds = found.as_ref().is_ok_and(|found| found.offset >= *told);
        findings.expect(holds, Kind::Lost, || format!("{upload} was at {told}, not at {found:?}"));
    }
}

/// Describes what a store has on the disk and in its database.
fn fingerprint(home: &Path) -> (BTreeSet<String>, Vec<String>) {
    let data = home.join("data");
    let mut files = files_below(&data);
    files.retain(|name| !name.starts_with("metadata.") && !name.starts_with("variants"));

    let database = rusqlite::Connection::open(data.join("metadata.sqlite3")).expect("a database");
    let mut rows = Vec::new();
    for table in ["files", "blob_gc", "write_intents", "resumable_uploads", "events"] {
        let sql = format!("SELECT * FROM {table} ORDER BY 1");
        let mut statement = database.prepare(&sql).expect("the table is there");
        let columns = statement.column_count();
        let found = statement.query_map((), |row| {
            let cells = (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at));
            Ok(format!("{table}: {:?}", cells.collect::<rusqlite::Result<Vec<_>>>()?))
        });
        rows.extend(found.expect("rows can be read").map(|row| row.expect("a row")));
    }
    (files, rows)
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            fs::create_dir_all(&target).expect("a directory can be made");
            copy(&entry.path(), &target);
        } else if entry.file_type().expect("a type").is_file() {
            fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}
