//! Rate limits: for requests in a time window, and for concurrent requests.
//!
//! # Purpose
//! Each key has a maximum number of requests in a window, and of concurrent requests. Each address has such
//! limits too, for requests without a valid key. All limits are off by default. Replies report the remaining
//! quota in the headers of draft-ietf-httpapi-ratelimit-headers-10.
//!
//! # Method
//! Each key and each address has a bucket of permits. The size of a bucket is the quota, and it refills
//! evenly over the window. A client can use a whole quota at once, but never more than two quotas in one
//! window. An IPv6 address counts by its /64, the network of one subscriber.
//!
//! # Several servers
//! Servers of one store exchange their clients' requests once a second, and subtract remote requests from
//! their own buckets (`shared_limits`). A bucket can go down to minus one quota. A client that uses a quota
//! on each server within a second therefore gets less afterwards. Each server counts concurrent requests
//! separately.
//!
//! # Locking
//! One lock protects keys, and one protects addresses. Each is held for a look-up. With several servers, it
//! is also held once a second for a walk over all buckets. The number of buckets is limited. Full buckets are
//! removed at most once a second. If there are too many other buckets, new clients share one.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use filestore_core::keys::KeyId;
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;

use crate::http::forwarded::subscriber;
use crate::listen::{Endless, Held};

/// The maximum number of buckets of one kind.
const MOST_BUCKETS: usize = 100_000;

/// The maximum number of clients in a report to other servers.
const MOST_TOLD: usize = 2_000;

/// The maximum rounding error of sums of fractions. The error is smaller than any visible effect.
const ROUNDING: f64 = 1e-6;

/// The minimum time between two searches for full buckets.
const CLEARING: Duration = Duration::from_secs(1);

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Rate limits. `Default` has no limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimits {
    /// The time in which an empty bucket becomes full.
    pub window: Duration,
    /// The limits for each key.
    pub key: Limit,
    /// The limits for each address for requests without a valid key.
    pub address: Limit,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self { window: Duration::from_mins(1), key: Limit::default(), address: Limit::default() }
    }
}

/// Limits for one kind of client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// The maximum number of requests in a window.
    pub requests: Option<u32>,
    /// The maximum number of concurrent requests.
    pub in_flight: Option<u32>,
}

impl Limit {
    const fn is_on(self) -> bool {
        self.requests.is_some() || self.in_flight.is_some()
    }
}

/// A client, as rate limits distinguish clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// The holder of a key.
    Key(KeyId),
    /// All clients at an address.
    Address(IpAddr),
}

/// The current limits. A reload changes them.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// False while there are no limits. Requests then take no lock.
    is_on: AtomicBool,
    now: RwLock<(RateLimits, Option<Arc<Limiter>>)>,
}

impl Limits {
    /// Sets the limits. Unchanged limits keep their counts.
    pub(crate) fn set(&self, limits: &RateLimits) {
        let mut now = self.now.write();
        if now.0 != *limits {
            *now = (*limits, Limiter::of(limits).map(Arc::new));
            self.is_on.store(now.1.is_some(), Ordering::Release);
        }
    }

    /// Returns true if requests in a window are limited.
    pub(crate) fn count_requests(&self) -> bool {
        let (limits, _) = &*self.now.read();
        limits.key.requests.is_some() || limits.address.requests.is_some()
    }

    /// Returns and resets the requests of the most active clients since the last call. A client's name is the
    /// same on every server.
    pub(crate) fn take_uses(&self) -> Vec<(String, u64)> {
        let Some(limiter) = self.now.read().1.clone() else { return Vec::new() };
        let keys = limiter.keys.take_uses().into_iter();
        let addresses = limiter.addresses.take_uses().into_iter();
        let mut uses: Vec<_> = keys
            .map(|(id, uses)| (format!("key {id}"), uses))
            .chain(addresses.map(|(address, uses)| (format!("address {address}"), uses)))
            .collect();
        uses.sort_unstable_by_key(|(_, uses)| std::cmp::Reverse(*uses));
        uses.truncate(MOST_TOLD);
        uses
    }

    /// Subtracts remote requests of clients from their buckets.
    pub(crate) fn note_uses(&self, uses: &[(String, u64)]) {
        let Some(limiter) = self.now.read().1.clone() else { return };
        for (name, uses) in uses {
            match name.split_once(' ') {
                Some(("key", id)) => {
                    let Ok(id) = id.parse() else { continue };
                    limiter.keys.note_uses(id, *uses);
                }
                Some(("address", address)) => {
                    let Ok(address) = address.parse() else { continue };
                    limiter.addresses.note_uses(address, *uses);
                }
                // Of a later version.
                _ => {}
            }
        }
    }

