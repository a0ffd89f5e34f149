//! X-Forwarded-For: the address of a client behind trusted proxies.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use http::HeaderMap;
use thiserror::Error;

/// An IP address, or a range in CIDR notation (`10.0.0.0/8`, `::1`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpRange {
    address: IpAddr,
    prefix: u32,
}

/// The error for an invalid address range.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not an ip address or cidr range: {0}")]
pub struct BadIpRange(String);

impl FromStr for IpRange {
    type Err = BadIpRange;

    fn from_str(text: &str) -> Result<Self, BadIpRange> {
        Self::parse(text).ok_or_else(|| BadIpRange(text.to_owned()))
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = if self.address.is_ipv4() { 32 } else { 128 };
        match self.prefix {
            prefix if prefix == bits => write!(f, "{}", self.address),
            prefix => write!(f, "{}/{prefix}", self.address),
        }
    }
}

impl IpRange {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };

        let address: IpAddr = address.parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(bits), str::parse).ok().filter(|prefix| *prefix <= bits)?;
        Some(Self { address, prefix })
    }

    /// Returns true if the range contains `address`.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                same_prefix(own.to_bits().into(), other.to_bits().into(), 32 - self.prefix)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                same_prefix(own.to_bits(), other.to_bits(), 128 - self.prefix)
            }
            _ => false,
        }
    }
}

fn same_prefix(a: u128, b: u128, ignored_bits: u32) -> bool {
    a.checked_shr(ignored_bits).unwrap_or(0) == b.checked_shr(ignored_bits).unwrap_or(0)
}

/// The client of a request that came over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientAddress {
    /// The client at this address.
    Known(IpAddr),
    /// A client behind the trusted proxy at this address. The proxy did not report the client's address.
    Behind(IpAddr),
}

impl ClientAddress {
    /// A client on a connection with an unknown peer.
    pub(crate) const UNTOLD: Self = Self::Behind(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

    /// Returns the address for limits: the client's address, or the address of the last known proxy.
    pub(crate) fn address(self) -> IpAddr {
        match self {
            Self::Known(address) | Self::Behind(address) => address,
        }
    }

    /// Returns true if the client's address is on this machine. An unknown client never is.
    pub(crate) fn is_loopback(self) -> bool {
        matches!(self, Self::Known(address) if address.is_loopback())
    }
}

/// Writes the client's address, or `unknown`.
impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(address) => write!(f, "{address}"),
            Self::Behind(_) => f.write_str("unknown"),
        }
    }
}

/// Returns the client of a request that `peer` sent: the last address in X-Forwarded-For that is not a
/// trusted proxy, or the first address if all are trusted. Each proxy appends the address that it saw, so
/// anyone can have written the addresses further left. If the relevant element is unreadable (`unknown`,
/// `_hidden` or empty), the client is unknown.
pub(crate) fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpRange]) -> ClientAddress {
    let mut client = peer.to_canonical();
    let lines: Vec<_> = headers.get_all("x-forwarded-for").iter().collect();

    for hop in lines.iter().rev().flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b',')) {
        if !trusted.iter().any(|range| range.contains(client)) {
            break;
        }
        let Some(address) = std::str::from_utf8(hop).ok().and_then(address_of) else {
            return ClientAddress::Behind(client);
        };
        client = address.to_canonical();
    }

    ClientAddress::Known(client)
}

/// Parses an address with or without a port: `192.0.2.1`, `192.0.2.1:443`, `2001:db8::1`, `[2001:db8::1]`,
/// `[2001:db8::1]:443`.
fn address_of(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim_matches([' ', '\t']);
    let bare = hop.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match bare {
        Some(bare) => bare.parse().ok().map(|address: Ipv6Addr| address.into()),
        None => hop.parse().ok().or_else(|| hop.parse().ok().map(|socket: SocketAddr| socket.ip())),
    }
}

/// The bits of an IPv6 address that a client cannot choose.
const NETWORK_BITS: u32 = 64;

