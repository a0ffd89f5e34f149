//! Hosts and ports in requests and origins.

use std::net::IpAddr;

/// Returns the host of `host:port` or `[address]:port`, without brackets and without a trailing dot.
pub(crate) fn host_of(authority: &str) -> &str {
    if let Some((address, _)) = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    let host = authority.split_once(':').map_or(authority, |(host, _)| host);
    host.strip_suffix('.').unwrap_or(host)
}

/// Removes the scheme's default port.
pub(crate) fn without_port<'a>(authority: &'a str, scheme: &str) -> &'a str {
    let port = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
    authority.strip_suffix(port).unwrap_or(authority)
}

pub(crate) fn address_of(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// Returns true if a host, with or without brackets, always means the local machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    address_of(host)
        .map_or_else(|| host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_taken_from_an_authority() {
        for (authority, host) in [
            ("localhost:8080", "localhost"),
            ("localhost", "localhost"),
            ("localhost.:8080", "localhost"),
            ("[::1]:8080", "::1"),
            ("[::1]", "::1"),
            ("localhost@evil.example", "localhost@evil.example"),
            ("", ""),
        ] {
            assert_eq!(host_of(authority), host);
        }
    }
}
