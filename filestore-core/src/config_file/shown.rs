//! The inverse of `apply.rs`: a configuration as the tables of the file, without secrets.
//!
//! Each table is written as a whole literal, so that a new key does not compile without its line here.

use std::time::Duration;

use super::ConfigFileError;
use super::tables::{
    BackupTable, ConverterTable, DestinationTable, DurabilityName, EventsTable, File,
    LifetimesTable, LimitsTable, LocalTable, OptionInFile, OutputName, PostgresTable,
    ProviderTable, ScrubTable, SecretTable, SigningTable, SyncTable, UploadsTable, VariantsTable,
    WebhooksTable,
};
use super::units::{ByteCount, Seconds};
use crate::domain::access::signature::SigningSecret;
use crate::domain::config::{
    BackupDestination, BackupPlace, ConverterConfig, ConverterOutput, Durability, EventsConfig,
    Limits, MetadataPlace, PostgresConfig, ResumableConfig, ScrubConfig, SigningConfig,
    StoreConfig, SyncConfig, VariantConfig, WebhookConfig,
};
use crate::domain::file::status::Location;
use crate::domain::file::variant::{Fit, VariantSize};
use crate::domain::provider::{OptionValue, PUBLIC_OPTIONS, ProviderConfig};
use crate::domain::report::fsck::FsckDepth;

/// Stands for a secret.
const HIDDEN: &str = "***";

impl StoreConfig {
    /// Writes the configuration as TOML, with the keys of `filestore.toml` and all default values.
    /// Secrets are `***`: passwords, signing secrets, and provider options that can contain a secret. Fails
    /// for a number that TOML cannot express, for example `u64::MAX`.
    ///
    /// ```
    /// # use filestore_core::StoreConfig;
    /// let text = StoreConfig::default().to_toml()?;
    /// assert!(text.contains("max_file_size = 1073741824"));
    /// # Ok::<(), filestore_core::config_file::ConfigFileError>(())
    /// ```
    pub fn to_toml(&self) -> Result<String, ConfigFileError> {
        let table = toml::Table::try_from(File::from(self));
        table
            .map(|table| table.to_string())
            .map_err(|error| ConfigFileError::Toml(error.to_string()))
    }
}

impl From<&StoreConfig> for File {
    /// Leaves out the server's keys.
    fn from(config: &StoreConfig) -> Self {
        let (metadata, postgres) = match &config.metadata {
            MetadataPlace::Sqlite => ("sqlite".to_owned(), None),
            MetadataPlace::Postgres(place) => {
                (without_password(&place.address), Some(PostgresTable::from(place)))
            }
        };
        let backend = config.providers.iter().find(|one| one.location == Location::Local);

        Self {
            durability: Some(match config.durability {
                Durability::Full => DurabilityName::Full,
                Durability::Process => DurabilityName::Process,
            }),
            metadata: Some(metadata),
            postgres,
            require_binding: Some(config.require_binding),
            quota_bytes: config.quota_bytes.map(ByteCount::new),
            quota_files: config.quota_files,
            reserve_bytes: Some(ByteCount::new(config.reserve_bytes)),
            limits: Some(LimitsTable::from(&config.limits)),
            uploads: Some(UploadsTable::from(config.uploads)),
            events: Some(EventsTable::from(config.events)),
            lifetimes: Some(LifetimesTable::from(config)),
            variants: Some(VariantsTable::from(&config.variants)),
            sync: Some(SyncTable::from(config.sync)),
            scrub: Some(ScrubTable::from(config.scrub)),
            webhooks: Some(WebhooksTable::from(&config.webhooks)),
            signing: Some(SigningTable::from(&config.signing)),
            backup: list(&config.backup_destinations, DestinationTable::from)
                .map(|destinations| BackupTable { destinations: Some(destinations) }),
            local: backend
                .map(|provider| LocalTable { backend: Some(provider.code.as_str().to_owned()) }),
            providers: list(&config.providers, ProviderTable::from),
            ..Self::default()
        }
    }
}

impl From<&PostgresConfig> for PostgresTable {
    fn from(place: &PostgresConfig) -> Self {
        Self {
            password: place.password.as_ref().map(|_| HIDDEN.to_owned()),
            password_file: None,
            schema: Some(place.schema.clone()),
            connections: Some(place.connections),
            only_server: Some(place.only_server),
            server_timeout_secs: secs(place.server_timeout),
        }
    }
}

