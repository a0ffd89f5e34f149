//! No listing and no worker's query reads a whole table, or sorts more than it was given.

use std::fmt::Write as _;

use tokio_postgres::Client;

use super::super::inspection;
use super::*;
use crate::metadata::contract;
use crate::metadata::copying::TABLES;
use crate::metadata::postgres::members::{leftovers, member, servers};
use crate::metadata::postgres::tables::{
    bindings, copying, damage, erasures, events, file_writes, files, holdings, idempotency, keys,
    listing, organizations, resumable_writes, resumables, signing, terms, usage,
};
use crate::metadata::postgres::work::{
    backlog, destinations, dropped, explaining, holds, intents, leases, purges, receipts, syncs,
    webhooks,
};

/// Tables that grow with the number of files.
const LARGE: [&str; 9] = [
    "files",
    "file_terms",
    "blob_gc",
    "write_intents",
    "idempotency",
    "purge_receipts",
    "removed_blobs",
    "webhook_failures",
    "events",
];

/// Every listing statement.
fn listings() -> Vec<String> {
    let all = contract::plans::listings().into_iter();
    all.map(|(filter, index, is_within_one)| listing::query(index, is_within_one, &filter))
        .collect()
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
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn no_query_scans() {
    let (_metadata, schema) = fresh();
    let pool = crate::metadata::postgres::session::pool::pool(&schema.options()).unwrap();
    let client = pool.get().await.unwrap();
    let fixed = [
        files::BY_ID,
        files::WITHIN,
        files::SEVERAL,
        files::SEVERAL_WITHIN,
        files::LOCAL_KEYS,
        usage::STORED_BYTES,
        usage::USAGE,
        usage::STANDINGS,
        organizations::SUB_SYSTEMS,
        organizations::USAGES,
        file_writes::EXPECTED,
        file_writes::UPDATE,
        file_writes::MOVE,
        files::NOTE_THUMBHASH,
        terms::FORGET,
        idempotency::GET,
        idempotency::FORGET,
        webhooks::ONE,
        webhooks::EDIT,
        webhooks::ROTATE,
        webhooks::SET_DISABLED,
        webhooks::RESUME,
        webhooks::SET_PLACE,
        webhooks::DELETE,
        webhooks::DELETE_LANE,
        webhooks::DELETE_FAILURES,
        webhooks::lanes::CLAIM,
        webhooks::lanes::LANE,
        webhooks::lanes::RELEASE,
        webhooks::lanes::SAVE,
        webhooks::failures::REPLACE_FAILURE,
        webhooks::failures::END_FAILURE,
        webhooks::failures::SET_FAILURE,
        webhooks::failures::NEXT_OF_FILE,
        webhooks::failures::LET_GO,
        webhooks::failures::FAILING,
        webhooks::failures::LIVE,
        webhooks::failures::NEXT_DUE,
        webhooks::failures::DUE,
        webhooks::failures::FAILURES,
        webhooks::failures::FAILURE_OF,
        webhooks::failures::ANY_OVER,
        webhooks::failures::FORGET,
        webhooks::failures::FORGET_EVENTS_OF,
        webhooks::lanes::TAKE,
        webhooks::lanes::RENEW,
        resumables::GET,
        resumables::BY_KEY,
        resumables::OF_BLOB,
        resumables::OF_ORGANIZATION,
        resumables::OF_ALL,
        resumables::LIVE,
        resumables::PARTS,
        resumables::LAST_PARTS,
        resumables::COMPLETING,
        resumables::STRANDED,
        resumables::DUE,
        resumables::ENDED,
        resumables::FORGET,
        resumables::FORGET_ENDED,
        resumable_writes::CHANGE,
        resumable_writes::FINISH,
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
        purges::EXPIRE,
        purges::UNCLAIMED,
        purges::EXPIRE_OF,
        purges::UNCLAIMED_OF,
        purges::CLAIMED_OF,
        purges::ANY_OF,
        purges::ANY_DELETED,
        backlog::COUNT_OF,
        backlog::EXPIRED_OF,
        purges::UNCLAIMED_BEHIND,
        purges::CLAIMED,
        purges::ANY_UNCLAIMED,
        purges::ANY_UNCLAIMED_BEHIND,
        purges::ANY_CLAIMED,
        purges::CLAIM,
        purges::FINISH,
        purges::FAIL,
        purges::AWAIT,
        dropped::GO_ON,
        dropped::LOCK_THEM,
        leases::RENEW_PURGES,
        leases::RELEASE_PURGES,
        leases::CLEAR_PURGES,
        leases::END_WAITS_OF_PURGES,
        backlog::EXPIRED,
        backlog::NEXT_UNCLAIMED,
        backlog::NEXT_CLAIMED,
        backlog::COUNT_UNCLAIMED,
        backlog::COUNT_CLAIMED,
        backlog::UNCLAIMED,
        backlog::CLAIMED,
        backlog::NEXT_DROPPED,
        backlog::DROPPED,
        backlog::PENDING,
        backlog::SYNCING,
        dropped::DUE,
        backlog::COUNT_DUE,
        dropped::OF_FILES,
        dropped::FORGET_FILES,
        dropped::FILES,
        dropped::FINISH,
        dropped::NOTE_ABSENCE,
        dropped::FAIL,
        dropped::HASTEN,
        leases::END_WAITS_OF_BLOBS,
        dropped::CLAIMABLE,
        dropped::CLAIM,
        leases::RENEW_BLOBS,
        leases::RELEASE_BLOBS,
        leases::CLEAR_BLOBS,
        dropped::STILL,
        member::IS_MEMBER,
        leftovers::STILL_GONE,
        leftovers::END_PURGES,
        leftovers::END_SYNCS,
        leftovers::END_DROPPED,
        leftovers::END_NOTES,
        leftovers::END_ENTRIES,
        servers::SEEN,
        servers::ENTER,
        servers::LEAVE,
        servers::SHOW,
        servers::SHOWN,
        servers::TELL_TO_STOP,
        receipts::NOTE_DROPPED,
        receipts::KEEP,
        explaining::WORK,
        explaining::WORK_WITHIN,
        explaining::REPLACED,
        explaining::WRITES,
        receipts::ONE,
        receipts::REMOVED,
        receipts::COUNT,
        receipts::DROPPED,
        receipts::NOTED,
        receipts::FORGET,
        receipts::FORGET_BLOBS,
        servers::ABSENT_SINCE,
        destinations::PAIRS,
        syncs::WAITING,
        syncs::SETTLE,
        syncs::DUE,
        syncs::OVERDUE,
        syncs::RELEASE_OVERDUE,
        leases::RELEASE_SYNCS,
        syncs::CLAIMABLE,
        syncs::CLAIM,
        leases::RENEW_SYNCS,
        syncs::FAIL,
        leases::END_WAITS_OF_SYNCS,
        syncs::ENQUEUE_TO,
        syncs::RETRY,
        syncs::QUEUE_OF,
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
        events::NEWEST,
        events::FORWARD,
        events::BACKWARD,
        events::FORWARD_OF,
        events::BACKWARD_OF,
        events::FIRST,
        events::FORGET,
        events::BLANK,
        erasures::HASTEN_FILES,
        erasures::HASTEN_CLAIMED,
        erasures::HASTEN_DROPPED,
    ];

    let queries = fixed.into_iter().chain(inspection::QUERIES.iter().copied());
    for query in queries.map(str::to_owned).chain(listings()) {
        assert_no_scan(&plan(&client, &query).await, &query);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_claim_during_a_snapshot_does_not_pass_the_files_that_are_held() {
    let (_metadata, schema) = fresh();
    let pool = crate::metadata::postgres::session::pool::pool(&schema.options()).unwrap();
    let client = pool.get().await.unwrap();
    for query in [purges::UNCLAIMED_BEHIND, purges::ANY_UNCLAIMED_BEHIND] {
        let plan = plan(&client, query).await;
        let begins_behind =
            |step: &str| step.contains("Index Cond:") && step.contains("(row_id > $");
        assert!(plan.contains("using files_unclaimed_rows"), "{plan}");
        assert!(plan.lines().any(begins_behind), "{plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn listings_and_claims_come_in_the_order_of_their_index() {
    let (_metadata, schema) = fresh();
    let pool = crate::metadata::postgres::session::pool::pool(&schema.options()).unwrap();
    let client = pool.get().await.unwrap();
    let claims = [
        purges::EXPIRE,
        purges::UNCLAIMED,
        purges::UNCLAIMED_BEHIND,
        purges::CLAIMED,
        receipts::REMOVED,
        receipts::FORGET,
        receipts::FORGET_BLOBS,
        servers::ABSENT_SINCE,
        dropped::DUE,
        dropped::CLAIMABLE,
        syncs::WAITING,
        syncs::RETRY,
        holdings::ELSEWHERE,
        intents::WITHDRAW_OLD,
        idempotency::FORGET,
        events::NEWEST,
        events::FORWARD,
        events::BACKWARD,
        events::FORWARD_OF,
        events::BACKWARD_OF,
        events::FIRST,
    ];

    let pages = TABLES.iter().map(|table| copying::query(table, table.key));
    for query in listings().into_iter().chain(claims.map(str::to_owned)).chain(pages) {
        let plan = plan(&client, &query).await;
        assert!(!plan.contains("Sort"), "{plan}{query}");
    }
}
