//! Every record, and the bytes that it names.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::bytes::Verdict;
use super::run::{Check, outcome};
use crate::domain::error::Result;
use crate::domain::fsck::{Finding, FindingKind, FindingOutcome};
use crate::domain::path::BlobKey;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::domain::status::Location;
use crate::metadata::{MendLocation, MendedRow, NamedBlob, PurgeClaimed, WalkedFile};

/// Records of a page whose bytes are only looked for.
const QUICK_PAGE: usize = 256;

/// Records of a page whose bytes are read: what is done again after a stop.
const DEEP_PAGE: usize = 16;

/// Objects at providers that are looked at at once.
const AT_ONCE: usize = 8;

impl Check<'_> {
    /// Looks at all records, from where the check stopped.
    pub(super) async fn files(&mut self) -> Result<()> {
        let size = if self.is_deep() { DEEP_PAGE } else { QUICK_PAGE };

        while !self.is_stopped() {
            let page = self.inner().metadata.walk_files(&self.run.cursor, size).await?;
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

    /// Looks at the bytes of records: those on the disk one after the other, those at providers several
    /// at a time.
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

    /// Looks at the lengths of many blobs in one visit to the disk.
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

    /// Tells what is wrong with the bytes of a record, unless the record has changed meanwhile.
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
        if !self.inner().metadata.still_named(&[named]).await?[0] {
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

    /// Moves bytes that are not their record's out of the way of readers.
    async fn set_bytes_aside(&self, key: &BlobKey) -> FindingOutcome {
        let local = self.inner().stores.local();
        let moved = local.quarantine(&self.quarantine(), key).await;
        outcome(moved.map(|place| Some(format!("moved to {}", place?))))
    }

    /// Compares a record's location with that of its provider.
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
            let mended = metadata.mend_location(&NamedBlob::of(record), location).await;
            let text = format!("the location is {expected} now");
            finding.outcome = outcome(mended.map(|is_mended| is_mended.then_some(text)));
        }
        self.note(finding);
        Ok(())
    }

    /// Tells of a row that cannot be read. Returns its record if it could be set right.
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

    /// Keeps the text of a row, and sets the row right or aside.
    async fn mend(&self, file_id: &str) -> Result<Option<String>> {
        let metadata = &self.inner().metadata;
        let Some(text) = metadata.row_text(file_id).await? else { return Ok(None) };
        let local = self.inner().stores.local();
        let kept = local.quarantine_row(&self.quarantine(), text).await?;

        Ok(match metadata.mend_file(file_id).await? {
            MendedRow::Sound => None,
            MendedRow::SetRight(what) => {
                Some(format!("set right: {what}; as it was, it is in {kept}"))
            }
            MendedRow::SetAside => {
                Some(format!("set aside: no purge and no sync meets it; its text is in {kept}"))
            }
        })
    }
}

/// Tells whether other bytes than the record's are there.
fn is_of_bytes(kind: FindingKind) -> bool {
    matches!(kind, FindingKind::WrongSize | FindingKind::WrongDigest)
}
