//! API keys, and the secrets that prove them.
//!
//! The store keeps only a digest of each secret. A secret has 256 random bits, so one round of
//! SHA-256 is enough: an attacker cannot try all secrets.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

pub use super::key_scope::{KeyScope, KeyScopes};
use super::scope::Scope;
use crate::domain::error::{Error, Result};
use crate::domain::id::KeyId;
use crate::domain::time::clock::Timestamp;

/// An API key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiKey {
    /// Key id, for logs and idempotency keys.
    pub id: KeyId,
    /// Display name. Several keys can have the same name.
    pub name: String,
    /// Organizations that the key can access.
    pub organizations: Arc<Scope>,
    /// Key scopes.
    pub scopes: KeyScopes,
    /// Creation time.
    pub created_at: Timestamp,
    /// Expiry time. `None` if the key does not expire.
    pub expires_at: Option<Timestamp>,
    /// Last rotation time.
    pub rotated_at: Option<Timestamp>,
    /// Time until which the secret before the last rotation is valid. `None` if that secret is refused.
    pub old_valid_until: Option<Timestamp>,
    /// Revocation time.
    pub revoked_at: Option<Timestamp>,
    /// Time of the last request with the key, rounded to minutes.
    pub last_used_at: Option<Timestamp>,
}

impl ApiKey {
    /// Tests whether the key is valid at `now`.
    pub fn is_good_at(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    /// Tests whether the key has a scope, for its organizations. `Admin` includes all scopes.
    pub fn allows(&self, scope: KeyScope) -> bool {
        self.scopes.contains(scope) || self.scopes.contains(KeyScope::Admin)
    }

    /// Tests whether the key can administer the whole service.
    pub fn administers_the_service(&self) -> bool {
        self.scopes.contains(KeyScope::Admin) && *self.organizations == Scope::All
    }
}

/// A request for a new API key. For example, `NewKey::new("shop", scope, [KeyScope::Read])`
/// describes a key that can only read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewKey {
    /// Display name, 1 to 255 characters.
    pub name: String,
    /// Organizations that the key can access: all, or at most 100.
    pub organizations: Scope,
    /// Key scopes.
    pub scopes: KeyScopes,
    /// Lifetime, at most 100 years. `None` means no expiry.
    pub expires_in: Option<Duration>,
}

/// Maximum number of organizations in a key. Each request compares them.
const MAX_ORGANIZATIONS: usize = 100;

/// Maximum key lifetime: 100 years.
const MAX_LIFE: Duration = Duration::from_hours(100 * 365 * 24);

/// Maximum key name length, in characters.
const NAME_CHARS: usize = 255;

impl NewKey {
    /// Describes a key with a name, organizations and scopes.
    pub fn new(
        name: impl Into<String>,
        organizations: Scope,
        scopes: impl IntoIterator<Item = KeyScope>,
    ) -> Self {
        let scopes = scopes.into_iter().collect();
        Self { name: name.into(), organizations, scopes, expires_in: None }
    }

    /// Checks name, organizations and lifetime. `InvalidField` if one is out of range.
    pub fn check(&self) -> Result<()> {
        let chars = self.name.chars().count();
        if chars == 0 || chars > NAME_CHARS || self.name.chars().any(char::is_control) {
            let message = "a key's name is 1 to 255 characters without control characters";
            return Err(Error::invalid("name", message).with_limit(NAME_CHARS as u64));
        }

        if self.scopes.is_empty() {
            return Err(Error::invalid("scopes", "a key has at least one scope")
                .with_allowed(KeyScope::ALL.iter().map(ToString::to_string)));
        }

        if let Scope::Organizations(list) = &self.organizations
            && !(1..=MAX_ORGANIZATIONS).contains(&list.len())
        {
            let message = "a key names 1 to 100 organizations, or * for all";
            return Err(
                Error::invalid("organizations", message).with_limit(MAX_ORGANIZATIONS as u64)
            );
        }

        let life = Duration::from_secs(1)..=MAX_LIFE;
        if self.expires_in.is_some_and(|time| !life.contains(&time)) {
            let message =
                "a key lasts for 1 second to 100 years, or has no expiry without expires_in_s";
            return Err(Error::invalid("expires_in_s", message).with_limit(MAX_LIFE.as_secs()));
        }
        Ok(())
    }
}

/// A key's secret: `fsk_`, 64 random hexadecimal digits, and 8 digits of a checksum.
///
/// Secret scanners can recognize the prefix and the checksum. The checksum is the first 32 bits of
/// the SHA-256 of the text before. The secret is shown once, when the key is created. `Debug` hides
/// it.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(String);

/// Prefix of every secret.
const PREFIX: &str = "fsk_";

/// Secret length before its checksum, in characters.
const UNCHECKED_CHARS: usize = PREFIX.len() + 64;

/// Checksum length, in digits.
const CHECKSUM_CHARS: usize = 8;

impl KeySecret {
    /// Creates the secret from random bits.
    pub fn of(bits: [u8; 32]) -> Self {
        let mut text = format!("{PREFIX}{}", crate::domain::id::Sha256(bits).to_hex());
        text.push_str(&checksum(&text));
        Self(text)
    }

    /// Returns the secret as text. Show it only once.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Computes the digest to store.
    pub fn digest(&self) -> KeyDigest {
        KeyDigest::of(self.0.as_bytes())
    }
}

fn checksum(text: &str) -> String {
    let mut digits = KeyDigest::of(text.as_bytes()).to_hex();
    digits.truncate(CHECKSUM_CHARS);
    digits
}

