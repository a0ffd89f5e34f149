//! The registry of providers: all providers, providers for new files, and providers for bindings.
//!
//! `LOCAL` is built in and always active. The configuration adds providers of location CLOUD, and at most one
//! provider of location LOCAL, its *backend*. The backend stores new blobs that would otherwise go to the
//! data directory. Bindings cannot name the backend. The backend stores the files of organizations that are
//! bound to `LOCAL` or have no binding.
//!
//! A registry is immutable. A changed configuration creates a new registry, which shares the unchanged
//! providers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::cloud_types::unusable;
use super::{Cloud, MarkerLedger};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::status::Location;
use crate::domain::id::StoreId;
use crate::domain::provider::health::ProviderHealth;
use crate::domain::provider::{Provider, ProviderCode, ProviderConfig};
use crate::domain::time::clock::Clock;

/// A store's providers, `LOCAL` first.
#[derive(Debug, Clone)]
pub struct ProviderRegistry {
    providers: Vec<Provider>,
    clouds: BTreeMap<ProviderCode, Cloud>,
    /// The configurations of the cloud providers, to detect which of them change.
    configs: Vec<ProviderConfig>,
    clock: Clock,
    owner: Option<Owner>,
}

/// The store that owns the providers' objects.
#[derive(Clone)]
struct Owner {
    id: StoreId,
    ledger: Arc<dyn MarkerLedger>,
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ProviderRegistry {
    /// Registers only `LOCAL`, the local disk.
    pub fn local_only() -> Self {
        Self {
            providers: vec![Provider {
                code: ProviderCode::local(),
                name: "Local disk".to_owned(),
                location: Location::Local,
                is_active: true,
            }],
            clouds: BTreeMap::new(),
            configs: Vec::new(),
            clock: Clock::system(),
            owner: None,
        }
    }

    /// Registers `LOCAL` and the configured providers, without sending requests.
    ///
    /// Returns `Unusable` if a configuration is wrong. The message names the provider and the problem in one
    /// line: an unknown scheme, an unknown or missing option, a value of the wrong type, a code that is
    /// already used, or a directory that cannot be created. Creates the missing directories of `fs` providers.
    pub fn open(configs: &[ProviderConfig]) -> Result<Self> {
        Self::open_with(configs, &Clock::system())
    }

    /// Registers providers like [`open`](Self::open). The providers use `clock`.
    pub fn open_with(configs: &[ProviderConfig], clock: &Clock) -> Result<Self> {
        Self { clock: clock.clone(), ..Self::local_only() }.changed_to(configs)
    }

    /// Registers the providers of a changed configuration. A provider with an unchanged configuration keeps
    /// its turns, its breaker and its probe results, even if the name or the active flag changed. Errors are
    /// those of [`open`](Self::open).
    pub fn changed_to(&self, configs: &[ProviderConfig]) -> Result<Self> {
        let mut registry = Self::local_only();
        registry.clock = self.clock.clone();
        registry.owner.clone_from(&self.owner);
        registry.configs = configs.to_vec();

        for config in configs {
            registry.list(config)?;
            registry.clouds.insert(config.code.clone(), self.cloud_for(config)?);
        }
        Ok(registry)
    }

    /// Refuses the configurations that [`open`](Self::open) refuses, and creates nothing.
    pub(crate) fn check(configs: &[ProviderConfig]) -> Result<()> {
        let mut registry = Self::local_only();
        for config in configs {
            registry.list(config)?;
            Cloud::check_config(config, &registry.clock)?;
        }
        Ok(())
    }

    /// Adds a provider to the list. Refuses a code that the list has already, and a second backend.
    fn list(&mut self, config: &ProviderConfig) -> Result<()> {
        let code = &config.code;
        if code.is_local() {
            return Err(unusable(code, "the code is that of the built-in provider"));
        }
        if self.get(code).is_some() {
            return Err(unusable(code, "the code is given to two providers"));
        }
        if config.location == Location::Local && self.backend().is_some() {
            return Err(unusable(code, "LOCAL has another backend already"));
        }

        self.providers.push(Provider {
            code: code.clone(),
            name: config.name.clone(),
            location: config.location,
            is_active: config.is_active,
        });
        Ok(())
    }

    fn cloud_for(&self, config: &ProviderConfig) -> Result<Cloud> {
        let before = self.configs.iter().find(|before| before.code == config.code);
        if before.is_some_and(|before| reaches_the_same(before, config)) {
            return self.cloud(&config.code).cloned();
        }

        let cloud = Cloud::open(config, &self.clock)?;
        if let Some(owner) = &self.owner {
            cloud.identify(owner.id, Arc::clone(&owner.ledger));
        }
        Ok(cloud)
    }

    /// Sets the store to which the configured providers belong. From now on, each provider checks that its
    /// bucket or disk belongs to the store's records, and is marked at its first use. Providers of a later
    /// configuration do the same.
    pub fn identify(&mut self, id: StoreId, ledger: &Arc<dyn MarkerLedger>) {
        for cloud in self.clouds.values() {
            cloud.identify(id, Arc::clone(ledger));
        }
        self.owner = Some(Owner { id, ledger: Arc::clone(ledger) });
    }

    /// Returns the maximum time after which an abandoned write can still arrive at `provider`. Without a
    /// provider, returns the maximum of all providers.
    pub fn late_write_limit(&self, provider: Option<&ProviderCode>) -> Duration {
        // One that is gone from the configuration may be any that was in it.
        match provider.and_then(|code| self.clouds.get(code)) {
            Some(cloud) => cloud.late_write_limit(),
            None => self.clouds.values().map(Cloud::late_write_limit).max().unwrap_or_default(),
        }
    }

    /// Returns the backend of `LOCAL`. `None` if LOCAL files are in the data directory.
    pub fn backend(&self) -> Option<&ProviderCode> {
        let mut configured = self.providers.iter().filter(|provider| !provider.code.is_local());
        configured.find(|provider| provider.location == Location::Local).map(|found| &found.code)
    }

    /// Returns the provider that stores new blobs for a binding's provider. For `LOCAL`, this is the
    /// backend, if configured.
    pub fn holder_of_new(&self, code: &ProviderCode) -> ProviderCode {
        let backend = self.backend().filter(|_| code.is_local());
        backend.unwrap_or(code).clone()
    }

    /// Returns the configured provider with this code. `ProviderUnavailable` if it is not, or no longer,
    /// configured.
    pub fn cloud(&self, code: &ProviderCode) -> Result<&Cloud> {
        self.clouds.get(code).ok_or_else(|| not_configured(code))
    }

    /// Returns the health for all configured providers, ordered by code.
    pub fn health(&self) -> Vec<ProviderHealth> {
        self.clouds.values().map(Cloud::health).collect()
    }

    /// Returns one provider's health. `None` for `LOCAL` and for an unconfigured provider.
    pub fn health_of(&self, code: &ProviderCode) -> Option<ProviderHealth> {
        self.clouds.get(code).map(Cloud::health)
    }

    /// Returns true if background work can write to this provider now. Returns false while its breaker is
    /// open. Also returns true for `LOCAL`, and for an unconfigured provider, because its operations
    /// fail at once with the reason.
    pub fn may_try(&self, code: &ProviderCode) -> bool {
        self.clouds.get(code).is_none_or(Cloud::may_try)
    }

    /// Lists all providers, including inactive providers.
    pub fn all(&self) -> &[Provider] {
        &self.providers
    }

    /// Lists the providers for new files that a binding can name. The backend of `LOCAL` is not included.
    pub fn active(&self) -> Vec<&Provider> {
        let active = self.providers.iter().filter(|provider| provider.is_active);
        active.filter(|provider| self.backend() != Some(&provider.code)).collect()
    }

    /// Returns the provider with this code. `None` if it is not, or no longer, configured.
    pub fn get(&self, code: &ProviderCode) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.code == *code)
    }

    /// Returns the provider's location. An unconfigured code belonged to a cloud,
    /// because `LOCAL` always exists.
    pub fn location(&self, code: &ProviderCode) -> Location {
        self.get(code).map_or(Location::Cloud, |provider| provider.location)
    }

    /// Checks that the provider accepts new files. `ProviderUnavailable` for an unconfigured provider, and
    /// `ProviderInactive` for an inactive provider.
    pub fn check_takes_files(&self, code: &ProviderCode) -> Result<()> {
        match self.get(code) {
            Some(provider) if provider.is_active => Ok(()),
            Some(_) => Err(inactive(code)),
            None => Err(not_configured(code)),
        }
    }

    /// Lists the codes of active providers with location CLOUD.
    pub fn active_clouds(&self) -> Vec<ProviderCode> {
        self.active()
            .into_iter()
            .filter(|provider| provider.location == Location::Cloud)
            .map(|provider| provider.code.clone())
            .collect()
    }

    /// Checks that a binding can name `code`. Otherwise returns [`ErrorKind::UnknownProvider`] with the
    /// allowed codes, or [`ErrorKind::ProviderInactive`].
    pub fn check_for_binding(&self, code: &ProviderCode) -> Result<()> {
        let named = self.get(code).filter(|provider| self.backend() != Some(&provider.code));
        match named {
            Some(provider) if provider.is_active => Ok(()),
            Some(_) => Err(inactive(code).with_field("provider")),
            None => Err(Error::new(
                ErrorKind::UnknownProvider,
                format!("no provider has the code {code}"),
            )
            .with_field("provider")
            .with_allowed(self.active().into_iter().map(|provider| provider.code.as_str()))),
        }
    }
}

