//! Objects of snapshots. These objects are not blobs of files.
//!
//! Snapshots have their own directory. Names of organizations never begin like this directory. Several stores
//! can take snapshots to this directory, and a restore reads the directory before a database exists. The
//! store's marker therefore does not apply to these objects. Snapshots have their own marker.

use std::ops::Range;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::{FutureExt, TryStreamExt, stream};
use opendal::{EntryMode, Lister};
use sha2::Digest;

use super::read::ReadTurn;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::id::Sha256;
use crate::storage::cloud::Cloud;
use crate::storage::cloud::line::breaker::Direction;
use crate::storage::cloud::opening::fault;
use crate::storage::cloud_types::Object;
use crate::storage::{BlobInfo, ByteStream, Priority};

/// The directory of snapshots below the provider's root.
pub(in crate::storage) const SNAPSHOTS: &str = ".filestore-backup/";

const LISTING: &str = "listing snapshots";
const LOOKING: &str = "looking at a part of a snapshot";

/// The number of objects taken from a listing at once.
const PAGE: usize = 1000;

impl Cloud {
    /// Stores an object and verifies it like a blob. The name must be new, or have been used for the same
    /// bytes.
    pub(in crate::storage) async fn put_object(
        &self,
        name: &str,
        size_bytes: u64,
        sha256: Sha256,
        bytes: ByteStream,
    ) -> Result<()> {
        let content_type = "application/octet-stream".to_owned();
        let object = BlobInfo { size_bytes, sha256, content_type, content_disposition: None };
        self.put_path(name, &object, bytes, &Priority::Background).await
    }

    /// Stores a small object like [`put_object`](Self::put_object).
    pub(in crate::storage) async fn put_text(&self, name: &str, text: String) -> Result<()> {
        let sha256 = Sha256(sha2::Sha256::digest(&text).into());
        let (size_bytes, bytes) = (text.len() as u64, Bytes::from(text));
        self.put_object(name, size_bytes, sha256, Box::pin(stream::iter([Ok(bytes)]))).await
    }

    /// Reads a whole object of this size. `None` if it does not exist. An object of another size is an error.
    pub(in crate::storage) async fn read_object(
        &self,
        name: &str,
        size_bytes: u64,
    ) -> Result<Option<ByteStream>> {
        absent(self.read_all(name, size_bytes).await)
    }

    /// Reads a range of an object with this size into memory. `None` if it does not exist.
    pub(in crate::storage) async fn read_object_range(
        &self,
        name: &str,
        size_bytes: u64,
        range: Range<u64>,
    ) -> Result<Option<Bytes>> {
        self.inner.breakers.check(Direction::Read)?;
        let turn = self.inner.turns.copies.pass(1, self.request_patience()).await;
        let turn = turn.map_err(|waited| self.busy("copies", waited))?;

        let read = self.read_path(name, size_bytes, range, ReadTurn::Own(turn)).await;
        let Some(pieces) = absent(read)? else { return Ok(None) };
        Ok(Some(pieces.try_collect::<Vec<_>>().await?.concat().into()))
    }

    /// Returns an object's size. `None` if it does not exist.
    pub(in crate::storage) async fn object_size(&self, name: &str) -> Result<Option<u64>> {
        let _admission = self.inner.breakers.admit(Direction::Read)?;
        let (operator, path) = (self.inner.operator.clone(), name.to_owned());
        match self.ask(Direction::Read, async move { operator.stat(&path).await }).await {
            Ok(found) => Ok(Some(found.content_length())),
            Err(error) if fault::is_missing_object(&error) => Ok(None),
            Err(error) => Err(self.fault(LOOKING, &error)),
        }
    }

    /// Lists the objects in a directory by name. `directory` ends in `/`. Empty if the directory is absent.
    pub(in crate::storage) async fn list_objects(&self, directory: &str) -> Result<Vec<Object>> {
        let _admission = self.inner.breakers.admit(Direction::Read)?;
        let (operator, path) = (self.inner.operator.clone(), directory.to_owned());
        let begun = self.ask(Direction::Read, async move { operator.lister(&path).await }).await;
        let mut lister = match begun {
            Ok(lister) => Some(lister),
            Err(error) if fault::is_missing_object(&error) => return Ok(Vec::new()),
            Err(error) => return Err(self.fault(LISTING, &error)),
        };

        let mut objects = Vec::new();
        while let Some(listing) = lister.take() {
            let (listing, page) = self
                .ask_with(Direction::Read, 0, listing, |listing| next_page(listing).boxed())
                .await;
            let (page, is_last) = page.map_err(|error| self.fault(LISTING, &error))?;
            objects.extend(page.into_iter().filter_map(|mut object| {
                object.name = object.name.strip_prefix(directory)?.to_owned();
                Some(object)
            }));
            lister = listing.filter(|_| !is_last);
        }
        objects.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(objects)
    }

    /// Removes an object. `Ok` once it is absent.
    pub(in crate::storage) async fn remove_object(&self, name: &str) -> Result<()> {
        self.remove_path(name).await
    }
}

/// Returns the next objects of a listing, by path. True if they are the last ones.
async fn next_page(lister: &mut Lister) -> opendal::Result<(Vec<Object>, bool)> {
    let mut page = Vec::new();
    while page.len() < PAGE {
        let Some(entry) = lister.try_next().await? else { return Ok((page, true)) };
        let found = entry.metadata();
        if found.mode() == EntryMode::FILE {
            page.push(Object {
                name: entry.path().to_owned(),
                size_bytes: found.content_length(),
                modified_at: found.last_modified().map(|at| SystemTime::from(at).into()),
            });
        }
    }
    Ok((page, false))
}

fn absent<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
