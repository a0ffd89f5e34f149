//! The guard of an open server: refuses requests because of their host name or their source.
//!
//! # Purpose
//!
//! Anyone who can reach an open server has all rights. A loopback address excludes other machines, but not
//! web pages in a browser on this machine:
//!
//! - A page can point its own name to 127.0.0.1 (DNS rebinding). The scripts of that page then share an
//!   origin with the server. Such requests name a foreign host, and get status 421.
//! - A page can send forms and simple requests to other sites. Browsers mark them with `Sec-Fetch-Site` and
//!   `Origin`. If such a request would make a change, it gets status 403.
//!
//! A proxy can authenticate users who are not administrators. Therefore `/admin` and the metrics are
//! available only on the socket, and over TCP only to this machine.

use std::net::{IpAddr, SocketAddr};

use http::header::{FORWARDED, HOST, HeaderName, ORIGIN, VIA};
use http::{HeaderMap, HeaderValue, Method, Uri};

use super::cors::Cors;
use crate::http::forwarded::{ClientAddress, IpRange};
use crate::http::host::{address_of, host_of, is_loopback, without_port};
use crate::route_table::Route;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The headers that show that a proxy forwarded the request. The first one names the client.
const SIGNS_OF_A_PROXY: [HeaderName; 8] = [
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("cf-connecting-ip"),
    HeaderName::from_static("true-client-ip"),
    FORWARDED,
    VIA,
];

/// The server's own hosts and origins.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    addresses: Vec<IpAddr>,
    /// True if the server listens on all addresses. Rebinding works only with names, so every address is
    /// accepted.
    is_any_address: bool,
    names: Vec<String>,
    /// The authority of the public URL, if there is one.
    public: Option<String>,
    /// The proxies with a trusted `X-Forwarded-For`.
    proxies: Vec<IpRange>,
    /// The origins with pages that can make changes.
    cors: Cors,
}

/// The facts about a request that the guard checks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The other end of the connection, if it is known.
    pub(crate) peer: Option<SocketAddr>,
    /// The client, seen through trusted proxies.
    pub(crate) client: ClientAddress,
    /// The method of the request.
    pub(crate) method: &'a Method,
    /// The target as it was sent.
    pub(crate) uri: &'a Uri,
    /// The request's headers.
    pub(crate) headers: &'a HeaderMap,
    /// The row in the route table, if any.
    pub(crate) route: Option<&'static Route>,
}

/// The reason of a refusal by the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unwanted {
    /// The request names a host that does not belong to the server.
    Misdirected,
    /// The source of the request lacks the right to it. The text is the reason.
    Forbidden(&'static str),
}

impl Guard {
    /// Creates the guard of a server at its `own` address, if it has one. `public` is its public URL, and
    /// `hosts` are its further host names.
    pub(crate) fn new(own: Option<IpAddr>, public: Option<&str>, hosts: &[String]) -> Self {
        let own = own.map(|address| address.to_canonical());
        let public: Option<Uri> = public.and_then(|url| url.parse().ok());

        let mut guard = Self {
            addresses: own.into_iter().collect(),
            is_any_address: own.is_some_and(|address| address.is_unspecified()),
            public: public.as_ref().and_then(Uri::authority).map(ToString::to_string),
            ..Self::default()
        };

        let public_host = public.as_ref().and_then(Uri::host).map(str::to_owned);
        for host in hosts.iter().cloned().chain(public_host) {
            match address_of(&host) {
                Some(address) => guard.addresses.push(address),
                None => guard.names.push(host),
            }
        }
        guard
    }

    /// Trusts these proxies, and allows pages of these origins to make changes.
    pub(crate) fn trusting(self, proxies: &[IpRange], cors: &Cors) -> Self {
        Self { proxies: proxies.to_vec(), cors: cors.clone(), ..self }
    }

