//! Signatures of URLs.
//!
//! # Format
//! A signed URL has three query parameters: `exp` (expiry time in seconds since 1970-01-01 UTC),
//! `kid` (the secret's name) and `sig`, the HMAC-SHA256 (RFC 2104) of [`signed_text`], in
//! base64url without padding (RFC 4648 section 5).
//!
//! The signature covers the query exactly as it is sent, with its order and percent-encoding,
//! without `sig`. So each signed URL has only one valid spelling.
//!
//! If an API key requested the URL, the parameter `key` names the key. The signature covers this
//! parameter too, so a caller cannot remove it. URLs without `key`, from earlier versions, stay valid.
//!
//! # Windows
//! An expiry time is rounded up to the end of a window. All URLs for the same request within a
//! window are equal, so caches recognize them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::KeyId;
use crate::domain::time::clock::Timestamp;

/// First line of every signed text. No other use of a secret has this line.
const FORMAT: &str = "filestore-url-v1";

/// Characters to encode in a value: all except the unreserved characters (RFC 3986 section 2.3).
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Maximum URL lifetime, before it is rounded up to a window: 7 days.
pub const MAX_LIFE: Duration = Duration::from_hours(7 * 24);

/// Maximum window: 1 hour.
pub const MAX_WINDOW: Duration = Duration::from_hours(1);

/// Request methods for signed URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedMethod {
    /// Read. Also for HEAD.
    Get,
    /// Upload.
    Post,
}

impl SignedMethod {
    /// Returns the method as in the signed text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// A secret that signs URLs. `Debug` shows only the name. Clones share the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret {
    kid: Arc<str>,
    bytes: Arc<[u8]>,
}

impl SigningSecret {
    /// Minimum secret length, in bytes: that of the digest (RFC 2104 section 3).
    pub const MIN_BYTES: usize = 32;

    /// Maximum secret name length, in characters.
    pub const KID_CHARS: usize = 64;

    /// Creates a secret with a name. `InvalidField` if the name is not 1 to 64 characters of `A-Z
    /// a-z 0-9 . _ -`, or if the secret has fewer than 32 bytes.
    pub fn new(kid: impl Into<String>, bytes: impl Into<Box<[u8]>>) -> Result<Self> {
        let (kid, bytes) = (kid.into(), bytes.into());
        let is_plain = kid.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if kid.is_empty() || kid.len() > Self::KID_CHARS || !is_plain {
            let rule = "the name of a secret is 1 to 64 characters of A-Z a-z 0-9 . _ -";
            return Err(Error::invalid("kid", rule));
        }
        if bytes.len() < Self::MIN_BYTES {
            let rule = "a signing secret has at least 32 bytes";
            return Err(Error::invalid("secret", rule).with_limit(Self::MIN_BYTES as u64));
        }
        Ok(Self { kid: kid.into(), bytes: bytes.into() })
    }

    /// Returns the secret's name, which each signed URL contains.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Returns the secret's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Signs a request until `expires_at`, and returns path and query. `query` is the rest of the
    /// request's query, already encoded.
    pub fn sign(
        &self,
        method: SignedMethod,
        path: &str,
        query: &str,
        expires_at: Timestamp,
    ) -> String {
        let joint = if query.is_empty() { "" } else { "&" };
        let query = format!("{query}{joint}exp={}&kid={}", expires_at.as_secs(), self.kid);
        let tag = self.mac(&signed_text(method, path, &query)).finalize().into_bytes();
        format!("{path}?{query}&sig={}", BASE64_URL_SAFE_NO_PAD.encode(tag))
    }

    fn mac(&self, text: &str) -> Hmac<sha2::Sha256> {
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&self.bytes)
            .expect("HMAC takes secrets of any length");
        mac.update(text.as_bytes());
        mac
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningSecret").field("kid", &self.kid).finish_non_exhaustive()
    }
}

/// Returns the text to sign: format, method, path, and query without `sig`, one line each.
pub fn signed_text(method: SignedMethod, path: &str, query: &str) -> String {
    format!("{FORMAT}\n{}\n{path}\n{query}", method.as_str())
}

/// The signature in a request, before verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSignature<'q> {
    /// Secret name.
    pub kid: &'q str,
    expires: &'q str,
    tag: &'q str,
    query: String,
}

