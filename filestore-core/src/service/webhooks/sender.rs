//! Sends events to endpoints.
//!
//! # Purpose
//! The HTTP client of webhooks, and nothing of a provider's. An endpoint's owner chooses the URL, so the client
//! trusts no part of it: no redirect is followed, no proxy of the system and no cookie is used, and of a reply only
//! the status and `Retry-After` are read. The time of a delivery, and what is read of a reply, are bounded: the HTTP
//! library holds at most 408 KiB of a head, with 100 fields. It offers no smaller limit.
//!
//! # Addresses
//! The client looks up names through [`Resolver`], which checks every address and hands out the checked ones. So the
//! address that was checked is the one that is connected to. The client does not look up an address that the URL
//! contains itself. Such an address is checked before each request.

use std::error::Error as StdError;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::domain::config::WebhookConfig;
use crate::domain::error::{Error, Result};
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::{
    AllowedHosts, Answer, DeliveryFault, UrlRules, WebhookSecrets, WebhookUrl, retry_after,
};
use crate::storage::tls;
use crate::tasks;

/// The time limit for a new connection.
const CONNECT: Duration = Duration::from_secs(5);

/// The time for which an idle connection stays open. After that, the name is looked up and checked again.
const IDLE: Duration = Duration::from_secs(30);

/// The number of idle connections to one host.
const IDLE_PER_HOST: usize = 8;

/// The number of bytes of a reply that are read, so that the connection can be used again.
const MOST_REPLY_BYTES: usize = 4 << 10;

/// The time limit for reading them. The status is known before.
const REPLY: Duration = Duration::from_secs(1);

/// The maximum number of look-ups at the same time. A look-up occupies a thread until the system gives up.
const LOOK_UPS: usize = 64;

const USER_AGENT: &str = concat!("filestore-webhook/", env!("CARGO_PKG_VERSION"));

/// Looks up the addresses of a host. Tests replace the system's look-up.
pub(crate) trait Lookup: Send + Sync + 'static {
    /// Returns the addresses of a name.
    fn lookup(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>>;
}

/// The look-up of the operating system.
pub(crate) struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// One attempt of a delivery.
pub(crate) struct Delivery<'d> {
    pub(crate) url: &'d WebhookUrl,
    pub(crate) secrets: &'d WebhookSecrets,
    /// The id of the event.
    pub(crate) id: String,
    pub(crate) body: Bytes,
    /// The time of the attempt.
    pub(crate) at: Timestamp,
}

/// Sends deliveries under one configuration.
pub(crate) struct Sender {
    client: reqwest::Client,
    rules: UrlRules,
    /// The configuration from which it was made.
    config: WebhookConfig,
}

impl Sender {
    /// Makes the client. Sends nothing.
    pub(crate) fn new(config: &WebhookConfig, lookup: Arc<dyn Lookup>) -> Result<Self> {
        let rules = config.rules();
        let allowed = rules.allowed.clone();
        let resolver = Resolver { lookup, allowed, look_ups: Arc::new(Semaphore::new(LOOK_UPS)) };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::client_config()?)
            .dns_resolver(Arc::new(resolver))
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .http1_only()
            .connect_timeout(CONNECT.min(config.timeout))
            .timeout(config.timeout)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .user_agent(USER_AGENT)
            .build();
        let client = client.map_err(|error| Error::internal("preparing webhooks", error))?;
        Ok(Self { client, rules, config: config.clone() })
    }

    /// Tells whether the sender was made from this configuration.
    pub(crate) fn is_of(&self, config: &WebhookConfig) -> bool {
        self.config == *config
    }

    /// Signs and sends one attempt, and waits for the answer.
    pub(crate) async fn send(&self, delivery: &Delivery<'_>) -> Answer {
        if delivery.url.check(&self.rules).is_err() {
            let is_address = delivery.url.address().is_some();
            return Answer::Fault(if is_address {
                DeliveryFault::AddressRefused
            } else {
                DeliveryFault::UrlRefused
            });
        }
        let signatures = delivery.secrets.signatures(&delivery.id, delivery.at, &delivery.body);
        let sending = self
            .client
            .post(delivery.url.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &delivery.id)
            .header("webhook-timestamp", delivery.at.as_secs())
            .header("webhook-signature", signatures)
            .body(delivery.body.clone())
            .send();
        match sending.await {
            Ok(reply) => {
                let status = reply.status().as_u16();
                let asked = reply.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                let pause = asked.and_then(|text| retry_after(text, delivery.at));
                read_a_little(reply).await;
                Answer::Status(status, pause)
            }
            Err(error) => Answer::Fault(fault_of(&error)),
        }
    }
}

/// Reads the beginning of a reply. If nothing follows it, the connection can be used again.
async fn read_a_little(mut reply: reqwest::Response) {
    let reading = async {
        let mut left = MOST_REPLY_BYTES;
        while let Ok(Some(chunk)) = reply.chunk().await {
            let Some(still) = left.checked_sub(chunk.len()) else { return };
            left = still;
        }
    };
    // The answer is known, whatever becomes of the rest.
    let _ = timeout(REPLY, reading).await;
}

fn fault_of(error: &reqwest::Error) -> DeliveryFault {
    if let Some(refused) = cause::<Unresolved>(error) {
        return refused.0;
    }
    if error.is_timeout() {
        return DeliveryFault::Timeout;
    }
    if error.is_connect() { DeliveryFault::Connect } else { DeliveryFault::Broken }
}

/// Finds a cause of an error by its type.
fn cause<'e, E: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e E> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        current = error.source();
    }
    None
}

/// Looks up names, and hands out addresses only if the configuration permits all addresses of a name.
struct Resolver {
    lookup: Arc<dyn Lookup>,
    allowed: AllowedHosts,
    look_ups: Arc<Semaphore>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let (allowed, look_ups) = (self.allowed.clone(), Arc::clone(&self.look_ups));
        let lookup = self.lookup.lookup(name.clone());
        Box::pin(async move {
            let permit =
                look_ups.acquire_owned().await.map_err(|_| Unresolved(DeliveryFault::Dns))?;
            // In a task of its own: the permit lasts as long as the thread, even if nobody waits any more.
            let lookup = tasks::spawn(async move {
                let found = lookup.await;
                drop(permit);
                found
            });
            let found = lookup.await.ok().and_then(std::io::Result::ok).unwrap_or_default();
            if found.is_empty() {
                return Err(Unresolved(DeliveryFault::Dns).into());
            }
            if !found.iter().all(|address| allowed.permits(Some(&name), *address)) {
                return Err(Unresolved(DeliveryFault::AddressRefused).into());
            }
            let addresses: Addrs = Box::new(found.into_iter().map(|address| (address, 0).into()));
            Ok(addresses)
        })
    }
}

/// A name without addresses that can be called.
#[derive(Debug)]
struct Unresolved(DeliveryFault);

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the host of a webhook has no address to call: {}", self.0)
    }
}

impl StdError for Unresolved {}
