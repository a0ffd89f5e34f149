//! A store as a state machine: steps in any order, crashes, full disks, leaping clocks and erasures among
//! them, beside a model of a few lines that says what must be there. A sequence that fails is shrunk.

mod uploads;

use std::collections::BTreeMap;
use std::time::Duration;

use filestore_core::admin::{NoProgress, PurgeOptions, PurgeWhen};
use filestore_core::internals::tasks::simulation::Simulation;
use filestore_core::uploads::GivenName;
use filestore_core::{
    ErrorKind, FileId, FileStore, ListRequest, ManualClock, NewBatch, NewUpload, OrganizationId,
    Result, Scope, StoreConfig, Timestamp,
};
use filestore_workspace::directory_in_memory;
use proptest::prelude::*;
use tempfile::TempDir;
use tokio::time::sleep;

use super::check::{all_records, files_below};
use super::content::Content;
use super::events;
use super::world::{copy, runtime};

use self::uploads::Resumed;

const TEMP_TTL: Duration = Duration::from_hours(1);
const PURGE_GRACE: Duration = Duration::from_mins(10);
const SETTLE: Duration = Duration::from_hours(1);

/// The simulated pause before a locked directory is asked for again.
const PAUSE: Duration = Duration::from_millis(10);

/// The difference between the clocks that the store takes for a leap.
const LEAP: i64 = 2 * 60 * 1000;

const BEGIN: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// The organization that can be erased, and the one of every third file, which is spared.
const ORGANIZATIONS: [&str; 2] = ["acme", "spared"];

/// A step; numbers choose a file among those that were made.
#[derive(Debug, Clone)]
enum Step {
    Upload,
    UploadTemp,
    Batch(u8),
    Replace(u8),
    MakeReady(u8),
    Delete(u8),
    Restore(u8),
    Read(u8),
    Purge,
    /// A run that does not wait for the end of a grace period.
    PurgeNow,
    /// Lets minutes pass.
    Wait(u8),
    /// Sets the wall clock by minutes, forward or back.
    ClockJump(i16),
    /// Erases the organization of most files.
    Erase,
    UploadBegin,
    /// Sends so many of the missing bytes, of 255.
    UploadGoOn(u8, u8),
    UploadAsk(u8),
    UploadCancel(u8),
    Restart,
    /// The process ends between two instructions.
    Crash,
    /// The process starts again on a disk with no room, or with some.
    DiskFull(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Upload),
        2 => Just(Step::UploadTemp),
        2 => (1..4_u8).prop_map(Step::Batch),
        3 => any::<u8>().prop_map(Step::Replace),
        2 => any::<u8>().prop_map(Step::MakeReady),
        4 => any::<u8>().prop_map(Step::Delete),
        3 => any::<u8>().prop_map(Step::Restore),
        3 => any::<u8>().prop_map(Step::Read),
        4 => Just(Step::Purge),
        1 => Just(Step::PurgeNow),
        3 => (1..40_u8).prop_map(Step::Wait),
        1 => (-300..300_i16).prop_map(Step::ClockJump),
        1 => Just(Step::Erase),
        2 => Just(Step::UploadBegin),
        4 => (any::<u8>(), any::<u8>()).prop_map(|(at, part)| Step::UploadGoOn(at, part)),
        1 => any::<u8>().prop_map(Step::UploadAsk),
        1 => any::<u8>().prop_map(Step::UploadCancel),
        1 => Just(Step::Restart),
        3 => Just(Step::Crash),
        1 => any::<bool>().prop_map(Step::DiskFull),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Readable; a TEMP file until a time.
    Live(Content, Option<i64>),
    /// Deleted at a time.
    Deleted(Content, i64),
    /// Deleted by an erasure that could not purge yet. Nobody can restore it.
    Erased,
    Gone,
}

struct Machine {
    dir: TempDir,
    store: Option<FileStore>,
    clock: ManualClock,
    wall: i64,
    passed: i64,
    /// The difference of the clocks when the store was opened.
    trusted: i64,
    /// The passed time at the first leap since then.
    leapt_at: Option<i64>,
    is_full: bool,
    files: BTreeMap<FileId, State>,
    made: Vec<FileId>,
    spared: Vec<FileId>,
    uploads: Vec<Resumed>,
    contents: u64,
}

impl Machine {
    async fn new() -> Self {
        let mut machine = Self {
            dir: directory_in_memory(),
            store: None,
            clock: ManualClock::at(BEGIN),
            wall: BEGIN.as_millis(),
            passed: 0,
            trusted: 0,
            leapt_at: None,
            is_full: false,
            files: BTreeMap::new(),
            made: Vec::new(),
            spared: Vec::new(),
            uploads: Vec::new(),
            contents: 0,
        };
        machine.open().await;
        machine
    }

