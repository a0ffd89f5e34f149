//! The public name of an event.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::domain::error::{Error, Result};

/// The id of an event, and a cursor: 16 bytes, written as 22 characters of base64url. A client
/// cannot make up an id, and cannot read the number of events from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventId([u8; 16]);

impl EventId {
    /// Wraps the 16 bytes.
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the 16 bytes.
    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventId({self})")
    }
}

impl FromStr for EventId {
    type Err = Error;

    /// Accepts 22 characters of base64url.
    fn from_str(text: &str) -> Result<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| Error::invalid("after", "an event's id has 22 characters of base64url"))
    }
}
