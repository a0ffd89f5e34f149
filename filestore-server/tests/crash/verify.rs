//! The promises that must hold after every start.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::child::Child;
use crate::content::{self, Tag};
use crate::oracle::{Presence, State};

/// Compares the replies of the server and the files on its disk with the log; returns the number of
/// files.
pub(crate) async fn whole_store(server: &Child, expected: &State) -> usize {
    let client = Reader {
        url: server.url.clone(),
        http: crate::support::http_client().build().expect("an HTTP client"),
    };
    let staged = files_under(&server.data_dir.join("staging"));
    assert!(staged.is_empty(), "left in staging: {staged:?}");
    let ready = client.get("/api/v1/health-checks/ready").await;
    assert_eq!(ready.0, 200, "{}", String::from_utf8_lossy(&ready.1));

    let records = client.records().await;
    let mut tags = BTreeMap::new();
    for (id, record) in &records {
        tags.insert(id.clone(), client.check_bytes(id, record).await);
    }
    check_acknowledged(&client, expected, &tags).await;
    check_batches(expected, &records);
    check_disk(&client, &server.data_dir, records.len()).await;
    check_database(&server.data_dir);
    records.len()
}

/// P1 and P6: each acknowledged file is there with the content it should have, or gone.
async fn check_acknowledged(client: &Reader, expected: &State, found: &BTreeMap<String, Tag>) {
    for (id, file) in &expected.files {
        match (found.get(id), file.presence) {
            (Some(tag), Presence::There | Presence::Either) => {
                assert!(
                    file.tags.contains(tag),
                    "{id} holds {tag} instead of one of {:?}",
                    file.tags
                );
            }
            (None, Presence::Either | Presence::Gone) => {
                assert_eq!(client.get(&format!("/api/v1/files/{id}")).await.0, 404, "{id}");
            }
            (None, Presence::There) => panic!("{id} was acknowledged and is lost: {file:?}"),
            (Some(_), Presence::Gone) => panic!("{id} was deleted and is back: {file:?}"),
        }
    }
}

/// P2: a batch is there as a whole or not at all.
fn check_batches(expected: &State, records: &BTreeMap<String, Value>) {
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
        assert!(whole, "batch {batch}: {there} of {items} items, acknowledged: {acknowledged}");
    }

    assert!(found.is_empty(), "batches that nobody began: {found:?}");
}

/// P4 and P5: after a purge, one blob for each record and no other.
async fn check_disk(client: &Reader, data_dir: &Path, records: usize) {
    let report = client.http.post(format!("{}/api/v1/admin/purge/run", client.url)).send().await;
    let report: Value = report.expect("the server answers").json().await.expect("a JSON reply");
    assert_eq!(report["failures"], Value::Array(Vec::new()));
    let mut blobs = files_under(&data_dir.join("blobs"));
    blobs.retain(|blob| !blob.ends_with(".store-id"));
    assert_eq!(blobs.len(), records, "blobs that no record names, or records without");
}

fn check_database(data_dir: &Path) {
    let database =
        rusqlite::Connection::open(data_dir.join("metadata.sqlite3")).expect("a database");
    let answer: String =
        database.query_row("PRAGMA integrity_check", (), |row| row.get(0)).expect("an answer");
    assert_eq!(answer, "ok");
}

struct Reader {
    url: String,
    http: reqwest::Client,
}

impl Reader {
    async fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let reply =
            self.http.get(format!("{}{path}", self.url)).send().await.expect("the server answers");
        (reply.status().as_u16(), reply.bytes().await.expect("a whole reply").into())
    }

    /// Lists all records, by id.
    async fn records(&self) -> BTreeMap<String, Value> {
        let mut records = BTreeMap::new();
        let mut cursor = String::new();

        loop {
            let (status, body) = self.get(&format!("/api/v1/files?limit=1000{cursor}")).await;
            assert_eq!(status, 200);
            let page: Value = serde_json::from_slice(&body).expect("a JSON reply");
            for record in page["items"].as_array().expect("items") {
                records.insert(
                    record["file_id"].as_str().expect("a file_id").to_owned(),
                    record.clone(),
                );
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return records,
            }
        }
    }

    /// P3: the bytes are those of the record, and whole. Returns the tag of the content.
    async fn check_bytes(&self, id: &str, record: &Value) -> Tag {
        let (status, bytes) = self.get(&format!("/api/v1/files/{id}")).await;
        assert_eq!(status, 200, "{id} has a record and no bytes");
        assert_eq!(record["file_size"], bytes.len(), "{id}");
        assert_eq!(record["sha256"], hex(&Sha256::digest(&bytes)), "{id}");
        content::identify(&bytes).unwrap_or_else(|| panic!("{id} is mixed or cut"))
    }
}

/// Writes bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

fn files_under(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)
        .expect("the directory is there")
        .map(|entry| entry.expect("an entry"))
    {
        if entry.file_type().expect("a type").is_dir() {
            found.extend(files_under(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}
