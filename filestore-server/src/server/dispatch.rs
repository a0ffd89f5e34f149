//! The service around the routes: what every request passes before and after them.
//!
//! # Order
//! One Host, the guard (while the server is open), preflights, the signature or the key, the limits, the
//! routes. Then CORS headers, the id, the counters, the audit log, and the access log at debug level.
//!
//! # The way of a request
//! `routes/table.rs` has a row for its method and path, which says what a key must allow. `gate.rs` digests the
//! text that the request shows and finds its key in memory, without a query. The key's organizations go along
//! as the `Caller`, and every look-up takes them. A change of a key is committed, then taken over into memory,
//! and only then answered. While no key was ever made, and `auth` is not `"keys"`, the gate is open, and
//! `guard.rs` keeps web pages and proxies out.
//!
//! # Several servers
//! What is in memory may be older than what another server has committed (`Recency`). A request that could be
//! wronged by that waits for a look at the database: where memory is older than a second, where the caller's key
//! or signature is not known here, and where keys themselves are administrated.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filestore_core::ErrorKind;
use filestore_core::keys::Recency;
use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Version};
use hyper::body::Body as _;
use hyper::service::{Service, service_fn};
use hyper_util::service::TowerToHyperService;
use tracing::Level;
use warp::reply::Response;

use super::gate;
use super::limiter::{Admitted, Client};
use crate::audit::{Audited, Outcome};
use crate::http::forwarded;
use crate::http::trace::TraceParent;
use crate::listen::{BriefDrain, Peer, RequestBody};
use crate::reply::{Failure, RequestId, Unfinished, X_REQUEST_ID};
use crate::request::call::{App, Call, Caller, Proof};
use crate::routes::table::Need;
use crate::routes::{direct, routes, table};

/// Makes the API as hyper's service.
pub(super) fn service(
    app: Arc<App>,
) -> impl Service<
    Request<RequestBody>,
    Response = Response,
    Error = Infallible,
    Future: Future<Output = Result<Response, Infallible>> + Send + 'static,
> + Clone
+ Send
+ 'static {
    let routes = TowerToHyperService::new(warp::service(routes(&app.base)));
    service_fn(move |request: Request<RequestBody>| {
        let began = Instant::now();
        let (mut parts, body) = request.into_parts();
        let mut call = call_of(&app, &mut parts, &body);
        let way = match first_look(&mut call, &parts) {
            FirstLook::Enough(admitted) => Way::Now(begin(admitted, call, parts, body, &routes)),
            FirstLook::AskFirst => Way::Later(Box::pin(ask(call, parts, body, routes.clone()))),
        };

        async move {
            let Begun { call, unanswered, entry, reply } = match way {
                Way::Now(begun) => begun,
                Way::Later(asking) => asking.await,
            };
            let mut response = match reply {
                Reply::Read(admitted, reply) => admitted.mark(reply.await),
                Reply::Routed(admitted, reply) => admitted.mark(reply.await?),
                Reply::Ready(reply) => reply,
            };

            call.app.config.cors.add_headers(&call.headers, response.headers_mut());
            response.headers_mut().insert(X_REQUEST_ID, call.id.to_header());
            unanswered.end();
            note(&call, &response, began.elapsed(), entry);
            Ok(response)
        }
    })
}

/// The way of a request to its reply.
enum Way<N, L> {
    /// At once.
    Now(N),
    /// After a question to the database.
    Later(L),
}

/// The result of a look at a request with what is in memory.
enum FirstLook {
    /// The request is let in or refused.
    Enough(Result<Admission, Failure>),
    /// Another server may have changed what the answer depends on.
    AskFirst,
}

/// A request on its way, with the reply that is being made.
struct Begun<F> {
    call: Arc<Call>,
    unanswered: Unanswered,
    entry: Option<LogEntry>,
    reply: Reply<F>,
}

