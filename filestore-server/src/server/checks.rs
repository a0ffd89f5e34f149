//! The checks of a configuration that a start, a reload and `--check-config` share.

use std::time::Duration;

use filestore_core::{DataDir, FileStore, FileStoreBuilder, Timestamp};

use super::{Server, StartError, exposure, first_key};
use crate::audit::Audit;
use crate::config::{Auth, Config};
use crate::http::base::Base;
use crate::listen::{Tls, Validity};

/// The time before the end of a certificate in which a start warns.
const LAST_DAYS: Duration = Duration::from_hours(14 * 24);

impl Server {
    /// Checks a configuration as [`start`](Self::start) does, without opening the store, binding an address or
    /// asking a provider. Logs a warning for each path and program that does not exist. If the records are in
    /// PostgreSQL, the check does not know whether keys exist, and warns where a start might refuse. Does
    /// not create the audit log, the data directory or the root of an `fs` provider, but checks whether this account
    /// can. Blocks for a moment.
    pub fn check_config(config: &Config) -> Result<(), StartError> {
        refuse(config)?;
        if let Some(path) = &config.audit_log {
            let checked = Audit::check(path);
            checked.map_err(|source| StartError::AuditLog { path: path.clone(), source })?;
        }
        DataDir::check(&config.data_dir)?;

        let exist = builder(config).has_keys()?;
        // A start makes the key before it looks.
        let exist = if first_key::hash(config)?.is_some() { Some(true) } else { exist };
        match exist {
            Some(true) => access(config, HaveKeys::Yes)?,
            Some(false) => access(config, HaveKeys::No)?,
            None => warn_of_unknown_keys(config),
        }
        warn_of_missing(config);
        Ok(())
    }
}

/// Prepares to open the store of a configuration.
pub(super) fn builder(config: &Config) -> FileStoreBuilder {
    FileStore::builder(&config.data_dir).config(config.store.clone())
}

/// Refuses a configuration with which no server can start. Returns the certificate of `[tls]`.
pub(super) fn refuse(config: &Config) -> Result<Option<Tls>, StartError> {
    config.check()?;
    Base::of(config.public_url.as_deref())?;
    let tls = config.tls.as_ref().map(Tls::open).transpose()?;
    builder(config).check().map_err(StartError::StoreConfig)?;

    if let Some(validity) = tls.as_ref().and_then(Tls::validity) {
        warn_of_certificate(validity, Timestamp::now());
    }
    Ok(tls)
}

/// Whether a key was ever made for the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HaveKeys {
    Yes,
    No,
}

/// Refuses a configuration that asks for no keys beside keys, and one by which others would reach a server
/// without keys.
pub(super) fn access(config: &Config, keys: HaveKeys) -> Result<(), StartError> {
    match (config.auth, keys) {
        (Auth::None, HaveKeys::Yes) => Err(StartError::KeysBesideNone),
        (Auth::Keys, HaveKeys::No) => {
            tracing::warn!(
                "no key exists yet, so the server refuses every request: make the first key with {}",
                first_key::command(&config.data_dir)
            );
            Ok(())
        }
        (_, HaveKeys::Yes) => Ok(()),
        (Auth::Auto | Auth::None, HaveKeys::No) => exposure::check(config),
    }
}

fn warn_of_unknown_keys(config: &Config) {
    let is_open = config.auth != Auth::Keys && !config.insecure_no_auth;
    if let Some(refusal) = exposure::refusal(config).filter(|_| is_open) {
        tracing::warn!("if PostgreSQL has no keys, a start ends with: {refusal}");
    }
}

/// Warns of each path and program that the configuration names and this machine does not have.
pub(super) fn warn_of_missing(config: &Config) {
    for missing in config.missing() {
        let path = missing.path.display();
        tracing::warn!(key = missing.key, %path, "{}", missing.problem);
    }
}

fn warn_of_certificate(validity: Validity, now: Timestamp) {
    let Validity { begin, end } = validity;
    if now < begin {
        tracing::warn!(%begin, "tls.cert is not valid yet");
    } else if now >= end {
        tracing::warn!(%end, "tls.cert has expired: renew it, then send SIGHUP");
    } else if now.plus(LAST_DAYS) >= end {
        tracing::warn!(%end, "tls.cert expires soon: renew it, then send SIGHUP");
    }
}
