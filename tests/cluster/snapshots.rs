//! Snapshots: servers take them while parts are killed, one dies at each step of one, and what was acknowledged comes
//! back from them, into an empty schema of PostgreSQL and into SQLite.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use filestore_client::api::{BackupReport, CreateBackup, PruneBackups, VerifyBackup};
use filestore_client::{Client, Item};
use filestore_core::admin::{Backups, NoProgress, RestoredAs, SnapshotId};
use filestore_core::internals::tasks::step::Step;
use filestore_core::{FileStore, StoreConfig};
use tokio::task::JoinHandle;

use crate::oracle::{Known, Oracle};
use crate::parts::{Backend, Environment, FAR, NEAR};

/// The longest wait for a snapshot of a server that may have been stopped.
const PATIENCE: Duration = Duration::from_secs(20);

/// The pause after a snapshot, or a try that was refused.
const PAUSE: Duration = Duration::from_secs(2);

/// Each step of a snapshot, and a destination at which a server comes to it.
const STEPS: [(Step, &str); 9] = [
    (Step::DestinationClaimed, FAR),
    (Step::HoldTaken, NEAR),
    (Step::SnapshotBegun, NEAR),
    (Step::RecordsCopied, NEAR),
    (Step::RecordsCopied, FAR),
    (Step::ContentTaken, NEAR),
    (Step::ContentTaken, FAR),
    (Step::DatabaseTaken, FAR),
    (Step::SnapshotFinished, NEAR),
];

/// Each step of a prune.
const STEPS_OF_PRUNES: [Step; 2] = [Step::SnapshotUnnamed, Step::ContentSwept];

fn client(server: &str) -> Client {
    Client::builder(server).expect("a base URL").build().expect("a client")
}

/// Takes a snapshot without a fault.
async fn take(server: &str, destination: &str) -> BackupReport {
    let (client, request) = (client(server), CreateBackup::default());
    let report = client.admin().backups().create(destination, &request).await;
    let report = report.expect("all parts are there");
    assert_eq!((report.error.as_ref(), report.faults.len()), (None, 0), "{report:?}");
    report
}

/// Asserts that every byte of the newest snapshot is there. It has the bytes of the ones before it, but for files
/// that are gone.
async fn verify(server: &str, destination: &str) {
    let request = VerifyBackup::default();
    let verified = client(server).admin().backups().verify(destination, &request).await;
    let verified = verified.expect("all parts are there");
    assert!(verified.ok, "{verified:?}");
}

/// Servers that take snapshots by turns, whatever happens to them.
pub(crate) struct Snapshots {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<(usize, usize)>,
}

impl Snapshots {
    pub(crate) fn start(servers: &[Backend]) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (ends, urls) = (Arc::clone(&is_over), servers.iter().map(Backend::url).collect());
        Self { is_over, task: tokio::spawn(take_by_turns(urls, ends)) }
    }

    /// Ends the tries, and says how many were.
    pub(crate) async fn end(self) -> String {
        self.is_over.store(true, Ordering::Relaxed);
        let (taken, broken) = self.task.await.expect("no snapshot is wrong");
        assert!(taken > 0, "none of {broken} snapshots came to its end");
        format!("{taken} snapshots were taken meanwhile, and {broken} broke off or were refused")
    }
}

async fn take_by_turns(urls: Vec<String>, ends: Arc<AtomicBool>) -> (usize, usize) {
    let (mut taken, mut broken) = (0, 0);
    for url in urls.iter().cycle() {
        if ends.load(Ordering::Relaxed) {
            break;
        }
        let (client, request) = (client(url), CreateBackup::default());
        let taking = tokio::time::timeout(PATIENCE, async {
            client.admin().backups().create(NEAR, &request).await
        });
        match taking.await {
            Ok(Ok(report)) if report.error.is_none() => {
                assert_eq!(report.faults.len(), 0, "{report:?}");
                taken += 1;
            }
            _ => broken += 1,
        }
        tokio::time::sleep(PAUSE).await;
    }
    (taken, broken)
}

/// Lets a server die at each step. Another one takes a snapshot at once, by what the dead one has left.
pub(crate) async fn die_at_each_step(servers: &mut [Backend], objects: &str) {
    for (number, (step, destination)) in STEPS.iter().enumerate() {
        let (at, other) = (number % servers.len(), (number + 1) % servers.len());
        let dying = &mut servers[at];
        dying.kill();
        dying.start_to_die(objects, *step);
        dying.is_ready().await;
        let (client, request) = (client(&dying.url()), CreateBackup::default());
        let report = client.admin().backups().create(destination, &request).await;
        assert!(report.is_err(), "{step:?} of a snapshot at {destination}: {report:?}");
        dying.has_ended().await;

        take(&servers[other].url(), destination).await;
        servers[at].start(objects);
        servers[at].is_ready().await;
    }
    verify(&servers[0].url(), FAR).await;
    for step in STEPS_OF_PRUNES {
        die_in_a_prune(servers, objects, step).await;
    }
    verify(&servers[0].url(), NEAR).await;
}

