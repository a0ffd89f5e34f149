//! Cross-origin requests of browsers (WHATWG Fetch, "HTTP CORS protocol").
//!
//! CORS is off unless origins are configured. Preflights are answered before all other checks, because they
//! contain no key. Scripts of an allowed origin can read every reply, including errors. Credentials are not
//! allowed, because scripts set the header `Authorization` themselves.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use thiserror::Error;

use crate::http::host::is_loopback;

/// The methods of the API.
const METHODS: HeaderValue =
    HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");

/// The request headers that every allowed origin can send, beside those that need no permission. A comment
/// gives the reason for the rows below it. The API ignores most of these headers, but a browser does not send
/// a request at all if the server does not allow one of its headers.
const REQUEST_HEADERS: &[&[&str]] = &[
    // The API reads these.
    &["Accept", "Authorization", "Content-Type", "Idempotency-Key", "Range", "If-Range"],
    &["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"],
    // The API reads these for resumable uploads: tus 1.0, and the drafts of the IETF.
    &["Tus-Resumable", "Upload-Length", "Upload-Offset", "Upload-Metadata", "Upload-Defer-Length"],
    &["Upload-Concat", "Upload-Checksum", "Upload-Complete", "Upload-Incomplete"],
    &["Upload-Draft-Interop-Version", "X-HTTP-Method-Override", "Content-Disposition"],
    &["Content-Digest", "Repr-Digest", "Want-Repr-Digest", "Incremental", "Prefer"],
    // The API reads this for streams of events.
    &["Last-Event-ID"],
    // FilePond adds this to its chunks.
    &["Upload-Name"],
    // Dropzone, FineUploader, antd's Upload and jQuery add these to every upload.
    &["Cache-Control", "Pragma", "X-Requested-With", "X-Mime-Type", "X-File-Name"],
    // Frameworks protect forms with these. The API has no cookies, and so no need of them.
    &["X-CSRF-Token", "X-CSRFToken", "X-XSRF-TOKEN"],
    // Tracing: W3C Trace Context and Baggage, Sentry, B3, Jaeger, Datadog, New Relic, Elastic, AWS, Azure.
    &["traceparent", "tracestate", "baggage", "sentry-trace", "uber-trace-id", "newrelic"],
    &["b3", "X-B3-TraceId", "X-B3-SpanId", "X-B3-ParentSpanId", "X-B3-Sampled", "X-B3-Flags"],
    &["X-Datadog-Trace-Id", "X-Datadog-Parent-Id", "X-Datadog-Origin"],
    &["X-Datadog-Sampling-Priority", "X-Datadog-Tags", "elastic-apm-traceparent"],
    &["X-Amzn-Trace-Id", "Request-Id", "Request-Context", "X-Request-Id", "X-Correlation-Id"],
];

/// The reply headers that scripts can read, except headers without need of permission.
const REPLY_HEADERS: HeaderValue = HeaderValue::from_static(
    "Accept-Patch, Accept-Ranges, Allow, Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Location, Preference-Applied, RateLimit, \
     RateLimit-Policy, Repr-Digest, Retry-After, WWW-Authenticate, X-Request-Id, File-Id, Upload-Offset, \
     Upload-Length, Upload-Expires, Upload-Metadata, Upload-Defer-Length, Upload-Concat, Upload-Complete, \
     Upload-Incomplete, Upload-Limit, Upload-Draft-Interop-Version, Tus-Resumable, Tus-Version, Tus-Extension, \
     Tus-Max-Size, Tus-Checksum-Algorithm, Sheet-Pending, Sheet-Failed",
);

/// The origins with scripts that can use the API.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cors {
    /// The allowed origins. An empty list disables cross-origin requests.
    pub origins: Origins,
    /// Request headers that scripts can send, in addition to those that every origin can.
    pub headers: Vec<RequestHeader>,
    /// The time for which browsers remember a preflight.
    pub max_age: Duration,
}

impl Default for Cors {
    fn default() -> Self {
        Self {
            origins: Origins::Listed(Vec::new()),
            headers: Vec::new(),
            max_age: Duration::from_mins(10),
        }
    }
}

