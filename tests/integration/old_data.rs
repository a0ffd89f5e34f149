//! Data directories that earlier versions wrote: each opens, migrates, and serves every byte.
//!
//! A folder of `old_data/` is named for the commit whose server wrote it or for the schema that came
//! with it, and was left by a SIGKILL: `data` is the data directory, with the database's log still beside it, `second` the
//! directory of the `fs` provider `disk2`, and `manifest.json` says what the server had
//! acknowledged. Files of version and schema that follow are added, never changed.

use std::path::Path;
use std::time::Duration;

use filestore_core::api::PurgeStatus;
use filestore_core::config::ProviderConfig;
use filestore_workspace::{Call, Form, TestServer, sha256_hex};
use reqwest::Method;
use serde_json::{Value, json};

/// Longer than this project will be maintained: what a manifest calls deleted stays to be seen.
const NEVER: Duration = Duration::from_hours(500 * 365 * 24);

#[tokio::test]
async fn a_data_directory_of_84e346b_serves_every_byte() {
    serves_every_byte("84e346b").await;
}

#[tokio::test]
async fn a_data_directory_of_schema_3_serves_every_byte() {
    serves_every_byte("schema3").await;
}

#[tokio::test]
async fn a_data_directory_of_schema_4_serves_every_byte() {
    serves_every_byte("schema4").await;
}

#[tokio::test]
async fn a_data_directory_of_schema_5_serves_every_byte() {
    serves_every_byte("schema5").await;
}

#[tokio::test]
async fn a_data_directory_of_schema_6_serves_every_byte() {
    serves_every_byte("schema6").await;
}

async fn serves_every_byte(version: &str) {
    let (server, manifest) = open(version).await;

    for (file_id, expected) in manifest["files"].as_object().unwrap() {
        // Its 24 hours are over, and the purge may have been faster than this test.
        if expected["note"] == "temp" {
            continue;
        }

        let record = server.record(file_id).await;
        assert_eq!(record.file_size, expected["size"], "{expected}");
        assert_eq!(record.sha256, expected["content_sha256"], "{expected}");

        let content = server.content(file_id).send().await.expect(200);
        assert_eq!(sha256_hex(&content.body), expected["content_sha256"], "{expected}");
    }
}

#[tokio::test]
async fn a_data_directory_of_84e346b_keeps_its_deletions_bindings_and_variants() {
    keeps_its_deletions_bindings_and_variants("84e346b").await;
}

#[tokio::test]
async fn a_data_directory_of_schema_3_keeps_its_deletions_bindings_and_variants() {
    keeps_its_deletions_bindings_and_variants("schema3").await;
}

#[tokio::test]
async fn a_data_directory_of_schema_4_keeps_its_deletions_bindings_and_variants() {
    keeps_its_deletions_bindings_and_variants("schema4").await;
}

#[tokio::test]
async fn a_data_directory_of_schema_5_keeps_its_deletions_bindings_and_variants() {
    keeps_its_deletions_bindings_and_variants("schema5").await;
}

#[tokio::test]
async fn a_data_directory_of_schema_6_keeps_its_deletions_bindings_and_variants() {
    keeps_its_deletions_bindings_and_variants("schema6").await;
}

async fn keeps_its_deletions_bindings_and_variants(version: &str) {
    let (server, manifest) = open(version).await;

    let deleted = manifest["deleted"].as_str().unwrap();
    server.content(deleted).send().await.expect(404);
    let record = server.record(deleted).await;
    assert_eq!(record.purge_status, Some(PurgeStatus::SystemPurge));
    assert!(record.deleted_at.is_some() && record.purge_due_at > record.deleted_at, "{record:?}");
    server.restore(deleted).await.expect(200);
    server.content(deleted).send().await.expect(200);

    let bindings = server.get("/api/v1/organization-storage-bindings?organizationId=7");
    let bindings = bindings.send().await.expect(200).json();
    assert_eq!(bindings[0]["storageProvider"], "disk2");
    assert_eq!(bindings[0]["isActive"], true);

    let files = manifest["files"].as_object().unwrap();
    let (replaced, _) = files.iter().find(|(_, file)| file["note"] == "replaced").unwrap();
    assert_eq!(server.record(replaced).await.version, 2);
}

