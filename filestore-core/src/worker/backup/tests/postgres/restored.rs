//! Restores of whole stores into SQLite, and into PostgreSQL.

use super::*;

/// All that a store shows of itself, whoever serves its bytes.
#[derive(Debug, PartialEq)]
struct Shown {
    files: Vec<String>,
    usage: Vec<(u64, u64)>,
    bindings: Vec<Binding>,
}

async fn shown(store: &FileStore) -> Shown {
    let mut files = Vec::new();
    for purge_status in [None, Some(crate::domain::file::status::PurgeStatus::SystemPurge)] {
        let mut request = ListRequest::default();
        request.filter.purge_status = purge_status;
        request.limit = Some(1000);
        for file in store.scoped(&Scope::All).list(&request).await.unwrap().items {
            let FileRecord { file_id, original_name, mime_type, metadata, blob, .. } = &file;
            let digest = (blob.sha256, blob.size_bytes, blob.stored_at, file.version);
            let state = (file.state.status(), file.deletion, file.created_at);
            files.push(format!(
                "{file_id} {original_name} {mime_type} {metadata:?} {digest:?} {state:?}"
            ));
        }
    }
    let mut usage = Vec::new();
    for organization in ["42", "43", "7"] {
        let found = store.inner().metadata.usage(&organization.parse().unwrap()).await.unwrap();
        usage.push((found.total().files, found.total().bytes));
    }
    Shown { files, usage, bindings: store.bindings().list(None).await.unwrap() }
}

