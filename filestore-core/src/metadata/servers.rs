//! The servers that share one database, and the information that they exchange.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::domain::error::Result;
use crate::domain::id::FileId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::UploadRow;

/// The maximum difference between the clocks of a server and the database, for servers that share work. Leases
/// and waits are instants.
pub(crate) const CLOCKS_APART: Duration = Duration::from_secs(10);

/// The processes that may work on the store at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// Only this process. All work of earlier processes has ended.
    Alone,
    /// Other processes too.
    Others,
}

impl Company {
    /// Returns the time by which the clock of another process may be ahead.
    pub fn clocks_apart(self) -> Duration {
        match self {
            Self::Alone => Duration::ZERO,
            Self::Others => CLOCKS_APART * 2,
        }
    }
}

/// The version of the data that servers copy into memory: the keys, and the secrets that sign URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretsVersion {
    /// The number. The number grows with each change.
    pub number: i64,
    /// A time at which no later change had been made.
    pub as_of: Instant,
}

/// Work that only one server does at a time, as shown to other servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownWork {
    /// The entry name.
    pub name: String,
    /// The work state, in the work's own format.
    pub shown: String,
}

/// The servers that share one database. An engine returns them
/// ([`Metadata::servers`](super::Metadata::servers)) after joining the other servers.
#[async_trait]
pub trait Servers: Send + Sync + 'static {
    /// Returns whether other processes can work on the store at the same time. A server that is configured as
    /// the only one is alone.
    fn company(&self) -> Company;

    /// Returns a new, unique name for a run, as the owner of its claims. The run's claims end with this
    /// server.
    fn run_name(&self) -> String;

    /// Ends the work that earlier processes of this server left. Call it before any other work begins. The
    /// claims of these processes become free, and their noted objects become dropped blobs from `not_before`
    /// on.
    async fn end_earlier(&self, not_before: Timestamp) -> Result<()>;

    /// Ends the work of servers that are gone, in the same way. Returns the number of these servers.
    async fn end_gone(&self, not_before: Timestamp) -> Result<u64>;

    /// Returns true if a server is gone. Its work may still have to be ended.
    async fn is_gone(&self, server: &str) -> Result<bool>;

    /// Lists up to `limit` uploads that are completing at servers that are gone, in the order of their ids.
    async fn stranded_uploads(&self, limit: usize) -> Result<Vec<UploadRow>>;

    /// Starts exclusive work for a run. Only one server can do such work at a time. Returns false while
    /// another run on a live server does the work.
    async fn enter(&self, name: &str, owner: &str) -> Result<bool>;

    /// Removes an entry of the run.
    async fn leave(&self, name: &str, owner: &str) -> Result<()>;

    /// Shows the progress of an entry to other servers. Returns true if one of them wants the work to stop.
    async fn show(&self, name: &str, owner: &str, shown: &str) -> Result<bool>;

    /// Lists the progress of entries on other live servers. The names of the entries begin with `prefix`.
    async fn shown(&self, prefix: &str) -> Result<Vec<ShownWork>>;

    /// Tells the run of an entry to stop, on any server. Returns false if there is no such entry.
    async fn tell_to_stop(&self, name: &str) -> Result<bool>;

    /// Reports to other servers how many requests each client has made here since the last call. Returns how
    /// many requests it has made at other servers, as far as known. A client has the same name on all
    /// servers.
    async fn exchange_uses(&self, own: Vec<(String, u64)>) -> Result<Vec<(String, u64)>>;

    /// Lists files that no longer have the content of a blob that was confirmed absent after `after`. Covers
    /// at least `limit` blobs if there are that many. Also returns the time to continue from, or `None` at
    /// the end.
    async fn contents_removed(
        &self,
        after: Timestamp,
        limit: usize,
    ) -> Result<(Vec<FileId>, Option<Timestamp>)>;

    /// Returns the last known version of the secrets.
    fn known_secrets(&self) -> SecretsVersion;

    /// Queries the version of the secrets.
    async fn secrets_version(&self) -> Result<SecretsVersion>;
}
