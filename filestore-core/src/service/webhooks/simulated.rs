//! Endpoints of a simulation, in place of the network.

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::Delivery;
use crate::domain::webhook::{Answer, DeliveryFault};

/// A delivery that arrives at a simulated endpoint.
#[derive(Debug, Clone)]
pub struct Posted {
    /// The URL of the webhook.
    pub url: String,
    /// The id of the event.
    pub id: String,
    /// The body.
    pub body: Bytes,
}

/// Endpoints that get the deliveries of a store, whatever the URL.
pub trait Endpoints: Send + Sync + 'static {
    /// Answers with a status. `None`: the connection breaks. If the lane no longer waits for the answer, it
    /// drops the future.
    fn receive(&self, posted: Posted) -> BoxFuture<'static, Option<u16>>;
}

/// Delivers an event, and waits for the answer.
pub(super) async fn deliver(endpoints: &dyn Endpoints, delivery: &Delivery<'_>) -> Answer {
    let posted = Posted {
        url: delivery.url.as_str().to_owned(),
        id: delivery.id.clone(),
        body: delivery.body.clone(),
    };
    match endpoints.receive(posted).await {
        Some(status) => Answer::Status(status, None),
        None => Answer::Fault(DeliveryFault::Broken),
    }
}
