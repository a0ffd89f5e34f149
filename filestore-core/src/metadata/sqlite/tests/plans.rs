//! No listing and no worker's query reads a whole table or sorts.

use rusqlite::{Connection, Statement, StatementStatus};

use super::super::inspection;
use super::*;
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::Status;
use crate::domain::provider::ProviderCode;
use crate::metadata::DueFiles;
use crate::metadata::contract::{self, at, lease, organization, put, put_deleted, ready};
use crate::metadata::prelude::*;
use crate::metadata::sqlite::session::store_id;
use crate::metadata::sqlite::tables::{
    bindings, damage, events, file_writes, files, holdings, idempotency, keys, listing,
    organizations, resumables, signing, terms, usage,
};
use crate::metadata::sqlite::work::{
    backlog, destinations, dropped, explaining, holds, intents, leases, purges, receipts, syncs,
    webhooks,
};

/// Every listing statement.
fn listings() -> Vec<String> {
    let all = contract::plans::listings().into_iter();
    all.flat_map(|(filter, index, is_within_one)| {
        Status::ALL.iter().map(move |status| listing::query(index, is_within_one, &filter, *status))
    })
    .collect()
}

fn plan(sql: &Connection, query: &str) -> Vec<String> {
    let mut statement = sql.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
    let mut rows = statement.raw_query();
    let mut plan = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        plan.push(row.get(3).unwrap());
    }
    plan
}

/// Every statement of the workers, and of the use cases that find one row.
fn statements() -> impl Iterator<Item = &'static str> {
    let fixed = [
        files::BY_ID,
        files::IS_OWNED,
        files::LOCAL_KEY,
        usage::STORED_BYTES,
        usage::USAGE,
        usage::STANDINGS,
        organizations::SUB_SYSTEMS,
        file_writes::EXPECTED,
        file_writes::UPDATE,
        files::NOTE_THUMBHASH,
        idempotency::GET,
        idempotency::TAKEN,
        idempotency::FORGET,
        resumables::GET,
        resumables::BY_KEY,
        resumables::OF_BLOB,
        resumables::OF_ORGANIZATION,
        resumables::OF_ALL,
        resumables::LIVE,
        resumables::COMPLETING,
        resumables::DUE,
        resumables::CHANGE,
        resumables::FINISH,
        resumables::FORGET,
        resumables::ENDED,
        resumables::FORGET_ENDED,
        resumables::TOTALS_OF,
        bindings::ACTIVE,
        bindings::NEWEST,
        bindings::LIST_OF_ONE,
        bindings::UPDATE,
        keys::ONE,
        keys::FORGET,
        keys::REVOKE,
        keys::ROTATE,
        keys::NOTE_USE,
        holds::RENEW,
        holds::NARROW,
        holds::RELEASE,
        events::FORWARD,
        events::BACKWARD,
        events::FORWARD_OF,
        events::BACKWARD_OF,
        events::FORGET,
        events::BLANK,
        purges::EXPIRE,
        purges::EXPIRE_OF,
        purges::UNCLAIMED,
        purges::UNCLAIMED_OF,
        purges::CLAIMED_OF,
        purges::ANY_OF,
        purges::ANY_DELETED,
        backlog::ALL_OF,
        backlog::EXPIRED_OF,
        purges::UNCLAIMED_BEHIND,
        purges::CLAIMED,
        purges::CLAIM,
        purges::FINISH,
        purges::FAIL,
        leases::CLEAR_PURGES,
        backlog::EXPIRED,
        purges::ANY_EXPIRED,
        purges::ANY_UNCLAIMED,
        purges::ANY_UNCLAIMED_BEHIND,
        purges::ANY_CLAIMED,
        purges::AWAIT,
        dropped::GO_ON,
        leases::RENEW_PURGES,
        leases::RELEASE_PURGES,
        leases::END_WAITS_OF_PURGES,
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
        dropped::OF_FILE,
        dropped::FORGET_FILE,
        dropped::FINISH,
        dropped::NOTE_ABSENCE,
        dropped::HASTEN,
        dropped::FILE,
        leases::END_WAITS_OF_BLOBS,
        dropped::FAIL,
        receipts::PUT,
        receipts::KEEP,
        explaining::WORK,
        explaining::REPLACED,
        explaining::WRITES,
        receipts::ONE,
        receipts::REMOVED,
        receipts::COUNT,
        receipts::DROPPED,
        receipts::NOTED,
        receipts::FORGET,
        receipts::FORGET_BLOBS,
        receipts::SPARE_BLOBS,
        destinations::NEXT_PAIR,
        syncs::WAITING,
        syncs::SETTLE,
        syncs::COUNTS,
        syncs::QUEUE_OF,
        syncs::DUE,
        syncs::OVERDUE,
        syncs::RELEASE,
        syncs::CLAIM,
        syncs::CLAIMED,
        leases::OWNED_SYNCS,
        leases::RENEW_SYNCS,
        syncs::FAIL,
        leases::END_WAITS_OF_SYNCS,
        syncs::ENQUEUE,
        syncs::ENQUEUE_TO,
        damage::PURGE_NEVER,
        damage::SYNC_NEVER,
        syncs::FAILED,
        holdings::ELSEWHERE,
        intents::STANDS,
        intents::END,
        intents::HAND_OVER,
        intents::RENEW,
        intents::OLD,
        store_id::ONE,
        signing::REVOKE,
        signing::IS_USED,
        signing::FORGET_USED,
        file_writes::MOVE,
        terms::FORGET,
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
    ];
    fixed.into_iter().chain(inspection::QUERIES.iter().copied())
}

