//! Gallery variants: a square WebP of an image, from the cache or made now.

use std::sync::Arc;

use super::{FileStore, Opened};
use crate::api::VariantCacheReport;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::FileId;
use crate::domain::record::FileRecord;
use crate::metadata::Scope;
use crate::variant::{Fit, Variant, VariantKey, VariantSize};

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
    pub async fn variant(&self, record: &Arc<FileRecord>, size: VariantSize, fit: Fit) -> Result<Variant> {
        let key = self.variant_key(record, size, fit);
        let (opener, watcher) = (self.clone(), self.clone());
        let (source_of, current_of) = (Arc::clone(record), Arc::clone(record));
        let source = async move {
            match opener.open_content(&source_of).await? {
                Opened::Local(blob) => Ok(blob.into_file()),
                Opened::Small(_) | Opened::Changed => {
                    Err(Error::new(ErrorKind::Conflict, "the file changed meanwhile"))
                }
            }
        };
        let still_current = move || {
            let (store, record) = (watcher.clone(), Arc::clone(&current_of));
            async move {
                let now = store.inner.metadata.file(record.file_id, &Scope::All).await;
                matches!(now, Ok(Some(now)) if now.blob.sha256 == record.blob.sha256 && !now.state.is_deleted())
            }
        };
        self.inner.variants.get(key, source, still_current).await
    }

    /// Looks a file up and makes its variant, starting over while the file changes.
    pub async fn variant_of(
        &self,
        id: FileId,
        scope: &Scope,
        size: VariantSize,
        fit: Fit,
    ) -> Result<(Arc<FileRecord>, Variant)> {
        let mut tries = 3;
        loop {
            let record = self.record(id, scope).await?;
            match self.variant(&record, size, fit).await {
                Ok(variant) => return Ok((record, variant)),
                Err(error) if error.kind() == ErrorKind::Conflict && tries > 0 => tries -= 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// What the variant cache holds.
    pub async fn variant_cache(&self) -> VariantCacheReport {
        self.inner.variants.report().await.into()
    }

    /// Empties the variant cache.
    pub async fn prune_variants(&self) -> VariantCacheReport {
        self.inner.variants.prune().await.into()
    }
}
