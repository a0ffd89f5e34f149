//! The promises that must hold after every start.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use filestore_workspace::sha256_hex;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::child::Child;
use crate::content::{self, Tag};
use crate::events;
use crate::load;
use crate::oracle::{Presence, State};
use crate::tally::{Kind, Violation};
use crate::tus;

/// The outcome of a comparison.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The number of statements that were compared.
    pub(crate) facts: u64,
    /// The number of files that the server shows.
    pub(crate) files: u64,
    /// The number of receipts that were compared.
    pub(crate) receipts: u64,
    pub(crate) violations: Vec<Violation>,
}

impl Findings {
    /// Counts a comparison, and notes it if the promise is broken.
    pub(crate) fn expect(&mut self, holds: bool, kind: Kind, what: impl FnOnce() -> String) {
        self.facts += 1;
        if !holds {
            self.violations.push(Violation { kind, what: what() });
        }
    }

    /// Adds what another comparison found.
    pub(crate) fn add(&mut self, other: Self) {
        self.facts += other.facts;
        self.files += other.files;
        self.receipts += other.receipts;
        self.violations.extend(other.violations);
    }
}

/// Compares the replies of the server and the files on its disk with the log.
pub(crate) async fn whole_store(server: &Child, expected: &State) -> Findings {
    let mut findings = Findings::default();
    let client = Reader::of(server);
    let ready = client.get("/api/v1/health-checks/ready").await;
    findings.expect(ready.0 == 200, Kind::Broken, || String::from_utf8_lossy(&ready.1).into());

    let records = client.records("").await;
    let mut tags = BTreeMap::new();
    for (id, record) in &records {
        if let Some(tag) = client.check_bytes(id, record, &mut findings).await {
            tags.insert(id.clone(), tag);
        }
    }
    findings.files = records.len() as u64;

    check_acknowledged(&client, expected, &records, &tags, &mut findings).await;
    check_batches(expected, &records, &mut findings);
    check_told(&client, expected, &mut findings).await;
    check_disk(&client, &server.data_dir, &mut findings).await;
    check_database(&server.data_dir, &mut findings);
    findings
}

/// P1 and P6: each acknowledged file is there with the content it should have, or gone.
async fn check_acknowledged(
    client: &Reader,
    expected: &State,
    records: &BTreeMap<String, Value>,
    found: &BTreeMap<String, Tag>,
    findings: &mut Findings,
) {
    for (id, file) in &expected.files {
        match (records.get(id), file.presence) {
            (Some(record), Presence::There | Presence::Either) => {
                // Bytes that cannot be read are counted already.
                let holds = found.get(id).is_none_or(|tag| file.tags.contains(tag));
                findings.expect(holds, Kind::Lost, || {
                    format!("{id} holds {:?} instead of one of {:?}", found.get(id), file.tags)
                });
                let holds = !file.is_promoted || record["status"] == "READY";
                findings.expect(holds, Kind::Lost, || format!("{id} was promoted: {record}"));
            }
            (None, Presence::Either | Presence::Gone) => {
                let status = client.get(&format!("/api/v1/files/{id}")).await.0;
                findings.expect(status == 404, Kind::Undeleted, || format!("{id}: {status}"));
            }
            (None, Presence::There) => {
                findings.expect(false, Kind::Lost, || format!("{id}: {file:?}"));
            }
            (Some(_), Presence::Gone) => {
                findings.expect(false, Kind::Undeleted, || format!("{id}: {file:?}"));
            }
        }
    }
}

