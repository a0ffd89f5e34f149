//! Servers that join, live, sleep and go.

use std::time::Duration;

use super::super::ServerIdentity;
use super::*;
use crate::domain::access::key::{ApiKey, KeyDigest, KeyScope};
use crate::domain::access::scope::Scope;
use crate::domain::file::status::SyncStatus;
use crate::domain::id::KeyId;
use crate::domain::provider::ProviderCode;
use crate::metadata::contract::syncs::bind;
use crate::metadata::contract::{
    at, get, in_cloud, insert, lease, note, put, put_deleted, ready, replaced,
};
use crate::metadata::prelude::*;
use crate::metadata::{
    Claims, DroppedBlob, DueFiles, Inserted, Keys as _, Purged, Servers, StoredKey, UpdateFile,
};
use crate::tasks::HANG;

/// So long that no test waits for it: a server is taken for gone when its test says so.
const PATIENT: Duration = Duration::from_hours(1);

/// So short that a test can wait for it.
const HASTY: Duration = Duration::from_secs(2);

async fn try_join(
    schema: &Schema,
    name: &str,
    is_only: bool,
    timeout: Duration,
) -> Result<PostgresMetadata> {
    let options = schema.options().with_server_timeout(timeout).watched();
    let metadata = PostgresMetadata::open(&options).await?;
    metadata.join(ServerIdentity { name: name.to_owned(), is_only }).await?;

    // Its first word is not to come behind what a test says of it.
    let query = format!("servers WHERE server = '{name}' AND seen_at > began_at");
    while schema.count(&query) == 0 {
        tokio::task::yield_now().await;
    }
    Ok(metadata)
}

async fn join(schema: &Schema, name: &str) -> PostgresMetadata {
    try_join(schema, name, false, PATIENT).await.unwrap()
}

/// The servers that an engine has joined.
fn joined(metadata: &PostgresMetadata) -> &dyn Servers {
    metadata.servers().unwrap()
}

/// Makes a server look as if it had not been seen for long, once it has said that it is there.
fn forget_to_see(schema: &Schema, name: &str) {
    schema.run(&format!(
        "UPDATE servers SET seen_at = clock_timestamp() - interval '1 day' WHERE server = '{name}'"
    ));
}

fn local() -> ProviderCode {
    ProviderCode::local()
}

