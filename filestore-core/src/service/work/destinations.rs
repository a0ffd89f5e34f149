//! Remembers the destinations of earlier snapshots.
//!
//! # Purpose
//! Operators can mount several disks at one path in turn, and a provider's code can later mean another
//! bucket. Only the id in the marker identifies the destination. Without it, a receipt would confuse the
//! absence from one disk with the absence from another.
//!
//! # Format
//! There is a setting for each path, and for `provider:` with a code. It lists the ids of all destinations
//! seen there, separated by commas. Earlier versions wrote `1` for a directory without an id. Such a
//! directory gets the next id that is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore};
use tokio::time::timeout;

use crate::domain::config::{BackupDestination, BackupPlace};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{DestinationId, Sha256};
use crate::domain::provider::ProviderCode;
use crate::domain::report::backup::LastBackup;
use crate::domain::time::clock::Timestamp;
use crate::metadata::Metadata;
use crate::storage::BlobStores;
use crate::storage::backup::{
    Known, LookedFor, Present, look_for, look_for_at, present_at, present_at_provider,
};
use crate::tasks;

/// The prefix of the settings for destinations. The path follows, or `provider:` and a code.
const MARKED: &str = "backup_marked:";
const PROVIDER: &str = "provider:";

/// The beginning of the settings with the times of snapshots.
const BACKED_UP: &str = "backup_done:";

/// Looks at destinations of backups that run at once.
const LOOKS_AT_ONCE: usize = 4;

/// The maximum duration of a look at a destination.
const LOOK_LIMIT: Duration = Duration::from_secs(20);

/// The value for a directory without an id.
const UNNAMED: &str = "1";

/// The snapshot directories that were seen at one path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stood {
    /// The ids, in the order of their first appearance.
    pub(crate) ids: Vec<DestinationId>,
    has_unnamed: bool,
}

impl Stood {
    /// Parses the value of a setting.
    fn read(value: &str) -> Option<Self> {
        let mut stood = Self::default();
        for part in value.split(',').filter(|part| !part.is_empty()) {
            match part {
                UNNAMED => stood.has_unnamed = true,
                id => stood.ids.push(id.parse().ok()?),
            }
        }
        Some(stood)
    }

    /// Encodes the value of a setting.
    fn to_value(&self) -> String {
        let unnamed = self.has_unnamed.then(|| UNNAMED.to_owned());
        let ids = self.ids.iter().map(ToString::to_string);
        unnamed.into_iter().chain(ids).collect::<Vec<_>>().join(",")
    }

    /// Returns true if the store knows of no directory at the path.
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty() && !self.has_unnamed
    }

    /// Records a directory. Returns true if it is new.
    fn note(&mut self, id: DestinationId) -> bool {
        let is_known = self.ids.contains(&id);
        if !is_known {
            self.ids.push(id);
        }
        std::mem::take(&mut self.has_unnamed) || !is_known
    }

    /// Removes one directory or all directories, except the directory that is present. Returns the number of
    /// removed directories.
    fn forget(&mut self, id: Option<DestinationId>, present: Present) -> u64 {
        let before = self.ids.len();
        self.ids
            .retain(|known| present == Present::Named(*known) || id.is_some_and(|id| id != *known));
        let forgotten = (before - self.ids.len()) as u64;

        if id.is_some() || present == Present::Unnamed {
            return forgotten;
        }
        forgotten + u64::from(std::mem::take(&mut self.has_unnamed))
    }
}

/// Reads all destinations from the settings, by place.
pub(in crate::service) fn all_in(
    settings: &BTreeMap<String, String>,
) -> Result<BTreeMap<BackupPlace, Stood>> {
    let named = settings.iter().filter_map(|(name, value)| {
        let text = name.strip_prefix(MARKED)?;
        Some((place_of(text, name), name, value))
    });
    named.map(|(place, name, value)| Ok((place?, read(name, value)?))).collect()
}

fn place_of(text: &str, name: &str) -> Result<BackupPlace> {
    match text.strip_prefix(PROVIDER) {
        Some(code) => code.parse().map(BackupPlace::Provider).map_err(|_| unreadable(name)),
        None => Ok(Path::new(text).into()),
    }
}

