//! Resumable uploads: creation, transfers, commit and end.
//!
//! # Purpose
//! A resumable upload is a row that owns a staged file. Each request appends some bytes. The next request continues
//! where the last one ended, also after a broken connection or a restart of the server.
//!
//! # The rule
//! Write, fdatasync, commit the offset with the state of the digest, then tell the offset. So a client never sends a
//! told byte again, and offsets never decrease. The commit is a compare-and-set on epoch, stage and offset.
//!
//! Some clients take an offset that equals the length for success. So only the commit of the file tells the last byte
//! of a known length. Until then, the told offset is at most length − 1.
//!
//! # Locking
//! One request at a time has an upload (`turns`). A newer request ends the older request, which keeps what has
//! arrived. Exception: if the newer request sends bytes from the told offset on, the older request forgets its
//! bytes after this offset. So no connection that a client forgot keeps the client out, of two requests at one
//! offset exactly one succeeds, and nothing must be unlocked.
//!
//! # Several servers
//! If several servers share a backend, the bytes up to the offset are also there, as parts. So every server
//! can continue the upload (`parts`). Otherwise, the bytes are on the disk of one server. Other servers can
//! show and cancel the upload. For bytes they answer `UploadElsewhere`.
//!
//! | file | holds |
//! |---|---|
//! | `request` | requests and results |
//! | `terms` | the stored terms of an upload |
//! | `turns` | the one request that has an upload |
//! | `state` | the state that all requests share |
//! | `token` | the secret part of an upload's address |
//! | `permit` | uploads with a signed URL |
//! | `create`, `append`, `transfer`, `finish`, `end` | the life of an upload |
//! | `parts` | the bytes that other servers continue from |
//! | `concatenate` | an upload that joins other uploads |
//! | `recovery` | the start of the process |

pub(super) mod append;
mod concatenate;
mod create;
mod end;
mod finish;
mod parts;
pub(in crate::service) mod permit;
pub(in crate::service) mod recovery;
pub(in crate::service) mod request;
pub(in crate::service) mod state;
mod terms;
mod token;
mod transfer;
mod turns;
#[cfg(test)]
mod tests;

use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::resumable::{ResumableUpload, UploadAddress};
use crate::domain::id::{OrganizationId, UploadId};
use crate::metadata::UploadRow;
use crate::service::FileStore;

pub(crate) use self::end::{clear_all as clear_ended, upkeep as upkeep_of_uploads};
pub(crate) use self::finish::reopen_stalled as reopen_stalled_uploads;
#[cfg(any(test, feature = "internals"))]
pub use self::terms::judge as judge_terms;
pub use self::turns::Arrival;
use self::turns::Wish;

/// Resumable uploads of a store, from [`FileStore::resumable`].
///
/// ```
/// use bytes::Bytes;
/// use filestore_core::uploads::{Append, NewResumable};
/// use filestore_core::{Error, FileStore, NewUpload, Scope};
/// use futures_util::stream;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> filestore_core::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let store = FileStore::open(dir.path()).await?;
/// let new = NewUpload::new("42".parse()?, "gallery".parse()?).with_name("hello.txt");
/// let upload = store.resumable().create(NewResumable::new(new).with_length(11)).await?.upload;
///
/// // Each piece can come from another connection, and the server can restart in between.
/// for (offset, piece) in [(0, "hello "), (6, "world")] {
///     let body = stream::iter([Ok::<_, Error>(Bytes::from(piece))]);
///     let append = Append::at(offset);
///     let upload = store.resumable().append(&upload.address, append, body).await?;
///     println!("{} bytes are on the disk", upload.offset);
/// }
/// let file_id = store.resumable().status(&upload.address, &Scope::All).await?.file_id;
/// assert_eq!(store.scoped(&Scope::All).read(file_id.unwrap()).await?, "hello world");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ResumableUploads<'a> {
    store: &'a FileStore,
    /// The arrival of the request that uses the handle. `None`: each call arrives when it is made.
    arrived: Option<Arrival>,
}

impl FileStore {
    /// Returns the handle for resumable uploads.
    pub fn resumable(&self) -> ResumableUploads<'_> {
        ResumableUploads { store: self, arrived: None }
    }
}