/// P2: a batch is there as a whole or not at all.
fn check_batches(expected: &State, records: &BTreeMap<String, Value>, findings: &mut Findings) {
    let mut found: BTreeMap<Tag, usize> = BTreeMap::new();
    for record in records.values() {
        let name = record["original_name"].as_str().expect("a name");
        if let Some(batch) = name.strip_prefix("batch-") {
            *found.entry(batch.parse().expect("a tag")).or_default() += 1;
        }
    }

    for (batch, items) in &expected.batches {
        let there = found.remove(batch).unwrap_or(0);
        let acknowledged = expected.acknowledged_batches.contains(batch);
        let whole = there == *items || (there == 0 && !acknowledged);
        findings.expect(whole, Kind::PartialBatch, || {
            format!("batch {batch}: {there} of {items} items, acknowledged: {acknowledged}")
        });
    }
    findings.expect(found.is_empty(), Kind::Broken, || format!("batches nobody began: {found:?}"));
}

/// P1 and P5: no resumable upload is behind an offset that was told, and none is back after it was cancelled.
async fn check_told(client: &Reader, expected: &State, findings: &mut Findings) {
    for (upload, told) in &expected.told {
        let request = tus::about(&client.http, &client.url, upload, Method::HEAD);
        let reply = request.send().await.expect("the server answers");
        let offset = tus::offset_of(&reply);
        findings.expect(offset.is_some_and(|offset| offset >= *told), Kind::Lost, || {
            format!("{upload} was at {told}: {} with {offset:?}", reply.status())
        });
    }
    for upload in &expected.cancelled {
        let request = tus::about(&client.http, &client.url, upload, Method::HEAD);
        let reply = request.send().await.expect("the server answers");
        let is_gone = [StatusCode::NOT_FOUND, StatusCode::GONE].contains(&reply.status());
        findings.expect(is_gone, Kind::Undeleted, || {
            format!("{upload} was cancelled: {}", reply.status())
        });
    }
}

/// P4 and P5: after a purge, one blob for each record and no other.
async fn check_disk(client: &Reader, data_dir: &Path, findings: &mut Findings) {
    let url = format!("{}/api/v1/admin/purge/run", client.url);
    let report = client.http.post(url).send().await.expect("the server answers");
    let report: Value = report.json().await.expect("a JSON reply");
    findings.expect(report["failed"] == 0, Kind::Broken, || format!("a purge failed: {report}"));

    // Deleted files, looked up first: a purge may finish meanwhile.
    let mut allowed = local_keys(&client.records("&purge_status=SYSTEM_PURGE").await);
    let live = local_keys(&client.records("").await);
    allowed.extend(live.iter().cloned());

    let mut blobs = files_below(&data_dir.join("blobs"));
    // A blob may still be on its way from one name to the other.
    let staged = files_below(&data_dir.join("staging"));
    blobs.extend(files_below(&data_dir.join("blobs")));
    for key in &live {
        let id = key.rsplit('/').next().expect("a key has parts");
        let holds = blobs.contains(key) || staged.contains(id);
        findings.expect(holds, Kind::NoBytes, || format!("no file has the key {key}"));
    }
    // A worker may have moved or dropped them since the records were read.
    let unknown: BTreeSet<&String> = blobs.difference(&allowed).collect();
    let left = left_in_the_end(data_dir, unknown.clone(), client).await;
    for key in unknown {
        findings.expect(!left.contains(key), Kind::Orphan, || {
            format!("{key}: {}", what_names(data_dir, key))
        });
    }
    let unfinished = unfinished_uploads(data_dir);
    let is_known =
        |id: &String| unfinished.contains(id) || live.iter().any(|key| key.ends_with(id));
    let mut stuck = staged.iter().filter(|id| !is_known(id));
    let stuck = stuck.next();
    findings.expect(stuck.is_none(), Kind::Orphan, || format!("left in staging: {stuck:?}"));
}

/// Waits for the background to remove what it dropped, all of it in one time; returns what stays.
async fn left_in_the_end<'k>(
    data_dir: &Path,
    mut keys: BTreeSet<&'k String>,
    client: &Reader,
) -> BTreeSet<&'k String> {
    for _ in 0..100 {
        let live = local_keys(&client.records("").await);
        keys.retain(|key| data_dir.join("blobs").join(key).exists() && !live.contains(*key));
        if keys.is_empty() {
            return keys;
        }
        let url = format!("{}/api/v1/admin/purge/run", client.url);
        client.http.post(url).send().await.expect("the server answers");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    keys
}

