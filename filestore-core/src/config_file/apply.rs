//! Applies the tables in the configuration file to the defaults.

use std::time::Duration;

use super::ConfigFileError;
use super::providers;
use super::tables::{
    ConverterTable, DurabilityName, EventsTable, File, LifetimesTable, LimitsTable, LocalTable,
    OutputName, PostgresTable, ScrubTable, SecretTable, SigningTable, SyncTable, UploadsTable,
    VariantsTable, WebhooksTable,
};
use super::units::{ByteCount, Seconds};
use crate::domain::access::signature::SigningSecret;
use crate::domain::config::{
    ConverterConfig, ConverterOutput, Durability, EventsConfig, Limits, MetadataPlace,
    PostgresConfig, ResumableConfig, ScrubConfig, SigningConfig, StoreConfig, SyncConfig,
    VariantConfig, WebhookConfig,
};
use crate::domain::file::media;
use crate::domain::file::status::Location;
use crate::domain::file::variant::{Fit, VariantSize};
use crate::domain::provider::ProviderConfig;
use crate::domain::report::fsck::FsckDepth;

/// Name of the engine in the data directory.
const SQLITE: &str = "sqlite";

impl File {
    /// Returns the defaults with the changes from the file.
    pub(super) fn into_config(
        self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<StoreConfig, ConfigFileError> {
        let mut config = StoreConfig::default();

        let durability = self.durability.map(|name| match name {
            DurabilityName::Full => Durability::Full,
            DurabilityName::Process => Durability::Process,
        });

        put(&mut config.durability, durability);
        let metadata = self.metadata.unwrap_or_else(|| SQLITE.to_owned());
        config.metadata = self.postgres.unwrap_or_default().into_place(&metadata, env)?;
        put(&mut config.require_binding, self.require_binding);
        config.quota_bytes = self.quota_bytes.map(ByteCount::get);
        config.quota_files = self.quota_files;
        put_bytes(&mut config.reserve_bytes, self.reserve_bytes);
        self.limits.unwrap_or_default().apply(&mut config.limits);
        self.uploads.unwrap_or_default().apply(&mut config.uploads);
        self.events.unwrap_or_default().apply(&mut config.events);
        self.lifetimes.unwrap_or_default().apply(&mut config);
        self.variants.unwrap_or_default().apply(&mut config.variants)?;
        self.sync.unwrap_or_default().apply(&mut config.sync);
        self.scrub.unwrap_or_default().apply(&mut config.scrub);
        self.webhooks.unwrap_or_default().apply(&mut config.webhooks);

        self.signing.unwrap_or_default().apply(&mut config.signing, env)?;
        config.providers = providers::into_configs(self.providers.unwrap_or_default(), env)?;
        config.backup_destinations =
            self.backup.unwrap_or_default().into_destinations(&config.providers)?;
        self.local.unwrap_or_default().apply(&mut config.providers)?;
        Ok(config)
    }
}

impl LocalTable {
    /// Makes the named provider the backend of `LOCAL`.
    fn apply(self, providers: &mut [ProviderConfig]) -> Result<(), ConfigFileError> {
        let Some(code) = self.backend else { return Ok(()) };
        let named = providers.iter_mut().find(|provider| provider.code.as_str() == code);
        let problem = "must be the code of one of the providers";
        let named = named.ok_or(ConfigFileError::Value { key: "local.backend", problem })?;
        if !named.is_active {
            let problem = "must be a provider that is active";
            return Err(ConfigFileError::Value { key: "local.backend", problem });
        }
        named.location = Location::Local;
        Ok(())
    }
}

impl PostgresTable {
    /// Reads the address of the records database. Errors contain neither the address nor the
    /// password.
    fn into_place(
        self,
        metadata: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<MetadataPlace, ConfigFileError> {
        let wrong = |key, problem| ConfigFileError::Value { key, problem };
        if metadata == SQLITE {
            return Ok(MetadataPlace::Sqlite);
        }

        let unset = "names an environment variable that is not set";
        let address = providers::filled_in(metadata, env).map_err(|_| wrong("metadata", unset))?;
        if !["postgres://", "postgresql://"].iter().any(|scheme| address.starts_with(scheme)) {
            return Err(wrong("metadata", "must be sqlite or postgres://USER@HOST:PORT/DATABASE"));
        }

        let mut config = PostgresConfig::new(address);
        config.password = match (self.password, self.password_file) {
            (Some(_), Some(_)) => {
                return Err(wrong("postgres.password", "and password_file exclude each other"));
            }
            (Some(text), None) => {
                let filled = providers::filled_in(&text, env);
                Some(filled.map_err(|_| wrong("postgres.password", unset))?)
            }
            (None, Some(path)) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|_| wrong("postgres.password_file", "cannot be read"))?;
                Some(text.trim_end_matches(['\r', '\n']).to_owned())
            }
            (None, None) => None,
        };
        put(&mut config.schema, self.schema);
        put(&mut config.connections, self.connections);
        put(&mut config.only_server, self.only_server);
        put_secs(&mut config.server_timeout, self.server_timeout_secs);
        Ok(MetadataPlace::Postgres(config))
    }
}

