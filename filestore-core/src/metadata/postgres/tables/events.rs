//! The log of events. [`fence`](crate::metadata::postgres::session::fence) says up to where readers may read.

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::error::Result;
use crate::domain::event::NewEvent;
use crate::domain::id::OrganizationId;
use crate::domain::report::fsck::Finding;
use crate::domain::time::clock::Timestamp;
use crate::metadata::EventLog;
use crate::metadata::events::{
    BodyRow, EventBody, LogBounds, LogOrder, LogPart, LogRange, LogRow, LogSwitch, LoggedEvent,
    Switched, details_text, event_columns, of_finding,
};

use super::row;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::{Param, Sql};

const LOG: &str = "SELECT is_on, off_since, id_key FROM event_log";

const LOG_LOCKED: &str = "SELECT is_on, off_since, id_key FROM event_log FOR UPDATE";

const SWITCH: &str = "UPDATE event_log SET is_on = $1, off_since = $2, id_key = $3";

/// The transaction has drawn the position of the gap.
const BEGIN_AT_DRAWN: &str = "UPDATE event_log SET gap_position = currval('events_position_seq')";

/// Counts the gap for each webhook, and begins at the start of the log again.
const COUNT_GAP: &str = "UPDATE webhook_lanes SET place = NULL, ahead = '', gaps = gaps + 1";

const GAP: &str = "SELECT gap_position FROM event_log WHERE gap_position <= $1";

/// Selects all facts about the log but its rows: behind the rows, so that edge and key protect them.
const FACTS: &str =
    "SELECT (SELECT is_on FROM event_log), (SELECT at FROM events WHERE position = $1),
     (SELECT position FROM events ORDER BY position LIMIT 1),
     (SELECT at FROM events ORDER BY position LIMIT 1), (SELECT id_key FROM event_log)";

pub(in crate::metadata::postgres) const NEWEST: &str =
    "SELECT position, at FROM events WHERE position <= $1 ORDER BY position DESC LIMIT 1";

pub(in crate::metadata::postgres) const FORWARD: &str = concat!(
    "SELECT ",
    event_columns!(),
    " FROM events WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3"
);

pub(in crate::metadata::postgres) const BACKWARD: &str = concat!(
    "SELECT ",
    event_columns!(),
    " FROM events WHERE position < $1 AND position <= $2 ORDER BY position DESC LIMIT $3"
);

/// Compares rows, so that only the index of the organization has the order. With `organization_id = $4`, the planner
/// can pass all events in the order of their positions, and does so if it expects many events of the organization.
pub(in crate::metadata::postgres) const FORWARD_OF: &str = concat!(
    "SELECT ",
    event_columns!(),
    " FROM events WHERE organization_id IS NOT NULL AND (organization_id, position) > ($4, $1)
     AND (organization_id, position) <= ($4, $2) ORDER BY organization_id, position LIMIT $3"
);

/// Compares rows like [`FORWARD_OF`].
pub(in crate::metadata::postgres) const BACKWARD_OF: &str = concat!(
    "SELECT ",
    event_columns!(),
    " FROM events WHERE organization_id IS NOT NULL AND (organization_id, position) < ($4, $1)
     AND (organization_id, position) <= ($4, $2) AND (organization_id, position) > ($4, 0::bigint)
     ORDER BY organization_id DESC, position DESC LIMIT $3"
);

const AT: &str = concat!("SELECT ", event_columns!(), " FROM events WHERE position = $1");

const PUT: &str =
    "INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
     SELECT $1, $2, $3, $4, $5, $6, $7 WHERE (SELECT is_on FROM event_log)";

const PUT_DAMAGED: &str =
    "INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
     SELECT $2, 'file.damaged', organization_id, sub_system, file_id, version, $3 FROM files
     WHERE file_id = $1 AND purge_status IS NULL AND (SELECT is_on FROM event_log)";

pub(in crate::metadata::postgres) const FIRST: &str =
    "SELECT position, at FROM events ORDER BY position LIMIT $1";

pub(in crate::metadata::postgres) const FORGET: &str =
    "DELETE FROM events WHERE position >= $1 AND position <= $2";

/// Events of files that are there belong to uploads after the erasure. Compares rows like [`FORWARD_OF`].
pub(in crate::metadata::postgres) const BLANK: &str =
    "UPDATE events SET kind = NULL, organization_id = NULL, sub_system = NULL, file_id = NULL,
     version = NULL, details = NULL WHERE position IN
     (SELECT position FROM events AS of_gone WHERE organization_id IS NOT NULL
     AND (organization_id, position) > ($1, 0::bigint)
     AND (organization_id, position) <= ($1, 9223372036854775807) AND kind <> 'organization.erased'
     AND NOT EXISTS (SELECT 1 FROM files WHERE files.file_id = of_gone.file_id)
     ORDER BY organization_id, position LIMIT $2)";

