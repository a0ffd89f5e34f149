//! Checks of a store that is about to be opened, without opening it.

use std::fs;
use std::io;

use super::external_database;
use super::open::FileStoreBuilder;
use crate::domain::config::MetadataPlace;
use crate::domain::error::{Error, Result};
use crate::metadata::sqlite;
use crate::storage::{DataDir, ProviderRegistry};
use crate::variant::convert;

impl FileStoreBuilder {
    /// Checks the configuration as [`open`](Self::open) does, without touching the data directory, the
    /// database or a provider, and without creating a directory. `Unusable` for a value out of range, for settings
    /// that cannot work together, for a root of an `fs` provider that cannot be created, and for settings that
    /// need a feature that this build does not have, for example `postgres`.
    ///
    /// ```
    /// use filestore_core::FileStore;
    /// use filestore_core::config::ProviderConfig;
    ///
    /// # fn main() -> filestore_core::Result<()> {
    /// let builder = FileStore::builder("/srv/files");
    /// assert!(builder.check().is_ok());
    /// let unknown = ProviderConfig::new("s3-eu".parse()?, "s4");
    /// assert!(builder.provider(unknown).check().is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn check(&self) -> Result<()> {
        self.config.check_settings()?;
        ProviderRegistry::check(&self.config.providers)?;
        convert::check(&self.config.variants)?;
        external_database::check(&self.config)
    }

    /// Tests whether the store has API keys, also while a server uses the store. Returns `None` if the
    /// records are in PostgreSQL. A store that does not exist has no keys. Creates no file, except that
    /// SQLite creates the index of a write-ahead log without an index. Blocks for a moment.
    ///
    /// `Unusable` for a database that another program or a newer version wrote, `Internal` if the data
    /// directory cannot be read.
    pub fn has_keys(&self) -> Result<Option<bool>> {
        if self.config.metadata != MetadataPlace::Sqlite {
            return Ok(None);
        }
        let database = DataDir::database_in(&self.path);
        match fs::metadata(&database) {
            Ok(found) if found.len() > 0 => sqlite::has_keys(&database).map(Some),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("looking at the data directory", error))
            }
            _ => Ok(Some(false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::access::key::{KeyScope, NewKey};
    use crate::domain::access::scope::Scope;
    use crate::domain::config::MetadataPlace;
    use crate::domain::config::{ConverterConfig, PostgresConfig, StoreConfig};
    use crate::domain::error::ErrorKind;
    use crate::domain::provider::ProviderConfig;
    use crate::service::FileStore;

    #[tokio::test]
    async fn keys_are_seen_without_opening_the_store_whether_or_not_it_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let builder = FileStore::builder(&path);
        assert_eq!(builder.has_keys().unwrap(), Some(false));
        assert!(!path.exists(), "looking creates nothing");

        let store = builder.clone().open().await.unwrap();
        assert_eq!(builder.has_keys().unwrap(), Some(false));
        let new = NewKey::new("a", Scope::All, [KeyScope::Read]);
        let (key, _) = store.keys().create(new).await.unwrap();
        assert_eq!(
            builder.has_keys().unwrap(),
            Some(true),
            "the key is in the log of the database"
        );
        store.keys().revoke(key.id).await.unwrap();
        store.close().await;
        drop(store);
        assert_eq!(builder.has_keys().unwrap(), Some(true), "also a revoked one");
        builder.open().await.unwrap().close().await;
    }

    #[tokio::test]
    async fn looking_for_keys_creates_nothing_beside_a_closed_database() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a%b?c#d");
        let builder = FileStore::builder(&path);
        builder.clone().open().await.unwrap().close().await;
        let names = || {
            let entries = std::fs::read_dir(&path).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names();
        assert_eq!(builder.has_keys().unwrap(), Some(false));
        assert_eq!(names(), before);
    }

    #[tokio::test]
    async fn a_check_of_an_fs_provider_creates_nothing_and_refuses_what_opening_refuses() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let builder = |root: &str| {
            let config = ProviderConfig::new("disk".parse().unwrap(), "fs");
            let root = dir.path().join(root).display().to_string();
            let config = config.with_option("root", root);
            FileStore::builder(dir.path().join("data")).provider(config)
        };
        builder("disk/files").check().unwrap();
        assert!(!dir.path().join("disk").exists());

        for root in ["file", "file/below"] {
            let checked = builder(root).check().unwrap_err();
            let opened = builder(root).open().await.unwrap_err();
            assert_eq!(checked.kind(), ErrorKind::Unusable);
            assert!(checked.message().contains("not a directory"), "{checked}");
            assert_eq!(checked.message(), opened.message());
        }
        assert!(!dir.path().join("data").exists());
    }

    #[test]
    fn a_database_of_another_program_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("metadata.sqlite3"), "no database").unwrap();
        let error = FileStore::builder(dir.path()).has_keys().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unusable);
    }

    #[tokio::test]
    async fn a_value_out_of_range_is_refused_before_the_store_is_created() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let mut config = StoreConfig::default();
        config.limits.max_batch_items = 0;
        let builder = FileStore::builder(&path).config(config);

        for error in [builder.check().unwrap_err(), builder.open().await.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Unusable);
            assert_eq!(error.details().field.as_deref(), Some("limits.max_batch_items"));
            let rule = "the configuration is invalid: limits.max_batch_items must be 1 to 10000";
            assert_eq!(error.message(), rule);
        }
        assert!(!path.exists());
    }

    #[test]
    fn a_check_refuses_what_an_opening_would_refuse() {
        let dir = tempfile::tempdir().unwrap();
        let check = |config: StoreConfig| {
            let checked = FileStore::builder(dir.path().join("data")).config(config).check();
            checked.map_err(|error| error.message().to_owned())
        };
        assert_eq!(check(StoreConfig::default()), Ok(()));

        let mut config = StoreConfig::default();
        config.variants.converters.push(ConverterConfig::new(["application/pdf"], ["pdftoppm"]));
        assert!(check(config.clone()).unwrap_err().contains("converters"));
        config.variants.launcher = Some("/usr/bin/filestore-server".into());
        assert_eq!(check(config).is_ok(), cfg!(feature = "converters"));

        let mut place = PostgresConfig::new("postgres://u@127.0.0.1/d");
        let at = |place: &PostgresConfig| StoreConfig {
            metadata: MetadataPlace::Postgres(place.clone()),
            ..StoreConfig::default()
        };
        let refused = check(at(&place)).unwrap_err();
        let is_built_in = cfg!(feature = "postgres");
        let reason = if is_built_in { "private directory" } else { "feature postgres" };
        assert!(refused.contains(reason), "{refused}");

        place.only_server = true;
        assert_eq!(check(at(&place)).is_ok(), is_built_in);
        place.connections = 1;
        assert!(check(at(&place)).is_err());
        assert!(!dir.path().join("data").exists(), "a check makes nothing");
    }
}
