//! Applies a changed configuration without a restart.

use super::checks::{refuse, warn_of_missing};
use super::{Server, StartError, probe_providers, within_descriptors};
use crate::config::Config;

impl Server {
    /// Applies the changes in `config`: the store's limits, lifetimes and quota, the scrub, backup
    /// destinations, rate limits, providers, signing secrets, and the TLS certificate and key. Running
    /// requests end as they began.
    ///
    /// An invalid configuration changes nothing, and the error contains the reason. Other settings
    /// (addresses, access, connection timeouts, durability, caches) keep their values until a restart, and
    /// the log names them.
    pub async fn reload(&mut self, config: Config) -> Result<(), StartError> {
        refuse(&config)?;
        warn_of_missing(&config);
        let config = within_descriptors(config);
        let check_providers = config.check_providers;

        // The files first: if they cannot be used after all, nothing has changed yet.
        if let (Some(tls), Some(files)) = (&self.tls, &config.tls) {
            tls.reload(files)?;
        }
        let of_the_server = waiting(&self.config, &config);
        let reloaded = self.store.reload(config.store).await?;
        self.service.set_rate_limits(&config.rate_limits);
        self.service.set_max_event_streams(config.max_event_streams);
        self.workers.refresh(&self.store);

        if check_providers {
            self.probes = probe_providers(&self.store);
        }
        for key in of_the_server.into_iter().chain(reloaded.waiting) {
            tracing::warn!(key, "the new value is taken into use by the next start");
        }
        Ok(())
    }
}

/// Lists changed keys of the server's own part that are read only at startup.
fn waiting(old: &Config, new: &Config) -> Vec<&'static str> {
    let keys = [
        ("listen", old.listen != new.listen),
        ("data_dir", old.data_dir != new.data_dir),
        ("public_url", old.public_url != new.public_url),
        ("trusted_proxies", old.trusted_proxies != new.trusted_proxies),
        ("allowed_hosts", old.allowed_hosts != new.allowed_hosts),
        ("auth", old.auth != new.auth),
        ("insecure_no_auth", old.insecure_no_auth != new.insecure_no_auth),
        ("metrics_listen", old.metrics_listen != new.metrics_listen),
        ("first_key_hash_file", old.first_key_hash_file != new.first_key_hash_file),
        ("audit_log", old.audit_log != new.audit_log),
        ("cors", old.cors != new.cors),
        ("console", old.console != new.console),
        ("tls", old.tls.is_some() != new.tls.is_some()),
        ("http", old.http != new.http || old.body != new.body),
    ];
    keys.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Auth;

    #[test]
    fn settings_of_access_are_named_when_they_wait_for_a_restart() {
        let old = Config::default();
        assert!(waiting(&old, &old).is_empty());

        let mut new = old.clone();
        new.auth = Auth::Keys;
        new.allowed_hosts.push("files.internal".into());
        assert_eq!(waiting(&old, &new), ["allowed_hosts", "auth"]);
    }

    #[test]
    fn a_limit_that_the_process_lowered_does_not_wait_for_a_restart() {
        let mut file = Config::default();
        file.http.max_connections = usize::MAX / 2;

        let running = within_descriptors(file.clone());
        assert!(running.http.max_connections < file.http.max_connections);
        assert!(waiting(&running, &within_descriptors(file)).is_empty());
    }
}
