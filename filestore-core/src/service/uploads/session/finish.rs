//! The commits of a session: one file, a batch or a replacement.

use std::mem;
use std::pin::Pin;

use super::{Claims, ONLY, Shape, UploadSession, batch_too_large};
use crate::domain::access::scope::Scope;
use crate::domain::access::signed_url::UploadPermit;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::media;
use crate::domain::file::policy::FilePolicy;
use crate::domain::file::record::FileRecord;
use crate::domain::id::OrganizationId;
use crate::service::files::change::Changed;
use crate::service::request::{BatchItem, GivenName, NewBatch, NewUpload, Replacement, Uploaded};
use crate::service::spans;
use crate::service::uploads::claims::UploadClaims;
use crate::service::uploads::new_files::{NewFile, OneOrMore, ReplyShape, StagedFiles};
use crate::storage::StagedBlob;

impl UploadSession {
    /// Makes a file of the received bytes. When the call returns, bytes and record are durable.
    ///
    /// `DigestMismatch` if the bytes have another digest. `TooLarge` or `InvalidField` if the file breaks the
    /// [policy](NewUpload::policy). `SignatureUsed` if another upload used the permit.
    /// None of them leaves anything behind. `IdempotencyMismatch` if a request with other content used the key.
    /// `Conflict` if the organization was erased after the upload began, and `SignatureInvalid` if it was
    /// erased after the permit was signed.
    pub async fn commit(self, new: NewUpload) -> Result<Uploaded<FileRecord>> {
        self.traced(|session| session.commit_one(new)).await
    }

    async fn commit_one(mut self, new: NewUpload) -> Result<Uploaded<FileRecord>> {
        new.given.check(self.store.name_limit())?;
        let bytes = self.only_file().await?;
        if new.sha256.is_some_and(|sum| sum != bytes.sha256) {
            let message = "the bytes do not have the given sha256";
            return Err(Error::new(ErrorKind::DigestMismatch, message).with_field("sha256"));
        }

        check_policy(&new.policy, &new.given, &bytes)?;
        let permit = self.claimed_for(&new.organization_id).await?;
        let file = NewFile { index: None, given: new.given, metadata: new.metadata, bytes };
        let files = StagedFiles {
            organization_id: new.organization_id,
            sub_system: new.sub_system,
            temp: new.temp,
            files: OneOrMore::one(file),
            reply: ReplyShape::Record,
            permit,
            upload: self.upload,
        };
        Ok(match self.store.insert_or_replay(files, mem::take(&mut self.guards)).await? {
            Uploaded::New(records) => {
                let id = tracing::field::display(records.first.file_id);
                self.span.record("filestore.file.id", id);
                Uploaded::New(records.first)
            }
            Uploaded::Replayed(reply) => Uploaded::Replayed(reply),
        })
    }

    /// Makes files of the received bytes. Every reader sees all files or none. The records are in ascending
    /// order of the item numbers.
    ///
    /// Returns the errors of [`commit`](Self::commit). `MissingField` for a batch without items, or an item
    /// without a file. `InvalidField` if the claims contain a permit.
    pub async fn commit_batch(
        self,
        batch: NewBatch,
        items: Vec<BatchItem>,
    ) -> Result<Uploaded<Vec<FileRecord>>> {
        self.traced(|session| session.commit_items(batch, items)).await
    }

    async fn commit_items(
        mut self,
        batch: NewBatch,
        mut items: Vec<BatchItem>,
    ) -> Result<Uploaded<Vec<FileRecord>>> {
        self.finish_files().await?;
        self.check_batch(&items)?;
        items.sort_by_key(|item| item.index);
        if self.claimed_for(&batch.organization_id).await?.is_some() {
            let message = "a permit is for one file, so a batch cannot spend it";
            return Err(Error::invalid("permit", message));
        }
        self.expect_shape(Shape::Batch)?;
        let files = self.files_of(items)?;
        for file in &files {
            let checked = check_policy(&batch.policy, &file.given, &file.bytes);
            checked.map_err(|error| error.with_item(file.index.unwrap_or(ONLY)))?;
        }
        let Some(files) = OneOrMore::from_iter(files) else {
            return Err(empty_batch());
        };

        let files = StagedFiles {
            organization_id: batch.organization_id,
            sub_system: batch.sub_system,
            temp: false,
            files,
            reply: ReplyShape::List,
            permit: None,
            upload: None,
        };
        Ok(match self.store.insert_or_replay(files, mem::take(&mut self.guards)).await? {
            Uploaded::New(records) => Uploaded::New(records.into_vec()),
            Uploaded::Replayed(reply) => Uploaded::Replayed(reply),
        })
    }