    /// Refuses a request that was meant for another server, or that another site sent.
    pub(crate) fn check(&self, asked: &Asked<'_>) -> Result<(), Unwanted> {
        let named = authority_of(asked.uri, asked.headers);
        if named.is_some_and(|authority| !self.is_own_host(host_of(authority))) {
            return Err(Unwanted::Misdirected);
        }

        // HTTP/1.0 may name no host. All else holds for such requests too.
        let authority = named.unwrap_or_default();
        let origin = asked.headers.get(ORIGIN);
        let is_listed = origin.is_some_and(|origin| self.cors.lists(origin.as_bytes()));
        if !asked.method.is_safe() && !is_listed && self.is_cross_site(asked.headers, authority) {
            return Err(Unwanted::Forbidden("a page of another site may change nothing here"));
        }
        if is_administration(asked.route, asked.uri.path()) && !self.is_local(asked, authority) {
            return Err(Unwanted::Forbidden(
                "without keys, administration is for this machine: use the admin socket or loopback",
            ));
        }
        Ok(())
    }

    fn is_own_host(&self, host: &str) -> bool {
        match address_of(host) {
            Some(address) => {
                address.is_loopback() || self.is_any_address || self.addresses.contains(&address)
            }
            None => {
                host.eq_ignore_ascii_case("localhost")
                    || self.names.iter().any(|name| name.eq_ignore_ascii_case(host))
            }
        }
    }

    /// Returns true if a browser marks the request as sent by another site. Other programs send no such mark.
    fn is_cross_site(&self, headers: &HeaderMap, authority: &str) -> bool {
        let mut sites = headers.get_all(SEC_FETCH_SITE).iter().peekable();
        if sites.peek().is_some() {
            return !sites.all(|site| matches!(site.as_bytes(), b"same-origin" | b"none"));
        }

        // Browsers that do not know Sec-Fetch-Site, and all of them where there is no TLS.
        headers.get_all(ORIGIN).iter().any(|origin| !self.is_own_origin(origin, authority))
    }

    fn is_own_origin(&self, origin: &HeaderValue, authority: &str) -> bool {
        let parsed = origin.to_str().ok().and_then(|text| text.split_once("://"));
        let Some((scheme, from)) = parsed else { return false };

        let same =
            |own: &str| without_port(own, scheme).eq_ignore_ascii_case(without_port(from, scheme));
        same(authority) || self.public.as_deref().is_some_and(same)
    }

    /// Returns true if a client on this machine sent the request, and no proxy forwarded it for a remote
    /// client. A proxy can forward requests without a mark. If a proxy publishes the server, only the
    /// client's address in the `X-Forwarded-For` of a trusted proxy counts. A proxy that writes `Forwarded`
    /// (RFC 7239), which this server does not read, might have forwarded the client's own `X-Forwarded-For`.
    fn is_local(&self, asked: &Asked<'_>, authority: &str) -> bool {
        let headers = asked.headers;
        let is_trusted = asked.peer.is_some_and(|peer| {
            let peer = peer.ip().to_canonical();
            self.proxies.iter().any(|range| range.contains(peer))
        });
        let is_told = is_trusted
            && headers.contains_key(&SIGNS_OF_A_PROXY[0])
            && !headers.contains_key(FORWARDED);

        let is_passed_on = SIGNS_OF_A_PROXY.iter().any(|sign| headers.contains_key(sign));
        let is_published =
            self.public.as_deref().is_some_and(|public| !is_loopback(host_of(public)));
        let host = host_of(authority);
        let is_public =
            self.public.as_deref().is_some_and(|public| host_of(public).eq_ignore_ascii_case(host));

        asked.client.is_loopback()
            && (is_told || !(is_passed_on || is_published))
            && (!is_public || is_loopback(host))
    }
}

/// Returns true if the request is for administration. Checks its route, or its path if there is no route,
/// with or without the public prefix.
fn is_administration(route: Option<&Route>, path: &str) -> bool {
    if let Some(route) = route {
        return route.template.starts_with("/admin/") || route.template == "/metrics";
    }
    let path = path.trim_end_matches('/');
    path.contains("/api/v1/admin/") || path.ends_with("/api/v1/admin") || path.ends_with("/metrics")
}

