//! Checks the variant cache for entries of removed files, and for unreadable entries.

use super::run::{Check, outcome};
use crate::domain::error::Result;
use crate::domain::id::FileId;
use crate::domain::report::fsck::{Finding, FindingKind};

/// The number of files in one query. After a stop, this work is repeated.
const PAGE: usize = if cfg!(test) { 2 } else { 500 };

/// The separator of a cache folder and a file in the cursor. Neither contains it.
const SEPARATOR: char = '\n';

impl Check<'_> {
    /// Checks the disk cache page by page, from the position where the check stopped.
    pub(super) async fn variants(&mut self) -> Result<()> {
        let cursor = self.run.cursor.clone();
        // The part of the cache, and the last file of it; no file where all of the part was looked at.
        let (at, after) = cursor.split_once(SEPARATOR).unwrap_or((&cursor, ""));
        for shard in self.inner().pictures.engine.cached_shards().await {
            let is_at = shard == at;
            if shard.as_str() < at || (is_at && after.is_empty()) {
                continue;
            }
            let after = if is_at { after.parse().ok() } else { None };
            self.shard(&shard, after).await?;
            if self.is_stopped() {
                return Ok(());
            }
            self.run.cursor = shard;
        }
        self.part_is_done().await
    }

    /// Checks the files after `after` in a cache folder.
    async fn shard(&mut self, shard: &str, after: Option<FileId>) -> Result<()> {
        let mut files = self.inner().pictures.engine.cached_files(shard.to_owned()).await;
        files.retain(|file| after.is_none_or(|after| *file > after));
        files.sort_unstable();

        for page in files.chunks(PAGE) {
            if self.is_stopped() {
                break;
            }
            self.cached(page).await?;
            self.run.names += page.len() as u64;
            if let Some(last) = page.last() {
                self.run.cursor = format!("{shard}{SEPARATOR}{last}");
            }
            self.save_if_due().await?;
        }
        Ok(())
    }

    async fn cached(&mut self, files: &[FileId]) -> Result<()> {
        let known = self.inner().metadata.inspection().known_files(files).await?;
        for (&file, is_known) in files.iter().zip(known) {
            let detail = if is_known {
                let bad = if self.is_deep() {
                    self.inner().pictures.engine.bad_cached(file).await
                } else {
                    0
                };
                (bad > 0)
                    .then(|| format!("{bad} cached variants cannot be read, and are never served"))
            } else {
                // The purge removes them before the record.
                let is_there = self.inner().pictures.engine.has_cached(file).await;
                is_there.then(|| "cached variants of a file that is gone".to_owned())
            };

            if let Some(detail) = detail {
                self.stale(file, detail).await;
            }
        }
        Ok(())
    }

    /// Reports unneeded entries. A repair deletes them. The cache is the only data that a repair deletes,
    /// because every variant can be made again.
    async fn stale(&mut self, file: FileId, detail: String) {
        let kind = FindingKind::StaleVariant;
        let mut finding = Finding::new(kind, "variants", file.to_string(), detail).of_file(file);
        if self.repairs() {
            let removed = self.inner().pictures.engine.remove_file(file).await;
            let text = "removed: they are made again if a client asks for them";
            finding.outcome = outcome(removed.map(|()| Some(text.to_owned())));
        }
        self.note(finding);
    }
}
