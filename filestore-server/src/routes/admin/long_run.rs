//! Replies for long work. The head is sent when the work is accepted, the report when the work is done, and a
//! line feed every second in between.
//!
//! White space before JSON is insignificant (RFC 8259 section 2). The line feeds keep proxies from giving up,
//! and reveal if the client has disconnected. A socket that only reads cannot distinguish a disconnected
//! client from a silent client.
//!
//! # Without the client
//!
//! A run with `detach` replies 202 when it is accepted, and goes on. At a stop, the server tells it to stop and waits for
//! it, as for the runs with a client.
//!
//! # Status
//!
//! Work reports [`Progress::accepted`] after all its checks have passed. An earlier failure is a refusal with
//! the usual status. After that, a 200 is already sent, and a failure cuts the reply. Work without this
//! report, because it is usually quick, counts as accepted after the first second.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use filestore_core::admin::Progress;
use filestore_core::{Error, Result};
use futures_util::stream::{self, Stream};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinError, JoinHandle};
use tokio::time::{MissedTickBehavior, interval, sleep};
use warp::reply::Response;

use crate::audit::Outcome;
use crate::reply::{self, Failure, RequestId, Unfinished};
use crate::request::call::Call;
use crate::routes::audit_line::put_on_record;

/// The time between two line feeds.
const BEAT: Duration = Duration::from_secs(1);

/// The status of a reply after its work was accepted.
const ACCEPTED: u16 = 200;

/// A flag that is set after the client disconnected.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Returns true if the work should stop.
    pub(super) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The effect on the work when the client disconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departure {
    /// The work is told to stop, and continues to the next point where it can.
    Stop,
    /// The work is cancelled at once, because it only reads, or a later run can continue.
    Abort,
    /// The work continues to its end, because it is usually quick and would leave claims or objects behind.
    Finish,
}

/// The client's interest in the work. Dropping it ends the work according to [`Departure`].
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
            Departure::Finish => {}
        }
    }
}

/// Reports that the work is accepted, and ignores all other progress.
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

/// Runs `work` in its own task, and replies with its report. A failure before [`Progress::accepted`] has the
/// usual status. A later failure cuts the reply.
pub(super) async fn reply_with<T, F>(
    call: &Arc<Call>,
    departure: Departure,
    work: impl FnOnce(Stop, Arc<Acceptance>) -> F,
) -> Result<Response, Failure>
where
    T: Serialize + Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    reply_reporting(call, departure, work, None).await
}

/// Does the same as [`reply_with`]. If the reply has begun, `failed` makes the report of a failure.
pub(super) async fn reply_reporting<T, F>(
    call: &Arc<Call>,
    departure: Departure,
    work: impl FnOnce(Stop, Arc<Acceptance>) -> F,
    failed: Option<fn(&Error) -> T>,
) -> Result<Response, Failure>
where
    T: Serialize + Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let stop = Stop::default();
    let (accepted, acceptance) = oneshot::channel();
    let acceptance = async {
        // Work that ends without it is joined first.
        if acceptance.await.is_err() {
            pending::<()>().await;
        }
    };

    let accepted = Arc::new(Acceptance(Mutex::new(Some(accepted))));
    let begun = Arc::new(AtomicBool::new(false));
    let running = spawn(call, &begun, work(stop.clone(), accepted));
    let waiting = Waiting { departure, stop, task: running.abort_handle() };
    first_of(call.id, running, waiting, acceptance, &begun, failed).await
}

/// Starts `work` in its own task, and replies 202 with `shown` when the work is accepted. The work continues without the
/// client, until its end or until the server stops. A failure before [`Progress::accepted`] has the usual status. The log
/// has a later failure.
pub(super) async fn reply_detached<T, F, S>(
    call: &Arc<Call>,
    work: impl FnOnce(Stop, Arc<Acceptance>) -> F,
    shown: impl Future<Output = Result<S>>,
) -> Result<Response, Failure>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
    S: Serialize,
{
    let (accepted, acceptance) = oneshot::channel();
    let accepted = Arc::new(Acceptance(Mutex::new(Some(accepted))));
    let begun = Arc::new(AtomicBool::new(false));
    let mut running = spawn(call, &begun, work(Stop::default(), accepted));
    tokio::select! {
        biased;
        ended = &mut running => {
            joined(ended)?;
            return reply::accepted(&shown.await?);
        }
        Ok(()) = acceptance => begun.store(true, Ordering::Release),
    }

    let id = call.id;
    call.app.detached.lock().spawn(async move {
        if let Err(error) = joined(running.await) {
            tracing::error!(request_id = %id, trace_id = id.trace_id(), error = %error.chain(), "a detached run failed");
        }
    });
    let mut response = reply::accepted(&shown.await?)?;
    response.extensions_mut().insert(Unfinished);
    Ok(response)
}

