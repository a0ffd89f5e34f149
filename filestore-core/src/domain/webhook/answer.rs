//! The answer of an endpoint, and its meaning for the event and the lane.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::domain::time::clock::Timestamp;

words! {
    /// The reason why an endpoint did not answer at all.
    DeliveryFault {
        /// The name of the host has no address, or could not be looked up.
        Dns = "dns",
        /// An address of the host is not public, and the configuration does not allow it.
        AddressRefused = "address_refused",
        /// The URL breaks a rule of the configuration, for example `http` without `allow_http`.
        UrlRefused = "url_refused",
        /// The host refused the connection, or cannot be reached, or no secure connection was possible.
        Connect = "connect",
        /// The host did not answer in time.
        Timeout = "timeout",
        /// The connection ended before the answer, or the answer was not HTTP.
        Broken = "broken",
    }
}

/// The answer to one attempt. Only this is kept of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The status of the reply, and the pause that the endpoint asked for.
    Status(u16, Option<Duration>),
    Fault(DeliveryFault),
}

/// The meaning of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The endpoint has the event.
    Delivered,
    /// The endpoint wants no more events.
    Gone,
    /// The endpoint cannot take events now. This counts no attempt of the event.
    EndpointFault(Option<Duration>),
    /// The endpoint refuses this event.
    EventFault,
}

impl Answer {
    /// Decides who is at fault.
    pub(crate) fn verdict(self) -> Verdict {
        match self {
            Self::Status(200..=299, _) => Verdict::Delivered,
            Self::Status(410, _) => Verdict::Gone,
            Self::Status(429 | 502 | 503 | 504, pause) => Verdict::EndpointFault(pause),
            Self::Status(..) => Verdict::EventFault,
            Self::Fault(_) => Verdict::EndpointFault(None),
        }
    }

    /// Returns the status of the reply, if there was one.
    pub(crate) fn status(self) -> Option<u16> {
        match self {
            Self::Status(status, _) => Some(status),
            Self::Fault(_) => None,
        }
    }

    /// Returns the fault, if there was no reply.
    pub(crate) fn fault(self) -> Option<DeliveryFault> {
        match self {
            Self::Status(..) => None,
            Self::Fault(fault) => Some(fault),
        }
    }
}

/// Reads the header `Retry-After`: seconds, or an HTTP date. Anything else is ignored.
pub(crate) fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit mean a very long time.
        return Some(Duration::from_secs(header.parse().unwrap_or(u64::MAX)));
    }
    let at = Timestamp::from(httpdate::parse_http_date(header).ok()?);
    let millis = at.as_millis().saturating_sub(now.as_millis());
    Some(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_answer_says_who_is_at_fault() {
        let pause = Some(Duration::from_secs(7));
        for (status, verdict) in [
            (200, Verdict::Delivered),
            (204, Verdict::Delivered),
            (299, Verdict::Delivered),
            (300, Verdict::EventFault),
            (301, Verdict::EventFault),
            (308, Verdict::EventFault),
            (400, Verdict::EventFault),
            (404, Verdict::EventFault),
            (410, Verdict::Gone),
            (429, Verdict::EndpointFault(pause)),
            (500, Verdict::EventFault),
            (501, Verdict::EventFault),
            (502, Verdict::EndpointFault(pause)),
            (503, Verdict::EndpointFault(pause)),
            (504, Verdict::EndpointFault(pause)),
            (505, Verdict::EventFault),
            (199, Verdict::EventFault),
            (999, Verdict::EventFault),
        ] {
            assert_eq!(Answer::Status(status, pause).verdict(), verdict, "{status}");
        }
        for &fault in DeliveryFault::ALL {
            assert_eq!(Answer::Fault(fault).verdict(), Verdict::EndpointFault(None));
            assert_eq!(fault.as_str().parse(), Ok(fault));
        }
    }

    #[test]
    fn a_pause_is_read_as_seconds_or_as_a_date() {
        let now = Timestamp::from_millis(784_111_777_000);
        let seconds = |header| retry_after(header, now).map(|pause| pause.as_secs());
        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds(" 0 "), Some(0));
        assert_eq!(seconds("99999999999999999999999"), Some(u64::MAX));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:48:37 GMT"), Some(0), "a date in the past");
        for ignored in ["", "-1", "1.5", "soon", "+3"] {
            assert_eq!(seconds(ignored), None, "{ignored}");
        }
    }

    proptest! {
        #[test]
        fn no_header_breaks_the_reader(header in ".{0,60}") {
            let _ = retry_after(&header, Timestamp::from_millis(0));
        }
    }
}
