//! The address of a PostgreSQL database, and the settings for its use.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::domain::config::Durability;
use crate::domain::error::{Error, ErrorKind, Result};

/// The default schema of a store.
const SCHEMA: &str = "filestore";

/// The minimum time after which a server can count as gone. Servers report twice a second that they are
/// alive.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Parameters of an address that filestore interprets itself. tokio-postgres knows only libpq's three oldest
/// modes, and no certificate files.
const SSL_MODE: &str = "sslmode";
const SSL_ROOT: &str = "sslrootcert";

/// The address of a PostgreSQL database, and the settings for its use. `Debug` hides the password.
#[derive(Clone)]
#[non_exhaustive]
pub struct PostgresOptions {
    pub(in crate::metadata::postgres) server: Config,
    /// A file with trusted certificates, in addition to the operating system's.
    pub(in crate::metadata::postgres) root_certificates: Option<PathBuf>,
    /// The schema of the tables. The store creates a missing schema.
    pub schema: String,
    /// The maximum number of connections.
    pub connections: usize,
    /// The maximum duration of a statement.
    pub statement_timeout: Duration,
    /// The maximum wait for a lock.
    pub lock_timeout: Duration,
    /// The maximum wait for a connection.
    pub connect_timeout: Duration,
    /// The silence after which a server counts as gone. Then other servers end its work.
    pub server_timeout: Duration,
    /// True if one of the connections is used by a watch (`watch`).
    pub(in crate::metadata::postgres) is_watched: bool,
    /// The faults that a committed change survives. With [`Durability::Full`], a database server with
    /// `synchronous_commit` off is refused. A server with `fsync` or `full_page_writes` off is always
    /// refused.
    pub durability: Durability,
}

impl PostgresOptions {
    /// Parses an address: `postgres://USER@HOST:PORT/DATABASE?PARAMETERS`. TLS is required for all hosts
    /// except this machine, unless `sslmode` sets another mode. With TLS, the server's certificate and name
    /// are always verified.
    pub fn new(address: &str) -> Result<Self> {
        // libpq's other form, `host=… password=…`, would hide a password from those who look for one.
        if !address.starts_with("postgres://") && !address.starts_with("postgresql://") {
            return Err(malformed());
        }
        let (address, tls) = split_tls(address);
        // Not with the parser's words: they may quote a part of a password.
        let mut server: Config = address.parse().map_err(|_| malformed())?;
        if server.get_hosts().is_empty() {
            return Err(malformed());
        }

        server.ssl_mode(match tls.mode.as_deref() {
            None if is_on_this_machine(&server) => SslMode::Disable,
            None | Some("require" | "verify-full") => SslMode::Require,
            Some("prefer") => SslMode::Prefer,
            Some("disable") => SslMode::Disable,
            Some(_) => {
                let message = "sslmode is one of disable, prefer, require, verify-full";
                return Err(Error::new(ErrorKind::Unusable, message));
            }
        });
        if server.get_application_name().is_none() {
            server.application_name("filestore");
        }
        // Of several hosts, or addresses of one, the one that takes writes: a standby shows what was true a
        // while ago.
        server.target_session_attrs(TargetSessionAttrs::ReadWrite);
        // A server that is gone without a word is noticed within half a minute.
        server
            .keepalives_idle(Duration::from_secs(10))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3)
            .tcp_user_timeout(Duration::from_secs(25));
        Ok(Self {
            server,
            root_certificates: tls.root.map(PathBuf::from),
            schema: SCHEMA.to_owned(),
            connections: 16,
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            server_timeout: Duration::from_secs(30),
            is_watched: false,
            durability: Durability::Full,
        })
    }

    /// Sets the password. The new password replaces a password in the address.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.server.password(password);
        self
    }

    /// Sets the schema: a lower-case letter, followed by lower-case letters, digits and underscores.
    #[must_use]
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets the maximum number of connections.
    #[must_use]
    pub fn with_connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets the faults that a committed change survives.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the silence after which a server counts as gone.
    #[must_use]
    pub fn with_server_timeout(mut self, timeout: Duration) -> Self {
        self.server_timeout = timeout;
        self
    }

    /// Reserves one of the connections for a watch.
    #[must_use]
    pub(crate) fn watched(mut self) -> Self {
        self.is_watched = true;
        self
    }

    /// Returns the most connections that calls have.
    pub(in crate::metadata::postgres) fn pooled(&self) -> usize {
        self.connections - usize::from(self.is_watched)
    }

    /// Returns the number of hosts that are tried for a connection.
    pub(super) fn hosts(&self) -> u32 {
        u32::try_from(self.server.get_hosts().len()).unwrap_or(1).max(1)
    }

    /// Checks what an application may have set.
    pub(crate) fn check(&self) -> Result<()> {
        let first = self.schema.chars().next();
        let is_plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_');
        if !first.is_some_and(|c| c.is_ascii_lowercase())
            || self.schema.len() > 63
            || !self.schema.chars().all(is_plain)
        {
            let message = "the schema is a letter and up to 62 letters, digits and underscores, in lower case";
            return Err(Error::new(ErrorKind::Unusable, message).with_field("schema"));
        }
        if self.connections < 2 {
            let message = "the engine needs at least 2 connections";
            return Err(Error::new(ErrorKind::Unusable, message).with_field("connections"));
        }
        if self.server_timeout < SHORTEST_TIMEOUT {
            let message = "a server is taken for gone after 2 seconds at the earliest";
            return Err(Error::new(ErrorKind::Unusable, message).with_field("server_timeout"));
        }
        Ok(())
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("hosts", &self.server.get_hosts())
            .field("ports", &self.server.get_ports())
            .field("user", &self.server.get_user())
            .field("database", &self.server.get_dbname())
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}