impl FromStr for KeySecret {
    type Err = Error;

    /// Accepts a text with the right prefix, length and checksum.
    fn from_str(text: &str) -> Result<Self> {
        let is_key = text.is_ascii()
            && text.len() == UNCHECKED_CHARS + CHECKSUM_CHARS
            && text.starts_with(PREFIX)
            && checksum(&text[..UNCHECKED_CHARS]) == text[UNCHECKED_CHARS..];
        if !is_key {
            let message = "a key is fsk_ and 72 hexadecimal digits, with a checksum in the last 8";
            return Err(Error::invalid("key", message));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(…)")
    }
}

/// The SHA-256 of a secret. Comparison takes constant time.
#[derive(Clone, Copy, Eq)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// Computes the digest of a text from a request.
    pub fn of(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// Converts stored bytes to a digest.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes to store.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns 64 lower-case hexadecimal digits.
    pub fn to_hex(self) -> String {
        crate::domain::id::Sha256(self.0).to_hex()
    }
}

impl FromStr for KeyDigest {
    type Err = Error;

    /// Reads 64 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self> {
        let digest: crate::domain::id::Sha256 = text.parse().map_err(|_| {
            Error::invalid("key_hash", "a key's hash is the 64 hexadecimal digits of its SHA-256")
        })?;
        Ok(Self(digest.0))
    }
}

impl PartialEq for KeyDigest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Hash for KeyDigest {
    /// Hashes the whole digest, so that equal digests have equal hashes.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(scopes: &[KeyScope], organizations: Scope) -> ApiKey {
        ApiKey {
            id: KeyId::generate(Timestamp::from_millis(0)),
            name: "k".into(),
            organizations: Arc::new(organizations),
            scopes: scopes.iter().copied().collect(),
            created_at: Timestamp::from_millis(0),
            expires_at: None,
            rotated_at: None,
            old_valid_until: None,
            revoked_at: None,
            last_used_at: None,
        }
    }

    #[test]
    fn no_scope_implies_another_but_admin_implies_all() {
        for have in KeyScope::ALL {
            for want in KeyScope::ALL {
                let allowed = key(&[*have], Scope::All).allows(*want);
                assert_eq!(allowed, have == want || *have == KeyScope::Admin, "{have} {want}");
            }
        }
    }

    #[test]
    fn the_service_is_administered_by_admin_of_all_organizations() {
        let some = Scope::Organizations(vec!["7".parse().unwrap()]);
        assert!(key(&[KeyScope::Admin], Scope::All).administers_the_service());
        assert!(!key(&[KeyScope::Admin], some).administers_the_service());
        let others = [KeyScope::Read, KeyScope::Write, KeyScope::Delete];
        assert!(!key(&others, Scope::All).administers_the_service());
    }

    #[test]
    fn a_key_is_good_until_it_expires_or_is_revoked() {
        let at = Timestamp::from_millis;
        let mut key = key(&[KeyScope::Read], Scope::All);
        assert!(key.is_good_at(at(i64::MAX)));
        key.expires_at = Some(at(10));
        assert!(key.is_good_at(at(9)) && !key.is_good_at(at(10)));
        key.revoked_at = Some(at(1));
        assert!(!key.is_good_at(at(9)));
    }

    #[test]
    fn a_secret_is_told_from_other_text_by_prefix_and_checksum() {
        let secret = KeySecret::of([7; 32]);
        let text = secret.expose();
        assert_eq!(text.len(), 76);
        assert_eq!(text.parse::<KeySecret>().unwrap(), secret);
        // Computed with `printf %s TEXT | sha256sum`.
        assert!(text.starts_with("fsk_0707"), "{text}");

        let typo = text.replacen("07", "70", 1);
        for other in ["", "fsk_", &typo, &text[1..], &format!("{text}0"), &text.to_uppercase()] {
            assert!(other.parse::<KeySecret>().is_err(), "{other}");
        }
        assert!(!format!("{secret:?} {:?}", secret.digest()).contains("07"));
    }

    #[test]
    fn digests_are_equal_when_all_their_bits_are() {
        let digest = KeyDigest::of(b"x");
        assert_eq!(digest.to_hex().parse::<KeyDigest>().unwrap(), digest);
        for bit in 0..256 {
            let mut bytes = *digest.as_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(KeyDigest::from_bytes(bytes), digest, "bit {bit}");
        }
    }

    #[test]
    fn a_bad_new_key_names_its_field() {
        let good = NewKey::new("n", Scope::All, [KeyScope::Read]);
        good.check().unwrap();
        let many = vec!["7".parse().unwrap(); MAX_ORGANIZATIONS + 1];
        for (field, bad) in [
            ("name", NewKey { name: String::new(), ..good.clone() }),
            ("name", NewKey { name: "x".repeat(256), ..good.clone() }),
            ("name", NewKey { name: "a\nb".into(), ..good.clone() }),
            ("scopes", NewKey { scopes: KeyScopes::default(), ..good.clone() }),
            (
                "organizations",
                NewKey { organizations: Scope::Organizations(vec![]), ..good.clone() },
            ),
            ("organizations", NewKey { organizations: Scope::Organizations(many), ..good.clone() }),
            ("expires_in_s", NewKey { expires_in: Some(Duration::ZERO), ..good.clone() }),
        ] {
            assert_eq!(bad.check().unwrap_err().details().field.as_deref(), Some(field));
        }
    }
}
