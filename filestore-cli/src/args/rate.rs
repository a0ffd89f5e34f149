//! Bytes per second as text, for example `20MiB`, `500kB` or `1048576`.

use std::str::FromStr;

use filestore_core::config_file::ByteCount;

/// Bytes per second, at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate(pub(crate) u64);

impl FromStr for Rate {
    type Err = String;

    /// Parses a whole number with a unit in upper or lower case, and an optional `/s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let amount = text.strip_suffix("/s").unwrap_or(text);
        let bytes = amount.parse().ok().map(ByteCount::get);
        match bytes {
            Some(bytes) if bytes > 0 => Ok(Self(bytes)),
            _ => Err("use bytes per second, for example 500kB, 20MiB or 1048576".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_binary_and_decimal_units() {
        for (text, bytes) in [
            ("1", 1),
            ("1048576", 1 << 20),
            ("7B", 7),
            ("500kB", 500_000),
            ("20MiB", 20 << 20),
            ("20mib/s", 20 << 20),
            ("2 GiB", 2 << 30),
            ("1TiB", 1 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Rate(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_rate_is_refused_with_examples() {
        for text in ["", "0", "0MiB", "-1", "1.5MiB", "MiB", "20M", "1 XB", "99999999TiB", "5/m"] {
            assert!(text.parse::<Rate>().unwrap_err().contains("20MiB"), "{text}");
        }
    }
}
