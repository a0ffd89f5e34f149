//! Uploads whose bytes are at hand, and the beginning of those whose bytes arrive in steps.
//!
//! The bytes are staged and durable, then one transaction inserts the records (the commit point), then
//! each blob gets its final name (ARCHITECTURE.md, "An upload").

use std::net::IpAddr;

use bytes::Bytes;
use tokio::io::AsyncRead;

use super::claims::{ReplacementClaims, UploadClaims};
use super::session::UploadSession;
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, Result};
use crate::domain::file::record::FileRecord;
use crate::domain::id::{KeyId, OrganizationId};
use crate::domain::report::erasure::Era;
use crate::service::FileStore;
use crate::service::request::{BatchItem, GivenName, NewBatch, NewUpload, Uploaded};
use crate::storage::Uploader;

/// The beginning of an [`UploadSession`], for callers that receive bytes themselves; from
/// [`FileStore::uploads`].
///
/// ```
/// use filestore_core::uploads::UploadClaims;
/// use filestore_core::{FileStore, NewUpload};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> filestore_core::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let store = FileStore::open(dir.path()).await?;
/// let mut session = store.uploads().begin(UploadClaims::new("42".parse()?)).await?;
/// session.write("hello".into()).await?;
/// session.commit(NewUpload::new("42".parse()?, "gallery".parse()?)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Uploads<'a> {
    store: &'a FileStore,
    uploader: Uploader,
    era: Option<Era>,
}

impl FileStore {
    /// Gives access to uploads in steps: claims, bytes, commit.
    pub fn uploads(&self) -> Uploads<'_> {
        Uploads { store: self, uploader: Uploader::Unknown, era: None }
    }

    /// Uploads all of `reader` as one file. When it returns, bytes and record are durable.
    ///
    /// ```
    /// use filestore_core::{FileStore, NewUpload};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> filestore_core::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let store = FileStore::open(dir.path()).await?;
    /// let new = NewUpload::new("42".parse()?, "gallery".parse()?).with_name("hello.txt");
    /// let record = store.upload(new, &b"hello"[..]).await?;
    /// assert_eq!((record.blob.size_bytes, record.mime_type.as_str()), (5, "text/plain"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upload(
        &self,
        new: NewUpload,
        reader: impl AsyncRead + Unpin,
    ) -> Result<FileRecord> {
        new.given.check(self.name_limit())?;
        let claims = UploadClaims::new(new.organization_id.clone());
        let mut session = self.uploads().begin(claims).await?;
        session.write_all(reader).await?;
        committed(session.commit(new).await?)
    }

    /// Uploads files that are in memory as a batch: all of them or none, at every instant, to every
    /// reader. The records come in the order of the files.
    ///
    /// ```no_run
    /// use filestore_core::uploads::GivenName;
    /// use filestore_core::{FileStore, NewBatch};
    ///
    /// # async fn example(store: &FileStore) -> filestore_core::Result<()> {
    /// let batch = NewBatch::new("42".parse()?, "gallery".parse()?);
    /// let files = [("front.jpg", &b"..."[..]), ("back.jpg", b"...")]
    ///     .map(|(name, bytes)| (GivenName::named(name), bytes.into()));
    /// let records = store.batch(batch, files).await?;
    /// assert_eq!(records.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn batch(
        &self,
        batch: NewBatch,
        files: impl IntoIterator<Item = (GivenName, Bytes)>,
    ) -> Result<Vec<FileRecord>> {
        let claims = UploadClaims::new(batch.organization_id.clone());
        let mut session = self.uploads().begin(claims).await?;
        let mut items = Vec::new();
        for (index, (given, bytes)) in (0..).zip(files) {
            session.begin_item(index).await?;
            session.write(bytes).await?;
            items.push(BatchItem::new(index).with_given(given));
        }
        committed(session.commit_batch(batch, items).await?)
    }
}

/// Returns the result of a commit without an idempotency key.
fn committed<T>(uploaded: Uploaded<T>) -> Result<T> {
    match uploaded {
        Uploaded::New(made) => Ok(made),
        Uploaded::Replayed(_) => Err(Error::internal("committing", "a reply without a key")),
    }
}

impl Uploads<'_> {
    /// Begins an upload: takes its claims before the first byte. Errors as [`UploadSession::claim`].
    pub async fn begin(self, claims: UploadClaims) -> Result<UploadSession> {
        let mut session = self.begin_unclaimed();
        session.claim(claims).await?;
        Ok(session)
    }

    /// Begins to replace the bytes of a file of `scope`. Errors as [`UploadSession::claim_replacement`].
    ///
    /// ```no_run
    /// use filestore_core::uploads::ReplacementClaims;
    /// use filestore_core::{FileRecord, FileStore, IfMatch, Replacement, Scope};
    ///
    /// # async fn example(store: &FileStore, seen: FileRecord) -> filestore_core::Result<()> {
    /// let condition = IfMatch::OneOf(vec![seen.blob.sha256]);
    /// let claims = ReplacementClaims::new(seen.file_id).with_conditions(condition);
    /// let mut session = store.uploads().begin_replacement(claims, &Scope::All).await?;
    /// session.write("new bytes".into()).await?;
    /// let changed = session.commit_replacement(Replacement::new(), &Scope::All).await?;
    /// assert_eq!(changed.record.version, seen.version + 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn begin_replacement(
        self,
        claims: ReplacementClaims,
        scope: &Scope,
    ) -> Result<UploadSession> {
        let mut session = self.begin_unclaimed();
        session.claim_replacement(claims, scope).await?;
        Ok(session)
    }

    /// Begins to receive bytes before it is known for which organization or file they are, for example from a
    /// form whose fields come in any order. Claim as soon as it is known. A commit without claims takes them
    /// first.
    pub fn begin_unclaimed(self) -> UploadSession {
        let era = self.era.unwrap_or_else(|| self.store.inner.metadata.era());
        UploadSession::new(self.store.clone(), self.uploader, era)
    }

    /// Counts bytes that arrive without claims for `organization`, from the first byte.
    #[must_use]
    pub fn of(self, organization: &OrganizationId) -> Self {
        Self { uploader: Uploader::Organization(organization.clone()), ..self }
    }

    /// Counts bytes that arrive without claims for the sender who showed this key.
    #[must_use]
    pub fn by_key(self, key: KeyId) -> Self {
        Self { uploader: Uploader::Key(key), ..self }
    }

    /// Counts bytes that arrive without claims for the sender at this address: where there are no keys. Without any
    /// of these, all senders share the room of one.
    #[must_use]
    pub fn by_address(self, address: IpAddr) -> Self {
        Self { uploader: Uploader::Address(address), ..self }
    }

    /// Returns the present era, for work that begins now: see [`begun_in`](Self::begun_in). Answered from
    /// memory.
    pub fn era(self) -> Era {
        self.store.inner.metadata.era()
    }

    /// Counts the upload as begun in `era`, which [`era`](Self::era) returned then. Without this, an
    /// upload begins with its session. An upload that began before an erasure of its organization is refused
    /// with `Conflict`.
    #[must_use]
    pub fn begun_in(self, era: Era) -> Self {
        Self { era: Some(era), ..self }
    }
}
