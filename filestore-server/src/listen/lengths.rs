//! Lengths of bodies that hyper has no number for.
//!
//! hyper keeps the two highest numbers of 64 bits for itself, and answers 431 to them and 400 to higher ones,
//! without a body. But they are lengths (RFC 9110 section 8.6 warns of overflows), and too large ones: 413. So
//! they become the highest length that hyper takes, before it sees them. No body comes near it.

/// The highest length that hyper takes.
const HIGHEST: &[u8] = b"18446744073709551613";

const NAME: &[u8] = b"content-length:";

/// Lowers lengths in the first piece of a request's head. The number of bytes stays the same. A head in several
/// pieces keeps the lengths of the later pieces.
pub(super) fn lower(bytes: &mut [u8]) {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n").unwrap_or(bytes.len());
    for line in bytes[..end].split_mut(|b| *b == b'\n') {
        if line.len() >= NAME.len() + HIGHEST.len()
            && line[..NAME.len()].eq_ignore_ascii_case(NAME)
            && let Some(digits) = digits(&mut line[NAME.len()..])
            && is_too_high(digits)
        {
            let (zeros, highest) = digits.split_at_mut(digits.len() - HIGHEST.len());
            zeros.fill(b'0');
            highest.copy_from_slice(HIGHEST);
        }
    }
}

/// Finds the digits of a value; `None` if it has anything else.
fn digits(value: &mut [u8]) -> Option<&mut [u8]> {
    let start = value.iter().position(|b| !b.is_ascii_whitespace())?;
    let end = value.trim_ascii_end().len();
    let digits = &mut value[start..end];
    digits.iter().all(u8::is_ascii_digit).then_some(digits)
}

fn is_too_high(digits: &[u8]) -> bool {
    let zeros = digits.iter().take_while(|b| **b == b'0').count();
    let number = &digits[zeros..];
    (number.len(), number) > (HIGHEST.len(), HIGHEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lowered(head: &str) -> String {
        let mut bytes = head.as_bytes().to_vec();
        lower(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_length_that_is_too_high_is_lowered() {
        for (value, expected) in [
            ("18446744073709551615", "18446744073709551613"),
            ("18446744073709551614", "18446744073709551613"),
            ("18446744073709551613", "18446744073709551613"),
            ("18446744073709551616", "18446744073709551613"),
            ("99999999999999999999999", "00018446744073709551613"),
            ("00000000000000000000000000000017", "00000000000000000000000000000017"),
            ("17", "17"),
            ("-18446744073709551615", "-18446744073709551615"),
            ("18446744073709551615, 1", "18446744073709551615, 1"),
            (
                "1844674407370955161518446744073709551615x",
                "1844674407370955161518446744073709551615x",
            ),
        ] {
            for name in ["Content-Length: ", "content-length:", "CONTENT-LENGTH:\t"] {
                let head =
                    |value| format!("POST / HTTP/1.1\r\nHost: x\r\n{name}{value}\r\nA: b\r\n\r\n");
                assert_eq!(lowered(&head(value)), head(expected));
            }
        }
    }

    #[test]
    fn only_the_header_is_read() {
        for text in [
            "POST / HTTP/1.1\r\n\r\ncontent-length: 18446744073709551615\r\n",
            "POST / HTTP/1.1\r\nX-Content-Length: 18446744073709551615\r\n\r\n",
            "",
            "\n",
            "content-length:",
        ] {
            assert_eq!(lowered(text), text);
        }
    }
}
