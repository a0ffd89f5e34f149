//! The part of the metadata that checks of the store ask, and erasures of organizations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::erasure::{LeftInDatabase, Removed};
use crate::domain::error::Result;
use crate::domain::fsck::{Finding, FindingKind, FsckDepth, FsckMode};
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;

/// The questions of a check, in pages: each costs what its page costs, however large the store is,
/// but for totals, which cost what the organization has.
///
/// Nothing here fails at a damaged row. Every change asks again, within its transaction, whether what
/// was found is still so.
#[async_trait]
pub trait Inspection: Send + Sync + 'static {
    /// Walks over all records in the order of their ids, deleted ones included: up to `limit` after
    /// `after`. Damaged ones are shown as such.
    async fn walk_files(&self, after: &str, limit: usize) -> Result<WalkedFiles>;

    /// Tells of each blob whether its file's record, unclaimed by the purge, still names that blob.
    async fn still_named(&self, blobs: &[NamedBlob]) -> Result<Vec<bool>>;

    /// Tells of each file whether there is a record of it, in whatever state.
    async fn known_files(&self, ids: &[FileId]) -> Result<Vec<bool>>;

    /// Finds what refers to each key at `holder`: one answer for each, in the order of the keys.
    async fn referrers(&self, holder: &ProviderCode, keys: &[BlobKey]) -> Result<Vec<Referrer>>;

    /// Hands those of the `keys` at `holder` that nothing refers to over to the dropped blobs, to be
    /// removed from `not_before` on. Tells of each key whether it was.
    async fn adopt_orphans(
        &self,
        holder: &ProviderCode,
        keys: &[BlobKey],
        not_before: Timestamp,
    ) -> Result<Vec<bool>>;

    /// Lists up to `limit` blobs of live records that are noted to be removed as well: as dropped blobs,
    /// or as writes that nobody finished. Reads all such notes.
    async fn doomed_blobs(&self, limit: usize) -> Result<Vec<NamedBlob>>;

    /// Takes the notes back that doom the blob, if its record still names it. Tells if there were any.
    async fn spare_blob(&self, blob: &NamedBlob) -> Result<bool>;

    /// Lists up to `limit` writes noted, or last renewed, before `begun_before`: holder and key.
    async fn old_writes(
        &self,
        begun_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<(ProviderCode, BlobKey)>>;

    /// Sets the location of a file right, if its record still names the blob. Tells if it did.
    async fn mend_location(&self, blob: &NamedBlob, location: MendLocation) -> Result<bool>;

    /// Sets a damaged record right if what is damaged follows from the rest of the row; else no claim
    /// meets the row again.
    async fn mend_file(&self, file_id: &str) -> Result<MendedRow>;

    /// Returns every stored value of a file's row, as a JSON object; `None` if there is no row.
    async fn row_text(&self, file_id: &str) -> Result<Option<String>>;

    /// Lists up to `limit` organizations above `after` that have files or totals, in their order.
    async fn organizations(&self, after: &str, limit: usize) -> Result<Vec<String>>;

    /// Compares the totals of an organization, or those of syncs without one, with its files.
    async fn drifted_totals(&self, organization: Option<&str>) -> Result<Vec<DriftedTotal>>;

    /// Corrects totals by what they have drifted, all or none. Nothing is counted here: a drift stays the
    /// same while files come and go, so one that was found at an earlier instant is right, once.
    async fn correct_totals(&self, drifted: &[DriftedTotal]) -> Result<()>;

    /// Returns the state of a check, as it was last stored.
    async fn check_run(&self, name: CheckName) -> Result<Option<CheckRun>>;

    /// Stores a state in the place of the check's last one, forgetting the findings of that one.
    async fn begin_check(&self, run: &CheckRun) -> Result<()>;

    /// Stores how far a check has come, with what it found since the last call. A finding that is known
    /// already is stored in its latest form, and counts once. Returns the totals of found and repaired.
    async fn save_check(&self, run: &CheckRun, found: Vec<Finding>) -> Result<(u64, u64)>;

    /// Lists the first `limit` findings of a check, the gravest kinds first.
    async fn findings(&self, name: CheckName, limit: usize) -> Result<Vec<Finding>>;

    /// Counts the stored findings of a check by kind: all of them, and those that were repaired.
    async fn count_findings(&self, name: CheckName) -> Result<Vec<(FindingKind, u64, u64)>>;

    /// Makes due at `now` whatever is to be removed of an organization: deleted files, also within their
    /// grace period, and dropped blobs.
    async fn hasten_erasure(&self, organization: &OrganizationId, now: Timestamp) -> Result<()>;

    /// Forgets the bindings, remembered replies and empty totals of an organization; returns how many
    /// bindings and replies there were.
    async fn forget_organization(&self, organization: &OrganizationId) -> Result<Removed>;

    /// Counts what is left of an organization. Reads whole tables, and so counts damaged rows as well.
    async fn left_of(&self, organization: &OrganizationId) -> Result<LeftInDatabase>;
}

