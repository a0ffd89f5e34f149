//! Metadata in SQLite: the cost of a look-up, a page and an insert, and its growth with the table.
//!
//! `cargo bench -p filestore-core --bench metadata` uses tables of 1,000 records. With
//! `FILESTORE_BENCH_MILLION=1` each reading benchmark runs on 1,000,000 as well; filling that table
//! takes some minutes and 2 GB below `TMPDIR`. The medians should be within a factor of two. What
//! remains of a difference is memory: a small table is all in SQLite's own cache, while from a
//! large one a random look-up, or each record of an old page of one organization, is a page read
//! from the system's.

use std::sync::{Arc, LazyLock};

use divan::Bencher;
use divan::counter::ItemsCount;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use filestore_core::internals::domain::access::scope::Scope;
use filestore_core::internals::domain::config::Durability;
use filestore_core::internals::domain::file::lifecycle::FileState;
use filestore_core::internals::domain::file::listing::{ListFilter, ListPosition};
use filestore_core::internals::domain::file::path::BlobKey;
use filestore_core::internals::domain::file::record::{Blob, FileRecord};
use filestore_core::internals::domain::file::status::{Location, Status};
use filestore_core::internals::domain::id::{BlobId, FileId, OrganizationId, Sha256, SubSystem};
use filestore_core::internals::domain::provider::ProviderCode;
use filestore_core::internals::domain::report::erasure::Era;
use filestore_core::internals::domain::time::clock::Timestamp;
use filestore_core::internals::metadata::sqlite::SqliteMetadata;
use filestore_core::internals::metadata::{
    BindingSeen, EventLog as _, Files as _, InsertFiles, Inserted, Listing as _, LogSwitch,
};

const ORGANIZATIONS: u64 = 20;

/// The organization whose files have custom metadata, and whose listings are asked for by name and the
/// like.
const ASKED_FOR: u64 = 3;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime starts"));

/// Filled tables, kept from benchmark to benchmark; statics are not dropped, so `main` clears it.
static TABLES: Mutex<Vec<Arc<Mutex<Table>>>> = Mutex::new(Vec::new());

fn main() {
    divan::main();
    TABLES.lock().clear();
}

fn sizes() -> Vec<u64> {
    match std::env::var_os("FILESTORE_BENCH_MILLION") {
        Some(_) => vec![1_000, 1_000_000],
        None => vec![1_000],
    }
}

/// A filled table, and its ids in an order that has nothing to do with theirs.
struct Table {
    records: u64,
    ids: Vec<FileId>,
    /// The ids by the number of the record.
    in_order: Vec<FileId>,
    next: usize,
    metadata: Arc<SqliteMetadata>,
    directory: TempDir,
}

impl Table {
    /// Returns the table of that many records, filled on its first use.
    fn of(records: u64) -> Arc<Mutex<Self>> {
        let mut tables = TABLES.lock();
        if let Some(table) = tables.iter().find(|table| table.lock().records == records) {
            return Arc::clone(table);
        }
        let table = Arc::new(Mutex::new(Self::fill(records)));
        tables.push(Arc::clone(&table));
        table
    }

    fn fill(records: u64) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let metadata = open(&directory, Durability::Process);
        let mut ids = Vec::new();
        for batch in 0..records / 1000 {
            let batch: Vec<_> = (batch * 1000..(batch + 1) * 1000).map(record).collect();
            ids.extend(batch.iter().map(|record| record.file_id));
            insert(&metadata, batch);
        }
        let in_order = ids.clone();
        fastrand::Rng::with_seed(7).shuffle(&mut ids);
        Self { records, ids, in_order, next: 0, metadata: Arc::new(metadata), directory }
    }

    /// Returns an id that this handle has not read yet, so that the database answers and not the
    /// cache.
    fn unread(&mut self) -> (Arc<SqliteMetadata>, FileId) {
        if self.next == self.ids.len() {
            self.next = 0;
            self.metadata = Arc::new(open(&self.directory, Durability::Process));
        }
        self.next += 1;
        (Arc::clone(&self.metadata), self.ids[self.next - 1])
    }

    /// Returns a place to go on from, in the newer half, so that a page is full.
    fn place(&self) -> (Arc<SqliteMetadata>, FileId) {
        let middle = FileId::generate(instant(self.records / 2));
        let mut ids = std::iter::repeat_with(|| self.ids[fastrand::usize(..self.ids.len())]);
        let place = ids.find(|id| *id > middle);
        (Arc::clone(&self.metadata), place.expect("half of them are newer"))
    }
}

fn open(directory: &TempDir, durability: Durability) -> SqliteMetadata {
    SqliteMetadata::open(&directory.path().join("metadata.db"), durability, None).expect("opens")
}