/// Looks at a request with what is in memory.
fn first_look(call: &mut Call, parts: &Parts) -> FirstLook {
    let need = call.route.map(|route| route.need);
    let store = &call.app.store;
    // Whoever asks whether this process lives is answered also while the database is away.
    let shares = need != Some(Need::Nothing) && store.shares_secrets();
    if shares && (need == Some(Need::ServiceAdmin) || !store.has_recent_secrets()) {
        return FirstLook::AskFirst;
    }

    let admitted = admit(call, parts);
    let is_unknown = matches!(
        &admitted,
        Err(Failure::Core(error))
            if matches!(error.kind(), ErrorKind::Unauthorized | ErrorKind::SignatureInvalid)
    );
    if shares && is_unknown && gate::shows_a_right(call) {
        FirstLook::AskFirst
    } else {
        FirstLook::Enough(admitted)
    }
}

/// Takes over what other servers have changed, and begins then.
async fn ask<R>(mut call: Call, parts: Parts, body: RequestBody, routes: R) -> Begun<R::Future>
where
    R: Service<Request<RequestBody>>,
{
    let refreshed = call.app.store.refresh_secrets(Recency::Present).await;
    let admitted = match refreshed {
        Ok(()) => admit(&mut call, &parts),
        Err(error) => Err(error.into()),
    };
    begin(admitted, call, parts, body, &routes)
}

/// Begins to make the reply.
fn begin<R>(
    admitted: Result<Admission, Failure>,
    call: Call,
    mut parts: Parts,
    body: RequestBody,
    routes: &R,
) -> Begun<R::Future>
where
    R: Service<Request<RequestBody>>,
{
    let call = Arc::new(call);
    let unanswered = Unanswered(Some(Arc::clone(&call)));
    let entry = LogEntry::of(&parts);

    let reply = match admitted {
        Ok(Admission::Routed(admitted)) => {
            if let Some(reading) = direct_read(&call, &parts, &body) {
                Reply::Read(admitted, reading)
            } else {
                parts.extensions.insert(Arc::clone(&call));
                Reply::Routed(admitted, routes.call(Request::from_parts(parts, body)))
            }
        }
        Ok(Admission::Preflight(reply)) => Reply::Ready(reply),
        Err(refusal) => Reply::Ready(turned_away(refusal, &call)),
    };
    Begun { call, unanswered, entry, reply }
}

/// Begins a read that needs no filters. One with a body, which nobody reads, takes the common way.
fn direct_read(call: &Arc<Call>, parts: &Parts, body: &RequestBody) -> Option<direct::Reading> {
    if body.is_end_stream() { direct::read(call, parts.uri.path()) } else { None }
}

/// A request without a reply so far. A client that goes away takes the future of the reply with it, but
/// not a change that waits for its commit: so the request is put on record when this is dropped.
struct Unanswered(Option<Arc<Call>>);

impl Unanswered {
    /// Leaves it to the caller to put the request on record.
    fn end(mut self) {
        self.0 = None;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call.audit(None, Outcome::Abandoned);
        }
    }
}

/// Counts a request whose head of the reply is there, and writes its lines in the logs.
fn note(call: &Call, response: &Response, took: Duration, entry: Option<LogEntry>) {
    let status = response.status().as_u16();
    call.app.metrics.count(call.route, status, took);

    let is_unfinished = response.extensions().get::<Unfinished>().is_some();
    call.audit(Some(status), if is_unfinished { Outcome::Begun } else { Outcome::of(status) });
    if let Some(entry) = entry {
        entry.write(call, status, took);
    }
}

/// The way on for a request that is not refused.
enum Admission {
    /// To the routes, within its limits.
    Routed(Admitted),
    /// Back: the reply to a preflight.
    Preflight(Response),
}

/// The reply to a request: one that a handler or the routes will make, or one that is made.
enum Reply<F> {
    Read(Admitted, direct::Reading),
    Routed(Admitted, F),
    Ready(Response),
}

/// Lets a request in, on behalf of the caller who is set then, or refuses it before any route sees it.
fn admit(call: &mut Call, parts: &Parts) -> Result<Admission, Failure> {
    if !has_one_host(parts.version, &call.headers) {
        return Err(Failure::WithoutOneHost);
    }

    if !gate::is_closed(&call.app) {
        call.app.guard.check(call, parts)?;
    }
    if let Some(reply) = call.app.config.cors.preflight(&call.method, &call.headers) {
        return Ok(Admission::Preflight(reply));
    }

    // Guesses at keys and signatures count as well, for the address that makes them.
    let identified = identify(call, parts);
    let admitted = within_limits(call)?;
    identified.map(|()| Admission::Routed(admitted))
}

