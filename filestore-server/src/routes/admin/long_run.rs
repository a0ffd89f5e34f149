//! Replies for long work. The head is sent when the work is accepted, the report when the work is done, and a
//! line feed every second in between.
//!
//! White space before JSON is insignificant (RFC 8259 section 2). The line feeds keep proxies from giving up,
//! and reveal if the client has disconnected. A socket that only reads cannot distinguish a disconnected
//! client from a silent client.
//!
//! # Without the client
//!
//! A run with `detach` replies 202 when it is accepted, and continues. The server keeps the run from its first moment
//! ([`DetachedRuns`](crate::state::detached::DetachedRuns)), so that its end is on record even if the client disconnects
//! before the run is accepted. At a stop, the server tells the run to stop or cancels it, and waits for it.
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
use filestore_core::{Error, ErrorKind, Result};
use futures_util::stream::{self, Stream};
use serde::Serialize;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinError, JoinHandle};
use tokio::time::{MissedTickBehavior, interval, sleep};
use warp::reply::Response;

use crate::audit::Outcome;
use crate::reply::{self, Failure, RequestId, Unfinished};
use crate::request::call::Call;
use crate::routes::audit_line::put_on_record;
use crate::state::detached::AtStop;

/// The time between two line feeds.
const BEAT: Duration = Duration::from_secs(1);

/// The status of a reply after its work was accepted.
const ACCEPTED: u16 = 200;

/// The status of a reply to a detached run.
const DETACHED: u16 = 202;

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

impl Acceptance {
    /// Creates an acceptance, and the receiver that learns of it.
    fn channel() -> (Arc<Self>, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        (Arc::new(Self(Mutex::new(Some(sender)))), receiver)
    }

