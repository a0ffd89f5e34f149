//! The rights of an API key: `read`, `write`, `delete`, `admin`.

use std::fmt;
use std::str::FromStr;

use crate::domain::error::{Error, Result};

/// A scope: a kind of work that a key allows. No scope includes another. Exception:
/// [`Admin`](Self::Admin).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyScope {
    /// Read files, records and listings.
    Read,
    /// Upload, change and restore files.
    Write,
    /// Delete files.
    Delete,
    /// All other scopes. For all organizations, also the administration of the service.
    Admin,
}

impl KeyScope {
    /// Every scope, in display order.
    pub const ALL: &[Self] = &[Self::Read, Self::Write, Self::Delete, Self::Admin];

    /// Returns the scope name, for example `read`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for KeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for KeyScope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.iter().copied().find(|scope| scope.as_str() == text);
        found.ok_or_else(|| {
            let words: Vec<_> = Self::ALL.iter().map(ToString::to_string).collect();
            let message = format!("a scope is one of {}", words.join(", "));
            Error::invalid("scopes", message).with_allowed(words)
        })
    }
}

/// A key's scopes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyScopes(u8);

impl KeyScopes {
    /// Tests whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Tests whether `scope` is in the set.
    pub const fn contains(self, scope: KeyScope) -> bool {
        self.0 & bit(scope) != 0
    }

    /// Returns the scopes in the order of [`KeyScope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = KeyScope> {
        KeyScope::ALL.iter().copied().filter(move |scope| self.contains(*scope))
    }
}

const fn bit(scope: KeyScope) -> u8 {
    1 << scope as u8
}

impl FromIterator<KeyScope> for KeyScopes {
    fn from_iter<I: IntoIterator<Item = KeyScope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |all, scope| all | bit(scope)))
    }
}

impl fmt::Debug for KeyScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
