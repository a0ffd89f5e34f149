//! What the process does around a command: exit status, streams, locks.

use std::process::{Command, Stdio};

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
        assert!(text(&output.stderr).contains("exclude each other"));
    }
}

#[test]
fn a_command_that_looks_for_something_makes_no_data_directory() {
    let work = tempfile::tempdir().unwrap();
    let output = filestore(work.path()).args(["list", "--data-dir", "typo"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no data directory there: typo"));
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
    let plan = bench.json(&["purge", "run", "--dry-run"]);
    assert_eq!((&plan["purged"], &plan["purged_bytes"]), (&1.into(), &4.into()));
    assert!(bench.ok(&["purge", "run"]).starts_with("purged 1 file (4 B)"));
    bench.fails(1, &["info", &id]);
    assert_eq!(bench.json(&["purge", "run"])["purged"], 0);
}
