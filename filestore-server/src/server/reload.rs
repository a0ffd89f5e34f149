//! Taking a changed configuration into use without a restart.

use filestore_core::ProviderRegistry;

use super::{Server, StartError};
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

    /// Takes what `config` changed into use: the certificate and key of TLS. Requests under way end as
    /// they began.
    ///
    /// Either all of it is taken into use, or nothing and the error says why. What needs a restart keeps
    /// its value until then.
    pub async fn reload(&mut self, config: Config) -> Result<(), StartError> {
        Self::check_config(&config)?;

        if let (Some(tls), Some(files)) = (&self.tls, &config.tls) {
            tls.reload(files)?;
        }
        Ok(())
    }
}
