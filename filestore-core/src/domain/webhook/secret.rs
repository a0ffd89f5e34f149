//! The secret of a webhook, and its signatures by Standard Webhooks 1.0.0.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};

use crate::domain::time::clock::Timestamp;
use crate::tasks;

/// The secret that signs the deliveries to one webhook: 32 random bytes.
///
/// `Display` writes the form for receivers, `whsec_` with base64. `Debug` hides the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret([u8; 32]);

impl WebhookSecret {
    /// Makes a new secret.
    pub(crate) fn generate() -> Self {
        Self(tasks::random_secret())
    }

    /// Wraps stored bytes.
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes, for storage.
    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Signs one attempt of a delivery. The signature covers `id.timestamp.body`, with the timestamp in seconds and
    /// the body's bytes as sent. For example, `v1,Sqwc2ZY1ZhphVsBxaMSPkZq/xBjTkHH21/fWZXN2+/A=`.
    pub(crate) fn sign(&self, id: &str, at: Timestamp, body: &[u8]) -> String {
        let mut mac =
            Hmac::<sha2::Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(format!("{id}.{}.", at.as_secs()).as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Display for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "whsec_{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

/// The secrets of a webhook: the current one, and after a rotation the former one for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebhookSecrets {
    pub(crate) current: WebhookSecret,
    /// The former secret, and the end of its overlap.
    pub(crate) former: Option<(WebhookSecret, Timestamp)>,
}

impl WebhookSecrets {
    /// Returns the header `webhook-signature`: one signature for each valid secret, separated by spaces. A receiver
    /// with either secret accepts it.
    pub(crate) fn signatures(&self, id: &str, at: Timestamp, body: &[u8]) -> String {
        let mut header = self.current.sign(id, at, body);
        if let Some((former, until)) = &self.former
            && at < *until
        {
            header.push(' ');
            header.push_str(&former.sign(id, at, body));
        }
        header
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use proptest::prelude::*;
    use standardwebhooks::Webhook as Receiver;

    use super::*;

    const ID: &str = "BwcHBwcHBwcAAAAAAAAwOQ";
    const AT: Timestamp = Timestamp::from_millis(1_795_249_200_000);
    const BODY: &str = r#"{"id":"BwcHBwcHBwcAAAAAAAAwOQ","type":"file.replaced","timestamp":"2026-11-21T08:15:30.123Z","data":{"organization_id":"42","sub_system":"gallery","file_id":"01M80BSWR5FYA2ZH99HBXNYRHQ","version":2}}"#;

    fn secrets(current: u8, former: Option<(u8, Timestamp)>) -> WebhookSecrets {
        let secret = |byte| WebhookSecret::from_bytes([byte; 32]);
        let former = former.map(|(byte, until)| (secret(byte), until));
        WebhookSecrets { current: secret(current), former }
    }

    /// Returns the verdict of the reference library, with a secret of the byte `key`.
    fn accepts(key: u8, signature: &str, at: Timestamp, body: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert("webhook-id", ID.parse().unwrap());
        headers.insert("webhook-timestamp", at.as_secs().to_string().parse().unwrap());
        headers.insert("webhook-signature", signature.parse().unwrap());
        let secret = WebhookSecret::from_bytes([key; 32]).to_string();
        Receiver::new(&secret).unwrap().verify(body.as_bytes(), &headers).is_ok()
    }

    #[test]
    fn the_signature_is_that_of_a_foreign_program() {
        let signed = secrets(7, None).signatures(ID, AT, BODY.as_bytes());
        assert_eq!(signed, "v1,Sqwc2ZY1ZhphVsBxaMSPkZq/xBjTkHH21/fWZXN2+/A=");
        let secret = WebhookSecret::from_bytes([7; 32]);
        assert_eq!(secret.to_string(), "whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=");
        assert_eq!(format!("{secret:?}"), "WebhookSecret(..)");
    }

    #[test]
    fn the_reference_library_accepts_ours_and_refuses_what_is_tampered_with_or_old() {
        let now = Timestamp::now();
        let signed = secrets(7, None).signatures(ID, now, BODY.as_bytes());

        assert!(accepts(7, &signed, now, BODY));
        assert!(!accepts(8, &signed, now, BODY), "another secret");
        assert!(!accepts(7, &signed, now, &BODY.replace("\"version\":2", "\"version\":3")));
        let later = Timestamp::from_millis(now.as_millis() + 2000);
        assert!(!accepts(7, &signed, later, BODY), "the timestamp is signed");

        let old = now.minus(std::time::Duration::from_mins(6));
        let signed = secrets(7, None).signatures(ID, old, BODY.as_bytes());
        assert!(!accepts(7, &signed, old, BODY));
    }

    #[test]
    fn both_secrets_sign_until_the_overlap_ends() {
        let now = Timestamp::now();
        let soon = now.plus(std::time::Duration::from_secs(1));
        let signed = secrets(7, Some((8, soon))).signatures(ID, now, BODY.as_bytes());
        assert!(accepts(7, &signed, now, BODY) && accepts(8, &signed, now, BODY));
        assert!(!accepts(9, &signed, now, BODY));

        let signed = secrets(7, Some((8, now))).signatures(ID, now, BODY.as_bytes());
        assert!(accepts(7, &signed, now, BODY));
        assert!(!accepts(8, &signed, now, BODY), "the overlap has ended");
    }

    proptest! {
        #[test]
        fn every_body_that_is_signed_is_accepted(body in ".{0,300}", key: u8) {
            let now = Timestamp::now();
            let signed = secrets(key, None).signatures(ID, now, body.as_bytes());
            prop_assert!(accepts(key, &signed, now, &body));
        }
    }
}
