//! Cache-Control: replies are private and checked each time, unless the URL names the content.

use filestore_core::Sha256;
use http::HeaderValue;

/// The value for a URL whose content may change.
pub(crate) const CHECKED: HeaderValue = HeaderValue::from_static("private, no-cache");

/// The value for a URL that names its content.
pub(crate) const IMMUTABLE: HeaderValue =
    HeaderValue::from_static("private, max-age=31536000, immutable");

/// Returns the value of Cache-Control where `?v=` is `wanted` and the content is `current`.
pub(crate) fn cache_control(wanted: Option<&str>, current: &Sha256) -> HeaderValue {
    let named =
        wanted.and_then(|text| text.parse().ok()).is_some_and(|sum: Sha256| sum == *current);
    if named { IMMUTABLE } else { CHECKED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_current_digest_makes_a_reply_immutable() {
        let current = Sha256([7; 32]);
        let other = Sha256([8; 32]).to_hex();
        assert_eq!(cache_control(Some(&current.to_hex()), &current), IMMUTABLE);
        for wanted in [None, Some(""), Some("7"), Some(other.as_str())] {
            assert_eq!(cache_control(wanted, &current), CHECKED, "{wanted:?}");
        }
    }
}
