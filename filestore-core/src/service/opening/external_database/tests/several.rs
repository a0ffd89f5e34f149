//! Several stores on one database, with their files in one place that all of them see.

use std::sync::Arc;

use tempfile::TempDir;
use tokio::time::{Instant, timeout};

use crate::domain::access::key::{KeyScope, KeySecret, NewKey};
use crate::domain::access::signature::SignedMethod;
use crate::domain::access::signed_url::{SignFile, SignedUrl};
use crate::domain::error::{Error, Result};
use crate::domain::file::record::FileRecord;
use crate::domain::file::usage::Stored;
use crate::domain::id::{FileId, OrganizationNumber};
use crate::domain::provider::binding::NewBinding;
use crate::domain::report::fsck::FsckOptions;
use crate::metadata::postgres::tests::address;
use crate::service::opening::external_database::tests::*;
use crate::service::{IdempotencyKey, Recency, UploadClaims, UploadSession, Uploaded};
use crate::worker::NoProgress;

mod killed;
mod resumed;

/// So long that no test waits for it: a server is taken for gone when its test says so.
const GONE_AFTER: Duration = Duration::from_hours(1);

/// Stores that share a database and a directory of files, each with a data directory of its own.
struct Cluster {
    schema: Schema,
    shared: TempDir,
    own: Vec<TempDir>,
    stores: Vec<FileStore>,
}

fn config(address: String, schema: &str, shared: &Path) -> StoreConfig {
    let mut config = store_config_at(address, schema);
    let MetadataPlace::Postgres(place) = &mut config.metadata else { panic!("{config:?}") };
    place.only_server = false;
    place.server_timeout = GONE_AFTER;

    let provider = |code: &str| {
        let root = shared.join(code).to_str().unwrap().to_owned();
        ProviderConfig::new(code.parse().unwrap(), "fs").with_option("root", root)
    };
    config.purge_grace = Duration::ZERO;
    config.providers = vec![provider("house").as_local_backend(), provider("far")];
    config
}

impl Cluster {
    async fn of(number: usize) -> Self {
        let (schema, shared) = (Schema::new(), tempfile::tempdir().unwrap());
        let mut cluster = Self { schema, shared, own: Vec::new(), stores: Vec::new() };
        for _ in 0..number {
            cluster.add(|_| {}).await.unwrap();
        }
        cluster
    }

    /// Opens one more store.
    async fn add(&mut self, change: impl FnOnce(&mut StoreConfig)) -> Result<()> {
        let mut config = config(address(), self.schema.name(), self.shared.path());
        change(&mut config);
        let own = tempfile::tempdir().unwrap();
        let store = FileStore::builder(own.path()).config(config).open().await?;
        self.own.push(own);
        self.stores.push(store);
        Ok(())
    }

    /// Asserts that what records say and what is stored agree, whoever died meanwhile.
    async fn assert_sound(&self) {
        let report = self.stores[0].admin().fsck(FsckOptions::default(), &|| false, &NoProgress);
        let report = report.await.unwrap();
        assert_eq!(report.findings, []);
        assert!(report.postponed.is_empty() && report.checked_files > 0, "{report:?}");
    }

    async fn close(self) {
        for store in &self.stores {
            store.close().await;
        }
    }
}

async fn upload(store: &FileStore, text: &str) -> Result<FileRecord> {
    store.upload(new(), text.as_bytes()).await
}

async fn read(store: &FileStore, id: FileId) -> Result<bytes::Bytes> {
    store.scoped(&Scope::All).read(id).await
}