impl<'q> ShownSignature<'q> {
    /// Finds the signature in a query. `None` if the query has no `sig`. `SignatureInvalid` if one
    /// of the three parameters is missing or occurs twice.
    pub fn find(query: &'q str) -> Result<Option<Self>> {
        if !query.split('&').any(|piece| piece == "sig" || piece.starts_with("sig=")) {
            return Ok(None);
        }

        let tag = only("sig", query)?;
        let rest: Vec<_> = query.split('&').filter(|piece| !piece.starts_with("sig=")).collect();
        let (kid, expires) = (only("kid", query)?, only("exp", query)?);
        Ok(Some(Self { kid, expires, tag, query: rest.join("&") }))
    }

    /// Verifies that `secret` signed this request, and returns the expiry time. `SignatureInvalid`
    /// if the signature does not match, `SignatureExpired` after the expiry time. Takes constant
    /// time for each wrong signature.
    pub fn verify(
        &self,
        secret: &SigningSecret,
        method: SignedMethod,
        path: &str,
        now: Timestamp,
    ) -> Result<Timestamp> {
        let mac = secret.mac(&signed_text(method, path, &self.query));
        let tag = BASE64_URL_SAFE_NO_PAD.decode(self.tag).map_err(|_| not_ours())?;
        mac.verify_slice(&tag).map_err(|_| not_ours())?;

        let is_plain = self.expires.bytes().all(|b| b.is_ascii_digit());
        let secs: i64 = self.expires.parse().ok().filter(|_| is_plain).ok_or_else(not_ours)?;
        let expires_at = Timestamp::from_millis(secs.checked_mul(1000).ok_or_else(not_ours)?);
        if now >= expires_at {
            let message = format!("the signed URL has expired at {expires_at}");
            return Err(Error::new(ErrorKind::SignatureExpired, message).with_field("exp"));
        }
        Ok(expires_at)
    }
}

impl ShownSignature<'_> {
    /// Returns the API key that requested the URL, or `None`. `SignatureInvalid` if the URL names
    /// several keys or an invalid id.
    pub fn key(&self) -> Result<Option<KeyId>> {
        if !self.query.split('&').any(|piece| piece == "key" || piece.starts_with("key=")) {
            return Ok(None);
        }
        let key = only("key", &self.query)?;
        key.parse().map(Some).map_err(|_| {
            let message = "the key of a signed URL is the id of an API key";
            Error::new(ErrorKind::SignatureInvalid, message).with_field("key")
        })
    }
}

/// Returns the value of a parameter that must occur exactly once.
fn only<'q>(name: &str, query: &'q str) -> Result<&'q str> {
    let pieces = query.split('&');
    let mut values = pieces.filter_map(|piece| piece.strip_prefix(name)?.strip_prefix('='));
    match (values.next(), values.next()) {
        (Some(value), None) if !value.is_empty() => Ok(value),
        _ => {
            let message = format!("a signed URL has the parameter once: {name}");
            Err(Error::new(ErrorKind::SignatureInvalid, message).with_field(name))
        }
    }
}

/// Creates the error for a signature that does not match this request.
pub(crate) fn not_ours() -> Error {
    let message = "the signature is not one of this service for this method, path and query";
    Error::new(ErrorKind::SignatureInvalid, message).with_field("sig")
}

/// Creates the error for a URL with a key that is no longer valid.
pub(crate) fn key_is_over() -> Error {
    let message = "the key of this signed URL is revoked, has expired or has lost access";
    Error::new(ErrorKind::SignatureInvalid, message).with_field("key")
}

/// Appends a parameter to an encoded query.
pub fn push_parameter(query: &mut String, name: &str, value: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    query.extend([name, "="]);
    query.extend(utf8_percent_encode(value, VALUE));
}

/// Returns the expiry time of a URL created at `now` with this lifetime, rounded up to the end of a
/// window.
pub fn expiry(now: Timestamp, life: Duration, window: Duration) -> Timestamp {
    let window = millis(window).max(1000);
    let end = now.plus(life).as_millis();
    let over = end.rem_euclid(window);
    let up = if over == 0 { 0 } else { window - over };
    Timestamp::from_millis(end.saturating_add(up))
}

