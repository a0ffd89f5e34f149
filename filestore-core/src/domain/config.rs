//! The configuration of a store, with its defaults.

mod check;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::access::signature::SigningSecret;
use super::file::variant::{Fit, VariantSize};
use super::provider::{ProviderCode, ProviderConfig};
use super::report::fsck::FsckDepth;
#[cfg(feature = "webhooks")]
use super::webhook::{AllowedHosts, UrlRules};

pub(crate) use self::check::InvalidSetting;

/// The faults that a completed write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Survives power loss. Every byte and record is flushed before the call returns (default).
    #[default]
    Full,
    /// Survives the end of the process. A power cut can lose about the last 30 seconds of uploads,
    /// but never the database. At the next startup, damaged files move to the folder `damaged`.
    Process,
}

/// The database for records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MetadataPlace {
    /// A SQLite database in the data directory (default).
    #[default]
    Sqlite,
    /// A PostgreSQL database. Needs the feature `postgres`.
    Postgres(PostgresConfig),
}

/// A PostgreSQL database for records. `Debug` shows neither address nor password.
///
/// For example, the address `postgres://filestore@db.example.org:5432/filestore?sslmode=require`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostgresConfig {
    /// Address: `postgres://USER@HOST:PORT/DATABASE`, with parameters such as `sslmode` and
    /// `sslrootcert`.
    pub address: String,
    /// Password, if the address has no password.
    pub password: Option<String>,
    /// Schema of the tables (default `filestore`). The store creates a missing schema.
    pub schema: String,
    /// Maximum number of connections (default 16).
    pub connections: usize,
    /// If true, no other server can use the database. Needed if blobs are in a private data
    /// directory. While such a server is running, other servers refuse to start.
    pub only_server: bool,
    /// Time after which other servers take over the work of a server that they no longer see
    /// (default 30 s): its leases and unfinished writes.
    pub server_timeout: Duration,
}

impl PostgresConfig {
    /// Creates the settings for an address, with the defaults for the rest.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            password: None,
            schema: "filestore".to_owned(),
            connections: 16,
            only_server: false,
            server_timeout: Duration::from_secs(30),
        }
    }
}

impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .field("only_server", &self.only_server)
            .field("server_timeout", &self.server_timeout)
            .finish_non_exhaustive()
    }
}

