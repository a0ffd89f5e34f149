//! `upload --recursive`: as many runs as it takes, and every file once.

use std::path::PathBuf;

use crate::support::{Bench, Way, text};
use serde_json::Value;

const UPLOAD: [&str; 9] =
    ["upload", "--recursive", "photos", "--org", "42", "--sub", "gallery", "--journal", "j.jsonl"];

fn with_photos(way: Way, count: usize) -> Bench {
    let bench = Bench::new(way);
    for n in 0..count {
        bench.write(&format!("photos/{:02}/{n}.txt", n % 7), format!("photo {n}"));
    }
    bench
}

fn counts(summary: &Value) -> [u64; 3] {
    ["uploaded", "skipped", "failed"].map(|name| summary[name].as_u64().unwrap())
}

#[test]
fn a_second_run_skips_what_the_first_did() {
    for way in [Way::Direct, Way::Url] {
        let bench = with_photos(way, 9);
        bench.write("photos/.hidden", "h");
        std::os::unix::fs::symlink("00", bench.path("photos/link")).unwrap();
        let first = bench.json(&UPLOAD);
        assert_eq!((counts(&first), &first["left_out"]), ([10, 0, 0], &1.into()));
        assert_eq!(counts(&bench.json(&UPLOAD)), [0, 10, 0]);
        bench.write("photos/01/1.txt", "another photo");
        bench.write("photos/new.txt", "n");
        assert_eq!(counts(&bench.json(&UPLOAD)), [2, 9, 0]);
        assert_eq!(bench.count(), 12);
    }
}

#[test]
fn quiet_prints_the_id_of_each_file_that_this_run_stored() {
    for way in [Way::Direct, Way::Url] {
        let bench = with_photos(way, 3);
        let quiet = [&UPLOAD[..], &["--quiet"]].concat();
        let printed = |text: String| {
            let mut ids: Vec<_> = text.lines().map(str::to_owned).collect();
            ids.sort();
            ids
        };
        let first = printed(bench.ok(&quiet));
        assert_eq!(first, printed(bench.ok(&["list", "--org", "42", "--all", "--quiet"])));
        assert_eq!(first.len(), 3);

        assert_eq!(bench.ok(&quiet), "");
        bench.write("photos/new.txt", "n");
        assert_eq!(printed(bench.ok(&quiet)).len(), 1);
    }
}

#[test]
fn a_file_that_was_only_touched_is_not_uploaded_again() {
    let bench = with_photos(Way::Direct, 3);
    bench.ok(&UPLOAD);
    let file = std::fs::File::options().write(true).open(bench.path("photos/01/1.txt")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(counts(&bench.json(&UPLOAD)), [0, 3, 0]);
    assert_eq!(counts(&bench.json(&UPLOAD)), [0, 3, 0]);
}

#[test]
fn an_upload_whose_answer_was_lost_is_not_stored_twice() {
    for way in [Way::Direct, Way::Url] {
        let bench = with_photos(way, 5);
        bench.ok(&UPLOAD);
        let journal = String::from_utf8(bench.read("j.jsonl")).unwrap();
        let lines: Vec<&str> = journal.lines().collect();
        // What a crash between the answer and the journal leaves: two lines missing, one cut off.
        let torn = format!("{}\n{}", lines[..4].join("\n"), &lines[4][..20]);
        bench.write("j.jsonl", torn);
        assert_eq!(counts(&bench.json(&UPLOAD)), [2, 3, 0]);
        assert_eq!(bench.count(), 5);
        let again = String::from_utf8(bench.read("j.jsonl")).unwrap();
        let ids = |text: &str| {
            let mut ids: Vec<String> = text.lines().skip(1).map(file_id).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids(&again), ids(&journal), "the same files as before");
    }
}

fn file_id(line: &str) -> String {
    let line: Value = serde_json::from_str(line).unwrap();
    line["file_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_that_is_killed_is_finished_by_the_next() {
    let bench = with_photos(Way::Url, 120);
    let journal = bench.path("j.jsonl");
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("filestore"));

    let url = bench.url();
    command
        .args(UPLOAD)
        .args(["--server", &url, "--jobs", "2", "--quiet"])
        .current_dir(bench.path(""));

    let mut child = command.spawn().unwrap();
    while lines(&journal) < 10 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = lines(&journal);
    assert!(before >= 10, "it was killed in the middle or had ended, but had begun: {before}");

    let summary = bench.json(&UPLOAD);
    assert_eq!(summary["failed"], 0);
    assert_eq!(lines(&journal), 121);
    assert_eq!(bench.count(), 120);
}

#[test]
fn a_run_that_is_stopped_says_how_to_continue() {
    let bench = with_photos(Way::Url, 400);
    let journal = bench.path("j.jsonl");
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("filestore"));
    command
        .args(UPLOAD)
        .args(["--server", &bench.url(), "--jobs", "1"])
        .current_dir(bench.path(""))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());

    let mut child = command.spawn().unwrap();
    while lines(&journal) < 3 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    std::process::Command::new("kill").args(["-s", "INT", &pid]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    if output.status.code() == Some(0) {
        // The run was faster than the signal.
        assert!(text(&output.stdout).contains("uploaded 400 files"), "{said}");
        return;
    }
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.starts_with("stopped: ") && said.contains(" of 400 files are stored"), "{said}");
    assert!(said.contains("run the same command again"), "{said}");
    assert_eq!(counts(&bench.json(&UPLOAD))[2], 0);
    assert_eq!(bench.count(), 400);
}

