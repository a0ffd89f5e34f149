//! The registry of providers: all there are, those that take new files, those that a binding may
//! name.
//!
//! `LOCAL` is built in and always active. Other providers come from the configuration: those of location
//! CLOUD, and at most one of location LOCAL, its *backend*. A backend has the new blobs that would be in the
//! data directory without it. No binding names it: who is bound to `LOCAL`, or to nothing, has it.
//! A registry does not change; a configuration that does makes another one, which shares the providers
//! that are the same.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::cloud::{self, Cloud, MarkerLedger};
use crate::domain::clock::Clock;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::StoreId;
use crate::domain::provider::{Provider, ProviderCode, ProviderConfig};
use crate::domain::provider_health::ProviderHealth;
use crate::domain::status::Location;

/// The providers of a store, `LOCAL` first.
#[derive(Debug, Clone)]
pub struct ProviderRegistry {
    providers: Vec<Provider>,
    clouds: BTreeMap<ProviderCode, Cloud>,
    /// The configurations of the clouds, to tell which of them a change concerns.
    configs: Vec<ProviderConfig>,
    clock: Clock,
    owner: Option<Owner>,
}

/// The store whose objects the providers hold.
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
    /// Registers the built-in provider only: the service's own disk.
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

    /// Registers the built-in provider and those of the configuration, without a request to any.
    ///
    /// `Unusable` names the provider and the problem of its configuration in one line: an unknown
    /// scheme, an unknown or missing option, a value of the wrong kind, a code that is taken.
    pub fn open(configs: &[ProviderConfig]) -> Result<Self> {
        Self::open_with(configs, &Clock::system())
    }

    /// Registers as [`open`](Self::open) does; the providers go by `clock`.
    pub fn open_with(configs: &[ProviderConfig], clock: &Clock) -> Result<Self> {
        Self { clock: clock.clone(), ..Self::local_only() }.changed_to(configs)
    }

    /// Registers the providers of a changed configuration. One that is configured as before, but for its
    /// name and whether it is active, is the same provider: it keeps its turns, its breaker, and what
    /// was found out about it. Fails as [`open`](Self::open) does.
    pub fn changed_to(&self, configs: &[ProviderConfig]) -> Result<Self> {
        let mut registry = Self::local_only();
        registry.clock = self.clock.clone();
        registry.owner.clone_from(&self.owner);
        registry.configs = configs.to_vec();

        for config in configs {
            let code = &config.code;
            if code.is_local() {
                return Err(cloud::unusable(code, "the code is that of the built-in provider"));
            }
            if registry.get(code).is_some() {
                return Err(cloud::unusable(code, "the code is given to two providers"));
            }

            if config.location == Location::Local && registry.backend().is_some() {
                return Err(cloud::unusable(code, "LOCAL has another backend already"));
            }

            registry.clouds.insert(code.clone(), self.cloud_for(config)?);
            registry.providers.push(Provider {
                code: code.clone(),
                name: config.name.clone(),
                location: config.location,
                is_active: config.is_active,
            });
        }

        Ok(registry)
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

    /// Tells the configured providers whose they are: from now on each makes sure that it is
    /// the place that the store's records mean, and is marked when it is first used. Those of a later
    /// configuration are told as well.
    pub fn identify(&mut self, id: StoreId, ledger: &Arc<dyn MarkerLedger>) {
        for cloud in self.clouds.values() {
            cloud.identify(id, Arc::clone(ledger));
        }
        self.owner = Some(Owner { id, ledger: Arc::clone(ledger) });
    }

    /// Returns the longest time for which a write that was given up may still arrive at `provider`, or
    /// at any provider without one.
    pub fn late_write_limit(&self, provider: Option<&ProviderCode>) -> Duration {
        // One that is gone from the configuration may be any that was in it.
        match provider.and_then(|code| self.clouds.get(code)) {
            Some(cloud) => cloud.late_write_limit(),
            None => self.clouds.values().map(Cloud::late_write_limit).max().unwrap_or_default(),
        }
    }

    /// Returns the backend of `LOCAL`; `None` if that is the data directory.
    pub fn backend(&self) -> Option<&ProviderCode> {
        let mut configured = self.providers.iter().filter(|provider| !provider.code.is_local());
        configured.find(|provider| provider.location == Location::Local).map(|found| &found.code)
    }

    /// Returns the holder of new blobs of a provider that a binding names: `LOCAL` stands for its backend.
    pub fn holder_of_new(&self, code: &ProviderCode) -> ProviderCode {
        let backend = self.backend().filter(|_| code.is_local());
        backend.unwrap_or(code).clone()
    }

    /// Returns the configured provider with that code: `ProviderUnavailable` if there is none, or none any
    /// more.
    pub fn cloud(&self, code: &ProviderCode) -> Result<&Cloud> {
        self.clouds.get(code).ok_or_else(|| not_configured(code))
    }

    /// Describes how every configured provider answers, in the order of their codes.
    pub fn health(&self) -> Vec<ProviderHealth> {
        self.clouds.values().map(Cloud::health).collect()
    }

    /// Describes how one provider answers; `None` for `LOCAL` and for one that is not configured.
    pub fn health_of(&self, code: &ProviderCode) -> Option<ProviderHealth> {
        self.clouds.get(code).map(Cloud::health)
    }

    /// Tells whether background work may put to, or remove from, that provider now: false while its
    /// breaker is open. True for `LOCAL`, and for one that is not configured, whose operations fail
    /// at once with the reason.
    pub fn may_try(&self, code: &ProviderCode) -> bool {
        self.clouds.get(code).is_none_or(Cloud::may_try)
    }

    /// Lists every provider, inactive ones included.
    pub fn all(&self) -> &[Provider] {
        &self.providers
    }

    /// Lists the providers that take new files, as bindings name them: without a backend of `LOCAL`.
    pub fn active(&self) -> Vec<&Provider> {
        let active = self.providers.iter().filter(|provider| provider.is_active);
        active.filter(|provider| self.backend() != Some(&provider.code)).collect()
    }

    /// Returns the provider with that code; `None` if none is configured, or none any more.
    pub fn get(&self, code: &ProviderCode) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.code == *code)
    }

    /// Returns the location of the provider's files. A code that is no longer configured was a
    /// cloud's: `LOCAL` always is.
    pub fn location(&self, code: &ProviderCode) -> Location {
        self.get(code).map_or(Location::Cloud, |provider| provider.location)
    }

    /// Checks that the provider takes new files: `ProviderUnavailable` if no such provider is
    /// configured, `ProviderInactive` if it takes none.
    pub fn check_takes_files(&self, code: &ProviderCode) -> Result<()> {
        match self.get(code) {
            Some(provider) if provider.is_active => Ok(()),
            Some(_) => Err(inactive(code)),
            None => Err(not_configured(code)),
        }
    }

    /// Lists the codes of the providers of location CLOUD that take new files.
    pub fn active_clouds(&self) -> Vec<ProviderCode> {
        self.active()
            .into_iter()
            .filter(|provider| provider.location == Location::Cloud)
            .map(|provider| provider.code.clone())
            .collect()
    }

    /// Checks that a binding may name `code`: else [`ErrorKind::UnknownProvider`], which lists the
    /// codes that a binding may name, or [`ErrorKind::ProviderInactive`].
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

/// Tests whether two configurations of a code differ in nothing that its connections are made of.
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