    /// Returns true if the work has been accepted.
    fn is_given(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

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
    let (accepted, acceptance) = Acceptance::channel();
    let acceptance = async {
        // Work that ends without it is joined first.
        if acceptance.await.is_err() {
            pending::<()>().await;
        }
    };

    let begun = Arc::new(AtomicBool::new(false));
    let running = spawn(call, &begun, work(stop.clone(), accepted));
    let waiting = Waiting { departure, stop, task: running.abort_handle() };
    first_of(call.id, running, waiting, acceptance, &begun, failed).await
}

/// Starts `work` in its own task, and replies 202 with `shown` when the work is accepted. The work continues without the
/// client, until its end or until the server stops. A failure before [`Progress::accepted`] has the usual status. The log
/// has a later failure. The audit log has the end, even if the client disconnects before the acceptance.
pub(super) async fn reply_detached<T, F, S>(
    call: &Arc<Call>,
    at_stop: AtStop,
    work: impl FnOnce(Stop, Arc<Acceptance>) -> F,
    shown: impl Future<Output = Result<S>>,
) -> Result<Response, Failure>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
    S: Serialize,
{
    let (accepted, acceptance) = Acceptance::channel();
    let (end, ended) = oneshot::channel();
    let (replying, replied) = oneshot::channel();
    let running = tokio::spawn(work(Stop::default(), Arc::clone(&accepted)));
    let task = running.abort_handle();
    call.app.detached.keep(
        task,
        at_stop,
        watch(Arc::clone(call), running, Watched { accepted, end, replied }),
    );

    let is_accepted = tokio::select! {
        biased;
        Ok(()) = acceptance => true,
        ended = ended => {
            ended.map_err(|e| Error::internal("running background work", e))??;
            false
        }
    };

    let mut response = match shown.await {
        Ok(shown) => reply::accepted(&shown)?,
        // The run continues, so the reply must not be a failure.
        Err(error) => {
            let id = call.id;
            tracing::warn!(request_id = %id, trace_id = id.trace_id(), error = %error.chain(), "the reply to a detached run has no state");
            reply::accepted(&json!({}))?
        }
    };
    if is_accepted {
        response.extensions_mut().insert(Unfinished);
    }
    // The receiver is gone if the work ended without acceptance.
    let _ = replying.send(());
    Ok(response)
}

/// The links between a detached run and the handler that started it.
struct Watched<T> {
    accepted: Arc<Acceptance>,
    /// Tells the handler the end of work that was not accepted.
    end: oneshot::Sender<Result<T>>,
    /// Receives a message when the handler replies. Closed if the client disconnects before.
    replied: oneshot::Receiver<()>,
}

/// Waits for the end of a detached run. If the run was not accepted, the handler replies with the end. Otherwise, or if
/// the handler is gone, records the end in the log and in the audit log.
async fn watch<T>(call: Arc<Call>, running: JoinHandle<Result<T>>, watched: Watched<T>) {
    let Watched { accepted, end, replied } = watched;
    let ended = running.await;
    let is_cancelled = ended.as_ref().is_err_and(JoinError::is_cancelled);
    let mut ended = joined(ended);
    if is_cancelled {
        ended = Err(Error::new(ErrorKind::Busy, "the server stops: start the run again later"));
    }

    let is_accepted = accepted.is_given();
    if !is_accepted {
        match end.send(ended) {
            Ok(()) => return,
            Err(unheard) => ended = unheard,
        }
    }
    // The line of the reply comes first.
    let status = replied.await.is_ok().then_some(DETACHED);

    let outcome = match &ended {
        Ok(_) => Outcome::Done,
        Err(error) if !is_accepted => Outcome::of(error.kind().http_status().as_u16()),
        Err(_) => Outcome::Failed,
    };
    let id = call.id;
    match &ended {
        Err(_) if is_cancelled => {
            tracing::warn!(request_id = %id, trace_id = id.trace_id(), "a detached run was cancelled at the stop");
        }
        Err(error) if outcome == Outcome::Failed => {
            tracing::error!(request_id = %id, trace_id = id.trace_id(), error = %error.chain(), "a detached run failed");
        }
        _ => {}
    }
    put_on_record(&call, status, outcome);
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
    use filestore_core::FileStore;
    use futures_util::FutureExt as _;
    use http::{HeaderMap, Method};
    use http_body_util::BodyExt as _;
    use serde_json::Value;
    use tempfile::TempDir;
    use tokio::task::yield_now;

    use super::*;
    use crate::audit::Audit;
    use crate::config::ServiceOptions;
    use crate::http::base::Base;
    use crate::listen::Peer;
    use crate::request::call::Caller;
    use crate::request::notes::Notes;
    use crate::route_table;
    use crate::state::App;

    const AUDIT: &str = "audit.jsonl";

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

    /// Makes a call that writes audit lines to a file, in a store of its own.
    async fn audited() -> (TempDir, Arc<Call>) {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path().join("data")).await.unwrap();
        let audit = Audit::open(Some(&dir.path().join(AUDIT))).unwrap();
        let app = App::new(store, ServiceOptions::default(), Base::default(), audit);
        let path = "/api/v1/admin/fsck/run";
        let route = route_table::find(&Method::POST, &app.base, path);
        let call = Call {
            era: app.store.uploads().era(),
            arrived: app.store.resumable().arrive(),
            app: Arc::new(app),
            id: RequestId::fresh(),
            route,
            caller: Caller::anyone(),
            signed: None,
            peer: Some(Peer::Unix),
            takes_files: false,
            client: None,
            method: Method::POST,
            headers: HeaderMap::new(),
            query: String::new(),
            notes: Notes::of(route, path),
        };
        (dir, Arc::new(call))
    }

