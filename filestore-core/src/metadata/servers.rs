//! The servers that work on one database, and what they have to know of each other.

use async_trait::async_trait;
use tokio::time::Instant;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::FileId;
use crate::tasks;

/// The processes that may work on the store at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// This one alone: whatever an earlier one left is over.
    Alone,
    /// Others as well.
    Others,
}

/// The version of what servers hold in memory of the database: the keys, and the secrets that sign URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretsVersion {
    /// The number, which grows with each change.
    pub number: i64,
    /// An instant at which no change had been made that the number does not count.
    pub as_of: Instant,
}

/// Work that one server does alone, as it shows it to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownWork {
    /// The name of the entry.
    pub name: String,
    /// The state of the work, in the words of those who do it.
    pub shown: String,
}

/// The servers that work on one database. The defaults are those of an engine that one process has for itself.
#[async_trait]
pub trait Servers: Send + Sync + 'static {
    /// Tells who may work on the store beside this process.
    fn company(&self) -> Company {
        Company::Alone
    }

    /// Makes a name for a run, as the owner of its claims: no other run has it, and what it owns ends with
    /// this server.
    fn run_name(&self) -> String {
        tasks::random_name()
    }

    /// Ends what earlier processes of this server left: before this one begins anything. Their claims are
    /// free, and the objects that they noted are dropped blobs from `not_before` on.
    async fn end_earlier(&self, not_before: Timestamp) -> Result<()> {
        let _ = not_before;
        Ok(())
    }

    /// Ends what other servers left that are gone, in the same way; returns how many were.
    async fn end_gone(&self, not_before: Timestamp) -> Result<u64> {
        let _ = not_before;
        Ok(0)
    }

    /// Enters what only one server may do at a time, for a run; false while another run does it, on a server
    /// that is not gone.
    async fn enter(&self, name: &str, owner: &str) -> Result<bool> {
        let _ = (name, owner);
        Ok(true)
    }

    /// Ends an entry of the run.
    async fn leave(&self, name: &str, owner: &str) -> Result<()> {
        let _ = (name, owner);
        Ok(())
    }

    /// Shows the other servers how far the work of an entry has come. Returns true if one of them wants it to stop.
    async fn show(&self, name: &str, owner: &str, shown: &str) -> Result<bool> {
        let _ = (name, owner, shown);
        Ok(false)
    }

    /// Lists what other servers show of entries whose names begin with `prefix`: those of servers that are not gone.
    async fn shown(&self, prefix: &str) -> Result<Vec<ShownWork>> {
        let _ = prefix;
        Ok(Vec::new())
    }

    /// Tells the run that has an entry to stop, whichever server does it; false if there is no such entry.
    async fn tell_to_stop(&self, name: &str) -> Result<bool> {
        let _ = name;
        Ok(false)
    }

    /// Tells the other servers how many requests clients have made here since the last call, and returns how many
    /// they have made elsewhere, as far as it is known. Clients are names, alike on all servers.
    async fn exchange_uses(&self, own: Vec<(String, u64)>) -> Result<Vec<(String, u64)>> {
        let _ = own;
        Ok(Vec::new())
    }

    /// Lists files that have not the content any more of which a blob was found absent later than `after`: those
    /// of at least `limit` blobs, if there are so many. Returns the instant to go on after as well; `None` at the
    /// end. Nothing where no other process removes blobs.
    async fn contents_removed(
        &self,
        after: Timestamp,
        limit: usize,
    ) -> Result<(Vec<FileId>, Option<Timestamp>)> {
        let _ = (after, limit);
        Ok((Vec::new(), None))
    }

    /// Returns the version of the secrets as far as it is known; `None` if no other process can change them.
    fn known_secrets(&self) -> Option<SecretsVersion> {
        None
    }

    /// Asks for the version of the secrets; `None` if no other process can change them.
    async fn secrets_version(&self) -> Result<Option<SecretsVersion>> {
        Ok(None)
    }
}
