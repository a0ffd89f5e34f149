//! Chooses between two representations (RFC 9110 section 12.5.1).

use http::HeaderMap;
use http::header::ACCEPT;

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
