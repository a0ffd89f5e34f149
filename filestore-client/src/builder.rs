//! How a client is configured.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::retry::RetryPolicy;
use crate::tls;

/// Configures a [`Client`].
///
/// ```no_run
/// use std::time::Duration;
/// use filestore_client::{Client, RetryPolicy};
///
/// # fn run() -> filestore_client::Result<()> {
/// let client = Client::builder("https://files.example.org/storage")?
///     .api_key("fsk_…")
///     .timeouts(Duration::from_secs(5), Duration::from_secs(30))
///     .retry(RetryPolicy { max_attempts: 6, ..RetryPolicy::default() })
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
}

/// What a built client keeps of its configuration.
pub(crate) struct Settings {
    pub(crate) base: Url,
    /// The server as people know it, for messages.
    pub(crate) peer: String,
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
        })
    }

    /// Connects through this Unix socket; the base URL then only gives the `Host` and the path
    /// prefix, and proxies are not used.
    #[cfg(unix)]
    #[must_use]
    pub fn unix_socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.unix_socket = Some(path.into());
        self
    }

    /// Sends this key with every request to the server (and never to anybody else).
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// How long a connection may take (10 s), and how long a transfer may stand still (60 s). No
    /// limit is on a transfer as a whole: as long as bytes flow, it goes on.
    #[must_use]
    pub fn timeouts(mut self, connect: Duration, idle: Duration) -> Self {
        self.connect_timeout = connect;
        self.idle_timeout = idle;
        self
    }

    /// How long the server may think after it has the whole of an upload (300 s): it makes the
    /// bytes durable, and may pass them on to a slow provider, before it answers.
    #[must_use]
    pub fn reply_timeout(mut self, reply: Duration) -> Self {
        self.reply_timeout = reply;
        self
    }

    /// How failed calls are repeated.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// The `User-Agent`; `filestore-client/<version>` otherwise.
    #[must_use]
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.user_agent = name.into();
        self
    }

    /// The client. Nothing is sent yet. Fails with [`ErrorKind::Invalid`](crate::ErrorKind) for a
    /// key or user agent that no header can hold.
    pub fn build(self) -> Result<Client> {
        // Redirects are followed by hand: only downloads have any, and those go out bare.
        let tls = tls::client_config()?;
        let bare = reqwest::Client::builder()
            .tls_backend_preconfigured(tls.clone())
            .redirect(Policy::none())
            .connect_timeout(self.connect_timeout)
            .tcp_keepalive(Duration::from_secs(30));
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(Policy::none())
            .connect_timeout(self.connect_timeout)
            .tcp_keepalive(Duration::from_secs(30))
            .user_agent(self.user_agent)
            .default_headers(authorization(self.api_key.as_deref())?);
        #[cfg(unix)]
        let http = match &self.unix_socket {
            Some(path) => http.unix_socket(path.as_path()),
            None => http,
        };
        let peer = match &self.unix_socket {
            Some(path) => format!("unix:{}", path.display()),
            None => self.base.as_str().trim_end_matches('/').to_owned(),
        };
        let settings = Settings {
            base: self.base,
            peer,
            idle_timeout: self.idle_timeout,
            reply_timeout: self.reply_timeout,
            retry: self.retry,
        };
        let built = |builder: reqwest::ClientBuilder| {
            builder.build().map_err(|error| Error::transport(&settings.peer, error))
        };
        let (http, bare) = (built(http)?, built(bare)?);
        Ok(Client::assemble(http, bare, settings))
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

fn parse_base(text: &str) -> Result<Url> {
    let mut base = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| {
            Error::invalid(format!("the base URL must be http://… or https://…: {text}"))
        })?;
    if !base.username().is_empty() || base.password().is_some() {
        return Err(Error::invalid(
            "the base URL must not hold a user or password: give an API key",
        ));
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(Error::invalid(format!("the base URL must end with its path: {base}")));
    }
    let path = base.path().trim_end_matches('/').to_owned();
    if path.ends_with(filestore_core::api::PREFIX) {
        return Err(Error::invalid(format!(
            "the base URL ends before {}: {base}",
            filestore_core::api::PREFIX
        )));
    }
    base.set_path(&path);
    Ok(base)
}

fn authorization(key: Option<&str>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
            .map_err(|_| Error::invalid("the API key holds a character that no header can hold"))?;
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
    fn the_key_is_in_no_debug_output() {
        let builder = ClientBuilder::new("http://host").unwrap().api_key("fsk_secret");
        assert!(!format!("{builder:?}").contains("fsk_secret"));
        assert!(!format!("{:?}", builder.build().unwrap()).contains("fsk_secret"));
    }
}