/// Returns true if two configurations of one code lead to the same connections.
fn reaches_the_same(before: &ProviderConfig, now: &ProviderConfig) -> bool {
    let mut before = before.clone();
    before.name.clone_from(&now.name);
    before.is_active = now.is_active;
    before == *now
}

fn not_configured(code: &ProviderCode) -> Error {
    Error::new(ErrorKind::ProviderUnavailable, format!("the provider is not configured: {code}"))
}

fn inactive(code: &ProviderCode) -> Error {
    Error::new(ErrorKind::ProviderInactive, format!("the provider takes no new files: {code}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_stands_behind_local_and_no_binding_names_it() {
        let memory = |code: &str| ProviderConfig::new(code.parse().unwrap(), "memory");
        let configs = [memory("eu"), memory("house").as_local_backend()];
        let registry = ProviderRegistry::open(&configs).unwrap();
        let (local, house, eu) =
            (ProviderCode::local(), "house".parse().unwrap(), "eu".parse().unwrap());
        assert_eq!(
            (registry.backend(), registry.location(&house)),
            (Some(&house), Location::Local)
        );
        assert_eq!(registry.holder_of_new(&local), house);
        assert_eq!(registry.holder_of_new(&eu), eu);

        registry.check_takes_files(&house).unwrap();
        registry.check_for_binding(&local).unwrap();
        let refused = registry.check_for_binding(&house).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::UnknownProvider);
        assert_eq!(refused.details().allowed, ["LOCAL", "eu"]);
        assert_eq!(registry.active_clouds(), [eu]);

        let two = [memory("a").as_local_backend(), memory("b").as_local_backend()];
        let error = ProviderRegistry::open(&two).unwrap_err();
        assert!(error.to_string().contains("another backend"), "{error}");
        let without = ProviderRegistry::local_only();
        assert_eq!((without.backend(), without.holder_of_new(&local)), (None, local));
    }

    fn with_clouds() -> ProviderRegistry {
        let configs = [("s3-eu", true), ("s3-old", false)].map(|(code, is_active)| {
            ProviderConfig { is_active, ..ProviderConfig::new(code.parse().unwrap(), "memory") }
        });
        ProviderRegistry::open(&configs).unwrap()
    }

    #[test]
    fn the_local_disk_is_always_there_and_active() {
        let registry = ProviderRegistry::local_only();
        let local = registry.get(&ProviderCode::local()).unwrap();
        assert_eq!((local.name.as_str(), local.location), ("Local disk", Location::Local));
        assert_eq!(registry.active(), [local]);
        assert_eq!(registry.location(&ProviderCode::local()), Location::Local);
        assert!(registry.active_clouds().is_empty());
        registry.check_for_binding(&ProviderCode::local()).unwrap();
    }

    #[test]
    fn an_unknown_provider_is_refused_with_the_codes_that_would_do() {
        let error = with_clouds().check_for_binding(&"nope".parse().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownProvider);
        assert_eq!(error.details().field.as_deref(), Some("provider"));
        assert_eq!(error.details().allowed, ["LOCAL", "s3-eu"]);
    }

    #[cfg(feature = "s3")]
    #[test]
    fn a_write_that_was_given_up_may_arrive_for_as_long_as_its_turn_and_its_attempts_take() {
        let mut slow = ProviderConfig::new("eu".parse().unwrap(), "s3")
            .with_option("bucket", "files")
            .with_option("region", "garage");
        (slow.timeout, slow.io_timeout) = (Duration::from_secs(20), Duration::from_secs(7));
        slow.retries = 2;

        let mut quick = slow.clone();
        quick.code = "quick".parse().unwrap();
        (quick.timeout, quick.io_timeout) = (Duration::from_secs(2), Duration::from_secs(1));

        let registry = ProviderRegistry::open(&[slow, quick]).unwrap();
        let limit = |code: &str| registry.late_write_limit(Some(&code.parse().unwrap()));
        assert_eq!(limit("eu"), Duration::from_secs(20 + 3 * 7));
        assert_eq!(limit("quick"), Duration::from_secs(2 + 3), "no other provider's");
        assert_eq!((registry.late_write_limit(None), limit("gone")), (limit("eu"), limit("eu")));
        assert_eq!(
            with_clouds().late_write_limit(None),
            Duration::ZERO,
            "memory is this process's"
        );
    }

    #[test]
    fn an_inactive_provider_takes_no_binding_but_is_still_found() {
        let registry = with_clouds();
        let code = "s3-old".parse().unwrap();
        assert_eq!(
            registry.check_for_binding(&code).unwrap_err().kind(),
            ErrorKind::ProviderInactive
        );
        assert!(registry.get(&code).is_some());
        assert_eq!(registry.location(&code), Location::Cloud);
        assert_eq!(registry.location(&"gone".parse().unwrap()), Location::Cloud);
        assert_eq!(registry.active().len(), 2);
        assert_eq!(registry.active_clouds(), ["s3-eu".parse().unwrap()]);
        assert_eq!(
            registry.check_takes_files(&code).unwrap_err().kind(),
            ErrorKind::ProviderInactive
        );
        assert!(registry.cloud(&code).is_ok());
    }
}
