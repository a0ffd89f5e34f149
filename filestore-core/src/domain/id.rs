//! Ids: one type for each, checked when they are created.

use std::fmt;
use std::str::FromStr;

use ulid::Ulid;

use super::error::{Error, Result};
use super::time::clock::Timestamp;
use crate::tasks;

/// A file id: an upper-case ULID with 80 random bits. Not a secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(Ulid);

impl FileId {
    /// Creates a new id for the time `now`.
    pub fn generate(now: Timestamp) -> Self {
        Self(fresh_ulid(now))
    }

    /// Returns the smallest id for the time `at`. If an id cannot have this time, uses the nearest
    /// possible time.
    pub fn first_at(at: Timestamp) -> Self {
        let millis = u64::try_from(at.as_millis()).unwrap_or(0).min((1 << 48) - 1);
        Self(Ulid::from_parts(millis, 0))
    }

    /// Returns the id's creation time, by its store's clock. This is the upload time of
    /// the file.
    pub fn made_at(self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.0.timestamp_ms()).unwrap_or(i64::MAX))
    }

    /// Writes the 26 characters without allocation.
    pub fn encode(self, buffer: &mut [u8; 26]) -> &str {
        self.0.array_to_str(buffer)
    }

    /// Returns the 128 bits, for hashing.
    pub fn to_bits(self) -> u128 {
        self.0.0
    }
}

impl FromStr for FileId {
    type Err = Error;

    /// Accepts an upper-case ULID of 26 characters. Lower case is an error.
    fn from_str(text: &str) -> Result<Self> {
        parse_ulid(text).map(Self).ok_or_else(|| {
            Error::invalid("file_id", "a file id is an upper-case ULID of 26 characters")
        })
    }
}

/// A blob id: the generated part of a storage key. Every blob gets a new id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(Ulid);

impl BlobId {
    /// Creates a new id for the time `now`.
    pub fn generate(now: Timestamp) -> Self {
        Self(fresh_ulid(now))
    }

    /// Returns the id's creation time, by its store's clock.
    pub fn made_at(self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.0.timestamp_ms()).unwrap_or(i64::MAX))
    }
}

impl FromStr for BlobId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse_ulid(text).map(Self).ok_or_else(|| Error::invalid("blob_id", "not a blob id"))
    }
}

/// The id of a resumable upload. Not a secret: a request needs the token as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UploadId(Ulid);

impl UploadId {
    /// Creates a new id for the time `now`.
    pub fn generate(now: Timestamp) -> Self {
        Self(fresh_ulid(now))
    }
}

impl FromStr for UploadId {
    type Err = Error;

    /// Accepts an upper-case ULID of 26 characters.
    fn from_str(text: &str) -> Result<Self> {
        parse_ulid(text).map(Self).ok_or_else(|| {
            Error::invalid("upload_id", "an upload's id is an upper-case ULID of 26 characters")
        })
    }
}

/// A store id, in the data directory and in its blobs at providers. Created once, with the
/// database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(Ulid);

impl StoreId {
    /// Creates a new id for the time `now`.
    pub fn generate(now: Timestamp) -> Self {
        Self(fresh_ulid(now))
    }
}

impl FromStr for StoreId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse_ulid(text).map(Self).ok_or_else(|| Error::invalid("store_id", "not a store id"))
    }
}

/// The id of an API key. Lists and logs show the id, which is not a secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(Ulid);

impl KeyId {
    /// Creates a new id for the time `now`.
    pub fn generate(now: Timestamp) -> Self {
        Self(fresh_ulid(now))
    }
}

impl FromStr for KeyId {
    type Err = Error;

    /// Accepts an upper-case ULID of 26 characters.
    fn from_str(text: &str) -> Result<Self> {
        parse_ulid(text).map(Self).ok_or_else(|| {
            Error::invalid("key_id", "a key's id is an upper-case ULID of 26 characters")
        })
    }
}

/// The id of a webhook. Not a secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebhookId(Ulid);

impl WebhookId {
    /// Creates a new id for the time `now`.
    pub fn generate(now: Timestamp) -> Self {
        Self(fresh_ulid(now))
    }
}

impl FromStr for WebhookId {
    type Err = Error;

    /// Accepts an upper-case ULID of 26 characters.
    fn from_str(text: &str) -> Result<Self> {
        parse_ulid(text).map(Self).ok_or_else(|| {
            let message = "a webhook's id is an upper-case ULID of 26 characters";
            Error::invalid("webhook_id", message)
        })
    }
}

/// A snapshot id. A later snapshot has a greater id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(Ulid);

impl SnapshotId {
    /// Creates a new id for the time `now`.
    pub fn generate(now: Timestamp) -> Self {
        Self(fresh_ulid(now))
    }

    /// Returns the start time of the run, by its store's clock.
    pub fn made_at(self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.0.timestamp_ms()).unwrap_or(i64::MAX))
    }
}

impl FromStr for SnapshotId {
    type Err = Error;

