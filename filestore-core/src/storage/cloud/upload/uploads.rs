//! Multipart uploads that were begun and not finished. Listings of objects do not show them, and their parts
//! use space until they are aborted. A killed process leaves such uploads.

use std::sync::Arc;

use async_trait::async_trait;
use opendal::{ErrorKind as Theirs, Operator};

use crate::domain::error::Result;
use crate::domain::time::clock::Timestamp;
use crate::storage::cloud::Cloud;
use crate::storage::cloud::line::breaker::Direction;
use crate::storage::cloud_types::{UploadsPage, unusable};
use crate::storage::{UnfinishedUpload, UploadsPlace};

const LISTING: &str = "listing its unfinished uploads";
const ABORTING: &str = "aborting an unfinished upload";

/// The protocol of a provider for unfinished uploads. The operator must belong to the same provider.
#[async_trait]
pub(in crate::storage::cloud) trait PartUploads: Send + Sync {
    async fn list(
        &self,
        operator: &Operator,
        after: Option<UploadsPlace>,
    ) -> opendal::Result<UploadsPage>;

    /// Aborts an upload. Returns `Ok` even if the upload no longer exists.
    async fn abort(&self, operator: &Operator, upload: &UnfinishedUpload) -> opendal::Result<()>;
}

impl Cloud {
    /// Returns true if unfinished uploads can be listed and aborted.
    pub fn lists_uploads(&self) -> bool {
        self.inner.uploads.is_some()
    }

    /// Lists the next unfinished uploads, including those of running processes. `Unusable` if the provider
    /// cannot list them, or refuses these keys.
    pub async fn unfinished_uploads(&self, after: Option<UploadsPlace>) -> Result<UploadsPage> {
        let Some(uploads) = self.inner.uploads.clone() else { return Ok(UploadsPage::default()) };
        let _admission = self.inner.breakers.admit(Direction::Read)?;

        let (operator, from) = (self.inner.operator.clone(), after.clone());
        let list = async move { uploads.list(&operator, from).await };
        let mut page = match self.ask(Direction::Read, list).await {
            Ok(page) => page,
            Err(error) if is_refusal(&error) => {
                let problem = "unfinished uploads cannot be listed";
                return Err(unusable(self.code(), problem).with_source(self.fault(LISTING, &error)));
            }
            Err(error) => return Err(self.fault(LISTING, &error)),
        };
        if page.next.is_some() && page.next == after {
            return Err(self.broken(LISTING, "a page that leads to itself"));
        }

        let ahead = self.inner.clock.ahead_secs().unwrap_or(0).saturating_mul(1000);
        for upload in &mut page.uploads {
            upload.begun_at =
                Timestamp::from_millis(upload.begun_at.as_millis().saturating_sub(ahead));
        }
        Ok(page)
    }

    /// Aborts an unfinished upload. The parts are removed, and the upload can no longer become an object.
    pub async fn abort_upload(&self, upload: UnfinishedUpload) -> Result<()> {
        let Some(uploads) = self.inner.uploads.clone() else { return Ok(()) };
        self.inner.breakers.check(Direction::Write)?;
        let turn = self.inner.turns.removals.pass(1, self.request_patience()).await;
        let _turn = turn.map_err(|waited| self.busy("removals", waited))?;
        let _admission = self.inner.breakers.admit(Direction::Write)?;

        self.confirm_identity(&upload.name, Direction::Write).await?;
        let operator = self.inner.operator.clone();
        let abort = async move { uploads.abort(&operator, &upload).await };
        let aborted = self.ask(Direction::Write, abort).await;
        aborted.map_err(|error| self.fault(ABORTING, &error))
    }
}

/// Returns true if the provider has no such listing, or if the keys lack the right to it.
fn is_refusal(error: &opendal::Error) -> bool {
    matches!(error.kind(), Theirs::PermissionDenied | Theirs::Unsupported)
}

/// The protocol of one provider, shared by its clones.
pub(in crate::storage::cloud) type Uploads = Option<Arc<dyn PartUploads>>;
