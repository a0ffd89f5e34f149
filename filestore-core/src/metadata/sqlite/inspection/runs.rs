//! The states and findings of checks.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::domain::report::fsck::{Finding, FindingKind, FindingOutcome, FsckDepth, FsckMode};
use crate::domain::time::clock::Timestamp;
use crate::metadata::events::of_check;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};
use crate::metadata::sqlite::tables::{events, row};
use crate::metadata::stored::rank;
use crate::metadata::{CheckName, CheckRun, Runs, stored};

/// The maximum number of stored findings of a check. Further findings are only counted, so that a lost disk
/// does not fill the database.
const STORED: u64 = 100_000;

pub(super) const RUN: &str =
    "SELECT is_deep, repairs, provider, started_at, ended_at, part, cursor, files, bytes, names, found,
     repaired, postponed FROM check_runs WHERE name = ?1";

const PUT: &str =
    "INSERT OR REPLACE INTO check_runs (name, is_deep, repairs, provider, started_at, ended_at,
     part, cursor, files, bytes, names, found, repaired, postponed)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";

const FORGET: &str = "DELETE FROM check_findings WHERE run = ?1";

const OUTCOME: &str = "SELECT outcome FROM check_findings
     WHERE run = ?1 AND rank = ?2 AND place = ?3 AND name = ?4";

const PUT_FINDING: &str = "INSERT OR REPLACE INTO check_findings
     (run, rank, kind, place, name, file_id, detail, outcome, action)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

pub(super) const FINDINGS: &str = "SELECT kind, place, name, file_id, detail, outcome, action
     FROM check_findings WHERE run = ?1 ORDER BY rank, place, name LIMIT ?2";

const COUNTS: &str = "SELECT kind, count(*), sum(outcome = 'repaired')
     FROM check_findings WHERE run = ?1 GROUP BY rank";

#[async_trait]
impl Runs for SqliteMetadata {
    async fn check_run(&self, name: CheckName) -> Result<Option<CheckRun>> {
        self.readers
            .run("reading a check's state", move |sql| {
                row::first(sql, RUN, [name.as_str()], |row| {
                    read(row, name).map_err(|source| Fault::Row {
                        what: "the state of a check".into(),
                        source,
                    })
                })
            })
            .await
    }

    async fn begin_check(&self, run: &CheckRun) -> Result<()> {
        let run = run.clone();
        self.writer
            .run("beginning a check", move |tx| {
                row::execute(tx.sql, FORGET, [run.name.as_str()])?;
                put(tx.sql, &run)
            })
            .await
    }

    async fn save_check(
        &self,
        run: &CheckRun,
        found: Vec<Finding>,
        now: Timestamp,
    ) -> Result<(u64, u64)> {
        let run = run.clone();
        self.writer
            .run("storing a check's state", move |tx| {
                let mut run = run.clone();
                for finding in &found {
                    let before = outcome_before(tx.sql, run.name, finding)?;
                    if before.is_none() {
                        events::put_damaged(tx.sql, finding, now)?;
                    }
                    let is_repaired = matches!(finding.outcome, FindingOutcome::Repaired(_));

                    run.found += u64::from(before.is_none());
                    let was_repaired = before.as_deref() == Some("repaired");
                    run.repaired += u64::from(is_repaired && !was_repaired);
                    if before.is_some() || run.found <= STORED {
                        put_finding(tx.sql, run.name, finding)?;
                    }
                }
                put(tx.sql, &run)?;
                if run.ended_at.is_some() {
                    events::put(tx.sql, &of_check(&run, now))?;
                }
                Ok((run.found, run.repaired))
            })
            .await
    }

    async fn findings(&self, name: CheckName, limit: usize) -> Result<Vec<Finding>> {
        self.readers
            .run("listing findings", move |sql| {
                row::collect(sql, FINDINGS, params![name.as_str(), row::limit(limit)], |row| {
                    finding(row).map_err(|source| Fault::Row { what: "a finding".into(), source })
                })
            })
            .await
    }

    async fn count_findings(&self, name: CheckName) -> Result<Vec<(FindingKind, u64, u64)>> {
        self.readers
            .run("counting findings", move |sql| {
                row::collect(sql, COUNTS, [name.as_str()], |row| {
                    let kind = row::parse(row, 0);
                    let kind =
                        kind.map_err(|source| Fault::Row { what: "a finding".into(), source })?;
                    Ok((kind, row::count(row, 1)?, row::count(row, 2)?))
                })
            })
            .await
    }
}

fn read(row: &Row<'_>, name: CheckName) -> Result<CheckRun, Source> {
    let (is_deep, repairs): (bool, bool) = (row.get(0)?, row.get(1)?);
    let provider: Option<String> = row.get(2)?;

    Ok(CheckRun {
        name,
        depth: if is_deep { FsckDepth::Deep } else { FsckDepth::Quick },
        mode: if repairs { FsckMode::Repair } else { FsckMode::DryRun },
        provider: provider.map(|code| code.parse()).transpose()?,
        started_at: Timestamp::from_millis(row.get(3)?),
        ended_at: row.get::<_, Option<i64>>(4)?.map(Timestamp::from_millis),
        part: row.get(5)?,
        cursor: row.get(6)?,
        files: row::unsigned(row, 7)?,
        bytes: row::unsigned(row, 8)?,
        names: row::unsigned(row, 9)?,
        found: row::unsigned(row, 10)?,
        repaired: row::unsigned(row, 11)?,
        postponed: stored::postponed(&row.get::<_, String>(12)?)?,
    })
}

fn put(sql: &Connection, run: &CheckRun) -> Result<(), Fault> {
    let params = params![
        run.name.as_str(),
        run.depth == FsckDepth::Deep,
        run.mode == FsckMode::Repair,
        run.provider.as_ref().map(ProviderCode::as_str),
        run.started_at.as_millis(),
        run.ended_at.map(Timestamp::as_millis),
        run.part,
        run.cursor,
        row::integer(run.files)?,
        row::integer(run.bytes)?,
        row::integer(run.names)?,
        row::integer(run.found)?,
        row::integer(run.repaired)?,
        stored::postponed_text(&run.postponed),
    ];
    row::execute(sql, PUT, params).map(drop)
}

fn outcome_before(
    sql: &Connection,
    name: CheckName,
    finding: &Finding,
) -> Result<Option<String>, Fault> {
    let params = params![name.as_str(), rank(finding.kind), finding.place, finding.name];
    row::first(sql, OUTCOME, params, |row| Ok(row.get(0)?))
}

fn put_finding(sql: &Connection, name: CheckName, finding: &Finding) -> Result<(), Fault> {
    let params = params![
        name.as_str(),
        rank(finding.kind),
        finding.kind.as_str(),
        finding.place,
        finding.name,
        finding.file_id.map(row::id),
        finding.detail,
        finding.outcome.as_str(),
        finding.outcome.text(),
    ];
    row::execute(sql, PUT_FINDING, params).map(drop)
}

fn finding(row: &Row<'_>) -> Result<Finding, Source> {
    let file_id: Option<String> = row.get(3)?;
    let (place, name, detail): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(4)?);

    let mut finding = Finding::new(row::parse(row, 0)?, place, name, detail);
    finding.file_id = file_id.map(|id| id.parse()).transpose()?;
    finding.outcome = FindingOutcome::of(&row.get::<_, String>(5)?, row.get(6)?);
    Ok(finding)
}
