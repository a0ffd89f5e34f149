//! The service around the routes: all checks before them, and all work after them.
//!
//! # Order
//! Before the routes: a single Host, the guard (while the server is open), preflights, the signature or the
//! key, and the limits. After the routes: CORS headers, the id, the counters, the audit log, and the access
//! log at debug level.
//!
//! # How a request is checked
//! `route_table.rs` has a row for its method and path, with the right that a key needs. `request/gate.rs` computes
//! the digest of the secret in the request, and finds its key in memory, without a query. The key's
//! organizations become part of the `Caller`, and every look-up uses them. A change of a key is committed,
//! then applied to memory, and only then answered. If no key ever existed and `auth` is not `"keys"`, the
//! gate is open, and `admission/guard.rs` excludes web pages and proxies.
//!
//! # Several servers
//! Memory can be older than a commit by another server (`Recency`). A request for which this matters waits
//! for a query of the database. This is the case if memory is older than one second, if the caller's key or
//! signature is unknown here, and for the administration of keys.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filestore_core::ErrorKind;
use filestore_core::keys::Recency;
use http::header::{HOST, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Uri, Version};
use hyper::body::Body;
use tower_service::Service as _;
use tracing::field::Empty;
use tracing::{Instrument as _, Level, Span};
use warp::reply::Response;

use crate::admission::guard::Asked;
use crate::admission::limiter::{Admitted, Client};
use crate::audit::Outcome;
use crate::error::RefusalKind;
use crate::http::forwarded::{self, ClientAddress};
use crate::http::trace::TraceParent;
use crate::listen::body::BoxError;
use crate::listen::{BriefDrain, Peer};
use crate::reply::{self, Failure, RequestId, Unfinished, X_REQUEST_ID};
use crate::request::call::{Call, Caller, Proof};
use crate::request::gate;
use crate::request::incoming::check_transfer_coding;
use crate::request::notes::Notes;
use crate::route_table::{self, Need};
use crate::routes::audit_line::put_on_record;
use crate::routes::{RouteFilter, direct};
use crate::state::App;

/// The facts about the connection of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection {
    /// The peer, if known.
    pub(crate) peer: Option<Peer>,
    /// True if the reply can be a [`SentFile`](crate::listen::SentFile).
    pub(crate) takes_files: bool,
}

/// Answers a request.
pub(super) fn answer<B>(
    app: &Arc<App>,
    routes: &RouteFilter,
    request: Request<B>,
    connection: Connection,
) -> impl Future<Output = Response> + Send + 'static + use<B>
where
    B: Body + Send + Sync + 'static,
    B::Error: Into<BoxError>,
{
    let began = Instant::now();
    let (mut parts, body) = request.into_parts();
    let mut call = call_of(app, &mut parts, connection);
    let span = span_of(&call);
    let answered = span.clone();
    let way = match first_look(&mut call, &parts) {
        FirstLook::Enough(admitted) => {
            Way::Now(begin(admitted, call, parts, body, |request| routed(routes, request)))
        }
        FirstLook::AskFirst => {
            let routes = routes.clone();
            let route = move |request| routed(&routes, request);
            Way::Later(Box::pin(ask(call, parts, body, route)))
        }
    };

    let answering = async move {
        let Begun { call, unanswered, entry, reply } = match way {
            Way::Now(begun) => begun,
            Way::Later(asking) => asking.await,
        };
        let mut response = match reply {
            Reply::Read(admitted, reply) => admitted.mark(reply.await),
            Reply::Routed(admitted, reply) => {
                let Ok(response) = reply.await;
                admitted.mark(response)
            }
            Reply::Ready(reply) => reply,
        };

        add_vary(&call, response.headers_mut());
        call.app.options.cors.add_headers(&call.headers, response.headers_mut());
        response.headers_mut().insert(X_REQUEST_ID, call.id.to_header());
        unanswered.end();
        note(&call, &response, began.elapsed(), entry);
        answered.record("http.response.status_code", response.status().as_u16());
        response
    };
    answering.instrument(span)
}

/// Opens the span of a request, by the semantic conventions of OpenTelemetry. The fields `trace_id` and `parent_id` are
/// those of the header `traceparent`. The path is not a field, because it names files.
fn span_of(call: &Call) -> Span {
    let route = call.route.map(|route| route.template);
    tracing::debug_span!(
        target: "filestore_server::span",
        "request",
        otel.name = format_args!("{} {}", call.method, route.unwrap_or_default()),
        otel.kind = "server",
        http.request.method = %call.method,
        http.route = route,
        http.response.status_code = Empty,
        trace_id = call.id.trace_id(),
        parent_id = call.id.trace().map(TraceParent::parent_id),
    )
}

