//! The configuration of a client.

use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use rustls::pki_types::CertificateDer;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::transport::retry::RetryPolicy;
use crate::transport::tls;

/// The environment variable with the base URL, for [`Client::from_env`].
pub(crate) const URL_VARIABLE: &str = "FILESTORE_URL";
/// The environment variables with the API key, for [`Client::from_env`]. The first that is set
/// counts. The command line reads the first. The second is an older name.
pub(crate) const KEY_VARIABLES: [&str; 2] = ["FILESTORE_KEY", "FILESTORE_API_KEY"];
/// The environment variable with the path of a file that contains the API key. Counts if no
/// variable contains the key itself.
pub(crate) const KEY_FILE_VARIABLE: &str = "FILESTORE_KEY_FILE";

/// Configures a [`Client`]. Start with [`Client::builder`].
///
/// For example, set an API key, timeouts and retries:
///
/// ```no_run
/// use std::time::Duration;
/// use filestore_client::{Client, RetryPolicy};
///
/// # fn run() -> filestore_client::Result<()> {
/// let client = Client::builder("https://files.example.org/storage")?
///     .api_key("fsk_…")
///     .timeouts(Duration::from_secs(5), Duration::from_secs(30))
///     .retry(RetryPolicy::default().max_attempts(6))
///     .user_agent("gallery/1.4")
///     .build()?;
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
pub struct ClientBuilder {
    base: Url,
    unix_socket: Option<PathBuf>,
    api_key: Option<String>,
    connect_timeout: Duration,
    idle_timeout: Duration,
    reply_timeout: Duration,
    retry: RetryPolicy,
    user_agent: String,
    headers: HeaderMap,
    extra_roots: Vec<CertificateDer<'static>>,
    proxy: ProxyChoice,
    http: Option<reqwest::Client>,
}

/// The proxy for requests to the server.
enum ProxyChoice {
    /// The proxy from the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`). No proxy for a
    /// server on this machine.
    System,
    None,
    Given(Box<reqwest::Proxy>),
}

/// The configuration of a built client.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) base: Url,
    /// Base for URLs that the server returns as paths. `None` for a Unix socket, which other
    /// machines cannot reach.
    pub(crate) reachable_base: Option<Url>,
    /// Server name, for messages.
    pub(crate) peer: String,
    /// Headers of every request to the server, including the key.
    pub(crate) headers: HeaderMap,
    pub(crate) idle_timeout: Duration,
    pub(crate) reply_timeout: Duration,
    pub(crate) retry: RetryPolicy,
}

impl ClientBuilder {
    pub(crate) fn new(base_url: &str) -> Result<Self> {
        Ok(Self {
            base: parse_base(base_url)?,
            unix_socket: None,
            api_key: None,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_mins(1),
            reply_timeout: Duration::from_mins(5),
            retry: RetryPolicy::default(),
            user_agent: concat!("filestore-client/", env!("CARGO_PKG_VERSION")).to_owned(),
            headers: HeaderMap::new(),
            extra_roots: Vec::new(),
            proxy: ProxyChoice::System,
            http: None,
        })
    }

    /// Reads the URL and the key through `variable`, which represents the environment. An empty
    /// variable counts as absent.
    pub(crate) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let url = variable(URL_VARIABLE).ok_or_else(|| {
            Error::invalid(format!("{URL_VARIABLE} is not set: set it to the URL of the server"))
        })?;

