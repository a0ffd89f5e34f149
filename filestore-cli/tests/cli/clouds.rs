//! `sync`, `migrate` and `provider check` with a provider that is a directory, in each of the three ways
//! to reach a store.

use std::fs::DirEntry;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::support::{Bench, HANG, Way, filestore, pause, text};

macro_rules! in_every_way {
    ($($name:ident)*) => {
        mod direct { $(#[test] fn $name() { super::$name(&crate::support::Bench::with_disk(crate::support::Way::Direct)); })* }
        mod server { $(#[test] fn $name() { super::$name(&crate::support::Bench::with_disk(crate::support::Way::Url)); })* }
        mod socket { $(#[test] fn $name() { super::$name(&crate::support::Bench::with_disk(crate::support::Way::Socket)); })* }
    };
}

in_every_way! {
    files_go_to_their_provider_and_come_back
    a_migration_against_the_binding_is_refused
    a_provider_is_listed_and_tried_out
    the_whole_service_is_on_one_screen
    ctrl_c_ends_a_migration_with_a_report
    a_check_says_by_its_exit_status_what_it_found
    an_organization_is_exported_and_erased
}

fn bind(bench: &Bench, more: &[&str]) {
    let create = ["binding", "create", "--org", "42", "--name", "Acme", "--provider", "disk"];
    bench.ok(&[&create, more].concat());
}

/// Until everything that waits is at its provider: a server's own worker takes a part.
fn sync(bench: &Bench, files: u64) {
    let deadline = Instant::now() + HANG;
    loop {
        assert_eq!(bench.json(&["sync", "run"])["failures"], Value::Array(Vec::new()));
        let status = bench.json(&["sync", "status"]);
        if status["synced"] == files {
            return;
        }
        assert!(Instant::now() < deadline, "{status}");
    }
}

fn files_go_to_their_provider_and_come_back(bench: &Bench) {
    let early = bench.upload("early.txt", "early", &[]);
    bench.ok(&["sync", "run"]);
    bind(bench, &["--sync"]);
    let late = bench.upload("late.txt", "late", &[]);
    assert_eq!(bench.json(&["sync", "enqueue", "--org", "42"])["queued"], 1);

    sync(bench, 2);
    assert_eq!(bench.ok(&["sync", "retry", "--org", "42"]), "queued 0 files\n");
    assert_eq!(bench.json(&["info", &late])["storage_provider"], "disk");

    bench.ok(&["binding", "update", "--org", "42", "--provider", "LOCAL"]);
    let to = ["--org", "42", "--to", "LOCAL"];
    let plan = bench.ok(&[&["migrate", "run", "--dry-run"], &to[..]].concat());
    assert!(plan.contains("would move 2 files (9 B) to LOCAL, 0 already there"), "{plan}");
    assert_eq!(bench.ok(&[&["migrate", "plan"], &to[..]].concat()), plan);

    let report = bench.ok(&[&["migrate", "run", "--rate", "20MiB"], &to[..]].concat());
    assert_eq!(report, "moved 2 files (9 B), 0 left (0 B), 0 failed\n");

    let verified = bench.json(&[&["migrate", "verify"], &to[..]].concat());
    assert_eq!((&verified["checked_files"], &verified["elsewhere"]), (&2.into(), &0.into()));

    let status = bench.ok(&["migrate", "status", "--org", "42"]);
    assert!(status.contains("LOCAL") && status.contains("bound to LOCAL"), "{status}");

    for (id, bytes) in [(&early, "early"), (&late, "late")] {
        assert_eq!(bench.ok(&["get", id, "-o", "-"]), bytes);
    }
}

fn the_whole_service_is_on_one_screen(bench: &Bench) {
    bind(bench, &[]);
    bench.upload("a.txt", "there", &[]);
    let screen = bench.ok(&["status"]);
    for shown in ["store ", "data ", "disk  ", "LOCAL ", "disk ", "variants "] {
        assert!(screen.contains(shown), "{shown} in {screen}");
    }

    let status = bench.json(&["status"]);
    assert!(status["advice"].is_array(), "{status}");
    let disk =
        status["providers"].as_array().unwrap().iter().find(|one| one["provider_code"] == "disk");
    assert_eq!(disk.unwrap()["state"], "closed");
    assert!(status["disk"]["free_bytes"].as_u64() > Some(0), "{status}");
}

fn a_migration_against_the_binding_is_refused(bench: &Bench) {
    bench.upload("a.txt", "a", &[]);
    let said = bench.fails(1, &["migrate", "run", "--org", "42", "--to", "disk"]);
    assert!(said.contains("binding create"), "{said}");

    bind(bench, &[]);
    let said = bench.fails(1, &["migrate", "run", "--org", "42", "--to", "LOCAL"]);
    assert!(said.contains("bound to disk"), "{said}");

    let said = bench.fails(1, &["migrate", "run", "--org", "42", "--to", "moon"]);
    assert!(said.contains("disk"), "lists what is valid: {said}");

    bench.fails(2, &["migrate", "run", "--org", "42", "--to", "disk", "--rate", "fast"]);
    bench.fails(2, &["migrate", "run", "--org", "42"]);
    bench.fails(2, &["sync", "enqueue"]);
    bench.fails(1, &["sync", "enqueue", "--org", "7"]);
}

fn a_provider_is_listed_and_tried_out(bench: &Bench) {
    bench.upload("a.txt", "a", &[]);
    let all = bench.json(&["provider", "list", "--all"]);
    assert_eq!((&all[1]["provider_code"], &all[1]["scheme"]), (&"disk".into(), &"fs".into()));
    assert!(bench.ok(&["provider", "list", "--all"]).contains("CLOUD"));
    assert_eq!(bench.ok(&["provider", "list", "-q"]), "LOCAL\ndisk\n");

    let report = bench.ok(&["provider", "check", "disk"]);
    assert!(
        report.starts_with("STEP") && report.trim_end().ends_with("disk can serve"),
        "{report}"
    );

    bench.fails(1, &["provider", "check", "moon"]);
    // A file stands where the objects of the check would go.
    let _ = std::fs::remove_dir_all(bench.path("disk/.filestore-check"));
    bench.write("disk/.filestore-check", "no directory");
    let output = bench.run(&["provider", "check", "disk", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));

    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["can_serve"], false);
}

fn ctrl_c_ends_a_migration_with_a_report(bench: &Bench) {
    for n in 0..60 {
        bench.write(&format!("many/{n}.txt"), "x".repeat(1000));
    }
    bench.ok(&["upload", "--recursive", "many", "--org", "42", "--sub", "s", "--quiet"]);
    bench.ok(&["sync", "run"]);
    bind(bench, &[]);
    let args = ["migrate", "run", "--org", "42", "--to", "disk", "--rate", "1000", "--json"];

    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("filestore"));
    command.args(args).args(bench.target());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + HANG;

    // It is under way when the first copy is there. A provider's own entries begin with a dot.
    let is_copy = |entry: std::io::Result<DirEntry>| {
        !entry.unwrap().file_name().as_encoded_bytes().starts_with(b".")
    };
    while !std::fs::read_dir(bench.path("disk")).unwrap().any(is_copy) {
        assert!(Instant::now() < deadline, "it did not begin");
        pause();
    }

    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());

    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));

    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |key: &str| report[key].as_u64().unwrap();
    assert_eq!(
        (&report["stopped"], count("moved_files") + count("left_files")),
        (&true.into(), 60)
    );
    assert!(count("left_files") > 0, "{report}");

    let rest = bench.json(&["migrate", "run", "--org", "42", "--to", "disk"]);
    assert_eq!(rest["left_files"], 0);
}

#[test]
fn a_directory_operated_directly_knows_its_providers_only_by_its_configuration() {
    let bench = Bench::with_disk(Way::Direct);
    bench.upload("a.txt", "a", &[]);
    let codes = |with: &[&str]| {
        let mut command = filestore(&bench.path(""));
        command.args(["provider", "list", "-q", "--data-dir"]).arg(bench.data_dir()).args(with);
        command.output().unwrap()
    };
    assert_eq!(text(&codes(&[]).stdout), "LOCAL\n");
    assert_eq!(text(&codes(&["--config", "filestore.toml"]).stdout), "LOCAL\ndisk\n");

    let mut command = filestore(&bench.path(""));
    command.args(["provider", "list", "-q", "--data-dir"]).arg(bench.data_dir());
    let output = command.env("FILESTORE_CONFIG", "filestore.toml").output().unwrap();
    assert_eq!(text(&output.stdout), "LOCAL\ndisk\n");

    let missing = codes(&["--config", "gone.toml"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("gone.toml"));

    let alone =
        filestore(&bench.path("")).args(["health", "--config", "filestore.toml"]).output().unwrap();
    assert_eq!(alone.status.code(), Some(2));
    assert!(text(&alone.stderr).contains("--data-dir"));
}

#[test]
fn a_purge_says_at_which_provider_it_removed() {
    let bench = Bench::with_disk(Way::Direct);
    bind(&bench, &[]);
    let id = bench.upload("a.txt", "a", &[]);
    assert_eq!(bench.json(&["info", &id])["storage_provider"], "disk", "written through");

    bench.ok(&["delete", &id]);
    assert_eq!(bench.json(&["purge", "run", "--now", "--dry-run"])["purged"], 1);

    let said = bench.ok(&["purge", "run", "--now"]);
    assert!(
        said.starts_with("purged 1 file (1 B)") && said.contains("at disk: removed 1 blob"),
        "{said}"
    );
}

fn a_check_says_by_its_exit_status_what_it_found(bench: &Bench) {
    bind(bench, &[]);
    let there = bench.upload("there.txt", "there", &[]);
    let checked = bench.ok(&["fsck", "--deep", "--pace", "50MiB"]);
    assert!(checked.contains("checked 1 file (5 B read)"), "{checked}");
    assert!(checked.contains("no findings"), "{checked}");

    let key = bench.json(&["info", &there])["file_path"].as_str().unwrap().to_owned();
    let object = bench.path("disk").join(&key);
    std::fs::write(&object, "thEre").unwrap();
    bench.ok(&["fsck"]);
    let found = bench.run(&["fsck", "--deep"]);
    assert_eq!(found.status.code(), Some(3), "{}", text(&found.stderr));
    let shown = text(&found.stdout);
    assert!(shown.contains("wrong_digest") && shown.contains(&key), "{shown}");

    std::fs::remove_file(&object).unwrap();
    let found = bench.run(&["fsck", "--json", "--provider", "disk"]);
    assert_eq!(found.status.code(), Some(3));
    let report: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(report["findings"][0]["kind"], "missing_bytes");
    bench.fails(1, &["fsck", "--provider", "nowhere"]);
}

#[test]
fn a_server_continues_a_run_without_the_command() {
    let bench = Bench::with_disk(Way::Url);
    bind(&bench, &[]);
    bench.upload("there.txt", "there", &[]);
    bench.ok(&["binding", "update", "--org", "42", "--provider", "LOCAL"]);

    let started = bench.ok(&["migrate", "run", "--org", "42", "--to", "LOCAL", "--detach"]);
    assert!(started.contains("organization 42 is bound to LOCAL"), "{started}");
    until(&bench, &["migrate", "status", "--org", "42"], |status| {
        status["running"].is_null() && status["holdings"][0]["provider_code"] == "LOCAL"
    });

    let none = bench.ok(&["fsck", "--status"]);
    assert!(!none.contains("the last check"), "{none}");
    bench.ok(&["fsck", "--deep", "--detach"]);
    until(&bench, &["fsck", "--status"], |status| status["last"]["ended_at"].is_string());
    let status = bench.ok(&["fsck", "--status"]);
    assert!(status.contains("1 file (5 B read), 0 findings, 0 repaired"), "{status}");
}

#[test]
fn a_run_without_a_server_cannot_continue_without_the_command() {
    let bench = Bench::with_disk(Way::Direct);
    bench.upload("there.txt", "there", &[]);
    for command in
        [&["fsck", "--detach"][..], &["migrate", "run", "--org", "42", "--to", "disk", "--detach"]]
    {
        let said = bench.fails(1, command);
        assert!(said.contains("omit --detach, or use --server"), "{said}");
    }
}

fn until(bench: &Bench, args: &[&str], is_reached: impl Fn(&Value) -> bool) {
    let deadline = Instant::now() + HANG;
    loop {
        let seen = bench.json(args);
        if is_reached(&seen) {
            return;
        }
        assert!(Instant::now() < deadline, "{seen}");
        pause();
    }
}

fn an_organization_is_exported_and_erased(bench: &Bench) {
    let here = bench.upload("here.txt", "here", &[]);
    bind(bench, &[]);
    bench.upload("there.txt", "there", &[]);

    let export = ["organization", "export", "42", "--to", "out"];
    let first = bench.json(&export);
    assert_eq!(
        (&first["files"], &first["bytes"], &first["skipped"]),
        (&2.into(), &9.into(), &0.into())
    );
    let manifest = text(&bench.read("out/manifest.jsonl"));
    let lines: Vec<Value> =
        manifest.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["bindings"][0]["storageProvider"], "disk");
    let line = lines.iter().find(|line| line["record"]["file_id"] == here.as_str()).unwrap();
    let path = line["path"].as_str().unwrap();
    assert!(path.ends_with("-here.txt"), "{path}");
    assert_eq!(bench.read(&format!("out/{path}")), b"here");

    // What a killed run leaves: half a line, and a file without one.
    let cut = manifest.len() - 20;
    bench.write("out/manifest.jsonl", &manifest.as_bytes()[..cut]);
    let again = bench.json(&export);
    assert_eq!((&again["files"], &again["skipped"]), (&2.into(), &1.into()));
    assert_eq!(text(&bench.read("out/manifest.jsonl")).lines().count(), 3);

    bench.fails(2, &["organization", "erase", "42"]);
    assert_eq!(bench.json(&["info", &here])["file_size"], 4);
    let receipt = bench.json(&["organization", "erase", "42", "--yes"]);
    assert_eq!((&receipt["complete"], &receipt["files"]), (&true.into(), &2.into()), "{receipt}");
    assert_eq!(bench.json(&["list", "--org", "42"])["items"], Value::Array(Vec::new()));
    let places = receipt["places"].as_array().unwrap();
    assert!(places.iter().any(|one| one["place"] == "disk"), "{receipt}");
    assert!(places.iter().all(|one| one["absent"] == true), "{receipt}");
}