/// The store's configuration. `Default` has the documented values.
///
/// ```
/// use std::time::Duration;
///
/// use filestore_core::StoreConfig;
///
/// let mut config = StoreConfig::default();
/// config.limits.max_file_size = 5 << 20; // 5 MiB
/// config.purge_grace = Duration::from_secs(7 * 86_400); // undo a delete for a week
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The faults that a completed write survives.
    pub durability: Durability,
    /// The database for records.
    pub metadata: MetadataPlace,
    /// If true, an upload needs an active binding of its organization.
    pub require_binding: bool,
    /// `TEMP` file lifetime (default 24 hours).
    pub temp_ttl: Duration,
    /// Time in which you can restore a deleted or expired file (default 24 hours). Then the purge
    /// can remove the file. Exceptions: a run with
    /// [`PurgeWhen::Now`](crate::admin::PurgeWhen::Now), and an erasure.
    pub purge_grace: Duration,
    /// Time in which a replaced blob stays readable, for requests that use the old record (default
    /// 15 minutes).
    pub blob_grace: Duration,
    /// Time for which a clock that jumped forward must be stable, before the purge removes anything
    /// (default 1 hour).
    pub clock_settle: Duration,
    /// Presigned URL lifetime (default 5 minutes).
    pub presign_ttl: Duration,
    /// Sync worker settings.
    pub sync: SyncConfig,
    /// Maximum number of bytes in each organization, in all states. `None` means no limit.
    pub quota_bytes: Option<u64>,
    /// Maximum number of files in each organization, in all states. `None` means no limit.
    pub quota_files: Option<u64>,
    /// Time for which the store remembers an idempotency key (default 24 hours).
    pub idempotency_ttl: Duration,
    /// Time for which the store keeps a purge receipt (default 90 days).
    pub receipt_retention: Duration,
    /// Free disk space that uploads cannot use, in bytes (default 8 MiB).
    pub reserve_bytes: u64,
    /// Limits for sizes and counts.
    pub limits: Limits,
    /// Settings of resumable uploads.
    pub uploads: ResumableConfig,
    /// Settings of the log of events.
    pub events: EventsConfig,
    /// Scrub settings.
    pub scrub: ScrubConfig,
    /// Webhook settings.
    pub webhooks: WebhookConfig,
    /// Signed URL settings.
    pub signing: SigningConfig,
    /// Backup destinations that remote callers can name.
    pub backup_destinations: Vec<BackupDestination>,
    /// Variant engine settings.
    pub variants: VariantConfig,
    /// Providers, in addition to the data directory.
    pub providers: Vec<ProviderConfig>,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            metadata: MetadataPlace::Sqlite,
            require_binding: false,
            temp_ttl: Duration::from_hours(24),
            purge_grace: Duration::from_hours(24),
            blob_grace: Duration::from_mins(15),
            clock_settle: Duration::from_hours(1),
            presign_ttl: Duration::from_mins(5),
            sync: SyncConfig::default(),
            events: EventsConfig::default(),
            scrub: ScrubConfig::default(),
            webhooks: WebhookConfig::default(),
            quota_bytes: None,
            quota_files: None,
            idempotency_ttl: Duration::from_hours(24),
            receipt_retention: Duration::from_hours(90 * 24),
            reserve_bytes: 8 << 20,
            limits: Limits::default(),
            uploads: ResumableConfig::default(),
            signing: SigningConfig::default(),
            backup_destinations: Vec::new(),
            variants: VariantConfig::default(),
            providers: Vec::new(),
        }
    }
}

/// A backup destination with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupDestination {
    /// Name for use in requests.
    pub name: String,
    /// Directory or provider.
    pub place: BackupPlace,
}

impl BackupDestination {
    /// Names a directory, or a configured provider.
    pub fn new(name: impl Into<String>, place: impl Into<BackupPlace>) -> Self {
        Self { name: name.into(), place: place.into() }
    }
}

/// The place where a backup destination stores snapshots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackupPlace {
    /// A local directory.
    Directory(PathBuf),
    /// A configured provider. The provider can also store files.
    Provider(ProviderCode),
}

impl From<PathBuf> for BackupPlace {
    fn from(path: PathBuf) -> Self {
        Self::Directory(path)
    }
}

impl From<&Path> for BackupPlace {
    fn from(path: &Path) -> Self {
        Self::Directory(path.to_owned())
    }
}

impl From<&str> for BackupPlace {
    /// Uses a local directory.
    fn from(path: &str) -> Self {
        Self::Directory(path.into())
    }
}

impl From<ProviderCode> for BackupPlace {
    fn from(code: ProviderCode) -> Self {
        Self::Provider(code)
    }
}

impl fmt::Display for BackupPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "{}", path.display()),
            Self::Provider(code) => write!(f, "the provider {code}"),
        }
    }
}

