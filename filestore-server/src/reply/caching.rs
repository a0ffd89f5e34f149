//! Cache-Control. Replies are private and revalidated each time, unless the URL names the content or is
//! signed.

use std::time::Duration;

use filestore_core::Sha256;
use http::HeaderValue;

/// The value for a URL with changing content.
pub(crate) const CHECKED: HeaderValue = HeaderValue::from_static("private, no-cache");

/// The value for a URL that names its content.
pub(crate) const IMMUTABLE: HeaderValue =
    HeaderValue::from_static("private, max-age=31536000, immutable");

/// Returns the value of Cache-Control for the reply to a signed URL. Anyone with the URL can get the reply,
/// so any cache can keep it for `window`.
pub(crate) fn shared(window: Duration) -> HeaderValue {
    HeaderValue::try_from(format!("public, max-age={}", window.as_secs())).expect("it is ASCII")
}

/// Returns the value of Cache-Control for the version `wanted` in `?v=` and the version `current`. `window`
/// is the remaining window of a signed URL.
pub(crate) fn cache_control(
    window: Option<Duration>,
    wanted: Option<&str>,
    current: &Sha256,
) -> HeaderValue {
    if let Some(window) = window {
        return shared(window);
    }
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
        assert_eq!(cache_control(None, Some(&current.to_hex()), &current), IMMUTABLE);
        for wanted in [None, Some(""), Some("7"), Some(other.as_str())] {
            assert_eq!(cache_control(None, wanted, &current), CHECKED, "{wanted:?}");
        }
    }
    #[test]
    fn a_signed_url_is_shared_until_its_window_ends() {
        let current = Sha256([7; 32]);
        let window = Some(Duration::from_millis(7_999));
        for wanted in [None, Some(current.to_hex())] {
            let value = cache_control(window, wanted.as_deref(), &current);
            assert_eq!(value, "public, max-age=7");
        }
    }
}
