//! The tables of the file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::units::{ByteCount, Seconds};

/// Defines a table of the file, with its place for error messages. All keys are optional. A test
/// compares `KEYS` with the documentation. `..key` is a known key of another reader.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident $place:literal {
        $($key:ident: $type:ty,)*
        $(..$other:ident,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Default, Deserialize, Serialize)]
            #[serde(deny_unknown_fields, default)]
            pub(super) struct $table {
                $(
                    #[serde(skip_serializing_if = "Option::is_none")]
                    pub(super) $key: Option<$type>,
                )*
                $(
                    #[serde(skip_serializing)]
                    pub(super) $other: IgnoredAny,
                )*
            }
        )*

        /// Every key in every table. The file's documentation must name each key.
        pub const KEYS: &[&str] = &[$($(stringify!($key),)*)*];

        /// The place of each table, and its keys.
        pub(super) const TABLES: &[(&str, &[&str])] = &[
            $(($place, &[$(stringify!($key),)* $(stringify!($other),)*]),)*
        ];
    };
}

tables! {
    /// The whole file. Keys of the server are ignored.
    File "the top of the file, before all tables" {
        durability: DurabilityName,
        metadata: String,
        postgres: PostgresTable,
        require_binding: bool,
        quota_bytes: ByteCount,
        quota_files: u64,
        reserve_bytes: ByteCount,
        limits: LimitsTable,
        uploads: UploadsTable,
        events: EventsTable,
        lifetimes: LifetimesTable,
        variants: VariantsTable,
        sync: SyncTable,
        scrub: ScrubTable,
        webhooks: WebhooksTable,
        signing: SigningTable,
        backup: BackupTable,
        local: LocalTable,
        providers: Vec<ProviderTable>,
        ..listen,
        ..data_dir,
        ..public_url,
        ..trusted_proxies,
        ..allowed_hosts,
        ..auth,
        ..console,
        ..insecure_no_auth,
        ..first_key_hash_file,
        ..check_providers,
        ..http,
        ..tls,
        ..metrics_listen,
        ..audit_log,
        ..cors,
        ..rate_limits,
    }
    /// The table `[postgres]`.
    PostgresTable "[postgres]" {
        password: String,
        password_file: PathBuf,
        schema: String,
        connections: usize,
        only_server: bool,
        server_timeout_secs: Seconds,
    }
    /// The table `[local]`.
    LocalTable "[local]" {
        backend: String,
    }
    /// The table `[limits]`.
    LimitsTable "[limits]" {
        max_file_size: ByteCount,
        max_batch_items: usize,
        max_batch_size: ByteCount,
        original_name_chars: usize,
        concurrent_uploads: usize,
        staged_files: usize,
        staged_bytes: ByteCount,
        staged_files_per_organization: usize,
        staged_bytes_per_organization: ByteCount,
        blob_cache_bytes: ByteCount,
        open_files: usize,
        write_through_secs: Seconds,
    }
    /// The table `[uploads]`: resumable uploads.
    UploadsTable "[uploads]" {
        max_size: ByteCount,
        lifetime_secs: Seconds,
        max_age_secs: Seconds,
        max_open: u64,
        max_bytes: ByteCount,
        max_open_per_organization: u64,
        max_bytes_per_organization: ByteCount,
    }
    /// The table `[events]`.
    EventsTable "[events]" {
        enabled: bool,
        keep_days: u32,
        keep_max: u64,
        ..max_streams,
    }
    /// The table `[webhooks]`.
    WebhooksTable "[webhooks]" {
        enabled: bool,
        allow_http: bool,
        allow: Vec<String>,
        timeout_secs: Seconds,
        concurrency: usize,
        in_flight: usize,
        disable_after_days: u32,
        max: usize,
    }
    /// The table `[lifetimes]`.
    LifetimesTable "[lifetimes]" {
        temp_ttl_secs: Seconds,
        purge_grace_secs: Seconds,
        blob_grace_secs: Seconds,
        clock_settle_secs: Seconds,
        idempotency_ttl_secs: Seconds,
        presign_ttl_secs: Seconds,
        receipt_days: u32,
    }
    /// The table `[variants]`.
    VariantsTable "[variants]" {
        max_pixels: u64,
        max_side: u32,
        decode_memory_bytes: ByteCount,
        queue: usize,
        threads: usize,
        deadline_secs: Seconds,
        quality: f32,
        memory_cache_bytes: ByteCount,
        disk_cache_bytes: ByteCount,
        intermediate_cache_bytes: ByteCount,
        sheet_cache_bytes: ByteCount,
        eager: Vec<String>,
        animated: bool,
        animated_max_frames: u32,
        animated_max_pixels: u64,
        animated_cpu_secs: Seconds,
        animated_max_bytes: ByteCount,
        launcher: PathBuf,
        converters: Vec<ConverterTable>,
    }
    /// One table of `[[variants.converters]]`.
    ConverterTable "[[variants.converters]]" {
        types: Vec<String>,
        command: Vec<String>,
        output: OutputName,
        readable: Vec<PathBuf>,
        timeout_secs: Seconds,
        cpu_secs: Seconds,
        memory_bytes: ByteCount,
        max_input_bytes: ByteCount,
        max_output_bytes: ByteCount,
        open_files: u64,
        at_once: usize,
    }
    /// The table `[sync]`.
    SyncTable "[sync]" {
        concurrency: usize,
        max_attempts: u32,
        first_pause_secs: Seconds,
    }
    /// The table `[scrub]`.
    ScrubTable "[scrub]" {
        period_secs: Seconds,
        deep: bool,
        bytes_per_second: ByteCount,
        at_providers: bool,
    }
    /// The table `[signing]`.
    SigningTable "[signing]" {
        window_secs: Seconds,
        secrets: Vec<SecretTable>,
    }
    /// One table of `[[signing.secrets]]`.
    SecretTable "[[signing.secrets]]" {
        kid: String,
        secret: String,
    }
    /// The table `[backup]`.
    BackupTable "[backup]" {
        destinations: Vec<DestinationTable>,
    }
    /// One table of `[[backup.destinations]]`.
    DestinationTable "[[backup.destinations]]" {
        name: String,
        path: PathBuf,
        provider: String,
    }
    /// One table of `[[providers]]`.
    ProviderTable "[[providers]]" {
        code: String,
        name: String,
        scheme: String,
        active: bool,
        timeout_secs: Seconds,
        io_timeout_secs: Seconds,
        retries: u8,
        concurrency: u16,
        min_read_kib_per_sec: u32,
        options: BTreeMap<String, OptionInFile>,
    }
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OutputName {
    Png,
    Jpeg,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DurabilityName {
    Full,
    Process,
}

/// An option value in the file.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum OptionInFile {
    Boolean(bool),
    Integer(i64),
    Text(String),
}
