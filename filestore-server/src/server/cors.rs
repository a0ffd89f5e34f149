//! Cross-origin requests of browsers (WHATWG Fetch, "HTTP CORS protocol").
//!
//! Off unless origins are configured. A preflight is answered before anything else is decided, since it
//! carries no key. Every reply to an allowed origin can be read by its scripts, errors included.
//! Credentials are not allowed: keys travel in `Authorization`, which scripts set themselves.

use std::str::FromStr;
use std::time::Duration;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use http::{HeaderMap, HeaderValue, Method};
use thiserror::Error;
use warp::reply::Response;

use crate::reply;

/// The methods of the API.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE");

/// The request headers that the API reads, beside those that need no permission.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Modified-Since, \
     If-Unmodified-Since, If-Range, Range, traceparent",
);

/// The reply headers that scripts may read, beside those that need no permission.
const REPLY_HEADERS: HeaderValue = HeaderValue::from_static(
    "Accept-Ranges, Allow, Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Location, RateLimit, \
     RateLimit-Policy, Repr-Digest, Retry-After, WWW-Authenticate, X-Request-Id",
);

/// The origins whose scripts may use the API.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cors {
    /// The allowed origins; none for no cross-origin requests.
    pub origins: Origins,
    /// The time for which browsers remember a preflight.
    pub max_age: Duration,
}

impl Default for Cors {
    fn default() -> Self {
        Self { origins: Origins::Listed(Vec::new()), max_age: Duration::from_mins(10) }
    }
}

/// A choice of origins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// Every origin.
    Any,
    /// The listed ones.
    Listed(Vec<Origin>),
}

/// The origin of a web page: scheme, host and port (RFC 6454).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// The error of a text that is no origin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("an origin is http:// or https://, a host, and a port unless it is the scheme's own: {0}")]
pub struct BadOrigin(String);

impl FromStr for Origin {
    type Err = BadOrigin;

    /// Reads an origin as browsers spell it: in lower case, without a path and without the scheme's own
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
        let is_plain = !host.contains('@') && !host.bytes().any(|b| b.is_ascii_uppercase());
        if !is_plain || authority.host().is_empty() || host.ends_with(own_port) {
            return Err(bad());
        }
        Ok(Self(text.to_owned()))
    }
}

impl Cors {
    /// Tests whether any origin is allowed.
    pub(crate) fn is_on(&self) -> bool {
        match &self.origins {
            Origins::Any => true,
            Origins::Listed(list) => !list.is_empty(),
        }
    }

    /// Tests whether an origin is listed by name.
    pub(crate) fn lists(&self, origin: &[u8]) -> bool {
        match &self.origins {
            Origins::Any => false,
            Origins::Listed(list) => list.iter().any(|one| one.0.as_bytes() == origin),
        }
    }

    /// Returns the value of Access-Control-Allow-Origin for a request; `None` if its origin is not
    /// allowed, or if it has none.
    fn allowed(&self, request: &HeaderMap) -> Option<HeaderValue> {
        let origin = request.get(ORIGIN)?;
        match &self.origins {
            Origins::Any => Some(HeaderValue::from_static("*")),
            Origins::Listed(_) => self.lists(origin.as_bytes()).then(|| origin.clone()),
        }
    }

    /// Answers a preflight of an allowed origin; `None` for any other request.
    pub(crate) fn preflight(&self, method: &Method, request: &HeaderMap) -> Option<Response> {
        if method != Method::OPTIONS || !request.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return None;
        }
        self.allowed(request)?;

        let mut response = reply::no_content();
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, self.max_age.as_secs().into());
        Some(response)
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
            "https://*.example.org/",
        ] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_preflight_of_a_listed_origin_is_answered_and_no_other() {
        let cors = cors(&["https://app.example.org"]);
        let reply = cors.preflight(&Method::OPTIONS, &request("https://app.example.org")).unwrap();
        assert_eq!(reply.headers()[ACCESS_CONTROL_MAX_AGE], "600");
        assert!(reply.headers()[ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap().contains("Range"));

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
