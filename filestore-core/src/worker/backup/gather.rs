//! Gathering: each content that a snapshot names, brought into its directory.
//!
//! A content that the newest finished snapshot holds is counted on by its size alone: that snapshot
//! flushed it. Anything else that lies there already was left by a run that broke off, and is read
//! first. A content that is a second name of a file of the store, left by a snapshot of hard links, is
//! replaced by a copy unless this snapshot is one of hard links too. A content that the store does not
//! have, or has with other bytes, is noted as damaged and keeps no other from being gathered; a provider
//! that does not answer ends the run.

use std::sync::Arc;

use bytes::BytesMut;
use futures_util::StreamExt;

use super::{blocking, expected};
use crate::FileStore;
use crate::domain::backup::{BackupOptions, BlobProblem, SnapshotBytes, SnapshotClouds};
use crate::domain::error::{ErrorKind, Result};
use crate::domain::id::SnapshotId;
use crate::metadata::sqlite::{NamedBytes, SnapshotDatabase};
use crate::storage::LocalStore;
use crate::storage::backup::{
    BackupDirectory, BlobIntake, Copying, Entry, EntryKind, Presence, Taken,
};

/// Bytes of a stream that are written with one visit to the blocking pool.
const PIECE_BYTES: usize = 1 << 20;

const GATHERING: &str = "copying into a snapshot";

/// Records of one content on the service's own disk, and at providers, that are in memory at once. Millions
/// of files may be equal.
const SOURCES: usize = 16;

/// One content, with the records that have it.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) expected: Copying,
    /// The first of the records; never empty.
    sources: Vec<NamedBytes>,
    /// The number of all records.
    pub(super) records: u64,
    /// True if the newest finished snapshot holds the content.
    pub(super) is_trusted: bool,
}

impl Content {
    /// Describes the content of a record.
    pub(super) fn new(record: NamedBytes, is_trusted: bool) -> Self {
        let expected = expected(record.sha256, record.size_bytes);
        Self { expected, sources: vec![record], records: 1, is_trusted }
    }

    /// Adds another record that has the content.
    pub(super) fn add(&mut self, record: NamedBytes) {
        self.records += 1;
        let is_local = record.provider.is_local();
        let alike = self.sources.iter().filter(|source| source.provider.is_local() == is_local);
        if alike.count() < SOURCES {
            self.sources.push(record);
        }
    }

    /// Returns the record that stands for all.
    pub(super) fn first(&self) -> &NamedBytes {
        self.sources.first().expect("a content has a record")
    }
}

/// A content that was dealt with.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) content: Content,
    pub(super) outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was copied or linked by this run.
    Copied,
    /// It was there.
    Reused,
    /// It is at a provider and stays there.
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
    /// Returns the line of the manifest.
    pub(super) fn entry(&self) -> Entry {
        let Copying { sha256, size_bytes } = self.content.expected;
        let kind = match self.outcome {
            Outcome::Copied | Outcome::Reused => EntryKind::Held,
            Outcome::Damaged(_) => EntryKind::Damaged,
            Outcome::Elsewhere => {
                let source = self.content.first();
                EntryKind::Elsewhere(source.provider.clone(), source.key.clone())
            }
        };
        Entry { sha256, size_bytes, kind }
    }
}

/// One run, shared by its batches.
pub(super) struct Gathering {
    pub(super) store: FileStore,
    pub(super) id: SnapshotId,
    pub(super) directory: BackupDirectory,
    pub(super) options: BackupOptions,
}

impl Gathering {
    /// Brings the contents of a batch into the directory; the outcomes are in their order.
    pub(super) async fn gather(self: Arc<Self>, batch: Vec<Content>) -> Result<Vec<Gathered>> {
        let run = Arc::clone(&self);
        let local = blocking(GATHERING, move || run.gather_local(batch)).await?;

        let mut gathered = Vec::with_capacity(local.len());
        for (content, outcome) in local {
            let mut outcome = match outcome {
                Some(outcome) => outcome,
                None => self.gather_from_providers(&content).await?,
            };
            let are_all = content.records == content.sources.len() as u64;
            if outcome.is_damaged() && !are_all {
                outcome = self.gather_from_any(content.expected, outcome).await?;
            }
            gathered.push(Gathered { content, outcome });
        }
        Ok(gathered)
    }

    /// Deals with all that needs no provider; leaves the outcome of the rest open. Blocks.
    fn gather_local(&self, batch: Vec<Content>) -> Result<Vec<(Content, Option<Outcome>)>> {
        let local = self.store.inner().stores.local();
        let mut buffer = Vec::new();
        let mut done = Vec::with_capacity(batch.len());
        for content in batch {
            let outcome = self.gather_one(local, &content, &mut buffer)?;
            done.push((content, outcome));
        }
        Ok(done)
    }

