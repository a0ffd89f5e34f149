//! What the process does around a command: exit status, streams, locks.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Bench, Way, filestore, text};

#[test]
fn without_a_server_it_says_how_to_get_one() {
    let work = tempfile::tempdir().unwrap();
    // Port 1 is tcpmux; nobody listens there.
    let output =
        filestore(work.path()).args(["list", "--server", "http://127.0.0.1:1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("cannot connect to http://127.0.0.1:1") && said.contains("--data-dir"),
        "{said}"
    );
}

#[test]
fn the_environment_names_the_server_and_an_option_beats_it() {
    let bench = Bench::new(Way::Url);
    let run = |args: &[&str]| {
        filestore(&bench.path("")).env("FILESTORE_URL", bench.url()).args(args).output().unwrap()
    };
    assert!(run(&["health"]).status.success());
    assert_eq!(run(&["health", "--server", "http://127.0.0.1:1"]).status.code(), Some(2));

    let data = tempfile::tempdir().unwrap();
    let dir = data.path().join("new");
    let args =
        ["binding", "create", "--org", "1", "--name", "n", "--provider", "LOCAL", "--data-dir"];
    assert!(run(&[&args[..], &[dir.to_str().unwrap()]].concat()).status.success());
    assert!(dir.join("filestore.lock").exists(), "the data directory was used, not the server");
}

#[test]
fn a_command_has_one_target() {
    let work = tempfile::tempdir().unwrap();
    for args in [
        ["--server", "http://h", "--data-dir", "d", "health"],
        ["--server", "http://h", "health", "--data-dir", "d"],
    ] {
        let output = filestore(work.path()).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("cannot be used together"));
    }
}

#[test]
fn a_command_that_looks_for_something_makes_no_data_directory() {
    let work = tempfile::tempdir().unwrap();
    let output = filestore(work.path()).args(["list", "--data-dir", "typo"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no data directory found: typo"));
    assert!(!work.path().join("typo").exists());
}

#[test]
fn a_directory_that_another_command_holds_is_named() {
    let (work, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _held = runtime.block_on(filestore_core::FileStore::open(data.path())).unwrap();
    let output =
        filestore(work.path()).arg("--data-dir").arg(data.path()).arg("list").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("another process is using the data directory"), "{said}");
}

#[test]
fn the_socket_of_a_killed_server_is_not_taken_for_a_server() {
    let (work, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _held = runtime.block_on(filestore_core::FileStore::open(data.path())).unwrap();
    // Dropping a listener leaves its socket, as a kill does.
    drop(std::os::unix::net::UnixListener::bind(data.path().join("admin.sock")).unwrap());
    let output =
        filestore(work.path()).arg("--data-dir").arg(data.path()).arg("list").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("another process is using the data directory"), "{said}");
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let bench = Bench::new(Way::Url);
    bench.upload("a.txt", "a", &[]);

    for args in [&["list", "--all"][..], &["list", "--json"], &["completions", "bash"]] {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("filestore"));
        command.args(args).args(["--server", &bench.url()]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), text(&output.stderr)),
            (Some(0), String::new()),
            "{args:?}"
        );
    }
}

#[test]
fn bars_are_for_terminals_only() {
    let bench = Bench::new(Way::Direct);
    bench.write("a.txt", "a");
    let output = bench.run(&["upload", "a.txt", "--org", "42", "--sub", "s"]);
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn every_shell_gets_a_completion_script() {
    let work = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = filestore(work.path()).args(["completions", shell]).output().unwrap();
        assert!(output.status.success());
        let script = text(&output.stdout);
        assert!(script.contains("filestore") && script.contains("recursive"), "{shell}");
    }
}

#[test]
fn a_purge_removes_deleted_files_for_good() {
    let bench = Bench::new(Way::Direct);
    let id = bench.upload("a.txt", "four", &[]);
    bench.ok(&["delete", &id]);
    let plan = bench.json(&["purge", "run", "--now", "--dry-run"]);
    assert_eq!((&plan["purged"], &plan["purged_bytes"]), (&1.into(), &4.into()));
    assert!(bench.ok(&["purge", "run", "--now"]).starts_with("purged 1 file (4 B)"));
    bench.fails(1, &["info", &id]);
    assert_eq!(bench.json(&["purge", "run", "--now"])["purged"], 0);
}

#[test]
fn a_purge_run_waits_a_day_unless_it_is_told_now_and_takes_one_organization_if_told() {
    for way in [Way::Direct, Way::Url, Way::Socket] {
        let bench = Bench::new(way);
        let id = bench.upload("a.txt", "four", &[]);
        let other = bench.ok(&["upload", "a.txt", "--org", "43", "--sub", "s", "--quiet"]);
        bench.ok(&["delete", &id, other.trim()]);

        let early = bench.ok(&["purge", "run"]);
        assert!(early.starts_with("purged 0 files (0 B)"), "{early}");
        assert!(early.contains(", 2 files in the grace period (8 B), next due 20"), "{early}");
        let status = bench.ok(&["status"]);
        assert!(status.contains(" 2 files in the grace period (8 B), next due 20"), "{status}");

        let none = bench.json(&["purge", "run", "--org", "44", "--now"]);
        assert_eq!((&none["purged"], &none["waiting"]), (&0.into(), &0.into()));
        let waits = bench.json(&["purge", "run", "--org", "42", "--dry-run"]);
        assert_eq!((&waits["purged"], &waits["waiting_bytes"]), (&0.into(), &4.into()));
        let refused = bench.fails(1, &["purge", "run", "--org", "007", "--now"]);
        assert!(refused.contains("organization_id") && refused.contains("--org"), "{refused}");

        let purged = bench.json(&["purge", "run", "--org", "42", "--now"]);
        assert_eq!((&purged["purged"], &purged["purged_bytes"]), (&1.into(), &4.into()));
        bench.fails(1, &["info", &id]);
        assert_eq!(bench.json(&["restore", other.trim()])["deleted_at"], Value::Null);
    }
}

#[test]
fn a_deleted_file_shows_when_it_was_deleted_and_when_its_purge_is_due() {
    for way in [Way::Direct, Way::Url] {
        let bench = Bench::new(way);
        let id = bench.upload("a.txt", "four", &[]);
        let live = bench.json(&["info", &id]);
        assert_eq!((&live["deleted_at"], &live["purge_due_at"]), (&Value::Null, &Value::Null));
        bench.ok(&["delete", &id]);
        let dead = bench.json(&["info", &id]);
        assert!(dead["deleted_at"].as_str() < dead["purge_due_at"].as_str(), "{dead}");
        let listed = bench.ok(&["list", "--purge-status", "SYSTEM_PURGE"]);
        let due = dead["purge_due_at"].as_str().unwrap()[..10].to_owned();
        assert!(listed.contains("PURGE DUE (UTC)") && listed.contains(&due), "{listed}");
        assert!(!bench.ok(&["list"]).contains("PURGE DUE"));

        let shown = bench.ok(&["info", &id]);
        assert!(shown.contains("\ndeleted       20"), "{shown}");
        assert!(shown.contains("\npurge due     20"), "{shown}");
    }
}