    /// Admits a request of the client, or refuses it.
    pub(crate) fn enter(&self, client: Client) -> Result<Admitted, Refused> {
        if !self.is_on.load(Ordering::Acquire) {
            return Ok(Admitted::default());
        }
        let limiter = self.now.read().1.clone();
        limiter.map_or_else(|| Ok(Admitted::default()), |limiter| limiter.enter(client))
    }
}

/// The buckets of all clients.
#[derive(Debug)]
struct Limiter {
    keys: Arc<Buckets<KeyId>>,
    addresses: Arc<Buckets<IpAddr>>,
}

/// The admission of a request within its limits. If concurrent requests are limited, the request counts until
/// this value is dropped.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    rate: Option<Rate>,
    place: Option<Held>,
}

impl Admitted {
    /// Adds the remaining quota to the reply, and counts the request until the reply is sent. An endless reply counts
    /// only until its head, because it has limits of its own.
    pub(crate) fn mark<B>(self, mut response: http::Response<B>) -> http::Response<B> {
        if let Some(rate) = self.rate {
            rate.add_headers(response.headers_mut());
        }
        if let Some(place) = self.place
            && response.extensions().get::<Endless>().is_none()
        {
            response.extensions_mut().insert(place);
        }
        response
    }
}

/// The refusal of a request that exceeds its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The remaining quota. `None` if there are too many concurrent requests.
    pub(crate) rate: Option<Rate>,
    /// The number of seconds before a retry.
    pub(crate) retry_after_secs: u64,
}

impl Refused {
    /// Returns a text that names the exceeded limit.
    pub(crate) fn detail(&self) -> String {
        match self.rate {
            Some(rate) => format!(
                "too many requests: {} in {} s for each {}",
                rate.quota, rate.window_secs, rate.policy
            ),
            None => "too many requests are under way".to_owned(),
        }
    }
}

/// The state of a quota, for a reply's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    policy: &'static str,
    quota: u32,
    window_secs: u64,
    remaining: u32,
    reset_secs: u64,
}

impl Rate {
    /// Adds the policy and the remaining quota.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) {
        let Self { policy, quota, window_secs, remaining, reset_secs } = self;
        let value = |text: String| HeaderValue::try_from(text).expect("it is ASCII");
        headers.insert(RATE_LIMIT_POLICY, value(format!("\"{policy}\";q={quota};w={window_secs}")));
        headers.insert(RATE_LIMIT, value(format!("\"{policy}\";r={remaining};t={reset_secs}")));
    }
}

impl Limiter {
    /// Creates the buckets for the limits. `None` if there are no limits.
    fn of(limits: &RateLimits) -> Option<Self> {
        let RateLimits { window, key, address } = *limits;
        (key.is_on() || address.is_on()).then(|| Self {
            keys: Arc::new(Buckets::new("key", key, window)),
            addresses: Arc::new(Buckets::new("address", address, window)),
        })
    }

    fn enter(&self, client: Client) -> Result<Admitted, Refused> {
        match client {
            Client::Key(id) => Buckets::enter(&self.keys, Some(id)),
            Client::Address(address) => Buckets::enter(&self.addresses, Some(subscriber(address))),
        }
    }
}

/// The buckets of one kind of clients.
#[derive(Debug)]
struct Buckets<K> {
    policy: &'static str,
    limit: Limit,
    window: Duration,
    buckets: Mutex<Shelf<K>>,
}