/// A page of a walk over all records.
#[derive(Debug, Clone, Default)]
pub struct WalkedFiles {
    /// The records of the page.
    pub files: Vec<WalkedFile>,
    /// The place to go on after; `None` at the end.
    pub next: Option<String>,
}

/// A record as a walk meets it.
#[derive(Debug, Clone)]
pub enum WalkedFile {
    /// A sound one. The purge has claimed it, or not.
    Sound(Box<FileRecord>, PurgeClaimed),
    /// One that cannot be read.
    Damaged {
        /// The text in the place of the id.
        file_id: String,
        /// The reason why it cannot be read.
        reason: String,
    },
}

/// A claim of the purge, from which on bytes may be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeClaimed {
    /// The purge may have removed the bytes.
    Yes,
    /// The bytes have to be there.
    No,
}

/// A blob as a record names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedBlob {
    /// The file.
    pub file_id: FileId,
    /// The holder of the blob.
    pub holder: ProviderCode,
    /// The blob's key.
    pub key: BlobKey,
}

impl NamedBlob {
    /// Returns the blob of `record`.
    pub fn of(record: &FileRecord) -> Self {
        let blob = &record.blob;
        Self { file_id: record.file_id, holder: blob.provider.clone(), key: blob.key.clone() }
    }
}

/// The answer to the question what refers to a key at a holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Referrer {
    /// A record.
    Record,
    /// A dropped blob, which is removed when it is due.
    Dropped,
    /// The note of a write.
    Note,
    /// A record names the same blob under another key, or at another holder.
    Elsewhere {
        /// The file, as its row says.
        file_id: String,
        /// The holder that the record names.
        holder: String,
        /// The key that the record names.
        key: String,
    },
    /// Nothing.
    Nobody,
}

/// The location that a record is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MendLocation {
    /// The service's own disk.
    Local,
    /// The file's provider.
    Cloud,
}

/// The outcome of mending a damaged row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MendedRow {
    /// The row can be read again. Says what was set right.
    SetRight(String),
    /// The row stays as it is, and no claim meets it.
    SetAside,
    /// The row was sound, or is gone.
    Sound,
}

/// A total that is not what its files add up to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftedTotal {
    /// The total.
    pub total: Total,
    /// Files and bytes as stored.
    pub stored: (i64, i64),
    /// Files and bytes as counted at the same instant.
    pub counted: (i64, i64),
}

/// Totals of files and bytes, by name.
#[derive(Debug, Default)]
pub(super) struct Sums(BTreeMap<String, (i64, i64)>);

impl Sums {
    /// Adds files and bytes to a total.
    pub(super) fn add(&mut self, name: String, files: i64, bytes: i64) {
        let sum = self.0.entry(name).or_default();
        sum.0 += files;
        sum.1 += bytes;
    }

    /// Lists the totals that differ; `total` makes them of their names.
    pub(super) fn compare(
        stored: &Self,
        counted: &Self,
        total: impl Fn(&str) -> Total,
    ) -> Vec<DriftedTotal> {
        let parts: BTreeSet<&String> = stored.0.keys().chain(counted.0.keys()).collect();
        let of = |sums: &Self, part| sums.0.get(part).copied().unwrap_or_default();
        let totals = parts.into_iter().map(|part| DriftedTotal {
            total: total(part),
            stored: of(stored, part),
            counted: of(counted, part),
        });
        totals.filter(|total| total.stored != total.counted).collect()
    }
}

/// A total that is kept as files come and go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Total {
    /// The files of an organization at a location.
    Usage {
        /// The organization, as stored.
        organization: String,
        /// The location, as stored.
        location: String,
    },
    /// The files with a sync status. Bytes are not counted.
    Syncs {
        /// The status, as stored.
        status: String,
    },
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage { organization, location } => {
                write!(f, "usage of {organization}, {location}")
            }
            Self::Syncs { status } => write!(f, "files with sync {status}"),
        }
    }
}

/// A check that has a state of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckName {
    /// The check that was asked for last.
    Asked,
    /// The scrub of the background.
    Scrub,
}

impl CheckName {
    /// Returns the stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Scrub => "scrub",
        }
    }
}

/// The state of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRun {
    /// The check.
    pub name: CheckName,
    /// The amount of work.
    pub depth: FsckDepth,
    /// The right to change something.
    pub mode: FsckMode,
    /// The one holder that is looked at.
    pub provider: Option<ProviderCode>,
    /// The instant of the beginning.
    pub started_at: Timestamp,
    /// The instant of the end.
    pub ended_at: Option<Timestamp>,
    /// The part that it is at.
    pub part: String,
    /// The place within that part.
    pub cursor: String,
    /// Records looked at.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Names looked at.
    pub names: u64,
    /// Findings.
    pub found: u64,
    /// Findings that were repaired.
    pub repaired: u64,
    /// Holders that could not be looked at, with the reason.
    pub postponed: Vec<(ProviderCode, String)>,
}