fn kind<T: std::fmt::Debug>(outcome: Result<T, Error>) -> ErrorKind {
    outcome.unwrap_err().kind()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn what_one_server_has_acknowledged_every_other_one_sees_at_once() {
    let cluster = Cluster::of(3).await;
    let [one, two, three] = &cluster.stores[..] else { panic!("three") };
    for round in 0..5 {
        let text = format!("round {round}");
        let record = upload(one, &text).await.unwrap();
        for store in [two, three] {
            assert_eq!(read(store, record.file_id).await.unwrap(), text);
        }

        two.scoped(&Scope::All).replace(record.file_id, &b"replaced"[..]).await.unwrap();
        assert_eq!(read(one, record.file_id).await.unwrap(), "replaced");
        assert_eq!(read(three, record.file_id).await.unwrap(), "replaced");

        three.scoped(&Scope::All).delete(record.file_id).await.unwrap();
        assert_eq!(kind(read(one, record.file_id).await), ErrorKind::NotFound);
        assert_eq!(kind(read(two, record.file_id).await), ErrorKind::NotFound);
    }
    cluster.close().await;
}

fn is_good(store: &FileStore, secret: &KeySecret) -> bool {
    store.keys().authenticate(secret.expose().as_bytes()).is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_key_is_known_to_every_server_at_once_and_refused_by_every_one_within_a_second() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    assert!(one.shared().shares_secrets());
    for _ in 0..3 {
        let new = NewKey::new("k", Scope::All, [KeyScope::Read]);
        let (key, secret) = one.keys().create(new).await.unwrap();
        other.shared().refresh_secrets(Recency::Present).await.unwrap();
        assert!(is_good(other, &secret) && other.keys().exist());

        other.keys().revoke(key.id).await.unwrap();
        assert!(!is_good(other, &secret));
        let revoked = Instant::now();
        loop {
            let age = revoked.elapsed();
            one.shared().refresh_secrets(Recency::Second).await.unwrap();
            if !is_good(one, &secret) {
                break;
            }
            assert!(age < Duration::from_secs(1), "{age:?}");
        }
    }
    cluster.close().await;
}

fn verify(store: &FileStore, url: &SignedUrl) -> ErrorKind {
    let (path, query) = url.path_and_query.split_once('?').unwrap();
    match store.signing().verify(SignedMethod::Get, path, query) {
        Ok(_) => ErrorKind::NotFound,
        Err(error) => error.kind(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_url_that_one_server_signed_another_one_verifies_until_its_secret_is_revoked() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    let record = upload(one, "bytes").await.unwrap();
    let url = one.scoped(&Scope::All).sign(record.file_id, &SignFile::content()).await.unwrap();
    assert_eq!(verify(other, &url), ErrorKind::SignatureInvalid, "it has not asked yet");
    other.shared().refresh_secrets(Recency::Present).await.unwrap();
    assert_eq!(verify(other, &url), ErrorKind::NotFound, "no fault of the signature");

    let kid = other.signing().secrets()[0].kid.clone();
    other.signing().revoke(&kid).await.unwrap();
    one.shared().refresh_secrets(Recency::Present).await.unwrap();
    assert_eq!(verify(one, &url), ErrorKind::SignatureInvalid);
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_request_with_an_idempotency_key_runs_once_whichever_servers_it_comes_to() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    let begin = async |store: &FileStore| begin_keyed(store, "key").await;
    let upload = async |store: &FileStore, bytes: &'static str| {
        let mut session = begin(store).await.unwrap();
        session.write(bytes.into()).await.unwrap();
        session.commit(new()).await
    };

    let mut session = begin(one).await.unwrap();
    assert_eq!(kind(begin(other).await), ErrorKind::IdempotencyInProgress);
    session.write("bytes".into()).await.unwrap();
    let Uploaded::New(first) = session.commit(new()).await.unwrap() else { panic!("a replay") };

    // At once: the entry of the first one may still be there.
    for store in [other, one] {
        let Uploaded::Replayed(again) = upload(store, "bytes").await.unwrap() else {
            panic!("a second file")
        };
        assert_eq!(again.file_ids(), [first.file_id]);
        assert_eq!(kind(upload(store, "other").await), ErrorKind::IdempotencyMismatch);
    }

    // One that came to nothing makes room.
    drop(begin_keyed(one, "another").await.unwrap());
    let entered = async {
        while let Err(error) = begin_keyed(other, "another").await {
            assert_eq!(error.kind(), ErrorKind::IdempotencyInProgress);
            tokio::task::yield_now().await;
        }
    };
    timeout(HANG, entered).await.unwrap();
    cluster.close().await;
}

async fn begin_keyed(store: &FileStore, key: &str) -> Result<UploadSession> {
    let claims = UploadClaims::new(new().organization_id)
        .with_idempotency(IdempotencyKey::new("", key).unwrap());
    store.uploads().begin(claims).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_signed_upload_is_taken_once_whichever_servers_it_comes_to() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    let permit =
        crate::domain::access::signed_url::UploadPermit::new("nonce", one.now().plus(HANG))
            .unwrap();
    let claims = UploadClaims::new(new().organization_id).with_permit(permit);
    let begin = async |store: &FileStore| store.uploads().begin(claims.clone()).await;
    let mut session = begin(one).await.unwrap();
    let busy = begin(other).await.unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::SignatureUsed);
    assert!(busy.to_string().contains("still runs"), "{busy}");

    session.write("bytes".into()).await.unwrap();
    session.commit(new()).await.unwrap();
    let spent = begin(other).await.unwrap_err();
    assert!(spent.to_string().contains("has been made"), "{spent}");
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_quota_holds_for_all_servers_together() {
    let mut cluster = Cluster::of(0).await;
    for _ in 0..2 {
        cluster.add(|config| config.quota_bytes = Some(50)).await.unwrap();
    }
    let uploads = (0..20).map(|number| upload(&cluster.stores[number % 2], "ten bytes."));
    let outcomes = futures_util::future::join_all(uploads).await;
    let over = outcomes.iter().filter(
        |outcome| matches!(outcome, Err(error) if error.kind() == ErrorKind::QuotaExceeded),
    );
    assert_eq!(over.count(), 15);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 5);
    cluster.assert_sound().await;
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn servers_share_the_work_and_do_none_of_it_twice() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    let binding = NewBinding {
        organization: 42.try_into().unwrap(),
        organization_name: "x".into(),
        provider: "far".parse().unwrap(),
        sync_enabled: true,
    };
    one.bindings().create(binding).await.unwrap();
    let mut records = Vec::new();
    for number in 0..60 {
        records.push(upload(&cluster.stores[number % 2], "bytes").await.unwrap());
    }

    let sync = |store: &FileStore| {
        let store = store.clone();
        async move { store.admin().sync(Arc::new(NoProgress)).await.unwrap() }
    };
    let (mine, theirs) = tokio::join!(sync(one), sync(other));
    assert_eq!((mine.synced + theirs.synced, mine.failed + theirs.failed), (60, 0));
    for record in &records {
        assert_eq!(read(other, record.file_id).await.unwrap(), "bytes");
        other.scoped(&Scope::All).delete(record.file_id).await.unwrap();
    }

    let (mine, theirs) =
        tokio::join!(one.admin().purge(&NoProgress), other.admin().purge(&NoProgress));
    let (mine, theirs) = (mine.unwrap(), theirs.unwrap());
    assert_eq!((mine.purged + theirs.purged, mine.failed + theirs.failed), (60, 0));
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn one_server_at_a_time_checks_the_store() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    upload(one, "bytes").await.unwrap();
    let check = one.inner.background.begin_asked_check().await.unwrap();
    let refused = other.admin().fsck(FsckOptions::default(), &|| false, &NoProgress).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("on another server"), "{refused}");
    drop(check);

    let entered = async {
        while other.inner.background.begin_asked_check().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(HANG, entered).await.unwrap();
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn every_server_shows_a_migration_and_can_stop_it() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    let organization: OrganizationNumber = 42.try_into().unwrap();
    let id = organization.into();
    let (far, now) = ("far".parse().unwrap(), one.now());
    let running = one.inner.background.begin_migration(&id, &far, now).await.unwrap();
    running.progress().plan(Stored { files: 9, bytes: 90 });

    let status = other.admin().migrate_status(organization).await.unwrap().running.unwrap();
    assert_eq!((status.to.as_str(), status.files, status.bytes), ("far", 0, 0));
    assert_eq!(status.started_at, Some(now));
    let namesake = other.admin().migrate_status(4.try_into().unwrap()).await.unwrap();
    assert_eq!(namesake.running, None, "42 begins with 4");
    running.progress().add(7);
    let shown = async {
        while other.admin().overview().await.migrations[0].1.bytes != 7 {
            tokio::task::yield_now().await;
        }
    };
    timeout(HANG, shown).await.unwrap();
    let planned = other.admin().overview().await.migrations[0].1.planned;
    assert_eq!(planned, Some(Stored { files: 9, bytes: 90 }));

    assert!(other.admin().migrate_stop(organization).await.unwrap());
    let stopped = async {
        while !running.progress().is_told_to_stop() {
            tokio::task::yield_now().await;
        }
    };
    timeout(HANG, stopped).await.unwrap();
    running.finish().await;
    assert_eq!(other.admin().migrate_status(organization).await.unwrap().running, None);
    assert!(!other.admin().migrate_stop(organization).await.unwrap());
    other.inner.background.begin_migration(&id, &far, now).await.unwrap().finish().await;
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn every_server_shows_a_check_and_can_stop_it() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    let check = one.inner.background.begin_asked_check().await.unwrap();
    check.progress().show("blobs", 1, 2, 3);
    let shown = async {
        loop {
            let running = other.admin().fsck_status().await.unwrap().running.unwrap();
            if running.part == "blobs" {
                return running;
            }
        }
    };
    let shown = timeout(HANG, shown).await.unwrap();
    assert_eq!((shown.checked_files, shown.checked_names, shown.found), (1, 2, 3));
    assert!(!shown.is_scrub);

    assert!(other.admin().fsck_stop().await.unwrap());
    let stopped = async {
        while !check.progress().is_told_to_stop() {
            tokio::task::yield_now().await;
        }
    };
    timeout(HANG, stopped).await.unwrap();
    check.finish().await;
    assert_eq!(other.admin().fsck_status().await.unwrap().running, None);
    assert!(!other.admin().fsck_stop().await.unwrap());
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn files_in_a_private_directory_keep_a_store_from_being_shared() {
    let mut cluster = Cluster::of(0).await;
    let alone = |config: &mut StoreConfig| {
        let MetadataPlace::Postgres(place) = &mut config.metadata else { panic!("{config:?}") };
        place.only_server = true;
        config.providers.clear();
    };
    cluster.add(alone).await.unwrap();
    upload(&cluster.stores[0], "on the disk").await.unwrap();

    let error = cluster.add(|_| {}).await.unwrap_err();
    assert_eq!(error.details().field.as_deref(), Some("postgres.only_server"), "{error}");
    assert!(error.to_string().contains("still in a private directory"), "{error}");
    let without_backend = |config: &mut StoreConfig| config.providers.clear();
    let error = cluster.add(without_backend).await.unwrap_err();
    assert!(error.to_string().contains("set local.backend"), "{error}");
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_clock_that_goes_wrong_keeps_a_server_out() {
    let cluster = Cluster::of(1).await;
    let ahead = crate::domain::time::clock::Timestamp::now().plus(Duration::from_mins(1));
    let clock = crate::domain::time::clock::ManualClock::at(ahead);
    let own = tempfile::tempdir().unwrap();
    let config = config(address(), cluster.schema.name(), cluster.shared.path());
    let builder = FileStore::builder(own.path()).config(config).clock(clock.clock());
    let error = builder.open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unusable);
    assert!(error.to_string().contains("clocks"), "{error}");
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn an_erasure_through_one_server_ends_uploads_of_another_one() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    let organization = new().organization_id;
    let mut session = other.uploads().begin_unclaimed();
    session.write("bytes".into()).await.unwrap();
    one.admin().erase_organization(&organization, &|| false, &NoProgress).await.unwrap();
    let refused = session.commit(new()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);

    let heard = async {
        while upload(other, "bytes").await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(HANG, heard).await.expect("the other one hears of it");
    cluster.close().await;
}