fn instant(number: u64) -> Timestamp {
    Timestamp::from_millis(1_795_248_930_000 + i64::try_from(number).expect("small"))
}

fn organization(number: u64) -> OrganizationId {
    (number % ORGANIZATIONS + 1).to_string().parse().expect("an organization id")
}

/// Makes a record; one in ten is TEMP.
fn record(number: u64) -> FileRecord {
    let now = instant(number);
    let organization_id = organization(number);
    let sub_system: SubSystem = "gallery".parse().expect("a sub-system");
    let is_temp = (number / ORGANIZATIONS).is_multiple_of(10);
    let state =
        if is_temp { FileState::uploaded_temp() } else { FileState::uploaded(Location::Local) };

    let key = BlobKey::new(&organization_id, &sub_system, now, BlobId::generate(now));
    let mut blob = Blob::new(ProviderCode::local(), key, 123_456, Sha256([7; 32]), now);
    blob.sniffed_type = Some("image/jpeg".into());

    let id = FileId::generate(now);
    let mut record = FileRecord::new(id, organization_id, sub_system, state, blob);
    record.original_name = format!("photograph number {number}.jpeg");
    record.mime_type = "image/jpeg".into();
    record.ext = "jpeg".into();
    record.expires_at = is_temp.then_some(now);
    if record.organization_id == organization(ASKED_FOR) {
        let album = number / ORGANIZATIONS % 2;
        let metadata = format!(r#"{{"album":"{album}","number":{number}}}"#);
        record.metadata = metadata.parse().expect("an object");
    }
    record
}

fn insert_of(records: Vec<FileRecord>) -> InsertFiles {
    InsertFiles {
        records,
        binding: BindingSeen { organization: None, active: None },
        quota_bytes: None,
        quota_files: None,
        idempotency: None,
        permit: None,
        upload: None,
        era: Era::default(),
    }
}

fn insert(metadata: &SqliteMetadata, records: Vec<FileRecord>) {
    let inserted = RUNTIME.block_on(metadata.insert_files(insert_of(records)));
    assert_eq!(inserted.expect("inserts"), Inserted::Done);
}

#[divan::bench(args = sizes(), sample_count = 2000)]
fn look_up_in_the_database(bencher: Bencher, records: u64) {
    let table = Table::of(records);
    bencher.with_inputs(|| table.lock().unread()).bench_values(|(metadata, id)| {
        let file = RUNTIME.block_on(metadata.file(id, &Scope::All));
        assert!(file.expect("reads").is_some());
    });
}

/// Looks files up that the caller may not see: these take as long as files that do not exist, whether
/// the foreign record is in memory or not.
fn look_up_in_vain(bencher: Bencher, records: u64, id: impl Fn(&mut Table) -> FileId + Sync) {
    let table = Table::of(records);
    let scope = Scope::Organizations(vec![organization(ORGANIZATIONS - 1)]);
    let metadata = Arc::clone(&table.lock().metadata);
    bencher.with_inputs(|| id(&mut table.lock())).bench_values(|id| {
        let file = RUNTIME.block_on(metadata.file(id, &scope));
        assert!(file.expect("reads").is_none());
    });
}

#[divan::bench(args = sizes(), sample_count = 5000)]
fn look_up_of_an_unknown_file(bencher: Bencher, records: u64) {
    look_up_in_vain(bencher, records, |table| {
        FileId::generate(instant(fastrand::u64(..table.records)))
    });
}

#[divan::bench(args = sizes(), sample_count = 5000)]
fn look_up_of_a_foreign_file(bencher: Bencher, records: u64) {
    look_up_in_vain(bencher, records, |table| {
        let foreign = fastrand::u64(..table.records / ORGANIZATIONS) * ORGANIZATIONS;
        table.in_order[usize::try_from(foreign).expect("small")]
    });
}

#[divan::bench(args = sizes(), sample_count = 5000)]
fn look_up_of_a_foreign_file_in_memory(bencher: Bencher, records: u64) {
    let table = Table::of(records);
    let metadata = Arc::clone(&table.lock().metadata);
    let first = table.lock().in_order[0];
    RUNTIME.block_on(metadata.file(first, &Scope::All)).expect("reads").expect("a file");
    look_up_in_vain(bencher, records, move |_| first);
}

#[divan::bench(args = sizes(), sample_count = 2000)]
fn look_up_in_memory(bencher: Bencher, records: u64) {
    let table = Table::of(records);
    let (metadata, id) = table.lock().unread();
    RUNTIME.block_on(metadata.file(id, &Scope::All)).expect("reads");
    bencher.bench(|| metadata.cached_file(id, &Scope::All).expect("in memory"));
}

/// The first page of a filter of one organization.
fn first_page(bencher: Bencher, records: u64, adjust: impl FnOnce(&mut ListFilter)) {
    let mut filter = ListFilter::default();
    filter.organization_id = Some(organization(ASKED_FOR));
    adjust(&mut filter);

    let table = Table::of(records);
    let (metadata, _) = table.lock().place();
    bencher.bench(|| {
        let page = RUNTIME.block_on(metadata.list_files(&filter, &Scope::All, None, 20));
        assert_eq!(page.expect("lists").records.len(), 20);
    });
}

#[divan::bench(args = sizes(), sample_count = 2000)]
fn page_by_name(bencher: Bencher, records: u64) {
    first_page(bencher, records, |filter| {
        filter.name_prefix = Some("photograph number".into());
    });
}

#[divan::bench(args = sizes(), sample_count = 2000)]
fn page_by_type(bencher: Bencher, records: u64) {
    first_page(bencher, records, |filter| filter.mime_type = Some("image/jpeg".into()));
}

#[divan::bench(args = sizes(), sample_count = 2000)]
fn page_by_metadata(bencher: Bencher, records: u64) {
    first_page(bencher, records, |filter| filter.metadata = vec![("album".into(), "1".into())]);
}

#[divan::bench(args = sizes(), sample_count = 2000)]
fn page_of_a_day_long_ago(bencher: Bencher, records: u64) {
    first_page(bencher, records, |filter| filter.created_before = Some(instant(records / 3 * 2)));
}

/// Reads a page of `filter` within `scope`, from somewhere in the newer half.
fn page(bencher: Bencher, records: u64, limit: usize, filter: &ListFilter, scope: &Scope) {
    let table = Table::of(records);
    bencher.with_inputs(|| table.lock().place()).bench_values(|(metadata, file_id)| {
        let before = ListPosition { name: None, file_id, marked_at: None };
        let page = RUNTIME.block_on(metadata.list_files(filter, scope, Some(&before), limit));
        assert_eq!(page.expect("lists").records.len(), limit);
    });
}

#[divan::bench(args = sizes(), sample_count = 2000)]
fn page_of_all(bencher: Bencher, records: u64) {
    page(bencher, records, 100, &ListFilter::default(), &Scope::All);
}

/// The page that a client asks for first.
#[divan::bench(args = sizes(), sample_count = 2000)]
fn newest_page_of_an_organization(bencher: Bencher, records: u64) {
    let mut filter = ListFilter::default();
    filter.organization_id = Some(organization(3));
    let table = Table::of(records);
    let (metadata, _) = table.lock().place();
    bencher.bench(|| {
        let page = RUNTIME.block_on(metadata.list_files(&filter, &Scope::All, None, 20));
        assert_eq!(page.expect("lists").records.len(), 20);
    });
}

#[divan::bench(args = sizes(), sample_count = 2000)]
fn page_of_an_organization(bencher: Bencher, records: u64) {
    let mut filter = ListFilter::default();
    filter.organization_id = Some(organization(3));
    page(bencher, records, 20, &filter, &Scope::All);
}

#[divan::bench(args = sizes(), sample_count = 2000)]
fn page_of_ten_organizations(bencher: Bencher, records: u64) {
    let scope = Scope::Organizations((0..10).map(organization).collect());
    page(bencher, records, 100, &ListFilter::default(), &scope);
}

#[divan::bench(args = sizes(), sample_count = 2000)]
fn page_of_temp_files(bencher: Bencher, records: u64) {
    let mut filter = ListFilter::default();
    filter.status = Some(Status::Temp);
    page(bencher, records, 50, &filter, &Scope::All);
}

/// Inserts durably, `callers` at a time, with the log of events off.
#[divan::bench(args = [1, 32])]
fn insert_durably(bencher: Bencher, callers: u64) {
    insert_at_a_time(bencher, callers, LogSwitch::Off);
}

#[divan::bench(args = [1, 32])]
fn insert_durably_with_events(bencher: Bencher, callers: u64) {
    insert_at_a_time(bencher, callers, LogSwitch::On);
}

fn insert_at_a_time(bencher: Bencher, callers: u64, events: LogSwitch) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let metadata = open(&directory, Durability::Full);
    RUNTIME.block_on(metadata.open_events(events, [7; 32], instant(0))).expect("opens");
    let mut number = 0;
    let records = move || -> Vec<_> {
        number += callers;
        (number..number + callers).map(record).collect()
    };
    bencher.counter(ItemsCount::new(callers)).with_inputs(records).bench_local_values(|records| {
        let inserts =
            records.into_iter().map(|record| metadata.insert_files(insert_of(vec![record])));
        for inserted in RUNTIME.block_on(join_all(inserts)) {
            assert_eq!(inserted.expect("inserts"), Inserted::Done);
        }
    });
}
