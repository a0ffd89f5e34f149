//! The owner's last settings, stored in the store's database.
//!
//! # Purpose
//! Lifetimes and providers are part of a server's configuration. A tool that works on the directory of a
//! stopped server might not have this configuration. A purge with other lifetimes would remove files that
//! users can still restore. A purge without the providers would claim files that it cannot remove. The tool
//! therefore uses the recorded settings, and refuses runs that need a missing provider.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use crate::domain::config::StoreConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::status::Location;
use crate::domain::provider::ProviderCode;
use crate::metadata::Metadata;

type Settings = BTreeMap<String, String>;

/// How the program that opens a store relates to the recorded settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::service) enum Opener {
    /// The store's owner. The owner's configuration is recorded.
    #[default]
    Owner,
    /// A guest with its own configuration.
    Guest,
    /// A guest that uses the recorded settings.
    Follower,
}

/// The opener's right to remove and move bytes in place of the background workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The opener knows all of the owner's settings.
    Full,
    /// The opener does not know the owner's settings, because no settings are recorded.
    Unknowing,
    /// The opener does not know some providers that the owner used.
    Lacking(Vec<ProviderCode>),
}

/// The rights of an opener, from comparing the opener with the recorded settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenerRights {
    pub(in crate::service) standing: Standing,
    /// The owner's backend for LOCAL files, if the opener has a different backend.
    pub(in crate::service) missing_backend: Option<ProviderCode>,
}

impl OpenerRights {
    /// Returns an error if the opener's backend for LOCAL files differs from the owner's.
    pub(in crate::service) fn check_backend(&self) -> Result<()> {
        let Some(backend) = &self.missing_backend else { return Ok(()) };
        let message = format!(
            "the store has its LOCAL files at {backend}, which is not the local.backend here: open the store with \
             its own configuration"
        );
        Err(Error::new(ErrorKind::ProviderUnavailable, message).with_field("config"))
    }

    /// Returns an error if the opener does not know the owner's lifetimes and providers.
    pub(crate) fn check_standing(&self) -> Result<()> {
        let reason = match &self.standing {
            Standing::Full => return Ok(()),
            Standing::Unknowing => {
                "no lifetimes are on record for this store: open it with its configuration".into()
            }
            Standing::Lacking(codes) => {
                let codes: Vec<_> = codes.iter().map(ProviderCode::as_str).collect();
                format!(
                    "the store was last used with providers that are not configured here. Open the store with its \
                     own configuration: {}",
                    codes.join(", ")
                )
            }
        };
        Err(Error::new(ErrorKind::ProviderUnavailable, reason).with_field("config"))
    }
}

/// Records the owner's settings, or copies the recorded settings into a follower's `config`. The program that
/// creates a store is its first owner.
pub(in crate::service) async fn record_or_follow(
    metadata: &dyn Metadata,
    config: &mut StoreConfig,
    opener: Opener,
    age: Age,
) -> Result<OpenerRights> {
    let recorded = metadata.settings().await?;
    if opener == Opener::Owner || age == Age::New {
        record(metadata, &recorded, config).await?;
        return Ok(OpenerRights { standing: Standing::Full, missing_backend: None });
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
    Ok(OpenerRights { standing, missing_backend })
}

fn backend(config: &StoreConfig) -> Option<&str> {
    let mut providers = config.providers.iter();
    let backend = providers.find(|provider| provider.location == Location::Local);
    backend.map(|provider| provider.code.as_str())
}

/// The age of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) enum Age {
    /// Created by this opening.
    New,
    /// Created by an earlier opening.
    Old,
}

fn standing(used: Vec<ProviderCode>, config: &StoreConfig) -> Standing {
    let mut lacking = used;
    lacking.retain(|code| !config.providers.iter().any(|known| known.code == *code));
    if lacking.is_empty() { Standing::Full } else { Standing::Lacking(lacking) }
}

/// Records the owner's changed settings.
pub(in crate::service) async fn change(
    metadata: &dyn Metadata,
    config: &StoreConfig,
) -> Result<()> {
    record(metadata, &metadata.settings().await?, config).await
}

