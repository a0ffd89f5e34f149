//! The addresses to which the store may send events.
//!
//! # Purpose
//! Whoever makes a webhook makes this machine call out. Without a rule, the call could reach services that only
//! this machine can reach, for example a cloud's metadata service at `169.254.169.254`. So only public addresses
//! are called, and those that the configuration names.
//!
//! An IPv6 address can contain an IPv4 address that a translator calls in the end. The contained address must pass
//! as well. A network that translates with a prefix of its own is not known here. Its translator must refuse such
//! addresses itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The IPv4 ranges that are not public. The list is the registry of special-purpose addresses (RFC 6890), with
/// multicast and one public address that only a cloud's machines reach.
const REFUSED_V4: [(Ipv4Addr, u8); 17] = [
    (Ipv4Addr::UNSPECIFIED, 8),            // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // shared by a provider's customers
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // loopback
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link-local, metadata services
    (Ipv4Addr::new(168, 63, 129, 16), 32), // the host of a virtual machine in Azure
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // relays of 6to4
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved
    (Ipv4Addr::BROADCAST, 32),
];

/// The range of IPv6 in which public addresses are. Unspecified, loopback, unique local, link-local, site-local
/// and multicast addresses are outside.
const PUBLIC_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The ranges of [`PUBLIC_V6`] that are not public.
const REFUSED_V6: [(Ipv6Addr, u8); 3] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, with Teredo
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// Addresses that an IPv6 network translates to the IPv4 address in the last 32 bits (RFC 6052).
const NAT64: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Addresses that are routed to the IPv4 address behind the first 16 bits.
const SIX_TO_FOUR: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);

/// A range of addresses, for example `10.0.5.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    first: IpAddr,
    prefix: u8,
}

impl Range {
    fn contains(self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => is_in_v4(address, (first, self.prefix)),
            (IpAddr::V6(first), IpAddr::V6(address)) => is_in_v6(address, (first, self.prefix)),
            _ => false,
        }
    }
}

impl FromStr for Range {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(drop)?;
        let longest = if first.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(longest), str::parse).map_err(drop)?;
        (prefix <= longest).then_some(Self { first, prefix }).ok_or(())
    }
}

/// The exceptions that the configuration makes: ranges of addresses, and names of hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AllowedHosts {
    ranges: Vec<Range>,
    names: Vec<String>,
}

impl AllowedHosts {
    /// Reads the list. Returns the first entry that is neither an address, a range nor a name.
    pub(crate) fn parse(list: &[String]) -> Result<Self, &String> {
        let mut allowed = Self::default();
        for entry in list {
            match (entry.parse(), is_name(entry)) {
                (Ok(range), _) => allowed.ranges.push(range),
                (Err(()), true) => allowed.names.push(normal(entry)),
                (Err(()), false) => return Err(entry),
            }
        }
        Ok(allowed)
    }

    /// Tells whether an event can go to `address`. `name` is the name that was looked up, if the URL has one.
    pub(crate) fn permits(&self, name: Option<&str>, address: IpAddr) -> bool {
        let has_name = name.is_some_and(|name| self.names.contains(&normal(name)));
        has_name || self.permits_address(address)
    }

    fn permits_address(&self, address: IpAddr) -> bool {
        if self.ranges.iter().any(|range| range.contains(address)) {
            return true;
        }
        match address {
            IpAddr::V4(address) => !REFUSED_V4.iter().any(|range| is_in_v4(address, *range)),
            IpAddr::V6(address) => match contained(address) {
                Some(within) => self.permits_address(IpAddr::V4(within)),
                None => {
                    is_in_v6(address, PUBLIC_V6)
                        && !REFUSED_V6.iter().any(|range| is_in_v6(address, *range))
                }
            },
        }
    }
}

/// Returns the IPv4 address that a connection to this IPv6 address reaches in the end.
fn contained(address: Ipv6Addr) -> Option<Ipv4Addr> {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return Some(mapped);
    }
    let bytes = address.octets();
    if is_in_v6(address, NAT64) {
        return Some(Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15]));
    }
    is_in_v6(address, SIX_TO_FOUR).then(|| Ipv4Addr::new(bytes[2], bytes[3], bytes[4], bytes[5]))
}

fn is_in_v4(address: Ipv4Addr, (first, prefix): (Ipv4Addr, u8)) -> bool {
    let differing = address.to_bits() ^ first.to_bits();
    differing.checked_shr(32 - u32::from(prefix)).unwrap_or(0) == 0
}