/// Fills a store with some of everything that lasts; returns files that can be read, with their texts.
async fn fill(store: &FileStore) -> Vec<(FileId, &'static str)> {
    let binding = NewBinding::new("7".parse().unwrap(), "Seven", "far".parse().unwrap());
    store.bindings().create(binding).await.unwrap();
    let named = new("42").with_name("Zo\u{eb} \u{5199}\u{771f}.txt");
    let named = named.with_metadata(r#"{"color":"red","number":7}"#.parse().unwrap());
    let plain = store.upload(named, &b"plain"[..]).await.unwrap();
    let twin = upload(store, "43", "plain").await;
    let empty = upload(store, "42", "").await;
    let through = upload(store, "7", "through").await;
    assert_eq!(through.state.location(), Location::Cloud);
    let temp = store.upload(new("42").temp(), &b"temp"[..]).await.unwrap();
    let replaced = upload(store, "42", "before").await;
    store.scoped(&Scope::All).replace(replaced.file_id, &b"after"[..]).await.unwrap();

    let gone = upload(store, "42", "gone").await;
    delete(store, gone.file_id).await;
    assert_eq!(purged(store).await.0, 1);
    delete(store, upload(store, "42", "deleted").await.file_id).await;
    let files = [(&plain, "plain"), (&twin, "plain"), (&empty, ""), (&through, "through")];
    let files = files.into_iter().chain([(&temp, "temp"), (&replaced, "after")]);
    files.map(|(file, text)| (file.file_id, text)).collect()
}

async fn assert_serves(store: &FileStore, files: &[(FileId, &'static str)]) {
    for (id, text) in files {
        assert_eq!(text_of(store, *id).await.unwrap(), *text);
    }
}

/// A store that was backed up and is no more, with all it had.
struct Lost {
    cluster: Cluster,
    files: Vec<(FileId, &'static str)>,
    shown: Shown,
    key: crate::domain::id::KeyId,
}

impl Lost {
    async fn new() -> Self {
        let cluster = Cluster::of(2).await;
        let [one, other] = &cluster.servers[..] else { panic!("two") };
        let files = fill(one).await;
        let new = NewKey::new("shop", Scope::All, [KeyScope::Read]);
        let key = one.keys().create(new).await.unwrap().0.id;
        let shown = shown(other).await;
        assert_eq!(back_up(other).await.unwrap().snapshot.damaged, 0);
        upload(one, "42", "after the snapshot").await;
        cluster.close().await;
        let verified = cluster.backups().await.verify(None, Arc::new(NoProgress)).await.unwrap();
        assert!(verified.is_good(), "{verified:?}");
        Self { cluster, files, shown, key }
    }

    /// Restores the snapshot, once nothing of a run that broke off works on the directories any more.
    async fn restore(
        &self,
        name: &str,
        restored_as: RestoredAs,
        config: &StoreConfig,
    ) -> Result<RestoreReport> {
        let into = self.cluster.path(name);
        let restored = async || {
            let backups = Backups::open(self.cluster.path("nightly")).await?;
            backups.restore_for(None, &into, restored_as, config, Arc::new(NoProgress)).await
        };
        let restoring = async {
            loop {
                match restored().await {
                    Err(error) if error.kind() == ErrorKind::Locked => {}
                    outcome => return outcome,
                }
            }
        };
        tokio::time::timeout(crate::tasks::HANG, restoring).await.unwrap()
    }

    /// Asserts that a restored store has all, and goes on.
    async fn assert_is(&self, store: &FileStore) {
        assert_eq!(shown(store).await, self.shown);
        assert_serves(store, &self.files).await;
        let newest = self.shown.bindings.iter().map(|binding| binding.id).max().unwrap();
        let local = crate::domain::provider::ProviderCode::local();
        let binding = NewBinding::new("8".parse().unwrap(), "Eight", local);
        assert!(store.bindings().create(binding).await.unwrap().id > newest);
        let later = upload(store, "42", "later").await;
        assert_eq!(text_of(store, later.file_id).await.unwrap(), "later");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn the_original_goes_on_in_an_empty_schema_with_its_files_where_they_were() {
    let lost = Lost::new().await;
    let (schema, original) = (Schema::new(), RestoredAs::Original);
    let config = lost.cluster.config_in(&schema, "");
    let report = lost.restore("restored", original, &config).await.unwrap();
    let all = lost.files.len() as u64 + 1;
    assert_eq!((report.restored, report.left_at_providers, report.failed), (0, all, 0));
    assert_eq!(schema.count("purge_receipts"), 1);

    // Any empty directory will do.
    let store = open_with(&lost.cluster.path("new"), config.clone()).await.unwrap();
    assert_eq!(store.id(), lost.cluster.servers[0].id());
    assert!(store.keys().get(lost.key).unwrap().is_good_at(store.now()));
    lost.assert_is(&store).await;
    let second = open_with(&lost.cluster.path("restored"), config).await.unwrap();
    assert_serves(&second, &lost.files).await;
    second.close().await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_copy_in_another_schema_has_forgotten_what_it_must_and_moves_to_its_own_backend() {
    let lost = Lost::new().await;
    let (schema, copy) = (Schema::new(), RestoredAs::Copy);
    let mut config = lost.cluster.config_in(&schema, "copy of the providers");
    // The move purges what is due.
    config.purge_grace = Duration::from_hours(24);
    let report = lost.restore("restored", copy, &config).await.unwrap();
    assert_eq!((report.restored, report.failed), (lost.files.len() as u64 + 1, 0));
    assert_eq!(report.keys.unwrap().keys[0].id, lost.key);
    let tables = ["purge_receipts", "removed_blobs", "write_intents", "blob_gc", "signing_secrets"];
    assert_eq!(tables.map(|table| schema.count(table)), [0; 5]);

    let refused = open_with(&lost.cluster.path("new"), config.clone()).await.unwrap_err();
    assert!(refused.message().contains("still in a private directory"), "{refused}");
    let moved = copy_files(&lost.cluster.path("restored"), &config, Arc::new(NoProgress)).await;
    assert!(moved.unwrap().is_complete);

    let store = open_with(&lost.cluster.path("new"), config).await.unwrap();
    assert_ne!(store.id(), lost.cluster.servers[0].id());
    assert!(!store.keys().get(lost.key).unwrap().is_good_at(store.now()));
    // A moved file is another version of its record.
    assert_eq!(shown(&store).await.usage, lost.shown.usage);
    assert_serves(&store, &lost.files).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_snapshot_of_postgres_is_restored_into_sqlite() {
    let lost = Lost::new().await;
    let sqlite = StoreConfig { metadata: MetadataPlace::Sqlite, ..lost.cluster.config() };
    for (name, restored_as) in [("copy", RestoredAs::Copy), ("original", RestoredAs::Original)] {
        let report = lost.restore(name, restored_as, &sqlite).await.unwrap();
        assert_eq!(report.failed, 0);
        let config = match restored_as {
            RestoredAs::Copy => lost.cluster.config_in(&lost.cluster.schema, "copy"),
            RestoredAs::Original => sqlite.clone(),
        };
        let config = StoreConfig { metadata: MetadataPlace::Sqlite, ..config };
        let store = open_with(&lost.cluster.path(name), config).await.unwrap();
        assert_eq!(store.id() == lost.cluster.servers[0].id(), restored_as == RestoredAs::Original);
        lost.assert_is(&store).await;
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_snapshot_of_sqlite_is_restored_into_postgres() {
    let house = House::new().await;
    let file = upload(&house.store, "42", "from SQLite").await.file_id;
    house.back_up().await;
    let (backups, schema) = (house.backups().await, Schema::new());
    let (into, config) = (house.path("restored"), schema.store_config());
    let copy = RestoredAs::Copy;
    let restoring = backups.restore_for(None, &into, copy, &config, Arc::new(NoProgress));
    assert_eq!(restoring.await.unwrap().restored, 1);
    let restored = open_with(&into, config).await.unwrap();
    assert_eq!(text_of(&restored, file).await.unwrap(), "from SQLite");
    restored.close().await;
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_schema_with_records_is_refused_before_anything_is_restored() {
    let lost = Lost::new().await;
    let own = lost.cluster.config();
    let refused = lost.restore("restored", RestoredAs::Original, &own).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unusable);
    assert!(refused.message().contains("has the records of this store"), "{refused}");
    assert!(refused.message().contains("DROP SCHEMA"), "{refused}");
    let refused = lost.restore("restored", RestoredAs::Copy, &own).await.unwrap_err();
    assert!(refused.message().contains("its table files is not empty"), "{refused}");

    let left = std::fs::read_dir(lost.cluster.path("restored")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["filestore.lock"], "another snapshot can be restored there");
    let store = open_with(&lost.cluster.path("new"), own).await.unwrap();
    assert_serves(&store, &lost.files).await;
    store.close().await;
}

/// Says when so many files are restored.
struct After(AtomicU64, tokio::sync::Notify);

impl Progress for After {
    fn start(&self, _: Option<u64>) {}

    fn advance(&self, units: u64) {
        if self.0.fetch_sub(units, Ordering::Relaxed) <= units {
            self.1.notify_one();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_restore_that_broke_off_keeps_servers_out_and_goes_on() {
    let lost = Lost::new().await;
    let (schema, copy) = (Schema::new(), RestoredAs::Copy);
    let config = lost.cluster.config_in(&schema, "copy of the providers");
    let into = lost.cluster.path("restored");
    {
        let backups = lost.cluster.backups().await;
        let after = Arc::new(After(AtomicU64::new(1), tokio::sync::Notify::new()));
        let progress = Arc::<After>::clone(&after);
        tokio::select! {
            biased;
            () = after.1.notified() => {}
            done = backups.restore_for(None, &into, copy, &config, progress) => panic!("{done:?}"),
        }
    }
    let refused = open_with(&lost.cluster.path("new"), config.clone()).await.unwrap_err();
    assert!(refused.message().contains("are being copied"), "{refused}");
    let note = std::fs::read_to_string(into.join("filestore-restoring")).unwrap();
    let id = note.split_whitespace().nth(1).unwrap().to_owned();

    // Also if it stops right before the schema counts, and right after.
    let mark = format!(
        "CREATE TABLE copy_under_way (store_id text NOT NULL); INSERT INTO copy_under_way VALUES ('{id}')"
    );
    for stopped_at in ["", &mark, "SELECT 1"] {
        if !stopped_at.is_empty() {
            std::fs::write(into.join("filestore-restoring"), &note).unwrap();
            let refused = FileStore::open(&into).await.unwrap_err();
            assert!(refused.message().contains("is being restored"), "{refused}");
            schema.run(stopped_at);
        }
        let report = lost.restore("restored", copy, &config).await.unwrap();
        assert_eq!((report.restored, report.failed), (lost.files.len() as u64 + 1, 0));
        assert!(!into.join("filestore-restoring").exists());
        assert!(into.join("metadata.sqlite3.copied").exists());
    }

    let mut only = config;
    let MetadataPlace::Postgres(place) = &mut only.metadata else { panic!("{only:?}") };
    place.only_server = true;
    let store = open_with(&into, only).await.unwrap();
    assert_eq!(store.id().to_string(), id, "the first run gave it");
    lost.assert_is(&store).await;
    store.close().await;
}
