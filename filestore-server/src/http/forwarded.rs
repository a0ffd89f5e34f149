//! X-Forwarded-For: the address of a client behind trusted proxies.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use http::HeaderMap;
use thiserror::Error;

/// An IP address, or a range of them in CIDR notation (`10.0.0.0/8`, `::1`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpRange {
    address: IpAddr,
    prefix: u32,
}

/// The error of a text that is no range of addresses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not an ip address or cidr range: {0}")]
pub struct BadIpRange(String);

impl FromStr for IpRange {
    type Err = BadIpRange;

    fn from_str(text: &str) -> Result<Self, BadIpRange> {
        Self::parse(text).ok_or_else(|| BadIpRange(text.to_owned()))
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

    /// Tests whether the range holds `address`.
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

/// Returns the address of the client of a request that `peer` sent: the last address in
/// X-Forwarded-For that belongs to no trusted proxy, or the farthest address that could be read. Each
/// proxy appends the address it saw, so anybody may have written the addresses further left.
pub(crate) fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpRange]) -> IpAddr {
    let mut client = peer.to_canonical();
    let lines: Vec<&str> =
        headers.get_all("x-forwarded-for").iter().filter_map(|line| line.to_str().ok()).collect();

    for hop in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
        if !trusted.iter().any(|range| range.contains(client)) {
            break;
        }
        let Some(address) = address_of(hop.trim()) else { break };
        client = address.to_canonical();
    }

    client
}

/// Reads an address with or without a port.
fn address_of(hop: &str) -> Option<IpAddr> {
    hop.parse().ok().or_else(|| hop.parse().ok().map(|socket: SocketAddr| socket.ip()))
}

/// The bits of an IPv6 address that a client cannot choose.
const NETWORK_BITS: u32 = 64;

/// Returns the address that stands for all that one client may use: an IPv4 address, or the /64 of IPv6
/// addresses that a household or a server is given.
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
        assert_eq!(seen("127.0.0.1", &["6.6.6.6, nonsense, 10.1.2.3"]), "10.1.2.3");
    }
}