/// Replaces the blob of a new file, and returns the file: the blob before is dropped, and due.
async fn drop_a_blob(metadata: &PostgresMetadata) {
    let record = put(metadata, ready("acme")).await;
    let dropped = DroppedBlob {
        file_id: record.file_id,
        provider: local(),
        key: record.blob.key.clone(),
        content: None,
        not_before: at(0),
    };
    let next = replaced(&record, 5, at(1));
    let update =
        UpdateFile { drop_blob: Some(dropped), ..crate::metadata::contract::change(&record, next) };
    metadata.update_file(update).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn what_a_server_has_under_way_is_its_own_while_it_lives_and_anybodys_once_it_is_gone() {
    let schema = Schema::new();
    let (one, other) = (join(&schema, "one").await, join(&schema, "other").await);
    let s3: [ProviderCode; 1] = ["s3".parse().unwrap()];
    bind(&one, 7, "s3").await;
    let deleted = put_deleted(&one, ready("acme"), at(0)).await;
    let waiting = put(&one, ready("7")).await;
    drop_a_blob(&one).await;
    let noted = in_cloud(ready("7"), "s3");
    note(&one, &noted).await;

    let (owner, others) = (joined(&one).run_name(), joined(&other).run_name());
    let mine = lease(&owner, at(1), at(1_000_000));
    assert_eq!(
        one.claim_purges(mine, &local(), DueFiles::marked_before(at(1)), 9).await.unwrap().len(),
        1
    );
    let copies = one.claim_syncs(mine, &s3, &[], None, 9).await.unwrap();
    let blobs = one.claim_blobs(mine, &local(), 9).await.unwrap();
    assert_eq!((copies.len(), blobs.len()), (1, 1));
    assert!(joined(&one).enter("a migration", &owner).await.unwrap());

    let theirs = lease(&others, at(2), at(1_000_000));
    assert_eq!(joined(&other).end_gone(at(50)).await.unwrap(), 0);
    assert!(
        other
            .claim_purges(theirs, &local(), DueFiles::marked_before(at(1)), 9)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(other.claim_blobs(theirs, &local(), 9).await.unwrap().is_empty());
    assert!(!joined(&other).enter("a migration", &others).await.unwrap());
    assert!(joined(&other).tell_to_stop("a migration").await.unwrap());
    assert!(
        joined(&one).show("a migration", &owner, "half of it").await.unwrap(),
        "it is told to stop"
    );
    assert_eq!(joined(&other).shown("a ").await.unwrap().len(), 1);

    forget_to_see(&schema, "one");
    assert!(!joined(&other).tell_to_stop("a migration").await.unwrap(), "nobody would hear it");
    assert_eq!(joined(&other).shown("a ").await.unwrap(), []);
    assert!(
        joined(&other).enter("a migration", &others).await.unwrap(),
        "without waiting for anybody"
    );
    assert_eq!(joined(&other).end_gone(at(50)).await.unwrap(), 1);
    assert_eq!(joined(&other).end_gone(at(50)).await.unwrap(), 0);
    let claims =
        other.claim_purges(theirs, &local(), DueFiles::marked_before(at(1)), 9).await.unwrap();
    assert_eq!(claims[0].record.file_id, deleted.file_id);
    assert_eq!(other.claim_syncs(theirs, &s3, &[], None, 9).await.unwrap().len(), 1);
    assert_eq!(other.claim_blobs(theirs, &local(), 9).await.unwrap().len(), 1);
    let withdrawn = other.due_blobs(&s3[0], at(50), 9).await.unwrap();
    let withdrawn: Vec<_> = withdrawn.iter().map(|due| &due.blob.key).collect();
    assert_eq!(withdrawn.len(), 2, "that of the request, and that of the copy");
    assert!(withdrawn.contains(&&noted.blob.key) && withdrawn.contains(&&copies[0].key));

    // It wakes up, and finds that nothing of all that is its own any more.
    let purged = [Purged::of(deleted.file_id)];
    let finished = while_busy(async || one.finish_purges(&owner, &purged, at(3)).await);
    assert_eq!(finished.await, 0);
    one.finish_blobs(&blobs, at(3)).await.unwrap();
    one.postpone_blob(&blobs[0], at(9)).await.unwrap();
    one.release_claims(Claims::Purges, &owner).await.unwrap();
    one.release_claims(Claims::Syncs, &owner).await.unwrap();
    joined(&one).leave("a migration", &owner).await.unwrap();
    assert!(get(&one, deleted.file_id).await.is_some());
    let copied = get(&one, waiting.file_id).await.unwrap();
    assert_eq!(copied.state.sync(), SyncStatus::Syncing, "the other server copies it");
    assert_eq!(one.insert_files(insert([noted])).await.unwrap(), Inserted::PlacementStale);
    assert!(!joined(&one).enter("a migration", &joined(&one).run_name()).await.unwrap());
    assert_eq!(other.finish_purges(&others, &purged, at(4)).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_server_that_was_taken_for_gone_changes_nothing_before_it_has_joined_again() {
    let schema = Schema::new();
    let (one, other) = (join(&schema, "one").await, join(&schema, "other").await);
    let record = put(&one, ready("acme")).await;
    forget_to_see(&schema, "one");
    assert_eq!(joined(&other).end_gone(at(0)).await.unwrap(), 1);

    // A server that says it is the only one keeps it out.
    other.close().await;
    drop(other);
    schema
        .run("INSERT INTO servers VALUES ('alone', nextval('server_epochs'), true, now(), now())");
    for _ in 0..3 {
        let error = one.insert_files(insert([ready("acme")])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{}", error.chain());
    }
    assert_eq!(get(&one, record.file_id).await.as_deref(), Some(&record), "reads go on");

    schema.run("DELETE FROM servers WHERE server = 'alone'");
    let inserted = while_busy(async || one.insert_files(insert([ready("acme")])).await);
    assert_eq!(inserted.await, Inserted::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn nothing_is_ended_while_a_write_of_the_server_is_under_way() {
    let schema = Schema::new();
    let (one, other) = (join(&schema, "one").await, join(&schema, "other").await);
    let pool = crate::metadata::postgres::session::pool::pool(&schema.options()).unwrap();
    let writing = pool.get().await.unwrap();
    let lock =
        crate::metadata::postgres::session::sql::Lock::WritersOf("one").number(one.store_id());
    let begin = format!("BEGIN; SELECT pg_advisory_xact_lock_shared({lock})");
    writing.batch_execute(&begin).await.unwrap();

    forget_to_see(&schema, "one");
    assert_eq!(joined(&other).end_gone(at(0)).await.unwrap(), 0);
    writing.batch_execute("COMMIT").await.unwrap();
    assert_eq!(joined(&other).end_gone(at(0)).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_start_ends_what_the_process_before_left_and_nothing_of_others() {
    let schema = Schema::new();
    let (before, other) = (join(&schema, "one").await, join(&schema, "other").await);
    for _ in 0..2 {
        put_deleted(&other, ready("acme"), at(0)).await;
    }
    let (lost, kept) = (joined(&before).run_name(), joined(&other).run_name());
    for (server, owner) in [(&before, &lost), (&other, &kept)] {
        let mine = lease(owner, at(1), at(1_000_000));
        assert_eq!(
            server
                .claim_purges(mine, &local(), DueFiles::marked_before(at(1)), 1)
                .await
                .unwrap()
                .len(),
            1
        );
    }
    assert!(
        joined(&before).enter("lost", &lost).await.unwrap()
            && joined(&other).enter("kept", &kept).await.unwrap()
    );
    let noted = in_cloud(ready("7"), "s3");
    note(&before, &noted).await;
    // As a killed process does: it says nothing.
    drop(before);

    let next = join(&schema, "one").await;
    joined(&next).end_earlier(at(9)).await.unwrap();
    let owner = joined(&next).run_name();
    let mine = lease(&owner, at(2), at(1_000_000));
    assert_eq!(
        next.claim_purges(mine, &local(), DueFiles::marked_before(at(1)), 9).await.unwrap().len(),
        1
    );
    assert!(
        joined(&next).enter("lost", &owner).await.unwrap()
            && !joined(&next).enter("kept", &owner).await.unwrap()
    );
    assert_eq!(next.due_blobs(&"s3".parse().unwrap(), at(9), 9).await.unwrap().len(), 1);

    joined(&next).end_earlier(at(9)).await.unwrap();
    assert!(
        !joined(&other).enter("lost", &kept).await.unwrap(),
        "what the present process does stays"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn beside_the_only_server_there_is_no_other() {
    let schema = Schema::new();
    let only = try_join(&schema, "only", true, HASTY).await.unwrap();
    let error = try_join(&schema, "second", false, HASTY).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("says that it is the only one"), "{error}");
    only.close().await;
    drop(only);

    let _one = try_join(&schema, "one", false, HASTY).await.unwrap();
    let _two = try_join(&schema, "two", false, HASTY).await.unwrap();
    let error = try_join(&schema, "only", true, HASTY).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("only_server says that there is none"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn the_only_server_waits_for_one_that_may_be_gone() {
    let schema = Schema::new();
    drop(try_join(&schema, "killed", true, HASTY).await.unwrap());
    try_join(&schema, "only", true, HASTY).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_process_whose_name_another_one_has_is_told_to_end() {
    let schema = Schema::new();
    let one = try_join(&schema, "one", false, HASTY).await.unwrap();
    let _copy = try_join(&schema, "one", false, HASTY).await.unwrap();
    let told = tokio::time::timeout(HANG, one.poisoned()).await.unwrap();
    assert!(told.contains("server-id"), "{told}");
    let error = one.insert_files(insert([ready("acme")])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
}

fn key() -> StoredKey {
    let key = ApiKey {
        id: KeyId::generate(at(0)),
        name: "k".into(),
        organizations: std::sync::Arc::new(Scope::All),
        scopes: [KeyScope::Read].into_iter().collect(),
        created_at: at(0),
        expires_at: None,
        rotated_at: None,
        old_valid_until: None,
        revoked_at: None,
        last_used_at: None,
    };
    StoredKey { key, digest: KeyDigest::of(b"text"), former: None }
}

/// Waits until a server knows another version of the secrets than `number`, without being asked.
async fn learns_more_than(server: &PostgresMetadata, number: i64) {
    let learns = async {
        while joined(server).known_secrets().number <= number {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG, learns).await.expect("it hears of a change");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn each_change_of_keys_is_heard_of_by_other_servers_or_found() {
    let schema = Schema::new();
    let (one, other) = (join(&schema, "one").await, join(&schema, "other").await);
    let before = joined(&other).secrets_version().await.unwrap();
    let key = key();
    one.insert_key(key.clone(), 9).await.unwrap();
    learns_more_than(&other, before.number).await;

    let asked = joined(&other).secrets_version().await.unwrap();
    assert!(asked.number > before.number && asked.as_of > before.as_of);
    one.note_key_uses(vec![(key.key.id, at(5))]).await.unwrap();
    assert_eq!(joined(&other).secrets_version().await.unwrap().number, asked.number);

    schema.run("UPDATE secrets_version SET version = version + 1");
    learns_more_than(&other, asked.number).await;
}
