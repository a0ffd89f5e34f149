//! Checks all names at all holders, and the records that refer to them.

use std::time::Duration;

use super::bytes::length_on_disk;
use super::run::{Check, outcome};
use crate::domain::access::scope::Scope;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::FileRecord;
use crate::domain::provider::ProviderCode;
use crate::domain::report::fsck::{Finding, FindingKind, FindingOutcome};
use crate::metadata::Referrer;
use crate::storage::stores::Holder;
use crate::storage::{Cloud, WalkedName};
use crate::worker::running::lane;

/// The minimum time before the purge removes an orphan at a provider. An administrator can examine it until
/// then.
const ORPHAN_GRACE: Duration = Duration::from_hours(24);

/// The separator of holder and place in the cursor. Neither contains it.
const SEPARATOR: char = '\n';

impl Check<'_> {
    /// Checks the names at all holders, from the position where the check stopped.
    pub(super) async fn blobs(&mut self) -> Result<()> {
        let cursor = self.run.cursor.clone();
        let (at, after) = cursor.split_once(SEPARATOR).unwrap_or_default();

        let mut holders = lane::holders(&self.store);
        holders.sort();
        for holder in holders {
            if holder.as_str() < at || !self.is_wanted(&holder) {
                continue;
            }
            let after = Some(after).filter(|after| holder.as_str() == at && !after.is_empty());
            self.run.cursor = format!("{holder}{SEPARATOR}{}", after.unwrap_or_default());
            self.names_of(&holder, after).await?;
            if self.is_stopped() {
                return Ok(());
            }
        }
        self.part_is_done().await
    }

    async fn names_of(&mut self, holder: &ProviderCode, after: Option<&str>) -> Result<()> {
        let store = self.store.clone();
        match store.inner().stores.holder(holder) {
            Ok(Holder::Disk(_)) => self.names_on_disk(after).await,
            Ok(Holder::Cloud(cloud)) => {
                let looked = self.names_at(&cloud, after).await;
                self.or_postpone(holder, looked)
            }
            Err(error) => self.or_postpone(holder, Err(error)),
        }
    }

    /// Skips a provider that does not answer. Other failures end the check.
    pub(super) fn or_postpone(&mut self, holder: &ProviderCode, looked: Result<()>) -> Result<()> {
        use ErrorKind::{Busy, NotFound, ProviderUnavailable};

        match looked {
            Err(error) if matches!(error.kind(), Busy | NotFound | ProviderUnavailable) => {
                self.postpone(holder, &error);
                Ok(())
            }
            looked => looked,
        }
    }

    async fn names_on_disk(&mut self, after: Option<&str>) -> Result<()> {
        let local = ProviderCode::local();
        let mut walk = self.inner().stores.local().walk(after);

        while let Some((page, rest)) = walk.next().await? {
            self.names(&local, page.names).await?;
            if let Some(day) = page.finished {
                self.run.cursor = format!("{local}{SEPARATOR}{day}");
            }
            self.save_if_due().await?;
            if self.is_stopped() {
                return Ok(());
            }
            walk = rest;
        }
        Ok(())
    }

    async fn names_at(&mut self, cloud: &Cloud, after: Option<&str>) -> Result<()> {
        if !cloud.was_used().await? {
            return Ok(());
        }
        cloud.check_marker().await?;
        let mut listing = cloud.list(after).await?;

        while let Some(names) = listing.page().await? {
            let last = names.last().cloned();
            let walked = names.into_iter().map(|name| match name.parse() {
                Ok(key) => WalkedName::Blob(key),
                Err(_) => WalkedName::Foreign(name),
            });
            self.names(cloud.code(), walked.collect()).await?;

            if let Some(last) = last.filter(|_| cloud.lists_in_order()) {
                self.run.cursor = format!("{}{SEPARATOR}{last}", cloud.code());
            }
            self.save_if_due().await?;
            if self.is_stopped() {
                break;
            }
        }
        Ok(())
    }

    /// Looks up the records that refer to the listed names.
    async fn names(
        &mut self,
        holder: &ProviderCode,
        names: Vec<WalkedName<BlobKey>>,
    ) -> Result<()> {
        self.run.names += names.len() as u64;
        let mut keys = Vec::with_capacity(names.len());
        for name in names {
            match name {
                WalkedName::Blob(key) => keys.push(key),
                WalkedName::Foreign(path) => self.note(foreign(holder, &path)),
            }
        }

        let referrers = self.inner().metadata.inspection().referrers(holder, &keys).await?;
        let mut orphans = Vec::new();
        for (key, referrer) in keys.into_iter().zip(referrers) {
            match referrer {
                Referrer::Record | Referrer::Dropped | Referrer::Note => {}
                // A purge removes bytes first, and their record afterwards.
                _ if !self.is_there(holder, &key).await? => {}
                Referrer::Nobody => orphans.push(key),
                Referrer::Elsewhere { file_id, holder: named_at, key: named } => {
                    let detail = format!("its record names {named} at {named_at}");
                    let mut finding = Finding::new(
                        FindingKind::MisplacedBytes,
                        holder.as_str(),
                        key.as_str(),
                        detail,
                    );
                    finding.file_id = file_id.parse().ok();
                    if self.repairs() && holder.is_local() {
                        finding.outcome = self.misplaced(&finding, &key).await;
                    }
                    self.note(finding);
                }
            }
        }
        self.orphans(holder, orphans).await
    }

    async fn is_there(&self, holder: &ProviderCode, key: &BlobKey) -> Result<bool> {
        let length = match self.inner().stores.holder(holder)? {
            Holder::Disk(disk) => length_on_disk(disk, key).await?,
            Holder::Cloud(cloud) => cloud.length(key).await?,
        };
        Ok(length.is_some())
    }

    /// Reports bytes without a record.
    async fn orphans(&mut self, holder: &ProviderCode, keys: Vec<BlobKey>) -> Result<()> {
        let outcomes = match (self.repairs(), holder.is_local()) {
            _ if keys.is_empty() => return Ok(()),
            (false, _) => vec![FindingOutcome::Shown; keys.len()],
            (true, false) => self.hand_over(holder, &keys).await,
            (true, true) => self.set_orphans_aside(&keys).await?,
        };

        for (key, outcome) in keys.into_iter().zip(outcomes) {
            let detail = "no record, dropped blob or note refers to it";
            let mut finding =
                Finding::new(FindingKind::OrphanBytes, holder.as_str(), key.as_str(), detail);
            finding.outcome = outcome;
            self.note(finding);
        }
        Ok(())
    }

    /// Adds orphans at a provider to the dropped blobs.
    async fn hand_over(&self, holder: &ProviderCode, keys: &[BlobKey]) -> Vec<FindingOutcome> {
        match self.has_damaged_rows().await {
            Ok(false) => {}
            Ok(true) => {
                let text = "left alone: it may belong to a record that is damaged";
                return vec![FindingOutcome::Failed(text.to_owned()); keys.len()];
            }
            Err(error) => return keys.iter().map(|_| outcome(Err(error.clone()))).collect(),
        }

        let inner = self.inner();
        let not_before = inner.now().plus(ORPHAN_GRACE.max(inner.config().blob_grace));
        let text = format!("to be removed by the purge from {not_before} on");

        match inner.metadata.inspection().adopt_orphans(holder, keys, not_before).await {
            Ok(adopted) => {
                let outcomes = adopted.into_iter().map(|is_done| Ok(is_done.then(|| text.clone())));
                outcomes.map(outcome).collect()
            }
            Err(error) => keys.iter().map(|_| outcome(Err(error.clone()))).collect(),
        }
    }

    /// Returns true if the check found damaged records that it could not fix. The damaged part can be the
    /// name of the bytes.
    async fn has_damaged_rows(&self) -> Result<bool> {
        let kind = FindingKind::DamagedRow;
        let is_left = |finding: &Finding| {
            finding.kind == kind && !matches!(finding.outcome, FindingOutcome::Repaired(_))
        };
        if self.unsaved().iter().any(is_left) {
            return Ok(true);
        }
        let counts = self.inner().metadata.inspection().count_findings(self.run.name).await?;
        Ok(counts.iter().any(|(of, found, repaired)| *of == kind && found > repaired))
    }

    /// Moves orphans on the disk to the quarantine, if still no record refers to them.
    async fn set_orphans_aside(&self, keys: &[BlobKey]) -> Result<Vec<FindingOutcome>> {
        let local = self.inner().stores.local();
        let referrers =
            self.inner().metadata.inspection().referrers(&ProviderCode::local(), keys).await?;

        let mut outcomes = Vec::with_capacity(keys.len());
        for (key, referrer) in keys.iter().zip(referrers) {
            let moved = match referrer {
                Referrer::Nobody => local.quarantine(&self.quarantine(), key).await,
                _ => Ok(None),
            };
            outcomes.push(outcome(moved.map(|place| Some(format!("moved to {}", place?)))));
        }
        Ok(outcomes)
    }

    /// Moves a blob under a wrong key to the key in its record, if the bytes are missing there. Otherwise
    /// moves it to the quarantine. A blob with an unreadable record stays.
    async fn misplaced(&self, finding: &Finding, key: &BlobKey) -> FindingOutcome {
        let Some(file) = finding.file_id else { return FindingOutcome::Shown };
        match self.inner().metadata.file(file, &Scope::All).await {
            Ok(Some(record)) => outcome(self.put_in_place(&record, key).await),
            _ => FindingOutcome::Shown,
        }
    }

    async fn put_in_place(&self, record: &FileRecord, key: &BlobKey) -> Result<Option<String>> {
        let (local, blob) = (self.inner().stores.local(), &record.blob);
        let is_missing =
            blob.provider.is_local() && length_on_disk(local, &blob.key).await?.is_none();

        if is_missing {
            let found = self.digest_on_disk(local, key).await?;
            if matches!(found, Some((_, None))) {
                // Told to stop before all of it was read: nothing is known of it.
                return Ok(None);
            }
            if found == Some((blob.size_bytes, Some(blob.sha256)))
                && local.put_back(key, &blob.key).await?
            {
                return Ok(Some(format!("moved to where its record names it, {}", blob.key)));
            }
        }
        let moved = local.quarantine(&self.quarantine(), key).await?;
        Ok(moved.map(|place| format!("moved to {place}")))
    }
}

fn foreign(holder: &ProviderCode, path: &str) -> Finding {
    let detail = "no blob has such a name, and the check keeps the entry";
    Finding::new(FindingKind::ForeignName, holder.as_str(), path, detail)
}
