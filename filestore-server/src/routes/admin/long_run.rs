//! Replies to work that takes long: the head goes out when the work is accepted, the report when the
//! work is done, and a line feed every second between them.
//!
//! White space before JSON is insignificant (RFC 8259 section 2). The line feeds keep proxies from
//! giving up, and they reveal that the client is gone: a socket that only reads cannot tell a client
//! that disconnected from a client that has nothing more to send.
//!
//! # Status
//!
//! Work reports [`Progress::accepted`] once all its checks have passed. A failure before is a refusal
//! with a status as usual. After it, the head of a 200 is out, and a failure cuts the reply.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use filestore_core::{Error, Progress, Result};
use futures_util::stream::{self, Stream};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinError, JoinHandle};
use tokio::time::{MissedTickBehavior, interval};
use warp::reply::Response;

use crate::reply::{self, Failure, RequestId};
use crate::request::call::Call;

/// The time between two line feeds.
const BEAT: Duration = Duration::from_secs(1);

/// A flag that is set once the client is gone.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Tests whether the work should stop.
    pub(super) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The fate of the work when the client disconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departure {
    /// The work is told to stop, and goes on to the next point where it can.
    Stop,
    /// The work is cancelled at once, because it only reads.
    Abort,
}

/// The client's interest in the work. Dropping it ends the work as [`Departure`] says.
struct Waiting {
    departure: Departure,
    stop: Stop,
    task: AbortHandle,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        match self.departure {
            Departure::Stop => self.stop.0.store(true, Ordering::Relaxed),
            Departure::Abort => self.task.abort(),
        }
    }
}

/// Announces that the work is accepted, and ignores all other progress.
pub(super) struct Acceptance(Mutex<Option<oneshot::Sender<()>>>);

impl Progress for Acceptance {
    fn accepted(&self) {
        let mut sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = sender.take() {
            // The receiver is gone if the client is.
            let _ = sender.send(());
        }
    }

    fn start(&self, _total: Option<u64>) {}

    fn advance(&self, _units: u64) {}
}

/// Runs `work` in a task of its own and replies with its report. A failure before
/// [`Progress::accepted`] has a status as usual; a failure after it cuts the reply.
pub(super) async fn reply_with<T, F>(
    call: &Call,
    departure: Departure,
    work: impl FnOnce(Stop, Arc<Acceptance>) -> F,
) -> Result<Response, Failure>
where
    T: Serialize + Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let stop = Stop::default();
    let (accepted, mut acceptance) = oneshot::channel();
    let mut running =
        tokio::spawn(work(stop.clone(), Arc::new(Acceptance(Mutex::new(Some(accepted))))));
    let waiting = Waiting { departure, stop, task: running.abort_handle() };

    tokio::select! {
        biased;
        ended = &mut running => return reply::ok(&joined(ended)?),
        Ok(()) = &mut acceptance => {}
    }

    Ok(reply::ok_streamed(report(call.id, running, waiting)))
}

/// Streams line feeds until the work is done, then the report.
fn report<T: Serialize + Send + 'static>(
    id: RequestId,
    running: JoinHandle<Result<T>>,
    waiting: Waiting,
) -> impl Stream<Item = Result<Bytes, Error>> + Send + Sync + 'static {
    let mut beats = interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);

    stream::unfold(Some((running, beats, waiting)), move |state| async move {
        let (mut running, mut beats, waiting) = state?;
        tokio::select! {
            biased;
            ended = &mut running => {
                let encoded = joined(ended).and_then(|report| {
                    serde_json::to_vec(&report).map_err(|e| Error::internal("encoding a reply", e))
                });
                if let Err(error) = &encoded {
                    tracing::error!(request_id = %id, error = %error.chain(), "a reply was cut");
                }
                Some((encoded.map(Bytes::from), None))
            }
            _ = beats.tick() => {
                Some((Ok(Bytes::from_static(b"\n")), Some((running, beats, waiting))))
            }
        }
    })
}

fn joined<T>(ended: Result<Result<T>, JoinError>) -> Result<T> {
    ended.map_err(|e| Error::internal("running background work", e))?
}
