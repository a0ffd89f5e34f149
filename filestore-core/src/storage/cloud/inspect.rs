//! Looking at what a provider holds: its marker, the lengths of objects, their names.

use futures_util::{FutureExt, TryStreamExt};
use opendal::{EntryMode, Lister};

use super::breaker::Direction;
use super::marker::MARKER;
use super::objects::SNAPSHOTS;
use super::open::FS_STAGING;
use super::probe_objects::is_probe;
use super::{Cloud, Scheme, fault};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::path::BlobKey;

const LISTING: &str = "listing its objects";

/// Objects of a page.
const PAGE: usize = 1000;

/// A listing of all objects of a provider, under way.
pub struct Listing {
    cloud: Cloud,
    /// `None` where an earlier page failed.
    lister: Option<Lister>,
}

impl Cloud {
    /// Reads the marker, and fails unless it names this store: then nothing is known of what is there or
    /// absent. Marks nothing.
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

    /// Tells whether the store has ever used the provider: else it holds nothing of the store's.
    pub async fn was_used(&self) -> Result<bool> {
        let Some(ledger) = self.ledger() else { return Ok(true) };
        let is_marked = ledger.is_marked(self.code()).await?;
        Ok(is_marked || !ledger.some_blobs(self.code(), 1).await?.is_empty())
    }

    /// Looks at an object's length; `None` if there is no such object, which means something only where
    /// the marker is read afterwards.
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

    /// Begins to list all objects; after the object `after`, where the provider can.
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

    /// Begins to list the objects of an organization.
    pub async fn list_below(&self, organization: &str) -> Result<Listing> {
        let _admission = self.inner.breakers.admit(Direction::Read)?;
        let (operator, below) = (self.inner.operator.clone(), format!("{organization}/"));
        let begin = async move { operator.lister_with(&below).recursive(true).await };
        let lister = self.ask(Direction::Read, begin).await;
        let lister = lister.map_err(|error| self.fault(LISTING, &error))?;
        Ok(Listing { cloud: self.clone(), lister: Some(lister) })
    }

    /// Tells whether a listing can go on after an object.
    pub fn lists_in_order(&self) -> bool {
        self.inner.operator.info().capability().list_with_start_after
    }

    /// Tells whether uploads in parts may be left unfinished at the provider, which no listing of
    /// objects shows.
    pub fn may_keep_parts(&self) -> bool {
        !matches!(self.inner.scheme, Scheme::Fs | Scheme::Memory)
    }
}

impl Listing {
    /// Returns the names of the next objects; none at the end. Markers, probes, snapshots and unfinished
    /// files of the store's own are left out.
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

/// Tells whether an object is one of the store's that no record names.
fn is_own(name: &str) -> bool {
    name == MARKER || is_probe(name) || name.starts_with(FS_STAGING) || name.starts_with(SNAPSHOTS)
}
