//! The destinations that snapshots were taken to, as the store remembers them.
//!
//! # Purpose
//! Disks are mounted in turn at one path, and a provider's code may come to mean another bucket. Only the id
//! in its marker tells which of them stands there, so that a receipt does not take the absence from one for
//! the absence from the other.
//!
//! # Format
//! A setting for each path, or for `provider:` and a code, lists the ids of the destinations that stood there,
//! with commas. Earlier versions wrote `1`, for a directory without an id; it has the next id that is noted.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::FileStore;
use crate::domain::config::BackupPlace;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{DestinationId, Sha256};
use crate::domain::provider::ProviderCode;
use crate::storage::backup::{
    Known, LookedFor, Present, look_for, look_for_at, present_at, present_at_provider,
};
use crate::tasks;

/// The beginning of the settings that name destinations; the path follows, or the word for providers and a code.
const MARKED: &str = "backup_marked:";
const PROVIDER: &str = "provider:";

/// Looks at destinations of backups that run at once.
pub(super) const LOOKS_AT_ONCE: usize = 4;

/// The longest look at a destination.
const LOOK_LIMIT: Duration = Duration::from_secs(20);

/// The value for a directory without an id.
const UNNAMED: &str = "1";

/// The directories of snapshots that stood at one path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stood {
    /// In the order in which they were first seen there.
    pub(crate) ids: Vec<DestinationId>,
    has_unnamed: bool,
}

impl Stood {
    /// Reads the value of a setting.
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

    /// Writes the value of a setting.
    fn to_value(&self) -> String {
        let unnamed = self.has_unnamed.then(|| UNNAMED.to_owned());
        let ids = self.ids.iter().map(ToString::to_string);
        unnamed.into_iter().chain(ids).collect::<Vec<_>>().join(",")
    }

    /// Tells if none stood there, as far as the store knows.
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty() && !self.has_unnamed
    }

    /// Notes a directory; tells if that is new.
    fn note(&mut self, id: DestinationId) -> bool {
        let is_known = self.ids.contains(&id);
        if !is_known {
            self.ids.push(id);
        }
        std::mem::take(&mut self.has_unnamed) || !is_known
    }

    /// Forgets a directory, or all of them, but not the one that stands there; returns how many.
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

/// Takes the destinations out of the settings, by their places.
pub(super) fn all_in(settings: &BTreeMap<String, String>) -> Result<BTreeMap<BackupPlace, Stood>> {
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

/// Returns the place by which a destination is remembered.
pub(super) fn remembered(place: &BackupPlace) -> BackupPlace {
    match place {
        BackupPlace::Directory(path) => {
            std::path::absolute(path).unwrap_or_else(|_| path.clone()).into()
        }
        BackupPlace::Provider(_) => place.clone(),
    }
}

impl FileStore {
    /// Looks at a directory of snapshots. What does not answer keeps one of [`LOOKS_AT_ONCE`] threads, and
    /// no caller for longer than [`LOOK_LIMIT`]: then it is `Busy`.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turns = Arc::clone(&self.inner.destination_looks);
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

    /// Returns the directories of snapshots that stood at a path.
    pub(crate) async fn stood_at(&self, place: &BackupPlace) -> Result<Stood> {
        let name = setting_of(place);
        let settings = self.inner.metadata.settings().await?;
        settings.get(&name).map_or_else(|| Ok(Stood::default()), |value| read(&name, value))
    }

    /// Notes that a directory of snapshots stands at a path, so that it is known again, and receipts look
    /// for it, whether or not the configuration names it.
    pub(crate) async fn note_destination_at(
        &self,
        place: &BackupPlace,
        id: DestinationId,
    ) -> Result<()> {
        let _changing = self.inner.destinations.lock().await;
        let mut stood = self.stood_at(place).await?;
        if stood.note(id) {
            self.remember(place, &stood).await?;
        }
        Ok(())
    }

    /// Forgets a directory of snapshots that stood at a path, or all of them, but not the one that stands
    /// there; returns how many. `NotFound` if there is none.
    pub(crate) async fn forget_destinations_at(
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
        let _changing = self.inner.destinations.lock().await;
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
        Err(Error::not_found("backup destination that is not there any more"))
    }

    /// Tells what a provider has. One that is gone from the configuration has nothing here.
    async fn present_at_provider(&self, code: &ProviderCode) -> Result<Present> {
        let providers = self.providers();
        match providers.cloud(code) {
            Ok(cloud) => within_limit(present_at_provider(cloud)).await,
            Err(_) => Ok(Present::Nothing),
        }
    }

    /// Looks for contents in a destination.
    pub(super) async fn look_in(
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
                let providers = self.providers();
                within_limit(look_for_at(providers.cloud(code)?, &digests, known)).await
            }
        }
    }

    async fn remember(&self, place: &BackupPlace, stood: &Stood) -> Result<()> {
        let setting = (setting_of(place), stood.to_value());
        self.inner.metadata.put_settings([setting].into()).await
    }
}

fn setting_of(place: &BackupPlace) -> String {
    match remembered(place) {
        BackupPlace::Directory(path) => format!("{MARKED}{}", path.display()),
        BackupPlace::Provider(code) => format!("{MARKED}{PROVIDER}{code}"),
    }
}

/// Waits for a look no longer than [`LOOK_LIMIT`]: then it is `Busy`.
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
    use crate::domain::clock::Timestamp;

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
