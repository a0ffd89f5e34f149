//! Gathering: brings each content of a snapshot to the destination.
//!
//! If the newest finished snapshot contains a content, only its size is compared, because that snapshot made
//! it durable. All other existing contents are leftovers of an interrupted run, and are read first. In a
//! directory, a content can be a second name of a stored file, from a snapshot with hard links. Such a second
//! name is replaced by a copy, unless this snapshot also uses hard links.
//!
//! If the store does not have a content, or has wrong bytes, the content is recorded as damaged, and
//! gathering continues. If a provider does not answer, the run ends.

use std::sync::Arc;

use super::expected;
use crate::FileStore;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::report::backup::{BackupOptions, BlobProblem, SnapshotClouds};
use crate::metadata::sqlite::{NamedBytes, SnapshotDatabase};
use crate::storage::backup::{
    Copying, Destination, Draft, Entry, EntryKind, Found, FoundHow, OnDisk, Stored, Wanted,
    blocking,
};

const GATHERING: &str = "copying into a snapshot";

/// The maximum number of records of one content in memory, on the local disk and at providers. Millions of
/// files can have the same content.
const SOURCES: usize = 16;

/// A content, with the records that refer to it.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) expected: Copying,
    /// The first of the records. Never empty.
    sources: Vec<NamedBytes>,
    /// The number of all records.
    pub(super) records: u64,
    /// The content as recorded by the newest finished snapshot.
    vouched: Option<Stored>,
}

impl Content {
    /// Describes a record's content.
    pub(super) fn new(record: NamedBytes, vouched: Option<Stored>) -> Self {
        let expected = expected(record.sha256, record.size_bytes);
        Self { expected, sources: vec![record], records: 1, vouched }
    }

    /// Adds another record with this content.
    pub(super) fn add(&mut self, record: NamedBytes) {
        self.records += 1;
        let is_local = record.provider.is_local();
        let alike = self.sources.iter().filter(|source| source.provider.is_local() == is_local);
        if alike.count() < SOURCES {
            self.sources.push(record);
        }
    }

    /// Returns the places on the local disk that can have the content.
    fn on_disk(&self) -> OnDisk {
        let local = self.sources.iter().filter(|source| source.provider.is_local());
        OnDisk { expected: self.expected, keys: local.map(|source| source.key.clone()).collect() }
    }

    /// Returns the record that represents all records.
    pub(super) fn first(&self) -> &NamedBytes {
        self.sources.first().expect("a content has a record")
    }
}

/// A content after it was processed.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) content: Content,
    pub(super) outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// This run copied or linked it.
    Copied(Stored),
    /// The content was already there.
    Reused(Stored),
    /// The content is at a provider and stays there.
    Elsewhere,
    /// The store does not have it.
    Damaged(BlobProblem),
}

impl Outcome {
    fn is_damaged(self) -> bool {
        matches!(self, Self::Damaged(_))
    }
}

impl Gathered {
    /// Returns the content's line of the manifest.
    pub(super) fn entry(&self) -> Entry {
        let Copying { sha256, size_bytes } = self.content.expected;
        let kind = match self.outcome {
            Outcome::Copied(stored) | Outcome::Reused(stored) => EntryKind::Held(stored.by),
            Outcome::Damaged(_) => EntryKind::Damaged,
            Outcome::Elsewhere => {
                let source = self.content.first();
                EntryKind::Elsewhere(source.provider.clone(), source.key.clone())
            }
        };
        Entry { sha256, size_bytes, kind }
    }
}

impl From<Found> for Outcome {
    fn from(found: Found) -> Self {
        match found.how {
            FoundHow::Reused => Self::Reused(found.stored),
            FoundHow::Unshared => Self::Copied(found.stored),
        }
    }
}

/// A run, shared by its batches.
pub(super) struct Gathering {
    pub(super) store: FileStore,
    pub(super) draft: Arc<Draft>,
    pub(super) destination: Arc<dyn Destination>,
    pub(super) options: BackupOptions,
}

impl Gathering {
    /// Brings the contents of a batch to the destination. Results have the batch's order.
    pub(super) async fn gather(self: Arc<Self>, batch: Vec<Content>) -> Result<Vec<Gathered>> {
        let mut gathered = Vec::with_capacity(batch.len());
        for Gathered { content, mut outcome } in self.gather_all(batch).await? {
            let are_all = content.records == content.sources.len() as u64;
            if outcome.is_damaged() && !are_all {
                outcome = self.gather_from_any(content.expected, outcome).await?;
            }
            gathered.push(Gathered { content, outcome });
        }
        Ok(gathered)
    }

    /// Brings contents from the records in memory.
    async fn gather_all(&self, batch: Vec<Content>) -> Result<Vec<Gathered>> {
        let near = self.gather_near(&batch).await?;
        let mut gathered = Vec::with_capacity(batch.len());
        for (content, near) in batch.into_iter().zip(near) {
            let outcome = match self.conclude(&content, near) {
                Some(outcome) => outcome,
                None => self.gather_from_providers(&content).await?,
            };
            gathered.push(Gathered { content, outcome });
        }
        Ok(gathered)
    }