/// A request header that scripts from allowed origins can send, for example `X-Tenant`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader(HeaderName);

/// The error for a text that is no name of a header.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a header name has letters, digits and hyphens, for example X-Tenant: {0}")]
pub struct BadRequestHeader(String);

impl FromStr for RequestHeader {
    type Err = BadRequestHeader;

    /// Reads a name. `*` is none: browsers do not count `Authorization` in.
    fn from_str(text: &str) -> Result<Self, BadRequestHeader> {
        let bad = || BadRequestHeader(text.to_owned());
        if text == "*" {
            return Err(bad());
        }
        text.parse().map(Self).map_err(|_| bad())
    }
}

impl fmt::Display for RequestHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

/// The choice of allowed origins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// Every origin.
    Any,
    /// The listed origins.
    Listed(Vec<Origin>),
}

/// The origin of a web page: scheme, host and port (RFC 6454).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// The error for an invalid origin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "an origin is http:// or https://, a host without *, and a port unless it is the scheme's own. For all \
     origins, use [\"*\"] alone: {0}"
)]
pub struct BadOrigin(String);

impl FromStr for Origin {
    type Err = BadOrigin;

    /// Reads an origin as browsers spell it: in lower case, without a path and without the scheme's default
    /// port.
    fn from_str(text: &str) -> Result<Self, BadOrigin> {
        let bad = || BadOrigin(text.to_owned());
        let (scheme, host) = text.split_once("://").ok_or_else(bad)?;
        let own_port = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => return Err(bad()),
        };

        let authority: http::uri::Authority = host.parse().map_err(|_| bad())?;
        // A `*` would be compared as a character, and match no page.
        let is_plain = !host.contains(['@', '*']) && !host.bytes().any(|b| b.is_ascii_uppercase());
        if !is_plain || authority.host().is_empty() || host.ends_with(own_port) {
            return Err(bad());
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Origin {
    /// Returns true if the page comes from a loopback address.
    fn is_loopback(&self) -> bool {
        let host = self.0.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
        host.is_some_and(|host| is_loopback(&host))
    }
}

impl Cors {
    /// Returns true if any origin is allowed.
    pub(crate) fn is_on(&self) -> bool {
        match &self.origins {
            Origins::Any => true,
            Origins::Listed(list) => !list.is_empty(),
        }
    }

    /// Returns true if an origin is listed by name.
    pub(crate) fn lists(&self, origin: &[u8]) -> bool {
        match &self.origins {
            Origins::Any => false,
            Origins::Listed(list) => list.iter().any(|one| one.0.as_bytes() == origin),
        }
    }

    /// Lists the allowed origins outside loopback addresses.
    pub(crate) fn elsewhere(&self) -> impl Iterator<Item = &str> {
        let listed = match &self.origins {
            Origins::Any => &[][..],
            Origins::Listed(list) => list,
        };
        listed.iter().filter(|origin| !origin.is_loopback()).map(|origin| origin.0.as_str())
    }

    /// Returns the value of Access-Control-Allow-Origin for a request. `None` if its origin is missing or not
    /// allowed.
    fn allowed(&self, request: &HeaderMap) -> Option<HeaderValue> {
        let origin = request.get(ORIGIN)?;
        match &self.origins {
            Origins::Any => Some(HeaderValue::from_static("*")),
            Origins::Listed(_) => self.lists(origin.as_bytes()).then(|| origin.clone()),
        }
    }

    /// Returns the headers for a preflight of an allowed origin. `None` for any other request.
    pub(crate) fn preflight(&self, method: &Method, request: &HeaderMap) -> Option<HeaderMap> {
        if method != Method::OPTIONS || !request.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return None;
        }
        self.allowed(request)?;

        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, self.request_headers());
        headers.insert(ACCESS_CONTROL_MAX_AGE, self.max_age.as_secs().into());
        Some(headers)
    }

    /// Writes the names of all request headers that scripts can send.
    fn request_headers(&self) -> HeaderValue {
        let own = self.headers.iter().map(|header| header.0.as_str());
        let all: Vec<_> = REQUEST_HEADERS.concat().into_iter().chain(own).collect();
        HeaderValue::try_from(all.join(", ")).expect("names of headers are a value")
    }

