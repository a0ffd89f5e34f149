//! The end of a life: with a clock that is hours ahead, so that every grace period and wait is over,
//! nothing may be left but what records name, and what was deleted has its receipt.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use filestore_core::admin::NoProgress;
use filestore_core::receipts::DeletedBy;
use filestore_core::{
    Clock, FileRecord, FileStore, ListRequest, ManualClock, ProviderCode, Result, Scope,
};
use filestore_server::Config;

use crate::child::{ATTIC, configuration};
use crate::content;
use crate::oracle::{Oracle, State};
use crate::receipts::{self, Holders};
use crate::tally::Kind;
use crate::verify::{Findings, files_below};

/// Longer than every grace period, lease and pause; shorter than the life of a TEMP file.
const AHEAD: Duration = Duration::from_hours(3);

/// Times that the background's work is done: a file may be moved by one run and dropped by the next.
const RUNS: usize = 4;

/// Does all that is due in the store of `home`, whose server has stopped, and compares what is left, and the
/// receipts of what `by` has deleted.
pub(crate) async fn check(home: &Path, by: &DeletedBy) -> Findings {
    let mut findings = Findings::default();
    if let Err(error) = compare(home, by, &mut findings).await {
        findings.expect(false, Kind::Broken, || error.chain());
    }
    findings
}

async fn compare(home: &Path, by: &DeletedBy, findings: &mut Findings) -> Result<()> {
    let store = open(home).await?;
    store.admin().sync_retry(None).await?;
    for _ in 0..RUNS {
        store.admin().sync(Arc::new(NoProgress)).await?;
        store.admin().purge(&NoProgress).await?;
        store.admin().upkeep().await?;
    }

    let records = all_records(&store).await?;
    for record in &records {
        let bytes = store.scoped(&Scope::All).read(record.file_id).await;
        let is_whole = bytes.as_ref().is_ok_and(|bytes| content::identify(bytes).is_some());
        let kind = if bytes.is_ok() { Kind::Mixed } else { Kind::NoBytes };
        findings.expect(is_whole, kind, || format!("{record:?}: {:?}", bytes.map(|b| b.len())));
    }

    let local = files_below(&store.data_dir().path().join("blobs"));
    let attic = files_below(&home.join(ATTIC));
    let staged = files_below(&store.data_dir().path().join("staging"));
    let holders = Holders { local: &local, attic: &attic };
    receipts::compare(&store, &log_of(home), by, holders, findings).await?;
    store.close().await;

    compare_names(&keys_at(&records, &ProviderCode::local()), &local, "the disk", findings);
    compare_names(&keys_at(&records, &attic_code()), &attic, "the attic", findings);
    compare_names(&BTreeSet::new(), &staged, "staging", findings);
    Ok(())
}

/// Replays what was begun and acknowledged in `home`.
fn log_of(home: &Path) -> State {
    Oracle::open(home.join("oracle.log")).replay()
}

/// Opens the store of `home` with a clock that is hours ahead.
pub(crate) async fn open(home: &Path) -> Result<FileStore> {
    let mut config = Config::load(configuration(home)).expect("a good configuration").store;
    config.clock_settle = Duration::ZERO;
    let clock = ManualClock::at(Clock::system().now().plus(AHEAD));
    FileStore::builder(home.join("data")).config(config).clock(clock.clock()).open().await
}

fn attic_code() -> ProviderCode {
    ATTIC.parse().expect("a code")
}

fn keys_at(records: &[FileRecord], holder: &ProviderCode) -> BTreeSet<String> {
    let held = records.iter().filter(|record| record.blob.provider == *holder);
    held.map(|record| record.blob.key.as_str().to_owned()).collect()
}

fn compare_names(
    wanted: &BTreeSet<String>,
    found: &BTreeSet<String>,
    at: &str,
    findings: &mut Findings,
) {
    let missing: Vec<_> = wanted.difference(found).collect();
    let orphans: Vec<_> = found.difference(wanted).collect();
    findings.expect(missing.is_empty(), Kind::NoBytes, || format!("at {at}: {missing:?}"));
    findings.expect(orphans.is_empty(), Kind::Orphan, || format!("at {at}: {orphans:?}"));
}

/// Lists all records that are not deleted.
pub(crate) async fn all_records(store: &FileStore) -> Result<Vec<FileRecord>> {
    let mut request = ListRequest::default();
    request.limit = Some(1000);
    let mut records = Vec::new();

    loop {
        let page = store.scoped(&Scope::All).list(&request).await?;
        records.extend(page.items);
        request.cursor = page.next_cursor;
        if request.cursor.is_none() {
            return Ok(records);
        }
    }
}
