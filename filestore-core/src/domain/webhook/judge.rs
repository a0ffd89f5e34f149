//! A judge of the URLs and addresses of webhooks, for tests and fuzz targets alone.
//!
//! The judge knows nothing of the code that it judges. Its ranges are first and last addresses, and not prefixes, so
//! that a wrong prefix or a wrong comparison of prefixes shows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{AllowedHosts, UrlRules, WebhookUrl};

/// The first and the last address of each range that is not public.
const NOT_PUBLIC: [(&str, &str); 16] = [
    ("0.0.0.0", "0.255.255.255"),
    ("10.0.0.0", "10.255.255.255"),
    ("100.64.0.0", "100.127.255.255"),
    ("127.0.0.0", "127.255.255.255"),
    ("168.63.129.16", "168.63.129.16"),
    ("169.254.0.0", "169.254.255.255"),
    ("172.16.0.0", "172.31.255.255"),
    ("192.0.0.0", "192.0.0.255"),
    ("192.0.2.0", "192.0.2.255"),
    ("192.88.99.0", "192.88.99.255"),
    ("192.168.0.0", "192.168.255.255"),
    ("198.18.0.0", "198.19.255.255"),
    ("198.51.100.0", "198.51.100.255"),
    ("203.0.113.0", "203.0.113.255"),
    ("224.0.0.0", "239.255.255.255"),
    ("240.0.0.0", "255.255.255.255"),
];

/// Compares the decision about an address with the judge's. The first 4 or 16 bytes are the address.
///
/// # Panics
/// Panics if the decisions differ.
pub fn address(bytes: &[u8]) {
    let address = match (bytes.first_chunk::<16>(), bytes.first_chunk::<4>()) {
        (Some(bytes), _) => IpAddr::from(*bytes),
        (None, Some(bytes)) => IpAddr::from(*bytes),
        (None, None) => return,
    };
    let permits = AllowedHosts::default().permits(None, address);
    assert_eq!(permits, is_public(address), "{address}");
}

/// Reads a URL. What passes has one meaning, and leads to no address that is not public.
///
/// # Panics
/// Panics if a URL passes that must not.
pub fn url(text: &str) {
    let Ok(url) = text.parse::<WebhookUrl>() else { return };
    let shown = url.as_str();
    assert_eq!(shown.parse::<WebhookUrl>().ok().as_ref(), Some(&url), "{text:?} changes");
    assert!(shown.len() <= 2048 && !shown.contains('#'), "{shown}");
    let (scheme, rest) = shown.split_once("://").expect("a URL has a scheme");
    assert!(matches!(scheme, "http" | "https"), "{shown}");
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    assert!(!authority.contains(['@', '\\', '%', ' ']), "{shown}");

    if url.check(&UrlRules::default()).is_ok() {
        assert_eq!(scheme, "https", "{shown}");
        host(authority, shown);
    }
}

/// Expects that a host is a public address, or a name that no resolver reads as an address.
fn host(authority: &str, shown: &str) {
    if let Some(address) = authority.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
        let address: Ipv6Addr = address.parse().expect("brackets contain an address");
        assert!(is_public(address.into()), "{shown}");
        return;
    }
    let host = authority.split(':').next().unwrap_or_default();
    assert!(!host.is_empty(), "{shown}");
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        assert!(is_public(address.into()), "{shown}");
        return;
    }
    let last = host.strip_suffix('.').unwrap_or(host).rsplit('.').next().unwrap_or_default();
    let digits = last.strip_prefix("0x").unwrap_or(last);
    let is_decimal = last.len() == digits.len();
    let is_digit =
        |byte: u8| if is_decimal { byte.is_ascii_digit() } else { byte.is_ascii_hexdigit() };
    assert!(last.is_empty() || !digits.bytes().all(is_digit), "{shown} ends in a number");
}

/// Reads a list of exceptions, one on each line. Each address of the list is then permitted.
///
/// # Panics
/// Panics if an address that is named is refused.
pub fn allowed(text: &str) {
    let list: Vec<String> = text.lines().map(str::to_owned).collect();
    let Ok(allowed) = AllowedHosts::parse(&list) else { return };
    for entry in &list {
        let first = entry.split('/').next().unwrap_or_default();
        match first.parse::<IpAddr>() {
            Ok(address) => assert!(allowed.permits(None, address), "{entry}"),
            Err(_) => {
                assert!(allowed.permits(Some(entry), Ipv4Addr::LOCALHOST.into()), "{entry}");
            }
        }
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => NOT_PUBLIC.iter().all(|(first, last)| {
            let read = |text: &str| text.parse::<Ipv4Addr>().expect("an address of the list");
            address < read(first) || read(last) < address
        }),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let within = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public(Ipv4Addr::new(a, b, c, d).into())
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            within(high, low)
        }
        [0x2002, high, low, ..] => within(high, low),
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => (0x2000..=0x3fff).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_rules_decide_like_the_judge(v4: [u8; 4], v6: [u8; 16], first in 0_usize..6) {
            address(&v4);
            address(&v6);
            // Random addresses are seldom near a range.
            let edges = [0x2001_0000_u32, 0x2001_01ff, 0x2001_0db8, 0x3fff_0fff, 0x0064_ff9b, 0x2002_0a00];
            let mut near = v6;
            near[..4].copy_from_slice(&edges[first].to_be_bytes());
            address(&near);
            let mapped = Ipv4Addr::from(v4).to_ipv6_mapped();
            address(&mapped.octets());
        }

        #[test]
        fn the_edges_of_ranges_are_decided_alike(which in 0_usize..16, step in -1_i64..2) {
            for edge in [NOT_PUBLIC[which].0, NOT_PUBLIC[which].1] {
                let edge: Ipv4Addr = edge.parse().unwrap();
                let beside = (i64::from(edge.to_bits()) + step).clamp(0, i64::from(u32::MAX));
                address(&u32::try_from(beside).unwrap().to_be_bytes());
            }
        }

        #[test]
        fn no_url_passes_that_the_judge_refuses(
            text in "(https?|HTTPS)://[0-9a-fx.:\\[\\]%@①。]{0,24}(:[0-9]{1,5})?[/?#]?[a-z]{0,4}",
        ) {
            url(&text);
        }

        #[test]
        fn a_list_permits_what_it_names(
            text in "([0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}(/[0-9]{1,2})?|[a-f0-9:]{2,12}(/[0-9]{1,3})?|[a-zA-Z.-]{1,12})(\n[a-z]{1,3}\\.[a-z]{1,3})?",
        ) {
            allowed(&text);
        }
    }
}