fn lines(path: &PathBuf) -> usize {
    std::fs::read(path).map_or(0, |text| text.split_inclusive(|byte| *byte == b'\n').count())
}

#[test]
fn one_bad_file_does_not_keep_the_others_back() {
    let bench = Bench::with(Way::Url, |config| config.store.limits.max_file_size = 1000);
    bench.write("photos/a.txt", "a");
    bench.write("photos/large.txt", [b'x'; 1001]);

    // More than a name of the store may have: it makes a shorter one.
    bench.write(&format!("photos/{}", "n".repeat(255)), "n");
    bench.write("photos/z.txt", "z");
    let output = bench.run(&UPLOAD);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("cannot upload photos/large.txt") && said.contains("run the same command"),
        "{said}"
    );
    assert!(
        text(&output.stdout).contains("uploaded 3 files (3 B), skipped 0, left out 0, failed 1")
    );
    assert_eq!(bench.count(), 3);
}

#[test]
fn a_refusal_that_hits_every_file_is_told_once() {
    let bench = with_photos(Way::Direct, 50);
    let mut args = UPLOAD;
    args[4] = "no such organization";
    let output = bench.run(&[&args[..], &["--jobs", "1"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert_eq!(said.matches("error:").count(), 1, "{said}");
    assert!(text(&output.stdout).contains("stopped early"));
}

#[test]
fn a_journal_is_bound_to_its_upload() {
    let bench = with_photos(Way::Direct, 1);
    bench.ok(&UPLOAD);
    let mut args = UPLOAD;
    args[6] = "letters";
    let said = bench.fails(2, &args);
    assert!(said.contains("another upload") && said.contains("--journal"), "{said}");
}

#[test]
fn without_a_journal_option_it_is_kept_with_the_users_state() {
    let bench = with_photos(Way::Direct, 2);
    let summary = bench.json(&UPLOAD[..7]);
    let journal = summary["journal"].as_str().unwrap();
    assert!(journal.starts_with(bench.path(".state/filestore").to_str().unwrap()), "{journal}");
    assert_eq!(counts(&bench.json(&UPLOAD[..7])), [0, 2, 0]);
}

/// Deletes a file and purges it at once.
fn purge(bench: &Bench, id: &str) {
    bench.ok(&["delete", id]);
    bench.ok(&["purge", "run", "--now"]);
    bench.fails(1, &["info", id]);
}

/// The id that the journal has last for its one file.
fn last_id(bench: &Bench) -> String {
    file_id(text(&bench.read("j.jsonl")).lines().last().unwrap())
}

#[test]
fn a_file_that_returns_to_an_older_content_is_stored_again() {
    for way in [Way::Direct, Way::Url] {
        let bench = Bench::new(way);
        bench.write("photos/a.txt", "first");
        bench.ok(&UPLOAD);
        let outdated = last_id(&bench);
        bench.write("photos/a.txt", "second");
        bench.ok(&UPLOAD);
        purge(&bench, &outdated);

        bench.write("photos/a.txt", "first");
        assert_eq!(counts(&bench.json(&UPLOAD)), [1, 0, 0]);
        let id = last_id(&bench);
        assert_eq!(bench.ok(&["get", &id, "-o", "-"]), "first", "{way:?}");
    }
}

#[test]
fn an_upload_that_was_deleted_before_its_answer_was_noted_is_made_again() {
    for way in [Way::Direct, Way::Url] {
        let bench = Bench::new(way);
        bench.write("photos/a.txt", "first");
        bench.ok(&UPLOAD);
        let lost = last_id(&bench);
        let header = text(&bench.read("j.jsonl")).lines().next().unwrap().to_owned();
        bench.write("j.jsonl", header + "\n");
        purge(&bench, &lost);

        assert_eq!(counts(&bench.json(&UPLOAD)), [1, 0, 0]);
        assert_ne!(last_id(&bench), lost);
        assert_eq!(bench.ok(&["get", &last_id(&bench), "-o", "-"]), "first", "{way:?}");
    }
}
