//! Compares the counters of files with the files.

use super::run::{Check, outcome};
use crate::domain::error::Result;
use crate::domain::report::fsck::{Finding, FindingKind};
use crate::metadata::DriftedTotal;

/// The number of organizations in a page.
const PAGE: usize = 100;

impl Check<'_> {
    /// Counts each organization's files, from the position where the check stopped, and the files in
    /// each sync status.
    pub(super) async fn totals(&mut self) -> Result<()> {
        loop {
            let page =
                self.inner().metadata.inspection().organizations(&self.run.cursor, PAGE).await?;
            let is_last = page.len() < PAGE;
            for organization in page {
                if self.is_stopped() {
                    return Ok(());
                }
                self.total(Some(&organization)).await?;
                self.run.cursor = organization;
                self.save_if_due().await?;
            }
            if is_last {
                break;
            }
        }
        self.total(None).await?;
        self.part_is_done().await
    }

    async fn total(&mut self, organization: Option<&str>) -> Result<()> {
        let metadata = self.inner().metadata.clone();
        let drifted = metadata.inspection().drifted_totals(organization).await?;
        if drifted.is_empty() {
            return Ok(());
        }

        let repaired = if self.repairs() {
            Some(
                metadata
                    .inspection()
                    .correct_totals(&drifted)
                    .await
                    .map(|()| "corrected by what it had drifted"),
            )
        } else {
            None
        };
        for DriftedTotal { total, stored, counted } in drifted {
            let detail = format!(
                "{} files and {} bytes, counted are {} files and {} bytes",
                stored.0, stored.1, counted.0, counted.1
            );
            let name = total.to_string();
            let mut finding = Finding::new(FindingKind::DriftedTotal, "database", name, detail);
            if let Some(repaired) = &repaired {
                finding.outcome = outcome(repaired.clone().map(|how| Some(how.to_owned())));
            }
            self.note(finding);
        }
        Ok(())
    }
}