#[tokio::test]
async fn a_data_directory_of_schema_4_keeps_its_key_and_what_was_said_of_its_files() {
    keeps_its_key_and_what_was_said_of_its_files("schema4").await;
}

#[tokio::test]
async fn a_data_directory_of_schema_5_keeps_its_key_and_what_was_said_of_its_files() {
    keeps_its_key_and_what_was_said_of_its_files("schema5").await;
}

#[tokio::test]
async fn a_data_directory_of_schema_6_keeps_its_key_and_what_was_said_of_its_files() {
    keeps_its_key_and_what_was_said_of_its_files("schema6").await;
}

/// The secret of the directory signed them as that version did, with an end in the year 2500: they name no key.
#[tokio::test]
async fn urls_that_were_signed_before_keys_were_named_live_until_their_end() {
    let (server, manifest) = open("schema6").await;
    let url = |name: &str| server.url(manifest["lasting"][name].as_str().unwrap());
    let expected = &manifest["files"][manifest["tagged"].as_str().unwrap()]["content_sha256"];

    let content = Call::bare(Method::GET, &url("url")).send().await.expect(200);
    assert_eq!(sha256_hex(&content.body), *expected);
    let form = Form::new().bytes("file", b"signed long ago");
    Call::bare(Method::POST, &url("upload_url")).form(form).send().await.expect(201);

    // They do not say when they were signed: not to an organization that was erased.
    let erase = server.post("/api/v1/admin/organizations/acme/erase");
    erase.json(&json!({"confirm": "acme"})).send().await.expect(200);
    let form = Form::new().bytes("file", b"signed long ago");
    let refused = Call::bare(Method::POST, &url("erased_upload_url")).form(form).send().await;
    refused.problem(403, "signature_invalid");
}

#[tokio::test]
async fn a_data_directory_of_schema_6_keeps_its_receipts() {
    let (server, manifest) = open("schema6").await;
    let purged = manifest["purged"].as_str().unwrap();
    let path = format!("/api/v1/files/{purged}/receipt");
    let now = server.get(&path).send().await.expect(200).json()["receipt"].clone();
    for same in ["file_id", "organization_id", "deleted_at", "deleted_by", "purged_at", "removed"] {
        assert_eq!(now[same], manifest["receipt"]["receipt"][same], "{same}");
    }
}

#[tokio::test]
async fn a_data_directory_of_schema_5_keeps_its_placeholders_and_its_last_check() {
    let (server, manifest) = open("schema5").await;

    let pictured = server.record(manifest["pictured"].as_str().unwrap()).await;
    assert_eq!(pictured.thumbhash.as_deref(), manifest["thumbhash"].as_str());

    let status = server.get("/api/v1/admin/fsck/status").send().await.expect(200).json();
    assert_eq!((&status["last"]["deep"], &status["last"]["found"]), (&true.into(), &0.into()));
}

async fn keeps_its_key_and_what_was_said_of_its_files(version: &str) {
    let (server, manifest) = open(version).await;

    Call::bare(Method::GET, &server.url("/api/v1/files")).send().await.problem(401, "unauthorized");

    let tagged = server.record(manifest["tagged"].as_str().unwrap()).await;
    assert_eq!(serde_json::to_string(&tagged.metadata).unwrap(), r#"{"colour":"blue","n":1.5}"#);

    let renamed = server.record(manifest["renamed"].as_str().unwrap()).await;
    assert_eq!(renamed.original_name, "after.md");
    assert_eq!(renamed.mime_type, "text/markdown");
}

/// Starts a server on a copy of what `version` wrote.
async fn open(version: &str) -> (TestServer, Value) {
    let kept =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/old_data").join(version);
    let dir = tempfile::tempdir().unwrap();
    copy(&kept, dir.path());
    let manifest = std::fs::read(kept.join("manifest.json")).unwrap();

    let root = dir.path().join("second").display().to_string();
    let server = TestServer::start_on(dir, |config| {
        let second = ProviderConfig::new("disk2".parse().unwrap(), "fs");
        config.store.providers = vec![second.with_option("root", root)];
        config.store.purge_grace = NEVER;
        config.store.receipt_retention = NEVER;
    });
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();

    let server = match manifest["key"]["key"].as_str() {
        Some(key) => server.await.with_key(key),
        None => server.await,
    };
    (server, manifest)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