#[tokio::test]
async fn no_query_scans_or_sorts() {
    let (metadata, _directory) = fresh();
    let queries: Vec<String> = statements().map(str::to_owned).chain(listings()).collect();
    let plans = move |sql: &Connection| {
        Ok(queries.into_iter().map(|query| (plan(sql, &query), query)).collect::<Vec<_>>())
    };

    for (plan, query) in metadata.readers.run("test", plans).await.unwrap() {
        assert!(plan.iter().any(|step| step.starts_with("SEARCH")), "no search: {plan:#?} {query}");
        for step in &plan {
            assert!(!step.contains("SCAN") && !step.contains("TEMP B-TREE"), "{step}: {query}");
        }
    }
}

/// Executes a statement with `value` for every parameter, whatever comes of it.
fn execute(statement: &mut Statement<'_>, value: i64) {
    for parameter in 1..=statement.parameter_count() {
        statement.raw_bind_parameter(parameter, value).unwrap();
    }
    let mut rows = statement.raw_query();
    while rows.next().is_ok_and(|row| row.is_some()) {}
}

#[tokio::test]
async fn no_statement_is_prepared_anew_for_other_values() {
    let (metadata, _directory) = fresh();
    let preparing = metadata.writer.run("test", |tx| {
        for query in statements() {
            let mut statement = tx.sql.prepare_cached(query)?;
            for value in 1..4 {
                execute(&mut statement, value);
            }
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{query}");
        }
        Ok(())
    });
    preparing.await.unwrap();
}

/// Steps that the statements of a claim have taken on a connection since the last look.
fn steps(sql: &Connection) -> i32 {
    let claims = [
        purges::UNCLAIMED,
        purges::UNCLAIMED_BEHIND,
        purges::ANY_UNCLAIMED,
        purges::ANY_UNCLAIMED_BEHIND,
        purges::CLAIMED,
        purges::ANY_CLAIMED,
        purges::UNCLAIMED_OF,
        purges::CLAIMED_OF,
        purges::ANY_OF,
    ];
    let taken = claims
        .map(|query| sql.prepare_cached(query).unwrap().reset_status(StatementStatus::VmStep));
    taken.iter().sum()
}

