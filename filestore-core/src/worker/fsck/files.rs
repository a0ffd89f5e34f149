//! Checks all records and their bytes.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::bytes::Verdict;
use super::run::{Check, outcome};
use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::Location;
use crate::domain::report::fsck::{Finding, FindingKind, FindingOutcome};
use crate::metadata::{MendLocation, MendedRow, NamedBlob, PurgeClaimed, WalkedFile};

/// The number of records in a page if only the presence of bytes is checked.
const QUICK_PAGE: usize = 256;

/// The number of records in a page if bytes are read. After a stop, this work is repeated.
const DEEP_PAGE: usize = 16;

/// The number of objects at providers that are checked in parallel.
const AT_ONCE: usize = 8;

impl Check<'_> {
    /// Checks all records, from the position where the check stopped.
    pub(super) async fn files(&mut self) -> Result<()> {
        let size = if self.is_deep() { DEEP_PAGE } else { QUICK_PAGE };

        while !self.is_stopped() {
            let page =
                self.inner().metadata.inspection().walk_files(&self.run.cursor, size).await?;
            let count = page.files.len() as u64;
            self.page_of_files(page.files).await?;
            if self.is_stopped() {
                return Ok(());
            }

            self.run.files += count;
            self.progress.advance(count);
            match page.next {
                None => return self.part_is_done().await,
                Some(next) => self.run.cursor = next,
            }
            self.save_if_due().await?;
        }
        Ok(())
    }

    async fn page_of_files(&mut self, page: Vec<WalkedFile>) -> Result<()> {
        let mut sound = Vec::new();
        for file in page {
            match file {
                WalkedFile::Damaged { file_id, reason } => {
                    sound.extend(self.damaged_row(&file_id, reason).await?);
                }
                WalkedFile::Sound(record, claimed) => {
                    self.location(&record).await?;
                    if claimed == PurgeClaimed::No && self.is_wanted(&record.blob.provider) {
                        sound.push(*record);
                    }
                }
            }
        }

        for (record, verdict) in self.verdicts(sound).await? {
            if !matches!(verdict, Verdict::Sound | Verdict::Stopped) {
                self.suspicion(&record, verdict).await?;
            }
        }
        Ok(())
    }

    /// Checks the bytes of records. Bytes on the disk are checked one after the other, and bytes at providers
    /// several at a time.
    async fn verdicts(&self, records: Vec<FileRecord>) -> Result<Vec<(FileRecord, Verdict)>> {
        let (on_disk, at_clouds): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|record| record.blob.provider.is_local());

        let mut verdicts = Vec::new();
        if self.is_deep() {
            for record in on_disk {
                if self.is_stopped() {
                    return Ok(verdicts);
                }
                let verdict = self.look_at(&record).await;
                verdicts.push((record, verdict));
            }
        } else {
            verdicts.extend(self.lengths_on_disk(on_disk).await?);
        }

        let mut at_clouds = at_clouds.into_iter();
        let mut looks = FuturesUnordered::new();
        loop {
            while looks.len() < AT_ONCE
                && let Some(record) = at_clouds.next()
            {
                looks.push(async move {
                    let verdict = self.look_at(&record).await;
                    (record, verdict)
                });
            }
            match looks.next().await {
                Some(verdict) => verdicts.push(verdict),
                None => return Ok(verdicts),
            }
        }
    }

    /// Reads the lengths of many blobs in one disk task.
    async fn lengths_on_disk(
        &self,
        records: Vec<FileRecord>,
    ) -> Result<Vec<(FileRecord, Verdict)>> {
        let keys = records.iter().map(|record| record.blob.key.clone()).collect();
        let lengths = self.inner().stores.local().lengths(keys).await?;

        let verdicts = records.into_iter().zip(lengths).map(|(record, length)| {
            let verdict = match length {
                Err(error) => Verdict::Unreadable(error),
                Ok(None) => Verdict::Missing,
                Ok(Some(length)) if length != record.blob.size_bytes => Verdict::Size(length),
                Ok(Some(_)) => Verdict::Sound,
            };
            (record, verdict)
        });
        Ok(verdicts.collect())
    }

    /// Reports a fault in a record's bytes, unless the record has changed in the meantime.
    async fn suspicion(&mut self, record: &FileRecord, verdict: Verdict) -> Result<()> {
        let holder = &record.blob.provider;
        let (kind, detail) = match verdict {
            Verdict::Unknown(error) => {
                self.postpone(holder, &error);
                return Ok(());
            }
            // An earlier look of the same page may have met silence.
            _ if self.is_postponed(holder) => return Ok(()),
            Verdict::Missing => (FindingKind::MissingBytes, "its bytes are absent".to_owned()),
            Verdict::Size(found) => {
                let recorded = record.blob.size_bytes;
                (FindingKind::WrongSize, format!("{found} bytes, recorded are {recorded}"))
            }
            Verdict::Digest(found) => {
                let recorded = record.blob.sha256.to_hex();
                let detail = format!("digest {}, recorded is {recorded}", found.to_hex());
                (FindingKind::WrongDigest, detail)
            }
            Verdict::Unreadable(error) => (FindingKind::UnreadableBytes, error.chain()),
            Verdict::Sound | Verdict::Stopped => return Ok(()),
        };

        let named = NamedBlob::of(record);
        if !self.inner().metadata.inspection().still_named(&[named]).await?[0] {
            return Ok(());
        }
        let mut finding = Finding::new(kind, holder.as_str(), record.blob.key.as_str(), detail)
            .of_file(record.file_id);
        if self.repairs() && holder.is_local() && is_of_bytes(kind) {
            finding.outcome = self.set_bytes_aside(&record.blob.key).await;
        }
        self.note(finding);
        Ok(())
    }

    /// Moves bytes that do not match their record away from readers.
    async fn set_bytes_aside(&self, key: &BlobKey) -> FindingOutcome {
        let local = self.inner().stores.local();
        let moved = local.quarantine(&self.quarantine(), key).await;
        outcome(moved.map(|place| Some(format!("moved to {}", place?))))
    }

    /// Compares a record's location with its provider's location.
    async fn location(&mut self, record: &FileRecord) -> Result<()> {
        let (found, holder) = (record.state.location(), &record.blob.provider);
        let expected = self.inner().stores.location(holder);
        if found == expected {
            return Ok(());
        }

        let name = format!("file {}", record.file_id);
        let detail = format!("location {found} with the provider {holder}");
        let mut finding = Finding::new(FindingKind::WrongLocation, "database", name, detail)
            .of_file(record.file_id);
        if self.repairs() {
            let location = match expected {
                Location::Local => MendLocation::Local,
                Location::Cloud => MendLocation::Cloud,
            };
            let metadata = &self.inner().metadata;
            let mended =
                metadata.inspection().mend_location(&NamedBlob::of(record), location).await;
            let text = format!("the location is {expected} now");
            finding.outcome = outcome(mended.map(|is_mended| is_mended.then_some(text)));
        }
        self.note(finding);
        Ok(())
    }

    /// Reports an unreadable row. Returns its record if it could be fixed.
    async fn damaged_row(&mut self, file_id: &str, reason: String) -> Result<Option<FileRecord>> {
        let name = format!("file {file_id}");
        let mut finding = Finding::new(FindingKind::DamagedRow, "database", name, reason);
        finding.file_id = file_id.parse().ok();

        let mut mended = None;
        if self.repairs() {
            let repaired = self.mend(file_id).await;
            if repaired.is_ok()
                && let Some(id) = finding.file_id
            {
                mended = self.inner().metadata.file(id, &Scope::All).await.ok().flatten();
            }
            finding.outcome = outcome(repaired);
        }
        self.note(finding);
        Ok(mended.map(Arc::unwrap_or_clone))
    }

    /// Stores the text of a row in the quarantine, and fixes the row or sets it aside.
    async fn mend(&self, file_id: &str) -> Result<Option<String>> {
        let metadata = &self.inner().metadata;
        let Some(text) = metadata.inspection().row_text(file_id).await? else { return Ok(None) };
        let local = self.inner().stores.local();
        let kept = local.quarantine_row(&self.quarantine(), text).await?;

        Ok(match metadata.inspection().mend_file(file_id).await? {
            MendedRow::Sound => None,
            MendedRow::SetRight(what) => {
                Some(format!("set right: {what}. The old record is in {kept}"))
            }
            MendedRow::SetAside => {
                Some(format!("set aside: purges and syncs skip the record. Its text is in {kept}"))
            }
        })
    }
}

/// Returns true for findings about wrong bytes.
fn is_of_bytes(kind: FindingKind) -> bool {
    matches!(kind, FindingKind::WrongSize | FindingKind::WrongDigest)
}
