//! The list of providers for administrators.

use crate::FileStore;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::provider::{Provider, ProviderCode};
use crate::domain::report::ProviderInfo;
use crate::storage::ProviderCheck;

/// The kinds of service that the project's tests run against.
const TESTED: [&str; 5] = ["local", "s3", "azblob", "fs", "memory"];

/// Lists all providers, including inactive providers, with `LOCAL` first.
pub(crate) fn list_providers(store: &FileStore) -> Vec<ProviderInfo> {
    store.providers().all().iter().map(|provider| shown(store, provider)).collect()
}

fn shown(store: &FileStore, provider: &Provider) -> ProviderInfo {
    let config = store.config();
    let configured = config.providers.iter().find(|config| config.code == provider.code);
    let scheme = configured.map_or("local", |config| config.scheme.as_str());
    ProviderInfo {
        code: provider.code.clone(),
        name: provider.name.clone(),
        location: provider.location,
        is_active: provider.is_active,
        scheme: scheme.to_owned(),
        is_tested: TESTED.contains(&scheme),
    }
}

/// Tests a configured provider with objects of its own. The report contains the faults of the provider.
/// Returns `UnknownProvider` if no provider has this code, and `InvalidField` for `LOCAL`.
pub(crate) async fn check_provider(store: &FileStore, code: &str) -> Result<ProviderCheck> {
    let code = provider_code(store, code).map_err(|error| error.with_field("code"))?;
    if code.is_local() {
        return Err(Error::invalid(
            "code",
            "LOCAL is the service's own disk: its health says how it is",
        ));
    }
    let cloud = store.providers().cloud(&code)?.clone();
    Ok(cloud.check().await)
}

/// Returns the provider with this code in an administrator's request. `UnknownProvider` lists the known
/// codes.
pub(crate) fn provider_code(store: &FileStore, code: &str) -> Result<ProviderCode> {
    let known = code.parse().ok().filter(|code| store.providers().get(code).is_some());
    known.ok_or_else(|| {
        let providers = store.providers();
        let all = providers.all();
        Error::new(ErrorKind::UnknownProvider, "no provider has that code")
            .with_allowed(all.iter().map(|provider| provider.code.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::config::StoreConfig;
    use crate::domain::file::status::Location;
    use crate::domain::provider::ProviderConfig;

    #[tokio::test]
    async fn every_provider_is_listed_with_its_scheme_and_whether_it_is_tested() {
        let dir = tempfile::tempdir().unwrap();
        let old = ProviderConfig {
            is_active: false,
            name: "Old".to_owned(),
            ..ProviderConfig::new("old".parse().unwrap(), "memory")
        };
        let config = StoreConfig { providers: vec![old], ..StoreConfig::default() };
        let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
        let all = list_providers(&store);
        let local = &all[0];
        assert_eq!((local.code.as_str(), local.scheme.as_str()), ("LOCAL", "local"));
        assert!(local.is_active && local.is_tested);
        let old = &all[1];
        assert_eq!((old.name.as_str(), old.location), ("Old", Location::Cloud));
        assert_eq!((old.scheme.as_str(), old.is_active, old.is_tested), ("memory", false, true));
        assert!(!TESTED.contains(&"gcs"), "no tests run against it");
        for code in ["nope", "", "a b"] {
            let error = provider_code(&store, code).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnknownProvider);
            assert_eq!(error.details().allowed, ["LOCAL", "old"]);
        }
        store.close().await;
    }
}
