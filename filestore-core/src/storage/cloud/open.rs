//! From configuration to an operator: options checked by name, layers in order.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opendal::layers::{ConcurrentLimitLayer, RetryEvent, RetryLayer, TimeoutLayer};
use opendal::services::{FsConfig, MemoryConfig};
use opendal::{Configurator, Operator};
use reqwest::redirect::Policy;
use serde::Serialize;
use tokio::sync::{OnceCell, Semaphore};

use super::budget::PutBudget;
use super::fault::Faults;
use super::observe::{Observe, RemoteClock};
use super::presign::Presigner;
use super::{Cloud, Inner, Scheme};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::provider::{ProviderCode, ProviderConfig};

/// Every scheme, and whether this build has it.
const SCHEMES: [(&str, bool); 5] = [
    ("s3", cfg!(feature = "s3")),
    ("azblob", cfg!(feature = "azblob")),
    ("gcs", cfg!(feature = "gcs")),
    ("fs", true),
    ("memory", true),
];

/// Where the `fs` service writes before it renames, within its root.
const FS_STAGING: &str = ".filestore-staging";

pub(super) type Options = BTreeMap<String, String>;

pub(super) fn open(config: &ProviderConfig, budget: PutBudget) -> Result<Cloud> {
    let options =
        config.options.iter().map(|(name, value)| (name.clone(), value.to_text())).collect();
    let opening = Opening { config, faults: Arc::new(Faults::new(config)), options };
    if config.concurrency == 0 {
        return Err(unusable(&config.code, "concurrency must be at least 1"));
    }
    match config.scheme.as_str() {
        #[cfg(feature = "s3")]
        "s3" => opening.s3(budget),
        #[cfg(feature = "azblob")]
        "azblob" => opening.azblob(budget),
        #[cfg(feature = "gcs")]
        "gcs" => opening.gcs(budget),
        "fs" => opening.fs(budget),
        "memory" => {
            let operator = opening.service::<MemoryConfig>(&[])?;
            opening.cloud(Scheme::Memory, operator, Presigner::Nobody, None, budget)
        }
        _ => Err(unknown_scheme(config)),
    }
}

/// One line at start: which provider, and what is wrong with it.
pub(in crate::storage) fn unusable(code: &ProviderCode, problem: impl AsRef<str>) -> Error {
    Error::new(ErrorKind::Unusable, format!("provider {code}: {}", problem.as_ref()))
}

fn unknown_scheme(config: &ProviderConfig) -> Error {
    let names = |is_built: bool| {
        let names = SCHEMES.iter().filter(|(_, built)| *built == is_built).map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(", ")
    };
    let (built, left_out) = (names(true), names(false));
    let but = if left_out.is_empty() {
        String::new()
    } else {
        format!(" (this build leaves out {left_out})")
    };
    let problem = format!("the scheme must be one of {built}{but}: {:?}", config.scheme);
    unusable(&config.code, problem)
}

struct Opening<'a> {
    config: &'a ProviderConfig,
    faults: Arc<Faults>,
    options: Options,
}

