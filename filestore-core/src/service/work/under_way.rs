//! Work that only one server does at a time. If several servers share a database, an entry there coordinates
//! them.
//!
//! # Purpose
//! Some work must not run twice at the same time: two requests with one idempotency key, two uploads with one
//! signed URL, or two migrations of one organization. A single server prevents this in memory, and several
//! servers use an entry. An entry never decides which data is stored. Only the commit decides.
//!
//! Long work regularly writes its progress to its entry, so that every server can report it. The work also
//! reads there if any server wants it to stop.
//!
//! # Crash safety
//! An entry ends with its guard, or when the store ends the leftovers of its server. Once its server is gone,
//! the next entry can replace it. While the database does not answer, the store retries to end an entry.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::background::Background;
use crate::domain::error::{ErrorKind, Result};
use crate::metadata::{Company, Metadata};
use crate::tasks;

/// The first and the longest pause between two attempts to end an entry.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// The maximum number of attempts to end an entry, about one hour. The entry then lasts as long as its
/// server.
const ATTEMPTS: usize = 360;

/// The pause between two progress reports to other servers.
const BETWEEN_WORDS: Duration = Duration::from_secs(1);

/// Work that shows its state to other servers.
pub(crate) trait ShownToOthers: Send + Sync + 'static {
    /// Describes the progress of the work.
    fn shown(&self) -> String;

    /// Tells the work to stop.
    fn stop(&self);
}

/// An entry. Dropping the value ends the entry.
pub(crate) struct Entry {
    metadata: Arc<dyn Metadata>,
    name: String,
    owner: String,
    /// True from before the entry is made until the database confirmed that it does not exist.
    may_be_there: bool,
    /// The task that reports the progress to other servers.
    telling: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("owner", &self.owner).finish_non_exhaustive()
    }
}

/// The result of [`enter`](Background::enter).
#[derive(Debug)]
pub(crate) enum Entered {
    /// No other server does this work. The value is `None` if there are no other servers.
    Alone(Option<Entry>),
    /// Another server does this work.
    Elsewhere,
}

impl Background {
    /// Creates the entry with this name.
    pub(crate) async fn enter(&self, name: String) -> Result<Entered> {
        let servers = self.metadata.servers();
        let Some(servers) = servers.filter(|servers| servers.company() == Company::Others) else {
            return Ok(Entered::Alone(None));
        };

        let owner = servers.run_name();
        // Before the answer: a caller that goes away while it waits leaves no entry.
        let metadata = Arc::clone(&self.metadata);
        let mut entry = Entry { metadata, name, owner, may_be_there: true, telling: None };
        entry.may_be_there = servers.enter(&entry.name, &entry.owner).await?;
        Ok(if entry.may_be_there { Entered::Alone(Some(entry)) } else { Entered::Elsewhere })
    }
}

impl Entry {
    /// Shows the progress of `work` to other servers until the entry ends.
    pub(crate) async fn show(&mut self, work: Arc<dyn ShownToOthers>) -> Result<()> {
        if let Some(servers) = self.metadata.servers() {
            servers.show(&self.name, &self.owner, &work.shown()).await?;
        }
        let (metadata, name, owner) =
            (Arc::clone(&self.metadata), self.name.clone(), self.owner.clone());
        self.telling = Some(tasks::spawn(tell(metadata, name, owner, work)));
        Ok(())
    }

    /// Ends the entry before it returns if the database answers, so that the next request does not see it.
    pub(crate) async fn finish(mut self) {
        self.stop_telling();
        if let Some(servers) = self.metadata.servers()
            && servers.leave(&self.name, &self.owner).await.is_ok()
        {
            self.may_be_there = false;
        }
    }

    fn stop_telling(&mut self) {
        if let Some(telling) = self.telling.take() {
            telling.abort();
        }
    }
}

/// Reports the progress to other servers, and reads their requests to stop.
async fn tell(
    metadata: Arc<dyn Metadata>,
    name: String,
    owner: String,
    work: Arc<dyn ShownToOthers>,
) {
    let Some(servers) = metadata.servers() else { return };
    loop {
        sleep(BETWEEN_WORDS).await;
        match servers.show(&name, &owner, &work.shown()).await {
            Ok(true) => work.stop(),
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(error = %error.chain(), "other servers were not told of work");
            }
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.stop_telling();
        // Without a runtime the process ends, and so does the entry.
        if self.may_be_there && Handle::try_current().is_ok() {
            let (name, owner) = (std::mem::take(&mut self.name), std::mem::take(&mut self.owner));
            tasks::spawn(end(Arc::clone(&self.metadata), name, owner));
        }
    }
}

/// Ends an entry. Retries until the database answers.
async fn end(metadata: Arc<dyn Metadata>, name: String, owner: String) {
    let Some(servers) = metadata.servers() else { return };
    let (mut pause, longest) = PAUSES;
    for _ in 0..ATTEMPTS {
        match servers.leave(&name, &owner).await {
            Ok(()) => return,
            // Closed.
            Err(error) if error.kind() == ErrorKind::Unusable => return,
            Err(_) => sleep(pause).await,
        }
        pause = longest.min(pause * 2);
    }
}