#[async_trait]
impl EventLog for PostgresMetadata {
    async fn open_events(
        &self,
        switch: LogSwitch,
        fresh_key: [u8; 32],
        now: Timestamp,
    ) -> Result<[u8; 32]> {
        let opening = "opening the log of events";
        let known = self.engine.read(opening, &(), |sql, ()| Box::pin(log(sql, LOG))).await?;
        // Most openings change nothing.
        if let (is_on, off_since, Some(key)) = known
            && switch.applied_to(is_on, off_since) == is_on
        {
            return Ok(key);
        }

        self.engine
            .write(opening, (switch, fresh_key, now), |sql, (switch, fresh_key, now)| {
                Box::pin(async move {
                    let log = log(sql, LOG_LOCKED).await?;
                    let switched = Switched::of(log, *switch, *fresh_key, *now);
                    let Switched { is_on, off_since, key, .. } = switched;
                    sql.execute(SWITCH, &[&is_on, &off_since, &key.as_slice()]).await?;

                    if let Some(gap) = switched.gap_event(*now) {
                        put(sql, &gap).await?;
                        sql.execute(BEGIN_AT_DRAWN, &[]).await?;
                        sql.execute(COUNT_GAP, &[]).await?;
                    }
                    Ok(key)
                })
            })
            .await
    }

    async fn read_events(&self, range: &LogRange) -> Result<LogPart> {
        let look = self.fence.look(&self.engine).await?;
        let part = self
            .engine
            .read("reading events", &(range, look.settled), |sql, (range, settled)| {
                Box::pin(part(sql, range, *settled))
            })
            .await?;
        Ok(LogPart { held_back: look.held_back(), ..part })
    }

    async fn await_events(&self, settled: u64) -> Result<()> {
        let settled = i64::try_from(settled).unwrap_or(i64::MAX);
        self.fence.passed(&self.engine, settled).await
    }

