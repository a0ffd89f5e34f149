//! Proof that an object arrived as it was sent.

use futures_util::TryStreamExt;
use sha2::Digest;

use super::Cloud;
use super::put::STORING;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::id::Sha256;
use crate::storage::BlobInfo;

/// How an object arrived, which says what is left to prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// In one request, with its checksum if the service sends one.
    Whole,
    /// In parts, and the store's digest of all of them is ours.
    PartsChecked,
    /// Nobody compared anything.
    Unchecked,
}

impl Cloud {
    /// Compares the length; reads back and compares the digest unless the store has checked the bytes.
    pub(super) async fn verify(
        &self,
        path: &str,
        object: &BlobInfo,
        arrival: Arrival,
    ) -> Result<()> {
        let is_checked = match arrival {
            Arrival::Whole => self.probed().await?.checks_checksums,
            Arrival::PartsChecked => true,
            Arrival::Unchecked => false,
        };
        if is_checked {
            let stored = self
                .inner
                .operator
                .stat(path)
                .await
                .map_err(|error| self.fault(STORING, &error))?;
            if stored.content_length() != object.size_bytes {
                let problem =
                    format!("{} bytes arrived of {}", stored.content_length(), object.size_bytes);
                return Err(self.broken(STORING, problem));
            }
            return Ok(());
        }
        self.read_back(path, object).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.broken(STORING, "it is not there after it was stored"),
            _ => error,
        })
    }

    async fn read_back(&self, path: &str, object: &BlobInfo) -> Result<()> {
        let mut stream =
            Box::pin(self.read_path(path, object.size_bytes, 0..object.size_bytes).await?);
        let mut hasher = sha2::Sha256::new();
        while let Some(bytes) = stream.try_next().await? {
            hasher.update(&bytes);
        }
        let is_same = Sha256(hasher.finalize().into()) == object.sha256;
        if is_same {
            Ok(())
        } else {
            Err(self.broken(STORING, "other bytes arrived than were sent"))
        }
    }
}
