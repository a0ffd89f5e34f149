//! Reads a provider's marker, and the names and lengths of its objects.

use futures_util::{FutureExt, TryStreamExt};
use opendal::{EntryMode, Lister};

use super::objects::SNAPSHOTS;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::storage::cloud::identity::marker::MARKER;
use crate::storage::cloud::identity::probe_objects::is_probe;
use crate::storage::cloud::line::breaker::Direction;
use crate::storage::cloud::opening::fault;
use crate::storage::cloud::opening::options::FS_STAGING;
use crate::storage::cloud::{Cloud, Scheme};

const LISTING: &str = "listing its objects";

/// The number of objects in a page.
const PAGE: usize = 1000;

/// A listing of a provider's objects.
pub struct Listing {
    cloud: Cloud,
    /// `None` after an earlier page failed.
    lister: Option<Lister>,
}

impl Cloud {
    /// Reads the marker. Fails unless the marker names this store, because otherwise no object counts as
    /// present or absent. Does not write a marker.
    pub async fn check_marker(&self) -> Result<()> {
        self.inner.breakers.check(Direction::Read)?;
        match self.look_at_marker().await {
            None => Ok(()),
            Some(looked) => match looked? {
                Some(_) => Ok(()),
                None => Err(Error::new(
                    ErrorKind::ProviderUnavailable,
                    format!("the provider {} was not used yet: it has no marker", self.code()),
                )),
            },
        }
    }

    /// Returns true if the store has ever used the provider.
    pub async fn was_used(&self) -> Result<bool> {
        let Some(ledger) = self.ledger() else { return Ok(true) };
        let is_marked = ledger.is_marked(self.code()).await?;
        Ok(is_marked || !ledger.some_blobs(self.code(), 1).await?.is_empty())
    }

    /// Returns an object's length. `None` if the object does not exist. This is meaningful only if the marker
    /// is read afterwards.
    pub async fn length(&self, key: &BlobKey) -> Result<Option<u64>> {
        const LOOKING: &str = "looking at an object";

        let _admission = self.inner.breakers.admit(Direction::Read)?;
        let (operator, path) = (self.inner.operator.clone(), key.as_str().to_owned());
        match self.ask(Direction::Read, async move { operator.stat(&path).await }).await {
            Ok(found) => Ok(Some(found.content_length())),
            Err(error) if fault::is_missing_object(&error) => Ok(None),
            Err(error) => Err(self.fault(LOOKING, &error)),
        }
    }

    /// Begins to list all objects, starting after the object `after` if the provider supports this.
    pub async fn list(&self, after: Option<&str>) -> Result<Listing> {
        let _admission = self.inner.breakers.admit(Direction::Read)?;
        let operator = self.inner.operator.clone();
        let after = after.filter(|_| self.lists_in_order()).map(str::to_owned);

        let begin = async move {
            let lister = operator.lister_with("").recursive(true);
            match after {
                Some(after) => lister.start_after(&after).await,
                None => lister.await,
            }
        };
        let lister = self.ask(Direction::Read, begin).await;
        let lister = lister.map_err(|error| self.fault(LISTING, &error))?;
        Ok(Listing { cloud: self.clone(), lister: Some(lister) })
    }

    /// Begins to list an organization's objects.
    pub async fn list_below(&self, organization: &str) -> Result<Listing> {
        let _admission = self.inner.breakers.admit(Direction::Read)?;
        let (operator, below) = (self.inner.operator.clone(), format!("{organization}/"));
        let begin = async move { operator.lister_with(&below).recursive(true).await };
        let lister = self.ask(Direction::Read, begin).await;
        let lister = lister.map_err(|error| self.fault(LISTING, &error))?;
        Ok(Listing { cloud: self.clone(), lister: Some(lister) })
    }

    /// Returns true if a listing can start after a given object.
    pub fn lists_in_order(&self) -> bool {
        self.inner.operator.info().capability().list_with_start_after
    }

    /// Returns true if the provider can contain unfinished multipart uploads. Listings of objects do not show
    /// them.
    pub fn may_keep_parts(&self) -> bool {
        !matches!(self.inner.scheme, Scheme::Fs | Scheme::Memory)
    }
}

impl Listing {
    /// Returns the names of the next objects. Empty at the end. Omits markers, probes, snapshots and the
    /// store's unfinished files.
    pub async fn page(&mut self) -> Result<Option<Vec<String>>> {
        let Some(lister) = self.lister.take() else { return Ok(None) };
        let (lister, read) = self
            .cloud
            .ask_with(Direction::Read, 0, lister, |lister| {
                async move {
                    let (mut names, mut seen) = (Vec::new(), 0);
                    while seen < PAGE {
                        let Some(entry) = lister.try_next().await? else { break };
                        seen += 1;
                        if entry.metadata().mode() == EntryMode::FILE {
                            names.push(entry.path().to_owned());
                        }
                    }
                    Ok((names, seen))
                }
                .boxed()
            })
            .await;

        let (mut names, seen) = read.map_err(|error| self.cloud.fault(LISTING, &error))?;
        if seen == 0 {
            return Ok(None);
        }
        self.lister = lister;
        names.retain(|name| !is_own(name));
        Ok(Some(names))
    }
}

/// Returns true for the store's own objects that no record names.
fn is_own(name: &str) -> bool {
    name == MARKER || is_probe(name) || name.starts_with(FS_STAGING) || name.starts_with(SNAPSHOTS)
}
