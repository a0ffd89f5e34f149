//! Limits the number of connections from one address.
//!
//! # Purpose
//! A single client cannot use all connections. A client has an IPv4 address, or a /64 network of IPv6
//! addresses, which a household or a server gets. Trusted proxies connect for many clients, and are not
//! counted.
//!
//! # Locking
//! One lock. It is held for a look-up when a connection begins and when it ends.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use super::socket::Peer;
use crate::http::forwarded::{IpRange, subscriber};

/// The connection counts by address. All listeners in a server share them.
#[derive(Debug)]
pub struct Shares {
    limit: usize,
    uncounted: Vec<IpRange>,
    held: Mutex<HashMap<IpAddr, usize>>,
}

impl Shares {
    /// Allows `limit` connections for each address, and any number for addresses in `uncounted`.
    pub fn new(limit: usize, uncounted: Vec<IpRange>) -> Arc<Self> {
        Arc::new(Self { limit, uncounted, held: Mutex::default() })
    }

    /// Takes a share for a connection. `None` if the peer's address has reached its limit. Peers on a Unix
    /// socket are not counted.
    pub(super) fn take(self: &Arc<Self>, peer: Peer) -> Option<Share> {
        let Peer::Tcp(address) = peer else { return Some(Share::uncounted()) };
        let address = address.ip().to_canonical();
        if self.uncounted.iter().any(|range| range.contains(address)) {
            return Some(Share::uncounted());
        }

        let holder = subscriber(address);
        let mut held = self.held.lock();
        let count = held.get(&holder).copied().unwrap_or_default();
        if count >= self.limit {
            return None;
        }
        held.insert(holder, count + 1);
        Some(Share(Some((Arc::clone(self), holder))))
    }
}

/// The share of one connection. Dropping it returns the share.
#[derive(Debug)]
pub(super) struct Share(Option<(Arc<Shares>, IpAddr)>);

impl Share {
    fn uncounted() -> Self {
        Self(None)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some((shares, holder)) = self.0.take() else { return };
        let mut held = shares.held.lock();
        if let Some(count) = held.get_mut(&holder) {
            *count -= 1;
            if *count == 0 {
                held.remove(&holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn peer(address: &str) -> Peer {
        Peer::Tcp(SocketAddr::new(address.parse().unwrap(), 1))
    }

    #[test]
    fn an_address_gets_its_share_and_no_more_until_one_is_given_back() {
        let shares = Shares::new(2, Vec::new());
        let one = shares.take(peer("10.0.0.1")).unwrap();
        let _two = shares.take(peer("::ffff:10.0.0.1")).unwrap();
        assert!(shares.take(peer("10.0.0.1")).is_none());
        let other = shares.take(peer("10.0.0.2")).unwrap();

        drop((one, other));
        let _again = shares.take(peer("10.0.0.1")).unwrap();
        assert_eq!(shares.held.lock().len(), 1, "an address without connections is forgotten");
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let shares = Shares::new(1, Vec::new());
        let _held = shares.take(peer("2001:db8:0:1::1")).unwrap();
        assert!(shares.take(peer("2001:db8:0:1:ffff:ffff:ffff:ffff")).is_none());
        assert!(shares.take(peer("2001:db8:0:2::1")).is_some());
    }

    #[test]
    fn trusted_proxies_and_local_sockets_are_not_counted() {
        let shares = Shares::new(0, vec!["10.0.0.0/8".parse().unwrap()]);
        let held: Vec<_> = (0..9).map(|_| shares.take(peer("10.1.2.3")).unwrap()).collect();
        assert!(shares.take(Peer::Unix).is_some() && shares.take(peer("11.0.0.1")).is_none());
        drop(held);
        assert!(shares.held.lock().is_empty());
    }
}
