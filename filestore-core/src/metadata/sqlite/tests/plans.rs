//! No listing and no worker's query reads a whole table or sorts.

use rusqlite::{Connection, Statement, StatementStatus};

use super::super::{
    backlog, bindings, damage, dropped, files, holdings, holds, idempotency, inspection, intents,
    keys, listing, purge, receipts, settings, signing, sync, terms, waits,
};
use super::*;
use crate::domain::listing::ListFilter;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::domain::status::{PurgeStatus, Status};
use crate::metadata::contract::{at, lease, put, put_deleted, ready};
use crate::metadata::paging::Index;
use crate::metadata::prelude::*;

/// Every listing statement.
fn listings() -> Vec<String> {
    let mut queries = Vec::new();
    for organization in [false, true] {
        for sub_system in [None, Some("a".parse().unwrap())] {
            for purge_status in [None, Some(PurgeStatus::SystemPurge)] {
                for status in Status::ALL {
                    let filter = ListFilter {
                        sub_system: sub_system.clone(),
                        purge_status,
                        ..ListFilter::default()
                    };
                    for &index in indexes(organization) {
                        queries.push(listing::query(index, organization, &filter, *status));
                    }
                }
            }
        }
    }

    queries
}

/// The indexes that answer listings of one organization, or of all.
fn indexes(in_one_organization: bool) -> &'static [Index] {
    if in_one_organization {
        &[Index::Plain, Index::Type, Index::Term, Index::Names, Index::Name]
    } else {
        &[Index::Plain]
    }
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
        files::STORED_BYTES,
        files::USAGE,
        files::EXPECTED,
        files::UPDATE,
        files::NOTE_THUMBHASH,
        idempotency::GET,
        idempotency::TAKEN,
        idempotency::FORGET,
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
        purge::EXPIRE,
        purge::UNCLAIMED,
        purge::UNCLAIMED_BEHIND,
        purge::CLAIMED,
        purge::CLAIM,
        purge::FINISH,
        purge::FAIL,
        purge::CLEAR_LEASES,
        purge::EXPIRED,
        purge::ANY_EXPIRED,
        purge::ANY_UNCLAIMED,
        purge::ANY_UNCLAIMED_BEHIND,
        purge::ANY_CLAIMED,
        purge::AWAIT,
        purge::GO_ON,
        purge::RENEW,
        purge::RELEASE,
        purge::END_WAITS,
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
        dropped::OF_FILE,
        dropped::FORGET_FILE,
        dropped::FINISH,
        dropped::NOTE_ABSENCE,
        dropped::HASTEN,
        dropped::FILE,
        dropped::END_WAITS,
        dropped::FAIL,
        receipts::PUT,
        receipts::KEEP,
        receipts::ONE,
        receipts::REMOVED,
        receipts::COUNT,
        receipts::DROPPED,
        receipts::NOTED,
        receipts::FORGET,
        receipts::FORGET_BLOBS,
        receipts::SPARE_BLOBS,
        sync::NEXT_PAIR,
        sync::WAITING,
        sync::SETTLE,
        sync::COUNTS,
        sync::DUE,
        sync::OVERDUE,
        sync::RELEASE,
        sync::CLAIM,
        sync::CLAIMED,
        sync::OWNED,
        sync::RENEW,
        sync::FAIL,
        sync::END_WAITS,
        sync::ENQUEUE,
        sync::ENQUEUE_TO,
        damage::PURGE_NEVER,
        damage::SYNC_NEVER,
        sync::FAILED,
        holdings::ELSEWHERE,
        intents::STANDS,
        intents::END,
        intents::HAND_OVER,
        intents::RENEW,
        intents::OLD,
        settings::ONE,
        signing::REVOKE,
        signing::IS_USED,
        signing::FORGET_USED,
        files::MOVE,
        terms::FORGET,
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
        purge::UNCLAIMED,
        purge::UNCLAIMED_BEHIND,
        purge::ANY_UNCLAIMED,
        purge::ANY_UNCLAIMED_BEHIND,
        purge::CLAIMED,
        purge::ANY_CLAIMED,
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
        waits::cap(tx.sql, at(500), at(700))?;
        let taken = tx.sql.prepare_cached(waits::SYNCS)?.reset_status(StatementStatus::VmStep);
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
        let (organization, holder) = sync::next_pair(sql, "", "")?.expect("files wait");
        let next = sync::next_pair(sql, organization.as_str(), holder.as_str())?;
        let taken = sql.prepare_cached(sync::NEXT_PAIR)?.reset_status(StatementStatus::VmStep);
        Ok((next, taken))
    });
    let (next, steps) = telling.await.unwrap();
    assert_eq!(next, None);
    assert!((1..100).contains(&steps), "{steps} steps past 3001 pending files");
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
        assert!(purge::is_any_due(tx.sql, &local, at(2), at(2))?);
        let claims = purge::claim(tx.sql, lease, &local, at(2), 100)?;
        Ok((claims, steps(tx.sql)))
    });
    let (claims, steps) = claiming.await.unwrap();
    let claimed: Vec<_> = claims.into_iter().map(|claim| claim.record.file_id).collect();
    assert_eq!(claimed, [newer.file_id]);
    assert!(steps < 1000, "{steps} steps past 3001 held rows");
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
        assert_eq!(step.contains("sub_system=?"), query.contains(":sub_system"), "{step}");
    }
}
