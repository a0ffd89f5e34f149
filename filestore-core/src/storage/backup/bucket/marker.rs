//! The identity of a provider's snapshots: an object with the format of what lies beside it, and an id.
//!
//! Two buckets that are configured under one code in turn are told apart by it, as two disks are that are
//! mounted at one path.

use super::BackupBucket;
use super::names::{MARKER, SNAPSHOTS};
use crate::domain::clock::Timestamp;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::DestinationId;
use crate::storage::Cloud;

/// The first line.
const FORMAT: &str = "format 1";

/// The most bytes of a marker that is none.
const MARKER_BYTES: u64 = 4096;

impl BackupBucket {
    /// Opens a provider that has snapshots, or had. `Unusable` for any other.
    pub async fn open(cloud: &Cloud) -> Result<Self> {
        match read(cloud).await? {
            Some(_) => Ok(Self { cloud: cloud.clone(), run: None }),
            None => Err(missing(cloud)),
        }
    }

    /// Opens a provider; one without snapshots is made to be a destination.
    pub async fn prepare(cloud: &Cloud, now: Timestamp) -> Result<Self> {
        if read(cloud).await?.is_none() {
            make(cloud, now).await?;
        }
        Self::open(cloud).await
    }

    /// Opens a provider that had snapshots of the store. `Unusable` for one that does not show it any more:
    /// it may be another bucket.
    pub async fn reopen(cloud: &Cloud) -> Result<Self> {
        if read(cloud).await?.is_some() {
            return Ok(Self { cloud: cloud.clone(), run: None });
        }
        let message = format!(
            "the provider {} had snapshots of this store, and shows nothing of them: look at its bucket and root; \
             if snapshots are to begin anew there, forget those first (`filestore backup forget`)",
            cloud.code()
        );
        Err(Error::new(ErrorKind::Unusable, message))
    }
}

/// Makes the error of a provider without a marker.
pub(super) fn missing(cloud: &Cloud) -> Error {
    let message = format!("the provider holds no snapshots: {}", cloud.code());
    Error::new(ErrorKind::Unusable, message)
}

/// Reads the id; `None` where there is no marker.
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

/// Makes a provider a destination. Two that do so at once agree on the one that is there afterwards.
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
