//! No listing and no worker's query reads a whole table, or sorts more than it was given.

use std::fmt::Write as _;

use tokio_postgres::Client;

use super::super::{
    backlog, bindings, copying, damage, dropped, entries, erasure, files, holdings, holds,
    idempotency, inspection, intents, keys, leftovers, listing, purge, receipts, servers, signing,
    sync, terms,
};
use super::*;
use crate::domain::listing::ListFilter;
use crate::domain::status::PurgeStatus;
use crate::metadata::copying::TABLES;
use crate::metadata::paging::Index;

/// Tables that grow with the number of files.
const LARGE: [&str; 7] = [
    "files",
    "file_terms",
    "blob_gc",
    "write_intents",
    "idempotency",
    "purge_receipts",
    "removed_blobs",
];

/// Every listing statement.
fn listings() -> Vec<String> {
    let mut queries = Vec::new();
    for sub_system in [None, Some("a".parse().unwrap())] {
        for purge_status in [None, Some(PurgeStatus::SystemPurge)] {
            let filter = ListFilter {
                sub_system: sub_system.clone(),
                purge_status,
                ..ListFilter::default()
            };
            queries.push(listing::query(Index::Plain, false, &filter));
            for index in [Index::Plain, Index::Type, Index::Term, Index::Names, Index::Name] {
                queries.push(listing::query(index, true, &filter));
            }
        }
    }
    queries
}

/// The generic plan of a statement, as a connection of the engine runs it.
async fn plan(client: &Client, query: &str) -> String {
    let parameters = (1..30).take_while(|number| query.contains(&format!("${number}"))).count();
    let nulls = vec!["NULL"; parameters].join(", ");
    let nulls = if nulls.is_empty() { nulls } else { format!("({nulls})") };

    let prepared = format!("SET plan_cache_mode TO force_generic_plan; PREPARE it AS {query}");
    client.batch_execute(&prepared).await.unwrap_or_else(|error| panic!("{error:?}: {query}"));
    let explain = format!("EXPLAIN (COSTS OFF) EXECUTE it{nulls}");
    let mut plan = String::new();
    for row in client.query(&explain, &[]).await.unwrap() {
        writeln!(plan, "{}", row.get::<_, String>(0)).unwrap();
    }
    client.batch_execute("DEALLOCATE it").await.unwrap();
    plan
}

