//! Follows the log over one connection after the other.

use std::collections::VecDeque;
use std::time::Duration;

use filestore_core::api::{Event, EventQuery};
use futures_util::{Stream, StreamExt, stream};
use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use tokio::time::{sleep, timeout};

use super::blocks::{Block, Blocks};
use super::request;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::transport::reply::{header, silent};

const EVENT_STREAM: &str = "text/event-stream";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The shortest silence after which a connection counts as broken. The server sends a comment every 15 s.
const LEAST_SILENCE: Duration = Duration::from_secs(45);

/// The pause before the client connects again, if the server does not name one.
const PAUSE_MS: u64 = 2000;

/// The longest pause that a server can ask for.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Follows the log from the query's place on.
pub(super) fn follow(
    client: Client,
    query: EventQuery,
) -> impl Stream<Item = Result<Event>> + Send + Unpin + use<> {
    let following =
        Following { client, query, last_id: None, open: None, ready: VecDeque::new(), failures: 0 };
    let events = stream::unfold(Some(following), |following| async move {
        let mut following = following?;
        match following.next().await {
            Ok(event) => Some((Ok(event), Some(following))),
            Err(error) => Some((Err(error), None)),
        }
    });
    events.boxed()
}

struct Following {
    client: Client,
    query: EventQuery,
    /// The last id that the server has sent, also for events that the query leaves out.
    last_id: Option<String>,
    open: Option<Open>,
    ready: VecDeque<Event>,
    /// The number of failures since the last byte.
    failures: u32,
}

/// A connection.
struct Open {
    response: Response,
    blocks: Blocks,
}

/// The result of reading from a connection.
enum Read {
    Some,
    End,
}

impl Following {
    async fn next(&mut self) -> Result<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            match self.advance().await {
                Ok(Read::Some) => self.failures = 0,
                Ok(Read::End) => self.reconnect().await,
                Err(error) => self.pause(error).await?,
            }
        }
    }

    /// Connects, or reads the next piece.
    async fn advance(&mut self) -> Result<Read> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.connect().await?,
        };
        let settings = self.client.settings();
        let silence = settings.idle_timeout.max(LEAST_SILENCE);
        let piece = timeout(silence, open.response.chunk()).await;
        let piece = piece.map_err(|_| silent(&settings.peer, silence))?;
        let piece = piece.map_err(|error| Error::transport(&settings.peer, error))?;

        let Some(piece) = piece else {
            self.open = Some(open);
            return Ok(Read::End);
        };
        for block in open.blocks.read(&piece)? {
            self.take(block)?;
        }
        self.open = Some(open);
        Ok(Read::Some)
    }

    async fn connect(&self) -> Result<Open> {
        let mut request = request(&self.client, &self.query).header(ACCEPT, EVENT_STREAM);
        if let Some(id) = &self.last_id {
            request = request.header(LAST_EVENT_ID, id);
        }
        let limit = self.client.settings().idle_timeout;
        let response = self.client.exchange(request, Some(limit)).await?;
        let response = self.client.accept(response).await?;

        let kind = header(response.headers(), &CONTENT_TYPE).unwrap_or_default();
        if !kind.starts_with(EVENT_STREAM) {
            return Err(Error::protocol(format!("the reply is not an event stream: {kind}")));
        }
        Ok(Open { response, blocks: Blocks::new() })
    }

    fn take(&mut self, block: Block) -> Result<()> {
        let Block { id, data } = block;
        if let Some(data) = data {
            let event = serde_json::from_str(&data).map_err(|error| {
                Error::protocol(format!("cannot parse an event: {error}")).with_source(error)
            })?;
            self.ready.push_back(event);
        }
        self.last_id = id.or(self.last_id.take());
        Ok(())
    }

    /// Waits before the next connection, after the server has ended one in good order.
    async fn reconnect(&mut self) {
        let wanted = self.open.take().and_then(|open| open.blocks.retry_ms());
        let pause = Duration::from_millis(wanted.unwrap_or(PAUSE_MS)).min(LONGEST_PAUSE);
        // Jitter, because the server ended all its streams in the same moment.
        sleep(pause.mul_f64(fastrand::f64())).await;
    }

    /// Waits before the next attempt. Returns `error` if another attempt cannot help.
    async fn pause(&mut self, error: Error) -> Result<()> {
        let policy = self.client.settings().retry;
        if !error.is_transient() || policy.max_attempts <= 1 {
            return Err(error);
        }
        self.failures = self.failures.saturating_add(1);
        let wanted = error.retry_after().unwrap_or_default().min(policy.max_retry_after);
        let delay = wanted + policy.jitter(self.failures);
        tracing::debug!(failures = self.failures, ?delay, %error, "the event stream broke, connecting again");
        sleep(delay).await;
        Ok(())
    }
}