/// Passes a request to the filters.
fn routed<B>(
    routes: &RouteFilter,
    request: Request<B>,
) -> impl Future<Output = Result<Response, Infallible>> + Send + 'static + use<B>
where
    B: Body + Send + Sync + 'static,
    B::Error: Into<BoxError>,
{
    warp::service(routes.clone()).call(request)
}

/// The path of a request to its reply.
enum Way<N, L> {
    /// At once.
    Now(N),
    /// After a query of the database.
    Later(L),
}

/// The result of checking a request with the data in memory.
enum FirstLook {
    /// The request is admitted or refused.
    Enough(Result<Admission, Failure>),
    /// Another server may have changed data that the answer depends on.
    AskFirst,
}

/// A request in progress, with the future of its reply.
struct Begun<F> {
    call: Arc<Call>,
    unanswered: Unanswered,
    entry: Option<LogEntry>,
    reply: Reply<F>,
}

/// Checks a request with the data in memory.
fn first_look(call: &mut Call, parts: &Parts) -> FirstLook {
    let need = call.route.map(|route| route.need);
    let store = &call.app.store;
    // Whoever asks whether this process lives is answered also while the database is away.
    let shares = need != Some(Need::Nothing) && store.shared().shares_secrets();
    if shares && (need == Some(Need::ServiceAdmin) || !store.shared().has_recent_secrets()) {
        return FirstLook::AskFirst;
    }

    let admitted = admit(call, parts);
    let is_unknown = match &admitted {
        Err(Failure::Core(error)) => error.kind() == ErrorKind::SignatureInvalid,
        Err(Failure::Refused(refusal)) => refusal.kind() == RefusalKind::Unauthorized,
        _ => false,
    };
    if shares && is_unknown && gate::shows_a_right(call) {
        FirstLook::AskFirst
    } else {
        FirstLook::Enough(admitted)
    }
}

/// Applies the changes of other servers, and then begins.
async fn ask<B, F>(
    mut call: Call,
    parts: Parts,
    body: B,
    route: impl FnOnce(Request<B>) -> F,
) -> Begun<F>
where
    B: Body,
{
    let refreshed = call.app.store.shared().refresh_secrets(Recency::Present).await;
    let admitted = match refreshed {
        Ok(()) => admit(&mut call, &parts),
        Err(error) => Err(error.into()),
    };
    begin(admitted, call, parts, body, route)
}

/// Begins to create the reply.
fn begin<B, F>(
    admitted: Result<Admission, Failure>,
    call: Call,
    mut parts: Parts,
    body: B,
    route: impl FnOnce(Request<B>) -> F,
) -> Begun<F>
where
    B: Body,
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
                Reply::Routed(admitted, route(Request::from_parts(parts, body)))
            }
        }
        Ok(Admission::Preflight(reply)) => Reply::Ready(reply),
        Err(refusal) => Reply::Ready(turned_away(refusal, &call)),
    };
    Begun { call, unanswered, entry, reply }
}

/// Begins a read that needs no filters. A read with an (unread) body uses the common path.
fn direct_read(call: &Arc<Call>, parts: &Parts, body: &impl Body) -> Option<direct::Reading> {
    if body.is_end_stream() { direct::read(call, parts.uri.path()) } else { None }
}

/// A request without a reply so far. If the client disconnects, the future of the reply is dropped, but a
/// change that waits for its commit continues. Dropping this value therefore records the request.
struct Unanswered(Option<Arc<Call>>);

impl Unanswered {
    /// Leaves the recording of the request to the caller.
    fn end(mut self) {
        self.0 = None;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            put_on_record(&call, None, Outcome::Abandoned);
        }
    }
}

/// Tells caches that a read of a file depends on the key. A browser that signs in with another key must not see the
/// replies to the first one. The reply to a signed URL depends on no key.
fn add_vary(call: &Call, headers: &mut HeaderMap) {
    if call.signed.is_none() && call.route.is_some_and(|route| route.read.is_some()) {
        headers.append(VARY, HeaderValue::from_static("Authorization"));
    }
}

/// Counts a request after the head of its reply is ready, and writes its log lines.
fn note(call: &Call, response: &Response, took: Duration, entry: Option<LogEntry>) {
    let status = response.status().as_u16();
    call.app.metrics.count(call.route, status, took);

    let is_unfinished = response.extensions().get::<Unfinished>().is_some();
    let outcome = if is_unfinished { Outcome::Begun } else { Outcome::of(status) };
    put_on_record(call, Some(status), outcome);
    if let Some(entry) = entry {
        entry.write(call, status, took);
    }
}

/// The next step for an admitted request.
enum Admission {
    /// The routes, within the limits.
    Routed(Admitted),
    /// The reply to a preflight.
    Preflight(Response),
}

