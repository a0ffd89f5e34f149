//! Sizes and durations: a plain number, or a text with a unit.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use thiserror::Error;

/// Units of sizes in upper case, with their number of bytes.
const SIZES: [(&str, u64); 10] = [
    ("", 1),
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KIB", 1 << 10),
    ("MIB", 1 << 20),
    ("GIB", 1 << 30),
    ("TIB", 1 << 40),
];

/// Units of durations, with their number of seconds.
const TIMES: [(&str, u64); 7] =
    [("", 1), ("s", 1), ("m", 60), ("min", 60), ("h", 3600), ("d", 86_400), ("w", 604_800)];

/// Maximum duration in the file, in seconds. No key has a use for more than a century.
const MAX_SECS: u64 = u32::MAX as u64;

/// The rule for a size, as errors state it.
const SIZE_RULE: &str = "a whole number of bytes, or with a unit: 500kB, 5MiB, 2GiB";

/// The rule for a duration, as errors state it.
const TIME_RULE: &str = "a whole number of seconds, or with a unit: 90s, 10m, 12h, 7d, 2w";

/// The error for a text that is not a size or a duration. The message is the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("use {0}")]
pub struct InvalidQuantity(&'static str);

/// A number of bytes. A text can have a unit, in upper or lower case.
///
/// ```
/// use filestore_core::config_file::ByteCount;
///
/// assert_eq!("5MiB".parse::<ByteCount>()?.get(), 5 << 20);
/// assert_eq!("500 kB".parse::<ByteCount>()?.get(), 500_000);
/// assert_eq!("1048576".parse::<ByteCount>()?.get(), 1 << 20);
/// assert!("5 files".parse::<ByteCount>().is_err());
/// # Ok::<(), filestore_core::config_file::InvalidQuantity>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct ByteCount(u64);

impl ByteCount {
    /// Creates the size from a number of bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Returns the number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteCount {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        let (digits, unit) = split(text);
        let unit = unit.to_ascii_uppercase();
        product(digits, &unit, &SIZES).map(Self).ok_or(InvalidQuantity(SIZE_RULE))
    }
}

/// A duration in whole seconds. A text can have a unit.
///
/// ```
/// use filestore_core::config_file::Seconds;
///
/// assert_eq!("10m".parse::<Seconds>()?.get(), 600);
/// assert_eq!("7d".parse::<Seconds>()?.get(), 604_800);
/// assert_eq!("90".parse::<Seconds>()?.get(), 90);
/// assert!("soon".parse::<Seconds>().is_err());
/// # Ok::<(), filestore_core::config_file::InvalidQuantity>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Seconds(u64);

impl Seconds {
    /// Returns the number of seconds.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<Duration> for Seconds {
    /// Drops the part of a second.
    fn from(duration: Duration) -> Self {
        Self(duration.as_secs())
    }
}

impl FromStr for Seconds {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        let (digits, unit) = split(text);
        product(digits, unit, &TIMES).map(Self).ok_or(InvalidQuantity(TIME_RULE))
    }
}

/// Splits a text into its leading digits and its unit.
fn split(text: &str) -> (&str, &str) {
    let (digits, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    (digits, unit.trim_start())
}

fn product(digits: &str, unit: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}

impl<'de> Deserialize<'de> for ByteCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = QuantityVisitor { rule: SIZE_RULE, read: |text| Ok(text.parse::<Self>()?.0) };
        deserializer.deserialize_any(visitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    /// Also refuses durations over a century, which no key has a use for.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = QuantityVisitor { rule: TIME_RULE, read: |text| Ok(text.parse::<Self>()?.0) };
        let secs = deserializer.deserialize_any(visitor)?;
        if secs > MAX_SECS {
            return Err(de::Error::custom(format!("use at most {MAX_SECS} seconds")));
        }
        Ok(Self(secs))
    }
}

/// Reads an integer, or a text that `read` understands.
struct QuantityVisitor {
    rule: &'static str,
    read: fn(&str) -> Result<u64, InvalidQuantity>,
}

impl Visitor<'_> for QuantityVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        let negative = de::Unexpected::Signed(number);
        u64::try_from(number).map_err(|_| E::invalid_value(negative, &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        (self.read)(text).map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::config::StoreConfig;

    #[test]
    fn a_size_has_binary_and_decimal_units_in_any_case() {
        for (text, bytes) in [
            ("0", 0),
            ("1048576", 1 << 20),
            ("7B", 7),
            ("500kB", 500_000),
            ("20mib", 20 << 20),
            ("2 GiB", 2 << 30),
            ("1TiB", 1 << 40),
            ("3TB", 3_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(ByteCount(bytes)), "{text}");
        }
        for text in ["", "-1", "1.5MiB", "MiB", "20M", "1 XB", "99999999TiB", "5m"] {
            let error = text.parse::<ByteCount>().unwrap_err().to_string();
            assert!(error.contains("5MiB"), "{text}: {error}");
        }
    }

    #[test]
    fn a_duration_is_in_seconds_without_a_unit() {
        for (text, secs) in [
            ("0", 0),
            ("90", 90),
            ("90s", 90),
            ("10m", 600),
            ("10 min", 600),
            ("12h", 43_200),
            ("7d", 604_800),
            ("2w", 1_209_600),
        ] {
            assert_eq!(text.parse(), Ok(Seconds(secs)), "{text}");
        }
        for text in ["", "-1", "1.5h", "h", "10M", "1h30m", "5MiB", "99999999999999999999w"] {
            let error = text.parse::<Seconds>().unwrap_err().to_string();
            assert!(error.contains("7d"), "{text}: {error}");
        }
    }

    #[test]
    fn a_size_and_a_duration_can_have_a_unit() {
        let config = StoreConfig::from_toml(
            "quota_bytes = \"2GiB\"\n[limits]\nmax_file_size = \"5MiB\"\nmax_batch_size = 7\n\
             [lifetimes]\ntemp_ttl_secs = \"2d\"\npurge_grace_secs = 60\n\
             [scrub]\nperiod_secs = \"1w\"\nbytes_per_second = \"0\"\n\
             [[providers]]\ncode = \"eu\"\nscheme = \"s3\"\ntimeout_secs = \"1m\"",
            |_| None,
        )
        .unwrap();
        assert_eq!((config.limits.max_file_size, config.limits.max_batch_size), (5 << 20, 7));
        assert_eq!((config.quota_bytes, config.scrub.bytes_per_second), (Some(2 << 30), None));
        assert_eq!(
            (config.temp_ttl, config.purge_grace),
            (Duration::from_hours(48), Duration::from_mins(1))
        );
        assert_eq!(config.scrub.period, Duration::from_hours(7 * 24));
        assert_eq!(config.providers[0].timeout, Duration::from_mins(1));

        for (text, rule) in [
            ("[limits]\nmax_file_size = \"5 files\"", "5MiB"),
            ("[limits]\nmax_file_size = -1", "5MiB"),
            ("[limits]\nmax_file_size = 1.5", "5MiB"),
            ("[lifetimes]\ntemp_ttl_secs = \"soon\"", "10m"),
            ("[lifetimes]\ntemp_ttl_secs = \"200000w\"", "4294967295 seconds"),
        ] {
            let error = StoreConfig::from_toml(text, |_| None).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(rule), "{text}: {error}");
        }
    }
}