#[derive(Debug)]
struct Shelf<K> {
    /// The buckets by client. `None` is the shared bucket for new clients while there are too many.
    buckets: HashMap<Option<K>, Bucket>,
    cleared_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// The number of permits. The number is below zero after too many remote requests.
    permits: f64,
    /// The number of requests that were not reported to other servers yet.
    untold: u32,
    /// The time at which `permits` was computed.
    counted_at: Instant,
    in_flight: u32,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Buckets<K> {
    fn new(policy: &'static str, limit: Limit, window: Duration) -> Self {
        let shelf = Shelf { buckets: HashMap::new(), cleared_at: None };
        Self { policy, limit, window, buckets: Mutex::new(shelf) }
    }

    fn quota(&self) -> f64 {
        f64::from(self.limit.requests.unwrap_or(0))
    }

    /// Takes a permit, and a place among the concurrent requests.
    fn enter(this: &Arc<Self>, client: Option<K>) -> Result<Admitted, Refused> {
        if this.limit == Limit::default() {
            return Ok(Admitted { rate: None, place: None });
        }

        let now = Instant::now();
        let mut shelf = this.buckets.lock();
        let client = this.room_for(&mut shelf, client, now);
        let bucket = shelf.buckets.entry(client.clone()).or_insert_with(|| this.full(now));

        if this.limit.in_flight.is_some_and(|most| bucket.in_flight >= most) {
            return Err(Refused { rate: None, retry_after_secs: 1 });
        }
        let rate = this.take_permit(bucket, now)?;
        let has_places = this.limit.in_flight.is_some();
        bucket.in_flight += u32::from(has_places);
        drop(shelf);

        let place = has_places.then(|| Leave { buckets: Arc::clone(this), client });
        Ok(Admitted { rate, place: place.map(Held::new) })
    }

    fn take_permit(&self, bucket: &mut Bucket, now: Instant) -> Result<Option<Rate>, Refused> {
        if self.limit.requests.is_none() {
            return Ok(None);
        }

        self.refill(bucket, now);
        if bucket.permits + ROUNDING < 1.0 {
            let wait = (1.0 - bucket.permits) / self.quota() * self.window.as_secs_f64();
            let retry_after_secs = seconds(wait);
            let rate = Some(self.rate(bucket, retry_after_secs));
            return Err(Refused { rate, retry_after_secs });
        }

        bucket.permits = (bucket.permits - 1.0).max(0.0);
        bucket.untold = bucket.untold.saturating_add(1);
        let until_full = (self.quota() - bucket.permits) / self.quota();
        Ok(Some(self.rate(bucket, seconds(until_full * self.window.as_secs_f64()))))
    }

    fn refill(&self, bucket: &mut Bucket, now: Instant) {
        let passed = now.saturating_duration_since(bucket.counted_at).as_secs_f64();
        let gained = passed / self.window.as_secs_f64() * self.quota();
        bucket.permits = (bucket.permits + gained).min(self.quota());
        bucket.counted_at = now;
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "permits are between 0 and a quota of 32 bits"
    )]
    fn rate(&self, bucket: &Bucket, reset_secs: u64) -> Rate {
        Rate {
            policy: self.policy,
            quota: self.limit.requests.unwrap_or(0),
            window_secs: self.window.as_secs(),
            remaining: (bucket.permits + ROUNDING) as u32,
            reset_secs,
        }
    }

    fn full(&self, now: Instant) -> Bucket {
        Bucket { permits: self.quota(), untold: 0, counted_at: now, in_flight: 0 }
    }

    /// Returns and resets the requests of each client since the last call. Clients in the shared bucket are
    /// not reported.
    fn take_uses(&self) -> Vec<(K, u64)> {
        let mut uses = Vec::new();
        for (client, bucket) in &mut self.buckets.lock().buckets {
            let untold = std::mem::take(&mut bucket.untold);
            if let Some(client) = client.as_ref().filter(|_| untold > 0) {
                uses.push((client.clone(), u64::from(untold)));
            }
        }
        uses
    }

    /// Subtracts remote requests of a client from its bucket, down to minus one quota.
    fn note_uses(&self, client: K, uses: u64) {
        if self.limit.requests.is_none() {
            return;
        }
        let now = Instant::now();
        let mut shelf = self.buckets.lock();
        // Where there is no room, many clients share a bucket: none of them pays for one alone.
        let Some(client) = self.room_for(&mut shelf, Some(client), now) else { return };
        let bucket = shelf.buckets.entry(Some(client)).or_insert_with(|| self.full(now));
        self.refill(bucket, now);
        let uses = f64::from(u32::try_from(uses).unwrap_or(u32::MAX));
        bucket.permits = (bucket.permits - uses).max(-self.quota());
    }