/// Returns the place under which a destination is remembered.
pub(in crate::service) fn remembered(place: &BackupPlace) -> BackupPlace {
    match place {
        BackupPlace::Directory(path) => {
            std::path::absolute(path).unwrap_or_else(|_| path.clone()).into()
        }
        BackupPlace::Provider(_) => place.clone(),
    }
}

/// The remembered destinations of a store, and the look-ups in them.
pub(crate) struct Destinations {
    metadata: Arc<dyn Metadata>,
    stores: BlobStores,
    /// Held during a change of the remembered destinations.
    changing: Mutex<()>,
    /// Limits the number of concurrent looks at directories.
    looks: Arc<Semaphore>,
}

impl Destinations {
    /// Keeps the remembered destinations in `metadata`, and finds providers in `stores`.
    pub(in crate::service) fn new(metadata: Arc<dyn Metadata>, stores: BlobStores) -> Self {
        let looks = Arc::new(Semaphore::new(LOOKS_AT_ONCE));
        Self { metadata, stores, changing: Mutex::new(()), looks }
    }

    /// Looks at a snapshot directory. If the directory does not answer, the look keeps one of
    /// [`LOOKS_AT_ONCE`] threads, and the caller gets `Busy` after [`LOOK_LIMIT`].
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turns = Arc::clone(&self.looks);
        let look = async move {
            let turn = turns.acquire_owned().await;
            let turn = turn.map_err(|closed| Error::internal("waiting for a look", closed))?;
            let look = tasks::blocking(move || {
                let _turn = turn;
                look()
            });
            look.await.unwrap_or_else(|lost| Err(Error::internal("reading snapshots", lost)))
        };

        within_limit(look).await
    }

    /// Returns the places of backups: the `configured` places, and the places of earlier snapshots.
    pub(crate) async fn places(
        &self,
        configured: &[BackupDestination],
    ) -> Result<BTreeSet<BackupPlace>> {
        let used = all_in(&self.metadata.settings().await?)?;
        let used = used.into_iter().filter(|(_, stood)| !stood.is_empty()).map(|(place, _)| place);
        Ok(configured.iter().map(|named| remembered(&named.place)).chain(used).collect())
    }

    /// Returns the snapshot directories that were seen at a path.
    pub(crate) async fn stood_at(&self, place: &BackupPlace) -> Result<Stood> {
        let name = setting_of(place);
        let settings = self.metadata.settings().await?;
        settings.get(&name).map_or_else(|| Ok(Stood::default()), |value| read(&name, value))
    }

    /// Records that a snapshot directory is at a path. Receipts then search it, even if the configuration no
    /// longer names it.
    pub(crate) async fn note(&self, place: &BackupPlace, id: DestinationId) -> Result<()> {
        let _changing = self.changing.lock().await;
        let mut stood = self.stood_at(place).await?;
        if stood.note(id) {
            self.remember(place, &stood).await?;
        }
        Ok(())
    }

    /// Notes that a complete snapshot of the store as it was at `at` is in a place.
    pub(crate) async fn note_backup(&self, place: &BackupPlace, at: Timestamp) -> Result<()> {
        let setting = (named(BACKED_UP, place), at.as_millis().to_string());
        self.metadata.put_settings([setting].into()).await
    }

    /// Returns the configured destinations in their order, with the time of the newest complete snapshot in
    /// each. `None` if the store knows of no such snapshot.
    pub(crate) async fn last_backups(
        &self,
        configured: &[BackupDestination],
    ) -> Result<Vec<LastBackup>> {
        let settings = self.metadata.settings().await?;
        let last = configured.iter().map(|destination| {
            let noted = settings.get(&named(BACKED_UP, &destination.place));
            let taken_at = noted.and_then(|text| text.parse().ok()).map(Timestamp::from_millis);
            LastBackup { destination: destination.name.clone(), taken_at }
        });
        Ok(last.collect())
    }

    /// Forgets a directory of snapshots that stood at a path, or all of them, but not the one that stands
    /// there; returns how many. `NotFound` if there is none.
    pub(crate) async fn forget(
        &self,
        place: &BackupPlace,
        id: Option<DestinationId>,
    ) -> Result<u64> {
        let present = match place {
            BackupPlace::Directory(path) => {
                let looked = path.clone();
                self.look(move || present_at(&looked)).await?
            }
            BackupPlace::Provider(code) => self.present_at_provider(code).await?,
        };
        let _changing = self.changing.lock().await;
        let mut stood = self.stood_at(place).await?;
        let forgotten = stood.forget(id, present);
        if forgotten > 0 {
            self.remember(place, &stood).await?;
            return Ok(forgotten);
        }

        if id.is_some_and(|id| present == Present::Named(id)) {
            let message = "this destination is there: receipts go on looking at it";
            return Err(Error::new(ErrorKind::Conflict, message).with_field("destination_id"));
        }
        Err(Error::not_found("earlier backup destination"))
    }

    /// Returns the destination at a provider. A provider that is no longer configured has none.
    async fn present_at_provider(&self, code: &ProviderCode) -> Result<Present> {
        let providers = self.stores.providers();
        match providers.cloud(code) {
            Ok(cloud) => within_limit(present_at_provider(cloud)).await,
            Err(_) => Ok(Present::Nothing),
        }
    }

    /// Searches a destination for contents.
    pub(in crate::service) async fn look_in(
        &self,
        place: &BackupPlace,
        digests: Vec<Sha256>,
        known: Known,
    ) -> Result<LookedFor> {
        match place {
            BackupPlace::Directory(path) => {
                let path = path.clone();
                self.look(move || look_for(&path, &digests, known)).await
            }
            BackupPlace::Provider(code) => {
                let providers = self.stores.providers();
                within_limit(look_for_at(providers.cloud(code)?, &digests, known)).await
            }
        }
    }

    async fn remember(&self, place: &BackupPlace, stood: &Stood) -> Result<()> {
        let setting = (setting_of(place), stood.to_value());
        self.metadata.put_settings([setting].into()).await
    }
}

