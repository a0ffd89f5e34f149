//! A separate address for the metrics. The address needs no key and serves nothing else.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use hyper::service::{Service, service_fn};
use warp::reply::Response;

use crate::listen::{Options, RequestBody};
use crate::reply::{Failure, RequestId, X_REQUEST_ID};
use crate::routes::metrics::exposed;
use crate::service::FileService;

/// The only path.
const PATH: &str = "/metrics";

/// The maximum number of connections: a few scrapers, and occasional manual requests.
const MAX_CONNECTIONS: usize = 32;

/// The maximum silence of a scraper. The limit is short, because connections are few.
const PATIENCE: Duration = Duration::from_secs(5);

/// Limits connections to the needs of scrapers.
pub(super) fn options(options: Options) -> Options {
    Options {
        max_connections: MAX_CONNECTIONS,
        max_connections_per_address: MAX_CONNECTIONS / 4,
        first_byte: PATIENCE,
        keep_alive_idle: PATIENCE,
        ..options
    }
}

/// Creates the service that answers `GET /metrics` with the metrics of `files`.
pub(super) fn service(
    files: FileService,
) -> impl Service<
    Request<RequestBody>,
    Response = Response,
    Error = Infallible,
    Future: Future<Output = Result<Response, Infallible>> + Send + 'static,
> + Clone
+ Send
+ 'static {
    service_fn(move |request: Request<RequestBody>| {
        let app = Arc::clone(files.app());
        async move {
            let id = RequestId::fresh();
            let mut response = if let Some(failure) = refusal(&request) {
                failure.into_response(&id)
            } else {
                exposed(&app, request.headers()).await
            };
            response.headers_mut().insert(X_REQUEST_ID, id.to_header());
            Ok(response)
        }
    })
}

fn refusal(request: &Request<RequestBody>) -> Option<Failure> {
    if request.uri().path() != PATH {
        return Some(Failure::UnknownPath);
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    (!is_read).then_some(Failure::MethodNotAllowed("GET, HEAD"))
}
