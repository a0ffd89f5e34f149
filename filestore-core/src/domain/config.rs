//! The configuration of the core, with its defaults.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fsck::FsckDepth;
use super::provider::{ProviderCode, ProviderConfig};
use super::signature::SigningSecret;
use super::variant::{Fit, VariantSize};

/// The faults that an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Survives power loss: every acknowledged byte and record is flushed.
    #[default]
    Full,
    /// Survives the end of the process: uploads are not flushed one by one. A power cut may cost the last
    /// seconds, and never the database; files that did not survive are set aside at the next start.
    Process,
}

/// The place of the records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MetadataPlace {
    /// A SQLite database in the data directory.
    #[default]
    Sqlite,
    /// A PostgreSQL database; needs the feature `postgres`.
    Postgres(PostgresConfig),
}

/// A PostgreSQL database that has the records. `Debug` shows neither address nor password.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostgresConfig {
    /// The address: `postgres://USER@HOST:PORT/DATABASE`, with parameters as `sslmode` and `sslrootcert`.
    pub address: String,
    /// The password, if the address has none.
    pub password: Option<String>,
    /// The schema that has the tables; it is made if it is not there.
    pub schema: String,
    /// The most connections at a time.
    pub connections: usize,
    /// `true`: no other server uses the database. A store whose bytes are in a private directory can be
    /// opened only so. While such a server lives no other one may join it.
    pub only_server: bool,
    /// The time after which a server that was not seen is taken for gone, and others end what it left: its
    /// leases, and the objects that it was writing.
    pub server_timeout: Duration,
}

impl PostgresConfig {
    /// Takes an address, with the defaults for the rest.
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

/// The configuration of a store. `Default` has the documented values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The faults that an acknowledged write survives.
    pub durability: Durability,
    /// The place of the records.
    pub metadata: MetadataPlace,
    /// `true`: an upload needs an active binding of its organization.
    pub require_binding: bool,
    /// The lifetime of a TEMP file.
    pub temp_ttl: Duration,
    /// The grace period in which a deleted file can be restored, before the purge claims it.
    pub purge_grace: Duration,
    /// The grace period in which a replaced blob stays readable, for requests that know the old
    /// record.
    pub blob_grace: Duration,
    /// The time for which a wall clock that has leapt forward must be stable before anything is removed
    /// that is due by it.
    pub clock_settle: Duration,
    /// The lifetime of a presigned URL.
    pub presign_ttl: Duration,
    /// Settings of the sync worker.
    pub sync: SyncConfig,
    /// The most bytes one organization may store, all states counted; `None` for no limit.
    pub quota_bytes: Option<u64>,
    /// The most files one organization may store, counted likewise; `None` for no limit.
    pub quota_files: Option<u64>,
    /// The time for which an idempotency key is remembered.
    pub idempotency_ttl: Duration,
    /// The time for which the receipt of a purge is kept.
    pub receipt_retention: Duration,
    /// The space to leave free, in bytes: uploads are refused below it.
    pub reserve_bytes: u64,
    /// Limits of sizes and counts.
    pub limits: Limits,
    /// Settings of the checks in the background.
    pub scrub: ScrubConfig,
    /// Settings of signed URLs.
    pub signing: SigningConfig,
    /// The places for snapshots that callers over the network may name.
    pub backup_destinations: Vec<BackupDestination>,
    /// Settings of the variant engine.
    pub variants: VariantConfig,
    /// The providers besides the data directory.
    pub providers: Vec<ProviderConfig>,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            metadata: MetadataPlace::Sqlite,
            require_binding: false,
            temp_ttl: Duration::from_hours(24),
            purge_grace: Duration::ZERO,
            blob_grace: Duration::from_mins(15),
            clock_settle: Duration::from_hours(1),
            presign_ttl: Duration::from_mins(5),
            sync: SyncConfig::default(),
            scrub: ScrubConfig::default(),
            quota_bytes: None,
            quota_files: None,
            idempotency_ttl: Duration::from_hours(24),
            receipt_retention: Duration::from_hours(90 * 24),
            reserve_bytes: 8 << 20,
            limits: Limits::default(),
            signing: SigningConfig::default(),
            backup_destinations: Vec::new(),
            variants: VariantConfig::default(),
            providers: Vec::new(),
        }
    }
}

/// A place for snapshots, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupDestination {
    /// The name by which callers ask for it.
    pub name: String,
    /// The place.
    pub place: BackupPlace,
}

impl BackupDestination {
    /// Names a directory, or a provider of the configuration.
    pub fn new(name: impl Into<String>, place: impl Into<BackupPlace>) -> Self {
        Self { name: name.into(), place: place.into() }
    }
}

/// A place for snapshots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackupPlace {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A provider of the configuration, which may hold files as well.
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
    /// Makes the place of a directory.
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

/// Limits of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one file.
    pub max_file_size: u64,
    /// Items of one batch.
    pub max_batch_items: usize,
    /// Bytes of one batch.
    pub max_batch_size: u64,
    /// Characters of a given original name.
    pub original_name_chars: usize,
    /// Uploads that may be received in large blocks at once, with up to 1 MiB of memory and an open file
    /// each. More, and slow ones, are received in blocks of 16 KiB.
    pub concurrent_uploads: usize,
    /// Files that may be staged without a commit: being received, or on their way to a provider that
    /// is to have them before the reply. More are refused as busy.
    pub staged_files: usize,
    /// Bytes of such files.
    pub staged_bytes: u64,
    /// Such files of one organization.
    pub staged_files_per_organization: usize,
    /// Bytes of such files of one organization.
    pub staged_bytes_per_organization: u64,
    /// Bytes of small files (64 KiB at most) kept in memory for downloads; 0 for none.
    pub blob_cache_bytes: u64,
    /// Files on the service's own disk that are kept open, because they are asked for most; 0 for none.
    pub open_files: usize,
    /// The time limit of writing an upload to its provider before the reply; a second more for each
    /// 128 KiB.
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

