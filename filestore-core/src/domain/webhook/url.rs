//! The URL of a webhook.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::{Host, Url};

use super::address::AllowedHosts;
use crate::domain::error::{Error, ErrorKind, Result};

/// The maximum length of a URL.
pub(crate) const MOST_URL_BYTES: usize = 2048;

/// The ports to which browsers send nothing, because servers of other protocols could take a request for theirs
/// (Fetch, "bad port").
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// The URL of a webhook: `https` or `http`, without a user and without a fragment.
///
/// A browser's rules read the host, so that `0x7f.1` and `2130706433` are the address `127.0.0.1`. `Debug` hides
/// path and query, which can contain a secret of the receiver.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl(Url);

/// The rules of the configuration for URLs and addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UrlRules {
    pub(crate) allow_http: bool,
    pub(crate) allowed: AllowedHosts,
}

impl WebhookUrl {
    /// Returns the URL as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns scheme, host and port, for logs.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// Returns the address, if the URL has one instead of a name.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self.0.host()? {
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
            Host::Domain(_) => None,
        }
    }

    /// Refuses a URL that the configuration does not allow. The addresses of a name are checked when it is looked
    /// up.
    pub(crate) fn check(&self, rules: &UrlRules) -> Result<()> {
        if self.0.scheme() == "http" && !rules.allow_http {
            return Err(refused("a webhook's URL begins with https:// (see webhooks.allow_http)"));
        }
        let refuses = |address| !rules.allowed.permits(None, address);
        if self.address().is_some_and(refuses) {
            let message = "a webhook's address is a public one (see webhooks.allow)";
            return Err(refused(message));
        }
        Ok(())
    }
}

fn refused(message: &str) -> Error {
    Error::new(ErrorKind::UrlRefused, message).with_field("url")
}

fn invalid(message: &str) -> Error {
    Error::invalid("url", message)
}

impl FromStr for WebhookUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.len() > MOST_URL_BYTES {
            let message = "a webhook's URL has at most 2048 bytes";
            return Err(invalid(message).with_limit(MOST_URL_BYTES as u64));
        }
        let url = Url::parse(text).map_err(|error| {
            invalid("a webhook's URL is absolute, for example https://example.org/hook")
                .with_source(error)
        })?;
        if !matches!(url.scheme(), "https" | "http") || url.host().is_none() {
            return Err(invalid("a webhook's URL begins with https:// or http://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("a webhook's URL has no user and no password"));
        }
        if url.fragment().is_some() {
            return Err(invalid("a webhook's URL has no fragment"));
        }
        if url.port().is_some_and(|port| BAD_PORTS.contains(&port)) {
            return Err(invalid("a webhook's URL has no port of another protocol"));
        }
        if url.as_str().len() > MOST_URL_BYTES {
            let message = "a webhook's URL has at most 2048 bytes with its escapes";
            return Err(invalid(message).with_limit(MOST_URL_BYTES as u64));
        }
        Ok(Self(url))
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookUrl({}/..)", self.origin())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn checked(text: &str, rules: &UrlRules) -> Result<WebhookUrl> {
        let url: WebhookUrl = text.parse()?;
        url.check(rules)?;
        Ok(url)
    }

    fn strict(text: &str) -> Result<WebhookUrl> {
        checked(text, &UrlRules::default())
    }

    #[test]
    fn public_urls_pass() {
        for text in [
            "https://example.org/hook?token=1",
            "https://EXAMPLE.org:8443/",
            "https://8.8.8.8/a",
            "https://[2606:4700::1111]/",
            "https://bücher.example/",
        ] {
            assert!(strict(text).is_ok(), "{text}");
        }
        let url: WebhookUrl = "https://example.org/secret?token=1".parse().unwrap();
        assert_eq!(format!("{url:?}"), "WebhookUrl(https://example.org/..)");
    }

    #[test]
    fn a_url_with_something_else_is_refused() {
        let long = format!("https://example.org/{}", "a".repeat(2048));
        for text in [
            "",
            "example.org",
            "//example.org",
            "ftp://example.org/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://",
            "https:///",
            "https://u@example.org/",
            "https://u:p@example.org/",
            "https://:p@example.org/",
            "https://example.org/#a",
            "https://example.org:22/",
            "https://example.org:25/",
            "https://example.org:6667/",
            "https://example.org:99999/",
            "https://[fe80::1%25eth0]/",
            "https://[fe80::1%eth0]/",
            "https://exa mple.org/",
            &long,
        ] {
            let refused = strict(text).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidField, "{text}");
            assert_eq!(refused.details().field.as_deref(), Some("url"));
        }
    }

    #[test]
    fn every_way_to_write_a_local_address_is_refused() {
        for host in [
            "127.0.0.1",
            "127.1",
            "0x7f.1",
            "2130706433",
            "0177.0.0.1",
            "①②⑦.0.0.1",
            "127.0.0.1.",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[0:0:0:0:0:ffff:7f00:1]",
            "169.254.169.254",
            "0xa9fea9fe",
            "[64:ff9b::169.254.169.254]",
            "10.0.0.1",
            "[fd00::1]",
            "0",
            "0.0.0.0",
        ] {
            let refused = strict(&format!("https://{host}/")).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::UrlRefused, "{host}");
        }
    }

    #[test]
    fn plain_http_and_local_addresses_need_the_configuration() {
        let text = "http://127.0.0.1:8099/hook";
        let allowed = AllowedHosts::parse(&["127.0.0.0/8".to_owned()]).unwrap();
        let both = UrlRules { allow_http: true, allowed: allowed.clone() };
        assert!(checked(text, &both).is_ok());
        for rules in [
            UrlRules { allow_http: true, ..UrlRules::default() },
            UrlRules { allow_http: false, allowed },
        ] {
            assert_eq!(checked(text, &rules).unwrap_err().kind(), ErrorKind::UrlRefused);
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader_and_what_passes_reads_back(text in "https?://.{0,40}") {
            if let Ok(url) = text.parse::<WebhookUrl>() {
                let again: WebhookUrl = url.as_str().parse().unwrap();
                prop_assert_eq!(again, url);
            }
        }
    }
}
