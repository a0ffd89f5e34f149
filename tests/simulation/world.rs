//! A simulated stretch of time: lives of the service, each ended by a kill, and what lasts beyond
//! them.

use std::cell::RefCell;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use filestore_core::admin::NoProgress;
use filestore_core::config::ProviderConfig;
use filestore_core::internals::storage::{SimulatedProviders, Weather};
use filestore_core::internals::tasks::simulation::{self, Simulation};
use filestore_core::{Clock, FileStore, StoreConfig, Timestamp, Workers};
use filestore_workspace::directory_in_memory;
use futures_util::future::join_all;
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use super::check;
use super::client::{self, Client, Own};
use super::erasures::{self, Eraser};
use super::explaining::Explainer;
use super::model::Model;
use super::webhooks::Receiver;

/// Codes of the simulated providers.
pub(crate) const PROVIDERS: [&str; 2] = ["alpha", "beta"];

const CLIENTS: usize = 4;

/// The time for which a resumable upload waits for more bytes.
const UPLOAD_LIFETIME: Duration = Duration::from_mins(12);

/// Begin of every simulation.
const BEGIN: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Sums over simulations.
#[derive(Debug, Default)]
pub(crate) struct Report {
    seeds: u64,
    lives: u64,
    calls: u64,
    refused: u64,
    given_up: u64,
    reads: u64,
    files: u64,
    pub(crate) erased: u64,
    pub(crate) resumed: u64,
    pub(crate) explained: u64,
    pub(crate) delivered: u64,
    events: u64,
    /// The simulated time, that of the calm included.
    simulated: Duration,
    pub(crate) digest: String,
}

impl Report {
    pub(crate) fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.lives += other.lives;
        self.calls += other.calls;
        self.refused += other.refused;
        self.given_up += other.given_up;
        self.reads += other.reads;
        self.files += other.files;
        self.erased += other.erased;
        self.resumed += other.resumed;
        self.explained += other.explained;
        self.delivered += other.delivered;
        self.events += other.events;
        self.simulated += other.simulated;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seeds, lives, calls, refused, given_up, reads, files, events, .. } = self;
        let Self { erased, resumed, explained, delivered, .. } = self;
        let hours = self.simulated.as_secs() / 3600;
        write!(
            f,
            "{seeds} seeds, {hours} hours with the calm after each, {lives} lives of the process, {calls} calls ({refused} refused, \
             {given_up} given up, {reads} reads), {files} files ({resumed} resumed), {erased} erasures, \
             {explained} explanations that came true, {delivered} deliveries, \
             {events} events: 0 violations"
        )
    }
}

/// Damage done at each kill or in each erasure: controls that the simulation notices what it is to notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The kill leaves everything, as kills do.
    None,
    /// The kill takes the newest blob along.
    TakesABlob,
    /// The kill takes along all that was committed since the process began.
    TakesCommits,
    /// The kill lowers the offsets of resumable uploads.
    LowersOffsets,
    /// The kill takes every fifth event along.
    TakesEvents,
    /// The kill takes along the events that a receiver of webhooks has refused.
    TakesDeliveries,
    /// Erasures say that they are complete, and erase nothing.
    SkipsErasures,
}

/// Simulates `span` from `seed`: lives with clients and bad weather, then a calm after which
/// everything must be in its place. Panics with the seed on the first violation.
pub(crate) fn simulate(seed: u64, span: Duration, damage: Damage) -> Report {
    let named = Named(seed);
    let simulation = Simulation::enter(seed);
    if std::env::var_os("FILESTORE_SIMULATION_LOG").is_some() {
        simulation.keep_log();
    }
    let _log = Log(&simulation);

    let mut world = World::new(damage);
    while world.now < BEGIN.plus(span) {
        world.live();
    }
    world.calm();

    let (events, digest) = simulation.digest();
    let simulated = (world.now.as_millis() - BEGIN.as_millis()).unsigned_abs();
    let delivered = world.receiver.accepted();
    let model = world.model.into_inner();
    drop(named);
    Report {
        seeds: 1,
        lives: world.lives,
        calls: model.calls,
        refused: model.refused,
        given_up: model.given_up,
        reads: model.reads,
        files: model.files.len() as u64,
        erased: model.erased,
        resumed: model.resumed,
        explained: model.explained,
        delivered,
        events,
        simulated: Duration::from_millis(simulated),
        digest,
    }
}

/// Prints the seed if the simulation fails.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed {} failed", self.0);
        }
    }
}

/// Prints the events at the end, where they are kept.
struct Log<'a>(&'a Simulation);

impl Drop for Log<'_> {
    fn drop(&mut self) {
        eprint!("{}", self.0.log());
    }
}

/// What lasts beyond a life: the disk, the providers, the clock, and what clients were told.
pub(crate) struct World {
    dir: TempDir,
    pub(crate) providers: SimulatedProviders,
    now: Timestamp,
    pub(crate) lives: u64,
    damage: Damage,
    pub(crate) receiver: Receiver,
    pub(crate) model: RefCell<Model>,
    pub(crate) own: Vec<Own>,
}

impl World {
    fn new(damage: Damage) -> Self {
        Self {
            damage,
            dir: directory_in_memory(),
            providers: SimulatedProviders::enter(),
            now: BEGIN,
            lives: 0,
            receiver: Receiver::new(damage == Damage::TakesDeliveries),
            model: RefCell::default(),
            own: (0..CLIENTS).map(|_| Own::default()).collect(),
        }
    }

