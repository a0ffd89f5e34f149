//! The identity of a provider's snapshots: an object with the version of the format and an id.
//!
//! The id distinguishes two buckets that are configured under the same code in turn, like two disks at one
//! mount point.

use super::BackupBucket;
use super::names::{MARKER, SNAPSHOTS};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::DestinationId;
use crate::domain::time::clock::Timestamp;
use crate::storage::Cloud;

/// The first line.
const FORMAT: &str = "format 1";

/// The maximum size of a marker, in bytes.
const MARKER_BYTES: u64 = 4096;

impl BackupBucket {
    /// Opens a provider that contains, or contained, snapshots. `Unusable` for any other provider.
    pub async fn open(cloud: &Cloud) -> Result<Self> {
        match read(cloud).await? {
            Some(_) => Ok(Self { cloud: cloud.clone(), run: None }),
            None => Err(missing(cloud)),
        }
    }

    /// Opens a provider. If the provider has no snapshots yet, marks the provider as a destination.
    pub async fn prepare(cloud: &Cloud, now: Timestamp) -> Result<Self> {
        if read(cloud).await?.is_none() {
            make(cloud, now).await?;
        }
        Self::open(cloud).await
    }

    /// Opens a provider that contained snapshots of the store. `Unusable` if its marker is missing, because
    /// this might be another bucket.
    pub async fn reopen(cloud: &Cloud) -> Result<Self> {
        if read(cloud).await?.is_some() {
            return Ok(Self { cloud: cloud.clone(), run: None });
        }
        let message = format!(
            "the provider {} had snapshots of this store, and they are missing now: check its bucket and root. \
             To start again with an empty destination, run `filestore backup forget` first",
            cloud.code()
        );
        Err(Error::new(ErrorKind::Unusable, message))
    }
}

/// Returns the error for a provider without a marker.
pub(super) fn missing(cloud: &Cloud) -> Error {
    let message = format!("the provider holds no snapshots: {}", cloud.code());
    Error::new(ErrorKind::Unusable, message)
}

/// Reads the id. `None` if there is no marker.
pub(super) async fn read(cloud: &Cloud) -> Result<Option<DestinationId>> {
    let Some(size_bytes) = cloud.object_size(MARKER).await? else { return Ok(None) };
    let range = 0..size_bytes.min(MARKER_BYTES);
    let Some(bytes) = cloud.read_object_range(MARKER, size_bytes, range).await? else {
        return Ok(None);
    };

    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    let is_ours = lines.next() == Some(FORMAT);
    let id = lines.find_map(|line| line.strip_prefix("id ")).filter(|_| is_ours);
    id.and_then(|id| id.parse().ok()).map(Some).ok_or_else(|| {
        let message = format!(
            "the object {MARKER} of the provider {} is not as this version of the program writes it",
            cloud.code()
        );
        Error::new(ErrorKind::Unusable, message)
    })
}

/// Marks a provider as a destination. Two concurrent calls agree on the marker that remains.
async fn make(cloud: &Cloud, now: Timestamp) -> Result<()> {
    if !cloud.list_objects(SNAPSHOTS).await?.is_empty() {
        let message = format!(
            "the provider {} has parts of snapshots and no {MARKER}: put that object back",
            cloud.code()
        );
        return Err(Error::new(ErrorKind::Unusable, message));
    }

    let id = DestinationId::generate(now);
    let put = cloud.put_text(MARKER, format!("{FORMAT}\nid {id}\n")).await;
    if let Err(error) = put
        && read(cloud).await?.is_none()
    {
        return Err(error);
    }
    // Or another run's marker was there first.
    tracing::info!(provider = %cloud.code(), destination = %id, "the provider takes snapshots from now on");
    Ok(())
}
