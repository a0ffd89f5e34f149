//! [`Metadata`] in a SQLite database file.
//!
//! # Purpose
//! One file beside the blobs, no server to run. Writes go through one thread that commits in groups
//! (`writer`); reads run on a pool of connections (`pool`) or are answered from memory (`cache`).
//!
//! # Crash safety
//! A write-ahead log with `synchronous = FULL`: an acknowledged commit survives power loss, on a
//! device that honours flush. Nothing has to be repaired at open; SQLite replays the log. With
//! [`Durability::Process`] nothing is flushed, and only a kill of the process is survived.
//!
//! # Errors
//! [`ErrorKind::StorageFull`] and [`ErrorKind::Busy`] mean that nothing of the call was committed.
//! [`ErrorKind::Internal`] from a write does not say whether it was. After an I/O error or
//! corruption every call is [`ErrorKind::Internal`] and [`Metadata::poisoned`] resolves: open again.
//! After [`Metadata::close`] every call is [`ErrorKind::Unusable`].
//!
//! # Compatibility
//! The file carries an application id and a schema version; files of other programs and of newer
//! versions of this one are refused untouched.
//!
//! [`ErrorKind::StorageFull`]: crate::domain::error::ErrorKind::StorageFull
//! [`ErrorKind::Busy`]: crate::domain::error::ErrorKind::Busy
//! [`ErrorKind::Internal`]: crate::domain::error::ErrorKind::Internal
//! [`ErrorKind::Unusable`]: crate::domain::error::ErrorKind::Unusable

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::binding::{Binding, BindingChange, NewBinding};
use crate::domain::clock::Timestamp;
use crate::domain::config::Durability;
use crate::domain::error::Result;
use crate::domain::id::{BlobId, FileId, OrganizationId};
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;

use super::{
    BindingChanged, DueBlob, IdempotencyEntry, InsertFiles, Inserted, ListFilter, Metadata, PurgeBacklog,
    PurgeClaim, Scope, SyncCounts, UpdateFile, Updated,
};

mod connection;
mod schema;
mod fault;
mod writer;
mod pool;
mod cache;
mod row;
mod files;
mod listing;
mod idempotency;
mod bindings;
mod dropped;
mod purge;
mod sync;
#[cfg(test)]
mod tests;

pub use writer::OnFull;

use cache::RecordCache;
use fault::Health;
use pool::Readers;
use writer::Writer;

/// Metadata in a SQLite file. See the module.
pub struct SqliteMetadata {
    readers: Readers,
    writer: Writer,
    cache: Arc<RecordCache>,
    health: Arc<Health>,
}

impl SqliteMetadata {
    /// Opens the database at `path`, creating it if it is not there, in a directory on a local file
    /// system that no other process uses. `on_full` is called when the disk is full, before the
    /// writer tries once more. Blocks; fails with [`ErrorKind::Unusable`] if the file is not ours, is
    /// newer than this program, or is no database.
    ///
    /// [`ErrorKind::Unusable`]: crate::domain::error::ErrorKind::Unusable
    pub fn open(path: &Path, durability: Durability, on_full: Option<OnFull>) -> Result<Self> {
        let connection = connection::open_writer(path, durability)?;
        let cache = Arc::new(RecordCache::new());
        let health = Arc::new(Health::new());
        let readers = Readers::open(path, Arc::clone(&health))?;
        let writer = Writer::start(connection, Arc::clone(&cache), Arc::clone(&health), on_full)?;
        Ok(Self { readers, writer, cache, health })
    }
}

#[async_trait]
impl Metadata for SqliteMetadata {
    async fn file(&self, id: FileId, scope: &Scope) -> Result<Option<Arc<FileRecord>>> {
        self.readers.check()?;
        let in_scope = |record: &Arc<FileRecord>| scope.covers(&record.organization_id);
        if let Some(record) = self.cache.get(id) {
            return Ok(Some(record).filter(in_scope));
        }
        let cache = Arc::clone(&self.cache);
        let read = move |sql: &rusqlite::Connection| {
            let ticket = cache.ticket(id);
            let record = files::by_id(sql, id)?.map(Arc::new);
            if let Some(record) = &record {
                cache.insert(ticket, record);
            }
            Ok(record)
        };
        Ok(self.readers.run("reading a record", read).await?.filter(in_scope))
    }

    fn cached_file(&self, id: FileId, scope: &Scope) -> Option<Arc<FileRecord>> {
        self.readers.check().ok()?;
        self.cache.get(id).filter(|record| scope.covers(&record.organization_id))
    }

