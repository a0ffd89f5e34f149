//! Settings that the owner of a store last worked by, kept in its database.
//!
//! # Purpose
//! Lifetimes and providers are in a server's configuration, which a tool that works on the stopped
//! server's directory may not have. A purge by other lifetimes would take what can still be
//! restored, and one without the providers would claim what it cannot remove. So the tool goes by
//! what is on record here, and refuses runs that need what it lacks.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use super::Inner;
use crate::domain::config::StoreConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::provider::ProviderCode;
use crate::domain::status::Location;
use crate::metadata::Metadata;

type Settings = BTreeMap<String, String>;

/// The relation of an opener to the settings on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Opener {
    /// The store is the opener's own: its configuration goes on record.
    #[default]
    Owner,
    /// A guest with a configuration of its own.
    Guest,
    /// A guest that goes by the settings on record.
    Follower,
}

/// The right of an opener to remove and move bytes in the background's stead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It knows what the owner knew.
    Full,
    /// It knows no settings of the owner, as none are on record.
    Unknowing,
    /// It lacks providers that the owner used.
    Lacking(Vec<ProviderCode>),
}

/// The place of an opener among those that work on the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) standing: Standing,
    /// The backend of LOCAL that the owner used, if it is not that of the opener.
    pub(super) missing_backend: Option<ProviderCode>,
}

impl Inner {
    /// Fails unless the opener has LOCAL files where the owner has them.
    pub(super) fn check_backend(&self) -> Result<()> {
        let Some(backend) = &self.missing_backend else { return Ok(()) };
        let message = format!(
            "the store has its LOCAL files at {backend}, which is not the local.backend here; open it with its \
             configuration"
        );
        Err(Error::new(ErrorKind::ProviderUnavailable, message).with_field("config"))
    }

    /// Fails unless the opener of this store knows its owner's lifetimes and providers.
    pub(crate) fn check_standing(&self) -> Result<()> {
        let reason = match &self.standing {
            Standing::Full => return Ok(()),
            Standing::Unknowing => {
                "no lifetimes are on record for this store: open it with its configuration".into()
            }
            Standing::Lacking(codes) => {
                let codes: Vec<_> = codes.iter().map(ProviderCode::as_str).collect();
                format!(
                    "the store was last used with providers that are not configured here; open it with its \
                     configuration: {}",
                    codes.join(", ")
                )
            }
        };
        Err(Error::new(ErrorKind::ProviderUnavailable, reason).with_field("config"))
    }
}

/// Puts the owner's settings on record, or brings the record into a follower's `config`. A store
/// that `is_new` has no owner yet: whoever makes it is the first.
pub(super) async fn settle(
    metadata: &dyn Metadata,
    config: &mut StoreConfig,
    opener: Opener,
    age: Age,
) -> Result<Settled> {
    let recorded = metadata.settings().await?;
    if opener == Opener::Owner || age == Age::New {
        record(metadata, &recorded, config).await?;
        return Ok(Settled { standing: Standing::Full, missing_backend: None });
    }

    if opener == Opener::Follower {
        follow(&recorded, config)?;
    }
    let standing = match providers(&recorded)? {
        Some(used) => standing(used, config),
        None if opener == Opener::Follower => Standing::Unknowing,
        None => Standing::Full,
    };
    let used = recorded.get(name::LOCAL_BACKEND).filter(|code| !code.is_empty());
    let missing = used.filter(|code| Some(code.as_str()) != backend(config));
    let missing_backend = missing.map(|code| code.parse()).transpose();
    let missing_backend = missing_backend.map_err(|_| inconsistent(name::LOCAL_BACKEND))?;
    Ok(Settled { standing, missing_backend })
}

fn backend(config: &StoreConfig) -> Option<&str> {
    let mut providers = config.providers.iter();
    let backend = providers.find(|provider| provider.location == Location::Local);
    backend.map(|provider| provider.code.as_str())
}