    /// Processes all contents without a provider: first contents at the destination, then contents on the
    /// local disk. The result is `None` for a content that is not expected in either place.
    async fn gather_near(&self, batch: &[Content]) -> Result<Vec<Option<Outcome>>> {
        let bytes = self.options.bytes;
        let wanted = batch
            .iter()
            .map(|content| Wanted { expected: content.expected, vouched: content.vouched });
        let found = self.destination.find(wanted.collect(), bytes).await?;
        let mut outcomes: Vec<_> =
            found.into_iter().map(|found| found.map(Outcome::from)).collect();

        let is_missing = |(content, outcome): &(&Content, &mut Option<Outcome>)| {
            outcome.is_none() && content.sources.iter().any(|source| source.provider.is_local())
        };
        let (missing, open): (Vec<_>, Vec<_>) =
            batch.iter().zip(&mut outcomes).filter(is_missing).unzip();
        if missing.is_empty() {
            return Ok(outcomes);
        }
        let on_disk = missing.iter().map(|content| content.on_disk()).collect();
        let local = self.store.inner().stores.local();
        let taken = self.destination.take_files(local, on_disk, bytes).await?;
        for (outcome, taken) in open.into_iter().zip(taken) {
            *outcome = Some(taken.map_or_else(Outcome::Damaged, Outcome::Copied));
        }
        Ok(outcomes)
    }

    /// Returns the outcome of a content, unless a provider must be asked for it.
    fn conclude(&self, content: &Content, near: Option<Outcome>) -> Option<Outcome> {
        if near.is_some_and(|outcome| !outcome.is_damaged()) {
            return near;
        }
        let providers = self.store.providers();
        let is_at_backend =
            content.sources.iter().any(|source| Some(&source.provider) == providers.backend());
        let is_at_a_provider = content.sources.iter().any(|source| !source.provider.is_local());
        match (is_at_a_provider, self.options.clouds) {
            (false, _) => near,
            (true, SnapshotClouds::Noted) if !is_at_backend => {
                Some(near.unwrap_or(Outcome::Elsewhere))
            }
            (true, _) => None,
        }
    }

    /// Asks all records of a content, page by page, after its first records failed. `without` is the outcome
    /// if no record has it. Each page continues after the previous page.
    async fn gather_from_any(&self, expected: Copying, without: Outcome) -> Result<Outcome> {
        let mut after = None;
        loop {
            let draft = Arc::clone(&self.draft);
            let page = blocking(GATHERING, move || {
                SnapshotDatabase::open(&draft.database)?.records_of(expected.sha256, after, SOURCES)
            })
            .await?;
            let Some(last) = page.last() else { return Ok(without) };
            after = Some(last.file_id);

            let records = page.len() as u64;
            let content = Content { expected, sources: page, records, vouched: None };
            for Gathered { outcome, .. } in self.gather_all(vec![content]).await? {
                if matches!(outcome, Outcome::Copied(_) | Outcome::Reused(_)) {
                    return Ok(outcome);
                }
            }
        }
    }

    /// Fetches a content from a provider that has it.
    async fn gather_from_providers(&self, content: &Content) -> Result<Outcome> {
        let mut problem = BlobProblem::Missing;
        for source in content.sources.iter().filter(|source| !source.provider.is_local()) {
            let stores = &self.store.inner().stores;
            let holder = stores.holder(&source.provider)?;
            let Some(read) = holder.read_to_copy(&source.key, source.size_bytes).await? else {
                continue;
            };

            let bytes = read.into_stream(0..source.size_bytes);
            match self.destination.receive(content.expected, bytes).await {
                Ok(Some(stored)) => return Ok(Outcome::Copied(stored)),
                Ok(None) => problem = BlobProblem::Wrong,
                // The object has another length than the record.
                Err(error) if error.kind() == ErrorKind::DigestMismatch => {
                    problem = BlobProblem::Wrong;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Outcome::Damaged(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::file::path::BlobKey;
    use crate::domain::id::{BlobId, FileId, Sha256};
    use crate::domain::provider::ProviderCode;
    use crate::domain::time::clock::Timestamp;

    fn record(provider: ProviderCode) -> NamedBytes {
        let now = Timestamp::now();
        let (organization, sub_system) = ("7".parse().unwrap(), "docs".parse().unwrap());
        NamedBytes {
            file_id: FileId::generate(now),
            sha256: Sha256([0; 32]),
            size_bytes: 0,
            provider,
            key: BlobKey::new(&organization, &sub_system, now, BlobId::generate(now)),
        }
    }

    #[test]
    fn equal_files_take_no_more_memory_the_more_they_are() {
        let mut content = Content::new(record("disk".parse().unwrap()), None);
        for _ in 0..1000 {
            content.add(record("disk".parse().unwrap()));
        }
        content.add(record(ProviderCode::local()));

        assert_eq!((content.records, content.sources.len()), (1002, SOURCES + 1));
        assert!(content.sources.last().unwrap().provider.is_local(), "the one that is near");
    }
}