/// Returns the time for which a cache can keep the reply: until the current window ends, but not
/// after the URL expires.
pub fn cacheable_for(now: Timestamp, expires_at: Timestamp, window: Duration) -> Duration {
    let window = millis(window).max(1000);
    let rest = window - now.as_millis().rem_euclid(window);
    let left = expires_at.as_millis().saturating_sub(now.as_millis());
    Duration::from_millis(u64::try_from(rest.min(left)).unwrap_or(0))
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATH: &str = "/api/v1/files/01JD0000000000000000000000/200/200";
    const NOW: Timestamp = Timestamp::from_millis(1_795_248_930_123);
    const WINDOW: Duration = Duration::from_mins(5);

    fn secret() -> SigningSecret {
        SigningSecret::new("2026-11", *b"0123456789abcdef0123456789abcdef").unwrap()
    }

    fn verify(method: SignedMethod, path: &str, query: &str) -> Result<Timestamp> {
        ShownSignature::find(query)?.unwrap().verify(&secret(), method, path, NOW)
    }

    fn query_of(url: &str) -> &str {
        url.split_once('?').unwrap().1
    }

    #[test]
    fn a_signed_url_is_good_for_its_request_until_its_end() {
        let end = expiry(NOW, Duration::from_mins(1), WINDOW);
        let url = secret().sign(SignedMethod::Get, PATH, "fit=inside", end);
        assert_eq!(verify(SignedMethod::Get, PATH, query_of(&url)).unwrap(), end);

        let shown = ShownSignature::find(query_of(&url)).unwrap().unwrap();
        let late = shown.verify(&secret(), SignedMethod::Get, PATH, end).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::SignatureExpired);
        let just = Timestamp::from_millis(end.as_millis() - 1);
        assert!(shown.verify(&secret(), SignedMethod::Get, PATH, just).is_ok());
    }

    #[test]
    fn another_method_path_secret_or_query_is_refused() {
        let end = expiry(NOW, Duration::from_mins(1), WINDOW);
        let url = secret().sign(SignedMethod::Get, PATH, "fit=inside", end);
        let query = query_of(&url);

        let refused = |method, path: &str, query: &str| {
            assert_eq!(
                verify(method, path, query).unwrap_err().kind(),
                ErrorKind::SignatureInvalid,
                "{path}?{query}"
            );
        };
        refused(SignedMethod::Post, PATH, query);
        refused(SignedMethod::Get, &format!("{PATH}/"), query);
        refused(SignedMethod::Get, &PATH.replace("200", "400"), query);
        for changed in [
            query.replace("inside", "cover"),
            query.replace("inside", "%69nside"),
            query.replace("fit=inside&", ""),
            query.replace("kid=2026-11&", ""),
            query.replace("exp=1", "exp=2"),
            format!("{query}&disposition=inline"),
            format!("disposition=inline&{query}"),
            format!("{query}&"),
            format!("{query}&exp=9999999999"),
            format!("{query}&kid=x"),
            format!("{query}&sig=x"),
            format!("{query}="),
            query.replace("&sig=", "&sig=A"),
            format!("{}&sig=", query.split("&sig").next().unwrap()),
            query
                .to_uppercase()
                .replace("SIG=", "sig=")
                .replace("EXP=", "exp=")
                .replace("KID=", "kid="),
        ] {
            refused(SignedMethod::Get, PATH, &changed);
        }

        let other = SigningSecret::new("2026-11", *b"0123456789abcdef0123456789abcdeF").unwrap();
        let shown = ShownSignature::find(query).unwrap().unwrap();
        assert!(shown.verify(&other, SignedMethod::Get, PATH, NOW).is_err());
    }

    #[test]
    fn the_key_of_a_url_is_signed_and_named_once() {
        let key = "01JD0000000000000000000001";
        let end = expiry(NOW, Duration::from_mins(1), WINDOW);
        let url = secret().sign(SignedMethod::Get, PATH, &format!("key={key}"), end);
        let query = query_of(&url);
        let shown = ShownSignature::find(query).unwrap().unwrap();
        assert_eq!(shown.key().unwrap().unwrap().to_string(), key);

        for other in [
            query.replace(&format!("key={key}&"), ""),
            query.replace("01JD0000000000000000000001", "01JD0000000000000000000002"),
            query.replace("key=", "k%65y="),
        ] {
            assert!(verify(SignedMethod::Get, PATH, &other).is_err(), "{other}");
        }
        for bad in ["key=", "key", "key=x", &format!("key={key}&key={key}")] {
            let query = format!("{bad}&exp=1&kid=2&sig=x");
            let error = ShownSignature::find(&query).unwrap().unwrap().key().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SignatureInvalid, "{bad}");
        }
        let plain = ShownSignature::find("monkey=1&exp=1&kid=2&sig=x").unwrap().unwrap();
        assert_eq!(plain.key().unwrap(), None);
    }

    #[test]
    fn a_query_without_a_signature_shows_none() {
        for query in ["", "a=b", "signature=x", "exp=1&kid=2", "%73ig=x"] {
            assert_eq!(ShownSignature::find(query).unwrap(), None, "{query}");
        }
        for query in ["sig", "sig=x", "sig=x&exp=1", "sig=x&kid=1", "sig=&exp=1&kid=2"] {
            assert_eq!(
                ShownSignature::find(query).unwrap_err().kind(),
                ErrorKind::SignatureInvalid,
                "{query}"
            );
        }
    }

    #[test]
    fn an_expiry_of_an_application_must_be_a_plain_number() {
        for expires in ["+9999999999", "9e9", "99999999999999999999", "-1", "0x1"] {
            let query = format!("exp={expires}&kid=2026-11");
            let tag = secret().mac(&signed_text(SignedMethod::Get, PATH, &query)).finalize();
            let sig = BASE64_URL_SAFE_NO_PAD.encode(tag.into_bytes());
            let error = verify(SignedMethod::Get, PATH, &format!("{query}&sig={sig}")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SignatureInvalid, "{expires}");
        }
    }

    #[test]
    fn a_secret_is_long_and_never_shown() {
        assert!(SigningSecret::new("a", *b"short").is_err());
        for kid in ["", "a b", "a&b", "ä", &"x".repeat(65)] {
            assert!(SigningSecret::new(kid, [7; 32]).is_err(), "{kid}");
        }
        let shown = format!("{:?}", secret());
        assert!(shown.contains("2026-11") && !shown.contains("0123456789"), "{shown}");
    }

    #[test]
    fn urls_of_one_window_are_equal_and_are_cached_until_it_ends() {
        let at = |secs: i64| Timestamp::from_millis(secs * 1000);
        let life = Duration::from_mins(10);
        assert_eq!(expiry(at(1), life, WINDOW), at(900));
        assert_eq!(expiry(at(300), life, WINDOW), at(900));
        assert_eq!(expiry(at(301), life, WINDOW), at(1200));

        assert_eq!(cacheable_for(at(1), at(900), WINDOW).as_secs(), 299);
        assert_eq!(cacheable_for(at(299), at(900), WINDOW).as_secs(), 1);
        assert_eq!(cacheable_for(at(300), at(900), WINDOW).as_secs(), 300);
        assert_eq!(cacheable_for(at(700), at(750), WINDOW).as_secs(), 50);
    }

    #[test]
    fn values_are_encoded_so_that_they_stay_values() {
        let mut query = String::new();
        push_parameter(&mut query, "mime_type", "text/plain; charset=utf-8");
        push_parameter(&mut query, "x", "a&b=c+d%ü");
        assert_eq!(query, "mime_type=text%2Fplain%3B%20charset%3Dutf-8&x=a%26b%3Dc%2Bd%25%C3%BC");
    }

    proptest! {
        #[test]
        fn an_expiry_is_the_first_end_of_a_window_after_the_life(
            now in 0_i64..4_000_000_000_000,
            life_secs in 1_u64..700_000,
            window_secs in 1_u64..4000,
        ) {
            let (life, window) = (Duration::from_secs(life_secs), Duration::from_secs(window_secs));
            let now = Timestamp::from_millis(now);
            let end = expiry(now, life, window);
            prop_assert_eq!(end.as_millis() % i64::try_from(window.as_millis()).unwrap(), 0);
            prop_assert!(end >= now.plus(life) && end < now.plus(life).plus(window));
            let kept = cacheable_for(now, end, window);
            prop_assert!(kept <= window && now.plus(kept) <= end);
        }

        #[test]
        fn no_changed_query_is_taken(
            own in "(fit=[a-z]{1,4})?(&[a-z]{1,3}=%2[0-9A-F])?",
            at in 0_usize..200,
            byte in b' '..=b'~',
        ) {
            let end = expiry(NOW, Duration::from_mins(1), WINDOW);
            let url = secret().sign(SignedMethod::Get, PATH, &own, end);
            let mut query = query_of(&url).as_bytes().to_vec();
            let at = at % query.len();
            let is_changed = std::mem::replace(&mut query[at], byte) != byte;
            let query = String::from_utf8(query).unwrap();
            let is_taken = match ShownSignature::find(&query) {
                Ok(Some(shown)) => shown.verify(&secret(), SignedMethod::Get, PATH, NOW).is_ok(),
                Ok(None) | Err(_) => false,
            };
            prop_assert_eq!(is_taken, !is_changed, "{}", query);
        }

        #[test]
        fn no_signature_of_a_stranger_is_taken(
            own in "[a-d0-9%_-]{0,20}",
            exp in 1_i64..99_999_999_999,
            tag in "[A-Za-z0-9_-]{1,44}",
        ) {
            let query = format!("{own}&exp={exp}&kid=2026-11&sig={tag}");
            let shown = ShownSignature::find(&query).unwrap().expect("a signature is shown");
            prop_assert!(shown.verify(&secret(), SignedMethod::Get, PATH, NOW).is_err());
        }
    }
}
