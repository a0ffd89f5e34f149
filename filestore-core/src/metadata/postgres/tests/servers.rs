//! Several servers on one database.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};

use super::*;
use crate::domain::provider::ProviderCode;
use crate::metadata::contract::syncs::bind;
use crate::metadata::contract::{
    at, change, deleted, get, insert, lease, organization, put, put_deleted, ready, replaced,
};
use crate::metadata::postgres::session::sql::Lock;
use crate::metadata::prelude::*;
use crate::metadata::{DueFiles, InsertFiles, Inserted, Purged, Updated};

fn several() -> (Vec<PostgresMetadata>, Schema) {
    let schema = Schema::new();
    ((0..3).map(|_| schema.open()).collect(), schema)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_quota_is_not_exceeded_by_a_race() {
    let (servers, _schema) = several();
    let calls = (0..60).map(|number| {
        let limited = InsertFiles {
            quota_bytes: Some(200),
            quota_files: Some(1000),
            ..insert([ready("acme")])
        };
        servers[number % servers.len()].insert_files(limited)
    });
    let outcomes = try_join_all(calls).await.unwrap();
    let done = outcomes.iter().filter(|outcome| **outcome == Inserted::Done).count();
    let over = outcomes.iter().filter(|outcome| **outcome == Inserted::OverQuota).count();
    assert_eq!((done, over), (20, 40));
    assert_eq!(servers[0].usage(&organization("acme")).await.unwrap().total().bytes, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_change_through_one_server_is_read_through_another() {
    let (servers, _schema) = several();
    let mut record = put(&servers[0], ready("acme")).await;
    for round in 1..30 {
        let (one, other) = (&servers[round % 3], &servers[(round + 1) % 3]);
        assert_eq!(get(one, record.file_id).await.as_deref(), Some(&record));
        let next = replaced(&record, 5, at(i64::try_from(round).unwrap()));
        let updated = one.update_file(change(&record, next.clone())).await.unwrap();
        assert_eq!(updated, Updated::Done);
        assert_eq!(get(other, record.file_id).await.as_deref(), Some(&next));
        record = next;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn no_work_is_given_to_two_servers() {
    let (servers, _schema) = several();
    bind(&servers[0], 7, "s3").await;
    for _ in 0..30 {
        put(&servers[0], ready("7")).await;
        put_deleted(&servers[0], ready("acme"), at(0)).await;
    }

    let (local, s3) = (ProviderCode::local(), ["s3".parse().unwrap()]);
    let claims = servers.iter().enumerate().map(async |(number, server)| {
        let owner = format!("server {number}");
        let lease = lease(&owner, at(1), at(1000));
        let (mut purges, mut syncs) = (Vec::new(), Vec::new());
        loop {
            let purged = server
                .claim_purges(lease, &local, DueFiles::marked_before(at(1)), 4)
                .await
                .unwrap();
            let synced = server.claim_syncs(lease, &s3, &[], None, 4).await.unwrap();
            if purged.is_empty() && synced.is_empty() {
                return (purges, syncs);
            }
            purges.extend(purged.iter().map(|claim| claim.record.file_id));
            syncs.extend(synced.iter().map(|claim| claim.record.file_id));
        }
    });

    let (purges, syncs): (Vec<_>, Vec<_>) = join_all(claims).await.into_iter().unzip();
    for claimed in [purges.concat(), syncs.concat()] {
        let distinct: BTreeSet<_> = claimed.iter().collect();
        assert_eq!((claimed.len(), distinct.len()), (30, 30));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn totals_hold_whatever_happens_at_once() {
    let (servers, _schema) = several();
    let names = ["a", "b", "7"];
    let calls = (0..90).map(async |number: usize| {
        let (one, other) = (&servers[number % 3], &servers[(number + 1) % 3]);
        let record = put(one, ready(names[number % names.len()])).await;
        let next = replaced(&record, 50, at(1));
        one.update_file(change(&record, next.clone())).await.unwrap();
        if number.is_multiple_of(2) {
            other.update_file(change(&next, deleted(&next, at(2)))).await.unwrap();
        }
        other.settle_sync(5).await.unwrap();

        let owner = format!("run {number}");
        let lease = lease(&owner, at(3), at(999));
        let claims = other
            .claim_purges(lease, &ProviderCode::local(), DueFiles::marked_before(at(3)), 5)
            .await
            .unwrap();
        let gone: Vec<_> = claims.iter().map(|claim| Purged::of(claim.record.file_id)).collect();
        one.finish_purges(&owner, &gone, at(4)).await.unwrap()
    });
    let gone: u64 = join_all(calls).await.iter().sum();

    let server = &servers[0];
    let mut files = 0;
    for name in names {
        assert_eq!(server.inspection().drifted_totals(Some(name)).await.unwrap(), []);
        files += server.usage(&organization(name)).await.unwrap().total().files;
    }
    assert_eq!(server.inspection().drifted_totals(None).await.unwrap(), []);
    assert_eq!(files, 90 - gone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn connections_stay_within_their_number() {
    let schema = Schema::new();
    let address = std::env::var(ADDRESS).unwrap();
    let name = format!("{}_counted", schema.options().schema);
    let options = PostgresOptions::new(&format!("{address}?application_name={name}")).unwrap();
    let options = options
        .with_schema(schema.options().schema)
        .with_connections(3)
        .with_durability(Durability::Process);
    // However slow the machine is: a call that waits too long is refused.
    let options = PostgresOptions { connect_timeout: Duration::from_mins(1), ..options };
    let metadata = PostgresMetadata::open(&options).await.unwrap();

    let calls = (0..200).map(async |_| put(&metadata, ready("acme")).await);
    join_all(calls).await;
    let watcher = crate::metadata::postgres::session::pool::pool(&schema.options())
        .unwrap()
        .get()
        .await
        .unwrap();
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
    let connections: i64 = watcher.query_one(count, &[&name]).await.unwrap().get(0);
    assert!((1..=3).contains(&connections), "{connections}");
    assert_eq!(metadata.usage(&organization("acme")).await.unwrap().total().files, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn an_organization_that_waits_for_itself_leaves_connections_to_others() {
    let (metadata, schema) = fresh();
    let limited = |name: &str| InsertFiles { quota_files: Some(1000), ..insert([ready(name)]) };
    let pool = crate::metadata::postgres::session::pool::pool(&schema.options()).unwrap();
    let other = pool.get().await.unwrap();
    let lock = Lock::Usage(&organization("acme")).number(metadata.store_id());
    other.batch_execute(&format!("BEGIN; SELECT pg_advisory_xact_lock({lock})")).await.unwrap();

    let waiting = join_all((0..20).map(|_| metadata.insert_files(limited("acme"))));
    let others = async {
        let query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
             AND ((classid::bigint << 32) | objid::bigint) = $1";
        let mut waiting: i64 = 0;
        // Half of the writes, which have seven of the eight connections.
        while waiting < 4 {
            waiting = other.query_one(query, &[&lock]).await.unwrap().get(0);
        }
        for _ in 0..10 {
            let inserted = metadata.insert_files(limited("other")).await.unwrap();
            assert_eq!(inserted, Inserted::Done);
        }
        other.batch_execute("ROLLBACK").await.unwrap();
    };
    let (inserted, ()) = tokio::join!(waiting, others);
    assert!(inserted.into_iter().all(|outcome| outcome.unwrap() == Inserted::Done));
    let _ = schema;
}