/// Returns the host and port in the request. An absolute target has priority over the Host header (RFC 9112
/// section 3.2.2). `None` for HTTP/1.0 without a Host, which no browser sends.
fn authority_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    match uri.authority() {
        Some(authority) => Some(authority.as_str()),
        // A Host that is no text is nobody's.
        None => headers.get(HOST).map(|host| host.to_str().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::http::base::Base;
    use crate::route_table;

    fn guard(change: impl FnOnce(&mut Config)) -> Guard {
        let mut config = Config::default();
        change(&mut config);
        let public = config.public_url.as_deref();
        Guard::new(Some(config.listen.ip()), public, &config.allowed_hosts)
    }

    #[test]
    fn loopback_and_configured_hosts_are_the_servers_own() {
        let plain = guard(|_| ());
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]
        {
            assert!(plain.is_own_host(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "10.0.0.1",
            "0.0.0.0",
            "127.1",
        ] {
            assert!(!plain.is_own_host(host), "{host}");
        }

        let named = guard(|config| {
            config.listen = "10.0.0.1:80".parse().unwrap();
            config.public_url = Some("https://Files.example.org:8443/a".into());
            config.allowed_hosts = vec!["files.internal".into(), "2001:db8::1".into()];
        });
        for host in ["10.0.0.1", "files.example.org", "FILES.internal", "2001:db8::1", "localhost"]
        {
            assert!(named.is_own_host(host), "{host}");
        }
        assert!(!named.is_own_host("10.0.0.2"));
    }

    #[test]
    fn a_server_on_all_addresses_is_each_of_them_and_no_name() {
        let any = guard(|config| config.listen = "[::]:8080".parse().unwrap());
        assert!(any.is_own_host("192.168.7.7") && any.is_own_host("fe80::1"));
        assert!(!any.is_own_host("evil.example"));
    }

    #[test]
    fn an_absolute_target_beats_the_host_header() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("localhost"));
        let absolute = Uri::from_static("http://evil.example/x");
        assert_eq!(authority_of(&absolute, &headers), Some("evil.example"));
        assert_eq!(authority_of(&Uri::from_static("/x"), &headers), Some("localhost"));
    }

    #[test]
    fn a_browser_tells_which_site_sends_a_request() {
        let guard = guard(|config| config.public_url = Some("https://files.example.org".into()));
        let is_cross_site = |pairs: &[(HeaderName, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(name, value.parse().unwrap());
            }
            guard.is_cross_site(&headers, "localhost:8080")
        };

        for (site, refused) in [
            ("same-origin", false),
            ("none", false),
            ("same-site", true),
            ("cross-site", true),
            ("", true),
        ] {
            assert_eq!(is_cross_site(&[(SEC_FETCH_SITE, site)]), refused, "{site}");
        }
        for (origin, refused) in [
            ("http://localhost:8080", false),
            ("http://LOCALHOST:8080", false),
            ("https://files.example.org", false),
            ("https://files.example.org:443", false),
            ("http://localhost:8081", true),
            ("http://localhost", true),
            ("https://evil.example", true),
            ("null", true),
        ] {
            assert_eq!(is_cross_site(&[(ORIGIN, origin)]), refused, "{origin}");
        }
        assert!(!is_cross_site(&[]), "programs say nothing");
    }

    #[test]
    fn administration_is_told_by_its_path() {
        for path in [
            "/api/v1/admin/status",
            "/base/api/v1/admin/keys",
            "/api/v1/admin",
            "/api/v1/admin/",
            "/metrics",
            "/metrics/",
            "/base/metrics//",
        ] {
            assert!(is_administration(None, path), "{path}");
        }
        assert!(!is_administration(None, "/api/v1/files/admin"));

        let base = Base::default();
        let of = |path: &str| is_administration(route_table::find(&Method::GET, &base, path), path);
        assert!(of("/api/v1/admin/status") && of("/metrics/") && of("/api/v1/admin/nowhere"));
        assert!(!of("/api/v1/files/metrics"), "the route decides where there is one");
    }
}