/// Inserts 3,000 copies of a row, with ids that no API would give.
fn multiply(directory: &TempDir, record: &FileRecord) {
    let vandal = Connection::open(file(directory)).unwrap();
    let columns = "SELECT group_concat(name) FROM pragma_table_info('files')";
    let columns: String = vandal.query_row(columns, [], |row| row.get(0)).unwrap();
    let clones = columns
        .replace("file_id", "file_id || n")
        .replace("blob_id", "blob_id || n")
        .replace("blob_key", "blob_key || n");
    let many = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000)
         INSERT INTO files ({columns}) SELECT {clones} FROM files, numbers WHERE file_id = ?1"
    );
    vandal.pragma_update(None, "ignore_check_constraints", true).unwrap();
    assert_eq!(vandal.execute(&many, [record.file_id.to_string()]).unwrap(), 3000);
}

#[tokio::test]
async fn a_start_does_not_pass_the_files_that_are_pending_and_wait_for_nothing() {
    let (metadata, directory) = fresh();
    multiply(&directory, &put(&metadata, ready("acme")).await);

    let capping = metadata.writer.run("test", |tx| {
        leases::cap_waits(tx.sql, at(500), at(700))?;
        let taken = tx.sql.prepare_cached(leases::CAP_SYNCS)?.reset_status(StatementStatus::VmStep);
        Ok(taken)
    });
    let steps = capping.await.unwrap();
    assert!((1..1000).contains(&steps), "{steps} steps past 3001 pending files");
}

#[tokio::test]
async fn the_pairs_that_wait_are_told_without_passing_their_files() {
    let (metadata, directory) = fresh();
    multiply(&directory, &put(&metadata, ready("acme")).await);

    let telling = metadata.readers.run("test", |sql| {
        let (organization, holder) = destinations::next_pair(sql, "", "")?.expect("files wait");
        let next = destinations::next_pair(sql, organization.as_str(), holder.as_str())?;
        let taken =
            sql.prepare_cached(destinations::NEXT_PAIR)?.reset_status(StatementStatus::VmStep);
        Ok((next, taken))
    });
    let (next, steps) = telling.await.unwrap();
    assert_eq!(next, None);
    assert!((1..100).contains(&steps), "{steps} steps past 3001 pending files");
}

#[tokio::test]
async fn a_claim_of_one_organization_does_not_pass_the_deleted_files_of_others() {
    let (metadata, directory) = fresh();
    let foreign = put_deleted(&metadata, ready("acme"), at(0)).await;
    multiply(&directory, &foreign);
    let own = put_deleted(&metadata, ready("7"), at(1)).await;

    let claiming = metadata.writer.run("test", |tx| {
        steps(tx.sql);
        let (local, lease) = (ProviderCode::local(), lease("run", at(2), at(10)));
        let seven = organization("7");
        let due = DueFiles { marked_before: at(2), organization: Some(&seven) };
        assert!(purges::is_any_due(tx.sql, &local, due, at(2))?);
        let claims = purges::claim(tx.sql, lease, &local, due, 100)?;
        Ok((claims, steps(tx.sql)))
    });
    let (claims, steps) = claiming.await.unwrap();
    let claimed: Vec<_> = claims.into_iter().map(|claim| claim.record.file_id).collect();
    assert_eq!(claimed, [own.file_id]);
    assert!((1..1000).contains(&steps), "{steps} steps past 3001 files of another organization");
}

#[tokio::test]
async fn a_claim_during_a_snapshot_does_not_pass_the_files_that_are_held() {
    let (metadata, directory) = fresh();
    let deleted = put_deleted(&metadata, ready("acme"), at(0)).await;
    multiply(&directory, &deleted);

    metadata.take_hold("one", at(0), at(1_000_000)).await.unwrap();
    metadata.narrow_hold("one", 3001).await.unwrap();
    let newer = put_deleted(&metadata, ready("acme"), at(1)).await;
    let claiming = metadata.writer.run("test", |tx| {
        steps(tx.sql);
        let (local, lease) = (ProviderCode::local(), lease("run", at(2), at(10)));
        let due = DueFiles::marked_before(at(2));
        assert!(purges::is_any_due(tx.sql, &local, due, at(2))?);
        let claims = purges::claim(tx.sql, lease, &local, due, 100)?;
        Ok((claims, steps(tx.sql)))
    });
    let (claims, steps) = claiming.await.unwrap();
    let claimed: Vec<_> = claims.into_iter().map(|claim| claim.record.file_id).collect();
    assert_eq!(claimed, [newer.file_id]);
    assert!(steps < 1000, "{steps} steps past 3001 held rows");
}

