//! Opens a provider: checks the options by name, and turns the configuration into a layered operator.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use opendal::layers::{RetryEvent, RetryLayer, TimeoutLayer};
use opendal::raw::Operation;
use opendal::services::{FsConfig, MemoryConfig};
use opendal::{Configurator, Operator};
use serde::Serialize;

use super::fault::Faults;
#[cfg(any(feature = "s3", feature = "gcs"))]
use super::options::is_set;
use super::options::{FS_STAGING, Options};
use super::remote_clock::RemoteClock;
use super::{Client, Observe};
use crate::domain::error::{Error, Result};
use crate::domain::provider::ProviderConfig;
use crate::domain::similar::nearest;
use crate::domain::time::clock::Clock;
use crate::storage::access::warn_of_others;
use crate::storage::cloud::identity::marker::Identity;
use crate::storage::cloud::line::breaker::{Breakers, Direction};
use crate::storage::cloud::line::gate::Gate;
use crate::storage::cloud::line::memory::Memory;
use crate::storage::cloud::line::threads::Threads;
use crate::storage::cloud::line::turns::Turns;
use crate::storage::cloud::signing::presign::Presigner;
#[cfg(feature = "s3")]
use crate::storage::cloud::upload::s3_uploads::S3Uploads;
use crate::storage::cloud::upload::uploads::Uploads;
use crate::storage::cloud::{Cloud, Inner, Scheme};
use crate::storage::cloud_types::unusable;
use crate::storage::data_dir::check_directory;

/// Every scheme, with true if this build supports it.
const SCHEMES: [(&str, bool); 5] = [
    ("s3", cfg!(feature = "s3")),
    ("azblob", cfg!(feature = "azblob")),
    ("gcs", cfg!(feature = "gcs")),
    ("fs", true),
    ("memory", true),
];

/// The maximum duration of a request whose bytes keep moving.
const LONGEST_REQUEST: Duration = Duration::from_hours(1);

/// Opens the provider with this configuration. Sends no request.
pub(in crate::storage::cloud) fn open(config: &ProviderConfig, clock: &Clock) -> Result<Cloud> {
    let opening = Opening::new(config, clock)?;
    match config.scheme.as_str() {
        #[cfg(feature = "s3")]
        "s3" => opening.s3(),
        #[cfg(feature = "azblob")]
        "azblob" => opening.azblob(),
        #[cfg(feature = "gcs")]
        "gcs" => opening.gcs(),
        "fs" => opening.fs(),
        "memory" => opening.memory(),
        _ => Err(unknown_scheme(config)),
    }
}

/// Refuses the configurations that [`open`] refuses, and creates nothing.
pub(in crate::storage::cloud) fn check(config: &ProviderConfig, clock: &Clock) -> Result<()> {
    // Only the `fs` service of OpenDAL creates something when it is built.
    if config.scheme == "fs" {
        return Opening::new(config, clock)?.check_fs().map(drop);
    }
    open(config, clock).map(drop)
}

fn unknown_scheme(config: &ProviderConfig) -> Error {
    let (built, left_out): (Vec<_>, Vec<_>) = SCHEMES.iter().partition(|(_, is_built)| *is_built);
    let but = if left_out.is_empty() {
        String::new()
    } else {
        format!(" (this build leaves out {})", names(&left_out))
    };

    let built = names(&built);
    let problem = format!("the scheme must be one of {built}{but}: {:?}", config.scheme);
    unusable(&config.code, problem)
}

fn names(schemes: &[(&str, bool)]) -> String {
    schemes.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// A provider during opening.
struct Opening<'a> {
    config: &'a ProviderConfig,
    faults: Arc<Faults>,
    breakers: Arc<Breakers>,
    options: Options,
    clock: Clock,
}

/// The properties that differ between kinds of services.
struct Service {
    scheme: Scheme,
    operator: Operator,
    presigner: Presigner,
    /// The root of the `fs` service's files.
    directory: Option<PathBuf>,
}

impl<'a> Opening<'a> {
    fn new(config: &'a ProviderConfig, clock: &Clock) -> Result<Self> {
        if config.concurrency == 0 {
            return Err(unusable(&config.code, "concurrency must be at least 1"));
        }
        let options = config.options.iter().map(|(name, value)| (name.clone(), value.to_text()));
        Ok(Self {
            config,
            faults: Arc::new(Faults::new(config)),
            breakers: Arc::new(Breakers::new(config.code.clone(), clock)),
            options: options.collect(),
            clock: clock.clone(),
        })
    }

