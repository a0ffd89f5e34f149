//! Work that one server alone does at a time: an entry in the database, where several servers share one.
//!
//! # Purpose
//! Two requests under one idempotency key, two uploads with one signed URL, two migrations of an organization
//! are kept from each other in memory on one server, and by an entry on several. An entry never decides what is
//! stored: the commit does that.
//!
//! Work that takes long shows in its entry how far it has come, once in a while, so that any server can tell, and finds
//! there the wish of any server that it stops.
//!
//! # Crash safety
//! An entry ends with its guard, with what its server left, or makes room for the next one once its server is
//! gone. While the database does not answer, the end of an entry is told to it again and again.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::Inner;
use crate::domain::error::{ErrorKind, Result};
use crate::metadata::{Company, Metadata};
use crate::tasks;

/// Pauses between two attempts to end an entry, the first and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// Attempts to end an entry: for an hour about. Then it lasts as long as its server.
const ATTEMPTS: usize = 360;

/// The pause between two words to other servers of how far work has come.
const BETWEEN_WORDS: Duration = Duration::from_secs(1);

/// Work whose state other servers can see.
pub(crate) trait ShownToOthers: Send + Sync + 'static {
    /// Describes how far the work has come.
    fn shown(&self) -> String;

    /// Tells the work to stop.
    fn stop(&self);
}

/// An entry, which ends when this is dropped.
pub(crate) struct Entry {
    metadata: Arc<dyn Metadata>,
    name: String,
    owner: String,
    /// True from before it is made until it is certain that it was not.
    may_be_there: bool,
    /// The task that tells others how far the work has come.
    telling: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("owner", &self.owner).finish_non_exhaustive()
    }
}

/// The answer to one who wants to do something alone.
#[derive(Debug)]
pub(crate) enum Entered {
    /// No other server does it. `None`: there is no other server.
    Alone(Option<Entry>),
    /// Another server does it.
    Elsewhere,
}

impl Inner {
    /// Enters what `name` stands for.
    pub(crate) async fn enter(&self, name: String) -> Result<Entered> {
        if self.metadata.company() == Company::Alone {
            return Ok(Entered::Alone(None));
        }

        let owner = self.metadata.run_name();
        // Before the answer: a caller that goes away while it waits leaves no entry.
        let metadata = Arc::clone(&self.metadata);
        let mut entry = Entry { metadata, name, owner, may_be_there: true, telling: None };
        entry.may_be_there = self.metadata.enter(&entry.name, &entry.owner).await?;
        Ok(if entry.may_be_there { Entered::Alone(Some(entry)) } else { Entered::Elsewhere })
    }
}

impl Entry {
    /// Shows other servers how far `work` has come, from now on until the entry ends.
    pub(crate) async fn show(&mut self, work: Arc<dyn ShownToOthers>) -> Result<()> {
        self.metadata.show(&self.name, &self.owner, &work.shown()).await?;
        let (metadata, name, owner) =
            (Arc::clone(&self.metadata), self.name.clone(), self.owner.clone());
        self.telling = Some(tasks::spawn(tell(metadata, name, owner, work)));
        Ok(())
    }

    /// Ends the entry before it returns, if the database answers, so that the next request finds no trace of it.
    pub(crate) async fn finish(mut self) {
        self.stop_telling();
        if self.metadata.leave(&self.name, &self.owner).await.is_ok() {
            self.may_be_there = false;
        }
    }

    fn stop_telling(&mut self) {
        if let Some(telling) = self.telling.take() {
            telling.abort();
        }
    }
}

/// Tells other servers how far work has come, and the work what they want.
async fn tell(
    metadata: Arc<dyn Metadata>,
    name: String,
    owner: String,
    work: Arc<dyn ShownToOthers>,
) {
    loop {
        sleep(BETWEEN_WORDS).await;
        match metadata.show(&name, &owner, &work.shown()).await {
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

/// Ends an entry, as soon as the database lets it be ended.
async fn end(metadata: Arc<dyn Metadata>, name: String, owner: String) {
    let (mut pause, longest) = PAUSES;
    for _ in 0..ATTEMPTS {
        match metadata.leave(&name, &owner).await {
            Ok(()) => return,
            // Closed.
            Err(error) if error.kind() == ErrorKind::Unusable => return,
            Err(_) => sleep(pause).await,
        }
        pause = longest.min(pause * 2);
    }
}
