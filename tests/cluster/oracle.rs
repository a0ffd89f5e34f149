//! The oracle: all that was acknowledged.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use filestore_core::{ErrorKind, FileStore, Scope};
use filestore_workspace::eventually;
use filestore_workspace::fixtures::noise;
use tokio::time::Instant;

use crate::load::client;

/// Seeds of second contents begin here.
const SECOND: u64 = 1 << 32;

/// The bytes of one version of a file, by the seed that makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content(pub(crate) u64);

impl Content {
    /// Returns the bytes: a few that take many parts at the store, and many that do not.
    pub(crate) fn bytes(self) -> Vec<u8> {
        let length = if self.0.is_multiple_of(32) { 2_000_000 } else { 20_000 };
        noise(self.0, length)
    }

    /// Returns the content that replaces this one.
    pub(crate) fn second(self) -> Self {
        Self(self.0 + SECOND)
    }

    fn is_second(self) -> bool {
        self.0 >= SECOND
    }
}

/// The state of a file as far as it was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// There, with this content.
    There(Content),
    /// A replace was not answered: it has the one or the other.
    Either(Content, Content),
    /// A delete was not answered.
    MayBeDeleted(Content),
    /// Deleted.
    Deleted,
}

impl Known {
    /// Tells whether a reply to a read is right.
    fn admits(self, status: u16, bytes: &[u8]) -> bool {
        match self {
            Self::There(content) => status == 200 && bytes == content.bytes(),
            Self::Either(one, other) => {
                status == 200 && (bytes == one.bytes() || bytes == other.bytes())
            }
            Self::MayBeDeleted(content) => {
                status == 404 || (status == 200 && bytes == content.bytes())
            }
            Self::Deleted => status == 404,
        }
    }

    /// Returns the state that a reply to a read shows, once no request is under way.
    fn settled(self, status: u16, bytes: &[u8]) -> Self {
        match self {
            Self::Either(one, _) if bytes == one.bytes() => Self::There(one),
            Self::Either(_, other) => Self::There(other),
            Self::MayBeDeleted(_) if status == 404 => Self::Deleted,
            Self::MayBeDeleted(content) => Self::There(content),
            settled => settled,
        }
    }

    /// Returns the types of the events that led to a settled state.
    fn changes(self) -> Vec<String> {
        let changes: &[&str] = match self {
            Self::There(content) if content.is_second() => &["file.uploaded", "file.replaced"],
            Self::There(_) => &["file.uploaded"],
            Self::Deleted => &["file.uploaded", "file.deleted"],
            Self::Either(..) | Self::MayBeDeleted(_) => panic!("not settled: {self:?}"),
        };
        changes.iter().map(ToString::to_string).collect()
    }
}

/// The files that were acknowledged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Oracle(Arc<Mutex<BTreeMap<String, Known>>>);

impl Oracle {
    pub(crate) fn note(&self, id: &str, known: Known) {
        self.0.lock().expect("no panic").insert(id.to_owned(), known);
    }

    /// Makes an oracle that knows these files alone.
    pub(crate) fn of(files: impl IntoIterator<Item = (String, Known)>) -> Self {
        Self(Arc::new(Mutex::new(files.into_iter().collect())))
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Known> {
        self.0.lock().expect("no panic").clone()
    }

    /// Counts the files that are there.
    pub(crate) fn acknowledged(&self) -> u64 {
        let is_there = |known: &&Known| matches!(known, Known::There(_) | Known::Either(..));
        self.all().values().filter(is_there).count() as u64
    }

    /// Waits until so many more uploads are acknowledged.
    pub(crate) async fn goes_on(&self, more: usize) {
        let wanted = self.all().len() + more;
        eventually("uploads go on", async || (self.all().len() >= wanted).then_some(())).await;
    }

    /// Waits until so many more uploads are acknowledged, and a time has passed.
    pub(crate) async fn goes_on_for(&self, time: Duration, more: usize) {
        let until = Instant::now() + time;
        self.goes_on(more).await;
        eventually("the time passes", async || (Instant::now() >= until).then_some(())).await;
    }

    /// Returns the types of the events of each file, in their order, by what was acknowledged, and by what a server
    /// shows where an answer is missing.
    pub(crate) async fn changes(&self, url: &str) -> BTreeMap<String, Vec<String>> {
        let (http, mut files) = (client(), BTreeMap::new());
        for (id, known) in self.all() {
            let settled = match known {
                Known::There(_) | Known::Deleted => known,
                Known::Either(..) | Known::MayBeDeleted(_) => {
                    let (status, bytes) = read(&http, url, &id).await;
                    known.settled(status, &bytes)
                }
            };
            files.insert(id, settled.changes());
        }
        files
    }

    /// Asserts that each file is as it was acknowledged.
    pub(crate) async fn check(&self, url: &str) {
        let http = client();
        for (id, known) in self.all() {
            let (status, bytes) = read(&http, url, &id).await;
            assert!(known.admits(status, &bytes), "{id} at {url}: {status}, {known:?}");
        }
    }

    /// Asserts that a store has each file as it was acknowledged.
    pub(crate) async fn check_store(&self, store: &FileStore) {
        for (id, known) in self.all() {
            let file = id.parse().expect("an id");
            let (status, bytes) = match store.scoped(&Scope::All).read(file).await {
                Ok(bytes) => (200, bytes),
                Err(error) if error.kind() == ErrorKind::NotFound => (404, Bytes::new()),
                Err(error) => panic!("{id}: {}", error.chain()),
            };
            assert!(known.admits(status, &bytes), "{id}: {status}, {known:?}");
        }
    }
}

/// Reads a file while all parts are there.
async fn read(http: &reqwest::Client, url: &str, id: &str) -> (u16, Bytes) {
    let reply = http.get(format!("{url}/api/v1/files/{id}")).send().await;
    let reply = reply.expect("all parts are back");
    (reply.status().as_u16(), reply.bytes().await.expect("all of it"))
}
