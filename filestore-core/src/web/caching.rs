//! Cache-Control. Replies are private and revalidated each time, unless the URL names the content or is
//! signed.

use std::time::Duration;

use http::HeaderValue;

use crate::domain::id::Sha256;

/// The value for a URL with changing content.
const CHECKED: HeaderValue = HeaderValue::from_static("private, no-cache");

/// The value for a URL that names its content.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");

/// How long caches can keep a reply with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Caching<'a> {
    /// The caller's own cache keeps the reply, and asks each time if the file has changed.
    #[default]
    Checked,
    /// The URL names the digest of the content, in hexadecimal digits. If this is the current content, the caller's
    /// own cache keeps the reply for a year. Otherwise like [`Checked`](Self::Checked).
    Named(&'a str),
    /// Anyone with the URL can get the reply, so any cache can keep it for this time.
    Shared(Duration),
}

impl Caching<'_> {
    /// Returns the value of Cache-Control for a file with the content `current`.
    ///
    /// ```
    /// use filestore_core::Sha256;
    /// use filestore_core::web::Caching;
    ///
    /// let current = Sha256([7; 32]);
    /// assert_eq!(Caching::Checked.value(&current), "private, no-cache");
    /// ```
    pub fn value(self, current: &Sha256) -> HeaderValue {
        let named = match self {
            Self::Checked => return CHECKED,
            Self::Shared(window) => return shared(window),
            Self::Named(text) => text.parse::<Sha256>(),
        };
        if named.is_ok_and(|named| named == *current) { IMMUTABLE } else { CHECKED }
    }
}

fn shared(window: Duration) -> HeaderValue {
    HeaderValue::try_from(format!("public, max-age={}", window.as_secs())).expect("it is ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_current_digest_makes_a_reply_immutable() {
        let current = Sha256([7; 32]);
        let other = Sha256([8; 32]).to_hex();
        assert_eq!(Caching::Named(&current.to_hex()).value(&current), IMMUTABLE);
        for wanted in ["", "7", other.as_str()] {
            assert_eq!(Caching::Named(wanted).value(&current), CHECKED, "{wanted:?}");
        }
        assert_eq!(Caching::default().value(&current), CHECKED);
    }

    #[test]
    fn a_signed_url_is_shared_until_its_window_ends() {
        let window = Duration::from_millis(7_999);
        assert_eq!(Caching::Shared(window).value(&Sha256([7; 32])), "public, max-age=7");
    }
}