impl UploadsTable {
    fn apply(self, uploads: &mut ResumableConfig) {
        put_bytes(&mut uploads.max_size, self.max_size);
        put_secs(&mut uploads.lifetime, self.lifetime_secs);
        put_secs(&mut uploads.max_age, self.max_age_secs);
        put(&mut uploads.max_open, self.max_open);
        put_bytes(&mut uploads.max_bytes, self.max_bytes);
        put(&mut uploads.max_open_per_organization, self.max_open_per_organization);
        put_bytes(&mut uploads.max_bytes_per_organization, self.max_bytes_per_organization);
    }
}

impl EventsTable {
    fn apply(self, events: &mut EventsConfig) {
        put(&mut events.enabled, self.enabled);
        put(&mut events.keep, self.keep_days.map(days));
        put(&mut events.keep_max, self.keep_max);
    }
}

impl WebhooksTable {
    fn apply(self, webhooks: &mut WebhookConfig) {
        put(&mut webhooks.enabled, self.enabled);
        put(&mut webhooks.allow_http, self.allow_http);
        put(&mut webhooks.allow, self.allow);
        put_secs(&mut webhooks.timeout, self.timeout_secs);
        put(&mut webhooks.concurrency, self.concurrency);
        put(&mut webhooks.in_flight, self.in_flight);
        let days = self.disable_after_days;
        put(
            &mut webhooks.disable_after,
            days.map(|days| Duration::from_hours(24 * u64::from(days))),
        );
        put(&mut webhooks.max, self.max);
    }
}

impl LimitsTable {
    fn apply(self, limits: &mut Limits) {
        put_bytes(&mut limits.max_file_size, self.max_file_size);
        put(&mut limits.max_batch_items, self.max_batch_items);
        put_bytes(&mut limits.max_batch_size, self.max_batch_size);
        put(&mut limits.original_name_chars, self.original_name_chars);
        put(&mut limits.concurrent_uploads, self.concurrent_uploads);
        put(&mut limits.staged_files, self.staged_files);
        put_bytes(&mut limits.staged_bytes, self.staged_bytes);
        put(&mut limits.staged_files_per_organization, self.staged_files_per_organization);
        put_bytes(&mut limits.staged_bytes_per_organization, self.staged_bytes_per_organization);
        put_bytes(&mut limits.blob_cache_bytes, self.blob_cache_bytes);
        put(&mut limits.open_files, self.open_files);
        put_secs(&mut limits.write_through, self.write_through_secs);
    }
}

impl LifetimesTable {
    fn apply(self, store: &mut StoreConfig) {
        put_secs(&mut store.temp_ttl, self.temp_ttl_secs);
        put_secs(&mut store.purge_grace, self.purge_grace_secs);
        put_secs(&mut store.blob_grace, self.blob_grace_secs);
        put_secs(&mut store.clock_settle, self.clock_settle_secs);
        put_secs(&mut store.idempotency_ttl, self.idempotency_ttl_secs);
        put_secs(&mut store.presign_ttl, self.presign_ttl_secs);
        put(&mut store.receipt_retention, self.receipt_days.map(days));
    }
}

fn days(days: u32) -> Duration {
    Duration::from_hours(24 * u64::from(days))
}

impl SyncTable {
    fn apply(self, sync: &mut SyncConfig) {
        put(&mut sync.concurrency, self.concurrency);
        put(&mut sync.max_attempts, self.max_attempts);
        put_secs(&mut sync.first_pause, self.first_pause_secs);
    }
}

impl ScrubTable {
    fn apply(self, scrub: &mut ScrubConfig) {
        put_secs(&mut scrub.period, self.period_secs);
        let depth = self.deep.map(|deep| if deep { FsckDepth::Deep } else { FsckDepth::Quick });
        put(&mut scrub.depth, depth);
        let rate = self.bytes_per_second.map(ByteCount::get);
        let rate = rate.map(|rate| (rate > 0).then_some(rate));
        put(&mut scrub.bytes_per_second, rate);
        put(&mut scrub.at_providers, self.at_providers);
    }
}

impl SigningTable {
    fn apply(
        self,
        signing: &mut SigningConfig,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), ConfigFileError> {
        put_secs(&mut signing.window, self.window_secs);
        for (at, table) in self.secrets.unwrap_or_default().into_iter().enumerate() {
            signing.secrets.push(table.into_secret(at + 1, env)?);
        }
        Ok(())
    }
}

