//! Audit lines about unknown callers. Anyone can cause these lines, and they use disk space.
//!
//! # Bounds
//! In each minute, the first refusal of an address is a separate line. Further refusals of this address are
//! counted. So are refusals of addresses beyond the first [`ADDRESSES`]. After the minute, one line for each
//! address and one line for all further addresses contain the counts. Unknown callers therefore cause at most
//! 2 × [`ADDRESSES`] + 1 lines in a minute, with any number of requests.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::Instant;

use super::{Actor, Outcome};
use crate::http::forwarded::subscriber;

/// The maximum number of addresses with separate lines.
const ADDRESSES: usize = 64;

const MINUTE: Duration = Duration::from_mins(1);

/// The refusals of the current minute.
#[derive(Debug, Default)]
pub(super) struct Strangers(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    began: Option<Instant>,
    addresses: HashMap<IpAddr, Unlisted>,
    beyond: Unlisted,
}

/// Refusals without a separate line.
#[derive(Debug, Default)]
struct Unlisted {
    count: u64,
    first: String,
    last: String,
}

/// The line for counted refusals.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// The time of the last refusal.
    time: String,
    #[serde(flatten)]
    actor: Actor,
    /// The address, or the network of an IPv6 address. Absent for addresses beyond the first [`ADDRESSES`].
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    /// The number of refusals.
    repeated: u64,
    /// The time of the first refusal.
    since: String,
    result: Outcome,
}

impl Strangers {
    /// Counts a refusal at `time`. Returns true if it gets a separate line.
    pub(super) fn admit(&self, address: IpAddr, time: &str) -> bool {
        let address = subscriber(address);
        let mut seen = self.0.lock();
        seen.began.get_or_insert_with(Instant::now);

        if let Some(unlisted) = seen.addresses.get_mut(&address) {
            unlisted.add(time);
            return false;
        }
        if seen.addresses.len() == ADDRESSES {
            seen.beyond.add(time);
            return false;
        }
        seen.addresses.insert(address, Unlisted::default());
        true
    }

    /// Ends the current minute if it has passed, and returns its lines of counts.
    pub(super) fn take_due(&self) -> Vec<Summary> {
        let mut seen = self.0.lock();
        let is_due = seen.began.is_some_and(|began| began.elapsed() >= MINUTE);
        if is_due { std::mem::take(&mut *seen).summaries() } else { Vec::new() }
    }

    /// Ends the current minute, and returns its lines of counts.
    pub(super) fn take_all(&self) -> Vec<Summary> {
        std::mem::take(&mut *self.0.lock()).summaries()
    }
}

impl Seen {
    fn summaries(self) -> Vec<Summary> {
        let named = self.addresses.into_iter();
        let mut all: Vec<_> =
            named.map(|(address, unlisted)| (Some(address.to_string()), unlisted)).collect();
        all.push((None, self.beyond));
        all.retain(|(_, unlisted)| unlisted.count > 0);
        all.sort_by(|(_, one), (_, other)| one.first.cmp(&other.first));
        all.into_iter().map(|(client, unlisted)| unlisted.summary(client)).collect()
    }
}

impl Unlisted {
    fn add(&mut self, time: &str) {
        if self.count == 0 {
            time.clone_into(&mut self.first);
        }
        time.clone_into(&mut self.last);
        self.count += 1;
    }

    fn summary(self, client: Option<String>) -> Summary {
        Summary {
            time: self.last,
            actor: Actor::Anonymous,
            client,
            repeated: self.count,
            since: self.first,
            result: Outcome::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(summaries: &[Summary]) -> Vec<String> {
        summaries.iter().map(|summary| serde_json::to_string(summary).unwrap()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_has_one_line_in_a_minute_and_a_count_of_the_others() {
        let strangers = Strangers::default();
        let (one, other) = ("192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
        assert!(strangers.admit(one, "1") && strangers.admit(other, "2"));
        for time in ["3", "4", "5"] {
            assert!(!strangers.admit(one, time));
        }
        assert!(!strangers.admit("2001:db8::ffff".parse().unwrap(), "6"), "the same network");
        assert!(strangers.take_due().is_empty());

        tokio::time::advance(MINUTE).await;
        assert_eq!(
            shown(&strangers.take_due()),
            [
                r#"{"time":"5","actor":"anonymous","client":"192.0.2.1","repeated":3,"since":"3","result":"refused"}"#,
                r#"{"time":"6","actor":"anonymous","client":"2001:db8::","repeated":1,"since":"6","result":"refused"}"#,
            ]
        );
        assert!(strangers.admit(one, "7"), "a minute of its own");
        assert!(strangers.take_all().is_empty(), "nothing was left out since");
    }

    #[test]
    fn a_million_addresses_take_no_more_lines_and_memory_than_a_few() {
        let strangers = Strangers::default();
        let listed = (0..1_000_000_u32)
            .filter(|number| strangers.admit(std::net::Ipv4Addr::from(*number).into(), "1"))
            .count();
        assert_eq!((listed, strangers.0.lock().addresses.len()), (ADDRESSES, ADDRESSES));
        let left = shown(&strangers.take_all());
        let count = 1_000_000 - ADDRESSES;
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(left[0].contains(&format!("\"repeated\":{count}")), "{left:?}");
    }
}