/// Lists the staged files that resumable uploads own.
fn unfinished_uploads(data_dir: &Path) -> BTreeSet<String> {
    let database =
        rusqlite::Connection::open(data_dir.join("metadata.sqlite3")).expect("a database");
    let sql = "SELECT blob_id FROM resumable_uploads WHERE is_live = 1";
    let mut statement = database.prepare(sql).expect("the table is there");
    let found = statement.query_map((), |row| row.get(0)).expect("rows can be read");
    found.map(|id| id.expect("an id")).collect()
}

/// Describes the rows of the database that name a blob.
fn what_names(data_dir: &Path, key: &str) -> String {
    let database =
        rusqlite::Connection::open(data_dir.join("metadata.sqlite3")).expect("a database");
    let count = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table} WHERE blob_key = ?1");
        database.query_row(&sql, [key], |row| row.get(0)).expect("a count")
    };
    let not_before = database.query_row(
        "SELECT not_before - 1000 * unixepoch() FROM blob_gc WHERE blob_key = ?1",
        [key],
        |row| row.get::<_, i64>(0),
    );
    format!(
        "{} records, {} dropped blobs (due in {not_before:?} ms), {} noted writes",
        count("files"),
        count("blob_gc"),
        count("write_intents")
    )
}

fn local_keys(records: &BTreeMap<String, Value>) -> BTreeSet<String> {
    let local = records.values().filter(|record| record["storage_location"] == "LOCAL");
    local.map(|record| record["file_path"].as_str().expect("a key").to_owned()).collect()
}

fn check_database(data_dir: &Path, findings: &mut Findings) {
    let database =
        rusqlite::Connection::open(data_dir.join("metadata.sqlite3")).expect("a database");
    let answer: Result<String, _> =
        database.query_row("PRAGMA integrity_check", (), |row| row.get(0));
    findings.expect(answer.as_deref() == Ok("ok"), Kind::Broken, || format!("{answer:?}"));
    events::check(data_dir, findings);
}

struct Reader {
    url: String,
    http: reqwest::Client,
}

impl Reader {
    fn of(server: &Child) -> Self {
        let http = filestore_workspace::http_client().build().expect("an HTTP client");
        Self { url: server.url.clone(), http }
    }

    async fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let url = format!("{}{path}", self.url);
        let reply = self.http.get(url).send().await.expect("the server answers");
        let status = reply.status().as_u16();
        // A body that is cut off counts as none: it is compared with the record.
        (status, reply.bytes().await.unwrap_or_default().into())
    }

    /// Lists all records that `filter` lets through, by id.
    async fn records(&self, filter: &str) -> BTreeMap<String, Value> {
        let mut records = BTreeMap::new();
        let mut cursor = String::new();

        loop {
            let path = format!("/api/v1/files?limit=1000{filter}{cursor}");
            let (status, body) = self.get(&path).await;
            assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
            let page: Value = serde_json::from_slice(&body).expect("a JSON reply");
            for record in page["items"].as_array().expect("items") {
                let id = record["file_id"].as_str().expect("a file_id");
                records.insert(id.to_owned(), record.clone());
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return records,
            }
        }
    }

    /// P3 and P4: the bytes are those of the record, and whole. Returns the tag of the content.
    async fn check_bytes(&self, id: &str, record: &Value, findings: &mut Findings) -> Option<Tag> {
        let (status, bytes) = self.get(&format!("/api/v1/files/{id}")).await;
        findings.expect(status == 200, Kind::NoBytes, || format!("{id}: {status}, {record}"));
        if status != 200 {
            return None;
        }

        let is_recorded = record["file_size"] == bytes.len()
            && record["sha256"].as_str() == Some(&sha256_hex(&bytes));
        let tag = content::identify(&bytes);
        findings.expect(is_recorded && tag.is_some(), Kind::Mixed, || {
            format!("{id}: {} bytes that are not its own, {record}", bytes.len())
        });
        tag
    }
}