/// Limits for uploads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum file size, in bytes (default 1 GiB).
    pub max_file_size: u64,
    /// Maximum number of files in a batch (default 100).
    pub max_batch_items: usize,
    /// Maximum batch size, in bytes (default 2 GiB).
    pub max_batch_size: u64,
    /// Maximum file name length, in characters (default 255).
    pub original_name_chars: usize,
    /// Uploads that can use large buffers (two of 256 KiB, default 1024). Further uploads are not
    /// refused: they use 16 KiB.
    pub concurrent_uploads: usize,
    /// Maximum number of staged files: files that are arriving, or on their way to a provider
    /// (default 65,536). If more arrive, uploads return `Busy`. Two batches of maximum size always
    /// fit.
    pub staged_files: usize,
    /// Maximum size of all staged files, in bytes (default 32 GiB).
    pub staged_bytes: u64,
    /// Maximum number of staged files for each organization, or for each sender if the organization
    /// is not known yet. At most half of `staged_files`.
    pub staged_files_per_organization: usize,
    /// Maximum size of staged files for each organization or sender, in bytes. At most half of
    /// `staged_bytes`.
    pub staged_bytes_per_organization: u64,
    /// Memory for small files (up to 64 KiB each), in bytes (default 32 MiB). 0 means none.
    pub blob_cache_bytes: u64,
    /// Number of popular files that stay open (default 256). 0 means none.
    pub open_files: usize,
    /// Time limit for writing an upload to its provider before the reply (default 60 s), plus 1 s
    /// for each 128 KiB.
    pub write_through: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_file_size: 1 << 30,
            max_batch_items: 100,
            max_batch_size: 2 << 30,
            original_name_chars: 255,
            concurrent_uploads: 1024,
            staged_files: 65_536,
            staged_bytes: 32 << 30,
            staged_files_per_organization: 16_384,
            staged_bytes_per_organization: 8 << 30,
            blob_cache_bytes: 32 << 20,
            open_files: 256,
            write_through: Duration::from_mins(1),
        }
    }
}

/// Settings of resumable uploads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResumableConfig {
    /// Maximum file size, in bytes (default 16 GiB).
    pub max_size: u64,
    /// Time after the last received byte, or after the creation, in which an upload can continue (default 24
    /// hours). An ended upload stays visible for the same time.
    pub lifetime: Duration,
    /// Maximum time from the creation of an upload to its end (default 7 days).
    pub max_age: Duration,
    /// Maximum number of open uploads (default 10,000).
    pub max_open: u64,
    /// Maximum size of all open uploads, in bytes: announced or received (default 256 GiB).
    pub max_bytes: u64,
    /// Maximum number of open uploads for each organization (default 1,000).
    pub max_open_per_organization: u64,
    /// Maximum size of the open uploads of an organization, in bytes (default 64 GiB).
    pub max_bytes_per_organization: u64,
}

impl Default for ResumableConfig {
    fn default() -> Self {
        Self {
            max_size: 16 << 30,
            lifetime: Duration::from_hours(24),
            max_age: Duration::from_hours(7 * 24),
            max_open: 10_000,
            max_bytes: 256 << 30,
            max_open_per_organization: 1_000,
            max_bytes_per_organization: 64 << 30,
        }
    }
}

/// Settings of the log of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventsConfig {
    /// If true (default), the store writes an event for each change of a file. If false, the log costs nothing,
    /// and reading it fails with [`EventsOff`](crate::ErrorKind::EventsOff).
    pub enabled: bool,
    /// Time for which an event is kept (default 14 days).
    pub keep: Duration,
    /// Maximum number of events (default 10,000,000). The oldest events are removed first.
    pub keep_max: u64,
}

impl Default for EventsConfig {
    fn default() -> Self {
        Self { enabled: true, keep: Duration::from_hours(14 * 24), keep_max: 10_000_000 }
    }
}

/// Webhook settings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookConfig {
    /// If false, this server sends no events (default true).
    pub enabled: bool,
    /// If true, a webhook's URL can begin with `http://` (default false).
    pub allow_http: bool,
    /// Addresses, ranges and host names that are allowed although they are not public, for example
    /// `10.0.5.0/24` and `hooks.internal`.
    pub allow: Vec<String>,
    /// Time limit for one delivery (default 15 s).
    pub timeout: Duration,
    /// Maximum number of deliveries to one endpoint at the same time (default 8).
    pub concurrency: usize,
    /// Maximum number of deliveries of this server at the same time (default 256). Each webhook without a delivery
    /// under way can begin one more.
    pub in_flight: usize,
    /// Time without an accepted event after which a webhook is disabled (default 5 days).
    pub disable_after: Duration,
    /// Maximum number of webhooks (default 1000).
    pub max: usize,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            allow_http: false,
            allow: Vec::new(),
            timeout: Duration::from_secs(15),
            concurrency: 8,
            in_flight: 256,
            disable_after: Duration::from_hours(5 * 24),
            max: 1000,
        }
    }
}