    /// Lets scripts of an allowed origin read the reply. Where the reply depends on the origin, caches
    /// are told so with every reply.
    pub(crate) fn add_headers(&self, request: &HeaderMap, reply: &mut HeaderMap) {
        if !self.is_on() {
            return;
        }
        if matches!(self.origins, Origins::Listed(_)) {
            reply.append(VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(origin) = self.allowed(request) {
            reply.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            reply.insert(ACCESS_CONTROL_EXPOSE_HEADERS, REPLY_HEADERS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors(origins: &[&str]) -> Cors {
        let list = origins.iter().map(|text| text.parse().unwrap()).collect();
        Cors { origins: Origins::Listed(list), ..Cors::default() }
    }

    fn request(origin: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, origin.parse().unwrap());
        headers.insert(ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("PUT"));
        headers
    }

    #[test]
    fn an_origin_is_spelled_as_browsers_spell_it() {
        for good in ["https://app.example.org", "http://localhost:3000", "http://[::1]:8080"] {
            assert!(good.parse::<Origin>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "*",
            "null",
            "app.example.org",
            "https://",
            "https://app.example.org/",
            "https://app.example.org:443",
            "http://app.example.org:80",
            "https://App.example.org",
            "https://u@app.example.org",
            "ftp://app.example.org",
            "https://*",
            "http://*:3000",
            "https://*.example.org",
            "https://app.*.org",
        ] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }

    #[test]
    fn pages_of_other_machines_are_told_from_those_of_this_one() {
        let near = ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:8080"];
        let far = ["https://app.example.org", "http://localhost.evil.example"];
        let cors = cors(&[&near[..], &far[..]].concat());
        assert_eq!(cors.elsewhere().collect::<Vec<_>>(), far);
    }

    #[test]
    fn a_preflight_of_a_listed_origin_is_answered_and_no_other() {
        let cors = cors(&["https://app.example.org"]);
        let reply = cors.preflight(&Method::OPTIONS, &request("https://app.example.org")).unwrap();
        assert_eq!(reply[ACCESS_CONTROL_MAX_AGE], "600");
        assert!(reply[ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap().contains("Range"));

        for other in ["https://evil.example", "https://app.example.org.evil.example", "null"] {
            assert!(cors.preflight(&Method::OPTIONS, &request(other)).is_none(), "{other}");
        }
        assert!(cors.preflight(&Method::PUT, &request("https://app.example.org")).is_none());
        let mut plain = request("https://app.example.org");
        plain.remove(ACCESS_CONTROL_REQUEST_METHOD);
        assert!(cors.preflight(&Method::OPTIONS, &plain).is_none());
        let off = Cors::default();
        assert!(off.preflight(&Method::OPTIONS, &request("https://app.example.org")).is_none());
    }

    /// The headers that browsers name in the preflights of a client, as the client is without settings.
    const CLIENTS: [(&str, &str); 26] = [
        ("Dropzone 6", "accept,cache-control,x-requested-with"),
        ("FineUploader 5", "cache-control,x-requested-with"),
        (
            "FineUploader 5 without multipart",
            "cache-control,content-type,x-mime-type,x-requested-with",
        ),
        (
            "FineUploader 5, file name in a header",
            "cache-control,content-type,x-file-name,x-requested-with",
        ),
        ("antd Upload (rc-upload)", "x-requested-with"),
        ("Uppy XHR with a key", "authorization"),
        ("Uppy tus", "authorization,tus-resumable,upload-length,upload-metadata,x-request-id"),
        ("Uppy tus, a chunk", "authorization,content-type,tus-resumable,upload-offset"),
        ("tus-js-client 4 and 5", "tus-resumable,upload-length,upload-metadata,x-request-id"),
        (
            "tus-js-client, bytes in the creation",
            "content-type,tus-resumable,upload-length,upload-metadata",
        ),
        (
            "tus-js-client, length deferred",
            "tus-resumable,upload-defer-length,upload-length,upload-metadata",
        ),
        ("tus-js-client, a piece of parallelUploads", "tus-resumable,upload-concat,upload-length"),
        (
            "tus-js-client, overridePatchMethod",
            "content-type,tus-resumable,upload-offset,x-http-method-override",
        ),
        (
            "tus-js-client, a key and the record wanted",
            "authorization,content-type,prefer,tus-resumable,upload-offset",
        ),
        (
            "tus-js-client 4 and 5, ietf-draft-03: creation",
            "upload-complete,upload-draft-interop-version,upload-length,upload-metadata",
        ),
        (
            "tus-js-client 4 and 5, ietf-draft-05: append",
            "content-type,upload-complete,upload-draft-interop-version,upload-offset",
        ),
        ("fetch-event-source", "accept,authorization,last-event-id"),
        ("FilePond", "authorization"),
        ("FilePond, a chunk", "content-type,upload-length,upload-name,upload-offset"),
        ("axios", "authorization,content-type,x-xsrf-token"),
        ("Django and Rails pages", "x-csrf-token,x-csrftoken"),
        ("fetch without cache", "authorization,cache-control,pragma"),
        ("OpenTelemetry", "baggage,traceparent,tracestate"),
        ("OpenTelemetry, B3", "b3,x-b3-parentspanid,x-b3-sampled,x-b3-spanid,x-b3-traceid"),
        ("Sentry", "baggage,sentry-trace,traceparent"),
        (
            "Datadog RUM",
            "traceparent,tracestate,x-datadog-origin,x-datadog-parent-id,x-datadog-sampling-priority,\
             x-datadog-trace-id",
        ),
    ];

    fn allowed_headers(cors: &Cors) -> Vec<String> {
        let request = request("https://app.example.org");
        let reply = cors.preflight(&Method::OPTIONS, &request).unwrap();
        let allowed = reply[ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap();
        allowed.split(", ").map(str::to_ascii_lowercase).collect()
    }

    #[test]
    fn the_preflights_of_known_clients_pass_with_the_defaults() {
        let allowed = allowed_headers(&cors(&["https://app.example.org"]));
        for (client, headers) in CLIENTS {
            for header in headers.split(',') {
                assert!(allowed.iter().any(|known| known == header), "{client} sends {header}");
            }
        }

        let mut once = allowed.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), allowed.len(), "a header is listed twice: {allowed:?}");
    }

    #[test]
    fn further_headers_are_allowed_by_name() {
        let headers = vec!["X-Tenant".parse().unwrap(), "x-app-version".parse().unwrap()];
        let cors = Cors { headers, ..cors(&["https://app.example.org"]) };
        let allowed = allowed_headers(&cors);
        for header in ["x-tenant", "x-app-version", "authorization"] {
            assert!(allowed.iter().any(|known| known == header), "{header}: {allowed:?}");
        }
        for bad in ["", "*", "X Tenant", "X-Tenant:", "X-Tenant, X-App", "X-Ten\nant", "ä"] {
            assert!(bad.parse::<RequestHeader>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_reply_names_the_origin_and_varies_by_it() {
        let listed = cors(&["https://app.example.org"]);
        let any = Cors { origins: Origins::Any, ..Cors::default() };
        let shown = |cors: &Cors, request: &HeaderMap| {
            let mut reply = HeaderMap::new();
            cors.add_headers(request, &mut reply);
            let text = |name| reply.get(name).map(|value: &HeaderValue| value.to_str().unwrap());
            (text(ACCESS_CONTROL_ALLOW_ORIGIN).map(str::to_owned), reply.contains_key(VARY))
        };

        let app = Some("https://app.example.org".to_owned());
        assert_eq!(shown(&listed, &request("https://app.example.org")), (app, true));
        assert_eq!(shown(&listed, &request("https://evil.example")), (None, true));
        assert_eq!(shown(&listed, &HeaderMap::new()), (None, true));
        assert_eq!(shown(&any, &request("https://evil.example")), (Some("*".to_owned()), false));
        assert_eq!(shown(&any, &HeaderMap::new()), (None, false));
        assert_eq!(shown(&Cors::default(), &request("https://evil.example")), (None, false));
    }
}
