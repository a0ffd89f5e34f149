//! The states and findings of checks.

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::domain::report::fsck::{Finding, FindingKind, FindingOutcome, FsckDepth, FsckMode};
use crate::domain::time::clock::Timestamp;
use crate::metadata::events::of_check;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::Sql;
use crate::metadata::postgres::tables::{events, row};
use crate::metadata::stored::rank;
use crate::metadata::{CheckName, CheckRun, Runs, stored};

/// The maximum number of stored findings of a check. Further findings are only counted, so that a lost disk
/// does not fill the database.
const STORED: u64 = 100_000;

pub(super) const RUN: &str =
    "SELECT is_deep, repairs, provider, started_at, ended_at, part, cursor, files, bytes, names, found,
     repaired, postponed FROM check_runs WHERE name = $1";

const PUT: &str = "INSERT INTO check_runs (name, is_deep, repairs, provider, started_at, ended_at,
     part, cursor, files, bytes, names, found, repaired, postponed)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
     ON CONFLICT (name) DO UPDATE SET is_deep = excluded.is_deep, repairs = excluded.repairs,
     provider = excluded.provider, started_at = excluded.started_at, ended_at = excluded.ended_at,
     part = excluded.part, cursor = excluded.cursor, files = excluded.files, bytes = excluded.bytes,
     names = excluded.names, found = excluded.found, repaired = excluded.repaired,
     postponed = excluded.postponed";

const FORGET: &str = "DELETE FROM check_findings WHERE run = $1";

const OUTCOME: &str = "SELECT outcome FROM check_findings
     WHERE run = $1 AND rank = $2 AND place = $3 AND name = $4";

const PUT_FINDING: &str = "INSERT INTO check_findings
     (run, rank, kind, place, name, file_id, detail, outcome, action)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT (run, rank, place, name) DO UPDATE SET kind = excluded.kind, file_id = excluded.file_id,
     detail = excluded.detail, outcome = excluded.outcome, action = excluded.action";

pub(super) const FINDINGS: &str = "SELECT kind, place, name, file_id, detail, outcome, action
     FROM check_findings WHERE run = $1 ORDER BY rank, place, name LIMIT $2";

const COUNTS: &str = "SELECT kind, count(*), count(*) FILTER (WHERE outcome = 'repaired')
     FROM check_findings WHERE run = $1 GROUP BY rank, kind ORDER BY rank";

#[async_trait]
impl Runs for PostgresMetadata {
    async fn check_run(&self, name: CheckName) -> Result<Option<CheckRun>> {
        self.engine
            .read("reading a check's state", &name, |sql, &name| {
                Box::pin(async move {
                    let row = sql.first(RUN, &[&name.as_str()]).await?;
                    let read = row.map(|row| read(&row, name)).transpose();
                    read.map_err(|source| Fault::Row {
                        what: "the state of a check".into(),
                        source,
                    })
                })
            })
            .await
    }

    async fn begin_check(&self, run: &CheckRun) -> Result<()> {
        self.engine
            .write("beginning a check", run.clone(), |sql, run| {
                Box::pin(async move {
                    sql.execute(FORGET, &[&run.name.as_str()]).await?;
                    put(sql, run).await
                })
            })
            .await
    }

    async fn save_check(
        &self,
        run: &CheckRun,
        found: Vec<Finding>,
        now: Timestamp,
    ) -> Result<(u64, u64)> {
        let state = (run.clone(), found, now);
        self.engine
            .write("storing a check's state", state, |sql, (run, found, now)| {
                Box::pin(async move {
                    let mut run = run.clone();
                    for finding in found {
                        let before = outcome_before(sql, run.name, finding).await?;
                        if before.is_none() {
                            events::put_damaged(sql, finding, *now).await?;
                        }
                        let is_repaired = matches!(finding.outcome, FindingOutcome::Repaired(_));

                        run.found += u64::from(before.is_none());
                        let was_repaired = before.as_deref() == Some("repaired");
                        run.repaired += u64::from(is_repaired && !was_repaired);
                        if before.is_some() || run.found <= STORED {
                            put_finding(sql, run.name, finding).await?;
                        }
                    }
                    put(sql, &run).await?;
                    if run.ended_at.is_some() {
                        events::put(sql, &of_check(&run, *now)).await?;
                    }
                    Ok((run.found, run.repaired))
                })
            })
            .await
    }