#[cfg(feature = "webhooks")]
impl WebhookConfig {
    /// Returns the rules for URLs. Entries that mean nothing were refused when the configuration was checked.
    pub(crate) fn rules(&self) -> UrlRules {
        let allowed = AllowedHosts::parse(&self.allow).unwrap_or_default();
        UrlRules { allow_http: self.allow_http, allowed }
    }
}

/// Sync settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncConfig {
    /// Number of files copied at the same time, to each provider and in each migration (default 8).
    pub concurrency: usize,
    /// Number of failed attempts before a file becomes `FAILED` (default 12).
    pub max_attempts: u32,
    /// Pause after the first failed attempt (default 1 s). The pause doubles with each attempt, up
    /// to 1 hour.
    pub first_pause: Duration,
}

impl Default for SyncConfig {
    fn default() -> Self {
        Self { concurrency: 8, max_attempts: 12, first_pause: Duration::from_secs(1) }
    }
}

/// Scrub settings: a check in the background that only reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScrubConfig {
    /// Time from the start of a scrub to the start of the next (default 7 days). Zero means never.
    pub period: Duration,
    /// Check depth.
    pub depth: FsckDepth,
    /// Maximum read rate, in bytes per second (default 8 MiB). `None` means no limit.
    pub bytes_per_second: Option<u64>,
    /// If true, the scrub also checks blobs at providers (default false).
    pub at_providers: bool,
}

impl Default for ScrubConfig {
    fn default() -> Self {
        Self {
            period: Duration::from_hours(24 * 7),
            depth: FsckDepth::Deep,
            bytes_per_second: Some(8 << 20),
            at_providers: false,
        }
    }
}

/// Signed URL settings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SigningConfig {
    /// Window size (default 5 minutes). Expiry times are rounded up to the end of a window. All
    /// URLs for the same request within a window are equal, so caches can keep the reply until the
    /// window ends.
    pub window: Duration,
    /// Configured secrets. The first secret signs, and all secrets verify. Without a configured
    /// secret, the store creates a secret.
    pub secrets: Vec<SigningSecret>,
}

impl Default for SigningConfig {
    fn default() -> Self {
        Self { window: Duration::from_mins(5), secrets: Vec::new() }
    }
}

/// Resources for the variant engine.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct VariantConfig {
    /// Maximum number of pixels in an image, width × height (default 50 million).
    pub max_pixels: u64,
    /// Maximum length of the longer side, in pixels (default 16,384).
    pub max_side: u32,
    /// Memory for all running decoders together, in bytes (default 512 MiB).
    pub decode_memory_bytes: u64,
    /// Number of requests that can wait for a decoder (default 64).
    pub queue: usize,
    /// Number of decoder threads. 0 (default) means one for each processor.
    pub threads: usize,
    /// Time limit for one variant (default 15 s).
    pub deadline: Duration,
    /// WebP quality, 0 to 100 (default 80).
    pub quality: f32,
    /// Memory for variants, in bytes (default 64 MiB).
    pub memory_cache_bytes: u64,
    /// Disk space for variants, in bytes (default 10 GiB).
    pub disk_cache_bytes: u64,
    /// Memory for decoded pictures, in bytes (default 32 MiB). A decoded picture makes further
    /// sizes of the same file faster.
    pub intermediate_cache_bytes: u64,
    /// Commands that make images from other file types.
    pub converters: Vec<ConverterConfig>,
    /// Program that starts converters. The `main` of this program must call
    /// `filestore_core::variants::launch` first.
    pub launcher: Option<PathBuf>,
    /// Memory for contact sheets, in bytes (default 16 MiB).
    pub sheet_cache_bytes: u64,
    /// Variants to make in the background when an image arrives.
    pub eager: Vec<(VariantSize, Fit)>,
    /// If true, callers can request animated variants (default false).
    pub animated: bool,
    /// Additional limits for animated variants.
    pub animation: AnimationLimits,
}

