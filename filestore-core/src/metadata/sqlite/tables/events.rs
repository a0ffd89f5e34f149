//! The log of events. Positions have no gaps and appear in their order, because there is one writer.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

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

use super::damage;
use super::row;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};

const LOG: &str = "SELECT is_on, off_since, id_key FROM event_log";

const SWITCH: &str = "UPDATE event_log SET is_on = ?1, off_since = ?2, id_key = ?3";

const BEGIN_AT_NEWEST: &str =
    "UPDATE event_log SET gap_position = (SELECT max(position) FROM events)";

/// Counts the gap for each webhook, and begins at the start of the log again.
const COUNT_GAP: &str = "UPDATE webhook_lanes SET place = NULL, ahead = x'', gaps = gaps + 1";

const STATE: &str = "SELECT is_on, id_key, gap_position FROM event_log";

const TIME_OF: &str = "SELECT at FROM events WHERE position = ?1";

const OLDEST: &str = "SELECT position, at FROM events ORDER BY position LIMIT 1";

pub(in crate::metadata::sqlite) const NEWEST: &str =
    "SELECT position, at FROM events ORDER BY position DESC LIMIT 1";

pub(in crate::metadata::sqlite) const FORWARD: &str = concat!(
    "SELECT ",
    event_columns!(),
    " FROM events WHERE position > ?1 ORDER BY position LIMIT ?2"
);

pub(in crate::metadata::sqlite) const BACKWARD: &str = concat!(
    "SELECT ",
    event_columns!(),
    " FROM events WHERE position < ?1 ORDER BY position DESC LIMIT ?2"
);

pub(in crate::metadata::sqlite) const FORWARD_OF: &str = concat!(
    "SELECT ",
    event_columns!(),
    " FROM events WHERE organization_id = ?3 AND position > ?1 ORDER BY position LIMIT ?2"
);

pub(in crate::metadata::sqlite) const BACKWARD_OF: &str = concat!(
    "SELECT ",
    event_columns!(),
    " FROM events WHERE organization_id = ?3 AND position < ?1 ORDER BY position DESC LIMIT ?2"
);

const AT: &str = concat!("SELECT ", event_columns!(), " FROM events WHERE position = ?1");

const PUT: &str =
    "INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
     SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE (SELECT is_on FROM event_log) = 1";

const PUT_DAMAGED: &str =
    "INSERT INTO events (at, kind, organization_id, sub_system, file_id, version, details)
     SELECT ?2, 'file.damaged', organization_id, sub_system, file_id, version, ?3 FROM files
     WHERE file_id = ?1 AND purge_status IS NULL AND (SELECT is_on FROM event_log) = 1";

pub(in crate::metadata::sqlite) const FIRST: &str =
    "SELECT position, at FROM events ORDER BY position LIMIT ?1";

pub(in crate::metadata::sqlite) const FORGET: &str =
    "DELETE FROM events WHERE position >= ?1 AND position <= ?2";

/// Events of files that are there belong to uploads after the erasure.
pub(in crate::metadata::sqlite) const BLANK: &str =
    "UPDATE events SET kind = NULL, organization_id = NULL, sub_system = NULL, file_id = NULL,
     version = NULL, details = NULL WHERE position IN
     (SELECT position FROM events AS of_gone WHERE organization_id = ?1 AND kind <> 'organization.erased'
     AND NOT EXISTS (SELECT 1 FROM files WHERE files.file_id = of_gone.file_id)
     ORDER BY position LIMIT ?2)";

#[async_trait]
impl EventLog for SqliteMetadata {
    async fn open_events(
        &self,
        switch: LogSwitch,
        fresh_key: [u8; 32],
        now: Timestamp,
    ) -> Result<[u8; 32]> {
        let opening = "opening the log of events";
        let log = self.readers.run(opening, |sql| row::first(sql, LOG, [], log_row)).await?;
        // Most openings change nothing, and work on a full disk.
        if let Some((is_on, off_since, Some(key))) = log
            && switch.applied_to(is_on, off_since) == is_on
        {
            return Ok(key);
        }

        self.writer
            .run(opening, move |tx| {
                let log = row::first(tx.sql, LOG, [], log_row)?
                    .ok_or_else(|| damaged("the log of events", "it has no row".into()))?;
                let switched = Switched::of(log, switch, fresh_key, now);
                let Switched { is_on, off_since, key, .. } = switched;
                row::execute(tx.sql, SWITCH, params![is_on, off_since, key])?;

                if let Some(gap) = switched.gap_event(now) {
                    put(tx.sql, &gap)?;
                    row::execute(tx.sql, BEGIN_AT_NEWEST, [])?;
                    row::execute(tx.sql, COUNT_GAP, [])?;
                }
                Ok(key)
            })
            .await
    }

    async fn read_events(&self, range: &LogRange) -> Result<LogPart> {
        let range = range.clone();
        self.readers
            .run("reading events", move |sql| {
                let snapshot = sql.unchecked_transaction()?;
                part(&snapshot, &range)
            })
            .await
    }

    async fn await_events(&self, settled: u64) -> Result<()> {
        self.readers.check()?;
        // From here on the writer tells; an earlier commit is visible.
        let mut head = self.followers.subscribe();
        let newest = self.readers.run("looking for events", newest).await?;
        if newest.is_some_and(|(position, _)| position > settled) {
            return Ok(());
        }
        // Fails once the writer has ended: then the next read says so.
        let _ = head.wait_for(|position| *position > settled).await;
        Ok(())
    }

    async fn note_events(&self, events: Vec<NewEvent>) -> Result<()> {
        self.writer
            .run("writing events", move |tx| events.iter().try_for_each(|event| put(tx.sql, event)))
            .await
    }