    /// Accepts an upper-case ULID of 26 characters.
    fn from_str(text: &str) -> Result<Self> {
        parse_ulid(text).map(Self).ok_or_else(|| {
            Error::invalid("snapshot_id", "a snapshot's id is an upper-case ULID of 26 characters")
        })
    }
}

/// The id of a snapshot directory, from its marker. The id belongs to the disk, not to the mount
/// point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DestinationId(Ulid);

impl DestinationId {
    /// Creates a new id for the time `now`.
    pub fn generate(now: Timestamp) -> Self {
        Self(fresh_ulid(now))
    }
}

impl FromStr for DestinationId {
    type Err = Error;

    /// Accepts an upper-case ULID of 26 characters.
    fn from_str(text: &str) -> Result<Self> {
        parse_ulid(text).map(Self).ok_or_else(|| {
            let message = "a destination's id is an upper-case ULID of 26 characters";
            Error::invalid("destination_id", message)
        })
    }
}

macro_rules! ulid_text {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut buffer = [0; 26];
                f.write_str(self.0.array_to_str(&mut buffer))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}
ulid_text!(FileId, BlobId, UploadId, StoreId, KeyId, WebhookId, SnapshotId, DestinationId);

fn fresh_ulid(now: Timestamp) -> Ulid {
    Ulid::from_parts(u64::try_from(now.as_millis()).unwrap_or(0), tasks::random_part())
}

fn parse_ulid(text: &str) -> Option<Ulid> {
    let ulid = Ulid::from_string(text).ok()?;
    let mut buffer = [0; 26];
    (ulid.array_to_str(&mut buffer) == text).then_some(ulid)
}

/// An organization id: `[A-Za-z0-9_-]{1,64}`. Ids of digits with a leading zero are invalid, except
/// `0`.
///
/// For example, `"42"` and `"acme"` are valid, `"042"` and `"a b"` are not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrganizationId(Box<str>);

impl OrganizationId {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the organization number, if the id is a decimal number from 1 to 2^53 − 1. Bindings
    /// need a number, so you cannot bind an organization with another id.
    pub fn number(&self) -> Option<OrganizationNumber> {
        OrganizationNumber::read(&self.0)
    }
}

impl From<OrganizationNumber> for OrganizationId {
    /// Converts the number to decimal text.
    fn from(number: OrganizationNumber) -> Self {
        Self(number.to_string().into())
    }
}

impl FromStr for OrganizationId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.is_empty() || text.len() > 64 || !text.bytes().all(is_organization_byte) {
            return Err(Error::invalid(
                "organization_id",
                "organization_id is 1 to 64 characters of A-Z a-z 0-9 _ -",
            )
            .with_limit(64));
        }

        if text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Error::invalid(
                "organization_id",
                "a numeric organization_id has no leading zero",
            ));
        }

        Ok(Self(text.into()))
    }
}

fn is_organization_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'-'
}

impl fmt::Display for OrganizationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An organization number, for bindings and administration: 1 to 2^53 − 1. Every JSON reader can
/// read these integers exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrganizationNumber(i64);

impl OrganizationNumber {
    /// The largest organization number.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// Returns the number as an integer.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Reads decimal digits. `07` and `+7` are invalid.
    fn read(text: &str) -> Option<Self> {
        let number: i64 = text.parse().ok()?;
        (number.to_string() == text).then(|| Self::checked(number)).flatten()
    }

    fn checked(number: i64) -> Option<Self> {
        (1..=Self::MAX.0).contains(&number).then_some(Self(number))
    }

    fn out_of_range() -> Error {
        Error::invalid("organization", "organizationId is an integer from 1 to 9007199254740991")
    }
}

impl TryFrom<i64> for OrganizationNumber {
    type Error = Error;

    fn try_from(number: i64) -> Result<Self> {
        Self::checked(number).ok_or_else(Self::out_of_range)
    }
}

impl FromStr for OrganizationNumber {
    type Err = Error;

    /// Accepts decimal digits only.
    fn from_str(text: &str) -> Result<Self> {
        Self::read(text).ok_or_else(Self::out_of_range)
    }
}

