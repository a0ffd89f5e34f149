//! Every command, in each of the three ways to reach a store.

use crate::support::{Bench, Way, noise, picture, text};
use serde_json::Value;

/// Makes one test of each function for each way.
macro_rules! in_every_way {
    ($($name:ident)*) => {
        mod direct { $(#[test] fn $name() { super::$name(&crate::support::Bench::new(crate::support::Way::Direct)); })* }
        mod server { $(#[test] fn $name() { super::$name(&crate::support::Bench::new(crate::support::Way::Url)); })* }
        mod socket { $(#[test] fn $name() { super::$name(&crate::support::Bench::new(crate::support::Way::Socket)); })* }
    };
}

in_every_way! {
    a_file_comes_back_as_it_went
    a_download_never_overwrites_unless_told
    a_range_is_a_part
    stdin_is_a_file_too
    a_file_that_is_missing_does_not_keep_the_others_back
    several_files_are_downloaded_into_a_directory
    ids_to_delete_and_restore_are_read_from_stdin
    a_batch_is_stored_whole_or_not_at_all
    an_idempotency_key_stores_once
    a_digest_that_does_not_match_is_refused
    a_temporary_file_becomes_a_thumbnail_and_then_ready
    a_replacement_is_conditional_if_asked
    a_deleted_file_is_unreadable_and_can_be_restored
    a_deletion_is_conditional_if_asked
    an_edit_keeps_the_bytes
    listings_ask_for_names_types_times_and_metadata
    many_files_are_deleted_each_for_itself
    usage_counts_files_and_bytes
    many_files_are_restored_each_for_itself
    organizations_and_sub_systems_are_listed_with_what_they_store
    whoami_shows_the_key_and_the_limits
    a_file_that_no_provider_waits_for_is_shown_as_stored
    listings_filter_and_go_on
    a_variant_is_a_webp_and_a_small_image_passes_through
    a_sheet_is_one_webp_with_a_map
    bindings_are_made_changed_and_listed
    the_store_is_looked_after
    keys_are_made_listed_rotated_and_revoked
    times_and_sizes_can_have_a_unit
    urls_are_signed_in_every_form
    refusals_name_the_field_and_the_next_step
}

fn a_file_comes_back_as_it_went(bench: &Bench) {
    let bytes = noise(3_000_001);
    bench.write("Zoë 写真.bin", &bytes);
    let uploaded = bench.json(&["upload", "Zoë 写真.bin", "--org", "42", "--sub", "gallery"]);
    let record = &uploaded[0];
    assert_eq!(record["original_name"], "Zoë 写真.bin");
    assert_eq!(record["file_size"], 3_000_001);
    assert_eq!(record["sync_status"], "PENDING");

    let id = record["file_id"].as_str().unwrap();
    let saved = bench.json(&["get", id, "-o", "copy.bin"]);
    assert_eq!(saved["path"], "copy.bin");
    assert_eq!(saved["bytes"], 3_000_001);
    assert_eq!(bench.read("copy.bin"), bytes);
    assert_eq!(bench.run(&["get", id, "-o", "-"]).stdout, bytes);

    let info = bench.json(&["info", id]);
    assert_eq!(info["sha256"], record["sha256"]);
    assert!(bench.ok(&["info", id]).contains("2.9 MiB (3000001 bytes)"));
}

fn a_download_never_overwrites_unless_told(bench: &Bench) {
    let id = bench.upload("a.txt", "new", &[]);
    bench.write("a.txt", "old");
    let said = bench.fails(2, &["get", &id]);
    assert!(said.contains("a.txt already exists") && said.contains("--force"), "{said}");
    assert_eq!(bench.read("a.txt"), b"old");
    bench.ok(&["get", &id, "--force"]);
    assert_eq!(bench.read("a.txt"), b"new");
    std::fs::create_dir(bench.path("dir")).unwrap();
    bench.ok(&["get", &id, "-o", "dir"]);
    assert_eq!(bench.read("dir/a.txt"), b"new");
}

fn a_range_is_a_part(bench: &Bench) {
    let id = bench.upload("digits", "0123456789", &[]);
    for (range, part) in
        [("0-3", "0123"), ("7-", "789"), ("-2", "89"), ("8-99", "89"), ("0-0", "0")]
    {
        assert_eq!(bench.ok(&["get", &id, "--range", range, "-o", "-"]), part, "{range}");
    }
    bench.fails(1, &["get", &id, "--range", "10-", "-o", "-"]);
    bench.fails(2, &["get", &id, "--range", "ten", "-o", "-"]);
}

fn stdin_is_a_file_too(bench: &Bench) {
    let mut command = bench.command(&[
        "upload",
        "-",
        "--name",
        "notes.txt",
        "--org",
        "42",
        "--sub",
        "s",
        "--quiet",
    ]);

    let output = command.write_stdin("from a pipe").output().unwrap();
    let id = text(&output.stdout).trim().to_owned();
    assert_eq!(bench.ok(&["get", &id, "-o", "-"]), "from a pipe");
    assert_eq!(bench.json(&["info", &id])["original_name"], "notes.txt");

    bench.command(&["replace", &id, "-"]).write_stdin("again").assert().success();
    assert_eq!(bench.ok(&["get", &id, "-o", "-"]), "again");
}

fn a_file_that_is_missing_does_not_keep_the_others_back(bench: &Bench) {
    bench.write("a.txt", "a");
    bench.write("b.txt", "b");
    let said =
        bench.fails(2, &["upload", "a.txt", "gone.txt", "b.txt", "--org", "42", "--sub", "s"]);
    assert!(said.contains("gone.txt") && said.contains("No such file"), "{said}");
    assert_eq!(bench.count(), 2);
}

fn several_files_are_downloaded_into_a_directory(bench: &Bench) {
    let (a, b) = (bench.upload("a.txt", "a", &[]), bench.upload("b.txt", "b", &[]));
    let twin = bench.upload("a.txt", "twin", &[]);
    std::fs::create_dir(bench.path("out")).unwrap();
    let unknown = "01JD8QZ4T6X3M2V9B7K5N1R0CE";

    let output = bench.run(&["get", &a, unknown, &b, &twin, "-o", "out", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let saved: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ids: Vec<_> = saved.as_array().unwrap().iter().map(|one| &one["file_id"]).collect();
    assert_eq!(ids, [&a, &b, &twin]);
    assert!(text(&output.stderr).contains(&format!("cannot get {unknown}: file not found")));
    assert_eq!((bench.read("out/a.txt"), bench.read("out/b.txt")), (b"a".into(), b"b".into()));
    assert_eq!(
        bench.read(&format!("out/{twin}-a.txt")),
        b"twin",
        "both files named a.txt are there"
    );

    let shown = bench.ok(&["get", &a, &b, "-o", "out", "--force"]);
    assert_eq!(shown, "out/a.txt  1 B\nout/b.txt  1 B\n");
    for wrong in [&["-o", "-"][..], &["-o", "out/a.txt"], &["--range", "0-1"]] {
        let said = bench.fails(2, &[&["get", &a, &b], wrong].concat());
        assert!(said.contains("directory") || said.contains("a single file"), "{said}");
    }
}

fn ids_to_delete_and_restore_are_read_from_stdin(bench: &Bench) {
    let ids: Vec<_> = (0..3).map(|n| bench.upload(&format!("{n}.txt"), "x", &[])).collect();
    let given = format!("{}\n{} \n", ids[0], ids[1]);
    bench.command(&["delete", "-"]).write_stdin(given).assert().success();
    assert_eq!(bench.ok(&["list", "--all", "--quiet"]).trim(), ids[2]);

    let given = format!("{} {}", ids[0], ids[1]);
    bench.command(&["restore", "-"]).write_stdin(given).assert().success();
    assert_eq!(bench.count(), 3);
    bench.command(&["delete", "-"]).write_stdin(ids[..2].join("\n")).assert().success();

    let empty = bench.command(&["delete", "-"]).write_stdin("\n").output().unwrap();
    assert_eq!(empty.status.code(), Some(2));
    assert!(text(&empty.stderr).contains("stdin contains no ids"), "{}", text(&empty.stderr));
    assert_eq!(bench.count(), 1);
}

fn a_batch_is_stored_whole_or_not_at_all(bench: &Bench) {
    bench.write("front.txt", "front");
    bench.write("back.txt", "back");
    let records = bench.json(&["batch", "front.txt", "back.txt", "--org", "42", "--sub", "s"]);
    let names: Vec<_> =
        records.as_array().unwrap().iter().map(|record| &record["original_name"]).collect();
    assert_eq!(names, ["front.txt", "back.txt"]);
    bench.fails(2, &["batch", "front.txt", "gone.txt", "--org", "42", "--sub", "s"]);
    bench.fails(1, &["batch", "front.txt", "back.txt", "--org", "0x2a!", "--sub", "s"]);
    assert_eq!(bench.count(), 2);
}

fn an_idempotency_key_stores_once(bench: &Bench) {
    let key = ["--idempotency-key", "order-7"];
    let first = bench.upload("a.txt", "a", &key);
    assert_eq!(bench.upload("a.txt", "a", &key), first);
    bench.write("a.txt", "other");
    let said =
        bench.fails(1, &["upload", "a.txt", "--org", "42", "--sub", "gallery", key[0], key[1]]);
    assert!(said.contains("another content"), "{said}");
    assert_eq!(bench.count(), 1);
}

fn a_digest_that_does_not_match_is_refused(bench: &Bench) {
    bench.write("a.txt", "a");
    let other = "0".repeat(64);
    let said =
        bench.fails(1, &["upload", "a.txt", "--org", "42", "--sub", "s", "--sha256", &other]);
    assert!(said.contains("cannot upload a.txt") && said.contains("sha256sum"), "{said}");
    assert_eq!(bench.count(), 0);
}

fn a_temporary_file_becomes_a_thumbnail_and_then_ready(bench: &Bench) {
    let id = bench.upload("a.txt", "a", &["--temp"]);
    let temp = bench.json(&["info", &id]);
    assert_eq!((&temp["status"], &temp["sync_status"]), (&"TEMP".into(), &"NONE".into()));
    assert!(temp["expires_at"].is_string());
    assert_eq!(bench.json(&["thumbnail", &id])["sync_status"], "NONE");
    assert_eq!(bench.json(&["info", &id])["status"], "THUMBNAIL");
    assert_eq!(bench.json(&["ready", &id])["sync_status"], "NONE");

    let ready = bench.json(&["info", &id]);
    assert_eq!((&ready["status"], &ready["expires_at"]), (&"READY".into(), &Value::Null));

    let said = bench.fails(1, &["thumbnail", &id]);
    assert!(said.contains("cannot make") && said.contains("hint"), "{said}");

    bench.write("final.txt", "final");
    bench.ok(&["ready", &id, "final.txt", "--name", "last.txt"]);
    assert_eq!(bench.json(&["info", &id])["original_name"], "last.txt");
    assert_eq!(bench.ok(&["get", &id, "-o", "-"]), "final");
}

fn a_replacement_is_conditional_if_asked(bench: &Bench) {
    let id = bench.upload("a.txt", "one", &[]);
    let first = bench.json(&["info", &id])["sha256"].as_str().unwrap().to_owned();
    bench.write("b.txt", "two");
    bench.ok(&["replace", &id, "b.txt", "--if-match", &first]);
    let record = bench.json(&["info", &id]);
    assert_eq!((&record["version"], &record["original_name"]), (&2.into(), &"b.txt".into()));

    let said = bench.fails(1, &["replace", &id, "a.txt", "--if-match", &first]);
    assert!(said.contains("filestore info"), "{said}");

    bench.ok(&["replace", &id, "a.txt", "--if-match", "*"]);
    assert_eq!(bench.ok(&["get", &id, "-o", "-"]), "one");

    bench.fails(2, &["replace", &id, "a.txt", "--if-match", "yesterday"]);
}

fn an_edit_keeps_the_bytes(bench: &Bench) {
    let id = bench.upload("a.txt", "one", &["--metadata", r#"{"customer":7}"#]);
    assert_eq!(bench.json(&["info", &id])["metadata"]["customer"], 7);
    assert!(bench.ok(&["info", &id]).contains(r#"{"customer":7}"#));

    bench.ok(&["edit", &id, "--name", "b.csv", "--type", "text/csv"]);
    let record = bench.json(&["info", &id]);
    assert_eq!((&record["original_name"], &record["ext"]), (&"b.csv".into(), &"csv".into()));
    assert_eq!((&record["mime_type"], &record["version"]), (&"text/csv".into(), &1.into()));
    assert_eq!(record["metadata"]["customer"], 7);

    let edited = bench.json(&["edit", &id, "--metadata", r#"{"paid":true,"tags":{"a":1}}"#]);
    assert_eq!(edited["metadata"]["customer"], 7, "the whole record is shown");
    bench.ok(&["edit", &id, "--metadata", r#"{"customer":null,"tags":{"b":2}}"#]);
    let expected = serde_json::json!({"paid": true, "tags": {"a": 1, "b": 2}});
    assert_eq!(bench.json(&["info", &id])["metadata"], expected);
    bench.ok(&["edit", &id, "--metadata", "{}"]);
    assert_eq!(bench.json(&["info", &id])["metadata"], expected, "no member is named");
    bench.ok(&["edit", &id, "--clear-metadata"]);
    assert_eq!(bench.json(&["info", &id])["metadata"], serde_json::json!({}));
    assert_eq!(bench.ok(&["get", &id, "-o", "-"]), "one");

    bench.fails(2, &["edit", &id]);
    bench.fails(2, &["edit", &id, "--metadata", "[]"]);
    bench.fails(2, &["edit", &id, "--metadata", "{}", "--clear-metadata"]);
    let said = bench.fails(1, &["edit", &id, "--name", "a\nb"]);
    assert!(said.contains("cannot edit") && said.contains("--name"), "{said}");
    bench.fails(1, &["edit", &id, "--name", "c", "--if-match", &"0".repeat(64)]);

    bench.write("b.txt", "two");
    bench.ok(&["replace", &id, "b.txt", "--metadata", r#"{"k":"v"}"#]);
    assert_eq!(bench.json(&["info", &id])["metadata"]["k"], "v");
    let batch = ["batch", "b.txt", "--org", "42", "--sub", "s", "--metadata", r#"{"k":"w"}"#];
    assert_eq!(bench.json(&batch)[0]["metadata"]["k"], "w");
}

fn listings_ask_for_names_types_times_and_metadata(bench: &Bench) {
    for (name, customer) in [("b-2", "7"), ("b-1", "8"), ("a", "7")] {
        bench.upload(name, "x", &["--metadata", &format!("{{\"customer\":{customer}}}")]);
    }
    let names = |args: &[&str]| {
        let page = bench.json(&[&["list", "--org", "42"], args].concat());
        let items = page["items"].as_array().unwrap().clone();
        items
            .iter()
            .map(|item| item["original_name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };

    assert_eq!(names(&["--name-prefix", "b"]), ["b-1", "b-2"]);
    assert_eq!(names(&["--metadata", "customer=7"]), ["a", "b-2"]);
    assert_eq!(names(&["--metadata", "customer=7", "--name-prefix", "b"]), ["b-2"]);
    assert_eq!(names(&["--name-contains", "B-", "--order", "oldest"]), ["b-2", "b-1"]);
    bench.fails(2, &["list", "--order", "oldest", "--name-prefix", "b"]);
    bench.fails(2, &["list", "--id", "x", "--limit", "1"]);
    bench.fails(1, &["list", "--id", "x"]);
    let page = bench.json(&["list", "--org", "42", "--limit", "1"]);
    let id = page["items"][0]["file_id"].as_str().unwrap();
    assert_eq!(bench.json(&["list", "--id", id])["items"], page["items"]);
    assert_eq!(names(&["--type", "text/plain", "--created-after", "2020-01-01"]).len(), 3);
    assert_eq!(names(&["--created-before", "2020-01-01"]), [""; 0]);
    bench.fails(1, &["list", "--created-before", "yesterday"]);
    bench.fails(2, &["list", "--metadata", "customer"]);
}

fn usage_counts_files_and_bytes(bench: &Bench) {
    bench.upload("a.txt", "four", &[]);
    bench.upload("b.txt", "more", &["--temp"]);
    let usage = bench.json(&["usage", "--org", "42"]);
    assert_eq!((&usage["files"], &usage["bytes"]), (&2.into(), &8.into()));
    assert_eq!(usage["by_location"]["LOCAL"]["files"], 2);
    assert_eq!(usage["quota_bytes"], Value::Null);

    let shown = bench.ok(&["usage", "--org", "42"]);
    assert!(shown.contains("2 files, 8 B") && shown.contains("none"), "{shown}");
    assert_eq!(bench.json(&["usage", "--org", "nobody"])["files"], 0);
    bench.fails(1, &["usage", "--org", "a b"]);
}

fn many_files_are_restored_each_for_itself(bench: &Bench) {
    let (a, b) = (bench.upload("a.txt", "a", &[]), bench.upload("b.txt", "b", &[]));
    bench.ok(&["delete", &a, &b]);
    let unknown = "01JD8QZ4T6X3M2V9B7K5N1R0CE";

    let output = bench.run(&["restore", unknown, &a, "no id", &b, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let restored: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ids: Vec<_> = restored.as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [&a, &b]);
    assert!(restored[0]["restored"] == true && restored[0]["error"].is_null());
    let errors = text(&output.stderr);
    assert!(errors.contains(&format!("cannot restore {unknown}")), "{errors}");
    assert!(errors.contains("cannot restore no id"), "{errors}");

    assert_eq!(bench.count(), 2);
    assert_eq!(bench.ok(&["restore", &a, &b, "-q"]).lines().count(), 2, "again");
}

fn organizations_and_sub_systems_are_listed_with_what_they_store(bench: &Bench) {
    bench.upload("a.txt", "four", &[]);
    bench.write("b.txt", b"seven b");
    let acme = ["upload", "b.txt", "--org", "acme", "--sub", "letters", "--temp", "-q"];
    bench.ok(&acme);
    bench.ok(&["binding", "create", "--org", "7", "--name", "Seven", "--provider", "LOCAL"]);

    let page = bench.json(&["organization", "list", "--limit", "2"]);
    let ids: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|one| &one["organization_id"]).collect();
    assert_eq!(ids, ["42", "7"]);
    assert_eq!(page["items"][0]["bytes"], 4);
    assert_eq!(page["items"][1]["binding"]["organization_name"], "Seven");
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(bench.ok(&["organization", "list", "--cursor", cursor, "-q"]).trim(), "acme");
    assert_eq!(bench.ok(&["organization", "list", "--all", "-q", "--limit", "1"]), "42\n7\nacme\n");
    let shown = bench.ok(&["organization", "list"]);
    assert!(shown.contains("QUOTA") && shown.contains("acme") && shown.contains("7 B"), "{shown}");
    bench.fails(1, &["organization", "list", "--cursor", "nonsense"]);
    bench.fails(1, &["organization", "list", "--limit", "0"]);

    let parts = bench.json(&["organization", "sub-systems", "acme"]);
    assert_eq!(parts["items"][0]["sub_system"], "letters");
    assert_eq!(parts["items"][0]["temp"]["files"], 1);
    assert_eq!(bench.ok(&["organization", "sub-systems", "acme", "--all", "-q"]), "letters\n");
    assert_eq!(bench.ok(&["organization", "sub-systems", "nobody", "-q"]), "");
    bench.fails(1, &["organization", "sub-systems", "a b"]);
}

fn whoami_shows_the_key_and_the_limits(bench: &Bench) {
    bench.upload("a.txt", "a", &[]);
    let me = bench.json(&["whoami"]);
    assert_eq!((&me["mode"], &me["key"]), (&"open".into(), &Value::Null));
    assert_eq!(me["limits"]["max_ids"], 1000);
    let shown = bench.ok(&["whoami"]);
    assert!(shown.contains("callers need no key") && shown.contains("up to 100 files"), "{shown}");
}

fn a_file_that_no_provider_waits_for_is_shown_as_stored(bench: &Bench) {
    let id = bench.upload("a.txt", "a", &[]);
    let record = bench.json(&["info", &id]);
    assert_eq!(record["awaits_copy"], false, "{record}");
    let shown = bench.ok(&["info", &id]);
    assert!(shown.contains("sync status   stored"), "{shown}");
    assert!(bench.ok(&["list"]).contains("stored"));
    assert_eq!(bench.json(&["list", "--sync-status", "FAILED"])["items"], serde_json::json!([]));
    bench.fails(2, &["list", "--sync-status", "LOST"]);
}

fn many_files_are_deleted_each_for_itself(bench: &Bench) {
    let (a, b) = (bench.upload("a.txt", "a", &[]), bench.upload("b.txt", "b", &[]));
    let unknown = "01JD8QZ4T6X3M2V9B7K5N1R0CE";
    let output = bench.run(&["delete", &a, unknown, "no id", &b, "--json"]);
    assert_eq!(output.status.code(), Some(1));

    let deleted: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&deleted[0]["fileId"], &deleted[1]["fileId"]), (&a.into(), &b.into()));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("cannot delete {unknown}: file not found")), "{said}");
    assert!(said.contains("cannot delete no id") && said.contains("upper-case ULID"), "{said}");
    assert_eq!(bench.count(), 0);
}

fn a_deletion_is_conditional_if_asked(bench: &Bench) {
    let id = bench.upload("a.txt", "one", &[]);
    let first = bench.json(&["info", &id])["sha256"].as_str().unwrap().to_owned();
    bench.write("b.txt", "two");
    bench.ok(&["replace", &id, "b.txt"]);

    let said = bench.fails(1, &["delete", &id, "--if-match", &first]);
    assert!(said.contains("cannot delete") && said.contains("filestore info"), "{said}");
    assert_eq!(bench.count(), 1);
    let said = bench.fails(2, &["delete", &id, &id, "--if-match", "*"]);
    assert!(said.contains("needs a single file"), "{said}");

    let second = bench.json(&["info", &id])["sha256"].as_str().unwrap().to_owned();
    bench.ok(&["delete", &id, "--if-match", &second]);
    assert_eq!(bench.count(), 0);
}

fn a_deleted_file_is_unreadable_and_can_be_restored(bench: &Bench) {
    let (a, b) = (bench.upload("a.txt", "a", &[]), bench.upload("b.txt", "b", &[]));
    let deleted = bench.json(&["delete", &a, &b]);
    assert_eq!(deleted[0]["deleted"], true);
    assert_eq!(deleted[1]["fileId"], b.as_str());

    bench.fails(1, &["get", &a, "-o", "-"]);
    assert_eq!(bench.json(&["info", &a])["purge_status"], "SYSTEM_PURGE");
    assert_eq!(bench.count(), 0);
    assert_eq!(bench.ok(&["list", "--purge-status", "SYSTEM_PURGE", "-q"]).lines().count(), 2);
    assert_eq!(bench.json(&["restore", &a])["purge_status"], Value::Null);
    assert_eq!(bench.ok(&["get", &a, "-o", "-"]), "a");
    assert_eq!(
        bench.json(&["restore", &a])["purge_status"],
        Value::Null,
        "a second call changes nothing"
    );

    let unknown = "01JD8QZ4T6X3M2V9B7K5N1R0CE";
    let output = bench.run(&["delete", unknown, &a, "--quiet"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout).trim(), a);
}

fn listings_filter_and_go_on(bench: &Bench) {
    let ids: Vec<String> = (0..5).map(|n| bench.upload(&format!("{n}.txt"), "x", &[])).collect();
    bench.write("other.txt", "x");
    bench.ok(&["upload", "other.txt", "--org", "7", "--sub", "misc", "--temp"]);
    let page = bench.json(&["list", "--org", "42", "--limit", "2"]);
    let shown: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|file| &file["file_id"]).collect();
    assert_eq!(shown, [&ids[4], &ids[3]], "newest first");

    let cursor = page["next_cursor"].as_str().unwrap();
    let next = bench.json(&["list", "--org", "42", "--limit", "2", "--cursor", cursor]);
    assert_eq!(next["items"][0]["file_id"], ids[2].as_str());

    let said = bench.fails(1, &["list", "--org", "7", "--cursor", cursor]);
    assert!(said.contains("cursor"), "{said}");

    let all = bench.ok(&["list", "--org", "42", "--all", "--limit", "2", "--json"]);
    let lines: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);

    let table = bench.ok(&["list", "--org", "42", "--all", "--limit", "2"]);
    assert_eq!((table.lines().count(), table.matches("FILE ID").count()), (6, 1), "{table}");
    assert_eq!(bench.ok(&["list", "--status", "TEMP", "--sub", "misc", "-q"]).lines().count(), 1);

    let output = bench.run(&["list", "--org", "nobody"]);
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("", "no files\n"));
}

/// A GIF of two frames of one pixel each.
fn blinking() -> Vec<u8> {
    // 300 × 300, a table of two colours.
    let mut gif = b"GIF89a\x2C\x01\x2C\x01\x80\0\0\xDC\x1E\x1E\x1E\x1E\xDC".to_vec();
    for place in [b"\0\0\0\0", b"\x96\0\x96\0"] {
        gif.extend(b"\x21\xF9\x04\0\x0A\0\0\0\x2C");
        gif.extend(place);
        gif.extend(b"\x01\0\x01\0\0\x02\x02\x44\x01\0");
    }
    gif.push(b';');
    gif
}

#[test]
fn an_animated_variant_is_made_where_it_is_switched_on() {
    let frames = |webp: &[u8]| webp.windows(4).filter(|kind| kind == b"ANMF").count();
    for way in [Way::Direct, Way::Url, Way::Socket] {
        let bench = Bench::with_file(way, |_| "[variants]\nanimated = true\n".to_owned());
        let id = bench.upload("blink.gif", blinking(), &[]);
        bench.ok(&["variant", &id, "200", "--animated"]);
        assert_eq!(frames(&bench.read("blink-200.webp")), 2, "{way:?}");
        bench.ok(&["variant", &id, "200", "--force"]);
        assert_eq!(frames(&bench.read("blink-200.webp")), 0, "{way:?}");

        let url = bench.ok(&["sign", &id, "--size", "200", "--animated", "--quiet"]);
        assert!(url.contains("/200/200?animated=true&"), "{url}");
        bench.fails(2, &["sign", &id, "--animated"]);

        let off = Bench::new(way);
        let id = off.upload("blink.gif", blinking(), &[]);
        let said = off.fails(1, &["variant", &id, "200", "--animated", "-o", "-"]);
        assert!(said.contains("variants.animated"), "{said}");
    }
}

fn a_sheet_is_one_webp_with_a_map(bench: &Bench) {
    let large = bench.upload("large.bmp", picture(640, 480), &[]);
    let note = bench.upload("note.txt", "text", &[]);
    bench.ok(&["sheet", &large, &note, "-o", "page.webp"]);
    let sheet = bench.read("page.webp");
    assert_eq!((&sheet[..4], &sheet[8..12]), (&b"RIFF"[..], &b"WEBP"[..]));

    let map = bench.json(&["sheet", &large, &note, "--fit", "inside", "--map"]);
    assert_eq!((&map["width"], &map["cells"][0]["height"]), (&400.into(), &150.into()));
    assert_eq!(map["cells"][1]["error"]["code"], "not_an_image");
    bench.fails(2, &["sheet", &large, "--map", "-o", "page.webp"]);
    bench.fails(2, &["sheet"]);
}

fn a_variant_is_a_webp_and_a_small_image_passes_through(bench: &Bench) {
    let large = bench.upload("large.bmp", picture(640, 480), &[]);
    bench.ok(&["variant", &large, "200"]);
    let variant = bench.read("large-200.webp");
    assert_eq!((&variant[..4], &variant[8..12]), (&b"RIFF"[..], &b"WEBP"[..]));

    bench.ok(&["variant", &large, "300", "--fit", "inside", "-o", "inside.webp"]);
    assert_ne!(bench.read("inside.webp"), variant);

    let small = bench.upload("small.bmp", picture(20, 10), &[]);
    bench.ok(&["variant", &small, "200"]);
    assert_eq!(bench.read("small-200.bmp"), picture(20, 10));

    let note = bench.upload("note.txt", "text", &[]);
    let said = bench.fails(1, &["variant", &note, "200", "-o", "-"]);
    assert!(said.contains("filestore get"), "{said}");

    bench.fails(2, &["variant", &large, "201"]);
    assert!(bench.json(&["variants", "status"])["disk_entries"].as_u64().is_some());

    bench.ok(&["variants", "prune"]);
    assert_eq!(bench.json(&["variants", "status"])["disk_entries"], 0);
}

fn bindings_are_made_changed_and_listed(bench: &Bench) {
    let create = ["binding", "create", "--org", "42", "--name", "Acme", "--provider", "LOCAL"];
    let binding = bench.json(&create);
    assert_eq!((&binding["isActive"], &binding["syncEnabled"]), (&true.into(), &false.into()));
    assert_eq!(bench.json(&["provider", "list"])[0]["providerCode"], "LOCAL");

    let said = bench.fails(1, &create);
    assert!(said.contains("binding update"), "{said}");

    let said =
        bench.fails(1, &["binding", "create", "--org", "43", "--name", "B", "--provider", "MOON"]);
    assert!(said.contains("LOCAL"), "lists what is valid: {said}");
    assert_eq!(
        bench.json(&["binding", "update", "--org", "42", "--sync", "true"])["syncEnabled"],
        true
    );
    assert_eq!(
        bench.json(&["binding", "update", "--org", "42", "--active", "false"])["isActive"],
        false
    );

    bench.fails(1, &["binding", "update", "--org", "42", "--sync", "false"]);
    let resumed = bench.json(&["binding", "update", "--org", "42", "--active", "true"]);
    assert_eq!(resumed["id"], binding["id"]);
    assert_eq!(bench.json(&["binding", "list", "--org", "42"]).as_array().unwrap().len(), 1);
    assert_eq!(bench.json(&["binding", "list", "--org", "43"]).as_array().unwrap().len(), 0);
    assert!(bench.ok(&["binding", "list"]).contains("Acme"));
}

fn the_store_is_looked_after(bench: &Bench) {
    bench.upload("a.txt", "a", &[]);
    assert_eq!(bench.json(&["health"])["database"], "ok");
    assert!(bench.ok(&["health"]).contains("storage ok"));
    let report = bench.json(&["purge", "run", "--dry-run"]);
    assert_eq!((&report["dry_run"], &report["purged"]), (&true.into(), &0.into()));
    assert_eq!(bench.json(&["purge", "run"])["failures"], Value::Array(Vec::new()));
    assert!(bench.json(&["sync", "run"])["settled"].is_u64());
    let status = bench.json(&["sync", "status"]);
    assert_eq!((&status["none"], &status["pending"]), (&1.into(), &0.into()));
    assert!(bench.ok(&["sync", "status"]).starts_with("SYNC STATUS"));
}

fn keys_are_made_listed_rotated_and_revoked(bench: &Bench) {
    let said = bench.fails(1, &["key", "create", "--org", "*", "--scope", "root"]);
    assert!(said.contains("--scope needs one of: read, write, delete, admin"), "{said}");
    let brief = ["key", "create", "--org", "*", "--scope", "read", "--expires-in", "0"];
    let said = bench.fails(1, &brief);
    assert!(said.contains("100 years") && said.contains("--expires-in needs a time"), "{said}");

    let made = bench.json(&["key", "create", "--org", "*", "--scope", "admin", "--name", "first"]);
    let (id, first) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert!(first.starts_with("fsk_") && first.len() == 76, "{first}");

    // A server asks for the key now; a data directory and its socket do not look at it.
    let listed = bench.ok(&["--key", first, "key", "list"]);
    assert!(listed.contains(id) && listed.contains("first") && !listed.contains(first), "{listed}");
    let args =
        ["--key", first, "key", "create", "--org", "7", "--scope", "read", "--expires-in", "60"];
    let text = bench.ok(&args);
    assert!(text.starts_with("fsk_") && text.trim_end().len() == 76, "the text alone: {text}");

    let rotated = bench.json(&["--key", first, "key", "rotate", id]);
    let second = rotated["key"].as_str().unwrap();
    assert_eq!(rotated["id"], id);
    assert_ne!(first, second);
    assert_eq!(rotated["old_key_valid_until"], Value::Null);

    let all = bench.json(&["--key", second, "key", "list"]);
    assert_eq!(all.as_array().unwrap().len(), 2);
    assert_eq!(all[1]["old_valid_until"], Value::Null);

    let overlap = ["--key", second, "key", "rotate", id, "--overlap", "1d"];
    let overlapping = bench.json(&overlap);
    assert_eq!(overlapping["old_valid_until"], overlapping["old_key_valid_until"]);
    let listed = bench.ok(&["--key", second, "key", "list"]);
    assert!(listed.contains("old secret until 20"), "{listed}");
    assert_eq!((&all[0]["organizations"][0], &all[0]["scopes"][0]), (&"7".into(), &"read".into()));
    let other = all[0]["id"].as_str().unwrap();
    let revoked = bench.json(&["--key", second, "key", "revoke", other]);
    assert!(revoked["revoked_at"].is_string());
    let said = bench.fails(1, &["--key", second, "key", "rotate", other]);
    assert!(said.contains("hint: create a new key: `filestore key create`"), "{said}");
    let said = bench.fails(1, &["--key", second, "key", "revoke", "01ARZ3NDEKTSV4RRFFQ69G5FAV"]);
    assert!(said.contains("key not found"), "{said}");
}

fn times_and_sizes_can_have_a_unit(bench: &Bench) {
    let id = bench.upload("a.txt", "hello", &[]);
    let ends = |args: &[&str]| bench.json(args)["expires_at"].as_str().unwrap().to_owned();
    // A window of 5 minutes rounds the end up.
    let (later, soon) =
        (ends(&["sign", &id, "--expires-in", "2d"]), ends(&["sign", &id, "--expires-in", "600"]));
    assert!(later[..10] > soon[..10], "{later} {soon}");
    let upload = ["sign-upload", "--org", "42", "--sub", "s", "--max-size", "5MiB", "--expires-in"];
    assert!(bench.ok(&[&upload[..], &["10m"]].concat()).contains("max_size=5242880&"));
    let said = bench.fails(2, &[&upload[..], &["soon"]].concat());
    assert!(said.contains("10m") && said.contains("seconds"), "{said}");

    let made =
        bench.json(&["key", "create", "--org", "*", "--scope", "admin", "--expires-in", "30d"]);
    let (key, id) = (made["key"].as_str().unwrap(), made["id"].as_str().unwrap());
    let rotate = ["--key", key, "key", "rotate", id, "--overlap", "1h"];
    let rotated = bench.run(&rotate);
    let said = text(&rotated.stderr);
    assert!(said.contains("the old secret stays valid until 20"), "{said}");
    let until = bench.json(&rotate)["old_key_valid_until"].as_str().unwrap().to_owned();
    assert!(until.as_str() > made["created_at"].as_str().unwrap(), "{until}");
}

fn urls_are_signed_in_every_form(bench: &Bench) {
    let id = bench.upload("a.txt", "hello", &[]);
    let path = format!("/api/v1/files/{id}");
    let plain = bench.ok(&["sign", &id]);
    let quiet = bench.ok(&["sign", &id, "--quiet"]);
    let json = bench.json(&["sign", &id]);
    for url in [plain.trim_end(), quiet.trim_end(), json["url"].as_str().unwrap()] {
        assert!(url.contains(&path) && url.contains("&sig="), "{url}");
    }
    let variant = bench.ok(&["sign", &id, "--size", "200", "--fit", "inside", "-q"]);
    assert!(variant.contains(&format!("{path}/200/200?fit=inside&")), "{variant}");

    let upload = ["sign-upload", "--org", "42", "--sub", "s", "--max-size", "9", "--quiet"];
    let (one, other) = (bench.ok(&upload), bench.ok(&upload));
    assert!(one.contains("/api/v1/files/upload?") && one.contains("max_size=9"), "{one}");
    assert_ne!(one, other, "each is good for one file");

    let kid = bench.ok(&["signing", "list", "--quiet"]);
    assert!(plain.contains(&format!("kid={}", kid.trim_end())), "{plain} {kid}");
    let rotated = bench.json(&["signing", "rotate"]);
    assert_eq!(rotated.as_array().unwrap().len(), 2);
    let left = bench.json(&["signing", "revoke", kid.trim_end()]);
    assert_eq!(left.as_array().unwrap().len(), 1);
    let said = bench.fails(1, &["signing", "revoke", kid.trim_end()]);
    assert!(said.contains("not found"), "{said}");
}

fn refusals_name_the_field_and_the_next_step(bench: &Bench) {
    bench.write("photo.jpg", "x");
    let said = bench.fails(1, &["upload", "photo.jpg", "--org", "a b", "--sub", "s"]);
    assert!(said.starts_with("error: cannot upload photo.jpg: "), "{said}");
    assert!(said.contains("organization_id") && said.contains("hint: --org needs"), "{said}");

    let said = bench.fails(1, &["info", "not-an-id", "--json"]);
    let error: Value = serde_json::from_str(&said).unwrap();
    assert!(
        error["error"]["message"].as_str().unwrap().starts_with("cannot show not-an-id"),
        "{said}"
    );

    let said = bench.fails(1, &["get", "01JD8QZ4T6X3M2V9B7K5N1R0CE", "-o", "x", "--json"]);
    let error: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(error["error"]["code"], "not_found");
    assert!(!bench.path("x").exists());
}