    fn gather_one(
        &self,
        local: &LocalStore,
        content: &Content,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Outcome>> {
        if let Some(outcome) = self.reuse(content, buffer)? {
            return Ok(Some(outcome));
        }

        let expected = content.expected;
        let mut outcome = None;
        for source in content.sources.iter().filter(|source| source.provider.is_local()) {
            match self.take(local, source, expected, buffer)? {
                Ok(()) => return Ok(Some(Outcome::Copied)),
                Err(problem) => outcome = Some(Outcome::Damaged(problem)),
            }
        }

        let providers = self.store.providers();
        let is_at_backend =
            content.sources.iter().any(|source| Some(&source.provider) == providers.backend());
        let is_at_a_provider = content.sources.iter().any(|source| !source.provider.is_local());
        match (is_at_a_provider, self.options.clouds) {
            (false, _) => Ok(outcome),
            (true, SnapshotClouds::Noted) if !is_at_backend => {
                Ok(Some(outcome.unwrap_or(Outcome::Elsewhere)))
            }
            (true, _) => Ok(None),
        }
    }

    /// Asks all records that have a content, page by page, after the first of them had it not: `without`
    /// is the outcome if none has it. Each page reads the database on from the one before.
    async fn gather_from_any(
        self: &Arc<Self>,
        expected: Copying,
        without: Outcome,
    ) -> Result<Outcome> {
        let mut after = None;
        loop {
            let copy = self.directory.database(self.id);
            let page = blocking(GATHERING, move || {
                SnapshotDatabase::open(&copy)?.records_of(expected.sha256, after, SOURCES)
            })
            .await?;
            let Some(last) = page.last() else { return Ok(without) };
            after = Some(last.file_id);

            let records = page.len() as u64;
            let content = Content { expected, sources: page, records, is_trusted: false };
            let run = Arc::clone(self);
            let local = blocking(GATHERING, move || run.gather_local(vec![content])).await?;
            for (content, outcome) in local {
                let outcome = match outcome {
                    Some(outcome) => outcome,
                    None => self.gather_from_providers(&content).await?,
                };
                if matches!(outcome, Outcome::Copied | Outcome::Reused) {
                    return Ok(outcome);
                }
            }
        }
    }

    /// Takes what the directory has of a content, if it has the content. Blocks.
    fn reuse(&self, content: &Content, buffer: &mut Vec<u8>) -> Result<Option<Outcome>> {
        let expected = content.expected;
        match (self.directory.find(expected), self.options.bytes) {
            (None, _) => Ok(None),
            (Some(Presence::Shared), SnapshotBytes::Copied) => {
                let is_whole = self.directory.unshare(expected, buffer)?;
                Ok(is_whole.then_some(Outcome::Copied))
            }
            (Some(_), _) => {
                let is_whole = content.is_trusted
                    || self.directory.read_blob(expected.sha256, buffer)? == Some(expected);
                Ok(is_whole.then_some(Outcome::Reused))
            }
        }
    }

    /// Takes the bytes of a record from the service's own disk. Blocks.
    fn take(
        &self,
        local: &LocalStore,
        source: &NamedBytes,
        expected: Copying,
        buffer: &mut Vec<u8>,
    ) -> Result<Result<(), BlobProblem>> {
        if self.options.bytes == SnapshotBytes::HardLinked {
            return self.link(local, source, expected, buffer);
        }

        let Some(file) = local.open_file(&source.key)? else {
            return Ok(Err(BlobProblem::Missing));
        };
        Ok(taken(self.directory.take_file(&file, expected, buffer)?))
    }

    fn link(
        &self,
        local: &LocalStore,
        source: &NamedBytes,
        expected: Copying,
        buffer: &mut Vec<u8>,
    ) -> Result<Result<(), BlobProblem>> {
        for path in local.paths_of(&source.key) {
            if let Some(linked) = self.directory.link_file(&path, expected, buffer)? {
                return Ok(taken(linked));
            }
        }
        Ok(Err(BlobProblem::Missing))
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
            match self.receive(content.expected, bytes).await {
                Ok(true) => return Ok(Outcome::Copied),
                Ok(false) => problem = BlobProblem::Wrong,
                // The object has another length than the record.
                Err(error) if error.kind() == ErrorKind::DigestMismatch => {
                    problem = BlobProblem::Wrong;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Outcome::Damaged(problem))
    }

    async fn receive(
        &self,
        expected: Copying,
        mut bytes: crate::storage::ByteStream,
    ) -> Result<bool> {
        let directory = self.directory.clone();
        let mut intake = blocking(GATHERING, move || directory.intake(expected)).await?;
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);

        while let Some(more) = bytes.next().await.transpose()? {
            piece.extend_from_slice(&more);
            if piece.len() >= PIECE_BYTES {
                intake = write(intake, piece.split()).await?;
            }
        }
        let intake = write(intake, piece).await?;
        blocking(GATHERING, move || intake.finish()).await
    }
}

fn taken(taken: Taken) -> Result<(), BlobProblem> {
    match taken {
        Taken::Whole => Ok(()),
        Taken::Other | Taken::Unreadable => Err(BlobProblem::Wrong),
    }
}

async fn write(mut intake: BlobIntake, piece: BytesMut) -> Result<BlobIntake> {
    blocking(GATHERING, move || {
        intake.write(&piece)?;
        Ok(intake)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::Timestamp;
    use crate::domain::id::{BlobId, FileId, Sha256};
    use crate::domain::path::BlobKey;
    use crate::domain::provider::ProviderCode;

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
        let mut content = Content::new(record("disk".parse().unwrap()), false);
        for _ in 0..1000 {
            content.add(record("disk".parse().unwrap()));
        }
        content.add(record(ProviderCode::local()));

        assert_eq!((content.records, content.sources.len()), (1002, SOURCES + 1));
        assert!(content.sources.last().unwrap().provider.is_local(), "the one that is near");
    }
}