    async fn list_files(
        &self,
        filter: &ListFilter,
        scope: &Scope,
        before: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>> {
        let (filter, scope) = (filter.clone(), scope.clone());
        self.readers.run("listing files", move |sql| listing::list(sql, &filter, &scope, before, limit)).await
    }

    async fn live_local_keys(&self, ids: &[BlobId]) -> Result<Vec<BlobKey>> {
        let ids = ids.to_vec();
        self.readers.run("looking up blobs", move |sql| files::live_local_keys(sql, &ids)).await
    }

    async fn insert_files(&self, insert: InsertFiles) -> Result<Inserted> {
        self.writer.run("inserting files", move |tx| files::insert(tx, &insert)).await
    }

    async fn update_file(&self, update: UpdateFile) -> Result<Updated> {
        self.writer.run("changing a file", move |tx| files::update(tx, &update)).await
    }

    async fn idempotency(
        &self,
        organization: &OrganizationId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyEntry>> {
        let (organization, key) = (organization.clone(), key.to_owned());
        self.readers
            .run("looking up a reply", move |sql| idempotency::get(sql, &organization, &key, now))
            .await
    }

    async fn forget_idempotency(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.writer.run("forgetting replies", move |tx| idempotency::forget(tx.sql, now, limit)).await
    }

    async fn stored_bytes(&self, organization: &OrganizationId) -> Result<u64> {
        let organization = organization.clone();
        self.readers.run("reading the usage", move |sql| files::stored_bytes(sql, &organization)).await
    }

    async fn active_binding(&self, organization: i64) -> Result<Option<Binding>> {
        self.readers.run("reading a binding", move |sql| bindings::active(sql, organization)).await
    }

    async fn list_bindings(&self, organization: Option<i64>) -> Result<Vec<Binding>> {
        self.readers.run("listing bindings", move |sql| bindings::list(sql, organization)).await
    }

    async fn create_binding(&self, binding: NewBinding, now: Timestamp) -> Result<BindingChanged> {
        self.writer.run("creating a binding", move |tx| bindings::create(tx.sql, &binding, now)).await
    }

    async fn change_binding(
        &self,
        organization: i64,
        change: BindingChange,
        active_providers: &[ProviderCode],
        now: Timestamp,
    ) -> Result<BindingChanged> {
        let providers = active_providers.to_vec();
        self.writer
            .run("changing a binding", move |tx| {
                bindings::change(tx.sql, organization, &change, &providers, now)
            })
            .await
    }

    async fn expire_temp(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.writer.run("expiring files", move |tx| purge::expire_temp(tx, now, limit)).await
    }

    async fn claim_purges(
        &self,
        owner: &str,
        marked_before: Timestamp,
        now: Timestamp,
        lease_until: Timestamp,
        limit: usize,
    ) -> Result<Vec<PurgeClaim>> {
        let owner = owner.to_owned();
        self.writer
            .run("claiming deleted files", move |tx| {
                purge::claim(tx.sql, &owner, marked_before, now, lease_until, limit)
            })
            .await
    }

    async fn finish_purges(&self, owner: &str, ids: &[FileId]) -> Result<u64> {
        let (owner, ids) = (owner.to_owned(), ids.to_vec());
        self.writer.run("deleting records", move |tx| purge::finish(tx, &owner, &ids)).await
    }

    async fn fail_purge(&self, owner: &str, id: FileId, retry_at: Timestamp) -> Result<()> {
        let owner = owner.to_owned();
        self.writer.run("postponing a purge", move |tx| purge::fail(tx.sql, &owner, id, retry_at)).await
    }

    async fn purge_backlog(&self, marked_before: Timestamp, now: Timestamp) -> Result<PurgeBacklog> {
        self.readers.run("counting deleted files", move |sql| purge::backlog(sql, marked_before, now)).await
    }

    async fn due_blobs(&self, now: Timestamp, limit: usize) -> Result<Vec<DueBlob>> {
        self.readers.run("listing dropped blobs", move |sql| dropped::due(sql, now, limit)).await
    }

    async fn finish_blobs(&self, ids: &[i64]) -> Result<()> {
        let ids = ids.to_vec();
        self.writer.run("forgetting dropped blobs", move |tx| dropped::finish(tx.sql, &ids)).await
    }

    async fn fail_blob(&self, id: i64, retry_at: Timestamp) -> Result<()> {
        self.writer.run("postponing a dropped blob", move |tx| dropped::fail(tx.sql, id, retry_at)).await
    }

    async fn settle_sync(&self, cloud_providers: &[ProviderCode], limit: usize) -> Result<Vec<FileId>> {
        let providers = cloud_providers.to_vec();
        let read = move |sql: &rusqlite::Connection| {
            sync::find(sql, &providers, limit).map(|found| (found, providers))
        };
        let (found, providers) = self.readers.run("looking for files to settle", read).await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        self.writer.run("settling files", move |tx| sync::settle(tx, &found, &providers)).await
    }

    async fn sync_counts(&self) -> Result<SyncCounts> {
        self.readers.run("counting files", sync::counts).await
    }

    async fn clear_leases(&self) -> Result<()> {
        self.writer.run("ending leases", |tx| purge::clear_leases(tx.sql)).await
    }

    async fn ping(&self) -> Result<()> {
        let ask = |sql: &rusqlite::Connection| {
            Ok(sql.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?)
        };
        self.readers.run("asking the database", ask).await
    }

    async fn poisoned(&self) -> String {
        self.health.poisoned().await
    }

    async fn close(&self) {
        self.readers.close();
        self.writer.close().await;
    }
}