    /// Waits for the detached runs, and returns the status and the result in the only audit line.
    async fn only_line(dir: &TempDir, call: &Call) -> (Value, Value) {
        let left = call.app.detached.wait(Duration::from_mins(1)).await;
        assert_eq!(left, 0, "a run has not ended");
        loop {
            let text = std::fs::read_to_string(dir.path().join(AUDIT)).unwrap();
            if text.ends_with('\n') {
                assert_eq!(text.lines().count(), 1, "{text}");
                let line: Value = serde_json::from_str(&text).unwrap();
                return (line["status"].clone(), line["result"].clone());
            }
            yield_now().await;
        }
    }

    /// Makes work that ends when the sender sends.
    fn work_until(
        is_accepted: bool,
    ) -> (oneshot::Sender<u32>, impl FnOnce(Stop, Arc<Acceptance>) -> BoxedWork) {
        let (finish, finished) = oneshot::channel();
        let work = move |_: Stop, acceptance: Arc<Acceptance>| -> BoxedWork {
            Box::pin(async move {
                if is_accepted {
                    acceptance.accepted();
                }
                finished.await.map_err(|e| Error::internal("a test", e))
            })
        };
        (finish, work)
    }

    type BoxedWork = std::pin::Pin<Box<dyn Future<Output = Result<u32>> + Send>>;

    #[tokio::test]
    async fn a_detached_run_whose_caller_goes_before_the_reply_is_kept_and_its_end_on_record() {
        let (dir, call) = audited().await;
        let (finish, work) = work_until(false);
        let reply = reply_detached(&call, AtStop::Wait, work, async { Ok("shown") });
        assert!(reply.now_or_never().is_none(), "it waits for the acceptance");

        assert_eq!(call.app.detached.count(), 1);
        finish.send(7).unwrap();
        assert_eq!(only_line(&dir, &call).await, (Value::Null, json!("done")));
    }

    #[tokio::test]
    async fn the_end_of_a_detached_run_is_on_record_with_the_status_of_its_reply() {
        let (dir, call) = audited().await;
        let (finish, work) = work_until(true);
        let reply = reply_detached(&call, AtStop::Wait, work, async { Ok("shown") }).await.unwrap();
        assert_eq!(reply.status(), DETACHED);
        assert!(reply.extensions().get::<Unfinished>().is_some());
        assert_eq!(reply.into_body().collect().await.unwrap().to_bytes(), "\"shown\"");

        finish.send(7).unwrap();
        assert_eq!(only_line(&dir, &call).await, (json!(DETACHED), json!("done")));
    }

    #[tokio::test]
    async fn a_detached_run_whose_state_cannot_be_shown_is_accepted_all_the_same() {
        let (dir, call) = audited().await;
        let (finish, work) = work_until(true);
        let shown = async { Err::<(), _>(Error::new(ErrorKind::Busy, "the database is away")) };
        let reply = reply_detached(&call, AtStop::Wait, work, shown).await.unwrap();
        assert_eq!(reply.status(), DETACHED);
        assert_eq!(reply.into_body().collect().await.unwrap().to_bytes(), "{}");

        finish.send(7).unwrap();
        assert_eq!(only_line(&dir, &call).await, (json!(DETACHED), json!("done")));
    }

    #[tokio::test]
    async fn a_detached_run_that_a_stop_cancels_is_on_record_as_failed() {
        let (dir, call) = audited().await;
        let (_finish, work) = work_until(true);
        reply_detached(&call, AtStop::Cancel, work, async { Ok("shown") }).await.unwrap();

        call.app.detached.cancel();
        assert_eq!(only_line(&dir, &call).await, (json!(DETACHED), json!("failed")));
    }

    #[tokio::test]
    async fn a_refused_detached_run_has_a_status_of_its_own() {
        let (_dir, call) = audited().await;
        let work = |_: Stop, _: Arc<Acceptance>| async {
            Err::<u32, _>(Error::new(ErrorKind::NoActiveBinding, "none"))
        };
        let refused = reply_detached(&call, AtStop::Wait, work, async { Ok("shown") }).await;
        assert!(matches!(refused, Err(Failure::Core(_))), "a refusal keeps its status");
    }
}
