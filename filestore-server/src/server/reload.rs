//! Taking a changed configuration into use without a restart.

use filestore_core::ProviderRegistry;

use super::{Server, StartError, probe_providers};
use crate::config::Config;
use crate::listen::Tls;
use crate::request::base::Base;

impl Server {
    /// Checks a configuration as far as that is possible without its data directory, its address and
    /// its providers' answers.
    pub fn check_config(config: &Config) -> Result<(), StartError> {
        config.check()?;
        Base::of(config.public_url.as_deref())?;
        config.tls.as_ref().map(Tls::open).transpose()?;
        ProviderRegistry::open(&config.store.providers).map_err(StartError::Providers)?;
        Ok(())
    }

    /// Takes what `config` changed into use: the store's limits, lifetimes and quota, providers, and the
    /// certificate and key of TLS. Requests under way end as they began.
    ///
    /// A configuration that cannot be used changes nothing, and the error says why. The rest (addresses,
    /// timeouts of connections, durability, caches) keeps its value until a restart; the log names what of
    /// the store's part does.
    pub async fn reload(&mut self, config: Config) -> Result<(), StartError> {
        Self::check_config(&config)?;
        let check_providers = config.check_providers;

        let reloaded = self.store.reload(config.store).await?;
        if let (Some(tls), Some(files)) = (&self.tls, &config.tls) {
            tls.reload(files)?;
        }
        self.workers.refresh(&self.store);

        if check_providers {
            self.probes = probe_providers(&self.store);
        }
        for key in reloaded.waiting {
            tracing::warn!(key, "the new value is taken into use by the next start");
        }
        Ok(())
    }
}