impl fmt::Display for OrganizationNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A sub-system: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}` without `..`, for example `invoices`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubSystem(Box<str>);

impl SubSystem {
    /// Returns the sub-system as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SubSystem {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let starts_well = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if !starts_well
            || text.len() > 64
            || !text.bytes().all(is_sub_system_byte)
            || text.contains("..")
        {
            return Err(Error::invalid(
                "sub_system",
                "sub_system is 1 to 64 characters of A-Z a-z 0-9 . _ -, starts with a letter or digit and has no ..",
            )
            .with_limit(64));
        }
        Ok(Self(text.into()))
    }
}

fn is_sub_system_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')
}

impl fmt::Display for SubSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The SHA-256 digest of a blob.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// Returns 64 lower-case hexadecimal digits.
    pub fn to_hex(self) -> String {
        hex::encode(self.0)
    }
}

impl FromStr for Sha256 {
    type Err = Error;

    /// Accepts 64 hexadecimal digits in upper or lower case.
    fn from_str(text: &str) -> Result<Self> {
        let mut sum = [0; 32];
        hex::decode_to_slice(text, &mut sum)
            .map_err(|_| Error::invalid("sha256", "sha256 is 64 hexadecimal digits"))?;
        Ok(Self(sum))
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_id_is_an_upper_case_ulid() {
        let id = FileId::generate(Timestamp::from_millis(1_700_000_000_000));
        let text = id.to_string();
        assert_eq!(text.parse::<FileId>().unwrap(), id);
        assert!(text.to_lowercase().parse::<FileId>().is_err());

        for bad in [
            "",
            "01ARZ3NDEKTSV4RRFFQ69G5FA",
            "81ARZ3NDEKTSV4RRFFQ69G5FAV",
            "01ARZ3NDEKTSV4RRFFQ69G5FIL",
            "../../../../../etc/passwd0",
        ] {
            assert!(bad.parse::<FileId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_ids_of_an_instant_lie_between_two_bounds() {
        let at = Timestamp::from_millis(1_795_248_930_123);
        let (first, next) =
            (FileId::first_at(at), FileId::first_at(Timestamp::from_millis(1_795_248_930_124)));
        for id in (0..100).map(|_| FileId::generate(at)) {
            assert!(first <= id && id < next);
            assert!(first.to_string() <= id.to_string() && id.to_string() < next.to_string());
            assert_eq!(id.made_at(), at);
        }

        let (past, future) = (Timestamp::from_millis(-1), Timestamp::from_millis(i64::MAX));
        assert_eq!(FileId::first_at(past).to_string(), "0".repeat(26));
        assert!(FileId::first_at(future).to_string().starts_with("7ZZZZZZZZZ"));
    }

    #[test]
    fn ids_of_one_instant_have_fresh_random_bits() {
        let now = Timestamp::from_millis(1);
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| FileId::generate(now)).collect();
        assert_eq!(ids.len(), 1000);
        let first = ids.iter().next().unwrap().to_bits();
        assert!(ids.iter().any(|id| id.to_bits().abs_diff(first) > 1 << 64), "not a counter");
    }

    #[test]
    fn organization_ids_follow_the_contract() {
        for good in ["a", "0", "7", "9007199254740991", "acme_EU-1", "00a", "-", &"x".repeat(64)] {
            assert!(good.parse::<OrganizationId>().is_ok(), "{good}");
        }
        for bad in ["", "007", "00", "a b", "a/b", "ä", "a.b", &"x".repeat(65)] {
            assert!(bad.parse::<OrganizationId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_binding_governs_the_decimal_form_only() {
        let number = |text: &str| text.parse::<OrganizationId>().unwrap().number();

        assert_eq!(number("7").map(OrganizationNumber::get), Some(7));
        assert_eq!(number("9007199254740991"), Some(OrganizationNumber::MAX));
        for none in ["0", "9007199254740992", "acme", "-7", "7a", "99999999999999999999999"] {
            assert_eq!(number(none), None, "{none}");
        }
    }

    #[test]
    fn an_organization_number_is_a_positive_integer_that_json_keeps() {
        for good in [1, 7, (1 << 53) - 1] {
            let number = OrganizationNumber::try_from(good).unwrap();
            assert_eq!(number.get(), good);
            assert_eq!(number.to_string().parse::<OrganizationNumber>().unwrap(), number);
            assert_eq!(OrganizationId::from(number).number(), Some(number));
        }

        for bad in [0, -1, 1 << 53, i64::MIN, i64::MAX] {
            let error = OrganizationNumber::try_from(bad).unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some("organization"), "{bad}");
        }
    }

    #[test]
    fn an_organization_number_is_read_from_plain_digits() {
        for bad in ["", "07", "+7", "0", "-1", "7.0", "9007199254740992", "x"] {
            assert!(bad.parse::<OrganizationNumber>().is_err(), "{bad}");
        }
    }

    #[test]
    fn sub_systems_are_one_safe_path_segment() {
        for good in ["gallery", "a", "v1.2", "a_b-c", &"x".repeat(64)] {
            assert!(good.parse::<SubSystem>().is_ok(), "{good}");
        }
        for bad in ["", ".", "..", ".a", "-a", "a..b", "a/b", "a\\b", "ä", &"x".repeat(65)] {
            assert!(bad.parse::<SubSystem>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn sha256_text_round_trips(bytes: [u8; 32]) {
            let sum = Sha256(bytes);
            prop_assert_eq!(sum.to_hex().parse::<Sha256>().unwrap(), sum);
            prop_assert_eq!(sum.to_hex().to_uppercase().parse::<Sha256>().unwrap(), sum);
        }

        #[test]
        fn no_text_makes_an_unsafe_segment(text in ".{0,80}") {
            if let Ok(sub_system) = text.parse::<SubSystem>() {
                prop_assert!(!sub_system.as_str().contains(['/', '\\', '\0']));
                prop_assert!(!sub_system.as_str().starts_with('.'));
            }
        }
    }
}
