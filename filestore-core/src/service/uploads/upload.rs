//! Uploads in one call, and the start of uploads in steps.
//!
//! The bytes are staged and durable, then one transaction inserts the records (the commit point), then each
//! blob gets its final name (ARCHITECTURE.md, "An upload").

use std::net::IpAddr;

use bytes::Bytes;
use futures_util::Stream;
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

/// The start of an [`UploadSession`], for callers that receive bytes themselves. Get a value from
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
    /// Returns the handle for uploads in steps: claims, bytes, commit.
    pub fn uploads(&self) -> Uploads<'_> {
        Uploads { store: self, uploader: Uploader::Unknown, era: None }
    }

    /// Uploads all of `reader` as one file. When the call returns, bytes and record are durable.
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
        let mut session = self.begin(&new).await?;
        session.write_all(reader).await?;
        committed(session.commit(new).await?)
    }

    /// Uploads all chunks of `stream` as one file, without copying them. Otherwise like [`upload`](Self::upload).
    /// For example, pass the body of a request on.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use filestore_core::{FileStore, NewUpload};
    /// use futures_util::stream;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> filestore_core::Result<()> {
    /// let store = FileStore::temporary().await?;
    /// let new = NewUpload::new("42".parse()?, "gallery".parse()?).with_name("hello.txt");
    /// let chunks = ["hello, ", "world"].map(|chunk| Ok::<_, std::io::Error>(Bytes::from(chunk)));
    /// let record = store.upload_stream(new, stream::iter(chunks)).await?;
    /// assert_eq!(record.blob.size_bytes, 12);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upload_stream<E>(
        &self,
        new: NewUpload,
        stream: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<FileRecord>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut session = self.begin(&new).await?;
        session.write_stream(stream).await?;
        committed(session.commit(new).await?)
    }

    /// Begins the upload of one file, after the checks that need no byte.
    async fn begin(&self, new: &NewUpload) -> Result<UploadSession> {
        new.given.check(self.name_limit())?;
        new.policy.check_name(&new.given.judged())?;
        let claims = UploadClaims::new(new.organization_id.clone());
        self.uploads().begin(claims.with_max_bytes(new.policy.most_bytes())).await
    }

    /// Uploads files that are in memory as a batch. Every reader sees all files or none. The records are in
    /// the order of the files.
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
        let claims = claims.with_max_bytes(batch.policy.most_bytes());
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
    /// Begins an upload: takes its claims before the first byte. Returns the errors of
    /// [`UploadSession::claim`].
    pub async fn begin(self, claims: UploadClaims) -> Result<UploadSession> {
        let mut session = self.begin_unclaimed();
        session.claim(claims).await?;
        Ok(session)
    }

    /// Begins to replace the bytes of a file in `scope`. Returns the errors of
    /// [`UploadSession::claim_replacement`].
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

    /// Begins to receive bytes before you know their organization or file, for example from a form with
    /// fields in any order. Claim as soon as you know. A commit without claims takes them first.
    pub fn begin_unclaimed(self) -> UploadSession {
        let era = self.era.unwrap_or_else(|| self.store.inner.metadata.era());
        UploadSession::new(self.store.clone(), self.uploader, era)
    }

    /// Counts the bytes for this organization until [`claim`](UploadSession::claim) names the organization.
    #[must_use]
    pub fn of(self, organization: &OrganizationId) -> Self {
        Self { uploader: Uploader::Organization(organization.clone()), ..self }
    }

    /// Counts the bytes for the sender with this key until [`claim`](UploadSession::claim) names the
    /// organization.
    #[must_use]
    pub fn by_key(self, key: KeyId) -> Self {
        Self { uploader: Uploader::Key(key), ..self }
    }

    /// Counts the bytes for the sender at this address until [`claim`](UploadSession::claim) names the
    /// organization. Use this call if the sender has no key. Without a sender, all such uploads share one
    /// limit.
    #[must_use]
    pub fn by_address(self, address: IpAddr) -> Self {
        Self { uploader: Uploader::Address(address), ..self }
    }

    /// Returns the present era from memory, for work that begins now: see [`begun_in`](Self::begun_in).
    pub fn era(self) -> Era {
        self.store.inner.metadata.era()
    }

    /// States that the upload began in `era`, which [`era`](Self::era) returned at that time. Without this
    /// call, an upload begins with its session. If the organization was erased after the upload began, the
    /// commit returns `Conflict`.
    #[must_use]
    pub fn begun_in(self, era: Era) -> Self {
        Self { era: Some(era), ..self }
    }
}