    #[cfg(feature = "s3")]
    fn s3(mut self) -> Result<Cloud> {
        self.check_s3_keys()?;
        self.check_endpoint()?;
        self.choose_s3_checksum()?;

        let has_region = ["AWS_REGION", "AWS_DEFAULT_REGION"]
            .iter()
            .any(|name| std::env::var_os(name).is_some());
        let required: &[&str] = if has_region { &["bucket"] } else { &["bucket", "region"] };
        let operator = self.service::<opendal::services::S3Config>(required)?;

        let presigner = if self.is_signed() {
            Presigner::Service { overrides: true }
        } else {
            Presigner::Nobody
        };
        self.cloud(Service { scheme: Scheme::S3, operator, presigner, directory: None })
    }

    /// Refuses one half of a key pair without the other half.
    #[cfg(feature = "s3")]
    fn check_s3_keys(&self) -> Result<()> {
        let pairs =
            [("access_key_id", "secret_access_key"), ("secret_access_key", "access_key_id")];

        for (one, other) in pairs {
            if self.options.contains_key(one) && !self.options.contains_key(other) {
                return Err(self.problem(format!("the option {other} is missing")));
            }
        }
        Ok(())
    }

    /// Selects CRC32C unless the options set another checksum. With a checksum, the provider can refuse bytes
    /// that changed on the way.
    #[cfg(feature = "s3")]
    fn choose_s3_checksum(&mut self) -> Result<()> {
        match self.options.get("checksum_algorithm").map(String::as_str) {
            None => self.set("checksum_algorithm", "crc32c"),
            Some("none") => _ = self.options.remove("checksum_algorithm"),
            Some("crc32c" | "md5") => {}
            Some(_) => {
                let problem = "the option checksum_algorithm must be crc32c, md5 or none";
                return Err(self.problem(problem));
            }
        }
        Ok(())
    }

    #[cfg(feature = "azblob")]
    fn azblob(self) -> Result<Cloud> {
        use crate::storage::cloud::signing::azure_sas::AzureSas;

        self.check_endpoint()?;
        let operator =
            self.service::<opendal::services::AzblobConfig>(&["container", "endpoint"])?;

        let presigner =
            AzureSas::from_options(&self.options).map_err(|problem| self.problem(problem))?;
        let presigner = presigner.map_or(Presigner::Nobody, |sas| Presigner::Azure(Box::new(sas)));
        self.cloud(Service { scheme: Scheme::Azblob, operator, presigner, directory: None })
    }

    #[cfg(feature = "gcs")]
    fn gcs(self) -> Result<Cloud> {
        self.check_endpoint()?;
        let operator = self.service::<opendal::services::GcsConfig>(&["bucket"])?;

        let presigner = if self.is_signed() {
            Presigner::Service { overrides: false }
        } else {
            Presigner::Nobody
        };
        self.cloud(Service { scheme: Scheme::Gcs, operator, presigner, directory: None })
    }

    fn fs(self) -> Result<Cloud> {
        let opening = self.check_fs()?;
        let operator = opening.build::<FsConfig>()?;
        let directory = opening.options.get("root").map(PathBuf::from);
        let presigner = Presigner::Nobody;
        opening.cloud(Service { scheme: Scheme::Fs, operator, presigner, directory })
    }

    /// Completes and checks the options of the `fs` service. Its directories must exist, or this account must
    /// be able to create them.
    fn check_fs(mut self) -> Result<Self> {
        let root = self.options.get("root").filter(|root| !root.is_empty()).map(PathBuf::from);
        if let Some(root) = &root
            && !self.options.contains_key("atomic_write_dir")
        {
            // Without it a file would be written under its final name, for all to see half of it.
            self.set("atomic_write_dir", &root.join(FS_STAGING).to_string_lossy());
        }

        if let Some(root) = &root {
            warn_of_others("the directory of a provider", root);
        }

        self.check_options::<FsConfig>(&["root"])?;
        for directory in ["root", "atomic_write_dir"].map(|option| &self.options[option]) {
            check_directory(Path::new(directory)).map_err(|error| {
                let problem = error.kind();
                self.problem(format!("the directory {directory} cannot be used: {problem}"))
            })?;
        }
        Ok(self)
    }