/// The age of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// Made by this opening.
    New,
    /// Made by an earlier one.
    Old,
}

fn standing(used: Vec<ProviderCode>, config: &StoreConfig) -> Standing {
    let mut lacking = used;
    lacking.retain(|code| !config.providers.iter().any(|known| known.code == *code));
    if lacking.is_empty() { Standing::Full } else { Standing::Lacking(lacking) }
}

/// Puts the owner's changed settings on record.
pub(super) async fn change(metadata: &dyn Metadata, config: &StoreConfig) -> Result<()> {
    record(metadata, &metadata.settings().await?, config).await
}

/// Puts `config` on record, if that changes anything. On a full disk the old record stays.
async fn record(metadata: &dyn Metadata, recorded: &Settings, config: &StoreConfig) -> Result<()> {
    let used = settings_of(config);
    if used.iter().all(|(name, value)| recorded.get(name) == Some(value)) {
        return Ok(());
    }

    match metadata.put_settings(used).await {
        Err(error) if error.is_lack_of_room() => {
            tracing::warn!("the disk is full: changed settings are not on record yet");
            Ok(())
        }
        outcome => outcome,
    }
}

/// Writes the settings of `config` that a guest has to go by.
fn settings_of(config: &StoreConfig) -> Settings {
    let providers: Vec<_> =
        config.providers.iter().map(|provider| provider.code.as_str()).collect();
    let [bytes, files] = [config.quota_bytes, config.quota_files]
        .map(|quota| quota.map(|limit| limit.to_string()).unwrap_or_default());

    let settings = [
        (name::TEMP_TTL, millis(config.temp_ttl)),
        (name::PURGE_GRACE, millis(config.purge_grace)),
        (name::BLOB_GRACE, millis(config.blob_grace)),
        (name::PRESIGN_TTL, millis(config.presign_ttl)),
        (name::IDEMPOTENCY_TTL, millis(config.idempotency_ttl)),
        (name::RECEIPT_RETENTION, millis(config.receipt_retention)),
        (name::SYNC_FIRST_PAUSE, millis(config.sync.first_pause)),
        (name::SYNC_MAX_ATTEMPTS, config.sync.max_attempts.to_string()),
        (name::QUOTA_BYTES, bytes),
        (name::QUOTA_FILES, files),
        (name::REQUIRE_BINDING, config.require_binding.to_string()),
        (name::PROVIDERS, providers.join(" ")),
        (name::LOCAL_BACKEND, backend(config).unwrap_or_default().to_owned()),
    ];
    settings.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Brings the settings on record into `config`; those that are not on record stay as they are.
fn follow(recorded: &Settings, config: &mut StoreConfig) -> Result<()> {
    let durations = [
        (name::TEMP_TTL, &mut config.temp_ttl),
        (name::PURGE_GRACE, &mut config.purge_grace),
        (name::BLOB_GRACE, &mut config.blob_grace),
        (name::PRESIGN_TTL, &mut config.presign_ttl),
        (name::IDEMPOTENCY_TTL, &mut config.idempotency_ttl),
        (name::RECEIPT_RETENTION, &mut config.receipt_retention),
        (name::SYNC_FIRST_PAUSE, &mut config.sync.first_pause),
    ];
    for (name, setting) in durations {
        if let Some(millis) = parsed(recorded, name)? {
            *setting = Duration::from_millis(millis);
        }
    }

    if let Some(attempts) = parsed(recorded, name::SYNC_MAX_ATTEMPTS)? {
        config.sync.max_attempts = attempts;
    }
    if let Some(is_required) = parsed(recorded, name::REQUIRE_BINDING)? {
        config.require_binding = is_required;
    }
    for (name, quota) in
        [(name::QUOTA_BYTES, &mut config.quota_bytes), (name::QUOTA_FILES, &mut config.quota_files)]
    {
        match recorded.get(name) {
            Some(none) if none.is_empty() => *quota = None,
            Some(_) => *quota = parsed(recorded, name)?,
            None => {}
        }
    }
    Ok(())
}

/// Returns the codes of the providers on record; `None` if nothing is on record.
fn providers(recorded: &Settings) -> Result<Option<Vec<ProviderCode>>> {
    let Some(codes) = recorded.get(name::PROVIDERS) else { return Ok(None) };
    let codes: Result<_> = codes.split_whitespace().map(str::parse).collect();
    codes.map(Some).map_err(|_| inconsistent(name::PROVIDERS))
}

/// The names of the settings on record.
mod name {
    pub(super) const TEMP_TTL: &str = "used.temp_ttl_ms";
    pub(super) const PURGE_GRACE: &str = "used.purge_grace_ms";
    pub(super) const BLOB_GRACE: &str = "used.blob_grace_ms";
    pub(super) const PRESIGN_TTL: &str = "used.presign_ttl_ms";
    pub(super) const IDEMPOTENCY_TTL: &str = "used.idempotency_ttl_ms";
    pub(super) const RECEIPT_RETENTION: &str = "used.receipt_retention_ms";
    pub(super) const SYNC_FIRST_PAUSE: &str = "used.sync_first_pause_ms";
    pub(super) const SYNC_MAX_ATTEMPTS: &str = "used.sync_max_attempts";
    pub(super) const QUOTA_BYTES: &str = "used.quota_bytes";
    pub(super) const QUOTA_FILES: &str = "used.quota_files";
    pub(super) const REQUIRE_BINDING: &str = "used.require_binding";
    pub(super) const PROVIDERS: &str = "used.providers";
    pub(super) const LOCAL_BACKEND: &str = "used.local_backend";
}

fn millis(duration: Duration) -> String {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).to_string()
}