/// The parameters of an address for TLS.
#[derive(Default)]
struct Tls {
    mode: Option<String>,
    root: Option<String>,
}

/// Removes the TLS parameters from an address.
fn split_tls(address: &str) -> (String, Tls) {
    let mut tls = Tls::default();
    let Some((place, parameters)) = address.split_once('?') else {
        return (address.to_owned(), tls);
    };

    let mut others = Vec::new();
    for parameter in parameters.split('&') {
        let decoded = |value: &str| {
            percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned()
        };
        match parameter.split_once('=') {
            Some((SSL_MODE, mode)) => tls.mode = Some(decoded(mode)),
            Some((SSL_ROOT, root)) => tls.root = Some(decoded(root)),
            _ => others.push(parameter),
        }
    }
    let separator = if others.is_empty() { "" } else { "?" };
    (format!("{place}{separator}{}", others.join("&")), tls)
}

fn is_on_this_machine(server: &Config) -> bool {
    server.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost"
                || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

fn malformed() -> Error {
    let message = "the database address is not of the form postgres://USER@HOST:PORT/DATABASE";
    Error::new(ErrorKind::Unusable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_asked_for_tls_and_no_password_is_shown() {
        let mode = |address| PostgresOptions::new(address).unwrap().server.get_ssl_mode();
        assert_eq!(mode("postgres://u@db.example.org/d"), SslMode::Require);
        assert_eq!(mode("postgres://u@db.example.org/d?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://u@127.0.0.1:5433/d"), SslMode::Disable);
        assert_eq!(mode("postgres://u@%2Frun%2Fpostgresql/d"), SslMode::Disable);
        assert_eq!(
            mode("postgres://u@localhost/d?sslmode=verify-full&connect_timeout=3"),
            SslMode::Require
        );

        let options =
            PostgresOptions::new("postgres://u:geheim@h/d?sslrootcert=%2Fetc%2Fca.pem").unwrap();
        assert_eq!(options.root_certificates.as_deref(), Some("/etc/ca.pem".as_ref()));
        assert!(!format!("{:?}", options.with_password("geheim")).contains("geheim"));
    }

    #[test]
    fn a_malformed_address_is_refused_without_quoting_it() {
        for bad in [
            "postgres://u:geheim@h:port/d",
            "postgres://u@h/d?geheim=1",
            "host=h user=u dbname=d password=geheim",
            "geheim",
            "postgres:///d",
        ] {
            let error = PostgresOptions::new(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unusable, "{bad}");
            assert!(!format!("{error} {error:?} {}", error.chain()).contains("geheim"), "{bad}");
        }
        assert!(PostgresOptions::new("postgres://u@h/d?sslmode=allow").is_err());
    }

    #[test]
    fn schemas_are_plain_names_and_connections_are_enough() {
        let options = || PostgresOptions::new("postgres://u@localhost/d").unwrap();
        assert!(options().check().is_ok());
        for bad in ["", "1a", "A", "a-b", "a\"b", "pg\u{e9}", &"a".repeat(64)] {
            assert!(options().with_schema(bad).check().is_err(), "{bad}");
        }
        assert!(options().with_connections(1).check().is_err());
        assert!(options().with_server_timeout(Duration::from_secs(1)).check().is_err());
    }
}