/// Settings of the copies to providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncConfig {
    /// Files copied at the same time, by the sync worker to each provider and by each migration.
    pub concurrency: usize,
    /// The number of failed attempts after which a file is FAILED.
    pub max_attempts: u32,
    /// The pause after the first failed attempt; it doubles with each, up to an hour.
    pub first_pause: Duration,
}

impl Default for SyncConfig {
    fn default() -> Self {
        Self { concurrency: 8, max_attempts: 12, first_pause: Duration::from_secs(1) }
    }
}

/// Settings of the scrub, which looks in the background for what is not as it should be, and changes
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScrubConfig {
    /// The time from the beginning of one scrub to that of the next; zero for none.
    pub period: Duration,
    /// The amount of work.
    pub depth: FsckDepth,
    /// The most bytes that are read in a second; `None` for no limit.
    pub bytes_per_second: Option<u64>,
    /// True to look at what providers hold as well, and not only at the service's own disk.
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

/// Settings of signed URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SigningConfig {
    /// The window to whose end expiries are rounded up. URLs made within one window are equal, and
    /// caches keep what they lead to until it ends.
    pub window: Duration,
    /// Secrets besides those of the data directory. The first one signs; all verify.
    pub secrets: Vec<SigningSecret>,
}

impl Default for SigningConfig {
    fn default() -> Self {
        Self { window: Duration::from_mins(5), secrets: Vec::new() }
    }
}

/// The resources that the variant engine may spend.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct VariantConfig {
    /// Pixels of an image (width × height).
    pub max_pixels: u64,
    /// Pixels of an image's longer side.
    pub max_side: u32,
    /// Bytes that all running decoders together may hold.
    pub decode_memory_bytes: u64,
    /// Requests that may wait for a decoder.
    pub queue: usize,
    /// Threads that decode; `0` for one per processor.
    pub threads: usize,
    /// The time limit of one variant.
    pub deadline: Duration,
    /// WebP quality, 0 to 100.
    pub quality: f32,
    /// Bytes of variants kept in memory.
    pub memory_cache_bytes: u64,
    /// Bytes of variants kept on disk.
    pub disk_cache_bytes: u64,
    /// Bytes of decoded pictures kept in memory, reduced, for further sizes of the same file.
    pub intermediate_cache_bytes: u64,
    /// Commands that make pictures of what is no picture.
    pub converters: Vec<ConverterConfig>,
    /// The program that starts converters: one that calls `filestore_core::variants::launch` first of all.
    pub launcher: Option<PathBuf>,
    /// Bytes of contact sheets kept in memory.
    pub sheet_cache_bytes: u64,
    /// The variants made of a picture in the background when it arrives, before any client asks.
    pub eager: Vec<(VariantSize, Fit)>,
    /// True if animated variants are made for those who ask for them.
    pub animated: bool,
    /// The limits of animated variants, besides those of all.
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

/// The limits of an animated variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnimationLimits {
    /// Frames of an animation.
    pub max_frames: u32,
    /// Pixels of all frames together. Each counts as much as the whole canvas, which is resized for it.
    pub max_pixels: u64,
    /// The processor time of one variant, besides the [`deadline`](VariantConfig::deadline) of all.
    pub cpu: Duration,
    /// Bytes of the variant.
    pub max_bytes: u64,
}

impl AnimationLimits {
    /// The highest value of [`max_bytes`](Self::max_bytes).
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

/// A command that turns files of some media types into a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConverterConfig {
    /// The media types, such as `application/pdf`, or `video/*` for a family.
    pub types: Vec<String>,
    /// The program and its arguments, which no shell reads. `{input}` is the file, `{output}` the
    /// picture to make, `{stem}` that without its extension.
    pub command: Vec<String>,
    /// The format of the picture.
    pub output: ConverterOutput,
    /// Files and directories that the command may read besides the system's and its program.
    pub readable: Vec<PathBuf>,
    /// The time limit of one run.
    pub timeout: Duration,
    /// The processor time of one run, in whole seconds.
    pub cpu: Duration,
    /// Bytes of address space of each of its processes; all together may have twice as many.
    pub memory_bytes: u64,
    /// Bytes of a file that is converted at all.
    pub max_input_bytes: u64,
    /// Bytes that one run may write.
    pub max_output_bytes: u64,
    /// Files that each of its processes may have open.
    pub open_files: u64,
    /// Runs at once.
    pub at_once: usize,
}

/// The format that a converter writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConverterOutput {
    /// `output.png`.
    Png,
    /// `output.jpg`.
    Jpeg,
}

impl ConverterConfig {
    /// Describes a command for files of these media types, with the default limits.
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

    /// Returns true for a media type (without parameters) that the command is for.
    pub fn takes(&self, mime_type: &str) -> bool {
        self.types.iter().any(|taken| match taken.strip_suffix("/*") {
            Some(family) => mime_type.split('/').next() == Some(family),
            None => taken.eq_ignore_ascii_case(mime_type),
        })
    }

    /// Returns the program.
    pub fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }
}
