//! Verifies that an object arrived as it was sent.

use futures_util::TryStreamExt;
use sha2::Digest;

use super::put::STORING;
use super::read::ReadTurn;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::id::Sha256;
use crate::storage::BlobInfo;
use crate::storage::cloud::Cloud;
use crate::storage::cloud::line::breaker::Direction;
use crate::storage::cloud::line::gate::Patience;

/// How an object arrived. This value decides how much remains to be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage::cloud) enum Arrival {
    /// In one request, with a checksum if the service sends one.
    Whole,
    /// In several parts, and the provider's digest of all parts equals ours.
    PartsChecked,
    /// Without any comparison.
    Unchecked,
}

impl Cloud {
    /// Compares the length. If the provider did not verify the bytes, also reads them back and compares the
    /// digest.
    pub(in crate::storage::cloud) async fn verify(
        &self,
        path: &str,
        object: &BlobInfo,
        arrival: Arrival,
        turns: Patience,
    ) -> Result<()> {
        let is_checked = match arrival {
            Arrival::Whole => self.probed().await?.checks_checksums,
            Arrival::PartsChecked => true,
            Arrival::Unchecked => false,
        };
        if is_checked {
            return self.compare_stored_length(path, object).await;
        }

        self.read_back(path, object, turns).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.broken(STORING, "it is not there after it was stored"),
            _ => error,
        })
    }

    async fn compare_stored_length(&self, path: &str, object: &BlobInfo) -> Result<()> {
        let (operator, path) = (self.inner.operator.clone(), path.to_owned());
        let stored = self.ask(Direction::Read, async move { operator.stat(&path).await }).await;
        let stored = stored.map_err(|error| self.fault(STORING, &error))?.content_length();

        if stored == object.size_bytes {
            Ok(())
        } else {
            let problem = format!("{stored} bytes arrived of {}", object.size_bytes);
            Err(self.broken(STORING, problem))
        }
    }

    async fn read_back(&self, path: &str, object: &BlobInfo, turns: Patience) -> Result<()> {
        // Turns of its own: readers may take as long as they like.
        let turn = self.inner.turns.proofs.pass(1, turns).await;
        let turn = ReadTurn::Own(turn.map_err(|waited| self.busy("puts", waited))?);

        let all = 0..object.size_bytes;
        let mut stream = Box::pin(self.read_path(path, object.size_bytes, all, turn).await?);
        let mut hasher = sha2::Sha256::new();
        while let Some(bytes) = stream.try_next().await? {
            hasher.update(&bytes);
        }

        if Sha256(hasher.finalize().into()) == object.sha256 {
            Ok(())
        } else {
            Err(self.broken(STORING, "other bytes arrived than were sent"))
        }
    }
}
