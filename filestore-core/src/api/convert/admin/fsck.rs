//! Checks of the store.

use crate::api;
use crate::domain::report::fsck::{
    Finding, FindingKind, FsckDepth, FsckMode, FsckReport, FsckRunning, FsckStatus, FsckSummary,
};
use crate::domain::time::clock::Timestamp;

impl From<Finding> for api::FsckFinding {
    fn from(finding: Finding) -> Self {
        Self {
            outcome: finding.outcome.as_str().to_owned(),
            action: finding.outcome.text().to_owned(),
            kind: finding.kind.to_string(),
            place: finding.place,
            name: finding.name,
            file_id: finding.file_id.map(|id| id.to_string()),
            detail: finding.detail,
        }
    }
}

impl From<FsckReport> for api::FsckReport {
    fn from(report: FsckReport) -> Self {
        let named = |(kind, count): (FindingKind, u64)| (kind.to_string(), count);
        let postponed = report.postponed.iter();

        Self {
            clean: report.is_clean(),
            repair: report.mode == FsckMode::Repair,
            deep: report.depth == FsckDepth::Deep,
            resumed: report.is_resumed,
            started_at: report.started_at.to_string(),
            ended_at: text(report.ended_at),
            checked_files: report.checked_files,
            checked_bytes: report.checked_bytes,
            checked_names: report.checked_names,
            found: report.found,
            postponed: postponed.map(|(code, why)| (code.to_string(), why.clone())).collect(),
            found_by_kind: report.found_by_kind.into_iter().map(named).collect(),
            repaired_by_kind: report.repaired_by_kind.into_iter().map(named).collect(),
            not_looked_at: report.not_looked_at,
            findings: report.findings.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<FsckRunning> for api::FsckRunning {
    fn from(running: FsckRunning) -> Self {
        let FsckRunning { is_scrub, part, checked_files, checked_bytes, checked_names, found } =
            running;
        Self { scrub: is_scrub, part, checked_files, checked_bytes, checked_names, found }
    }
}

impl From<FsckSummary> for api::FsckSummary {
    fn from(summary: FsckSummary) -> Self {
        Self {
            deep: summary.depth == FsckDepth::Deep,
            started_at: summary.started_at.to_string(),
            ended_at: text(summary.ended_at),
            checked_files: summary.checked_files,
            checked_bytes: summary.checked_bytes,
            found: summary.found,
            repaired: summary.repaired,
            postponed: summary.postponed.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<FsckStatus> for api::FsckStatus {
    fn from(status: FsckStatus) -> Self {
        let FsckStatus { running, last, scrub } = status;
        Self {
            running: running.map(Into::into),
            last: last.map(Into::into),
            scrub: scrub.map(Into::into),
        }
    }
}

fn text(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}