    /// Returns the client if there is space for its bucket. Otherwise returns `None`, the shared bucket.
    fn room_for(&self, shelf: &mut Shelf<K>, client: Option<K>, now: Instant) -> Option<K> {
        if shelf.buckets.len() < MOST_BUCKETS || shelf.buckets.contains_key(&client) {
            return client;
        }

        let cleared = shelf.cleared_at.map(|at| now.saturating_duration_since(at));
        if cleared.is_none_or(|ago| ago >= CLEARING) {
            shelf.cleared_at = Some(now);
            shelf.buckets.retain(|_, bucket| {
                self.refill(bucket, now);
                bucket.in_flight > 0 || bucket.permits < self.quota()
            });
        }
        client.filter(|_| shelf.buckets.len() < MOST_BUCKETS)
    }

    #[expect(
        clippy::ref_option,
        reason = "the map's own key, which need not be cloned to look it up"
    )]
    fn leave(&self, client: &Option<K>) {
        let mut shelf = self.buckets.lock();
        let Some(bucket) = shelf.buckets.get_mut(client) else { return };
        bucket.in_flight = bucket.in_flight.saturating_sub(1);

        // Without a quota, a bucket says nothing while no request is under way.
        if bucket.in_flight == 0 && self.limit.requests.is_none() {
            shelf.buckets.remove(client);
        }
    }
}

/// Rounds up to whole seconds, at least one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a wait is at most a window"
)]
fn seconds(wait: f64) -> u64 {
    (wait - ROUNDING).ceil().max(1.0) as u64
}

