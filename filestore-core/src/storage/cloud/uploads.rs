//! Uploads in parts that were begun and not finished. No listing of objects shows them, and their parts
//! take room until they are aborted: a killed process leaves such an upload behind.

use std::sync::Arc;

use async_trait::async_trait;
use opendal::{ErrorKind as Theirs, Operator};

use super::Cloud;
use super::breaker::Direction;
use super::open::unusable;
use crate::domain::clock::Timestamp;
use crate::domain::error::Result;

const LISTING: &str = "listing its unfinished uploads";
const ABORTING: &str = "aborting an unfinished upload";

/// An upload in parts that is under way, or that nobody works on any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedUpload {
    /// Name of the object that it would become.
    pub name: String,
    /// Time of its beginning, by the provider's clock.
    pub begun_at: Timestamp,
    /// Name that the provider has given to the upload itself.
    pub(super) upload_id: String,
}

/// Unfinished uploads in the order of their names.
#[derive(Debug, Default)]
pub struct UploadsPage {
    /// The uploads of the page; there may be none.
    pub uploads: Vec<UnfinishedUpload>,
    /// The place to go on after; `None` at the end.
    pub next: Option<UploadsPlace>,
}

/// A place in a listing of unfinished uploads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadsPlace {
    /// Full key, as the provider has named it.
    pub(super) key: String,
    pub(super) upload_id: String,
}

/// The protocol of a provider for unfinished uploads. The operator is the one of the same provider.
#[async_trait]
pub(super) trait PartUploads: Send + Sync {
    async fn list(
        &self,
        operator: &Operator,
        after: Option<UploadsPlace>,
    ) -> opendal::Result<UploadsPage>;

    /// Aborts an upload; `Ok` too if there is none of that name any more.
    async fn abort(&self, operator: &Operator, upload: &UnfinishedUpload) -> opendal::Result<()>;
}

impl Cloud {
    /// Tells whether unfinished uploads can be listed and aborted.
    pub fn lists_uploads(&self) -> bool {
        self.inner.uploads.is_some()
    }

    /// Lists the next unfinished uploads, those of running processes included. `Unusable` if the provider
    /// cannot list them, or does not let the holder of these keys.
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

    /// Aborts an unfinished upload: its parts are gone, and it can no longer become an object.
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

/// Recognizes the answer of a provider that has no such listing, or whose keys have no right to it.
fn is_refusal(error: &opendal::Error) -> bool {
    matches!(error.kind(), Theirs::PermissionDenied | Theirs::Unsupported)
}

/// The protocol of one provider, shared by its clones.
pub(super) type Uploads = Option<Arc<dyn PartUploads>>;