fn assert_no_scan(plan: &str, query: &str) {
    for table in LARGE {
        for scan in ["Seq Scan on", "Bitmap Heap Scan on"] {
            let wrong = format!("{scan} {table}");
            assert!(!plan.lines().any(|step| step.trim().ends_with(&wrong)), "{plan}{query}");
        }
    }
    assert!(plan.contains("Index"), "no index: {plan}{query}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_query_scans() {
    let (_metadata, schema) = fresh();
    let pool = super::super::pool::pool(&schema.options()).unwrap();
    let client = pool.get().await.unwrap();
    let fixed = [
        files::BY_ID,
        files::WITHIN,
        files::LOCAL_KEYS,
        files::STORED_BYTES,
        files::USAGE,
        files::EXPECTED,
        files::UPDATE,
        files::MOVE,
        files::NOTE_THUMBHASH,
        terms::FORGET,
        idempotency::GET,
        idempotency::FORGET,
        bindings::ACTIVE,
        bindings::ALL_ACTIVE,
        bindings::NEWEST,
        bindings::LIST_OF_ONE,
        bindings::UPDATE,
        keys::ONE,
        keys::FORGET,
        keys::REVOKE,
        keys::ROTATE,
        keys::NARROW,
        keys::NOTE_USES,
        holds::RENEW,
        holds::NARROW,
        holds::RELEASE,
        purge::EXPIRE,
        purge::UNCLAIMED,
        purge::UNCLAIMED_BEHIND,
        purge::CLAIMED,
        purge::ANY_UNCLAIMED,
        purge::ANY_UNCLAIMED_BEHIND,
        purge::ANY_CLAIMED,
        purge::CLAIM,
        purge::FINISH,
        purge::FAIL,
        purge::AWAIT,
        purge::GO_ON,
        purge::LOCK_THEM,
        purge::RENEW,
        purge::RELEASE,
        purge::CLEAR_LEASES,
        purge::END_WAITS,
        purge::EXPIRED,
        purge::NEXT_UNCLAIMED,
        purge::NEXT_CLAIMED,
        purge::COUNT_UNCLAIMED,
        purge::COUNT_CLAIMED,
        backlog::UNCLAIMED,
        backlog::CLAIMED,
        backlog::NEXT_DROPPED,
        backlog::DROPPED,
        backlog::PENDING,
        backlog::SYNCING,
        dropped::DUE,
        dropped::COUNT_DUE,
        dropped::OF_FILES,
        dropped::FORGET_FILES,
        dropped::FILES,
        dropped::FINISH,
        dropped::NOTE_ABSENCE,
        dropped::FAIL,
        dropped::HASTEN,
        dropped::END_WAITS,
        dropped::CLAIMABLE,
        dropped::CLAIM,
        dropped::RENEW,
        dropped::RELEASE,
        dropped::CLEAR_LEASES,
        dropped::STILL,
        servers::IS_MEMBER,
        leftovers::STILL_GONE,
        leftovers::END_PURGES,
        leftovers::END_SYNCS,
        leftovers::END_DROPPED,
        leftovers::END_NOTES,
        leftovers::END_ENTRIES,
        entries::ENTER,
        entries::LEAVE,
        entries::SHOW,
        entries::SHOWN,
        entries::TELL_TO_STOP,
        receipts::NOTE_DROPPED,
        receipts::KEEP,
        receipts::ONE,
        receipts::REMOVED,
        receipts::COUNT,
        receipts::DROPPED,
        receipts::NOTED,
        receipts::FORGET,
        receipts::FORGET_BLOBS,
        receipts::ABSENT_SINCE,
        sync::PAIRS,
        sync::WAITING,
        sync::SETTLE,
        sync::DUE,
        sync::OVERDUE,
        sync::RELEASE_OVERDUE,
        sync::RELEASE,
        sync::CLAIMABLE,
        sync::CLAIM,
        sync::RENEW,
        sync::FAIL,
        sync::END_WAITS,
        sync::ENQUEUE_TO,
        sync::RETRY,
        damage::PURGE_NEVER,
        damage::SYNC_NEVER,
        holdings::ELSEWHERE,
        holdings::HOLDINGS,
        intents::END,
        intents::HAND_OVER,
        intents::WITHDRAW_OLD,
        intents::ANY_OLD,
        intents::RENEW,
        signing::REVOKE,
        signing::IS_USED,
        signing::FORGET_USED,
        erasure::HASTEN_FILES,
        erasure::HASTEN_CLAIMED,
        erasure::HASTEN_DROPPED,
    ];

    let queries = fixed.into_iter().chain(inspection::QUERIES.iter().copied());
    for query in queries.map(str::to_owned).chain(listings()) {
        assert_no_scan(&plan(&client, &query).await, &query);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_during_a_snapshot_does_not_pass_the_files_that_are_held() {
    let (_metadata, schema) = fresh();
    let pool = super::super::pool::pool(&schema.options()).unwrap();
    let client = pool.get().await.unwrap();
    for query in [purge::UNCLAIMED_BEHIND, purge::ANY_UNCLAIMED_BEHIND] {
        let plan = plan(&client, query).await;
        let begins_behind =
            |step: &str| step.contains("Index Cond:") && step.contains("(row_id > $");
        assert!(plan.contains("using files_unclaimed_rows"), "{plan}");
        assert!(plan.lines().any(begins_behind), "{plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listings_and_claims_come_in_the_order_of_their_index() {
    let (_metadata, schema) = fresh();
    let pool = super::super::pool::pool(&schema.options()).unwrap();
    let client = pool.get().await.unwrap();
    let claims = [
        purge::EXPIRE,
        purge::UNCLAIMED,
        purge::UNCLAIMED_BEHIND,
        purge::CLAIMED,
        receipts::REMOVED,
        receipts::FORGET,
        receipts::FORGET_BLOBS,
        receipts::ABSENT_SINCE,
        dropped::DUE,
        dropped::CLAIMABLE,
        sync::WAITING,
        sync::RETRY,
        holdings::ELSEWHERE,
        intents::WITHDRAW_OLD,
        idempotency::FORGET,
    ];

    let pages = TABLES.iter().map(|table| copying::query(table, table.key));
    for query in listings().into_iter().chain(claims.map(str::to_owned)).chain(pages) {
        let plan = plan(&client, &query).await;
        assert!(!plan.contains("Sort"), "{plan}{query}");
    }
}
