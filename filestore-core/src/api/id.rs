//! Ids in JSON, with one type for each id, so that you cannot confuse two ids.
//!
//! Text from your program is checked by the rules of the server, for example with `"42".parse()` or
//! `OrganizationId::try_from("42")`. Text from a server is accepted without a check (by serde and
//! `unchecked`), because a later server can use other forms.

use std::error::Error as StdError;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Maximum length of an organization id and of a sub-system, in characters.
const LIMIT_CHARS: usize = 64;

/// Defines an id: a text that `$check` checks when the text comes from a caller.
macro_rules! id {
    ($(#[$doc:meta])* $type:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(Box<str>);

        impl $type {
            /// Creates an id without a check. Use this for ids from a server.
            pub fn unchecked(text: impl Into<Box<str>>) -> Self {
                Self(text.into())
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $type {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                $check(text)?;
                Ok(Self(text.into()))
            }
        }

        impl TryFrom<&str> for $type {
            type Error = InvalidId;

            fn try_from(text: &str) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl TryFrom<String> for $type {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl TryFrom<&String> for $type {
            type Error = InvalidId;

            fn try_from(text: &String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(id: $type) -> Self {
                id.0.into()
            }
        }

        impl From<&$type> for String {
            fn from(id: &$type) -> Self {
                id.as_str().to_owned()
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

id! {
    /// A file id: a ULID of 26 upper-case characters.
    ///
    /// ```
    /// use filestore_core::api::FileId;
    ///
    /// let id: FileId = "01JD0000000000000000000000".parse()?;
    /// assert_eq!(id.to_string(), "01JD0000000000000000000000");
    /// assert!("photo.jpg".parse::<FileId>().is_err());
    /// # Ok::<(), filestore_core::api::InvalidId>(())
    /// ```
    FileId, check_file_id
}

id! {
    /// An organization id: 1 to 64 characters of `A-Z a-z 0-9 _ -`. If the id has only digits, the
    /// first digit of a longer id is not 0.
    OrganizationId, check_organization_id
}

id! {
    /// A sub-system, for example `invoices`: 1 to 64 characters of `A-Z a-z 0-9 . _ -`. The first
    /// character is a letter or a digit, and the text does not contain `..`.
    SubSystem, check_sub_system
}

/// The number that bindings, sync and migrations use for an organization: 1 to 2^53−1, the largest
/// integer that every JSON reader keeps. The organization's id is the same number as text.
///
/// ```
/// use filestore_core::api::OrganizationNumber;
///
/// let number: OrganizationNumber = 42.try_into()?;
/// assert_eq!(number.get(), 42);
/// assert!("042".parse::<OrganizationNumber>().is_err());
/// # Ok::<(), filestore_core::api::InvalidId>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrganizationNumber(i64);

impl OrganizationNumber {
    /// The largest number of an organization.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// Takes the number as it is, for numbers that come from the service.
    pub const fn unchecked(number: i64) -> Self {
        Self(number)
    }

    /// Returns the number as an integer.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl TryFrom<i64> for OrganizationNumber {
    type Error = InvalidId;

    fn try_from(number: i64) -> Result<Self, InvalidId> {
        let fits = (1..=Self::MAX.0).contains(&number);
        fits.then_some(Self(number)).ok_or_else(|| invalid_number(&number.to_string()))
    }
}

impl std::str::FromStr for OrganizationNumber {
    type Err = InvalidId;

    /// Accepts plain decimal digits: `07` and `+7` are not other spellings of `7`.
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let number: i64 = text.parse().map_err(|_| invalid_number(text))?;
        if number.to_string() != text {
            return Err(invalid_number(text));
        }
        number.try_into()
    }
}

impl From<OrganizationNumber> for i64 {
    fn from(number: OrganizationNumber) -> Self {
        number.0
    }
}

impl fmt::Display for OrganizationNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A number has the schema of a plain integer.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for OrganizationNumber {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OrganizationNumber".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        <i64 as schemars::JsonSchema>::json_schema(generator)
    }
}

fn invalid_number(text: &str) -> InvalidId {
    InvalidId::new("an organization number is an integer from 1 to 9007199254740991", text)
}

/// The error for a text that is not a valid id. `Display` shows the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidId {
    rule: &'static str,
    text: String,
}

impl InvalidId {
    fn new(rule: &'static str, text: &str) -> Self {
        Self { rule, text: text.to_owned() }
    }

    /// Returns the invalid text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.rule, self.text)
    }
}

impl StdError for InvalidId {}

fn check_file_id(text: &str) -> Result<(), InvalidId> {
    // 26 digits of base 32 are 130 bits, and an id has 128: the first digit is at most 7.
    let fits = matches!(text.bytes().next(), Some(b'0'..=b'7'));

    if text.len() == 26 && fits && text.bytes().all(is_crockford_digit) {
        return Ok(());
    }
    Err(InvalidId::new("a file id is an upper-case ULID of 26 characters", text))
}

fn check_organization_id(text: &str) -> Result<(), InvalidId> {
    if text.is_empty() || text.len() > LIMIT_CHARS || !holds_only(text, b"_-") {
        let rule = "organization_id is 1 to 64 characters of A-Z a-z 0-9 _ -";
        return Err(InvalidId::new(rule, text));
    }

    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && text.len() > 1 && text.starts_with('0') {
        return Err(InvalidId::new("a numeric organization_id has no leading zero", text));
    }
    Ok(())
}

fn check_sub_system(text: &str) -> Result<(), InvalidId> {
    let starts_well = text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    let fits = text.len() <= LIMIT_CHARS && holds_only(text, b"._-") && !text.contains("..");

    if starts_well && fits {
        return Ok(());
    }
    let rule = "sub_system is 1 to 64 characters of A-Z a-z 0-9 . _ -, starts with a letter or \
                digit and has no ..";
    Err(InvalidId::new(rule, text))
}

/// Tests for an upper-case digit of Crockford's base 32, which excludes I, L, O and U.
fn is_crockford_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'A'..=b'Z') && !b"ILOU".contains(&byte)
}

fn holds_only(text: &str, beside_letters_and_digits: &[u8]) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || beside_letters_and_digits.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ULID: &str = "01JD0000000000000000000000";

    #[test]
    fn ids_of_a_caller_are_checked() {
        assert_eq!(ULID.parse::<FileId>().unwrap().as_str(), ULID);
        for text in ["", "01jd0000000000000000000000", "81JD0000000000000000000000", "01JD", "../x"]
        {
            assert!(text.parse::<FileId>().is_err(), "{text}");
        }

        for text in ["42", "0", "acme", "a_b-C", "0a"] {
            assert_eq!(OrganizationId::try_from(text).unwrap().to_string(), text);
        }
        for text in ["", "042", "a b", "ä", "a/b", &"x".repeat(65)] {
            assert!(OrganizationId::try_from(text).is_err(), "{text}");
        }

        for text in ["gallery", "4", "a.b_c-d"] {
            assert_eq!(SubSystem::try_from(text).unwrap().to_string(), text);
        }
        for text in ["", ".a", "a..b", "a b", &"x".repeat(65)] {
            assert!(SubSystem::try_from(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_of_a_caller_are_checked() {
        assert_eq!(OrganizationNumber::try_from(42).unwrap().to_string(), "42");
        for text in ["1", "42", "9007199254740991"] {
            assert_eq!(text.parse::<OrganizationNumber>().unwrap().to_string(), text);
        }
        for text in ["", "0", "-1", "07", "+7", "x", "9007199254740992"] {
            assert!(text.parse::<OrganizationNumber>().is_err(), "{text}");
        }
        assert!(OrganizationNumber::try_from(0).is_err());
    }

    #[test]
    fn a_refusal_says_the_rule_and_the_text() {
        let error = "042".parse::<OrganizationId>().unwrap_err();
        assert_eq!(error.to_string(), "a numeric organization_id has no leading zero: \"042\"");
        assert_eq!(error.text(), "042");
    }

    #[test]
    fn ids_of_the_service_are_kept_as_they_are() {
        let id: FileId = serde_json::from_str("\"of-a-later-service\"").unwrap();
        assert_eq!(id, FileId::unchecked("of-a-later-service"));
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"of-a-later-service\"");

        let number: OrganizationNumber = serde_json::from_str("0").unwrap();
        assert_eq!(number, OrganizationNumber::unchecked(0));
        assert_eq!(serde_json::to_string(&number).unwrap(), "0");
    }

    #[cfg(feature = "store")]
    #[test]
    fn the_wire_and_the_domain_take_the_same_ids() {
        use crate::domain::id;

        let long = "x".repeat(65);
        let texts =
            ["", "0", "42", "042", "a..b", ".a", "a.b", "a b", "ä", "_a", "-a", ULID, &long];
        for text in texts {
            let organization = text.parse::<id::OrganizationId>();
            assert_eq!(text.parse::<OrganizationId>().is_ok(), organization.is_ok(), "{text}");
            assert_eq!(text.parse::<SubSystem>().is_ok(), text.parse::<id::SubSystem>().is_ok());
        }
        for text in ["", "0", "1", "07", "+7", "-7", "9007199254740991", "9007199254740992"] {
            let number = text.parse::<id::OrganizationNumber>();
            assert_eq!(text.parse::<OrganizationNumber>().is_ok(), number.is_ok(), "{text}");
        }
        for text in [ULID, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "81JD0000000000000000000000", "01jd", "I"]
        {
            assert_eq!(
                text.parse::<FileId>().is_ok(),
                text.parse::<id::FileId>().is_ok(),
                "{text}"
            );
        }
    }
}
