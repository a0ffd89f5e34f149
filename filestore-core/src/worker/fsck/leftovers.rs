//! Checks leftovers: staged uploads, write intents, live blobs on the removal list, and multipart uploads.

use std::time::Duration;

use futures_util::FutureExt;

use super::run::{Check, outcome};
use crate::domain::error::{ErrorKind, Result};
use crate::domain::id::BlobId;
use crate::domain::report::fsck::{Finding, FindingKind};
use crate::storage::{Cloud, UnfinishedUpload, WalkedName};
use crate::worker::upkeep;
use crate::worker::upkeep::part_uploads::LeftUploads;

/// The age at which an upload, or a write to a provider, counts as abandoned.
const FORGOTTEN: Duration = Duration::from_hours(24);

/// The number of write intents in a page.
const PAGE: usize = 500;

/// The maximum number of pages in a run. A later run checks the rest.
const PAGES: usize = 200;

impl Check<'_> {
    /// Checks for abandoned work. Restarts from the beginning after a stop, because there is little of it.
    pub(super) async fn leftovers(&mut self) -> Result<()> {
        self.staged().await?;
        self.doomed().await?;
        self.notes().await?;
        self.unfinished_uploads().await?;
        self.part_is_done().await
    }

    async fn staged(&mut self) -> Result<()> {
        let mut walk = self.inner().stores.local().walk_staged();
        while let Some((names, rest)) = walk.next().await? {
            self.run.names += names.len() as u64;
            for name in names {
                match name {
                    WalkedName::Blob(id) if self.is_forgotten(id) => self.staged_blob(id).await?,
                    WalkedName::Blob(_) => {}
                    WalkedName::Foreign(name) => {
                        let detail =
                            "no staged upload has such a name, and the check keeps the entry";
                        let kind = FindingKind::ForeignName;
                        self.note(Finding::new(kind, "staging", name, detail));
                    }
                }
            }
            walk = rest;
        }
        Ok(())
    }

    /// Returns true if a staged upload is abandoned. Leftovers of earlier processes were handled when the
    /// store was opened.
    fn is_forgotten(&self, id: BlobId) -> bool {
        id.made_at() < self.inner().now().minus(FORGOTTEN)
    }

    async fn staged_blob(&mut self, id: BlobId) -> Result<()> {
        // A commit that nobody has an answer for may name it yet.
        let known = self.inner().metadata.outcomes_known().now_or_never();
        if !matches!(known, Some(Ok(()))) {
            return Ok(());
        }
        // A record that cannot be read may name it.
        let live = self.inner().metadata.live_local_keys(&[id]).await;
        if !matches!(live, Ok(live) if live.is_empty()) {
            return Ok(());
        }

        // A resumable upload may take days.
        if !matches!(self.inner().metadata.is_of_upload(id).await, Ok(false)) {
            return Ok(());
        }

        let detail = "a staged upload without a record, a day old or more";
        let mut finding =
            Finding::new(FindingKind::LeftoverStaging, "staging", id.to_string(), detail);
        // Where the clock has leapt, no age says anything.
        if self.repairs() && self.store.inner().background.may_remove() {
            let local = self.inner().stores.local();
            let touched_before = self.inner().now().minus(FORGOTTEN);
            let moved = local.quarantine_staged(&self.quarantine(), id, touched_before).await;
            finding.outcome = outcome(moved.map(|place| Some(format!("moved to {}", place?))));
        }
        self.note(finding);
        self.save_if_due().await
    }

    /// Checks for blobs of live records that are also on the removal list.
    async fn doomed(&mut self) -> Result<()> {
        for blob in self.inner().metadata.inspection().doomed_blobs(PAGE).await? {
            let (place, name) = (blob.holder.as_str(), blob.key.as_str());
            let detail = "its record is live, and it is noted to be removed";
            let mut finding =
                Finding::new(FindingKind::DoomedBytes, place, name, detail).of_file(blob.file_id);
            if self.repairs() {
                let spared = self.inner().metadata.inspection().spare_blob(&blob).await;
                let text = "the note is taken back".to_owned();
                finding.outcome = outcome(spared.map(|is_spared| is_spared.then_some(text)));
            }
            self.note(finding);
        }
        Ok(())
    }

    /// Checks for write intents that are not renewed. Upkeep should have ended them.
    async fn notes(&mut self) -> Result<()> {
        let before = self.inner().now().minus(FORGOTTEN);
        for _ in 0..PAGES {
            let page = self.inner().metadata.inspection().old_writes(before, PAGE).await?;
            let is_last = page.len() < PAGE || !self.repairs();
            for (holder, key) in page {
                let detail = "the note of a write, a day old or more";
                let kind = FindingKind::LeftoverNote;
                let mut finding = Finding::new(kind, holder.as_str(), key.as_str(), detail);
                if self.repairs() {
                    let inner = self.inner();
                    let not_before = inner.now().plus(inner.late_write_grace(Some(&holder)));
                    let withdrawn = inner.metadata.withdraw_writes(&[key], not_before).await;
                    let text = format!("to be removed by the purge from {not_before} on");
                    finding.outcome = outcome(withdrawn.map(|()| Some(text)));
                }
                self.note(finding);
            }
            self.save_if_due().await?;
            if is_last || self.is_stopped() {
                break;
            }
        }
        Ok(())
    }

    /// Checks for abandoned multipart uploads. Reports if they cannot be listed.
    async fn unfinished_uploads(&mut self) -> Result<()> {
        let store = self.store.clone();
        let providers = store.inner().stores.providers();
        for provider in providers.all() {
            let Ok(cloud) = providers.cloud(&provider.code).cloned() else { continue };
            if !cloud.may_keep_parts() || !self.is_wanted(cloud.code()) {
                continue;
            }

            let looked = self.uploads_at(&cloud).await;
            if !cloud.lists_uploads() || is_refused(&looked) {
                self.not_looked_at.push(format!(
                    "uploads in parts that are unfinished at {}: give its bucket a lifecycle rule that ends \
                     them after some days",
                    provider.code
                ));
            } else {
                self.or_postpone(cloud.code(), looked)?;
            }
        }
        Ok(())
    }

    async fn uploads_at(&mut self, cloud: &Cloud) -> Result<()> {
        if !cloud.was_used().await? {
            return Ok(());
        }

        cloud.check_marker().await?;
        let mut after = None;
        loop {
            let LeftUploads { uploads, next } =
                upkeep::part_uploads::list(&self.store, cloud, after).await?;
            for upload in uploads {
                self.unfinished_upload(cloud, upload).await?;
            }
            if next.is_none() || self.is_stopped() {
                return Ok(());
            }
            after = next;
        }
    }

    async fn unfinished_upload(&mut self, cloud: &Cloud, upload: UnfinishedUpload) -> Result<()> {
        let detail = format!("begun at {}, and nobody works on it", upload.begun_at);
        let (kind, place) = (FindingKind::UnfinishedUpload, cloud.code().as_str());
        let mut finding = Finding::new(kind, place, upload.name.clone(), detail);

        if self.repairs() && self.store.inner().background.may_remove() {
            let aborted = cloud.abort_upload(upload).await;
            finding.outcome = outcome(aborted.map(|()| Some("aborted".to_owned())));
        }
        self.note(finding);
        self.save_if_due().await
    }
}

/// Returns true if the provider refuses to list its unfinished uploads.
fn is_refused(looked: &Result<()>) -> bool {
    looked.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unusable)
}