        let builder = Self::new(&url)?;
        let key = match KEY_VARIABLES.into_iter().find_map(&variable) {
            Some(key) => Some(key),
            None => variable(KEY_FILE_VARIABLE).map(|path| read_key(&path)).transpose()?,
        };
        Ok(match key {
            Some(key) => builder.api_key(key),
            None => builder,
        })
    }

    /// Connects through this Unix socket, without a proxy. The base URL then sets only the `Host`
    /// header and the path prefix.
    #[cfg(unix)]
    #[must_use]
    pub fn unix_socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.unix_socket = Some(path.into());
        self
    }

    /// Sends this API key with every request to the server, and never to a storage provider.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Sets the timeout for connecting (default 10 s) and the idle timeout (default 60 s).
    ///
    /// The idle timeout limits the time without a single byte. A transfer as a whole has no limit.
    #[must_use]
    pub fn timeouts(mut self, connect: Duration, idle: Duration) -> Self {
        self.connect_timeout = connect;
        self.idle_timeout = idle;
        self
    }

    /// Sets the timeout for the reply to a complete upload (default 300 s).
    ///
    /// Before it replies, the server makes the bytes durable and might copy them to a slow
    /// provider.
    #[must_use]
    pub fn reply_timeout(mut self, reply: Duration) -> Self {
        self.reply_timeout = reply;
        self
    }

    /// Sets the retry policy.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets the `User-Agent` (default `filestore-client/<version>`).
    #[must_use]
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.user_agent = name.into();
        self
    }

    /// Sends these headers with every request to the server, and never to a storage provider.
    #[must_use]
    pub fn default_headers(mut self, headers: HeaderMap) -> Self {
        self.headers = headers;
        self
    }

    /// Trusts the certificates in `pem` in addition to the operating system's certificates.
    /// This applies to the server and to the storage providers.
    ///
    /// Fails with [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if `pem` contains no
    /// certificate.
    ///
    /// ```no_run
    /// # fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = filestore_client::Client::builder("https://files.internal")?
    ///     .extra_root_certificates(&std::fs::read("company-ca.pem")?)?
    ///     .build()?;
    /// # let _ = client;
    /// # Ok(())
    /// # }
    /// ```
    pub fn extra_root_certificates(mut self, pem: &[u8]) -> Result<Self> {
        self.extra_roots.extend(tls::certificates(pem)?);
        Ok(self)
    }

    /// Sends requests to the server through this proxy, and ignores the environment.
    ///
    /// Requests to storage providers still use the proxy from the environment.
    #[must_use]
    pub fn proxy(mut self, proxy: reqwest::Proxy) -> Self {
        self.proxy = ProxyChoice::Given(Box::new(proxy));
        self
    }

    /// Sends requests to the server without a proxy, and ignores the environment.
    #[must_use]
    pub fn no_proxy(mut self) -> Self {
        self.proxy = ProxyChoice::None;
        self
    }

    /// Sends requests to the server with your own HTTP client.
    ///
    /// Configure that client as follows:
    ///
    /// - Redirects must be off. Otherwise the client sends the API key to the storage provider.
    /// - Decompression of bodies must be off.
    /// - The overall timeout and the read timeout should be off, because they cut long transfers.
    ///
    /// Your client's connect timeout, proxy, certificates, user agent and socket replace the
    /// settings of this builder. The API key and [`default_headers`](Self::default_headers) still
    /// apply. For redirects to storage providers, the builder creates a separate client.
    #[must_use]
    pub fn http_client(mut self, client: reqwest::Client) -> Self {
        self.http = Some(client);
        self
    }

    /// Creates the client. This sends no request.
    ///
    /// Fails with [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the API key or the user
    /// agent is not a valid header value.
    pub fn build(mut self) -> Result<Client> {
        let peer = match (&self.unix_socket, &self.http) {
            (Some(path), None) => format!("unix:{}", path.display()),
            _ => self.base.as_str().trim_end_matches('/').to_owned(),
        };
        let mut headers = std::mem::take(&mut self.headers);
        headers.extend(authorization(self.api_key.as_deref())?);

        let tls = tls::client_config(std::mem::take(&mut self.extra_roots))?;
        let bare = self.transport(tls.clone());
        let bare = bare.build().map_err(|error| Error::transport(&peer, error))?;
        let http = match self.http.take() {
            Some(given) => given,
            None => self.own_http(tls).build().map_err(|error| Error::transport(&peer, error))?,
        };

        let settings = Settings {
            reachable_base: self.unix_socket.is_none().then(|| self.base.clone()),
            base: self.base,
            peer,
            headers,
            idle_timeout: self.idle_timeout,
            reply_timeout: self.reply_timeout,
            retry: self.retry,
        };
        Ok(Client::assemble(http, bare, settings))
    }

    /// Starts an HTTP client with the settings that both clients share.
    fn transport(&self, tls: rustls::ClientConfig) -> reqwest::ClientBuilder {
        // This crate follows redirects itself: only downloads have them, and they need no key.
        reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(Policy::none())
            .connect_timeout(self.connect_timeout)
            .tcp_keepalive(Duration::from_secs(30))
    }

    /// Starts the HTTP client for requests to the server.
    fn own_http(&mut self, tls: rustls::ClientConfig) -> reqwest::ClientBuilder {
        let http = self.transport(tls).user_agent(std::mem::take(&mut self.user_agent));
        let http = match std::mem::replace(&mut self.proxy, ProxyChoice::System) {
            // No proxy can reach this machine's own loopback addresses.
            ProxyChoice::System if is_loopback(&self.base) => http.no_proxy(),
            ProxyChoice::System => http,
            ProxyChoice::None => http.no_proxy(),
            ProxyChoice::Given(proxy) => http.proxy(*proxy),
        };

        #[cfg(unix)]
        let http = match &self.unix_socket {
            Some(path) => http.unix_socket(path.as_path()),
            None => http,
        };
        http
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("base", &self.base.as_str())
            .field("unix_socket", &self.unix_socket)
            .field("api_key", &self.api_key.as_ref().map(|_| "…"))
            .finish_non_exhaustive()
    }
}

/// Reads a key from a file with a single line.
fn read_key(path: &str) -> Result<String> {
    let text = fs::read_to_string(path)
        .map_err(|error| Error::invalid(format!("cannot read the API key in {path}: {error}")))?;
    let key = text.trim();
    if key.is_empty() || key.contains(char::is_whitespace) {
        let message = format!("the file must contain one API key and no other text: {path}");
        return Err(Error::invalid(message));
    }
    Ok(key.to_owned())
}

