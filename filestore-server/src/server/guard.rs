//! The guard of an open server: refuses requests by the host they name and the place they come
//! from.
//!
//! # Purpose
//!
//! Whoever reaches an open server may do everything. A loopback address keeps other machines
//! out, but not the pages of strangers in a browser on this one:
//!
//! - a page may point its own name to 127.0.0.1 (DNS rebinding), and then its scripts share an origin
//!   with the server. Such requests name a host that is not ours, and are answered 421;
//! - a page may send forms and simple requests across sites. Browsers say so in `Sec-Fetch-Site` and
//!   `Origin`, and what such requests would change is refused with 403.
//!
//! A proxy in front may authenticate users, who are no administrators: `/admin` answers on the socket,
//! and over TCP only to this machine. So do the metrics.
//!
//! The admin socket is not guarded: its file mode is.

use std::net::{IpAddr, SocketAddr};

use filestore_core::{Error, ErrorKind};
use http::header::{FORWARDED, HOST, HeaderName, ORIGIN, VIA};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Uri};

use super::StartError;
use crate::config::Config;
use crate::listen::Peer;
use crate::reply::Failure;
use crate::request::call::Call;
use crate::routes::table::Route;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The headers that say that a proxy has passed the request on. The first one names the client.
const SIGNS_OF_A_PROXY: [HeaderName; 4] = [
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-real-ip"),
    FORWARDED,
    VIA,
];

/// The hosts and origins that are the server's own.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    addresses: Vec<IpAddr>,
    /// True if the server listens on all addresses of the machine. An address cannot be rebound, so
    /// each is as good as the next.
    is_any_address: bool,
    names: Vec<String>,
    /// The authority of the public URL, if there is one.
    public: Option<String>,
}

impl Guard {
    /// Makes the guard of a server with a checked configuration.
    pub(super) fn of(config: &Config) -> Self {
        let own = config.listen.ip().to_canonical();
        let public = public_uri(config);
        let authority = public.as_ref().and_then(Uri::authority).map(ToString::to_string);

        let mut guard = Self {
            addresses: vec![own],
            is_any_address: own.is_unspecified(),
            names: Vec::new(),
            public: authority,
        };

        let public_host = public.as_ref().and_then(Uri::host).map(str::to_owned);
        for host in config.allowed_hosts.iter().cloned().chain(public_host) {
            match address_of(&host) {
                Some(address) => guard.addresses.push(address),
                None => guard.names.push(host),
            }
        }
        guard
    }