impl From<&Limits> for LimitsTable {
    fn from(limits: &Limits) -> Self {
        Self {
            max_file_size: Some(ByteCount::new(limits.max_file_size)),
            max_batch_items: Some(limits.max_batch_items),
            max_batch_size: Some(ByteCount::new(limits.max_batch_size)),
            original_name_chars: Some(limits.original_name_chars),
            concurrent_uploads: Some(limits.concurrent_uploads),
            staged_files: Some(limits.staged_files),
            staged_bytes: Some(ByteCount::new(limits.staged_bytes)),
            staged_files_per_organization: Some(limits.staged_files_per_organization),
            staged_bytes_per_organization: Some(ByteCount::new(
                limits.staged_bytes_per_organization,
            )),
            blob_cache_bytes: Some(ByteCount::new(limits.blob_cache_bytes)),
            open_files: Some(limits.open_files),
            write_through_secs: secs(limits.write_through),
        }
    }
}

impl From<ResumableConfig> for UploadsTable {
    fn from(uploads: ResumableConfig) -> Self {
        Self {
            max_size: Some(ByteCount::new(uploads.max_size)),
            lifetime_secs: secs(uploads.lifetime),
            max_age_secs: secs(uploads.max_age),
            max_open: Some(uploads.max_open),
            max_bytes: Some(ByteCount::new(uploads.max_bytes)),
            max_open_per_organization: Some(uploads.max_open_per_organization),
            max_bytes_per_organization: Some(ByteCount::new(uploads.max_bytes_per_organization)),
        }
    }
}

impl From<EventsConfig> for EventsTable {
    fn from(events: EventsConfig) -> Self {
        Self {
            enabled: Some(events.enabled),
            keep_days: Some(days(events.keep)),
            keep_max: Some(events.keep_max),
            ..Self::default()
        }
    }
}

/// Returns the whole days of a duration.
fn days(duration: Duration) -> u32 {
    let days = duration.as_secs() / Duration::from_hours(24).as_secs();
    u32::try_from(days).unwrap_or(u32::MAX)
}

impl From<&StoreConfig> for LifetimesTable {
    fn from(config: &StoreConfig) -> Self {
        Self {
            temp_ttl_secs: secs(config.temp_ttl),
            purge_grace_secs: secs(config.purge_grace),
            blob_grace_secs: secs(config.blob_grace),
            clock_settle_secs: secs(config.clock_settle),
            idempotency_ttl_secs: secs(config.idempotency_ttl),
            presign_ttl_secs: secs(config.presign_ttl),
            receipt_days: Some(days(config.receipt_retention)),
        }
    }
}

impl From<SyncConfig> for SyncTable {
    fn from(sync: SyncConfig) -> Self {
        Self {
            concurrency: Some(sync.concurrency),
            max_attempts: Some(sync.max_attempts),
            first_pause_secs: secs(sync.first_pause),
        }
    }
}

impl From<&WebhookConfig> for WebhooksTable {
    fn from(webhooks: &WebhookConfig) -> Self {
        Self {
            enabled: Some(webhooks.enabled),
            allow_http: Some(webhooks.allow_http),
            allow: Some(webhooks.allow.clone()),
            timeout_secs: secs(webhooks.timeout),
            concurrency: Some(webhooks.concurrency),
            in_flight: Some(webhooks.in_flight),
            disable_after_days: Some(days(webhooks.disable_after)),
            max: Some(webhooks.max),
        }
    }
}

impl From<ScrubConfig> for ScrubTable {
    fn from(scrub: ScrubConfig) -> Self {
        Self {
            period_secs: secs(scrub.period),
            deep: Some(scrub.depth == FsckDepth::Deep),
            bytes_per_second: Some(ByteCount::new(scrub.bytes_per_second.unwrap_or(0))),
            at_providers: Some(scrub.at_providers),
        }
    }
}

impl From<&SigningConfig> for SigningTable {
    fn from(signing: &SigningConfig) -> Self {
        let secret = |secret: &SigningSecret| SecretTable {
            kid: Some(secret.kid().to_owned()),
            secret: Some(HIDDEN.to_owned()),
        };
        Self { window_secs: secs(signing.window), secrets: list(&signing.secrets, secret) }
    }
}

