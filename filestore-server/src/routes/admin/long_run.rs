//! Replies to work that takes long: the head goes out when the work has begun, the report when it is
//! done, and a line feed every now and then between them.
//!
//! White space before JSON is no part of it (RFC 8259 section 2). It keeps proxies from giving up, and
//! it finds out that the caller is gone: a socket that only reads cannot tell a caller that went away
//! from one that has nothing more to say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use filestore_core::worker::Progress;
use filestore_core::{Error, Result};
use futures_util::stream::{self, Stream};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinError, JoinHandle};
use tokio::time::{MissedTickBehavior, interval};
use warp::reply::Response;

use crate::reply::{self, Failure, RequestId};
use crate::request::call::Call;

/// How often a sign of life is sent.
const BEAT: Duration = Duration::from_secs(1);

/// Set once nobody waits for the work any more.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Whether the work should come to its end.
    pub(super) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What becomes of the work when the caller goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departure {
    /// It is told to stop, and goes on to where it can.
    Stop,
    /// It is broken off: it only reads.
    Abort,
}

/// Ends the work when it is dropped.
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

/// Tells when the work has begun: what is refused is refused before.
pub(super) struct Beginning(Mutex<Option<oneshot::Sender<()>>>);

impl Progress for Beginning {
    fn start(&self, _total: Option<u64>) {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(begun) = begun.take() {
            // Nobody listens once the caller is gone.
            let _ = begun.send(());
        }
    }

    fn advance(&self, _units: u64) {}
}

/// Runs `work` in a task of its own and replies with its report. What it refuses before it reports its
/// beginning has a status as usual; a failure after that cuts the reply.
pub(super) async fn reply_with<T, F>(
    call: &Call,
    departure: Departure,
    work: impl FnOnce(Stop, Arc<Beginning>) -> F,
) -> Result<Response, Failure>
where
    T: Serialize + Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let stop = Stop::default();
    let (begun, mut begins) = oneshot::channel();
    let mut running =
        tokio::spawn(work(stop.clone(), Arc::new(Beginning(Mutex::new(Some(begun))))));
    let waiting = Waiting { departure, stop, task: running.abort_handle() };
    tokio::select! {
        biased;
        ended = &mut running => return reply::ok(&joined(ended)?),
        Ok(()) = &mut begins => {}
    }
    Ok(reply::ok_streamed(report(call.id, running, waiting)))
}

/// Line feeds until the work is done, then its report.
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