fn parsed<T: FromStr>(recorded: &Settings, name: &str) -> Result<Option<T>> {
    let parsed = recorded.get(name).map(|value| value.parse());
    parsed.transpose().map_err(|_| inconsistent(name))
}

fn inconsistent(name: &str) -> Error {
    let message = format!("the database holds a setting that cannot be read: {name}");
    Error::new(ErrorKind::Unusable, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileStore;
    use crate::domain::provider::ProviderConfig;
    use crate::domain::record::FileRecord;
    use crate::domain::scope::Scope;
    use crate::service::NewUpload;
    use crate::worker::NoProgress;

    const MONTH: Duration = Duration::from_hours(30 * 24);

    /// Leaves a store whose owner had these settings, and a deleted file in it.
    async fn left_by_an_owner(dir: &std::path::Path, config: StoreConfig) -> FileRecord {
        let store = FileStore::builder(dir).config(config).open().await.unwrap();
        let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        let record = store.upload(new, &b"bytes"[..]).await.unwrap();
        store.delete(record.file_id, &Scope::All).await.unwrap();
        store.close().await;
        record
    }

    #[tokio::test]
    async fn a_follower_goes_by_what_the_owner_used() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = StoreConfig {
            purge_grace: MONTH,
            quota_bytes: Some(1 << 30),
            quota_files: Some(1 << 20),
            ..StoreConfig::default()
        };
        config.sync.max_attempts = 3;
        let deleted = left_by_an_owner(dir.path(), config).await;

        for _ in 0..2 {
            let store = FileStore::builder(dir.path()).follow_owner().open().await.unwrap();
            assert_eq!(store.config().purge_grace, MONTH);
            assert_eq!(store.config().quota_bytes, Some(1 << 30));
            assert_eq!(store.config().quota_files, Some(1 << 20));
            assert_eq!(store.config().sync.max_attempts, 3);
            assert_eq!(store.admin().purge(&NoProgress).await.unwrap().purged, 0);
            store.close().await;
        }

        let guest = FileStore::builder(dir.path()).as_guest().open().await.unwrap();
        assert_eq!(guest.config().purge_grace, Duration::ZERO, "its own configuration");
        guest.close().await;
        drop(guest);

        let store = FileStore::builder(dir.path()).follow_owner().open().await.unwrap();
        assert_eq!(store.config().purge_grace, MONTH, "a guest leaves the record alone");
        store.restore(deleted.file_id, &Scope::All).await.unwrap();
    }

    #[tokio::test]
    async fn runs_that_need_a_provider_of_the_owner_are_refused_without_it() {
        let dir = tempfile::tempdir().unwrap();
        let second = ProviderConfig::new("disk".parse().unwrap(), "fs")
            .with_option("root", dir.path().join("second").display().to_string());
        let config = StoreConfig { providers: vec![second], ..StoreConfig::default() };
        left_by_an_owner(&dir.path().join("data"), config.clone()).await;

        let builder = FileStore::builder(dir.path().join("data"));
        for lacking in [builder.clone().follow_owner(), builder.clone().as_guest()] {
            let store = lacking.open().await.unwrap();
            let refused = store.admin().purge(&NoProgress).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ProviderUnavailable);
            assert!(refused.message().ends_with("configuration: disk"), "{refused}");
            let refused = store.admin().sync(std::sync::Arc::new(NoProgress)).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ProviderUnavailable);
            store.close().await;
        }

        let store = builder.config(config).as_guest().open().await.unwrap();
        assert_eq!(store.admin().purge(&NoProgress).await.unwrap().purged, 1);
    }

    #[tokio::test]
    async fn local_files_are_put_where_the_owner_has_them_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let house = ProviderConfig::new("house".parse().unwrap(), "fs")
            .with_option("root", dir.path().join("house").display().to_string());
        let plain = StoreConfig { providers: vec![house.clone()], ..StoreConfig::default() };
        let config =
            StoreConfig { providers: vec![house.as_local_backend()], ..StoreConfig::default() };
        left_by_an_owner(&dir.path().join("data"), config.clone()).await;

        let new = || NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        let builder = FileStore::builder(dir.path().join("data"));
        for lacking in [builder.clone().follow_owner(), builder.clone().config(plain).as_guest()] {
            let store = lacking.open().await.unwrap();
            let refused = store.upload(new(), &b"bytes"[..]).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ProviderUnavailable);
            assert!(refused.message().contains("LOCAL files at house"), "{refused}");
            store.close().await;
        }

        let store = builder.config(config).as_guest().open().await.unwrap();
        let record = store.upload(new(), &b"bytes"[..]).await.unwrap();
        assert_eq!(record.blob.provider.as_str(), "house");
    }

    #[tokio::test]
    async fn a_follower_of_an_owner_that_left_no_record_purges_nothing() {
        let dir = tempfile::tempdir().unwrap();
        left_by_an_owner(dir.path(), StoreConfig::default()).await;
        let database = dir.path().join("metadata.sqlite3");
        let earlier = rusqlite::Connection::open(database).unwrap();
        earlier.execute("DELETE FROM settings WHERE name LIKE 'used.%'", []).unwrap();
        drop(earlier);

        let store = FileStore::builder(dir.path()).follow_owner().open().await.unwrap();
        let refused = store.admin().purge(&NoProgress).await.unwrap_err();
        assert!(refused.message().starts_with("no lifetimes are on record"), "{refused}");
        assert_eq!(store.admin().purge_plan().await.unwrap().purged, 1, "looking is allowed");
    }

    #[tokio::test]
    async fn who_makes_a_store_is_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::builder(dir.path()).follow_owner().open().await.unwrap();
        assert_eq!(store.admin().purge(&NoProgress).await.unwrap().purged, 0);
        store.close().await;
        drop(store);

        let store = FileStore::builder(dir.path()).follow_owner().open().await.unwrap();
        assert_eq!(store.admin().purge(&NoProgress).await.unwrap().purged, 0);
    }
}
