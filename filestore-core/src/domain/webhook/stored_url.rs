//! Replaces `url` in a build without the feature `webhooks`. Such a build sends nothing. Of the webhooks that
//! another build has stored, it only shows how many there are and how they are.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// The URL of a stored webhook. The build that stored the webhook has checked the URL.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl(String);

impl WebhookUrl {
    /// Returns the URL as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebhookUrl {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookUrl(..)")
    }
}
