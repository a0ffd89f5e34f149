//! Checks a record's bytes: their presence, length and digest.

use futures_util::StreamExt;
use sha2::{Digest, Sha256 as Hasher};

use super::run::Check;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::{Blob, FileRecord};
use crate::domain::id::Sha256;
use crate::storage::stores::Holder;
use crate::storage::{BlobStore, Cloud, DigestStep, LocalStore};

/// The state of a record's bytes.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The bytes match the record, as far as the check compares them.
    Sound,
    /// They are missing.
    Missing,
    /// The bytes have another length.
    Size(u64),
    /// The bytes have another digest.
    Digest(Sha256),
    /// The bytes cannot be read, although their holder answers.
    Unreadable(Error),
    /// The holder does not answer, or is not the right place for the records.
    Unknown(Error),
    /// The check was told to stop.
    Stopped,
}

impl Check<'_> {
    /// Checks the bytes of a record on the disk or at a provider.
    pub(super) async fn look_at(&self, record: &FileRecord) -> Verdict {
        let blob = &record.blob;
        let stores = &self.inner().stores;
        match stores.holder(&blob.provider) {
            Ok(Holder::Disk(disk)) => self.on_disk(disk, blob).await,
            Ok(Holder::Cloud(cloud)) => self.at_cloud(&cloud, blob).await,
            Err(error) => Verdict::Unknown(error),
        }
    }

    async fn on_disk(&self, disk: &LocalStore, blob: &Blob) -> Verdict {
        let looked = if self.is_deep() {
            self.digest_on_disk(disk, &blob.key).await
        } else {
            length_on_disk(disk, &blob.key).await.map(|length| length.map(|length| (length, None)))
        };

        match looked {
            Ok(found) => compare(blob, found, self.is_stopped()),
            Err(error) => Verdict::Unreadable(error),
        }
    }

    /// Reads a blob from the disk. Returns no digest if the check was told to stop.
    pub(super) async fn digest_on_disk(
        &self,
        disk: &LocalStore,
        key: &BlobKey,
    ) -> Result<Option<(u64, Option<Sha256>)>> {
        let Some(mut reading) = disk.read_anew(key).await? else { return Ok(None) };
        let mut before = 0;
        loop {
            match reading.step().await? {
                DigestStep::Done(length, digest) => {
                    self.pace(length - before).await;
                    return Ok(Some((length, Some(digest))));
                }
                DigestStep::More(rest, read) => {
                    self.pace(read).await;
                    before += read;
                    reading = rest;
                }
            }
            if self.is_stopped() {
                return Ok(Some((0, None)));
            }
        }
    }

    async fn at_cloud(&self, cloud: &Cloud, blob: &Blob) -> Verdict {
        match self.ask_cloud(cloud, blob).await {
            Ok(verdict) => verdict,
            Err(error) if error.kind() == ErrorKind::Busy => Verdict::Unknown(error),
            // Its holder, or this object alone?
            Err(_) => match cloud.check_marker().await {
                Err(silent) => Verdict::Unknown(silent),
                Ok(()) => match self.ask_cloud(cloud, blob).await {
                    Ok(verdict) => verdict,
                    Err(error) => Verdict::Unreadable(error),
                },
            },
        }
    }

    async fn ask_cloud(&self, cloud: &Cloud, blob: &Blob) -> Result<Verdict> {
        let Some(length) = cloud.length(&blob.key).await? else {
            return Ok(missing_at(cloud).await);
        };
        if length != blob.size_bytes || !self.is_deep() {
            return Ok(compare(blob, Some((length, None)), false));
        }

        let Some(bytes) = cloud.read_to_copy(&blob.key, length).await? else {
            return Ok(missing_at(cloud).await);
        };
        let mut bytes = bytes.into_stream(0..length);
        let mut hasher = Hasher::new();
        while let Some(piece) = bytes.next().await {
            let piece = piece?;
            hasher.update(&piece);
            self.pace(piece.len() as u64).await;
            if self.is_stopped() {
                return Ok(Verdict::Stopped);
            }
        }
        let digest = Sha256(hasher.finalize().into());
        Ok(compare(blob, Some((length, Some(digest))), false))
    }
}

/// Decides about a missing object. In the wrong place, it would be missing too.
async fn missing_at(cloud: &Cloud) -> Verdict {
    match cloud.check_marker().await {
        Ok(()) => Verdict::Missing,
        Err(error) => Verdict::Unknown(error),
    }
}

pub(super) async fn length_on_disk(disk: &LocalStore, key: &BlobKey) -> Result<Option<u64>> {
    let mut lengths = disk.lengths(vec![key.clone()]).await?;
    lengths.pop().expect("one answer for each key")
}

/// Compares the findings with the record.
fn compare(blob: &Blob, found: Option<(u64, Option<Sha256>)>, is_stopped: bool) -> Verdict {
    match found {
        None => Verdict::Missing,
        Some((_, None)) if is_stopped => Verdict::Stopped,
        Some((length, _)) if length != blob.size_bytes => Verdict::Size(length),
        Some((_, Some(digest))) if digest != blob.sha256 => Verdict::Digest(digest),
        Some(_) => Verdict::Sound,
    }
}
