//! The cache of variants: entries of files that are gone, and entries that cannot be read.

use super::run::{Check, outcome};
use crate::domain::error::Result;
use crate::domain::fsck::{Finding, FindingKind};
use crate::domain::id::FileId;

/// Files that are asked for at once.
const PAGE: usize = 500;

impl Check<'_> {
    /// Looks at the cache on the disk, part by part.
    pub(super) async fn variants(&mut self) -> Result<()> {
        let shards = self.inner().variants.cached_shards().await;
        for shard in shards {
            if shard <= self.run.cursor {
                continue;
            }
            if self.is_stopped() {
                return Ok(());
            }

            let files = self.inner().variants.cached_files(shard.clone()).await;
            self.run.names += files.len() as u64;
            for page in files.chunks(PAGE) {
                self.cached(page).await?;
            }
            self.run.cursor = shard;
            self.save_if_due().await?;
        }
        self.part_is_done().await
    }

    async fn cached(&mut self, files: &[FileId]) -> Result<()> {
        let known = self.inner().metadata.known_files(files).await?;
        for (&file, is_known) in files.iter().zip(known) {
            let detail = if is_known {
                let bad =
                    if self.is_deep() { self.inner().variants.bad_cached(file).await } else { 0 };
                (bad > 0)
                    .then(|| format!("{bad} cached variants cannot be read, and are never served"))
            } else {
                // The purge removes them before the record.
                let is_there = self.inner().variants.has_cached(file).await;
                is_there.then(|| "cached variants of a file that is gone".to_owned())
            };

            if let Some(detail) = detail {
                self.stale(file, detail).await;
            }
        }
        Ok(())
    }

    /// Tells of entries that nobody needs. The cache is the one thing that a repair deletes: every
    /// variant is made again when a client asks for it.
    async fn stale(&mut self, file: FileId, detail: String) {
        let kind = FindingKind::StaleVariant;
        let mut finding = Finding::new(kind, "variants", file.to_string(), detail).of_file(file);
        if self.repairs() {
            let removed = self.inner().variants.remove_file(file).await;
            let text = "removed: they are made again if a client asks for them";
            finding.outcome = outcome(removed.map(|()| Some(text.to_owned())));
        }
        self.note(finding);
    }
}
