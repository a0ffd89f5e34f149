//! Time as the service stores it: milliseconds since 1970-01-01 UTC, shown as ISO 8601.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// An instant, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Returns the present instant by the system's clock.
    #[expect(clippy::disallowed_methods, reason = "the one place where the system is asked")]
    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }

    /// Makes the instant `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds since the epoch, rounded down (HTTP dates have no fraction).
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Adds `duration` to the instant, saturating.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Subtracts `duration` from the instant, saturating.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns the year, the month 1–12 and the day 1–31 in UTC.
    pub fn date(self) -> (i64, u32, u32) {
        civil_from_days(self.0.div_euclid(86_400_000))
    }

    /// Converts to a [`SystemTime`]; an instant before the epoch becomes the epoch.
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
    /// Writes ISO 8601 with milliseconds, as `2026-11-21T08:15:30.123Z`.
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

/// The source of the time that a store goes by. Cheap to clone; clones of a manual clock show the same
/// time.
///
/// ```
/// use std::time::Duration;
///
/// use filestore_core::{FileStore, ManualClock, NewUpload, NoProgress, Scope, Timestamp};
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
/// store.delete(record.file_id, &Scope::All).await?;
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
    /// Returns the clock of the system.
    pub const fn system() -> Self {
        Self(Hands::System)
    }

    /// Starts a clock that shows `start` now and goes by the time of tokio's runtime, which a
    /// simulation pauses.
    #[cfg(any(test, feature = "internals"))]
    pub fn of_runtime(start: Timestamp) -> Self {
        Self(Hands::Runtime { start, origin: tokio::time::Instant::now() })
    }

    /// Returns the present instant.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            #[cfg(any(test, feature = "internals"))]
            Hands::Runtime { start, origin } => start.plus(origin.elapsed()),
            Hands::System => Timestamp::now(),
            Hands::Manual(instants) => Timestamp(instants.wall.load(Ordering::SeqCst)),
        }
    }

    /// Returns the time that has passed since some instant before, whatever was done to the clock's
    /// hands meanwhile.
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

/// A clock for tests, which stands still until it is told to move.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Instants>);

/// Instants that a manual clock shows, in milliseconds.
#[derive(Debug, Default)]
struct Instants {
    wall: AtomicI64,
    passed: AtomicU64,
}

impl ManualClock {
    /// Sets up a clock that stands at `start`.
    pub fn at(start: Timestamp) -> Self {
        Self(Arc::new(Instants { wall: AtomicI64::new(start.0), passed: AtomicU64::new(0) }))
    }

    /// Returns the clock that a store goes by; it follows this one.
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

    /// Sets the hands to `now` although no time passes, as an operator does, or a virtual machine that
    /// resumes.
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
}