/// Reads up to 100 rows of a query about events. Returns their number, and the steps that the query took.
fn read_events(sql: &Connection, query: &str, edge: i64, of: Option<&str>) -> (usize, i32) {
    let mut statement = sql.prepare_cached(query).unwrap();
    statement.raw_bind_parameter(1, edge).unwrap();
    statement.raw_bind_parameter(2, 100).unwrap();
    if let Some(organization) = of {
        statement.raw_bind_parameter(3, organization).unwrap();
    }
    let (mut rows, mut found) = (statement.raw_query(), 0);
    while rows.next().unwrap().is_some() {
        found += 1;
    }
    drop(rows);
    (found, statement.reset_status(StatementStatus::VmStep))
}

#[tokio::test]
async fn a_page_of_events_does_not_pass_other_events() {
    let (metadata, directory) = fresh();
    let vandal = Connection::open(file(&directory)).unwrap();
    let many = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
         INSERT INTO events (at, kind, organization_id)
         SELECT n, 'file.ready', iif(n % 1000 = 0, 'rare', 'acme') FROM numbers";
    assert_eq!(vandal.execute(many, []).unwrap(), 20_000);

    let reading = metadata.readers.run("test", |sql| {
        Ok([
            read_events(sql, events::FORWARD, 10_000, None),
            read_events(sql, events::BACKWARD, 10_000, None),
            read_events(sql, events::FORWARD_OF, 0, Some("rare")),
            read_events(sql, events::BACKWARD_OF, 20_001, Some("rare")),
        ])
    });
    let pages = reading.await.unwrap();
    assert_eq!(pages.map(|(found, _)| found), [100, 100, 20, 20]);
    for (_, steps) in pages {
        assert!((1..3000).contains(&steps), "{steps} steps past 20,000 events");
    }
}

#[tokio::test]
async fn every_column_of_a_listings_index_narrows_it() {
    let (metadata, _directory) = fresh();
    let plans = |sql: &Connection| {
        let all = listings();
        Ok(all.into_iter().map(|query| (plan(sql, &query), query)).collect::<Vec<_>>())
    };

    for (plan, query) in metadata.readers.run("test", plans).await.unwrap() {
        let (first, rest) = plan.split_first().unwrap();
        let bounds = if query.contains("file_terms") {
            assert!(rest[0].starts_with("SEARCH files USING") && rest[0].ends_with("(file_id=?)"));
            "term=? AND is_deleted=? AND in_status=? AND of_file>? AND of_file<?)"
        } else if query.contains("ORDER BY purge_marked_at") {
            "(purge_marked_at,file_id)<(?,?))"
        } else if query.contains("sync_status = '") {
            "sync_status=? AND file_id>? AND file_id<?)"
        } else if query.contains("original_name = :name") {
            "purge_status=? AND status=? AND original_name=? AND file_id<?)"
        } else if query.contains("original_name >= :from") {
            "purge_status=? AND status=? AND original_name>? AND original_name<?)"
        } else if query.contains("media_type = :media_type") {
            "purge_status=? AND status=? AND media_type=? AND file_id>? AND file_id<?)"
        } else {
            "purge_status=? AND status=? AND file_id>? AND file_id<?)"
        };

        let joined = usize::from(query.contains("file_terms"));
        assert_eq!(rest.len(), joined, "{plan:#?}");
        let step = first;
        assert!(step.ends_with(bounds), "{step}: {query}");
        let narrowed = step.contains("organization_id=?") || step.contains("of_organization=?");
        assert_eq!(narrowed, query.contains(":organization"), "{step}");
        // The indexes of sync statuses have few rows, and no sub-system.
        let has_sub_system = !step.contains("files_by_sync") && query.contains(":sub_system");
        assert_eq!(step.contains("sub_system=?"), has_sub_system, "{step}");
    }
}