    async fn open(&mut self) {
        let mut config = StoreConfig::default();
        (config.temp_ttl, config.purge_grace) = (TEMP_TTL, PURGE_GRACE);
        (config.clock_settle, config.blob_grace) = (SETTLE, Duration::ZERO);
        config.reserve_bytes = if self.is_full { 1 << 60 } else { 4096 };
        config.variants.threads = 1;
        config.variants.disk_cache_bytes = 0;

        let path = self.dir.path().join("data");
        let store = loop {
            let builder = FileStore::builder(&path).config(config.clone());
            match builder.clock(self.clock.clock()).open().await {
                // What the last opening began holds the directory until it is done.
                Err(error) if error.kind() == ErrorKind::Locked => sleep(PAUSE).await,
                outcome => break outcome.unwrap(),
            }
        };
        self.store = Some(store);
        (self.trusted, self.leapt_at) = (self.wall - self.passed, None);
    }

    fn store(&self) -> &FileStore {
        self.store.as_ref().expect("open between two steps")
    }

    async fn stop(&mut self) {
        self.store().close().await;
        self.store = None;
    }

    async fn run(&mut self, step: &Step) {
        match *step {
            Step::Upload => self.upload(None).await,
            Step::UploadTemp => self.upload(Some(TEMP_TTL)).await,
            Step::Batch(items) => self.batch(items).await,
            Step::Wait(minutes) => self.wait(i64::from(minutes)),
            Step::ClockJump(minutes) => self.jump(i64::from(minutes)),
            Step::Purge => self.purge(PurgeWhen::Due).await,
            Step::PurgeNow => self.purge(PurgeWhen::Now).await,
            Step::Erase => self.erase().await,
            Step::UploadBegin => self.begin_upload().await,
            Step::UploadGoOn(at, part) => self.go_on(at, part).await,
            Step::UploadAsk(at) => self.ask(at).await,
            Step::UploadCancel(at) => self.cancel(at).await,
            Step::Restart => {
                self.stop().await;
                self.open().await;
            }
            Step::DiskFull(is_full) => {
                self.stop().await;
                self.is_full = is_full;
                self.open().await;
            }
            Step::Crash => {
                let left = directory_in_memory();
                copy(self.dir.path(), left.path());
                self.store = None;
                self.dir = left;
                self.open().await;
            }
            Step::Replace(at)
            | Step::MakeReady(at)
            | Step::Delete(at)
            | Step::Restore(at)
            | Step::Read(at) => {
                if !self.made.is_empty() {
                    let id = self.made[usize::from(at) % self.made.len()];
                    self.change(step, id).await;
                }
            }
        }
    }

    fn fresh(&mut self) -> Content {
        self.contents += 1;
        Content(self.contents)
    }

    async fn upload(&mut self, ttl: Option<Duration>) {
        let content = self.fresh();
        let mut new = self.new_upload();
        if ttl.is_some() {
            new = new.temp();
        }
        let uploaded = self.store().upload(new, &content.bytes()[..]).await;
        if let Some(record) = self.unless_full(uploaded) {
            let expires = ttl.map(|_| self.wall + millis(TEMP_TTL));
            self.insert(record.file_id, State::Live(content, expires)).await;
        }
    }

    async fn batch(&mut self, items: u8) {
        let contents: Vec<_> = (0..items).map(|_| self.fresh()).collect();
        let named = contents.iter().map(|content| (GivenName::named("x"), content.bytes()));
        let NewUpload { organization_id, sub_system, .. } = self.new_upload();
        let new = NewBatch::new(organization_id, sub_system);
        let uploaded = self.store().batch(new, named.collect::<Vec<_>>()).await;
        for (record, content) in self.unless_full(uploaded).into_iter().flatten().zip(contents) {
            self.insert(record.file_id, State::Live(content, None)).await;
        }
    }

    /// Describes a new file. Every third file is of the organization that no step erases.
    fn new_upload(&self) -> NewUpload {
        let organization = ORGANIZATIONS[usize::from(self.made.len() % 3 == 2)];
        NewUpload::new(organization.parse().unwrap(), "machine".parse().unwrap())
    }

    async fn insert(&mut self, id: FileId, state: State) {
        let record = self.store().scoped(&Scope::All).info(id).await.unwrap();
        if record.organization_id.as_str() == ORGANIZATIONS[1] {
            self.spared.push(id);
        }
        self.files.insert(id, state);
        self.made.push(id);
    }