    /// Lets the service run with everything going on, and kills it after a while.
    fn live(&mut self) {
        let lasts = Duration::from_secs(30 + simulation::below(40 * 60));
        let runtime = runtime();
        let image = directory_in_memory();
        let before = directory_in_memory();
        copy(self.dir.path(), before.path());

        runtime.block_on(async {
            let clock = Clock::of_runtime(self.now);
            let store = self.open(&clock).await;
            let _workers = Workers::start(&store);
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| Client {
                    number,
                    store: &store,
                    clock: &clock,
                    model: &self.model,
                    own: &self.own[number],
                })
                .collect();

            let eraser = self.eraser(&store, &clock);
            let explainer = Explainer { store: &store, clock: &clock, model: &self.model };

            tokio::select! {
                biased;
                () = sleep(lasts) => {}
                _ = join_all(clients.iter().map(Client::run)) => {}
                () = client::administrate(&store) => {}
                () = eraser.run() => {}
                () = explainer.run() => {}
                () = client::weather(&self.providers) => {}
                () = self.receiver.change() => {}
            }

            // Nothing of this process runs while the copy is made: what a kill would leave.
            simulation::note(|| format!("killed at {}", clock.now()));
            copy(self.dir.path(), image.path());
        });
        self.damage(image.path(), before.path());
        self.model.borrow_mut().end_erasures();

        drop(runtime);
        self.lives += 1;
        self.dir = image;
        self.now = self.now.plus(lasts + Duration::from_secs(simulation::below(300)));
    }

    fn damage(&self, image: &Path, before: &Path) {
        match self.damage {
            Damage::TakesABlob => {
                let blobs = check::files_below(&image.join("data/blobs"), "");
                if let Some(newest) = blobs.iter().max_by_key(|key| key.rsplit('/').next()) {
                    fs::remove_file(image.join("data/blobs").join(newest)).unwrap();
                }
            }
            Damage::TakesCommits if self.lives > 0 => {
                for name in check::files_below(&image.join("data"), "") {
                    let old = before.join("data").join(&name);
                    if name.starts_with("metadata.") && old.exists() {
                        fs::copy(old, image.join("data").join(&name)).unwrap();
                    }
                }
            }
            Damage::LowersOffsets => {
                let records = Connection::open(image.join("data/metadata.sqlite3")).unwrap();
                let sql = "UPDATE resumable_uploads SET offset_bytes = offset_bytes / 2 WHERE stage = 'open'";
                records.execute(sql, ()).unwrap();
            }
            Damage::TakesEvents => {
                let records = Connection::open(image.join("data/metadata.sqlite3")).unwrap();
                records
                    .execute("UPDATE events SET kind = NULL WHERE position % 5 = 0", ())
                    .unwrap();
            }
            Damage::TakesDeliveries => {
                let records = Connection::open(image.join("data/metadata.sqlite3")).unwrap();
                records.execute("DELETE FROM webhook_failures", ()).unwrap();
            }
            Damage::None | Damage::TakesCommits | Damage::SkipsErasures => {}
        }
    }

    /// Ends the faults, lets the workers finish, and checks that everything is in its place.
    fn calm(&mut self) {
        let runtime = runtime();
        runtime.block_on(async {
            let clock = Clock::of_runtime(self.now);
            let store = self.open(&clock).await;
            let workers = Workers::start(&store);
            for provider in PROVIDERS {
                self.providers.set_weather(&provider.parse().unwrap(), Weather::Fair);
            }

            store.admin().sync_retry(None).await.unwrap();
            erasures::finish(&self.eraser(&store, &clock)).await;
            check::calm(&store).await;
            store.admin().purge(&NoProgress).await.unwrap();
            // Expired uploads are shown for another lifetime, and then forgotten.
            store.admin().upkeep().await.unwrap();
            sleep(UPLOAD_LIFETIME + Duration::from_mins(1)).await;
            store.admin().upkeep().await.unwrap();

            check::everything(self, &store, &clock).await;
            workers.stop(Duration::from_mins(1)).await;
            store.close().await;
            self.now = clock.now();
        });
    }

    fn eraser<'a>(&'a self, store: &'a FileStore, clock: &'a Clock) -> Eraser<'a> {
        let blobs = self.data_dir().join("blobs");
        let is_skipped = self.damage == Damage::SkipsErasures;
        Eraser { store, clock, model: &self.model, providers: &self.providers, blobs, is_skipped }
    }

    async fn open(&self, clock: &Clock) -> FileStore {
        let mut config = StoreConfig::default();
        config.temp_ttl = Duration::from_mins(20);
        config.purge_grace = Duration::from_mins(3);
        config.reserve_bytes = 4096;
        config.uploads.lifetime = UPLOAD_LIFETIME;
        config.variants.threads = 1;
        config.variants.disk_cache_bytes = 0;
        config.providers =
            PROVIDERS.map(|code| ProviderConfig::new(code.parse().unwrap(), "memory")).to_vec();

        let builder = FileStore::builder(self.data_dir()).config(config).clock(clock.clone());
        let store = builder.open().await.unwrap();
        self.receiver.connect(&store).await;
        store
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime on this thread")
}

pub(crate) fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}
