//! Gallery variants: a square WebP of an image, from the cache or made now.

use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

use super::{FileStore, Opened};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::FileId;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::domain::status::Status;
use crate::variant::{CacheReport, Fit, Variant, VariantKey, VariantSize};

/// The answer to whether a blob is still current.
type Asked = Pin<Box<dyn Future<Output = bool> + Send>>;

impl FileStore {
    /// The key of a variant of `record`: what its entity tag is made of.
    pub fn variant_key(&self, record: &FileRecord, size: VariantSize, fit: Fit) -> VariantKey {
        VariantKey {
            organization_id: record.organization_id.clone(),
            file_id: record.file_id,
            sha256: record.blob.sha256,
            size,
            fit,
        }
    }

    /// The variant from memory, if it happens to be there.
    pub fn cached_variant(&self, key: &VariantKey) -> Option<Variant> {
        self.inner.variants.cached(key)
    }

    /// The variant of `record`. For [`Variant::PassThrough`] the caller reads the original.
    ///
    /// `NotAnImage`, `CorruptImage`, `ImageTooLarge` for what cannot be made; `Busy` if the queue is
    /// full; `NotFound` if the file was deleted meanwhile.
    pub async fn variant(
        &self,
        record: &Arc<FileRecord>,
        size: VariantSize,
        fit: Fit,
    ) -> Result<Variant> {
        let key = self.variant_key(record, size, fit);
        self.inner.variants.get(key, self.source_of(record), self.currency_of(record)).await
    }

    /// Opens the blob of `record` when it is awaited.
    fn source_of(
        &self,
        record: &Arc<FileRecord>,
    ) -> impl Future<Output = Result<File>> + Send + use<> {
        let (store, record) = (self.clone(), Arc::clone(record));
        async move {
            match store.open_content(&record).await? {
                Opened::Local(blob) => Ok(blob.into_file()),
                Opened::Remote(bytes) => store.inner.fetch(&record, bytes).await,
                Opened::Small(_) | Opened::Changed => {
                    Err(Error::new(ErrorKind::Conflict, "the file changed meanwhile"))
                }
            }
        }
    }

    /// Says whether the blob of `record` is still its file's, and the file still there.
    fn currency_of(&self, record: &Arc<FileRecord>) -> impl Fn() -> Asked + Send + Sync + use<> {
        let (store, record) = (self.clone(), Arc::clone(record));
        move || {
            let (store, record) = (store.clone(), Arc::clone(&record));
            Box::pin(async move {
                let now = store.inner.metadata.file(record.file_id, &Scope::All).await;
                matches!(now, Ok(Some(now)) if now.blob.sha256 == record.blob.sha256 && !now.state.is_deleted())
            })
        }
    }

    /// Makes the configured variants (`variants.eager`) of a picture that has just arrived, in the
    /// background. TEMP files may never be looked at: theirs are made when they become READY.
    pub(super) fn prepare_variants(&self, record: &FileRecord) {
        let eager = &self.inner.config.variants.eager;
        if eager.is_empty()
            || record.blob.dimensions.is_none()
            || record.state.status() == Status::Temp
        {
            return;
        }
        let record = Arc::new(record.clone());
        let keys = eager.iter().map(|(size, fit)| self.variant_key(&record, *size, *fit)).collect();
        self.inner.variants.prepare(keys, self.source_of(&record), self.currency_of(&record));
    }

    /// Looks a file up and makes its variant, starting over while the file changes.
    pub async fn variant_of(
        &self,
        id: FileId,
        scope: &Scope,
        size: VariantSize,
        fit: Fit,
    ) -> Result<(Arc<FileRecord>, Variant)> {
        self.with_record(id, scope, |record| async move {
            match self.variant(&record, size, fit).await {
                Ok(variant) => Ok(Some((record, variant))),
                Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// What the variant cache holds.
    pub async fn variant_cache(&self) -> CacheReport {
        self.inner.variants.report().await
    }

    /// Empties the variant cache.
    pub async fn prune_variants(&self) -> CacheReport {
        self.inner.variants.prune().await
    }
}