    /// Refuses a request that did not mean to reach this server, or not in this way.
    pub(super) fn check(&self, call: &Call, parts: &Parts) -> Result<(), Failure> {
        let Peer::Tcp(peer) = call.peer else { return Ok(()) };
        let named = authority_of(&parts.uri, &call.headers);
        if named.is_some_and(|authority| !self.is_own_host(host_of(authority))) {
            return Err(Failure::Misdirected);
        }

        // HTTP/1.0 may name no host. All else holds for such requests too.
        let authority = named.unwrap_or_default();
        let origin = call.headers.get(ORIGIN);
        let is_listed = origin.is_some_and(|origin| call.app.config.cors.lists(origin.as_bytes()));
        if !call.method.is_safe() && !is_listed && self.is_cross_site(&call.headers, authority) {
            return Err(forbidden("a page of another site may change nothing here"));
        }
        if is_administration(call.route, parts.uri.path()) && !self.is_local(call, peer, authority)
        {
            return Err(forbidden(
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

    /// Tests whether a browser says that another site sends the request. Programs say nothing.
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

    /// Tests whether a client of this machine sends the request, and no proxy passes it on for one that
    /// is elsewhere. A proxy may pass requests on without a sign: where one publishes the server, only
    /// the client's address in the `X-Forwarded-For` of a trusted proxy tells.
    fn is_local(&self, call: &Call, peer: SocketAddr, authority: &str) -> bool {
        let proxies = &call.app.config.trusted_proxies;
        let is_trusted = proxies.iter().any(|range| range.contains(peer.ip().to_canonical()));
        let is_told = is_trusted && call.headers.contains_key(&SIGNS_OF_A_PROXY[0]);

        let is_passed_on = SIGNS_OF_A_PROXY.iter().any(|sign| call.headers.contains_key(sign));
        let is_published =
            self.public.as_deref().is_some_and(|public| !is_loopback_host(host_of(public)));
        let host = host_of(authority);
        let is_public =
            self.public.as_deref().is_some_and(|public| host_of(public).eq_ignore_ascii_case(host));

        call.client.is_some_and(|client| client.is_loopback())
            && (is_told || !(is_passed_on || is_published))
            && (!is_public || is_loopback_host(host))
    }
}

/// Refuses a configuration by which others would reach a server without keys. A public URL counts as
/// the server's own address: what it leads to is in front for the sake of others.
pub(super) fn check_exposure(config: &Config) -> Result<(), StartError> {
    let exposed = if config.listen.ip().to_canonical().is_loopback() {
        let public = config.public_url.as_ref();
        let uri = public_uri(config);
        let is_others =
            uri.as_ref().and_then(Uri::host).is_some_and(|host| !is_loopback_host(host));
        public.filter(|_| is_others).map(|url| StartError::Published {
            url: url.clone(),
            data_dir: config.data_dir.clone(),
        })
    } else {
        Some(StartError::Exposed { address: config.listen, data_dir: config.data_dir.clone() })
    };

    match exposed {
        Some(refused) if !config.insecure_no_auth => Err(refused),
        Some(_) => {
            tracing::warn!(listen = %config.listen, public_url = config.public_url, "no authentication: whoever reaches this server can read and delete all files");
            Ok(())
        }
        None => Ok(()),
    }
}

fn public_uri(config: &Config) -> Option<Uri> {
    config.public_url.as_deref().and_then(|url| url.parse().ok())
}

fn forbidden(message: &str) -> Failure {
    Error::new(ErrorKind::Forbidden, message).into()
}

/// Tests whether the request is for administration: by its route, or where none serves it by its path,
/// with the prefix of a public URL or without.
fn is_administration(route: Option<&Route>, path: &str) -> bool {
    if let Some(route) = route {
        return route.template.starts_with("/admin/") || route.template == "/metrics";
    }
    let path = path.trim_end_matches('/');
    path.contains("/api/v1/admin/") || path.ends_with("/api/v1/admin") || path.ends_with("/metrics")
}

/// Returns the host and port that the request names: those of an absolute target, which beat the Host
/// header (RFC 9112 section 3.2.2). `None` for HTTP/1.0 without a Host, which no browser sends.
fn authority_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    match uri.authority() {
        Some(authority) => Some(authority.as_str()),
        // A Host that is no text is nobody's.
        None => headers.get(HOST).map(|host| host.to_str().unwrap_or_default()),
    }
}

/// Takes the host of `host:port` or `[address]:port`, without brackets and without the dot that may end
/// a whole name.
fn host_of(authority: &str) -> &str {
    if let Some((address, _)) = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    let host = authority.split_once(':').map_or(authority, |(host, _)| host);
    host.strip_suffix('.').unwrap_or(host)
}

/// Takes away the port that is the scheme's own.
fn without_port<'a>(authority: &'a str, scheme: &str) -> &'a str {
    let port = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
    authority.strip_suffix(port).unwrap_or(authority)
}

fn address_of(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok().map(|address: IpAddr| address.to_canonical())
}

fn is_loopback_host(host: &str) -> bool {
    address_of(host)
        .map_or_else(|| host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::request::base::Base;
    use crate::routes::table;

    fn guard(change: impl FnOnce(&mut Config)) -> Guard {
        let mut config = Config::default();
        change(&mut config);
        Guard::of(&config)
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
    fn the_host_is_taken_from_what_the_request_names() {
        for (authority, host) in [
            ("localhost:8080", "localhost"),
            ("localhost", "localhost"),
            ("localhost.:8080", "localhost"),
            ("[::1]:8080", "::1"),
            ("[::1]", "::1"),
            ("localhost@evil.example", "localhost@evil.example"),
            ("", ""),
        ] {
            assert_eq!(host_of(authority), host);
        }

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
        let of = |path: &str| is_administration(table::find(&Method::GET, &base, path), path);
        assert!(of("/api/v1/admin/status") && of("/metrics/") && of("/api/v1/admin/nowhere"));
        assert!(!of("/api/v1/files/metrics"), "the route decides where there is one");
    }

    #[test]
    fn a_server_without_keys_that_others_reach_is_refused() {
        let start = |listen: &str, url: Option<&str>| {
            let mut config = Config::new(listen.parse().unwrap(), "/x");
            config.public_url = url.map(str::to_owned);
            let refused = check_exposure(&config).err();
            config.insecure_no_auth = true;
            check_exposure(&config).unwrap();
            refused
        };

        assert!(start("127.0.0.1:1", None).is_none());
        assert!(start("[::1]:1", Some("http://localhost:8080/a")).is_none());
        assert!(start("127.0.0.1:1", Some("http://[::1]:8080")).is_none());
        assert!(matches!(start("0.0.0.0:1", None), Some(StartError::Exposed { .. })));
        let published = start("127.0.0.1:1", Some("https://files.example.org")).unwrap();
        assert!(published.to_string().contains("https://files.example.org"), "{published}");
    }
}