impl Opening<'_> {
    #[cfg(feature = "s3")]
    fn s3(mut self, budget: PutBudget) -> Result<Cloud> {
        let has_region = ["AWS_REGION", "AWS_DEFAULT_REGION"]
            .iter()
            .any(|name| std::env::var_os(name).is_some());
        let required: &[&str] = if has_region { &["bucket"] } else { &["bucket", "region"] };
        for (one, other) in
            [("access_key_id", "secret_access_key"), ("secret_access_key", "access_key_id")]
        {
            if self.options.contains_key(one) && !self.options.contains_key(other) {
                return Err(self.problem(format!("the option {other} is missing")));
            }
        }
        self.check_endpoint()?;
        // A checksum with every put is what lets the store refuse bytes that changed on the way.
        match self.options.get("checksum_algorithm").map(String::as_str) {
            None => self.set("checksum_algorithm", "crc32c"),
            Some("none") => _ = self.options.remove("checksum_algorithm"),
            Some("crc32c" | "md5") => {}
            Some(_) => {
                return Err(
                    self.problem("the option checksum_algorithm must be crc32c, md5 or none")
                );
            }
        }
        let is_signed = !(self.is_set("skip_signature") || self.is_set("allow_anonymous"));
        let presigner =
            if is_signed { Presigner::Service { overrides: true } } else { Presigner::Nobody };
        let operator = self.service::<opendal::services::S3Config>(required)?;
        self.cloud(Scheme::S3, operator, presigner, None, budget)
    }

    #[cfg(feature = "azblob")]
    fn azblob(self, budget: PutBudget) -> Result<Cloud> {
        use super::azure_sas::AzureSas;
        self.check_endpoint()?;
        let operator =
            self.service::<opendal::services::AzblobConfig>(&["container", "endpoint"])?;
        let presigner =
            AzureSas::from_options(&self.options).map_err(|problem| self.problem(problem))?;
        let presigner = presigner.map_or(Presigner::Nobody, |sas| Presigner::Azure(Box::new(sas)));
        self.cloud(Scheme::Azblob, operator, presigner, None, budget)
    }

    #[cfg(feature = "gcs")]
    fn gcs(self, budget: PutBudget) -> Result<Cloud> {
        self.check_endpoint()?;
        let is_signed = !(self.is_set("skip_signature") || self.is_set("allow_anonymous"));
        let presigner =
            if is_signed { Presigner::Service { overrides: false } } else { Presigner::Nobody };
        let operator = self.service::<opendal::services::GcsConfig>(&["bucket"])?;
        self.cloud(Scheme::Gcs, operator, presigner, None, budget)
    }

    fn fs(mut self, budget: PutBudget) -> Result<Cloud> {
        let root = self.options.get("root").filter(|root| !root.is_empty()).map(PathBuf::from);
        if let Some(root) = &root
            && !self.options.contains_key("atomic_write_dir")
        {
            // Without it a file would be written under its final name, for all to see half of it.
            let staging = root.join(FS_STAGING);
            self.options
                .insert("atomic_write_dir".to_owned(), staging.to_string_lossy().into_owned());
        }
        let operator = self.service::<FsConfig>(&["root"])?;
        self.cloud(Scheme::Fs, operator, Presigner::Nobody, root, budget)
    }

    /// The bare service, its options checked one by one.
    fn service<C: Configurator + Default + Serialize>(
        &self,
        required: &[&str],
    ) -> Result<Operator> {
        let defaults = serde_json::to_value(C::default())
            .map_err(|e| Error::internal("listing options", e))?;
        let known: Vec<_> =
            defaults.as_object().into_iter().flat_map(|names| names.keys()).collect();
        if let Some(unknown) = self.options.keys().find(|name| !known.contains(name)) {
            let known = known.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(self.problem(format!("unknown option {unknown}, expected one of {known}")));
        }
        let is_given =
            |name: &&&str| self.options.get(**name).is_some_and(|value| !value.is_empty());
        if let Some(missing) = required.iter().find(|name| !is_given(name)) {
            return Err(self.problem(format!("the option {missing} is missing")));
        }
        let is_required = |name: &String| required.contains(&name.as_str());
        let pairs = |chosen: &dyn Fn(&String) -> bool| {
            let chosen = self.options.iter().filter(|(name, _)| chosen(name));
            chosen.map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>()
        };
        // One at a time, because the error does not name the option and may show its value.
        for option in self.options.keys() {
            if C::from_iter(pairs(&|name| name == option || is_required(name))).is_err() {
                let kind = if defaults[option].is_boolean() {
                    "true or false"
                } else {
                    "a value of another kind"
                };
                return Err(self.problem(format!("the option {option} must be {kind}")));
            }
        }
        let service = C::from_iter(pairs(&|_| true)).and_then(Operator::from_config);
        service.map_err(|error| self.problem(self.faults.text(&error)))
    }

    /// Bounds and repeats what the service does. OpenDAL's own order: an attempt has a timeout, the
    /// attempts are repeated, and an operation keeps its turn while it is.
    fn cloud(
        self,
        scheme: Scheme,
        service: Operator,
        presigner: Presigner,
        directory: Option<PathBuf>,
        budget: PutBudget,
    ) -> Result<Cloud> {
        let config = self.config;
        let tls = super::tls::client_config()?;
        let client = |redirects| {
            let client = reqwest::Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .connect_timeout(config.timeout)
                .redirect(redirects);
            client
                .build()
                .map_err(|error| Error::internal("preparing requests to a provider", error))
        };
        let clock = Arc::new(RemoteClock::new());
        let timeouts =
            TimeoutLayer::new().with_timeout(config.timeout).with_io_timeout(config.io_timeout);
        let (code, faults) = (config.code.clone(), Arc::clone(&self.faults));
        let retry = RetryLayer::new()
            .with_max_times(config.retries)
            .with_min_delay(Duration::from_millis(200))
            .with_factor(3.0)
            .with_max_delay(Duration::from_secs(10))
            .with_jitter()
            .with_notify(move |event: RetryEvent<'_>| {
                let (operation, error) = (event.op, faults.text(event.err));
                tracing::debug!(provider = %code, ?operation, attempt = event.attempt, error, "trying again");
            });
        let reading = service
            .layer(Observe {
                provider: config.code.clone(),
                clock: Arc::clone(&clock),
                client: client(Policy::default())?,
            })
            .layer(timeouts)
            .layer(retry);
        let operator = reading.clone().layer(ConcurrentLimitLayer::new(config.concurrency));
        let inner = Inner {
            code: config.code.clone(),
            scheme,
            operator,
            reading,
            reads: Arc::new(Semaphore::new(config.concurrency.min(Semaphore::MAX_PERMITS))),
            budget,
            faults: self.faults,
            presigner,
            directory,
            clock,
            http: client(Policy::none())?,
            timeout: config.timeout,
            probed: OnceCell::new(),
        };
        Ok(Cloud { inner: Arc::new(inner) })
    }

    /// An endpoint is shown in logs and is part of presigned URLs: it may hold neither a password nor
    /// a query.
    #[cfg(any(feature = "s3", feature = "azblob", feature = "gcs"))]
    fn check_endpoint(&self) -> Result<()> {
        let Some(endpoint) = self.options.get("endpoint") else { return Ok(()) };
        let with_scheme =
            if endpoint.contains("://") { endpoint.clone() } else { format!("https://{endpoint}") };
        let is_plain = |url: &reqwest::Url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        };
        match reqwest::Url::parse(&with_scheme) {
            Ok(url) if is_plain(&url) => Ok(()),
            _ => Err(self.problem(
                "the option endpoint must be an http or https URL without user, query or fragment",
            )),
        }
    }

    #[cfg(feature = "s3")]
    fn set(&mut self, option: &str, value: &str) {
        self.options.insert(option.to_owned(), value.to_owned());
    }

    #[cfg(any(feature = "s3", feature = "gcs"))]
    fn is_set(&self, option: &str) -> bool {
        self.options
            .get(option)
            .is_some_and(|value| !matches!(value.as_str(), "false" | "off" | "0" | ""))
    }

    fn problem(&self, problem: impl AsRef<str>) -> Error {
        unusable(&self.config.code, problem)
    }
}