    fn memory(self) -> Result<Cloud> {
        let operator = self.service::<MemoryConfig>(&[])?;
        #[cfg(any(test, feature = "internals"))]
        let operator = crate::storage::cloud::simulated::behind_faults(&self.config.code, operator);
        let presigner = Presigner::Nobody;
        self.cloud(Service { scheme: Scheme::Memory, operator, presigner, directory: None })
    }

    /// Opens the service without layers, after checking its options.
    fn service<C: Configurator + Default + Serialize>(
        &self,
        required: &[&str],
    ) -> Result<Operator> {
        self.check_options::<C>(required)?;
        self.build::<C>()
    }

    fn build<C: Configurator>(&self) -> Result<Operator> {
        let service = C::from_iter(self.pairs(|_| true)).and_then(Operator::from_config);
        service.map_err(|error| self.problem(self.faults.text(&error)))
    }

    /// Checks the options one by one.
    fn check_options<C: Configurator + Default + Serialize>(
        &self,
        required: &[&str],
    ) -> Result<()> {
        let defaults = serde_json::to_value(C::default())
            .map_err(|error| Error::internal("listing options", error))?;
        self.check_names(&defaults, required)?;

        // One at a time, because the error does not name the option and may show its value.
        for option in self.options.keys() {
            let alone = self.pairs(|name| name == option || required.contains(&name));
            if C::from_iter(alone).is_err() {
                let kind = if defaults[option].is_boolean() {
                    "true or false"
                } else {
                    "a value of another kind"
                };
                return Err(self.problem(format!("the option {option} must be {kind}")));
            }
        }
        Ok(())
    }

    /// Refuses unknown options, and the absence of a required option.
    fn check_names(&self, defaults: &serde_json::Value, required: &[&str]) -> Result<()> {
        let known = defaults.as_object().into_iter().flat_map(|names| names.keys());
        let known: Vec<&str> = known.map(String::as_str).collect();
        if let Some(unknown) = self.options.keys().find(|name| !known.contains(&name.as_str())) {
            let advice = nearest(unknown, known.iter().copied()).map_or_else(
                || format!(", expected one of {}", known.join(", ")),
                |near| format!(": did you mean {near}?"),
            );
            return Err(self.problem(format!("unknown option {unknown}{advice}")));
        }

        for name in required {
            if self.options.get(*name).is_none_or(String::is_empty) {
                return Err(self.problem(format!("the option {name} is missing")));
            }
        }
        Ok(())
    }