    async fn forget_events(&self, bounds: LogBounds, limit: usize) -> Result<u64> {
        // On a reader, so that looking in vain costs the writer nothing.
        let looking = self.readers.run("looking for old events", move |sql| {
            let Some((newest, _)) = newest(sql)? else { return Ok(None) };
            // One more, because the last event outside the bounds stays.
            let first = row::collect(sql, FIRST, [row::limit(limit.saturating_add(1))], |row| {
                Ok((row::count(row, 0)?, row.get(1)?))
            })?;
            Ok(bounds.to_forget(&first, newest))
        });
        let Some((first, last)) = looking.await? else { return Ok(0) };

        self.writer
            .run("forgetting events", move |tx| {
                let range = [row::integer(first)?, row::integer(last)?];
                Ok(row::execute(tx.sql, FORGET, range)? as u64)
            })
            .await
    }

    async fn blank_events(&self, organization: &OrganizationId, limit: usize) -> Result<u64> {
        let organization = organization.clone();
        self.writer
            .run("blanking events", move |tx| {
                let params = params![organization.as_str(), row::limit(limit)];
                Ok(row::execute(tx.sql, BLANK, params)? as u64)
            })
            .await
    }
}

/// Writes an event, unless the log is off.
pub(in crate::metadata::sqlite) fn put(sql: &Connection, event: &NewEvent) -> Result<(), Fault> {
    let (file, sub_system, version) = match &event.file {
        Some((file, sub_system, version)) => {
            (Some(row::id(*file)), Some(sub_system.as_str()), Some(row::integer(*version)?))
        }
        None => (None, None, None),
    };
    let params = params![
        event.at.as_millis(),
        event.kind.as_str(),
        event.organization_id.as_ref().map(OrganizationId::as_str),
        sub_system,
        file,
        version,
        details_text(&event.details),
    ];
    row::execute(sql, PUT, params).map(drop)
}

/// Writes the event of a finding about the bytes of a live file.
pub(in crate::metadata::sqlite) fn put_damaged(
    sql: &Connection,
    finding: &Finding,
    now: Timestamp,
) -> Result<(), Fault> {
    let Some((file, details)) = of_finding(finding) else { return Ok(()) };
    row::execute(sql, PUT_DAMAGED, params![row::id(file), now.as_millis(), details]).map(drop)
}

/// Returns position and time of the newest event.
pub(in crate::metadata::sqlite) fn newest(
    sql: &Connection,
) -> Result<Option<(u64, Timestamp)>, Fault> {
    row::first(sql, NEWEST, [], place)
}

/// Reads position and time of an event.
fn place(row: &Row<'_>) -> Result<(u64, Timestamp), Fault> {
    Ok((row::count(row, 0)?, Timestamp::from_millis(row.get(1)?)))
}

fn part(sql: &Connection, range: &LogRange) -> Result<LogPart, Fault> {
    let newest = newest(sql)?;
    let (is_on, key, gap) = row::first(sql, STATE, [], state_row)?.unwrap_or_default();
    let edge = match (range.from, range.order) {
        (Some(0), LogOrder::Forward) => gap.map_or(0, |gap| gap - 1),
        // A cursor of another log can name any position.
        (Some(position), _) => i64::try_from(position).unwrap_or(i64::MAX),
        (None, LogOrder::Forward) => row::integer(newest.map_or(0, |(position, _)| position))?,
        (None, LogOrder::Backward) => i64::MAX,
    };

    let mut part = LogPart {
        is_on,
        key,
        edge_at: row::first(sql, TIME_OF, [edge], |row| Ok(Timestamp::from_millis(row.get(0)?)))?,
        oldest: row::first(sql, OLDEST, [], place)?,
        newest,
        settled: newest.map_or(0, |(position, _)| position),
        held_back: (0, Duration::ZERO),
        rows: Vec::new(),
    };
    let limit = row::limit(range.limit);
    match &range.organizations {
        None => {
            let query = if range.order == LogOrder::Forward { FORWARD } else { BACKWARD };
            part.rows = row::collect(sql, query, params![edge, limit], logged)?;
        }
        Some(organizations) => {
            let query = if range.order == LogOrder::Forward { FORWARD_OF } else { BACKWARD_OF };
            for one in organizations {
                let params = params![edge, limit, one.as_str()];
                part.rows.extend(row::collect(sql, query, params, logged)?);
            }
            if let Some(gap) = gap.filter(|gap| range.reaches(edge, *gap)) {
                part.rows.extend(row::first(sql, AT, [gap], logged)?);
            }
            part.merge(range);
        }
    }
    Ok(part)
}

fn log_row(row: &Row<'_>) -> Result<LogRow, Fault> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

/// The switch, the key, and the position of the newest gap.
type StateRow = (bool, Option<[u8; 32]>, Option<i64>);

fn state_row(row: &Row<'_>) -> Result<StateRow, Fault> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

/// Reads an event. A damaged one keeps its place.
fn logged(row: &Row<'_>) -> Result<LoggedEvent, Fault> {
    let position = row::count(row, 0)?;
    let what = || format!("event {position}");
    let read = body(row).map_err(|source| damaged(&what(), source));
    Ok(LoggedEvent {
        position,
        at: Timestamp::from_millis(row.get(1)?),
        body: damage::pass_over(read)?.flatten(),
    })
}

fn body(row: &Row<'_>) -> Result<Option<EventBody>, Source> {
    let text = |column| row.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from);
    let row = BodyRow {
        kind: text(2)?,
        organization_id: text(3)?,
        sub_system: text(4)?,
        file_id: text(5)?,
        version: row.get(6)?,
        details: text(7)?,
    };
    row.body()
}

fn damaged(what: &str, source: Source) -> Fault {
    Fault::Row { what: what.to_owned(), source }
}