impl Default for VariantConfig {
    fn default() -> Self {
        Self {
            max_pixels: 50_000_000,
            max_side: 16_384,
            decode_memory_bytes: 512 << 20,
            queue: 64,
            threads: 0,
            deadline: Duration::from_secs(15),
            quality: 80.0,
            memory_cache_bytes: 64 << 20,
            disk_cache_bytes: 10 << 30,
            intermediate_cache_bytes: 32 << 20,
            converters: Vec::new(),
            launcher: None,
            sheet_cache_bytes: 16 << 20,
            eager: Vec::new(),
            animated: false,
            animation: AnimationLimits::default(),
        }
    }
}

/// Limits for an animated variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnimationLimits {
    /// Maximum number of frames (default 1000).
    pub max_frames: u32,
    /// Maximum number of pixels of all frames together (default 500 million). Each frame counts as
    /// the whole canvas, because the whole canvas is resized for it.
    pub max_pixels: u64,
    /// Processor time for one variant (default 10 s), in addition to the
    /// [`deadline`](VariantConfig::deadline).
    pub cpu: Duration,
    /// Maximum variant size, in bytes (default 16 MiB).
    pub max_bytes: u64,
}

impl AnimationLimits {
    /// The largest possible value of [`max_bytes`](Self::max_bytes): 64 MiB.
    pub const MOST_BYTES: u64 = 64 << 20;
}

impl Default for AnimationLimits {
    fn default() -> Self {
        Self {
            max_frames: 1000,
            max_pixels: 500_000_000,
            cpu: Duration::from_secs(10),
            max_bytes: 16 << 20,
        }
    }
}

/// A command that makes an image from other file types, for example from a PDF.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConverterConfig {
    /// Media types, for example `application/pdf`, or `video/*` for a family.
    pub types: Vec<String>,
    /// Program and arguments. No shell reads them. `{input}` is the file, `{output}` is the image
    /// to write, and `{stem}` is the image path without extension.
    pub command: Vec<String>,
    /// Image format that the command writes.
    pub output: ConverterOutput,
    /// Additional files and directories that the command can read.
    pub readable: Vec<PathBuf>,
    /// Time limit for one run (default 20 s).
    pub timeout: Duration,
    /// Processor time for one run, in whole seconds (default 20 s).
    pub cpu: Duration,
    /// Address space of each process, in bytes (default 2 GiB). All processes together can use
    /// twice as much.
    pub memory_bytes: u64,
    /// Maximum size of a file to convert, in bytes (default 512 MiB).
    pub max_input_bytes: u64,
    /// Number of bytes that one run can write (default 256 MiB).
    pub max_output_bytes: u64,
    /// Number of files that each process can open (default 64).
    pub open_files: u64,
    /// Number of runs at the same time (default 2).
    pub at_once: usize,
}

/// The image format that a converter writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConverterOutput {
    /// `output.png`.
    Png,
    /// `output.jpg`.
    Jpeg,
}

impl ConverterConfig {
    /// Describes a command for files of these media types, with default limits.
    pub fn new(
        types: impl IntoIterator<Item = impl Into<String>>,
        command: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            types: types.into_iter().map(Into::into).collect(),
            command: command.into_iter().map(Into::into).collect(),
            output: ConverterOutput::Png,
            readable: Vec::new(),
            timeout: Duration::from_secs(20),
            cpu: Duration::from_secs(20),
            memory_bytes: 2 << 30,
            max_input_bytes: 512 << 20,
            max_output_bytes: 256 << 20,
            open_files: 64,
            at_once: 2,
        }
    }

    /// Tests whether the command accepts a media type. The media type has no parameters.
    pub fn takes(&self, mime_type: &str) -> bool {
        self.types.iter().any(|taken| match taken.strip_suffix("/*") {
            Some(family) => {
                mime_type.split('/').next().is_some_and(|kind| kind.eq_ignore_ascii_case(family))
            }
            None => taken.eq_ignore_ascii_case(mime_type),
        })
    }

    /// Returns the program.
    pub fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }
}