    /// Returns the options whose names `choose` accepts.
    fn pairs(&self, choose: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let chosen = self.options.iter().filter(|(name, _)| choose(name));
        chosen.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Adds timeouts and retries to the service in OpenDAL's own order: each attempt has a timeout, and
    /// attempts are repeated.
    fn cloud(self, service: Service) -> Result<Cloud> {
        let config = self.config;
        let is_remote = !matches!(service.scheme, Scheme::Fs | Scheme::Memory);
        let http = is_remote.then(|| Client::new(config)).transpose()?;
        let clock = Arc::new(RemoteClock::new());
        let keeps_versions = Arc::new(AtomicBool::new(false));

        let observe =
            http.as_ref().map(|client| Observe::new(client, config, &clock, &keeps_versions));
        let uploads =
            observe.as_ref().and_then(|observe| self.part_uploads(service.scheme, observe));
        // Over HTTP the transport times silence; a request may take as long as bytes move.
        let io_timeout = if is_remote { LONGEST_REQUEST } else { config.io_timeout };
        let turns = Turns::new(config.concurrency);
        let timeouts = TimeoutLayer::new().with_timeout(config.timeout).with_io_timeout(io_timeout);
        let threads = (service.scheme == Scheme::Fs).then(|| Threads::new(config.io_timeout));
        let operator = match &threads {
            None => {
                let operator = match observe {
                    Some(observe) => observe.over(service.operator),
                    None => service.operator,
                };
                operator.layer(timeouts).layer(self.retries(&turns.sends))
            }
            // A call that hangs cannot be cancelled, and would hang again: the threads bound it.
            Some(_) => service.operator,
        };

        let is_fs = service.scheme == Scheme::Fs;
        let inner = Inner {
            code: config.code.clone(),
            scheme: service.scheme,
            operator,
            memory: Memory::new(),
            turns,
            threads,
            faults: self.faults,
            breakers: self.breakers,
            opened_at: self.clock.now(),
            now: self.clock,
            presigner: service.presigner,
            directory: service.directory,
            clock,
            keeps_versions,
            identity: Identity::default(),
            http,
            timeout: config.timeout,
            io_timeout: config.io_timeout,
            attempts: if is_fs { 1 } else { config.retries.saturating_add(1) },
            min_read_rate: config.min_read_rate,
            probing: Arc::default(),
            uploads,
        };
        Ok(Cloud { inner: Arc::new(inner) })
    }

    #[cfg(feature = "s3")]
    fn part_uploads(&self, scheme: Scheme, observe: &Observe) -> Uploads {
        let uploads = (scheme == Scheme::S3)
            .then(|| S3Uploads::from_options(&self.options, observe.transport()));
        uploads.flatten().map(|uploads| Arc::new(uploads) as _)
    }

    #[cfg(not(feature = "s3"))]
    fn part_uploads(&self, _scheme: Scheme, _observe: &Observe) -> Uploads {
        None
    }

    /// Creates the layer that repeats attempts and logs the reason.
    fn retries(
        &self,
        sends: &Arc<Gate>,
    ) -> RetryLayer<impl Fn(RetryEvent<'_>) + Send + Sync + 'static + use<>> {
        let (code, faults) = (self.config.code.clone(), Arc::clone(&self.faults));
        let (breakers, sends) = (Arc::clone(&self.breakers), Arc::clone(sends));

        RetryLayer::new()
            .with_max_times(self.config.retries)
            .with_min_delay(Duration::from_millis(200))
            .with_factor(3.0)
            .with_max_delay(Duration::from_secs(10))
            .with_jitter()
            .with_notify(move |event: RetryEvent<'_>| {
                let (operation, error) = (event.op, faults.text(event.err));
                tracing::debug!(provider = %code, ?operation, attempt = event.attempt, error, "trying again");
                let direction = direction_of(event.op);
                if direction == Direction::Write && is_overload(event.err) {
                    sends.narrow();
                }
                if is_silence(event.err) {
                    breakers.failed(direction, error);
                }
            })
    }

    /// Checks the endpoint. Logs and presigned URLs contain it, so it must not contain a password or a query.
    #[cfg(any(feature = "s3", feature = "azblob", feature = "gcs"))]
    fn check_endpoint(&self) -> Result<()> {
        let Some(endpoint) = self.options.get("endpoint") else { return Ok(()) };
        let with_scheme =
            if endpoint.contains("://") { endpoint.clone() } else { format!("https://{endpoint}") };

        match reqwest::Url::parse(&with_scheme) {
            Ok(url) if is_plain(&url) => Ok(()),
            _ => Err(self.problem(
                "the option endpoint must be an http or https URL without user, query or fragment",
            )),
        }
    }

    fn set(&mut self, option: &str, value: &str) {
        self.options.insert(option.to_owned(), value.to_owned());
    }

    /// Returns true if requests are signed. Presigned URLs require this.
    #[cfg(any(feature = "s3", feature = "gcs"))]
    fn is_signed(&self) -> bool {
        !(is_set(&self.options, "skip_signature") || is_set(&self.options, "allow_anonymous"))
    }

    fn problem(&self, problem: impl AsRef<str>) -> Error {
        unusable(&self.config.code, problem)
    }
}

/// Returns true for an attempt without any response, which is OpenDAL's timeout error.
fn is_silence(error: &opendal::Error) -> bool {
    error.message().ends_with("timeout reached")
}

/// Returns true for an attempt that failed because of overload. Fewer concurrent requests can help.
pub(in crate::storage::cloud) fn is_overload(error: &opendal::Error) -> bool {
    is_silence(error) || error.kind() == opendal::ErrorKind::RateLimited
}

/// Returns the breaker for an operation of OpenDAL.
fn direction_of(operation: Operation) -> Direction {
    match operation {
        Operation::Read | Operation::Stat | Operation::List => Direction::Read,
        _ => Direction::Write,
    }
}

/// Returns true for http and https URLs without secrets to which a key can be added.
#[cfg(any(feature = "s3", feature = "azblob", feature = "gcs"))]
fn is_plain(url: &reqwest::Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
}