/// Runs `work` to its end in its own task, even if the client disconnects, and replies with its report. A
/// failure within the first second has the usual status. A later failure cuts the reply.
pub(super) async fn reply_once_done<T>(
    call: &Arc<Call>,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<Response, Failure>
where
    T: Serialize + Send + 'static,
{
    let begun = Arc::new(AtomicBool::new(false));
    let running = spawn(call, &begun, work);
    let task = running.abort_handle();
    let waiting = Waiting { departure: Departure::Finish, stop: Stop::default(), task };
    first_of(call.id, running, waiting, sleep(BEAT), &begun, None).await
}

/// Runs the work in a task. If its reply has `begun` before the end, the audit log records the end, even if
/// the client has disconnected.
fn spawn<T: Send + 'static>(
    call: &Arc<Call>,
    begun: &Arc<AtomicBool>,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> JoinHandle<Result<T>> {
    let (call, begun) = (Arc::clone(call), Arc::clone(begun));
    tokio::spawn(async move {
        let ended = work.await;
        if begun.load(Ordering::Acquire) {
            let outcome = if ended.is_ok() { Outcome::Done } else { Outcome::Failed };
            put_on_record(&call, Some(ACCEPTED), outcome);
        }
        ended
    })
}

/// Replies with the outcome of the work, or with a head and line feeds after the work is accepted.
async fn first_of<T: Serialize + Send + 'static>(
    id: RequestId,
    mut running: JoinHandle<Result<T>>,
    waiting: Waiting,
    acceptance: impl Future<Output = ()>,
    begun: &AtomicBool,
    failed: Option<fn(&Error) -> T>,
) -> Result<Response, Failure> {
    tokio::select! {
        biased;
        ended = &mut running => return reply::ok(&joined(ended)?),
        () = acceptance => begun.store(true, Ordering::Release),
    }
    Ok(reply::ok_streamed(report(id, running, waiting, failed)))
}

/// Streams line feeds until the work is done, then the report.
fn report<T: Serialize + Send + 'static>(
    id: RequestId,
    running: JoinHandle<Result<T>>,
    waiting: Waiting,
    failed: Option<fn(&Error) -> T>,
) -> impl Stream<Item = Result<Bytes, Error>> + Send + Sync + 'static {
    let mut beats = interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);

    stream::unfold(Some((running, beats, waiting)), move |state| async move {
        let (mut running, mut beats, waiting) = state?;
        tokio::select! {
            biased;
            ended = &mut running => {
                let ended = match (joined(ended), failed) {
                    (Err(error), Some(failed)) => Ok(failed(&error)),
                    (ended, _) => ended,
                };
                let encoded = ended.and_then(|report| {
                    serde_json::to_vec(&report).map_err(|e| Error::internal("encoding a reply", e))
                });
                if let Err(error) = &encoded {
                    tracing::error!(request_id = %id, trace_id = id.trace_id(), error = %error.chain(), "a reply was cut");
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

#[cfg(test)]
mod tests {
    use filestore_core::ErrorKind;
    use http_body_util::BodyExt as _;

    use super::*;

    /// Replies with the outcome of `work`, as a request to a route without acceptance does.
    async fn reply_to(
        work: impl Future<Output = Result<u32>> + Send + 'static,
    ) -> Result<Response, Failure> {
        let running = tokio::spawn(work);
        let task = running.abort_handle();
        let waiting = Waiting { departure: Departure::Finish, stop: Stop::default(), task };
        let begun = AtomicBool::default();
        first_of(RequestId::fresh(), running, waiting, sleep(BEAT), &begun, None).await
    }

    #[tokio::test(start_paused = true)]
    async fn slow_work_is_heard_of_before_its_report() {
        let reply = reply_to(async {
            sleep(BEAT * 90).await;
            Ok(7)
        });
        let body = reply.await.unwrap().into_body().collect().await.unwrap().to_bytes();
        assert!(body.starts_with(b"\n\n") && body.ends_with(b"\n7"), "{body:?}");
        assert_eq!(serde_json::from_slice::<u32>(&body).unwrap(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn quick_work_has_a_status_of_its_own() {
        let body = reply_to(async { Ok(7) }).await.unwrap().into_body().collect().await;
        assert_eq!(body.unwrap().to_bytes(), "7");

        let refused = reply_to(async { Err(Error::new(ErrorKind::NoActiveBinding, "none")) });
        assert!(matches!(refused.await, Err(Failure::Core(_))), "a refusal keeps its status");
    }
}
