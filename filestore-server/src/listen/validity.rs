//! The time in which a certificate is valid (RFC 5280 §4.1.2.5), read from its DER.
//!
//! The file is the operator's own, and rustls has read it before. Only the way to the two times is parsed
//! here.

use filestore_core::Timestamp;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The first and the last moment at which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    /// The field `notBefore`.
    pub(crate) begin: Timestamp,
    /// The field `notAfter`.
    pub(crate) end: Timestamp,
}

impl Validity {
    /// Reads the validity of a certificate. `None` if the bytes are not a certificate.
    pub(super) fn of(certificate: &[u8]) -> Option<Self> {
        let mut fields = Der(certificate).enter(SEQUENCE)?.enter(SEQUENCE)?;
        if fields.0.first() == Some(&VERSION) {
            fields.next()?;
        }
        for _serial_algorithm_issuer in 0..3 {
            fields.next()?;
        }

        let mut times = fields.enter(SEQUENCE)?;
        Some(Self { begin: time(times.next()?)?, end: time(times.next()?)? })
    }
}

/// Elements of DER, one after another.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// Takes the next element: its tag and its content.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0x00..=0x7f => (usize::from(first), rest),
            // The count of bytes that the length has.
            0x81..=0x83 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (digits.iter().fold(0, |length, digit| (length << 8) | usize::from(*digit)), rest)
            }
            _ => return None,
        };

        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// Takes the next element, and returns the elements in it.
    fn enter(&mut self, tag: u8) -> Option<Self> {
        let (found, content) = self.next()?;
        (found == tag).then_some(Self(content))
    }
}

/// Reads `YYMMDDHHMMSSZ`, or the same with a year of four digits. Two digits mean 1950 to 2049.
fn time((tag, content): (u8, &[u8])) -> Option<Timestamp> {
    let text = std::str::from_utf8(content).ok()?;
    let full = match tag {
        GENERALIZED_TIME => text.to_owned(),
        UTC_TIME => format!("{}{text}", if text < "50" { "20" } else { "19" }),
        _ => return None,
    };
    if full.len() != 15 || !full.is_ascii() {
        return None;
    }

    let part = |at: usize| &full[at..at + 2];
    let [month, day, hour, minute, second] = [4, 6, 8, 10, 12].map(part);
    let zone = &full[14..];
    format!("{}-{month}-{day}T{hour}:{minute}:{second}{zone}", &full[..4]).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_validity_of_a_certificate_is_read_with_years_of_two_and_four_digits() {
        for (begin, end) in [(2026, 2049), (1975, 2050), (2049, 2999)] {
            let mut wanted = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            wanted.not_before = rcgen::date_time_ymd(begin, 11, 26);
            wanted.not_after = rcgen::date_time_ymd(end, 2, 28);
            let key = rcgen::KeyPair::generate().unwrap();
            let certificate = wanted.self_signed(&key).unwrap();

            let validity = Validity::of(certificate.der()).unwrap();
            assert_eq!(validity.begin, format!("{begin}-11-26").parse().unwrap());
            assert_eq!(validity.end, format!("{end}-02-28").parse().unwrap());

            for cut in 0..certificate.der().len() {
                let _ = Validity::of(&certificate.der()[..cut]);
            }
        }
        assert_eq!(Validity::of(b"no certificate"), None);
        assert_eq!(Validity::of(&[]), None);
    }
}