    /// Replaces the content of the claimed file with the received bytes. The file must be in `scope`.
    ///
    /// Returns the errors of [`Files::change`](crate::Files::change). `MissingField` without the claims of a
    /// replacement.
    pub async fn commit_replacement(self, new: Replacement, scope: &Scope) -> Result<Changed> {
        self.traced(|session| session.commit_new_bytes(new, scope)).await
    }

    async fn commit_new_bytes(mut self, new: Replacement, scope: &Scope) -> Result<Changed> {
        new.given.check(self.store.name_limit())?;
        let Some(Claims::Replacement(claims)) = self.claims.take() else {
            return Err(missing("file_id", "a replacement claims the file that it is for"));
        };
        let bytes = self.only_file().await?;
        check_policy(&new.policy, &new.given, &bytes)?;
        let files = self.store.scoped(scope);
        files.replace_bytes(claims.file_id, new, (bytes, self.upload), &claims.conditions).await
    }

    /// Commits within a span below that of the upload.
    async fn traced<T, F>(self, commit: impl FnOnce(Self) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let upload = self.span.clone();
        upload.record("file.size", self.received_bytes());
        let span = spans::commit(&upload, &self.store.inner.config());
        let outcome = spans::within(span, boxed(commit, self)).await;
        spans::note(&upload, &outcome);
        outcome
    }

    /// Takes the one file of an upload or a replacement.
    async fn only_file(&mut self) -> Result<StagedBlob> {
        self.finish_files().await?;
        self.expect_shape(Shape::OneFile)?;
        self.whole.take(ONLY).ok_or_else(|| missing("file", "no file has arrived"))
    }

    /// Joins the items to their files.
    fn files_of(&mut self, items: Vec<BatchItem>) -> Result<Vec<NewFile>> {
        let mut files = Vec::with_capacity(items.len());
        for BatchItem { index, given, metadata } in items {
            let bytes = self.whole.take(index);
            let bytes =
                bytes.ok_or_else(|| missing("file", "an item has no file").with_item(index))?;
            files.push(NewFile { index: Some(index), given, metadata, bytes });
        }
        match self.whole.left() {
            Some(index) => {
                Err(missing("items", "a file has arrived without its item").with_item(index))
            }
            None => Ok(files),
        }
    }

    /// Checks that the claims are those of an upload to `organization`. Without claims, takes them. Returns
    /// the permit that the upload uses up.
    async fn claimed_for(&mut self, organization: &OrganizationId) -> Result<Option<UploadPermit>> {
        if self.claims.is_none() {
            self.claim(UploadClaims::new(organization.clone())).await?;
        }
        match &self.claims {
            Some(Claims::Upload(claims)) if claims.organization_id == *organization => {
                Ok(claims.permit.clone())
            }
            _ => {
                let message = "the session's claims are not those of an upload to the organization";
                Err(Error::invalid("organization_id", message))
            }
        }
    }

    fn check_batch(&self, items: &[BatchItem]) -> Result<()> {
        if items.is_empty() {
            return Err(empty_batch());
        }

        let limits = self.store.inner.config().limits;
        if items.len() > limits.max_batch_items {
            let message = format!("a batch has at most {} items", limits.max_batch_items);
            return Err(Error::new(ErrorKind::TooManyItems, message)
                .with_limit(limits.max_batch_items as u64));
        }
        if self.whole.bytes() > limits.max_batch_size {
            return Err(batch_too_large(limits.max_batch_size));
        }

        for item in items {
            item.given
                .check(self.store.name_limit())
                .map_err(|error| error.with_item(item.index))?;
        }
        Ok(())
    }
}

/// Makes the future of a commit on the heap. A function of its own, so that no copy stays on the stack of its caller.
fn boxed<F>(commit: impl FnOnce(UploadSession) -> F, session: UploadSession) -> Pin<Box<F>> {
    Box::pin(commit(session))
}

/// Refuses a file that breaks the policy of its caller. The bytes are then discarded.
fn check_policy(policy: &FilePolicy, given: &GivenName, bytes: &StagedBlob) -> Result<()> {
    policy.check(&given.judged(), bytes.size_bytes, media::sniff(&bytes.head))
}

fn missing(field: &str, message: &str) -> Error {
    Error::new(ErrorKind::MissingField, message).with_field(field)
}

fn empty_batch() -> Error {
    missing("items", "a batch needs at least one item")
}
