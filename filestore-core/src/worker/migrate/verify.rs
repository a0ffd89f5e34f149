//! Verifies all bytes of an organization at a provider.

use std::sync::Arc;

use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use super::PAGE;
use crate::FileStore;
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::listing::ListFilter;
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::Status;
use crate::domain::id::{FileId, OrganizationId, OrganizationNumber};
use crate::domain::provider::ProviderCode;
use crate::domain::report::MigrateVerifyReport;
use crate::worker::Progress;
use crate::worker::running::failures::{Audience, Failures};

/// Reads every READY file of the organization at `to`, and compares its digest with the record. Progress
/// counts files and bytes.
pub(crate) async fn verify(
    store: &FileStore,
    organization: OrganizationNumber,
    to: &ProviderCode,
    progress: Arc<dyn Progress>,
) -> Result<MigrateVerifyReport> {
    let organization = OrganizationId::from(organization);
    let holder = store.providers().holder_of_new(to);
    let mut report = MigrateVerifyReport::default();
    let mut failures = Failures::of(Audience::Auditor);

    let held = store.inner().metadata.holdings(&organization).await?;
    let ready = held.iter().filter(|holding| holding.status == Status::Ready);

    progress.accepted();
    progress.start(Some(
        ready.filter(|holding| holding.provider == holder).map(|holding| holding.files).sum(),
    ));

    let filter = ListFilter {
        organization_id: Some(organization),
        status: Some(Status::Ready),
        ..ListFilter::default()
    };

    let mut after = None;
    let mut checks = JoinSet::new();
    loop {
        let metadata = &store.inner().metadata;
        let page = metadata.list_files(&filter, &Scope::All, after.as_ref(), PAGE).await?;

        for record in page.records {
            if record.blob.provider != holder {
                report.elsewhere += 1;
                continue;
            }
            if checks.len() >= store.config().sync.concurrency {
                note(&mut report, &mut failures, checks.join_next().await, &progress)?;
            }
            checks.spawn(check(store.clone(), record, Arc::clone(&progress)));
        }

        after = page.next;
        if after.is_none() {
            break;
        }
    }

    while let Some(checked) = checks.join_next().await {
        note(&mut report, &mut failures, Some(checked), &progress)?;
    }
    (report.failures, report.failed) = failures.into_parts();
    Ok(report)
}

type Checked = (FileId, u64, Result<bool>);

/// Compares the stored bytes of `record` with its digest. Returns true if they match.
async fn check(store: FileStore, record: FileRecord, progress: Arc<dyn Progress>) -> Checked {
    let compare = async {
        let mut bytes = store.inner().blob_bytes(&record.blob).await?;
        let (mut hasher, mut size) = (Sha256::new(), 0);
        while let Some(chunk) = bytes.next().await {
            let chunk = chunk?;
            size += chunk.len() as u64;
            hasher.update(&chunk);
            progress.add_bytes(chunk.len() as u64);
        }

        let sum: [u8; 32] = hasher.finalize().into();
        Ok((size, sum) == (record.blob.size_bytes, record.blob.sha256.0))
    };

    let outcome = match compare.await {
        // Replaced, moved or deleted since it was listed.
        Err(_) | Ok(false) if has_changed(&store, &record).await => Ok(true),
        outcome => outcome,
    };

    (record.file_id, record.blob.size_bytes, outcome)
}

async fn has_changed(store: &FileStore, record: &FileRecord) -> bool {
    let now = store.inner().metadata.file(record.file_id, &Scope::All).await;
    matches!(now, Ok(now) if now.as_ref().is_none_or(|now| now.blob.key != record.blob.key || now.state.is_deleted()))
}

fn note(
    report: &mut MigrateVerifyReport,
    failures: &mut Failures,
    checked: Option<Result<Checked, tokio::task::JoinError>>,
    progress: &Arc<dyn Progress>,
) -> Result<()> {
    let Some(checked) = checked else { return Ok(()) };
    let (file, bytes, outcome) =
        checked.map_err(|lost| Error::internal("verifying a file", lost))?;

    progress.advance(1);
    report.checked_files += 1;
    report.checked_bytes += bytes;

    match outcome {
        Ok(true) => {}
        Ok(false) => {
            let error = Error::new(ErrorKind::Internal, "the stored bytes are damaged");
            failures.note(file, &error);
        }
        Err(error) => failures.note(file, &error),
    }
    Ok(())
}