impl SecretTable {
    /// Reads a secret. The error contains neither the secret nor the value of a variable.
    fn into_secret(
        self,
        at: usize,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<SigningSecret, ConfigFileError> {
        let wrong = |problem: String| ConfigFileError::Secret { at, problem };
        let kid = self.kid.ok_or_else(|| wrong("the key kid is missing".into()))?;
        let text = self.secret.ok_or_else(|| wrong("the key secret is missing".into()))?;
        let text = providers::filled_in(&text, env)
            .map_err(|problem| wrong(format!("the key secret {problem}")))?;
        SigningSecret::new(kid, text.into_bytes()).map_err(|error| wrong(error.to_string()))
    }
}

impl VariantsTable {
    fn apply(self, variants: &mut VariantConfig) -> Result<(), ConfigFileError> {
        put(&mut variants.max_pixels, self.max_pixels);
        put(&mut variants.max_side, self.max_side);
        put_bytes(&mut variants.decode_memory_bytes, self.decode_memory_bytes);
        put(&mut variants.queue, self.queue);
        put(&mut variants.threads, self.threads);
        put_secs(&mut variants.deadline, self.deadline_secs);
        put(&mut variants.quality, self.quality);
        put_bytes(&mut variants.memory_cache_bytes, self.memory_cache_bytes);
        put_bytes(&mut variants.disk_cache_bytes, self.disk_cache_bytes);
        put_bytes(&mut variants.intermediate_cache_bytes, self.intermediate_cache_bytes);
        put_bytes(&mut variants.sheet_cache_bytes, self.sheet_cache_bytes);
        put(&mut variants.animated, self.animated);
        put(&mut variants.animation.max_frames, self.animated_max_frames);
        put(&mut variants.animation.max_pixels, self.animated_max_pixels);
        put_secs(&mut variants.animation.cpu, self.animated_cpu_secs);
        put_bytes(&mut variants.animation.max_bytes, self.animated_max_bytes);
        variants.launcher = self.launcher;
        for table in self.converters.unwrap_or_default() {
            variants.converters.push(table.into_config()?);
        }

        for text in self.eager.unwrap_or_default() {
            let kind = eager_kind(&text)?;
            if !variants.eager.contains(&kind) {
                variants.eager.push(kind);
            }
        }
        Ok(())
    }
}

impl ConverterTable {
    fn into_config(self) -> Result<ConverterConfig, ConfigFileError> {
        let wrong = |problem| ConfigFileError::Value { key: "variants.converters", problem };
        let are_types = |types: &Vec<String>| {
            !types.is_empty() && types.iter().all(|named| media::is_range(named))
        };
        let types = self
            .types
            .filter(are_types)
            .ok_or_else(|| wrong("must have types, such as \"application/pdf\" or \"video/*\""))?;
        let command = self.command.filter(|command| !command.is_empty());
        let command =
            command.ok_or_else(|| wrong("must have a command: a program and arguments"))?;

        let mut converter = ConverterConfig::new(types, command);
        converter.output = match self.output {
            Some(OutputName::Jpeg) => ConverterOutput::Jpeg,
            Some(OutputName::Png) | None => ConverterOutput::Png,
        };
        put(&mut converter.readable, self.readable);
        if converter.readable.iter().any(|path| !path.is_absolute()) {
            return Err(wrong("must have absolute paths in readable"));
        }
        put_secs(&mut converter.timeout, self.timeout_secs);
        put_secs(&mut converter.cpu, self.cpu_secs);
        put_bytes(&mut converter.memory_bytes, self.memory_bytes);
        put_bytes(&mut converter.max_input_bytes, self.max_input_bytes);
        put_bytes(&mut converter.max_output_bytes, self.max_output_bytes);
        put(&mut converter.open_files, self.open_files);
        put(&mut converter.at_once, self.at_once);
        if converter.timeout.is_zero() || converter.cpu.is_zero() || converter.at_once == 0 {
            return Err(wrong("must have limits of at least 1"));
        }
        Ok(converter)
    }
}

/// Reads `"200"` or `"1000/inside"`: a size, and a fit (default `cover`).
fn eager_kind(text: &str) -> Result<(VariantSize, Fit), ConfigFileError> {
    let (size, fit) = text.split_once('/').unwrap_or((text, "cover"));
    let kind = VariantSize::from_path(size, size).and_then(|size| Ok((size, fit.parse()?)));
    kind.map_err(|_| ConfigFileError::Value {
        key: "variants.eager",
        problem: "must be sizes, each with a fit or without, such as \"200\" or \"1000/inside\"",
    })
}

fn put<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

fn put_secs(slot: &mut Duration, secs: Option<Seconds>) {
    put(slot, secs.map(|secs| Duration::from_secs(secs.get())));
}

fn put_bytes(slot: &mut u64, bytes: Option<ByteCount>) {
    put(slot, bytes.map(ByteCount::get));
}
