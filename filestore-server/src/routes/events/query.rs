//! The parameters of `/events`.

use std::time::Duration;

use filestore_core::api::EventOrder;
use filestore_core::events::{After, EventFilter, EventKind};
use filestore_core::{Error, Result};

use crate::http::query::Query;
use crate::routes::files::limit;

/// The known parameters.
pub(super) const PARAMETERS: [&str; 7] =
    ["after", "before", "order", "types", "organization_id", "limit", "wait"];

/// The number of events in a page, unless the client wants another one.
const DEFAULT_LIMIT: usize = 100;

/// The maximum number of events in a page.
const MOST: usize = 1000;

/// The longest wait for an event, in seconds.
const LONGEST_WAIT_SECS: u64 = 30;

/// A request for events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventsQuery {
    /// The order, and the place where the page begins.
    pub(super) direction: Direction,
    /// The wanted events.
    pub(super) filter: EventFilter,
    /// The number of events in the page.
    pub(super) limit: usize,
    /// The longest wait for the first event.
    pub(super) wait: Duration,
}

/// The order of a page, and the place where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Oldest first, behind this place.
    Forward(After),
    /// Newest first, before this place.
    Backward(After),
}

impl EventsQuery {
    /// Reads the parameters. An error names the parameter.
    pub(super) fn of(query: &Query) -> Result<Self> {
        let mut filter = EventFilter::new();
        if let Some(types) = query.get("types") {
            filter = filter.kinds(EventKind::parse_list(types)?);
        }
        if let Some(organization) = query.get("organization_id") {
            filter = filter.organization(organization.parse()?);
        }
        let (direction, wait) = (direction(query)?, wait(query)?);
        if matches!(direction, Direction::Backward(_)) && !wait.is_zero() {
            return Err(Error::invalid("wait", "wait is only for order=asc"));
        }
        Ok(Self { direction, filter, limit: page_size(query)?, wait })
    }
}

fn direction(query: &Query) -> Result<Direction> {
    let order = match query.get("order").map(str::parse::<EventOrder>) {
        None => EventOrder::Asc,
        Some(Ok(order)) => order,
        Some(Err(error)) => {
            let allowed = error.allowed().iter().copied();
            return Err(Error::invalid("order", error.to_string()).with_allowed(allowed));
        }
    };
    let (after, before) = (query.get("after"), query.get("before"));
    match order {
        EventOrder::Desc if after.is_some() => {
            Err(Error::invalid("after", "with order=desc, use before instead of after"))
        }
        EventOrder::Desc => {
            let before = before.map_or(Ok(After::End), |text| place("before", text))?;
            Ok(Direction::Backward(before))
        }
        _ if before.is_some() => Err(Error::invalid("before", "before needs order=desc")),
        _ => Ok(Direction::Forward(after.map_or(Ok(After::Start), |text| place("after", text))?)),
    }
}

/// Reads a place of the log out of a parameter or header.
pub(super) fn place(field: &str, text: &str) -> Result<After> {
    text.parse::<After>().map_err(|error| error.with_field(field))
}

fn page_size(query: &Query) -> Result<usize> {
    let Some(text) = query.get("limit") else { return Ok(DEFAULT_LIMIT) };
    match limit(text)? {
        size @ 1..=MOST => Ok(size),
        _ => limit("none"),
    }
}

fn wait(query: &Query) -> Result<Duration> {
    let Some(text) = query.get("wait") else { return Ok(Duration::ZERO) };
    let is_plain = text.bytes().all(|b| b.is_ascii_digit());
    let secs = text.parse().ok().filter(|secs| is_plain && *secs <= LONGEST_WAIT_SECS);
    secs.map(Duration::from_secs).ok_or_else(|| {
        Error::invalid("wait", "wait is a number of seconds from 0 to 30")
            .with_limit(LONGEST_WAIT_SECS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(raw: &str) -> Result<EventsQuery> {
        EventsQuery::of(&Query::parse(raw, &PARAMETERS)?)
    }

    #[test]
    fn without_parameters_a_page_begins_with_the_oldest_event() {
        let query = read("").unwrap();
        assert_eq!(query.direction, Direction::Forward(After::Start));
        assert_eq!((query.limit, query.wait), (100, Duration::ZERO));
        assert_eq!(query.filter, EventFilter::new());
    }

    #[test]
    fn parameters_are_read() {
        let query =
            read("after=end&types=file.ready%2Ckey.*&organization_id=7&limit=5&wait=30&x=1");
        let query = query.unwrap();
        assert_eq!(query.direction, Direction::Forward(After::End));
        assert_eq!((query.limit, query.wait.as_secs()), (5, 30));
        assert_eq!((query.filter.kinds.len(), query.filter.organization.is_some()), (5, true));

        let backward = read("order=desc&before=BwcHBwcHBwcAAAAAAAAwOQ").unwrap();
        assert!(matches!(backward.direction, Direction::Backward(After::Event(_))));
        assert_eq!(read("order=desc").unwrap().direction, Direction::Backward(After::End));
    }

    #[test]
    fn bad_values_are_named() {
        for (raw, field) in [
            ("after=7", "after"),
            ("after=", "after"),
            ("order=desc&after=end", "after"),
            ("before=end", "before"),
            ("order=desc&before=x", "before"),
            ("order=DESC", "order"),
            ("types=", "types"),
            ("types=file.read", "types"),
            ("organization_id=007", "organization_id"),
            ("limit=0", "limit"),
            ("limit=1001", "limit"),
            ("limit=-1", "limit"),
            ("wait=31", "wait"),
            ("wait=+1", "wait"),
            ("wait=1.5", "wait"),
            ("order=desc&wait=1", "wait"),
            ("after=end&after=end", "after"),
        ] {
            let error = read(raw).expect_err(raw);
            assert_eq!(error.details().field.as_deref(), Some(field), "{raw}");
        }
        assert_eq!(read("order=up").unwrap_err().details().allowed, ["asc", "desc"]);
    }
}
