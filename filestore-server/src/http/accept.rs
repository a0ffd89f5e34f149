//! Chooses between representations, by media type (RFC 9110 section 12.5.1) or by coding (section 12.5.3).

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING};

/// Returns the media type that the request prefers. If the request has no preference, or accepts neither,
/// returns the first type. The client then sees from the type that it cannot show the reply.
pub(crate) fn preferred<'t>(headers: &HeaderMap, types: [&'t str; 2]) -> &'t str {
    let [first, second] = types.map(|media_type| weight(headers, media_type));
    if second > first { types[1] } else { types[0] }
}

/// Returns the weight of a media type, 0 to 1000, and the precision of the range that gives it: the most
/// specific range that includes the type counts.
fn weight(headers: &HeaderMap, media_type: &str) -> (u16, u8) {
    let family = media_type.split('/').next().unwrap_or_default();
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = accepted.flat_map(|value| value.split(','));

    let weighed = ranges.filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next()?.to_ascii_lowercase();
        let precision = match name.as_str() {
            "*/*" => 0,
            _ if name == media_type => 2,
            _ if name.strip_suffix("/*") == Some(family) => 1,
            _ => return None,
        };
        let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        Some((precision, quality.map_or(1000, thousandths)))
    });
    match weighed.max() {
        Some((precision, weight)) if weight > 0 => (weight, precision),
        _ => (0, 0),
    }
}

/// A coding of the content (RFC 9110 section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    /// The bytes as they are.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 7932.
    Brotli,
}

impl Coding {
    /// Returns the name in headers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
        }
    }
}

/// Returns the coding of `offered` that the request prefers, and the first of equals. Returns `Identity` if the
/// request accepts no other.
pub(crate) fn coding(headers: &HeaderMap, offered: &[Coding]) -> Coding {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let ranges: Vec<_> =
        accepted.flat_map(|value| value.split(',')).filter_map(coding_weight).collect();
    let named = |name: &str| {
        let found = ranges.iter().find(|(range, _)| range.eq_ignore_ascii_case(name));
        found.map(|(_, weight)| *weight)
    };

    let mut best = (Coding::Identity, named("identity").unwrap_or(0));
    for &coding in offered.iter().filter(|coding| **coding != Coding::Identity) {
        let weight = named(coding.name()).or_else(|| named("*")).unwrap_or(0);
        let is_better = weight > best.1 || (weight == best.1 && best.0 == Coding::Identity);
        if weight > 0 && is_better {
            best = (coding, weight);
        }
    }
    best.0
}

/// Splits an element of `Accept-Encoding` into the name and the weight.
fn coding_weight(element: &str) -> Option<(&str, u16)> {
    let mut parts = element.split(';').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty())?;
    let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
    Some((name, quality.map_or(1000, thousandths)))
}

/// Parses a weight, for example `0.8`. An invalid weight counts as 0.
fn thousandths(text: &str) -> u16 {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{rest:0<3}");
    match (whole, digits.parse::<u16>()) {
        ("1", _) => 1000,
        ("0", Ok(part)) if digits.len() == 3 => part,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_heavier_coding_is_preferred_and_identity_is_the_last_resort() {
        use Coding::{Brotli, Gzip, Identity};

        for (accepted, expected) in [
            (None, Identity),
            (Some(""), Identity),
            (Some("*"), Brotli),
            (Some("gzip, deflate, br"), Brotli),
            (Some("gzip, br;q=0.9"), Gzip),
            (Some("GZIP"), Gzip),
            (Some("br;q=0, *"), Gzip),
            (Some("gzip;q=0"), Identity),
            (Some("gzip;q=0.5, identity"), Identity),
            (Some("identity;q=0.5, gzip;q=0.5"), Gzip),
            (Some("identity;q=0, *;q=0"), Identity),
            (Some("br;q=nonsense, gzip;q=0.001"), Gzip),
            (Some(";;,,=/"), Identity),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accepted) = accepted {
                headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            }
            assert_eq!(coding(&headers, &[Brotli, Gzip, Identity]), expected, "{accepted:?}");
        }
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("br"))]);
        assert_eq!(coding(&headers, &[Gzip]), Identity);
    }

    #[test]
    fn the_heavier_type_is_preferred_and_the_first_of_equals() {
        for (accept, expected) in [
            (None, "image/webp"),
            (Some("*/*"), "image/webp"),
            (Some("application/json"), "application/json"),
            (Some("Application/JSON, */*;q=0.1"), "application/json"),
            (Some("application/json, image/webp"), "image/webp"),
            (Some("image/avif,image/webp,image/*,*/*;q=0.8"), "image/webp"),
            (Some("image/*;q=0.5, application/*;q=0.6"), "application/json"),
            (Some("application/json, text/plain, */*"), "application/json"),
            (Some("image/*, application/json"), "application/json"),
            (Some("image/webp, */*"), "image/webp"),
            (Some("application/*, image/webp"), "image/webp"),
            (Some("application/json;q=0.9, */*"), "image/webp"),
            (
                Some(
                    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
                ),
                "image/webp",
            ),
            (Some("application/json;q=0, */*"), "image/webp"),
            (Some("image/webp;q=0, */*"), "application/json"),
            (Some("text/html"), "image/webp"),
            (Some("application/json;q=nonsense"), "image/webp"),
            (Some(";;,,=/"), "image/webp"),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(
                preferred(&headers, ["image/webp", "application/json"]),
                expected,
                "{accept:?}"
            );
        }
    }
}
