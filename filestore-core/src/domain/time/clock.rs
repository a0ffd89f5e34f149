//! Time in milliseconds since 1970-01-01 UTC, written in RFC 3339.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use crate::domain::error::{Error, ErrorKind};

/// An instant, in milliseconds since the Unix epoch. `Display` writes RFC 3339, for example
/// `2026-11-21T08:15:30.123Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Returns the current time of the system clock.
    #[expect(clippy::disallowed_methods, reason = "the one place where the system is asked")]
    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }

    /// Creates an instant from milliseconds since the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns whole seconds since the epoch, rounded down, for example for HTTP dates.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Adds `duration`. Saturates.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Subtracts `duration`. Saturates.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns year, month (1 to 12) and day (1 to 31) in UTC.
    pub fn date(self) -> (i64, u32, u32) {
        civil_from_days(self.0.div_euclid(86_400_000))
    }

    /// Converts to [`SystemTime`]. An instant before the epoch becomes the epoch.
    pub fn to_system_time(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(self.0).unwrap_or(0))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Timestamp {
    /// Writes RFC 3339 with milliseconds, for example `2026-11-21T08:15:30.123Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let ms = self.0.rem_euclid(86_400_000);
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
            ms % 1000
        )
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    /// Reads RFC 3339: a date (midnight UTC), or date and time with a zone, for example
    /// `2026-11-21T08:15:30.123Z` or `2026-11-21T09:15:30+01:00`. Ignores digits after the
    /// milliseconds. The error names no field.
    fn from_str(text: &str) -> Result<Self, Error> {
        read_iso_8601(text).map(Self).ok_or_else(|| {
            let message = "a time is ISO 8601 with a zone, such as 2026-11-21T08:15:30Z, or a date";
            Error::new(ErrorKind::InvalidField, message)
        })
    }
}

fn read_iso_8601(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once(['T', 't']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };

    let mut parts = date.split('-');
    let (year, month, day) =
        (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let days = days_from_civil(year, month, day);
    let round = civil_from_days(days);
    if parts.next().is_some()
        || (round.0, i64::from(round.1), i64::from(round.2)) != (year, month, day)
    {
        return None;
    }

    let within_day = time.map_or(Some(0), millis_of_time)?;
    Some(days * 86_400_000 + within_day)
}

/// Reads `08:15:30.123Z` as milliseconds since midnight UTC.
fn millis_of_time(time: &str) -> Option<i64> {
    let at = time.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = time.split_at(at);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }

    let mut parts = clock.split(':');
    let (hour, minute, second) =
        (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    // A leap second counts as the first one of the next minute.
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }

    let millis: i64 = format!("{fraction:0<3.3}").parse().ok()?;
    Some(((hour * 60 + minute) * 60 + second) * 1000 + millis - offset_millis(zone)?)
}

/// Reads `Z` or `+01:00`.
fn offset_millis(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes) * 60_000)
}

/// Reads exactly `count` decimal digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let plain = text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// A store's clock. Cheap to clone. Clones of a manual clock show the same time.
///
/// ```
/// use std::time::Duration;
///
/// use filestore_core::admin::NoProgress;
/// use filestore_core::{FileStore, ManualClock, NewUpload, Scope, Timestamp};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> filestore_core::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let clock = ManualClock::at(Timestamp::from_millis(1_795_248_930_123));
/// let store = FileStore::builder(dir.path())
///     .clock(clock.clock())
///     .purge_grace(Duration::from_secs(3600))
///     .open()
///     .await?;
///
/// let new = NewUpload::new("42".parse()?, "gallery".parse()?);
/// let record = store.upload(new, &b"hello"[..]).await?;
/// store.scoped(&Scope::All).delete(record.file_id).await?;
/// assert_eq!(store.admin().purge(&NoProgress).await?.purged, 0);
///
/// clock.advance(Duration::from_secs(3600));
/// assert_eq!(store.admin().purge(&NoProgress).await?.purged, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Clock(Hands);

#[derive(Debug, Clone, Default)]
enum Hands {
    #[default]
    System,
    Manual(Arc<Instants>),
    #[cfg(any(test, feature = "internals"))]
    Runtime {
        start: Timestamp,
        origin: tokio::time::Instant,
    },
}

impl Clock {
    /// Returns the system clock.
    pub const fn system() -> Self {
        Self(Hands::System)
    }

