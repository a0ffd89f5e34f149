//! Endpoints of a simulation, in place of the network.

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::Delivery;
use crate::domain::webhook::{Answer, DeliveryFault};

/// A delivery that arrives at a simulated endpoint.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The URL of the webhook.
    pub url: String,
    /// The id of the event.
    pub id: String,
    /// The body.
    pub body: Bytes,
}

/// Endpoints that get the deliveries of a store, whatever the URL.
pub trait Endpoints: Send + Sync + 'static {
    /// Answers with a status. `None`: the connection breaks. Dropping the future means that nobody waits for the answer
    /// any more.
    fn receive(&self, arrival: Arrival) -> BoxFuture<'static, Option<u16>>;
}

/// Delivers an event, and waits for the answer.
pub(super) async fn deliver(endpoints: &dyn Endpoints, delivery: &Delivery<'_>) -> Answer {
    let arrival = Arrival {
        url: delivery.url.as_str().to_owned(),
        id: delivery.id.clone(),
        body: delivery.body.clone(),
    };
    match endpoints.receive(arrival).await {
        Some(status) => Answer::Status(status, None),
        None => Answer::Fault(DeliveryFault::Broken),
    }
}