/// Returns the address that represents all addresses of one client: an IPv4 address, or the /64 network of an
/// IPv6 address, which a household or a server gets.
pub(crate) fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() >> NETWORK_BITS << NETWORK_BITS).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn ranges_hold_their_addresses() {
        for (range, address, held) in [
            ("10.0.0.0/8", "10.255.1.2", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "8.8.8.8", false),
        ] {
            let range: IpRange = range.parse().unwrap();
            assert_eq!(range.contains(address.parse().unwrap()), held, "{range:?} {address}");
        }

        for bad in ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "host", "::1/129"] {
            assert!(bad.parse::<IpRange>().is_err(), "{bad}");
        }
    }

    #[test]
    fn only_the_word_of_trusted_proxies_counts() {
        let trusted = ["127.0.0.1".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
        let seen = |peer: &str, forwarded: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in forwarded {
                headers.append("x-forwarded-for", line.parse().unwrap());
            }
            client(peer.parse().unwrap(), &headers, &trusted).to_string()
        };

        assert_eq!(seen("9.9.9.9", &["1.1.1.1"]), "9.9.9.9");
        assert_eq!(seen("127.0.0.1", &[]), "127.0.0.1");
        assert_eq!(seen("::ffff:127.0.0.1", &["1.1.1.1"]), "1.1.1.1");
        assert_eq!(seen("127.0.0.1", &["6.6.6.6, 1.1.1.1, 10.1.2.3"]), "1.1.1.1");
        assert_eq!(seen("127.0.0.1", &["6.6.6.6", "1.1.1.1:443,10.1.2.3"]), "1.1.1.1");
    }

    #[test]
    fn a_client_that_a_proxy_does_not_name_is_unknown_and_never_local() {
        let trusted = ["127.0.0.0/8".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
        let seen = |forwarded: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for line in forwarded {
                headers.append("x-forwarded-for", HeaderValue::from_bytes(line).unwrap());
            }
            client("127.0.0.1".parse().unwrap(), &headers, &trusted)
        };
        let local: IpAddr = "127.0.0.1".parse().unwrap();

        for unread in [
            &b"unknown"[..],
            b"",
            b" ",
            b"_hidden",
            b"8.8.8.8, _hidden",
            b"8.8.8.8,",
            b"8.8.8.8, ",
            b"127.0.0.1, unknown",
            b"localhost",
            b"[127.0.0.1]",
            b"[::1",
            b"::1]",
            b"[fe80::1%eth0]",
            b"127.1",
            b"127.0.0.1:",
            b"127.0.0.1:99999",
            b"\"127.0.0.1\"",
            b"127.0.0.1\xc2\xa0",
            b"\xff",
        ] {
            let origin = seen(&[unread]);
            assert_eq!(origin, ClientAddress::Behind(local), "{}", unread.escape_ascii());
            assert!(!origin.is_loopback() && origin.to_string() == "unknown");
        }
        // A line that is no text hides none of those before it.
        assert_eq!(seen(&[b"127.0.0.1", b"\xff"]), ClientAddress::Behind(local));
        let farther: IpAddr = "10.1.2.3".parse().unwrap();
        assert_eq!(seen(&[b"6.6.6.6, nonsense, 10.1.2.3"]), ClientAddress::Behind(farther));

        for (readable, address) in [
            (&b"1.2.3.4:5678"[..], "1.2.3.4"),
            (b"[2001:db8::1]:443", "2001:db8::1"),
            (b"[2001:db8::1]", "2001:db8::1"),
            (b"2001:db8::1", "2001:db8::1"),
            (b"[::ffff:1.2.3.4]:443", "1.2.3.4"),
            (b"unknown, 1.2.3.4", "1.2.3.4"),
        ] {
            assert_eq!(seen(&[readable]), ClientAddress::Known(address.parse().unwrap()));
        }
        assert!(seen(&[b"[::1]:7"]).is_loopback() && seen(&[]).is_loopback());
    }
}