fn parse_base(text: &str) -> Result<Url> {
    let mut base = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| {
            Error::invalid(format!("the base URL must be http://… or https://…: {text}"))
        })?;

    if !base.username().is_empty() || base.password().is_some() {
        return Err(Error::invalid(
            "the base URL must not contain a user or password: use an API key",
        ));
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(Error::invalid(format!("the base URL must end with its path: {base}")));
    }

    let path = base.path().trim_end_matches('/').to_owned();
    if path.ends_with(filestore_core::api::PREFIX) {
        return Err(Error::invalid(format!(
            "the base URL must not contain {}: {base}",
            filestore_core::api::PREFIX
        )));
    }
    base.set_path(&path);
    Ok(base)
}

/// Returns true if a URL names this machine (RFC 6761 section 6.3 for names).
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

fn authorization(key: Option<&str>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
            Error::invalid("the API key contains a character that a header cannot contain")
        })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_without_a_scheme_is_refused_in_words() {
        for base in ["localhost:8080", "127.0.0.1:8080", "ftp://host/", ""] {
            let error = parse_base(base).unwrap_err();
            assert!(error.to_string().contains("must be http://"), "{error}");
        }
    }

    #[test]
    fn a_password_in_the_base_url_is_refused_and_not_shown() {
        let error = parse_base("http://me:secret@host/").unwrap_err();
        assert!(!format!("{error:?}").contains("secret"));
    }

    #[test]
    fn the_api_prefix_does_not_belong_to_the_base() {
        assert!(parse_base("http://host/x/api/v1/").is_err());
        assert_eq!(parse_base("http://host/x/").unwrap().as_str(), "http://host/x");
    }

    #[test]
    fn a_server_on_this_machine_is_recognized() {
        for url in [
            "http://127.0.0.1:8080",
            "http://127.9.9.9",
            "http://[::1]:8080",
            "http://[::ffff:127.0.0.1]",
            "http://localhost",
            "http://files.localhost.:8080",
        ] {
            assert!(is_loopback(&Url::parse(url).unwrap()), "{url}");
        }
        for url in ["http://10.0.0.1", "http://localhost.example.org", "http://[::2]"] {
            assert!(!is_loopback(&Url::parse(url).unwrap()), "{url}");
        }
    }

    #[test]
    fn the_environment_names_server_and_key() {
        let variables = |name: &str| match name {
            "FILESTORE_URL" => Some("http://host/x/".to_owned()),
            "FILESTORE_API_KEY" => Some("fsk_1".to_owned()),
            _ => None,
        };
        let builder = ClientBuilder::from_variables(variables).unwrap();
        assert_eq!(builder.base.as_str(), "http://host/x");
        assert_eq!(builder.api_key.as_deref(), Some("fsk_1"));

        let error = ClientBuilder::from_variables(|_| Some(String::new())).unwrap_err();
        assert!(error.to_string().contains("FILESTORE_URL is not set"), "{error}");
    }

    /// Returns the key that a client takes from an environment with these variables.
    fn key_of(variables: &[(&str, &str)]) -> Result<Option<String>> {
        let builder = ClientBuilder::from_variables(|name| {
            let given = variables.iter().find(|(given, _)| *given == name);
            let server = (name == URL_VARIABLE).then_some("http://host");
            given.map(|(_, value)| *value).or(server).map(str::to_owned)
        });
        Ok(builder?.api_key)
    }

    #[test]
    fn the_variables_of_the_command_line_name_the_key_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let file = (KEY_FILE_VARIABLE, path.to_str().unwrap());
        std::fs::write(&path, "fsk_file\n").unwrap();

        let (new, old) = (("FILESTORE_KEY", "fsk_new"), ("FILESTORE_API_KEY", "fsk_old"));
        assert_eq!(key_of(&[file, old, new]).unwrap().as_deref(), Some("fsk_new"));
        assert_eq!(key_of(&[file, old, (new.0, "")]).unwrap().as_deref(), Some("fsk_old"));
        assert_eq!(key_of(&[file]).unwrap().as_deref(), Some("fsk_file"));
        assert_eq!(key_of(&[]).unwrap(), None);
    }

    #[test]
    fn a_key_file_that_contains_no_key_is_refused_and_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let file = (KEY_FILE_VARIABLE, path.to_str().unwrap());
        for (text, problem) in
            [(None, "cannot read the API key"), (Some("two words"), "one API key")]
        {
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            let error = key_of(&[file]).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains(file.1), "{error}");
            assert!(!error.contains("two words"), "{error}");
        }
    }

    #[test]
    fn a_text_without_a_certificate_is_refused() {
        for pem in ["", "hello", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
            let builder = ClientBuilder::new("https://host").unwrap();
            assert!(builder.extra_root_certificates(pem.as_bytes()).is_err(), "{pem}");
        }
    }

    #[test]
    fn the_key_is_in_no_debug_output() {
        let builder = ClientBuilder::new("http://host").unwrap().api_key("fsk_secret");
        assert!(!format!("{builder:?}").contains("fsk_secret"));
        assert!(!format!("{:?}", builder.build().unwrap()).contains("fsk_secret"));
    }
}