fn setting_of(place: &BackupPlace) -> String {
    named(MARKED, place)
}

/// Names the setting of a place that begins with `prefix`.
fn named(prefix: &str, place: &BackupPlace) -> String {
    match remembered(place) {
        BackupPlace::Directory(path) => format!("{prefix}{}", path.display()),
        BackupPlace::Provider(code) => format!("{prefix}{PROVIDER}{code}"),
    }
}

/// Waits at most [`LOOK_LIMIT`] for a look, then returns `Busy`.
async fn within_limit<T>(look: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(LOOK_LIMIT, look).await.unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Busy, "a destination of backups does not answer"))
    })
}

fn read(name: &str, value: &str) -> Result<Stood> {
    Stood::read(value).ok_or_else(|| unreadable(name))
}

fn unreadable(name: &str) -> Error {
    let message = format!("the database holds a setting of backups that cannot be read: {name}");
    Error::new(ErrorKind::Unusable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_that_stands_there_is_never_forgotten() {
        let [one, two, three] =
            [1, 2, 3].map(|millis| DestinationId::generate(Timestamp::from_millis(millis)));
        let mut stood = Stood::read("1").unwrap();
        assert!(!stood.is_empty());
        assert!(stood.note(one) && stood.note(two) && stood.note(three) && !stood.note(two));
        assert_eq!(Stood::read(&stood.to_value()), Some(stood.clone()));

        assert_eq!(stood.forget(Some(one), Present::Named(one)), 0);
        assert_eq!(stood.forget(Some(one), Present::Named(two)), 1);
        assert_eq!(stood.forget(None, Present::Named(two)), 1);
        assert_eq!(stood.ids, [two]);
        assert_eq!(stood.forget(None, Present::Nothing), 1);
        assert!(Stood::read(&stood.to_value()).unwrap().is_empty());

        let mut unnamed = Stood::read("1").unwrap();
        assert_eq!(unnamed.forget(None, Present::Unnamed), 0);
        assert_eq!(unnamed.forget(None, Present::Named(one)), 1);
        assert_eq!(Stood::read("2"), None);
    }
}