    /// Creates a clock that shows `start` now and follows the time of the tokio runtime, which a
    /// simulation can pause.
    #[cfg(any(test, feature = "internals"))]
    pub fn of_runtime(start: Timestamp) -> Self {
        Self(Hands::Runtime { start, origin: tokio::time::Instant::now() })
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            #[cfg(any(test, feature = "internals"))]
            Hands::Runtime { start, origin } => start.plus(origin.elapsed()),
            Hands::System => Timestamp::now(),
            Hands::Manual(instants) => Timestamp(instants.wall.load(Ordering::SeqCst)),
        }
    }

    /// Returns the monotonic time since a fixed instant. Setting the clock does not change it.
    pub fn monotonic(&self) -> Duration {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        match &self.0 {
            #[cfg(any(test, feature = "internals"))]
            Hands::Runtime { origin, .. } => origin.elapsed(),
            Hands::System => ORIGIN.get_or_init(Instant::now).elapsed(),
            Hands::Manual(instants) => {
                Duration::from_millis(instants.passed.load(Ordering::SeqCst))
            }
        }
    }
}

/// A clock for tests. The clock moves only when you tell it to.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Instants>);

/// Instants of a manual clock, in milliseconds.
#[derive(Debug, Default)]
struct Instants {
    wall: AtomicI64,
    passed: AtomicU64,
}

impl ManualClock {
    /// Creates a clock that shows `start`.
    pub fn at(start: Timestamp) -> Self {
        Self(Arc::new(Instants { wall: AtomicI64::new(start.0), passed: AtomicU64::new(0) }))
    }

    /// Returns the clock for a store. The returned clock follows this clock.
    pub fn clock(&self) -> Clock {
        Clock(Hands::Manual(Arc::clone(&self.0)))
    }

    /// Lets `duration` pass.
    pub fn advance(&self, duration: Duration) {
        let passed = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.0.passed.fetch_add(passed, Ordering::SeqCst);
        let now = Timestamp(self.0.wall.load(Ordering::SeqCst));
        self.set(now.plus(duration));
    }

    /// Sets the clock to `now` while no time passes, like an operator, or like a virtual machine
    /// that resumes.
    pub fn set(&self, now: Timestamp) {
        self.0.wall.store(now.0, Ordering::SeqCst);
    }
}

/// Converts days since 1970-01-01 to a proleptic Gregorian date (Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", `civil_from_days`).
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;

    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);

    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);

    (year, u32::try_from(month).expect("1 to 12"), u32::try_from(day).expect("1 to 31"))
}

/// Converts a proleptic Gregorian date to days since 1970-01-01 (Hinnant, `days_from_civil`).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_index = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_index + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_iso_8601_with_milliseconds() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_827_696_789, "2000-02-29T12:34:56.789Z"),
            (1_795_248_930_123, "2026-11-21T08:15:30.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp::from_millis(millis).to_string(), text);
        }
    }

    #[test]
    fn reads_what_it_shows_and_what_others_write() {
        for millis in
            [0, 951_827_696_789, 1_795_248_930_123, 4_107_542_399_999, 253_402_300_799_999]
        {
            let shown = Timestamp(millis);
            assert_eq!(shown.to_string().parse::<Timestamp>().unwrap(), shown);
        }
        for text in [
            "2026-11-21T08:15:30.123Z",
            "2026-11-21t08:15:30.123z",
            "2026-11-21T08:15:30.123999Z",
            "2026-11-21T09:45:30.123+01:30",
            "2026-11-20T23:15:30.123-09:00",
        ] {
            assert_eq!(text.parse::<Timestamp>().unwrap().0, 1_795_248_930_123, "{text}");
        }
        let millis = |text: &str| text.parse::<Timestamp>().unwrap().0;
        assert_eq!(millis("2026-11-21"), 1_795_219_200_000);
        assert_eq!(millis("1969-12-31T23:59:59.9Z"), -100);
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in [
            "",
            "now",
            "1795248930",
            "2026-11-21T08:15:30",
            "2026-11-21 08:15:30Z",
            "2026-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-1-1",
            "+2026-11-21",
            "2026-11-21T24:00:00Z",
            "2026-11-21T08:60:00Z",
            "2026-11-21T08:15Z",
            "2026-11-21T08:15:30.Z",
            "2026-11-21T08:15:30+0100",
            "2026-11-21T08:15:30Zx",
            "2026-11-21T08:15:30+24:00",
            "2026-11-21-01",
        ] {
            let error = text.parse::<Timestamp>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidField, "{text}");
        }
    }
}
