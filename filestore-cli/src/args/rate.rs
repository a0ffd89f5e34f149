//! Bytes per second, as people write them: `20MiB`, `500kB`, `1048576`.

use std::str::FromStr;

/// Bytes per second, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate(pub(crate) u64);

const UNITS: [(&str, u64); 9] = [
    ("", 1),
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KIB", 1 << 10),
    ("MIB", 1 << 20),
    ("GIB", 1 << 30),
    ("TIB", 1 << 40),
];

impl FromStr for Rate {
    type Err = String;

    /// A whole number and a unit in either case; `/s` may follow.
    fn from_str(text: &str) -> Result<Self, String> {
        let amount = text.strip_suffix("/s").unwrap_or(text);
        let (digits, unit) = amount.split_at(amount.bytes().take_while(u8::is_ascii_digit).count());
        let unit = unit.trim_start().to_ascii_uppercase();

        let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let bytes = digits
            .parse::<u64>()
            .ok()
            .zip(factor)
            .and_then(|(count, factor)| count.checked_mul(factor));

        match bytes {
            Some(bytes) if bytes > 0 => Ok(Self(bytes)),
            _ => Err("a rate is bytes per second, such as 500kB, 20MiB or 1048576".to_owned()),
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