async fn die_in_a_prune(servers: &mut [Backend], objects: &str, step: Step) {
    // The older of two snapshots alone has the first content.
    let client_of_other = client(&servers[1].url());
    let place =
        client_of_other.organization("acme").expect("a name").sub_system("prunes").expect("a name");
    let file = place.upload(Item::from_bytes(format!("first {step:?}"))).await;
    let file = file.expect("all parts are there").file_id;
    take(&servers[1].url(), NEAR).await;
    let second = Item::from_bytes(format!("second {step:?}"));
    client_of_other.replace(&file, second).await.expect("all parts are there");
    let newest = take(&servers[1].url(), NEAR).await.snapshot.expect("it was taken").snapshot_id;

    servers[0].kill();
    servers[0].start_to_die(objects, step);
    servers[0].is_ready().await;
    let (client, request) = (client(&servers[0].url()), PruneBackups::new(1));
    let pruned = client.admin().backups().prune(NEAR, &request).await;
    assert!(pruned.is_err(), "{step:?} of a prune: {pruned:?}");
    servers[0].has_ended().await;

    let pruned = client_of_other.admin().backups().prune(NEAR, &request).await;
    assert_eq!(pruned.expect("all parts are there").kept, [newest]);
    take(&servers[1].url(), NEAR).await;
    servers[0].start(objects);
    servers[0].is_ready().await;
}

/// A snapshot that was taken while clients went on, with the files that nobody changed meanwhile.
pub(crate) struct Moment {
    snapshot: SnapshotId,
    unchanged: Vec<(String, Known)>,
}

impl Moment {
    pub(crate) async fn take(server: &Backend, oracle: &Oracle) -> Self {
        let before = oracle.all();
        let report = take(&server.url(), NEAR).await;
        let after = oracle.all();
        let is_same = |(id, known): &(String, Known)| {
            matches!(known, Known::There(_) | Known::Deleted) && after.get(id) == Some(known)
        };
        let unchanged: Vec<_> = before.into_iter().filter(is_same).collect();
        assert!(!unchanged.is_empty());
        let snapshot = report.snapshot.expect("it was taken").snapshot_id;
        Self { snapshot: snapshot.parse().expect("an id"), unchanged }
    }
}

/// Takes a snapshot of all that is left.
pub(crate) async fn take_last(server: &Backend) {
    take(&server.url(), NEAR).await;
    verify(&server.url(), NEAR).await;
}

/// Restores snapshots: that of the moment and the last one into SQLite, and the last one into a schema that is not
/// there yet.
pub(crate) async fn come_back(home: &Path, objects: &str, oracle: &Oracle, moment: Moment) {
    let backups = Backups::open(home.join(NEAR)).await.expect("no server has it any more");
    let sqlite = StoreConfig::default();
    let then = Some(moment.snapshot);
    let store = restored(&backups, then, &home.join("moment"), RestoredAs::Copy, &sqlite).await;
    Oracle::of(moment.unchanged).check_store(&store).await;
    store.close().await;

    let store = restored(&backups, None, &home.join("sqlite"), RestoredAs::Copy, &sqlite).await;
    oracle.check_store(&store).await;
    store.close().await;

    let config = Environment::restored(home, objects).store;
    let original = RestoredAs::Original;
    let store = restored(&backups, None, &home.join("restored"), original, &config).await;
    oracle.check_store(&store).await;
    store.close().await;

    let kept = backups.prune(NonZeroUsize::MIN, Arc::new(NoProgress)).await;
    assert_eq!(kept.expect("nobody works there").kept.len(), 1);
}

async fn restored(
    backups: &Backups,
    snapshot: Option<SnapshotId>,
    into: &Path,
    restored_as: RestoredAs,
    config: &StoreConfig,
) -> FileStore {
    let restoring = backups.restore_for(snapshot, into, restored_as, config, Arc::new(NoProgress));
    let report = restoring.await.expect("the snapshot is whole");
    assert_eq!((report.failed, report.damaged_records), (0, 0), "{report:?}");
    assert!(report.restored + report.left_at_providers > 0);
    FileStore::builder(into).config(config.clone()).open().await.expect("it is a store")
}
