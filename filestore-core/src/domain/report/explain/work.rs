//! The facts from which an explanation is made.

use super::Reader;
use crate::domain::config::StoreConfig;
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::Location;
use crate::domain::provider::binding::Binding;
use crate::domain::provider::health::ProviderHealth;
use crate::domain::provider::{Provider, ProviderCode};
use crate::domain::report::receipt::DeletedBy;
use crate::domain::time::clock::Timestamp;

/// A file's record and the work that waits for it, from one snapshot of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWork {
    /// The record.
    pub record: FileRecord,
    /// The caller that deleted the file. `None` if the file is not deleted, or was deleted by an
    /// older version.
    pub deleted_by: Option<DeletedBy>,
    /// PENDING: the earliest time of the next copy. SYNCING: the end of the claim's lease.
    pub sync_not_before: Timestamp,
    /// The purge of the file.
    pub purge: PurgeWork,
    /// Replaced blobs of the file that are not confirmed absent, by provider.
    pub replaced: Vec<ReplacedBlobs>,
    /// Objects of the file that are being written to providers.
    pub writes: Vec<UnfinishedWrite>,
    /// End of the last hold that protects the file from the purge.
    pub held_until: Option<Timestamp>,
    /// End of the last hold that protects replaced blobs.
    pub replaced_held_until: Option<Timestamp>,
    /// The active binding of the organization.
    pub binding: Option<Binding>,
}

/// The state of a file's purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgeWork {
    /// True once a purge has claimed the file.
    pub is_claimed: bool,
    /// True while a run owns the claim.
    pub is_leased: bool,
    /// The end of the lease, or the earliest time of the next attempt.
    pub not_before: Timestamp,
    /// Number of failed attempts.
    pub attempts: u32,
}

/// Replaced blobs of one file at one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedBlobs {
    /// Provider that stores the blobs.
    pub provider: ProviderCode,
    /// Number of blobs.
    pub count: u64,
    /// Earliest time at which the first of them can be removed.
    pub first_due_at: Timestamp,
    /// Largest number of failed removals of one blob.
    pub attempts: u32,
}

impl ReplacedBlobs {
    /// Adds a blob to the group of its provider.
    pub(crate) fn add_to(
        all: &mut Vec<Self>,
        provider: ProviderCode,
        due_at: Timestamp,
        attempts: u32,
    ) {
        match all.iter_mut().find(|group| group.provider == provider) {
            Some(group) => {
                group.count += 1;
                group.first_due_at = group.first_due_at.min(due_at);
                group.attempts = group.attempts.max(attempts);
            }
            None => all.push(Self { provider, count: 1, first_due_at: due_at, attempts }),
        }
    }
}

/// An object that is being written to a provider, and has no record yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedWrite {
    /// Provider of the object.
    pub provider: ProviderCode,
    /// Start of the write, or its last renewal.
    pub begun_at: Timestamp,
}

/// The state of the store, for the explanation of one file.
#[derive(Debug, Clone)]
pub struct Circumstances<'c> {
    /// Current time of the store's clock.
    pub now: Timestamp,
    /// Configuration.
    pub config: &'c StoreConfig,
    /// All configured providers, `LOCAL` included.
    pub providers: &'c [KnownProvider],
    /// Target of the organization's running migration.
    pub migration: Option<ProviderCode>,
    /// True if the store trusts its clock, and removes due files.
    pub may_remove: bool,
    /// The reader of the explanation.
    pub reader: Reader,
}

/// A configured provider, with its health as this process knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownProvider {
    /// The provider.
    pub provider: Provider,
    /// Its health. `None` for `LOCAL`.
    pub health: Option<ProviderHealth>,
}

impl Circumstances<'_> {
    /// Returns the provider with this code. `None` if it is not configured.
    pub(super) fn provider(&self, code: &ProviderCode) -> Option<&KnownProvider> {
        self.providers.iter().find(|known| known.provider.code == *code)
    }

    /// Tests whether the provider is the backend of `LOCAL`.
    pub(super) fn is_backend(&self, code: &ProviderCode) -> bool {
        let location = self.provider(code).map(|known| known.provider.location);
        !code.is_local() && location == Some(Location::Local)
    }

    /// Returns the code that the reader sees: `LOCAL` instead of the backend, unless the reader is
    /// the operator.
    pub(super) fn shown(&self, code: &ProviderCode) -> ProviderCode {
        match self.reader {
            Reader::Organization if self.is_backend(code) => ProviderCode::local(),
            Reader::Organization | Reader::Operator => code.clone(),
        }
    }
}
