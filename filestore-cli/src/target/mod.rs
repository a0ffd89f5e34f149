//! What a command works on: a running server or a data directory.
//!
//! [`Target`] has one method per command, in the types of the wire contract, so that a command
//! prints the same whichever of the two did the work. [`open()`] chooses.

mod item;
mod range;
mod landing;
mod remote;
mod direct;
mod open;

use std::str::FromStr;

use async_trait::async_trait;
use bytes::Bytes;
use filestore_core::api::{
    AdminProvider, BindingReply, BindingUpdateReply, ChangeReply, CreateBinding, DeleteReply,
    FileRecord, ListReply, MigratePlan, MigrateReport, MigrateStatus, MigrateVerifyReport,
    ProviderCheckReport, ProviderReply, PurgeReport, ReadyReply, SyncReport, SyncStatusReport,
    UpdateBinding, VariantCacheReport,
};
use tokio::sync::watch;

use crate::failure::Result;
use crate::output::Meter;

pub(crate) use item::{Item, Source};
pub(crate) use landing::{Destination, Landing, Overwrite};
pub(crate) use open::{Absent, Opened, open};
pub(crate) use range::ByteRange;

/// Whose a new file is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) organization_id: String,
    pub(crate) sub_system: String,
}

/// A file to upload.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) place: Place,
    pub(crate) item: Item,
    pub(crate) lifetime: Lifetime,
    /// In hex; other bytes are refused.
    pub(crate) sha256: Option<String>,
    pub(crate) idempotency_key: Option<String>,
}

/// How long an uploaded file stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    Lasting,
    Temporary,
}

/// Files to upload together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) place: Place,
    pub(crate) items: Vec<Item>,
    pub(crate) idempotency_key: Option<String>,
}

/// What is to become of a file.
#[derive(Debug)]
pub(crate) enum Change {
    Thumbnail,
    Ready(Option<Item>),
    Replace(Item),
}

/// Which content a change may be made to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IfMatch {
    /// Whatever it is.
    Any,
    /// Only this SHA-256, in hex.
    Sha256(String),
}

impl FromStr for IfMatch {
    type Err = String;

    /// `*`, or a SHA-256 with or without the quotes of an entity tag.
    fn from_str(text: &str) -> Result<Self, String> {
        let hex = text.trim_matches('"');
        match text {
            "*" => Ok(Self::Any),
            _ if hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
                Ok(Self::Sha256(hex.to_ascii_lowercase()))
            }
            _ => Err("it is the sha256 that `filestore info` shows, or *".to_owned()),
        }
    }
}

/// How a picture is fitted into its square.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    Cover,
    Inside,
}

/// A picture made for a square.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) bytes: Bytes,
    pub(crate) mime_type: String,
}

/// Which page of which files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    pub(crate) organization_id: Option<String>,
    pub(crate) sub_system: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) purge_status: Option<String>,
    pub(crate) limit: Option<u32>,
    pub(crate) cursor: Option<String>,
}

/// Whether a purge removes or only counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PurgeMode {
    Remove,
    DryRun,
}

/// Which files a migration moves, and how fast.
#[derive(Debug, Clone)]
pub(crate) struct Migration {
    pub(crate) organization: i64,
    pub(crate) to: String,
    pub(crate) bytes_per_second: Option<u64>,
}

/// True once the user wants an end; what is under way is finished then.
pub(crate) type Stop = watch::Receiver<bool>;

/// Something commands can be carried out on.
///
/// # Contract
/// A file id goes to the target as the user typed it: what is wrong with it is the target's to say.
/// Transfers report to the meter they are given as bytes move. `download` leaves a file that is whole
/// and verified, or none, and says how many bytes it wrote.
#[async_trait]
pub(crate) trait Target: Send + Sync {
    async fn upload(&self, upload: Upload, meter: &Meter) -> Result<FileRecord>;
    async fn batch(&self, batch: Batch, meter: &Meter) -> Result<Vec<FileRecord>>;
    async fn change(
        &self,
        id: &str,
        change: Change,
        if_match: Option<IfMatch>,
        meter: &Meter,
    ) -> Result<ChangeReply>;
    async fn download(
        &self,
        id: &str,
        range: Option<ByteRange>,
        to: &Destination,
        meter: &Meter,
    ) -> Result<u64>;
    async fn variant(&self, id: &str, size: u32, fit: Fit) -> Result<Variant>;
    async fn info(&self, id: &str) -> Result<FileRecord>;
    async fn list(&self, listing: &Listing) -> Result<ListReply>;
    async fn delete(&self, id: &str) -> Result<DeleteReply>;
    async fn restore(&self, id: &str) -> Result<FileRecord>;

    async fn providers(&self) -> Result<Vec<ProviderReply>>;
    async fn all_providers(&self) -> Result<Vec<AdminProvider>>;
    async fn check_provider(&self, code: &str) -> Result<ProviderCheckReport>;
    async fn bindings(&self, organization: Option<i64>) -> Result<Vec<BindingReply>>;
    async fn create_binding(&self, binding: CreateBinding) -> Result<BindingReply>;
    async fn update_binding(&self, update: UpdateBinding) -> Result<BindingUpdateReply>;

    async fn purge(&self, mode: PurgeMode, meter: &Meter) -> Result<PurgeReport>;
    async fn sync(&self, meter: &Meter) -> Result<SyncReport>;
    /// How many files were queued.
    async fn sync_enqueue(&self, organization: i64) -> Result<u64>;
    async fn sync_retry(&self, organization: Option<i64>) -> Result<u64>;
    async fn sync_status(&self) -> Result<SyncStatusReport>;
    async fn migrate_plan(&self, organization: i64, to: &str) -> Result<MigratePlan>;
    async fn migrate_run(
        &self,
        migration: &Migration,
        stop: Stop,
        meter: &Meter,
    ) -> Result<MigrateReport>;
    async fn migrate_status(&self, organization: i64) -> Result<MigrateStatus>;
    async fn migrate_verify(
        &self,
        organization: i64,
        to: &str,
        meter: &Meter,
    ) -> Result<MigrateVerifyReport>;
    async fn variants_status(&self) -> Result<VariantCacheReport>;
    async fn variants_prune(&self) -> Result<VariantCacheReport>;
    /// Fails if the target answers but cannot work.
    async fn health(&self) -> Result<ReadyReply>;

    /// Puts everything down. No other call follows.
    async fn close(&self);
}
