//! The log of events: what happened to files.

mod blocks;
mod follow;

use std::time::Duration;

use filestore_core::api::{Event, EventPage, EventQuery};
use futures_util::Stream;
use reqwest::{Method, RequestBuilder};

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The log of events, returned by [`Client::events`].
///
/// An event is thin: it has ids, and no name or metadata. Ask for the record if you need more.
///
/// For example, react to new files, and continue after a restart of your program:
///
/// ```no_run
/// use filestore_client::EventQuery;
/// use futures_util::TryStreamExt;
///
/// # async fn run(client: filestore_client::Client, saved: String) -> filestore_client::Result<()> {
/// let query = EventQuery::new().after(saved).types(["file.ready", "file.replaced"]);
/// let mut events = client.events().follow(query);
/// while let Some(event) = events.try_next().await? {
///     println!("{} {}", event.kind, event.data.file_id.unwrap_or_default());
///     // Save `event.id` here, together with the effect of the event.
/// }
/// # Ok(())
/// # }
/// ```
///
/// If the log has forgotten the event after which you want to continue, the call fails with the code
/// [`EventsGone`](crate::ErrorCode::EventsGone). Then read the records anew, and follow from `end`.
#[derive(Debug, Clone, Copy)]
pub struct Events<'a> {
    client: &'a Client,
}

impl Client {
    /// Returns the calls for the log of events.
    pub fn events(&self) -> Events<'_> {
        Events { client: self }
    }
}

impl Events<'_> {
    /// Returns one page of events, by default the oldest that are kept.
    ///
    /// To read on, pass [`EventPage::next`] as [`EventQuery::after`]. With [`EventQuery::wait`], the server waits for
    /// the first event.
    pub async fn page(&self, query: &EventQuery) -> Result<EventPage> {
        let wait = Duration::from_secs(query.wait.unwrap_or_default().into());
        let call = Call::idempotent(request(self.client, query));
        self.client.json(call.and_wait(wait)).await
    }

    /// Follows the log: returns the events after [`EventQuery::after`], in order, and then each new event.
    ///
    /// If the connection breaks or the server restarts, the stream connects again and continues after the last
    /// event, for as long as you poll it. Exception: with [`RetryPolicy::none`](crate::RetryPolicy::none), the first
    /// failure ends the stream. Each other failure ends it as well, for example a revoked key.
    pub fn follow(
        &self,
        query: EventQuery,
    ) -> impl Stream<Item = Result<Event>> + Send + Unpin + use<> {
        follow::follow(self.client.clone(), query)
    }
}

/// Starts a request for events.
fn request(client: &Client, query: &EventQuery) -> RequestBuilder {
    client.request(Method::GET, &["events"]).query(query)
}