impl From<&VariantConfig> for VariantsTable {
    fn from(variants: &VariantConfig) -> Self {
        Self {
            max_pixels: Some(variants.max_pixels),
            max_side: Some(variants.max_side),
            decode_memory_bytes: Some(ByteCount::new(variants.decode_memory_bytes)),
            queue: Some(variants.queue),
            threads: Some(variants.threads),
            deadline_secs: secs(variants.deadline),
            quality: Some(variants.quality),
            memory_cache_bytes: Some(ByteCount::new(variants.memory_cache_bytes)),
            disk_cache_bytes: Some(ByteCount::new(variants.disk_cache_bytes)),
            intermediate_cache_bytes: Some(ByteCount::new(variants.intermediate_cache_bytes)),
            sheet_cache_bytes: Some(ByteCount::new(variants.sheet_cache_bytes)),
            eager: Some(variants.eager.iter().copied().map(eager_text).collect()),
            animated: Some(variants.animated),
            animated_max_frames: Some(variants.animation.max_frames),
            animated_max_pixels: Some(variants.animation.max_pixels),
            animated_cpu_secs: secs(variants.animation.cpu),
            animated_max_bytes: Some(ByteCount::new(variants.animation.max_bytes)),
            launcher: variants.launcher.clone(),
            converters: list(&variants.converters, ConverterTable::from),
        }
    }
}

impl From<&ConverterConfig> for ConverterTable {
    fn from(converter: &ConverterConfig) -> Self {
        Self {
            types: Some(converter.types.clone()),
            command: Some(converter.command.clone()),
            output: Some(match converter.output {
                ConverterOutput::Png => OutputName::Png,
                ConverterOutput::Jpeg => OutputName::Jpeg,
            }),
            readable: Some(converter.readable.clone()),
            timeout_secs: secs(converter.timeout),
            cpu_secs: secs(converter.cpu),
            memory_bytes: Some(ByteCount::new(converter.memory_bytes)),
            max_input_bytes: Some(ByteCount::new(converter.max_input_bytes)),
            max_output_bytes: Some(ByteCount::new(converter.max_output_bytes)),
            open_files: Some(converter.open_files),
            at_once: Some(converter.at_once),
        }
    }
}

impl From<&BackupDestination> for DestinationTable {
    fn from(destination: &BackupDestination) -> Self {
        let (path, provider) = match &destination.place {
            BackupPlace::Directory(path) => (Some(path.clone()), None),
            BackupPlace::Provider(code) => (None, Some(code.as_str().to_owned())),
        };
        Self { name: Some(destination.name.clone()), path, provider }
    }
}

impl From<&ProviderConfig> for ProviderTable {
    fn from(provider: &ProviderConfig) -> Self {
        let options =
            provider.options.iter().map(|(name, value)| (name.clone(), shown(name, value)));
        let options = options.collect();
        Self {
            code: Some(provider.code.as_str().to_owned()),
            name: Some(provider.name.clone()),
            scheme: Some(provider.scheme.clone()),
            active: Some(provider.is_active),
            timeout_secs: secs(provider.timeout),
            io_timeout_secs: secs(provider.io_timeout),
            retries: Some(u8::try_from(provider.retries).unwrap_or(u8::MAX)),
            concurrency: Some(u16::try_from(provider.concurrency).unwrap_or(u16::MAX)),
            min_read_kib_per_sec: Some(
                u32::try_from(provider.min_read_rate >> 10).unwrap_or(u32::MAX),
            ),
            options: Some(options),
        }
    }
}

/// Hides the text of an option that can be a secret.
fn shown(name: &str, value: &OptionValue) -> OptionInFile {
    match value {
        OptionValue::Boolean(answer) => OptionInFile::Boolean(*answer),
        OptionValue::Integer(number) => OptionInFile::Integer(*number),
        OptionValue::Text(text) if PUBLIC_OPTIONS.contains(&name) => {
            OptionInFile::Text(without_password(&without_user(text)))
        }
        OptionValue::Text(_) => OptionInFile::Text(HIDDEN.to_owned()),
    }
}

/// Hides the user information of a URL, which can be a token.
fn without_user(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1)))
    {
        Some((scheme, place)) => format!("{scheme}://{HIDDEN}@{place}"),
        None => url.to_owned(),
    }
}