    async fn note_events(&self, events: Vec<NewEvent>) -> Result<()> {
        self.engine
            .write("writing events", events, |sql, events| {
                Box::pin(async move {
                    for event in events {
                        put(sql, event).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    async fn forget_events(&self, bounds: LogBounds, limit: usize) -> Result<u64> {
        let wanted = (bounds, limit);
        let looking =
            self.engine.read("looking for old events", &wanted, |sql, &(bounds, limit)| {
                Box::pin(async move {
                    let Some((newest, _)) = newest(sql, i64::MAX).await? else { return Ok(None) };
                    // One more, because the last event outside the bounds stays.
                    let rows = sql.rows(FIRST, &[&row::limit(limit.saturating_add(1))]).await?;
                    let first = rows.iter().map(|row| Ok((row::count(row, 0)?, row.try_get(1)?)));
                    let first = first.collect::<Result<Vec<_>, Fault>>()?;
                    Ok(bounds.to_forget(&first, newest))
                })
            });
        let Some(range) = looking.await? else { return Ok(0) };

        self.engine
            .write("forgetting events", range, |sql, (first, last)| {
                Box::pin(async move {
                    let (first, last) = (row::integer(*first)?, row::integer(*last)?);
                    sql.execute(FORGET, &[&first, &last]).await
                })
            })
            .await
    }

    async fn blank_events(&self, organization: &OrganizationId, limit: usize) -> Result<u64> {
        self.engine
            .write(
                "blanking events",
                (organization.clone(), limit),
                |sql, (organization, limit)| {
                    Box::pin(async move {
                        sql.execute(BLANK, &[&organization.as_str(), &row::limit(*limit)]).await
                    })
                },
            )
            .await
    }
}

/// Writes an event, unless the log is off.
pub(in crate::metadata::postgres) async fn put(sql: &Sql, event: &NewEvent) -> Result<(), Fault> {
    let (file, sub_system, version) = match &event.file {
        Some((file, sub_system, version)) => {
            (Some(row::id(*file)), Some(sub_system.as_str()), Some(row::integer(*version)?))
        }
        None => (None, None, None),
    };
    sql.execute(
        PUT,
        &[
            &event.at.as_millis(),
            &event.kind.as_str(),
            &event.organization_id.as_ref().map(OrganizationId::as_str),
            &sub_system,
            &file,
            &version,
            &details_text(&event.details),
        ],
    )
    .await
    .map(drop)
}

/// Writes the event of a finding about the bytes of a live file.
pub(in crate::metadata::postgres) async fn put_damaged(
    sql: &Sql,
    finding: &Finding,
    now: Timestamp,
) -> Result<(), Fault> {
    let Some((file, details)) = of_finding(finding) else { return Ok(()) };
    sql.execute(PUT_DAMAGED, &[&row::id(file), &now.as_millis(), &details]).await.map(drop)
}

async fn part(sql: &Sql, range: &LogRange, settled: i64) -> Result<LogPart, Fault> {
    let newest = newest(sql, settled).await?;
    let gap = sql.first(GAP, &[&settled]).await?;
    let gap: Option<i64> = gap.map(|row| row.try_get(0)).transpose()?;
    let edge = match (range.from, range.order) {
        (Some(0), LogOrder::Forward) => gap.map_or(0, |gap| gap - 1),
        // A cursor of another log can name any position.
        (Some(position), _) => i64::try_from(position).unwrap_or(i64::MAX),
        (None, LogOrder::Forward) => row::integer(newest.map_or(0, |(position, _)| position))?,
        (None, LogOrder::Backward) => i64::MAX,
    };

    let mut part = LogPart { newest, settled: settled.unsigned_abs(), ..LogPart::default() };
    let limit = row::limit(range.limit);
    match &range.organizations {
        None => {
            let query = if range.order == LogOrder::Forward { FORWARD } else { BACKWARD };
            part.rows = rows(sql, query, &[&edge, &settled, &limit]).await?;
        }
        Some(organizations) => {
            let query = if range.order == LogOrder::Forward { FORWARD_OF } else { BACKWARD_OF };
            for one in organizations {
                let found = rows(sql, query, &[&edge, &settled, &limit, &one.as_str()]).await?;
                part.rows.extend(found);
            }
            if let Some(gap) = gap.filter(|gap| range.reaches(edge, *gap)) {
                part.rows.extend(rows(sql, AT, &[&gap]).await?);
            }
            part.merge(range);
        }
    }

    // Behind the rows: if the edge is still there, so were the rows behind it when they were read, as the oldest
    // events are forgotten first. If the key is still the same, no gap was passed over.
    if let Some(facts) = sql.first(FACTS, &[&edge]).await? {
        part.is_on = facts.try_get::<_, Option<bool>>(0)?.unwrap_or(false);
        part.edge_at = facts.try_get::<_, Option<i64>>(1)?.map(Timestamp::from_millis);
        let oldest = facts.try_get::<_, Option<i64>>(2)?.map(i64::unsigned_abs);
        let oldest_at = facts.try_get::<_, Option<i64>>(3)?.map(Timestamp::from_millis);
        part.oldest = oldest.zip(oldest_at);
        part.key = id_key(&facts, 4)?;
    }
    Ok(part)
}

async fn rows(sql: &Sql, query: &str, params: &[Param<'_>]) -> Result<Vec<LoggedEvent>, Fault> {
    sql.rows(query, params).await?.iter().map(|row| logged(sql, row)).collect()
}

/// Returns position and time of the newest event up to a position.
async fn newest(sql: &Sql, up_to: i64) -> Result<Option<(u64, Timestamp)>, Fault> {
    let row = sql.first(NEWEST, &[&up_to]).await?;
    row.map(|row| Ok((row::count(&row, 0)?, Timestamp::from_millis(row.try_get(1)?)))).transpose()
}

async fn log(sql: &Sql, query: &str) -> Result<LogRow, Fault> {
    let row = sql.first(query, &[]).await?.ok_or_else(|| damaged_log("it has no row".into()))?;
    Ok((row.try_get(0)?, row.try_get(1)?, id_key(&row, 2)?))
}

fn id_key(row: &Row, column: usize) -> Result<Option<[u8; 32]>, Fault> {
    let key: Option<&[u8]> = row.try_get(column)?;
    key.map(<[u8; 32]>::try_from).transpose().map_err(|error| damaged_log(error.into()))
}

fn damaged_log(source: Source) -> Fault {
    Fault::Row { what: "the log of events".into(), source }
}

/// Reads an event. A damaged one keeps its place.
fn logged(sql: &Sql, row: &Row) -> Result<LoggedEvent, Fault> {
    let position = row::count(row, 0)?;
    let read = body(row).map_err(|source| Fault::Row { what: format!("event {position}"), source });
    Ok(LoggedEvent {
        position,
        at: Timestamp::from_millis(row.try_get(1)?),
        body: sql.pass_over(read)?.flatten(),
    })
}

fn body(row: &Row) -> Result<Option<EventBody>, Source> {
    let row = BodyRow {
        kind: row.try_get(2)?,
        organization_id: row.try_get(3)?,
        sub_system: row.try_get(4)?,
        file_id: row.try_get(5)?,
        version: row.try_get(6)?,
        details: row.try_get(7)?,
    };
    row.body()
}