/// The reply to a request: in progress or finished.
enum Reply<F> {
    Read(Admitted, direct::Reading),
    Routed(Admitted, F),
    Ready(Response),
}

/// Admits a request and sets its caller, or refuses it before any route sees it.
fn admit(call: &mut Call, parts: &Parts) -> Result<Admission, Failure> {
    if !has_one_host(parts.version, &parts.uri, &call.headers) {
        return Err(Failure::WithoutOneHost);
    }
    check_transfer_coding(&call.headers)?;

    if !gate::is_closed(&call.app) {
        guard(call, parts)?;
    }
    if let Some(headers) = call.app.options.cors.preflight(&call.method, &call.headers) {
        return Ok(Admission::Preflight(reply::preflight(headers)));
    }

    // Guesses at keys and signatures count as well, for the address that makes them.
    let identified = identify(call, parts);
    let admitted = within_limits(call)?;
    identified.map(|()| Admission::Routed(admitted))
}

/// Asks the guard. The admin socket is not guarded, because its file mode protects it.
fn guard(call: &Call, parts: &Parts) -> Result<(), Failure> {
    let Some(client) = call.client else { return Ok(()) };
    let peer = match call.peer {
        Some(Peer::Tcp(peer)) => Some(peer),
        Some(Peer::Unix) | None => None,
    };
    let asked = Asked {
        peer,
        client,
        method: &call.method,
        uri: &parts.uri,
        headers: &call.headers,
        route: call.route,
    };
    Ok(call.app.guard.check(&asked)?)
}

/// Sets the caller of the request by its signature or its key.
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
        (_, Some(client)) => Client::Address(client.address()),
        (_, None) => return Ok(Admitted::default()),
    };
    call.app.limits.enter(client).map_err(Failure::RateLimited)
}

/// Replies to a request that was refused before its body was read. For an unknown caller, only a little of
/// the rest is read.
fn turned_away(refusal: Failure, call: &Call) -> Response {
    let mut response = refusal.into_response(&call.id);
    response.extensions_mut().insert(BriefDrain);
    response
}

/// Returns true if the request has exactly one Host. Other requests get 400 (RFC 9112 section 3.2), because a
/// proxy might have read another Host than this server. HTTP/2 names the host in its target instead (RFC 9113
/// section 8.3.1).
fn has_one_host(version: Version, uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), None) => true,
        (None, _) if version > Version::HTTP_11 => uri.authority().is_some(),
        (None, _) => version < Version::HTTP_11,
        (Some(_), Some(_)) => false,
    }
}

fn call_of(app: &Arc<App>, parts: &mut Parts, connection: Connection) -> Call {
    let Connection { peer, takes_files } = connection;
    let headers = std::mem::take(&mut parts.headers);
    let client = match peer {
        Some(Peer::Tcp(address)) => {
            Some(forwarded::client(address.ip(), &headers, &app.options.trusted_proxies))
        }
        Some(Peer::Unix) => None,
        None => Some(ClientAddress::UNTOLD),
    };

    let route = route_table::find(&parts.method, &app.base, parts.uri.path());
    let trace = headers.get("traceparent").map(HeaderValue::as_bytes).and_then(TraceParent::parse);

    Call {
        app: Arc::clone(app),
        id: RequestId::within(trace),
        route,
        caller: Caller::nobody(),
        signed: None,
        peer,
        client,
        takes_files,
        method: parts.method.clone(),
        headers,
        query: parts.uri.query().unwrap_or_default().to_owned(),
        notes: Notes::of(route, parts.uri.path()),
        era: app.store.uploads().era(),
        arrived: app.store.resumable().arrive(),
    }
}

/// The facts about a request that the access log needs after the routes have consumed it.
struct LogEntry {
    path: String,
}

impl LogEntry {
    /// Records a request. `None` while the access log is off.
    fn of(parts: &Parts) -> Option<Self> {
        tracing::enabled!(target: "filestore_server::access", Level::DEBUG)
            .then(|| Self { path: route_table::shown(parts.uri.path()).to_owned() })
    }

    /// Writes the entry without the query, because the query of a signed URL would give its rights to readers
    /// of the log.
    fn write(self, call: &Call, status: u16, took: Duration) {
        let client: &dyn tracing::Value =
            &call.client.map(tracing::field::display::<ClientAddress>);
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
            (Version::HTTP_2, &[], false),
        ] {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, host.parse().unwrap());
            }
            let uri = Uri::from_static("/x");
            assert_eq!(has_one_host(version, &uri, &headers), good, "{version:?} {hosts:?}");
        }

        let target = Uri::from_static("https://a/x");
        assert!(has_one_host(Version::HTTP_2, &target, &HeaderMap::new()), "it has an authority");
    }
}
