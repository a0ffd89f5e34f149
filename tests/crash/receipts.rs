//! Receipts of purges: what is gone has one, and it tells the truth.
//!
//! A receipt is written in the transaction that deletes the record. A purge that is killed before leaves
//! the record, although the bytes are gone; the next one finds them absent, and leaves the receipt.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitCode;

use filestore_core::internals::tasks::step::Step;
use filestore_core::receipts::{DeletedBy, LookedAt, SignedReceipt, verify_receipt};
use filestore_core::{ErrorKind, FileId, FileStore, ProviderCode, Result, Scope};
use filestore_workspace::{directory_in_memory, eventually, http_client, sha256_hex};
use rusqlite::OpenFlags;
use rustix::process::Signal;
use serde_json::Value;

use crate::child::{Child, Start};
use crate::content::{self, Tag};
use crate::failed_sync;
use crate::oracle::{Entry, Expected, Oracle, Presence, State};
use crate::serve::Sabotage;
use crate::settle;
use crate::tally::{Kind, Tally};
use crate::verify::{Findings, files_below};

/// A kill of a purge, from its first removal on.
struct Case {
    step: Step,
    /// The records and receipts that the kill leaves.
    left: [u64; 2],
    /// A statement that makes the receipt untrue or takes it away.
    harm: &'static str,
}

/// The moments of a kill: before and after the record goes.
const CASES: [Case; 3] = [
    Case {
        step: Step::BlobRemoved,
        left: [1, 0],
        harm: "UPDATE removed_blobs SET sha256 = zeroblob(32)",
    },
    Case {
        step: Step::RemovalSynced,
        left: [1, 0],
        harm: "UPDATE purge_receipts SET deleted_by = 'expiry'",
    },
    Case { step: Step::PurgeFinished, left: [0, 1], harm: "DELETE FROM purge_receipts" },
];

/// The content of the file that is deleted.
const TAG: Tag = 1;

/// The keys that lie at the holders.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holders<'a> {
    pub(crate) local: &'a BTreeSet<String>,
    pub(crate) attic: &'a BTreeSet<String>,
}

impl Holders<'_> {
    fn have(self, holder: &ProviderCode, key: &str) -> bool {
        let keys = if holder.is_local() { self.local } else { self.attic };
        keys.contains(key)
    }
}

/// Compares the receipts of a store in which nothing is left to do with the log: each file has a record or
/// a receipt, never both or none.
pub(crate) async fn compare(
    store: &FileStore,
    log: &State,
    by: &DeletedBy,
    holders: Holders<'_>,
    findings: &mut Findings,
) -> Result<()> {
    for (id, file) in &log.files {
        let id: FileId = id.parse()?;
        let has_record = store.scoped(&Scope::All).info(id).await.is_ok();
        let receipt = match store.scoped(&Scope::All).receipt(id).await {
            Ok(signed) => Some(signed),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };

        let holds = match file.presence {
            Presence::There => has_record && receipt.is_none(),
            Presence::Either => has_record != receipt.is_some(),
            Presence::Gone => !has_record && receipt.is_some(),
        };
        findings.expect(holds, Kind::NoReceipt, || {
            format!("{id}: {file:?}, has a record: {has_record}, {receipt:?}")
        });
        if let Some(signed) = receipt {
            let keys = store.receipts().keys().await?;
            let key = keys.last().map(|key| key.public_key.as_str());
            compare_one(&signed, key, (file, by), holders, findings);
        }
    }
    Ok(())
}

/// Compares what a receipt says with what is known of the file, and with what lies at the holders.
fn compare_one(
    signed: &SignedReceipt,
    public_key: Option<&str>,
    (file, by): (&Expected, &DeletedBy),
    holders: Holders<'_>,
    findings: &mut Findings,
) {
    let receipt = &signed.receipt;
    let purged = &receipt.file;
    let contents: Vec<_> = file.tags.iter().map(|tag| described(*tag)).collect();

    let mut removed = purged.removed.iter().filter_map(|blob| blob.content);
    let names_content =
        removed.any(|content| contents.contains(&(content.sha256.to_hex(), content.size_bytes)));
    let are_absent =
        purged.removed.iter().all(|blob| !holders.have(&blob.holder, blob.key.as_str()));
    // A snapshot that has the bytes, or cannot be looked at here, is to be named instead.
    let no_backup_may_have_them = receipt.backups.iter().all(LookedAt::is_absent);
    let times = [purged.created_at, purged.deleted_at, purged.purged_at, receipt.issued_at];
    let verified = verify_receipt(signed.to_document().as_bytes(), public_key);
    let by = if file.is_in_erasure { &DeletedBy::Erasure } else { by };

    findings.receipts += 1;
    for (holds, what) in [
        (file.deletes > 0 && purged.deleted_by == *by, "who deleted"),
        (names_content, "the digest and the size of the bytes"),
        (are_absent, "the absence of each removed blob"),
        (receipt.is_absent_everywhere() == no_backup_may_have_them, "the absence everywhere"),
        (times.is_sorted(), "the order of the instants"),
        (public_key.is_some() && verified.is_ok(), "the signature"),
    ] {
        findings
            .expect(holds, Kind::NoReceipt, || format!("{what} is wrong: {receipt:?}, {file:?}"));
    }
}

