//! Files before they are records: their fingerprint, their bytes, their records.

use super::arrived::{Arrived, Naming};
use super::fingerprint::Fingerprint;
use super::placement::Placement;
use crate::domain::access::signed_url::UploadPermit;
use crate::domain::error::Result;
use crate::domain::file::custom_metadata::CustomMetadata;
use crate::domain::file::lifecycle::FileState;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::FileRecord;
use crate::domain::id::{BlobId, FileId, OrganizationId, SubSystem};
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Timestamp;
use crate::metadata::FinishUpload;
use crate::service::FileStore;
use crate::service::request::GivenName;
use crate::storage::StagedBlob;

/// Files before they are records. `B` is the type of each file's bytes.
pub(super) struct StagedFiles<B = StagedBlob> {
    pub(super) organization_id: OrganizationId,
    pub(super) sub_system: SubSystem,
    pub(super) temp: bool,
    pub(super) files: OneOrMore<NewFile<B>>,
    pub(super) reply: ReplyShape,
    pub(super) permit: Option<UploadPermit>,
    /// The resumable upload that brought the one file.
    pub(super) upload: Option<FinishUpload>,
}

/// One file before it is a record.
pub(super) struct NewFile<B = StagedBlob> {
    /// The number of the item in its batch.
    pub(super) index: Option<u32>,
    pub(super) given: GivenName,
    pub(super) metadata: CustomMetadata,
    pub(super) bytes: B,
}

/// A list that is never empty.
#[derive(Debug, Clone)]
pub(super) struct OneOrMore<T> {
    pub(super) first: T,
    rest: Vec<T>,
}

/// The shape of the reply that an idempotency key stores.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReplyShape {
    /// The one record of an upload.
    Record,
    /// An array of a batch's records.
    List,
}

impl StagedFiles {
    /// Returns the earliest era of the bytes and of the signed URL.
    pub(super) fn era(&self) -> Era {
        let first = self.files.first.bytes.era;
        let signed = self.permit.iter().map(|permit| permit.era);
        self.files.iter().map(|file| file.bytes.era).chain(signed).fold(first, Era::min)
    }

    /// Computes the digest that recognizes a repeated request.
    pub(super) fn fingerprint(&self) -> [u8; 32] {
        let mut print = Fingerprint::default();
        print.field(Some(match self.reply {
            ReplyShape::Record => "upload",
            ReplyShape::List => "batch",
        }));
        print.field(Some(self.organization_id.as_str()));
        print.field(Some(self.sub_system.as_str()));
        print.field(self.temp.then_some("temp"));

        for file in self.files.iter() {
            // Stored fingerprints have a single file as item 0.
            print.field(Some(&file.index.unwrap_or(0).to_string()));
            print.field(file.given.name.as_deref());
            print.field(file.given.mime_type.as_deref());
            // The headers of the part count only if the fields are missing.
            let hints = &file.given.hints;
            print.field(hints.file_name.as_deref().filter(|_| file.given.name.is_none()));
            print.field(hints.content_type.as_deref().filter(|_| file.given.mime_type.is_none()));
            print.field(Some(&file.bytes.sha256.to_hex()));
            // Fingerprints from versions without metadata lack this field. The next field, an index, never
            // begins with a brace.
            if !file.metadata.is_empty() {
                print.field(Some(file.metadata.as_json()));
            }
        }
        print.finish()
    }

    /// Examines the bytes, and separates the data for the records from the handles of the staged files. Fails
    /// if bytes cannot be read. All staged files are then discarded.
    pub(super) async fn arrive(self) -> Result<(StagedFiles<Arrived>, Vec<StagedBlob>)> {
        let mut staged = Vec::new();
        let first = self.files.first.arrive(&mut staged).await?;
        let mut rest = Vec::with_capacity(self.files.rest.len());
        for file in self.files.rest {
            rest.push(file.arrive(&mut staged).await?);
        }

        let files = StagedFiles {
            organization_id: self.organization_id,
            sub_system: self.sub_system,
            temp: self.temp,
            files: OneOrMore { first, rest },
            reply: self.reply,
            permit: self.permit,
            upload: self.upload,
        };
        Ok((files, staged))
    }
}

impl NewFile {
    async fn arrive(self, staged: &mut Vec<StagedBlob>) -> Result<NewFile<Arrived>> {
        let bytes = Arrived::of(&self.bytes).await?;
        staged.push(self.bytes);
        Ok(NewFile { index: self.index, given: self.given, metadata: self.metadata, bytes })
    }
}

impl StagedFiles<Arrived> {
    fn key(&self, now: Timestamp, blob_id: BlobId) -> BlobKey {
        BlobKey::new(&self.organization_id, &self.sub_system, now, blob_id)
    }

    /// Returns the storage keys of the staged bytes.
    pub(super) fn staged_keys(&self, now: Timestamp) -> Vec<BlobKey> {
        self.files.iter().map(|file| self.key(now, file.bytes.blob_id)).collect()
    }

    /// Makes the records, each with its bytes at `place`.
    pub(super) fn records(&self, store: &FileStore, place: &Placement) -> OneOrMore<FileRecord> {
        let now = store.inner.now();
        self.files.map(|file| self.record(file, store, place, now))
    }

    fn record(
        &self,
        file: &NewFile<Arrived>,
        store: &FileStore,
        place: &Placement,
        now: Timestamp,
    ) -> FileRecord {
        let file_id = FileId::generate(now);
        let naming =
            Naming::choose(&file.given, &file.bytes, store.name_limit(), || file_id.to_string());
        let key = self.key(now, place.blob_id(file.bytes.blob_id, now));
        let state = if self.temp {
            FileState::uploaded_temp()
        } else {
            FileState::uploaded(place.location)
        };

        FileRecord {
            file_id,
            organization_id: self.organization_id.clone(),
            sub_system: self.sub_system.clone(),
            original_name: naming.original_name,
            mime_type: naming.mime_type,
            ext: naming.ext,
            blob: file.bytes.blob(key, place.provider.clone(), now),
            state,
            version: 1,
            created_at: now,
            updated_at: now,
            expires_at: self.temp.then(|| now.plus(store.config().temp_ttl)),
            metadata: file.metadata.clone(),
            edited_at: None,
            deletion: None,
            sync_attempts: 0,
            sync_error: None,
        }
    }
}

impl<T> OneOrMore<T> {
    /// Makes a list with one value.
    pub(super) fn one(first: T) -> Self {
        Self { first, rest: Vec::new() }
    }

    /// Makes a list of the values of `all`. `None` if there are no values.
    pub(super) fn from_iter(all: impl IntoIterator<Item = T>) -> Option<Self> {
        let mut all = all.into_iter();
        Some(Self { first: all.next()?, rest: all.collect() })
    }

    /// Makes a plain list.
    pub(super) fn into_vec(self) -> Vec<T> {
        let mut all = self.rest;
        all.insert(0, self.first);
        all
    }

    /// Iterates over the list.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    fn map<U>(&self, mut make: impl FnMut(&T) -> U) -> OneOrMore<U> {
        OneOrMore { first: make(&self.first), rest: self.rest.iter().map(make).collect() }
    }
}