/// Sets the caller on whose behalf the request acts, by its signature or its key.
fn identify(call: &mut Call, parts: &Parts) -> Result<(), Failure> {
    call.take_signature(parts.uri.path())?;
    if call.signed.is_none() {
        gate::admit(call)?;
    }
    Ok(())
}

/// Counts the request for its key, or else for its address. Health checks and the admin socket have no
/// limits.
fn within_limits(call: &Call) -> Result<Admitted, Failure> {
    if call.route.is_some_and(|route| route.template.starts_with("/health-checks")) {
        return Ok(Admitted::default());
    }

    let client = match (&call.caller.proof, call.client) {
        (Proof::Key(id), _) => Client::Key(*id),
        (_, Some(address)) => Client::Address(address),
        (_, None) => return Ok(Admitted::default()),
    };
    call.app.limits.enter(client).map_err(Failure::RateLimited)
}

/// Replies to a request that was refused before its body was looked at. Of what a stranger still sends
/// only a little is read.
fn turned_away(refusal: Failure, call: &Call) -> Response {
    let mut response = refusal.into_response(&call.id);
    response.extensions_mut().insert(BriefDrain);
    response
}

/// Tests whether the request has exactly one Host. Others are answered 400 (RFC 9112 section 3.2):
/// a proxy in front may have read another Host than this server.
fn has_one_host(version: Version, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), None) => true,
        (None, _) => version < Version::HTTP_11,
        (Some(_), Some(_)) => false,
    }
}

fn call_of(app: &Arc<App>, parts: &mut Parts, body: &RequestBody) -> Call {
    let peer = body.peer();
    let headers = std::mem::take(&mut parts.headers);
    let client = match peer {
        Peer::Tcp(address) => {
            Some(forwarded::client(address.ip(), &headers, &app.config.trusted_proxies))
        }
        Peer::Unix => None,
    };

    let route = table::find(&parts.method, &app.base, parts.uri.path());
    let trace = headers.get("traceparent").map(HeaderValue::as_bytes).and_then(TraceParent::parse);

    Call {
        app: Arc::clone(app),
        id: RequestId::within(trace),
        route,
        caller: Caller::nobody(),
        signed: None,
        peer,
        client,
        takes_files: body.takes_files(),
        method: parts.method.clone(),
        headers,
        query: parts.uri.query().unwrap_or_default().to_owned(),
        audited: Audited::of(route, parts.uri.path()),
    }
}

/// The facts about a request that the access log needs after the routes consumed it.
struct LogEntry {
    path: String,
}

impl LogEntry {
    /// Notes a request; `None` while the access log is off.
    fn of(parts: &Parts) -> Option<Self> {
        tracing::enabled!(target: "filestore_server::access", Level::DEBUG)
            .then(|| Self { path: parts.uri.path().to_owned() })
    }

    /// Writes the entry, without the query: a signed URL's query would let the log's reader in.
    fn write(self, call: &Call, status: u16, took: Duration) {
        let client: &dyn tracing::Value = &call.client.map(tracing::field::display::<IpAddr>);
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(
            target: "filestore_server::access",
            request_id = %call.id,
            trace_id = call.id.trace_id(),
            parent_id = call.id.trace().map(TraceParent::parent_id),
            client,
            method = %call.method,
            path = self.path,
            route = call.route.map(|route| route.template),
            status,
            millis,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_one_host_unless_it_is_older_than_1_1() {
        for (version, hosts, good) in [
            (Version::HTTP_11, &["a"][..], true),
            (Version::HTTP_11, &[""], true),
            (Version::HTTP_11, &[], false),
            (Version::HTTP_11, &["a", "a"], false),
            (Version::HTTP_10, &[], true),
            (Version::HTTP_10, &["a", "b"], false),
        ] {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, host.parse().unwrap());
            }
            assert_eq!(has_one_host(version, &headers), good, "{version:?} {hosts:?}");
        }
    }
}
