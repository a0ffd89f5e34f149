//! HTTP dates (RFC 9110 section 5.6.7): whole seconds in GMT.

use std::fmt::Display;
use std::time::{Duration, SystemTime};

use crate::domain::time::clock::Timestamp;
use httpdate::HttpDate;

/// The last second of the year 9999. IMF-fixdate has four digits for a year.
const LAST_SECOND: u64 = 253_402_300_799;

/// Formats a date, for example `Sun, 06 Nov 1994 08:49:37 GMT`. Drops fractions. A time outside 1970 to 9999
/// becomes the nearest valid time.
pub fn format(time: Timestamp) -> impl Display {
    let secs = u64::try_from(time.as_secs()).unwrap_or(0).min(LAST_SECOND);
    HttpDate::from(SystemTime::UNIX_EPOCH + Duration::from_secs(secs))
}

/// Parses all three forms that a recipient must accept: IMF-fixdate, RFC 850, asctime.
pub fn parse(text: &str) -> Option<Timestamp> {
    httpdate::parse_http_date(text.trim()).ok().map(Timestamp::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_forms_of_section_5_6_7_are_one_date() {
        let date = Timestamp::from_millis(784_111_777_000);
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(text), Some(date), "{text}");
        }

        assert_eq!(format(date).to_string(), "Sun, 06 Nov 1994 08:49:37 GMT");

        for bad in [
            "",
            "0",
            "1994-11-06T08:49:37Z",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Feb 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn fractions_are_dropped_and_extremes_are_moved_in() {
        assert_eq!(
            format(Timestamp::from_millis(784_111_777_999)).to_string(),
            "Sun, 06 Nov 1994 08:49:37 GMT"
        );
        assert_eq!(format(Timestamp::from_millis(-1)).to_string(), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(
            format(Timestamp::from_millis(i64::MAX)).to_string(),
            "Fri, 31 Dec 9999 23:59:59 GMT"
        );
    }
}
