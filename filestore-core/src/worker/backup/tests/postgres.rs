//! Snapshots of stores whose records are in PostgreSQL, and restores into it. They need a server:
//! `tests/services/postgres/run` starts one.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::domain::config::MetadataPlace;
use crate::domain::provider::binding::Binding;
use crate::domain::time::clock::{ManualClock, Timestamp};
use crate::metadata::postgres::tests::{Schema, address, store_config_at};
use crate::service::ListRequest;
use crate::worker::copying::files::copy_files;
use crate::worker::running::lane::LEASE;

mod restored;

/// Servers that share a database, the provider `house` for LOCAL files, and the destination `nightly`.
struct Cluster {
    home: tempfile::TempDir,
    schema: Schema,
    servers: Vec<FileStore>,
}

impl Cluster {
    async fn of(number: usize) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("nightly")).unwrap();
        let mut cluster = Self { home, schema: Schema::new(), servers: Vec::new() };
        for at in 0..number {
            let opened = open_with(&cluster.path(&format!("data {at}")), cluster.config()).await;
            cluster.servers.push(opened.unwrap());
        }
        cluster
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The configuration of the servers.
    fn config(&self) -> StoreConfig {
        self.config_in(&self.schema, "")
    }

    /// The configuration of servers with their records in `schema`, and their files in a directory `house`.
    fn config_in(&self, schema: &Schema, house: &str) -> StoreConfig {
        let mut config = store_config_at(address(), schema.name());
        let MetadataPlace::Postgres(place) = &mut config.metadata else { panic!("{config:?}") };
        place.only_server = false;
        let provider = |code: &str| {
            let root = self.path(house).join(code).to_str().unwrap().to_owned();
            ProviderConfig::new(code.parse().unwrap(), "fs").with_option("root", root)
        };
        config.providers = vec![provider("house").as_local_backend(), provider("far")];
        config.backup_destinations = vec![BackupDestination::new("nightly", self.path("nightly"))];
        (config.purge_grace, config.blob_grace) = (Duration::ZERO, Duration::ZERO);
        config
    }

    async fn backups(&self) -> Backups {
        Backups::open(self.path("nightly")).await.unwrap()
    }

    async fn close(&self) {
        for server in &self.servers {
            server.close().await;
        }
    }
}

async fn open_with(dir: &Path, config: StoreConfig) -> Result<FileStore> {
    FileStore::builder(dir).config(config).open().await
}

async fn back_up(server: &FileStore) -> Result<BackupReport> {
    back_up_with(server, Arc::new(NoProgress)).await
}

async fn back_up_with(server: &FileStore, progress: Arc<dyn Progress>) -> Result<BackupReport> {
    let backups = server.admin().backups("nightly").await?;
    server.admin().backup(&backups, BackupOptions::default(), progress).await
}

async fn delete(server: &FileStore, id: FileId) {
    server.scoped(&Scope::All).delete(id).await.unwrap();
}