    async fn findings(&self, name: CheckName, limit: usize) -> Result<Vec<Finding>> {
        self.engine
            .read("listing findings", &(name, limit), |sql, &(name, limit)| {
                Box::pin(async move {
                    sql.collect(FINDINGS, &[&name.as_str(), &row::limit(limit)], |row| {
                        finding(row)
                            .map_err(|source| Fault::Row { what: "a finding".into(), source })
                    })
                    .await
                })
            })
            .await
    }

    async fn count_findings(&self, name: CheckName) -> Result<Vec<(FindingKind, u64, u64)>> {
        self.engine
            .read("counting findings", &name, |sql, name| {
                Box::pin(async move {
                    sql.collect(COUNTS, &[&name.as_str()], |row| {
                        let kind = row::parse(row, 0);
                        let kind =
                            kind.map_err(|source| Fault::Row { what: "a finding".into(), source })?;
                        Ok((kind, row::count(row, 1)?, row::count(row, 2)?))
                    })
                    .await
                })
            })
            .await
    }
}

fn read(row: &Row, name: CheckName) -> Result<CheckRun, Source> {
    let (is_deep, repairs): (bool, bool) = (row.try_get(0)?, row.try_get(1)?);
    let provider: Option<&str> = row.try_get(2)?;

    Ok(CheckRun {
        name,
        depth: if is_deep { FsckDepth::Deep } else { FsckDepth::Quick },
        mode: if repairs { FsckMode::Repair } else { FsckMode::DryRun },
        provider: provider.map(str::parse).transpose()?,
        started_at: row::instant(row, 3)?,
        ended_at: row::instant_or_none(row, 4)?,
        part: row.try_get(5)?,
        cursor: row.try_get(6)?,
        files: row::unsigned(row, 7)?,
        bytes: row::unsigned(row, 8)?,
        names: row::unsigned(row, 9)?,
        found: row::unsigned(row, 10)?,
        repaired: row::unsigned(row, 11)?,
        postponed: stored::postponed(row.try_get(12)?)?,
    })
}

async fn put(sql: &Sql, run: &CheckRun) -> Result<(), Fault> {
    sql.execute(
        PUT,
        &[
            &run.name.as_str(),
            &(run.depth == FsckDepth::Deep),
            &(run.mode == FsckMode::Repair),
            &run.provider.as_ref().map(ProviderCode::as_str),
            &run.started_at.as_millis(),
            &run.ended_at.map(Timestamp::as_millis),
            &run.part,
            &run.cursor,
            &row::integer(run.files)?,
            &row::integer(run.bytes)?,
            &row::integer(run.names)?,
            &row::integer(run.found)?,
            &row::integer(run.repaired)?,
            &stored::postponed_text(&run.postponed),
        ],
    )
    .await
    .map(drop)
}

async fn outcome_before(
    sql: &Sql,
    name: CheckName,
    finding: &Finding,
) -> Result<Option<String>, Fault> {
    let place = (clean(&finding.place), clean(&finding.name));
    let row =
        sql.first(OUTCOME, &[&name.as_str(), &rank(finding.kind), &place.0, &place.1]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

async fn put_finding(sql: &Sql, name: CheckName, finding: &Finding) -> Result<(), Fault> {
    sql.execute(
        PUT_FINDING,
        &[
            &name.as_str(),
            &rank(finding.kind),
            &finding.kind.as_str(),
            &clean(&finding.place),
            &clean(&finding.name),
            &finding.file_id.map(row::id),
            &clean(&finding.detail),
            &finding.outcome.as_str(),
            &clean(finding.outcome.text()),
        ],
    )
    .await
    .map(drop)
}

/// Removes U+0000 from a text, because PostgreSQL cannot store it. The text can be any name.
fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn finding(row: &Row) -> Result<Finding, Source> {
    let file_id: Option<&str> = row.try_get(3)?;
    let (place, name): (String, String) = (row.try_get(1)?, row.try_get(2)?);
    let detail: String = row.try_get(4)?;

    let mut finding = Finding::new(row::parse(row, 0)?, place, name, detail);
    finding.file_id = file_id.map(str::parse).transpose()?;
    finding.outcome = FindingOutcome::of(row.try_get(5)?, row.try_get(6)?);
    Ok(finding)
}