/// Returns digest and size of the content of `tag`.
fn described(tag: Tag) -> (String, u64) {
    let bytes = content::of(tag);
    (sha256_hex(&bytes), bytes.len() as u64)
}

/// Kills a server between the removal of a file's bytes and the end of its purge, and prints the table. Then
/// does harm to each receipt, which the comparison has to notice.
pub(crate) async fn run() -> ExitCode {
    let mut tally = Tally::default();
    for case in CASES {
        let home = directory_in_memory();
        let findings = case.compare_in(home.path()).await;
        case.do_harm(home.path()).await;
        tally.add("kills", 1);
        tally.add("facts compared", findings.facts);
        tally.add("receipts compared", findings.receipts);
        for violation in &findings.violations {
            eprintln!("after {}:", case.step.name());
            tally.note(0, violation);
        }
    }
    tally.conclude()
}

impl Case {
    /// Has a server of `home` purge a file until it is killed, and compares the receipt that there is after
    /// the next start.
    async fn compare_in(&self, home: &Path) -> Findings {
        let log = Oracle::create(home.join("oracle.log"));
        let kill_at = Some(format!("{}:0", self.step.name()));
        let sabotage = Sabotage { kill_at, ..Sabotage::default() };
        let server = Child::start_with(home, &Start { sabotage, ..Start::default() });
        let data_dir = server.data_dir.clone();
        let id = failed_sync::upload(&server, TAG).await.expect("a 201");
        log.log(&Entry::Uploaded(TAG, id.clone()));

        let http = http_client().build().expect("an HTTP client");
        let url = format!("{}/api/v1/files/{id}", server.url);
        log.log(&Entry::DeleteBegun(id.clone()));
        assert_eq!(http.delete(url).send().await.expect("the server answers").status(), 200);
        log.log(&Entry::Deleted(id.clone()));
        let status = server.ended();

        let mut findings = Findings::default();
        let is_killed = status.signal() == Some(Signal::KILL.as_raw());
        findings.expect(is_killed, Kind::Broken, || format!("no kill: {status}"));
        let blobs = files_below(&data_dir.join("blobs"));
        findings.expect(blobs.is_empty(), Kind::Orphan, || format!("{blobs:?}"));
        let rows = rows_of(&data_dir);
        findings.expect(rows == self.left, Kind::NoReceipt, || {
            format!("{rows:?} instead of {:?}", self.left)
        });

        let server = Child::start(home);
        compare_shown(&server, &id, &mut findings).await;
        server.stop();
        findings.add(settle::check(home, &DeletedBy::OpenMode).await);
        findings
    }

    /// Does harm to the receipt of a settled `home`: a comparison that takes anything proves nothing.
    async fn do_harm(&self, home: &Path) {
        let database = rusqlite::Connection::open(home.join("data/metadata.sqlite3"));
        let harmed = database.expect("a database").execute(self.harm, ()).expect("a statement");
        assert_eq!(harmed, 1, "rows that were harmed by {}", self.harm);

        let found = settle::check(home, &DeletedBy::OpenMode).await.violations;
        let is_noticed = found.iter().all(|violation| violation.kind == Kind::NoReceipt);
        assert!(is_noticed && !found.is_empty(), "{}: {found:?}", self.harm);
    }
}

/// Counts records and receipts, and changes nothing: the log of the database is the next start's.
fn rows_of(data_dir: &Path) -> [u64; 2] {
    let path = data_dir.join("metadata.sqlite3");
    let database = rusqlite::Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let database = database.expect("a database");
    ["files", "purge_receipts"].map(|table| {
        let count = database
            .query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get::<_, i64>(0));
        u64::try_from(count.expect("a count")).expect("a count is not negative")
    })
}

/// Compares the receipt that a server shows once the purge has gone on.
async fn compare_shown(server: &Child, id: &str, findings: &mut Findings) {
    let Some(shown) = shown(server, id).await else {
        return findings.expect(false, Kind::NoReceipt, || format!("{id} has none"));
    };
    let removed = &shown["receipt"]["removed"];
    let (sha256, size_bytes) = described(TAG);
    let is_listed = removed[0]["sha256"] == sha256 && removed[0]["size_bytes"] == size_bytes;
    findings.expect(is_listed && removed[1].is_null(), Kind::NoReceipt, || shown.to_string());

    let key = shown["receipt"]["public_key"].as_str();
    let verified = verify_receipt(shown.to_string().as_bytes(), key);
    let is_verified = key.is_some() && verified.is_ok_and(|verified| verified.file_id == id);
    findings.expect(is_verified, Kind::NoReceipt, || format!("not signed: {shown}"));
}

/// Waits until the record is gone, and asks for the receipt, which has to be there from then on.
async fn shown(server: &Child, id: &str) -> Option<Value> {
    let http = http_client().build().expect("an HTTP client");
    let file = format!("{}/api/v1/files/{id}", server.url);
    let purge = format!("{}/api/v1/admin/purge/run", server.url);

    eventually("the record is gone", async || {
        http.post(&purge).send().await.expect("the server answers");
        let info = http.get(format!("{file}/info")).send().await.expect("the server answers");
        (info.status() == 404).then_some(())
    })
    .await;
    let reply = http.get(format!("{file}/receipt")).send().await.expect("the server answers");
    match reply.status().as_u16() {
        200 => Some(reply.json().await.expect("JSON")),
        _ => None,
    }
}
