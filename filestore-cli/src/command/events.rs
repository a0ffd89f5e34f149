//! `events`: what happened to files.

use std::fmt::Write as _;

use filestore_core::api::{Event, EventData, EventPage, EventQuery};

use crate::args::EventsArgs;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Align, Output, Pages, Table, counted, plain, size, when};
use crate::store::Target;

/// The largest page: fewer round trips for the same rows.
const LARGEST_PAGE: u32 = 1000;

/// The time for which the target waits for an event, in seconds.
const WAIT_SECS: u32 = 30;

/// Shows the newest events, the events after one, or each event as it comes.
pub(super) async fn run(args: EventsArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let mut query = EventQuery::new();
    query.types.clone_from(&args.types);
    query.organization_id = args.org.as_ref().map(ToString::to_string);
    query.limit = args.limit.or((args.all || args.follow).then_some(LARGEST_PAGE));

    if args.follow {
        let after = args.after.unwrap_or_else(|| "end".to_owned());
        return follow(query.after(after).wait(WAIT_SECS), target, out).await;
    }
    match args.after {
        Some(after) => list(query.after(after), args.all, target, out).await,
        None if args.all => list(query.after("start"), true, target, out).await,
        None => newest(query.before("end"), target, out).await,
    }
}

/// Prints events as they come. A failure says how to continue.
async fn follow(mut query: EventQuery, target: &dyn Target, out: Output) -> Result<Exit> {
    let mut pages = Pages::default();
    loop {
        let page = read(&query, target).await.map_err(|failure| resumable(failure, &query))?;
        show(&page.events, &mut pages, out)?;
        query.after = Some(page.next);
    }
}

fn resumable(failure: Failure, query: &EventQuery) -> Failure {
    match query.after.as_deref() {
        Some("start" | "end") | None => failure,
        Some(id) if failure.code().is_none() => {
            failure.hint(format!("to continue: `filestore events --follow --after {}`", plain(id)))
        }
        Some(_) => failure,
    }
}

/// Prints a page, or all pages, oldest first.
async fn list(mut query: EventQuery, all: bool, target: &dyn Target, out: Output) -> Result<Exit> {
    let mut pages = Pages::default();
    loop {
        let page = read(&query, target).await?;
        show(&page.events, &mut pages, out)?;
        // A page can be empty and still not be the last.
        let goes_on = page.more && (all || page.events.is_empty());
        if !goes_on {
            let next = plain(&page.next);
            if page.more {
                out.note(format!("there are more events: use --all, or --after {next}"));
            } else if !all {
                out.note(format!("no more events. For later ones: --after {next}"));
            }
            return Ok(Exit::Done);
        }
        query.after = Some(page.next);
    }
}

/// Prints the newest events, newest first.
async fn newest(mut query: EventQuery, target: &dyn Target, out: Output) -> Result<Exit> {
    loop {
        let page = read(&query, target).await?;
        if page.events.is_empty() && page.more {
            query.before = Some(page.next);
            continue;
        }
        show(&page.events, &mut Pages::default(), out)?;
        if page.events.is_empty() {
            out.note("no events");
        } else if page.more {
            out.note("there are older events: use --all, or --limit for more of the newest");
        }
        return Ok(Exit::Done);
    }
}

async fn read(query: &EventQuery, target: &dyn Target) -> Result<EventPage> {
    target.events(query).await.map_err(|failure| failure.doing("cannot read the events"))
}

/// Prints one JSON object per line, the ids of the files, or rows.
fn show(events: &[Event], pages: &mut Pages, out: Output) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    out.some_of_each(events, |one| one.data.file_id.as_deref(), |events| pages.page(&table(events)))
}

fn table(events: &[Event]) -> Table {
    let table = Table::new([
        ("TIME (UTC)", Align::Left),
        ("TYPE", Align::Left),
        ("ORG", Align::Left),
        ("FILE", Align::Left),
        ("DETAILS", Align::Left),
    ]);
    let mut table = table.shortens(&["DETAILS", "ORG"]);
    for event in events {
        let text = |id: &Option<String>| id.as_deref().map_or_else(|| "-".to_owned(), plain);
        table.row([
            when(&event.timestamp),
            plain(event.kind.as_str()),
            text(&event.data.organization_id),
            text(&event.data.file_id),
            plain(&details(&event.data)),
        ]);
    }
    table
}

/// Writes the facts of an event beside its ids, separated by commas.
pub(super) fn details(data: &EventData) -> String {
    let mut text = String::new();
    let mut add = |fact: String| {
        let comma = if text.is_empty() { "" } else { ", " };
        _ = write!(text, "{comma}{fact}");
    };
    if let Some(version) = data.version {
        add(format!("version {version}"));
    }
    if let Some(status) = &data.status {
        add(status.to_string());
    }
    if !data.changed.is_empty() {
        add(format!("changed {}", data.changed.join(" and ")));
    }
    for (word, value) in [
        ("by", &data.by),
        ("from", &data.from),
        ("to", &data.to),
        ("key", &data.key_id),
        ("webhook", &data.webhook_id),
        ("reason", &data.reason),
        ("off since", &data.off_since),
    ] {
        if let Some(value) = value {
            add(format!("{word} {value}"));
        }
    }
    if let Some(attempts) = data.attempts {
        add(counted(attempts, "attempt"));
    }
    if let Some(files) = data.files {
        add(counted(files, "file"));
    }
    if let Some(bytes) = data.bytes {
        add(size(bytes));
    }
    if let Some(ok) = data.ok {
        add(if ok { "ok" } else { "not ok" }.to_owned());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(json: &str) -> Event {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn facts_are_shown_behind_the_ids() {
        let event = event(
            r#"{"id":"x","type":"file.edited","timestamp":"t","data":{"organization_id":"42",
                "version":2,"status":"READY","changed":["name","type"],"attempts":1,"ok":false}}"#,
        );
        assert_eq!(
            details(&event.data),
            "version 2, READY, changed name and type, 1 attempt, not ok"
        );
        assert_eq!(details(&EventData::default()), "");
    }

    #[test]
    fn an_event_of_a_later_server_commands_no_terminal() {
        let event = event(
            r#"{"id":"x","type":"file.\u001b[2J","timestamp":"t","data":{"reason":"\u0007"}}"#,
        );
        let shown = Pages::default().page(&table(&[event]));
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{shown:?}");
    }
}