fn is_in_v6(address: Ipv6Addr, (first, prefix): (Ipv6Addr, u8)) -> bool {
    let differing = address.to_bits() ^ first.to_bits();
    differing.checked_shr(128 - u32::from(prefix)).unwrap_or(0) == 0
}

/// Writes a host's name in lower case, without the dot of a complete name.
fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    // A name that ends in a number is an address, or a wrong one.
    let last = text.strip_suffix('.').unwrap_or(text).rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
    !is_number && text.len() <= 253 && text.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn permits(address: &str) -> bool {
        AllowedHosts::default().permits(None, address.parse().unwrap())
    }

    #[test]
    fn addresses_that_are_not_public_are_refused() {
        for refused in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "168.63.129.16",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::a83f:8110",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2002:c0a8:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
            "4000::1",
        ] {
            assert!(!permits(refused), "{refused}");
        }
    }

    #[test]
    fn public_addresses_pass() {
        for passes in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::200e",
            "2001:4860:4860::8888",
            "2001:200::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(permits(passes), "{passes}");
        }
    }

    #[test]
    fn the_configuration_allows_ranges_and_names() {
        let list = ["10.0.5.0/24", "fd00:1::/32", "127.0.0.1", "Hooks.Internal"];
        let list: Vec<String> = list.map(str::to_owned).into();
        let allowed = AllowedHosts::parse(&list).unwrap();
        let permits = |name, address: &str| allowed.permits(name, address.parse().unwrap());

        assert!(permits(None, "10.0.5.9") && permits(None, "fd00:1::9"));
        assert!(permits(None, "::ffff:10.0.5.9") && permits(None, "64:ff9b::a00:509"));
        assert!(permits(None, "127.0.0.1") && !permits(None, "127.0.0.2"));
        assert!(!permits(None, "10.0.6.1") && !permits(None, "fd00:2::1"));
        assert!(permits(Some("hooks.internal"), "192.168.1.1"));
        assert!(permits(Some("HOOKS.internal."), "::1"));
        assert!(!permits(Some("a.hooks.internal"), "192.168.1.1"));
    }

    #[test]
    fn an_entry_that_means_nothing_is_named() {
        for wrong in
            ["", "10.0.0.0/33", "10.0.0", "::/129", "a b", "https://a", "1.2.3.4/", "[::1]"]
        {
            let list = ["10.0.0.0/8".to_owned(), wrong.to_owned()];
            assert_eq!(AllowedHosts::parse(&list), Err(&list[1]), "{wrong}");
        }
        assert!(AllowedHosts::parse(&["0.0.0.0/0".to_owned(), "::/0".to_owned()]).is_ok());
    }

    #[test]
    fn everything_can_be_allowed() {
        let all = AllowedHosts::parse(&["0.0.0.0/0".to_owned(), "::/0".to_owned()]).unwrap();
        for address in ["0.0.0.0", "255.255.255.255", "::", "ff02::1", "::ffff:10.0.0.1"] {
            let list = [address.parse().unwrap()];
            assert!(all.permits(None, list[0]), "{address}");
        }
    }

    proptest! {
        /// Whatever form an address has, the decision is that of the address that is reached.
        #[test]
        fn every_form_of_an_address_is_decided_alike(bits: u32, tail: u64) {
            let address = Ipv4Addr::from_bits(bits);
            let plain = permits(&address.to_string());
            let [a, b, c, d] = address.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let mapped = address.to_ipv6_mapped();
            let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
            let routed = u128::from(0x2002_u16) << 112 | u128::from(bits) << 80 | u128::from(tail);
            for form in [mapped, nat64, Ipv6Addr::from_bits(routed)] {
                prop_assert_eq!(permits(&form.to_string()), plain);
            }
        }

        #[test]
        fn the_library_calls_nothing_private_that_passes(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let is_special = address.is_private() || address.is_loopback() || address.is_link_local()
                || address.is_broadcast() || address.is_documentation() || address.is_multicast()
                || address.is_unspecified();
            prop_assert!(!is_special || !permits(&address.to_string()));
        }

        #[test]
        fn no_local_address_of_the_sixth_version_passes(bits: u128) {
            let address = Ipv6Addr::from_bits(bits);
            let is_special = address.is_loopback() || address.is_multicast() || address.is_unspecified()
                || address.is_unique_local() || address.is_unicast_link_local();
            prop_assert!(!is_special || !permits(&address.to_string()));
        }
    }
}
