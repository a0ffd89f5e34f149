//! Stored files: reading, listing, changing, deleting, pictures, receipts.
//!
//! An application uses [`Files`], the files of a scope. A program that serves files itself also uses
//! [`ServedFiles`](serving::ServedFiles), which looks up a record first and reads the bytes later.

pub(super) mod content_reader;
pub(super) mod read;
pub(super) mod listing;
pub(super) mod organizations;
pub(super) mod change;
pub(super) mod delete;
pub(crate) mod put_back;
pub(super) mod variant;
pub(super) mod sheet;
pub(super) mod serving;
pub(super) mod receipts;
pub(super) mod explaining;

use crate::domain::access::scope::Scope;
use crate::domain::report::receipt::DeletedBy;
use crate::service::FileStore;

/// The files of some organizations; from [`FileStore::scoped`].
///
/// A call finds only files of its [`Scope`]. Any other file is `NotFound`, like an unknown id. To work on all
/// organizations, name [`Scope::All`].
///
/// ```
/// use filestore_core::{FileStore, NewUpload, Scope};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> filestore_core::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let store = FileStore::open(dir.path()).await?;
/// let new = NewUpload::new("42".parse()?, "gallery".parse()?);
/// let id = store.upload(new, &b"hello"[..]).await?.file_id;
///
/// let own = Scope::Organizations(vec!["42".parse()?]);
/// assert_eq!(store.scoped(&own).read(id).await?, "hello");
///
/// let other = Scope::Organizations(vec!["43".parse()?]);
/// assert!(store.scoped(&other).read(id).await.is_err());
/// # store.close().await;
/// # Ok(())
/// # }
/// ```
///
/// # Which call to use
///
/// | to | call |
/// |---|---|
/// | look up a file before using the content | [`record`](Self::record) |
/// | show a file that can be deleted, for example to restore it | [`info`](Self::info) |
/// | learn where a file is, why, and what comes next | [`explain`](Self::explain) |
/// | get the content of a small file | [`read`](Self::read) |
/// | stream the content of a large file, or a part | [`open`](Self::open), [`reader`](Self::reader) |
/// | look up several files, deleted or not | [`records`](Self::records) |
/// | list files, page by page | [`list`](Self::list) |
/// | count the files and bytes of an organization | [`usage`](Self::usage) |
/// | get a thumbnail of a picture | [`variant`](Self::variant) |
/// | get the thumbnails of many pictures in one image | [`sheet`](Self::sheet) |
/// | change the name, type or custom metadata | [`edit`](Self::edit) |
/// | replace the content | [`replace`](Self::replace) |
/// | make a temporary file permanent | [`make_ready`](Self::make_ready) |
/// | create a URL that works without a key | [`sign`](Self::sign) |
/// | delete a file | [`delete`](Self::delete) |
/// | delete a file only if its content is still the same | [`delete_if`](Self::delete_if) |
/// | delete many files in few transactions | [`delete_many`](Self::delete_many) |
/// | restore many files in few transactions | [`restore_many`](Self::restore_many) |
#[must_use = "a handle does nothing until you call a method"]
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    pub(super) store: &'a FileStore,
    pub(super) scope: &'a Scope,
    deleted_by: &'a DeletedBy,
}

impl<'a> Files<'a> {
    /// Returns the files of `scope`.
    pub(super) fn of(store: &'a FileStore, scope: &'a Scope) -> Self {
        Self { store, scope, deleted_by: &DeletedBy::Library }
    }

    /// Sets the name that purge receipts give for deletions. Without this call, it is [`DeletedBy::Library`].
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// use filestore_core::receipts::DeletedBy;
    ///
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let files = store.scoped(&Scope::All).deleting_as(&DeletedBy::OpenMode);
    /// files.delete(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn deleting_as(self, by: &'a DeletedBy) -> Self {
        Self { deleted_by: by, ..self }
    }
}