/// Lists the files below `dir` by their paths from there, markers left out.
pub(crate) fn files_below(dir: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<PathBuf> = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        // A purge may have removed it meanwhile.
        let Ok(entries) = std::fs::read_dir(&next) else { continue };
        for entry in entries.map_while(Result::ok) {
            let path = entry.path();
            let name = entry.file_name();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(path),
                Ok(_) if !name.to_string_lossy().starts_with('.') => {
                    let below = path.strip_prefix(dir).expect("it is below");
                    found.insert(below.to_string_lossy().into_owned());
                }
                _ => {}
            }
        }
    }
    found
}

/// The files that were whole when a server had started: no later power cut takes them.
#[derive(Debug, Default)]
pub(crate) struct Flushed {
    ids: BTreeSet<String>,
    log: State,
}

impl Flushed {
    /// Reads all files of a server that has just started.
    pub(crate) async fn at(server: &Child, log: State) -> Self {
        let client = Reader::of(server);
        let mut ids = BTreeSet::new();
        for id in client.records("").await.into_keys() {
            if client.get(&format!("/api/v1/files/{id}")).await.0 == 200 {
                ids.insert(id);
            }
        }
        Self { ids, log }
    }

    /// Tells if the file was there, and nobody began to change it since.
    fn is_unchanged(&self, id: &str, log: &State) -> bool {
        self.ids.contains(id) && self.log.files.get(id) == log.files.get(id)
    }
}

/// Compares what is left after a power cut that may have taken the last seconds: the database is sound,
/// each file is whole or set aside and reported, never cut, mixed or zeros; and what was there `before`,
/// at the start of the server whose power was cut, is there or was changed since.
pub(crate) async fn what_is_left(server: &Child, before: &Flushed, log: &State) -> Findings {
    let mut findings = Findings::default();
    let client = Reader::of(server);
    check_database(&server.data_dir, &mut findings);

    let (mut set_aside, mut left) = (0_u64, BTreeSet::new());
    for (id, record) in client.records("").await {
        let (status, bytes) = client.get(&format!("/api/v1/files/{id}")).await;
        let is_whole = status == 200 && record["sha256"].as_str() == Some(&sha256_hex(&bytes));
        findings.files += 1;
        findings.expect(is_whole || status == 500, Kind::Mixed, || {
            format!("{id}: {status} with {} bytes that are not its own", bytes.len())
        });

        // Providers hold what they were given, and lose nothing before the record says so.
        let is_local = record["storage_location"] == "LOCAL";
        findings.expect(is_whole || is_local, Kind::NoBytes, || format!("{status}: {record}"));
        // What a migration has just brought home is as new as an upload.
        let was_moved = is_local && record["organization_id"] == load::MOVED;
        let was_flushed = before.is_unchanged(&id, log) && !was_moved;
        findings.expect(is_whole || !was_flushed, Kind::NoBytes, || {
            format!("{status}, and it was flushed: {record}")
        });
        set_aside += u64::from(status == 500 && is_local);
        left.insert(id);
    }
    for id in before.ids.iter().filter(|id| before.is_unchanged(id, log)) {
        findings.expect(left.contains(id), Kind::Lost, || format!("{id} was flushed, and is gone"));
    }

    let metrics = String::from_utf8_lossy(&client.get("/metrics").await.1).into_owned();
    let reported = metrics.lines().find_map(|line| line.strip_prefix("filestore_missing_blobs "));
    let reported: u64 = reported.and_then(|number| number.parse().ok()).unwrap_or(0);
    // Deleted files that did not survive are reported too.
    findings.expect(set_aside <= reported, Kind::Broken, || {
        format!("{set_aside} files are set aside, and {reported} reported")
    });
    findings
}