async fn purged(server: &FileStore) -> (u64, u64) {
    let report = server.admin().purge(&NoProgress).await.unwrap();
    (report.purged, report.blobs_removed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_snapshot_is_of_one_moment_while_another_server_replaces_files() {
    let cluster = Cluster::of(2).await;
    let mut files = Vec::new();
    for number in 0..80 {
        files.push(upload(&cluster.servers[1], "42", &number.to_string()).await.file_id);
    }

    let stop = Arc::new(AtomicBool::new(false));
    let (writer, ends) = (cluster.servers[1].clone(), Arc::clone(&stop));
    let writing = tokio::spawn(async move {
        for round in 0_usize.. {
            // The first file and the last one come in different pages.
            for id in [files[0], files[79], files[round % 80]] {
                let text = format!("round {round}");
                writer.scoped(&Scope::All).replace(id, text.as_bytes()).await.unwrap();
            }
            if ends.load(Ordering::Relaxed) {
                return round;
            }
        }
        unreachable!("it goes on until it is told to stop")
    });
    for _ in 0..4 {
        let made = back_up(&cluster.servers[0]).await.unwrap();
        assert_eq!((made.snapshot.files, made.snapshot.damaged), (80, 0), "{made:?}");
    }
    stop.store(true, Ordering::Relaxed);
    assert!(writing.await.unwrap() > 0);

    // Each replace makes a version and drops a blob, in one transaction.
    let torn = "SELECT count(*) FROM files AS f WHERE f.version - 1 <>
         (SELECT count(*) FROM blob_gc AS g WHERE g.file_id = f.file_id)";
    let replaced = "SELECT count(*) FROM blob_gc";
    let mut counts = Vec::new();
    for snapshot in cluster.backups().await.list().await.unwrap() {
        let path = cluster.path("nightly/snapshots").join(snapshot.id.to_string());
        let sql = rusqlite::Connection::open(path.join("metadata.sqlite3")).unwrap();
        let count = |query| sql.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count(torn), 0);
        counts.push(count(replaced));
    }
    assert!(counts.is_sorted() && counts[3] > counts[0], "{counts:?}");
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_snapshot_under_way_on_one_server_binds_the_purges_of_all() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.servers[..] else { panic!("two") };
    let deleted = upload(one, "42", "deleted").await.file_id;
    let replaced = upload(one, "42", "replaced").await.file_id;

    let (metadata, now) = (&one.inner().metadata, one.now());
    metadata.take_hold("a snapshot", now, now.plus(LEASE)).await.unwrap();
    delete(other, deleted).await;
    other.scoped(&Scope::All).replace(replaced, &b"after"[..]).await.unwrap();
    assert_eq!(purged(other).await, (0, 0));

    let made = back_up(one).await.unwrap();
    assert_eq!((made.snapshot.files, made.snapshot.damaged), (2, 0));
    assert_eq!(purged(other).await, (0, 0), "the first hold lasts");
    metadata.release_hold("a snapshot").await.unwrap();
    assert_eq!(purged(other).await, (1, 1));

    let (backups, into) = (cluster.backups().await, cluster.path("copy"));
    let copy = RestoredAs::Copy;
    let report = backups.restore(None, &into, copy, &[], Arc::new(NoProgress)).await.unwrap();
    assert_eq!((report.restored, report.failed), (2, 0), "a finished snapshot owns its bytes");
    cluster.close().await;
}

/// Lets the clock leap once the run has begun.
struct Leaping(ManualClock, Duration);

impl Progress for Leaping {
    fn accepted(&self) {
        self.0.advance(self.1);
    }

    fn start(&self, _: Option<u64>) {}

    fn advance(&self, _: u64) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_hold_that_has_ended_by_the_clock_of_another_server_counts_for_nothing() {
    let cluster = Cluster::of(0).await;
    let clock = ManualClock::at(Timestamp::now());
    let server = FileStore::builder(cluster.path("data")).config(cluster.config());
    let server = server.clock(clock.clock()).open().await.unwrap();
    upload(&server, "42", "one").await;

    let nearly = LEASE.saturating_sub(Duration::from_secs(15));
    let paused = Arc::new(Leaping(clock.clone(), nearly));
    let error = back_up_with(&server, paused).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(cluster.backups().await.list().await.unwrap().is_empty());

    let earlier = nearly.checked_sub(Duration::from_mins(1)).unwrap();
    back_up_with(&server, Arc::new(Leaping(clock, earlier))).await.unwrap();
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_receipt_of_one_server_names_the_snapshot_that_another_has_taken() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.servers[..] else { panic!("two") };
    let file = upload(one, "42", "seen").await.file_id;
    let snapshot = back_up(one).await.unwrap().snapshot.id;
    delete(other, file).await;
    assert_eq!(purged(other).await.0, 1);

    let receipt = other.scoped(&Scope::All).receipt(file).await.unwrap().receipt;
    let [at] = &receipt.backups[..] else { panic!("{receipt:?}") };
    assert_eq!((&*at.destination, at.snapshots[0].id), ("nightly", snapshot));
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_file_comes_back_from_a_snapshot_but_not_to_an_organization_that_was_erased() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.servers[..] else { panic!("two") };
    let lost = upload(one, "42", "lost").await.file_id;
    let erased = upload(one, "43", "erased").await.file_id;
    back_up(one).await.unwrap();
    delete(one, lost).await;
    assert_eq!(purged(one).await.0, 1);
    let organization = "43".parse().unwrap();
    one.admin().erase_organization(&organization, &|| false, &NoProgress).await.unwrap();

    let backups = other.admin().backups("nightly").await.unwrap();
    let restore = async |file| {
        let selection = Selection::File(file);
        other.admin().restore(&backups, None, selection, Arc::new(NoProgress)).await
    };
    assert_eq!(restore(lost).await.unwrap().restored, 1);
    assert_eq!(text_of(one, lost).await.unwrap(), "lost");
    assert_eq!(restore(erased).await.unwrap_err().kind(), ErrorKind::Conflict);
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_snapshot_leaves_other_calls_their_connections() {
    let cluster = Cluster::of(0).await;
    let mut config = cluster.config();
    let MetadataPlace::Postgres(place) = &mut config.metadata else { panic!("{config:?}") };
    place.connections = 3;
    let few = open_with(&cluster.path("data"), config).await.unwrap();
    upload(&few, "42", "one").await;
    let error = back_up(&few).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unusable, "{error}");
    assert_eq!(error.details().field.as_deref(), Some("postgres.connections"));
    few.close().await;
    drop(few);

    let enough = open_with(&cluster.path("data"), cluster.config()).await.unwrap();
    assert_eq!(back_up(&enough).await.unwrap().snapshot.files, 1);
    enough.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn an_only_server_with_its_files_in_its_directory_is_backed_up_as_well() {
    let (home, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    let store = open_with(&home.path().join("data"), schema.store_config()).await.unwrap();
    let file = upload(&store, "42", "on the disk").await.file_id;
    let backups = Backups::create(home.path().join("backup")).await.unwrap();
    let options = BackupOptions::default();
    let made = store.admin().backup(&backups, options, Arc::new(NoProgress)).await.unwrap();
    assert_eq!((made.snapshot.blobs, made.copied), (1, 1));
    store.close().await;

    let (schema, into) = (Schema::new(), home.path().join("restored"));
    let (original, config) = (RestoredAs::Original, schema.store_config());
    let restoring = backups.restore_for(None, &into, original, &config, Arc::new(NoProgress));
    assert_eq!(restoring.await.unwrap().restored, 1);
    let restored = open_with(&into, config).await.unwrap();
    assert_eq!(restored.id(), store.id());
    assert_eq!(text_of(&restored, file).await.unwrap(), "on the disk");
    restored.close().await;
}