/// Parameters of a database address whose values are no secrets.
const PUBLIC_PARAMETERS: [&str; 7] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "keepalives",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
];

/// Hides the password of a URL, and the values of unknown parameters. A password can contain each of the separators, so
/// everything between the name of the user and the last `@` counts as password.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let rest = match rest.rsplit_once('@') {
        Some((user, place)) => {
            let name = user.split_once(':').map(|(name, _)| name);
            name.map_or_else(|| rest.to_owned(), |name| format!("{name}:{HIDDEN}@{place}"))
        }
        None => rest.to_owned(),
    };

    let Some((place, query)) = rest.split_once('?') else { return format!("{scheme}://{rest}") };
    let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, _)) if !PUBLIC_PARAMETERS.contains(&name) => format!("{name}={HIDDEN}"),
        _ => parameter.to_owned(),
    });
    format!("{scheme}://{place}?{}", parameters.collect::<Vec<_>>().join("&"))
}

fn eager_text((size, fit): (VariantSize, Fit)) -> String {
    let fit = match fit {
        Fit::Cover => "cover",
        Fit::Inside => "inside",
    };
    format!("{}/{fit}", size.pixels())
}

/// Converts a list. An empty one is no table of the file.
fn list<'a, T, U>(all: &'a [T], convert: impl Fn(&'a T) -> U) -> Option<Vec<U>> {
    (!all.is_empty()).then(|| all.iter().map(convert).collect())
}

#[expect(clippy::unnecessary_wraps, reason = "every key of a table is optional")]
fn secs(time: Duration) -> Option<Seconds> {
    Some(Seconds::from(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> StoreConfig {
        StoreConfig::from_toml(text, |_| Some("hush".to_owned())).unwrap()
    }

    #[test]
    fn a_printed_configuration_reads_back_as_it_was() {
        let text = r#"
            durability = "process"
            quota_bytes = 7
            metadata = "postgres://u@h/d"
            [postgres]
            only_server = true
            [local]
            backend = "house"
            [limits]
            max_file_size = 5
            [uploads]
            max_size = "5GiB"
            lifetime_secs = "2h"
            max_open = 3
            [scrub]
            deep = false
            bytes_per_second = 0
            [variants]
            eager = ["200", "1000/inside"]
            quality = 62.5
            launcher = "/l"
            [[variants.converters]]
            types = ["video/*"]
            command = ["a", "{input}"]
            output = "jpeg"
            readable = ["/opt"]
            [[providers]]
            code = "house"
            scheme = "s3"
            options.bucket = "b"
            options.assume_role_duration_seconds = 900
            [[backup.destinations]]
            name = "disk"
            path = "/mnt"
            [[backup.destinations]]
            name = "far"
            provider = "house"
        "#;
        for config in [StoreConfig::default(), read(text)] {
            let printed = config.to_toml().unwrap();
            assert_eq!(format!("{:?}", read(&printed)), format!("{config:?}"), "{printed}");
        }
    }

    #[test]
    fn no_secret_is_printed_and_its_key_is() {
        let text = r#"
            metadata = "postgres://u:hu@sh/hush@h:5/d?sslmode=require&password=hush"
            postgres.password = "${P}"
            [[signing.secrets]]
            kid = "a"
            secret = "hush hush hush hush hush hush hush hush"
            [[providers]]
            code = "s3"
            scheme = "s3"
            options.endpoint = "https://u:hush@h"
            options.secret_access_key = "${P}"
            options.anything_new = "hush"
        "#;
        let printed = read(text).to_toml().unwrap();
        assert!(!printed.contains("hush") && !printed.contains("sh/"), "{printed}");
        for line in [
            "metadata = \"postgres://u:***@h:5/d?sslmode=require&password=***\"",
            "password = \"***\"",
            "secret = \"***\"",
            "endpoint = \"https://***@h\"",
            "secret_access_key = \"***\"",
            "anything_new = \"***\"",
        ] {
            assert!(printed.lines().any(|printed| printed == line), "{line} in {printed}");
        }
    }

    #[test]
    fn a_number_beyond_toml_is_an_error() {
        let config = StoreConfig { quota_bytes: Some(u64::MAX), ..StoreConfig::default() };
        assert!(config.to_toml().is_err());
    }
}