/// A place among the concurrent requests. Dropping it frees the place.
struct Leave<K: Clone + Eq + Hash + Send + Sync + 'static> {
    buckets: Arc<Buckets<K>>,
    client: Option<K>,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Drop for Leave<K> {
    fn drop(&mut self) {
        self.buckets.leave(&self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(requests: Option<u32>, in_flight: Option<u32>) -> Limiter {
        let limit = Limit { requests, in_flight };
        let limits = RateLimits { key: limit, address: limit, ..RateLimits::default() };
        Limiter::of(&limits).unwrap()
    }

    fn key(number: usize) -> Client {
        let text = format!("{number:026}");
        Client::Key(text.parse().unwrap())
    }

    fn address(text: &str) -> Client {
        Client::Address(text.parse().unwrap())
    }

    fn headers(rate: Rate) -> (String, String) {
        let mut headers = HeaderMap::new();
        rate.add_headers(&mut headers);
        let text = |name| headers[name].to_str().unwrap().to_owned();
        (text(RATE_LIMIT), text(RATE_LIMIT_POLICY))
    }

    #[tokio::test(start_paused = true)]
    async fn a_quota_is_a_burst_and_is_refilled_evenly() {
        let limiter = limiter(Some(3), None);
        for left in [2, 1, 0] {
            let rate = limiter.enter(address("10.0.0.1")).unwrap().rate.unwrap();
            assert_eq!(rate.remaining, left);
        }

        let refused = limiter.enter(address("10.0.0.1")).unwrap_err();
        assert_eq!(refused.retry_after_secs, 20);
        assert_eq!(
            headers(refused.rate.unwrap()),
            ("\"address\";r=0;t=20".to_owned(), "\"address\";q=3;w=60".to_owned())
        );
        assert!(limiter.enter(address("10.0.0.2")).is_ok(), "another address");
        assert!(limiter.enter(key(1)).is_ok(), "a key");

        tokio::time::advance(Duration::from_secs(19)).await;
        assert_eq!(limiter.enter(address("10.0.0.1")).unwrap_err().retry_after_secs, 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(limiter.enter(address("10.0.0.1")).is_ok());
        assert!(limiter.enter(address("10.0.0.1")).is_err());

        tokio::time::advance(Duration::from_hours(1)).await;
        let rate = limiter.enter(address("10.0.0.1")).unwrap().rate.unwrap();
        assert_eq!((rate.remaining, rate.reset_secs), (2, 20), "never more than the quota");
    }

    #[tokio::test]
    async fn a_place_is_free_again_when_its_request_ends() {
        let limiter = limiter(None, Some(2));
        let first = limiter.enter(key(1)).unwrap();
        let second = limiter.enter(key(1)).unwrap();
        let refused = limiter.enter(key(1)).unwrap_err();
        assert_eq!((refused.rate, refused.retry_after_secs), (None, 1));
        assert!(limiter.enter(key(2)).is_ok());

        let copy = second.place.clone();
        drop(second);
        assert!(limiter.enter(key(1)).is_err(), "a clone holds the place");
        drop(copy);
        assert!(limiter.enter(key(1)).is_ok());
        drop(first);
        assert!(limiter.keys.buckets.lock().buckets.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_request_takes_no_permit_and_no_place() {
        let limiter = limiter(Some(2), Some(1));
        let first = limiter.enter(address("10.0.0.1")).unwrap();
        assert!(limiter.enter(address("10.0.0.1")).is_err());
        drop(first);
        assert_eq!(limiter.enter(address("10.0.0.1")).unwrap().rate.unwrap().remaining, 0);
        assert!(limiter.enter(address("10.0.0.1")).is_err());
        tokio::time::advance(Duration::from_mins(1)).await;
        assert!(limiter.enter(address("10.0.0.1")).is_ok());
    }

    #[tokio::test]
    async fn addresses_of_one_subscriber_are_one_client() {
        let limiter = limiter(Some(1), None);
        assert!(limiter.enter(address("2001:db8:1:2::1")).is_ok());
        assert!(limiter.enter(address("2001:db8:1:2:ffff::9")).is_err());
        assert!(limiter.enter(address("2001:db8:1:3::1")).is_ok());
        assert!(limiter.enter(address("10.0.0.1")).is_ok());
        assert!(limiter.enter(address("::ffff:10.0.0.1")).is_err(), "the same IPv4 address");
    }

    #[tokio::test(start_paused = true)]
    async fn buckets_are_bounded_and_full_ones_make_room() {
        let limiter = limiter(Some(1), None);
        for number in 0..MOST_BUCKETS {
            assert!(limiter.enter(key(number)).is_ok());
        }
        assert!(limiter.enter(key(MOST_BUCKETS + 1)).is_ok(), "in the shared bucket");
        assert!(limiter.enter(key(MOST_BUCKETS + 2)).is_err());
        assert!(limiter.keys.buckets.lock().buckets.len() <= MOST_BUCKETS + 1);

        tokio::time::advance(Duration::from_mins(1)).await;
        assert!(limiter.enter(key(MOST_BUCKETS + 3)).is_ok());
        assert_eq!(limiter.keys.buckets.lock().buckets.len(), 1);
    }

    fn shared(requests: u32) -> Limits {
        let limit = Limit { requests: Some(requests), in_flight: None };
        let limits = Limits::default();
        limits.set(&RateLimits { key: limit, address: limit, ..RateLimits::default() });
        limits
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_used_elsewhere_is_taken_out_and_told_once() {
        let (one, other) = (shared(4), shared(4));
        for client in [key(1), key(1), key(1), address("2001:db8:1:2::9")] {
            assert!(one.enter(client).is_ok());
        }
        let told = one.take_uses();
        assert_eq!(told.len(), 2);
        assert_eq!(told[0], (format!("key {:026}", 1), 3), "the busiest first");
        assert_eq!(one.take_uses(), [], "once");

        other.note_uses(&told);
        assert_eq!(other.enter(key(1)).unwrap().rate.unwrap().remaining, 0);
        assert!(other.enter(key(1)).is_err());
        assert_eq!(other.enter(address("2001:db8:1:2::1")).unwrap().rate.unwrap().remaining, 2);
        assert_eq!(other.enter(key(2)).unwrap().rate.unwrap().remaining, 3);
        assert_eq!(other.take_uses().len(), 3, "what was heard is not told again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_owes_a_quota_at_the_most_and_waits_for_it() {
        let limits = shared(4);
        limits.note_uses(&[(format!("key {:026}", 1), 1_000_000)]);
        let refused = limits.enter(key(1)).unwrap_err();
        assert_eq!(refused.retry_after_secs, 75, "four permits owed, and one to be had");
        assert_eq!(refused.rate.unwrap().remaining, 0);

        tokio::time::advance(Duration::from_secs(75)).await;
        assert!(limits.enter(key(1)).is_ok());
        limits.note_uses(&[("of another version".to_owned(), 1), ("key none".to_owned(), 1)]);
    }

    #[test]
    fn without_limits_nothing_is_counted_and_limits_come_and_go() {
        let limits = Limits::default();
        assert!(limits.enter(key(1)).unwrap().rate.is_none());

        let mut wanted = RateLimits::default();
        wanted.key.requests = Some(1);
        limits.set(&wanted);
        assert!(limits.enter(key(1)).is_ok() && limits.enter(key(1)).is_err());
        limits.set(&wanted);
        assert!(limits.enter(key(1)).is_err(), "the same limits keep their counts");
        limits.set(&RateLimits::default());
        assert!(limits.enter(key(1)).is_ok());
    }
}