    /// Expects success, or the refusal of a full disk.
    fn unless_full<T>(&self, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(done) if !self.is_full => Some(done),
            Err(error) if self.is_full && error.kind() == ErrorKind::StorageFull => None,
            Ok(_) => panic!("stored on a full disk"),
            Err(error) => panic!("{}", error.chain()),
        }
    }

    async fn change(&mut self, step: &Step, id: FileId) {
        let before = self.files[&id];
        let (store, content) = (self.store().clone(), self.fresh());
        let after = match (step, before) {
            (Step::Read(_), State::Live(content, _)) => {
                assert_eq!(store.scoped(&Scope::All).read(id).await.unwrap(), content.bytes());
                before
            }
            (Step::Replace(_), State::Live(_, expires)) => {
                let replaced = store.scoped(&Scope::All).replace(id, &content.bytes()[..]).await;
                let replaced = self.unless_full(replaced);
                replaced.map_or(before, |_| State::Live(content, expires))
            }
            (Step::MakeReady(_), State::Live(content, _)) => {
                store.scoped(&Scope::All).make_ready(id).await.unwrap();
                State::Live(content, None)
            }
            (Step::Delete(_), State::Live(content, _)) => {
                store.scoped(&Scope::All).delete(id).await.unwrap();
                State::Deleted(content, self.wall)
            }
            (Step::Delete(_), State::Deleted(..)) => {
                store.scoped(&Scope::All).delete(id).await.unwrap();
                before
            }
            (Step::Restore(_), State::Live(..) | State::Deleted(..)) => {
                let record = store.scoped(&Scope::All).restore(id).await.unwrap();
                let (State::Live(content, _) | State::Deleted(content, _)) = before else {
                    unreachable!("matched above")
                };
                State::Live(content, record.expires_at.map(Timestamp::as_millis))
            }
            (_, State::Erased) => {
                self.expect_erased(step, id).await;
                before
            }
            (Step::Delete(_) | Step::Restore(_), State::Gone) | (_, _) => {
                let kind = match step {
                    Step::Read(_) => store.scoped(&Scope::All).read(id).await.map(drop),
                    Step::Delete(_) => store.scoped(&Scope::All).delete(id).await.map(drop),
                    Step::Restore(_) => store.scoped(&Scope::All).restore(id).await.map(drop),
                    Step::MakeReady(_) => store.scoped(&Scope::All).make_ready(id).await.map(drop),
                    _ => store.scoped(&Scope::All).replace(id, &b"x"[..]).await.map(drop),
                };
                assert_eq!(kind.unwrap_err().kind(), ErrorKind::NotFound, "{step:?} of {before:?}");
                before
            }
        };
        self.files.insert(id, after);
    }

    fn wait(&mut self, minutes: i64) {
        let millis = minutes * 60_000;
        self.clock.advance(Duration::from_millis(millis.unsigned_abs()));
        (self.wall, self.passed) = (self.wall + millis, self.passed + millis);
    }

    fn jump(&mut self, minutes: i64) {
        self.wall += minutes * 60_000;
        self.clock.set(Timestamp::from_millis(self.wall));
    }

    /// Purges: what is due goes if the clocks agree, nothing goes while they do not, and nothing that is
    /// not due ever does. A run that does not wait takes every deleted file as due.
    async fn purge(&mut self, when: PurgeWhen) {
        let offset = self.wall - self.passed;
        if offset - self.trusted <= LEAP {
            self.leapt_at = None;
            self.trusted = self.trusted.min(offset);
        } else {
            self.leapt_at.get_or_insert(self.passed);
        }
        let mut options = PurgeOptions::default();
        options.when = when;
        self.store().admin().purge_with(&options, &|| false, &NoProgress).await.unwrap();

        for (id, state) in &mut self.files {
            let left = self.store.as_ref().unwrap().scoped(&Scope::All).info(*id).await;
            let is_live = self.store.as_ref().unwrap().scoped(&Scope::All).read(*id).await.is_ok();
            let (is_due, after) = match *state {
                // A run that does not wait purges in one go what it has expired.
                State::Live(content, Some(expires)) => match when {
                    PurgeWhen::Due => (expires <= self.wall, State::Deleted(content, self.wall)),
                    PurgeWhen::Now => (expires <= self.wall, State::Gone),
                },
                State::Erased => (true, State::Gone),
                State::Deleted(_, at) => match when {
                    PurgeWhen::Due => (at <= self.wall - millis(PURGE_GRACE), State::Gone),
                    PurgeWhen::Now => (true, State::Gone),
                },
                other => (false, other),
            };
            let found = match (&left, is_live) {
                (Err(_), _) => State::Gone,
                (Ok(_), false) if matches!(*state, State::Live(..)) => after,
                (Ok(_), _) => *state,
            };
            match self.leapt_at {
                None => assert_eq!(found, if is_due { after } else { *state }, "{id}"),
                Some(at) if self.passed - at < millis(SETTLE) => assert_eq!(found, *state, "{id}"),
                Some(_) => assert!(found == *state || (is_due && found == after), "{id}"),
            }
            *state = found;
        }
    }

    /// Erases an organization: each of its files and uploads is over, and no other is touched.
    async fn erase(&mut self) {
        // So that the store has compared its clocks when the model says so.
        self.purge(PurgeWhen::Due).await;
        let erased = ORGANIZATIONS[0].parse().unwrap();
        let admin = self.store().admin();
        let receipt = admin.erase_organization(&erased, &|| false, &NoProgress).await.unwrap();
        assert!(receipt.is_complete || self.leapt_at.is_some(), "{receipt:?}");

        for (id, state) in &mut self.files {
            if self.spared.contains(id) {
                continue;
            }
            let files = self.store.as_ref().unwrap();
            assert!(
                files.scoped(&Scope::All).read(*id).await.is_err(),
                "{id} outlived its erasure"
            );
            let is_gone = files.scoped(&Scope::All).info(*id).await.is_err();
            assert!(is_gone || !receipt.is_complete, "{id} is left: {receipt:?}");
            *state = if is_gone { State::Gone } else { State::Erased };
        }
        self.end_uploads();
    }

    /// Expects that an erased file is not there for anybody.
    async fn expect_erased(&self, step: &Step, id: FileId) {
        let files = self.store().scoped(&Scope::All);
        let outcome = match step {
            Step::Read(_) => files.read(id).await.map(drop),
            Step::Restore(_) => files.restore(id).await.map(drop),
            Step::MakeReady(_) => files.make_ready(id).await.map(drop),
            Step::Replace(_) => files.replace(id, &b"x"[..]).await.map(drop),
            _ => return,
        };
        assert!(outcome.is_err(), "{step:?} found {id}, which was erased");
    }

    /// Checks everything, a year later: each file as the model has it, no other file, and no other bytes.
    async fn check(&mut self) {
        let records = all_records(self.store(), ListRequest::default()).await;
        let is_erased = |one: &OrganizationId| one.as_str() == ORGANIZATIONS[0];
        events::the_log_tells_every_file(self.store(), &records, is_erased).await;

        self.stop().await;
        self.is_full = false;
        self.jump(365 * 24 * 60);
        self.open().await;
        // What expires at the first is purged at the second.
        for _ in 0..2 {
            self.store().admin().purge(&NoProgress).await.unwrap();
            self.store().admin().upkeep().await.unwrap();
            self.wait(60);
        }

        let mut request = ListRequest::default();
        request.limit = Some(1000);
        let listed = self.store().scoped(&Scope::All).list(&request).await.unwrap().items;
        for record in &listed {
            assert!(self.files.contains_key(&record.file_id), "an unknown file: {record:?}");
        }
        for (id, state) in &self.files {
            let read = self.store().scoped(&Scope::All).read(*id).await;
            match state {
                State::Live(content, None) => assert_eq!(read.unwrap(), content.bytes()),
                State::Live(_, Some(_)) | State::Deleted(..) | State::Erased | State::Gone => {
                    assert!(read.is_err(), "{id} is back: {state:?}");
                }
            }
        }

        let data = self.dir.path().join("data");
        assert!(files_below(&data.join("staging"), "").is_empty(), "left in staging");
        let blobs = files_below(&data.join("blobs"), "");
        let named = listed.iter().map(|record| record.blob.key.as_str().to_owned()).collect();
        assert_eq!(blobs, named, "bytes without a record, or a record without bytes");
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).expect("a short time")
}

/// Runs the steps of one case.
fn run(steps: &[Step]) {
    let _simulation = Simulation::enter(1);
    runtime().block_on(async {
        let mut machine = Machine::new().await;
        for step in steps {
            machine.run(step).await;
        }
        machine.check().await;
        machine.stop().await;
    });
}

/// Runs random sequences; `FILESTORE_MACHINE_CASES` sets their number.
#[test]
fn any_sequence_of_steps_leaves_what_the_model_says() {
    let cases = std::env::var("FILESTORE_MACHINE_CASES");
    let cases = cases.map_or(24, |text| text.parse().expect("a number"));
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };

    proptest!(config, |(steps in prop::collection::vec(step(), 1..=50))| run(&steps));
}