impl ResumableUploads<'_> {
    /// Notes that a request arrives. A server calls this as soon as it has read the head of a request, before it waits
    /// for anything, and later passes the result to [`with_arrival`](Self::with_arrival).
    ///
    /// A client whose connection breaks repeats its request on another connection. Without the order of arrival, the
    /// broken request could end the repeated one, if the server takes longer to check it.
    pub fn arrive(self) -> Arrival {
        self.store.inner.uploads.resumable.arrive()
    }

    /// Makes the calls of this handle end no request that arrived later.
    #[must_use]
    pub fn with_arrival(mut self, arrived: Arrival) -> Self {
        self.arrived = Some(arrived);
        self
    }

    fn arrival(self) -> Arrival {
        self.arrived.unwrap_or_else(|| self.arrive())
    }

    /// Returns an upload of an organization in `scope`. A running transfer of the upload ends with
    /// `UploadSuperseded` and keeps its bytes. So the next request starts at the returned offset.
    ///
    /// Returns `NotFound` for an unknown upload, a wrong token, and an organization outside the scope. Returns
    /// `UploadGone` with the reason if the upload has failed or expired, or if its file was deleted.
    pub async fn status(self, address: &UploadAddress, scope: &Scope) -> Result<ResumableUpload> {
        let arrived = self.arrival();
        let id = self.checked(address, scope).await?.upload_id;
        let row = match self.store.inner.uploads.resumable.enter_as(id, arrived, Wish::Keep).await {
            Ok(_turn) => self.row(id, scope).await?,
            // A newer request has the upload, and keeps it.
            Err(error) if error.kind() == ErrorKind::UploadSuperseded => {
                self.row(id, scope).await?
            }
            // The transfer does not let go, perhaps because of the disk. From now on it commits nothing.
            Err(_) => self.seize(id, scope).await?,
        };
        self.view_live(row).await
    }

    /// Lists up to `limit` uploads of an organization ordered by id, starting after `after`. The list
    /// contains ended uploads, but no tokens. Running transfers continue.
    pub async fn list(
        self,
        organization: &OrganizationId,
        after: Option<UploadId>,
        limit: usize,
    ) -> Result<Vec<ResumableUpload>> {
        self.listed(Some(organization), after, limit).await
    }

    /// Lists uploads of an organization, or of all organizations, as [`list`](Self::list) does.
    pub(crate) async fn listed(
        self,
        organization: Option<&OrganizationId>,
        after: Option<UploadId>,
        limit: usize,
    ) -> Result<Vec<ResumableUpload>> {
        let rows = self.store.inner.metadata.uploads_of(organization, after, limit).await?;
        Ok(rows.into_iter().map(ResumableUpload::listed).collect())
    }

    /// Returns an upload in any stage, without its token. A running transfer continues.
    pub(crate) async fn look_up(self, id: UploadId) -> Result<ResumableUpload> {
        Ok(ResumableUpload::listed(self.row(id, &Scope::All).await?))
    }

    /// Ends all transfers with `Busy`. Their bytes are kept. Call this before the program ends.
    pub fn stop(self) {
        self.store.inner.uploads.resumable.stop();
    }

    /// Returns the row of an upload that `scope` covers.
    async fn row(self, id: UploadId, scope: &Scope) -> Result<UploadRow> {
        let row = self.store.inner.metadata.upload(id).await?;
        row.filter(|row| scope.covers(&row.organization)).ok_or_else(unknown)
    }

    /// Makes what a caller sees of an upload. Refuses one that has failed or expired.
    async fn view_live(self, row: UploadRow) -> Result<ResumableUpload> {
        if let Some(file_id) = row.file_id {
            let record = self.store.inner.metadata.file(file_id, &Scope::All).await?;
            if record.is_none_or(|record| record.state.is_deleted()) {
                return Err(gone("its file was deleted"));
            }
        }
        if !row.stage.is_live() && row.file_id.is_none() {
            let reason = row.failure.map_or_else(
                || "its lifetime is over".to_owned(),
                |failure| format!("{}: {}", failure.code, failure.message),
            );
            return Err(gone(&reason));
        }
        self.view(row).await
    }

    async fn view(self, row: UploadRow) -> Result<ResumableUpload> {
        let address = self.address_of(row.upload_id).await?;
        Ok(ResumableUpload::of(row, address))
    }
}

fn unknown() -> Error {
    Error::not_found("upload")
}

fn gone(reason: &str) -> Error {
    Error::new(ErrorKind::UploadGone, format!("the upload is over: {reason}"))
}