/// Records `config` if it changes the record. On a full disk, the old record stays.
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

/// Returns the settings of `config` that a guest must use.
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
        (name::EVENTS_KEEP, millis(config.events.keep)),
        (name::EVENTS_KEEP_MAX, config.events.keep_max.to_string()),
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

/// Copies the recorded settings into `config`. Other settings stay the same.
fn follow(recorded: &Settings, config: &mut StoreConfig) -> Result<()> {
    let durations = [
        (name::TEMP_TTL, &mut config.temp_ttl),
        (name::PURGE_GRACE, &mut config.purge_grace),
        (name::BLOB_GRACE, &mut config.blob_grace),
        (name::PRESIGN_TTL, &mut config.presign_ttl),
        (name::IDEMPOTENCY_TTL, &mut config.idempotency_ttl),
        (name::RECEIPT_RETENTION, &mut config.receipt_retention),
        (name::EVENTS_KEEP, &mut config.events.keep),
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
    if let Some(most) = parsed(recorded, name::EVENTS_KEEP_MAX)? {
        config.events.keep_max = most;
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

/// Returns the codes of the recorded providers. `None` if none are recorded.
fn providers(recorded: &Settings) -> Result<Option<Vec<ProviderCode>>> {
    let Some(codes) = recorded.get(name::PROVIDERS) else { return Ok(None) };
    let codes: Result<_> = codes.split_whitespace().map(str::parse).collect();
    codes.map(Some).map_err(|_| inconsistent(name::PROVIDERS))
}

/// The names of the recorded settings.
mod name {
    pub(super) const TEMP_TTL: &str = "used.temp_ttl_ms";
    pub(super) const PURGE_GRACE: &str = "used.purge_grace_ms";
    pub(super) const BLOB_GRACE: &str = "used.blob_grace_ms";
    pub(super) const PRESIGN_TTL: &str = "used.presign_ttl_ms";
    pub(super) const IDEMPOTENCY_TTL: &str = "used.idempotency_ttl_ms";
    pub(super) const RECEIPT_RETENTION: &str = "used.receipt_retention_ms";
    pub(super) const EVENTS_KEEP: &str = "used.events_keep_ms";
    pub(super) const EVENTS_KEEP_MAX: &str = "used.events_keep_max";
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
    use crate::domain::access::scope::Scope;
    use crate::domain::file::record::FileRecord;
    use crate::domain::provider::ProviderConfig;
    use crate::service::NewUpload;
    use crate::worker::NoProgress;

    const MONTH: Duration = Duration::from_hours(30 * 24);

    /// Leaves a store whose owner had these settings, and a deleted file in it.
    async fn left_by_an_owner(dir: &std::path::Path, config: StoreConfig) -> FileRecord {
        let store = FileStore::builder(dir).config(config).open().await.unwrap();
        let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        let record = store.upload(new, &b"bytes"[..]).await.unwrap();
        store.scoped(&Scope::All).delete(record.file_id).await.unwrap();
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
        let own = StoreConfig::default().purge_grace;
        assert_eq!(guest.config().purge_grace, own, "its own configuration");
        guest.close().await;
        drop(guest);

        let store = FileStore::builder(dir.path()).follow_owner().open().await.unwrap();
        assert_eq!(store.config().purge_grace, MONTH, "a guest leaves the record alone");
        store.scoped(&Scope::All).restore(deleted.file_id).await.unwrap();
    }

    #[tokio::test]
    async fn runs_that_need_a_provider_of_the_owner_are_refused_without_it() {
        let dir = tempfile::tempdir().unwrap();
        let second = ProviderConfig::new("disk".parse().unwrap(), "fs")
            .with_option("root", dir.path().join("second").display().to_string());
        let config = StoreConfig {
            providers: vec![second],
            purge_grace: Duration::ZERO,
            ..StoreConfig::default()
        };
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
        assert_eq!(store.admin().purge_plan().await.unwrap().waiting, 1, "looking is allowed");
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
