//! `--dry-run`: what a command would destroy, and that it does not.

use crate::support::{Bench, Way, text};
use serde_json::{Value, json};

const WAYS: [Way; 3] = [Way::Direct, Way::Url, Way::Socket];

#[test]
fn a_planned_deletion_shows_the_files_and_keeps_them() {
    for way in WAYS {
        let bench = Bench::new(way);
        let (a, b) = (bench.upload("a.txt", "four", &[]), bench.upload("b.txt", "b", &[]));
        bench.ok(&["delete", &b]);
        let unknown = "01JD8QZ4T6X3M2V9B7K5N1R0CE";

        let output = bench.run(&["delete", "--dry-run", &a, unknown, &b]);
        assert_eq!(output.status.code(), Some(1));
        let shown = format!("would delete {a} (a.txt, 4 B)\n{b} is already deleted (b.txt)\n");
        assert_eq!(text(&output.stdout), shown);
        assert!(text(&output.stderr).contains(&format!("cannot delete {unknown}")));

        let plan = bench.json(&["delete", "--dry-run", &a]);
        assert_eq!((&plan[0]["dryRun"], &plan[0]["deleted"]), (&true.into(), &false.into()));
        let other = "0".repeat(64);
        let said = bench.fails(1, &["delete", "--dry-run", &a, "--if-match", &other]);
        assert!(said.contains("another SHA-256"), "{said}");
        assert_eq!(bench.ok(&["list", "--quiet"]).trim(), a);
    }
}

#[test]
fn a_planned_erasure_counts_the_content_and_keeps_it() {
    for way in [Way::Direct, Way::Socket] {
        let bench = Bench::new(way);
        bench.upload("a.txt", "four", &[]);
        bench.ok(&["binding", "create", "--org", "42", "--name", "Acme", "--provider", "LOCAL"]);
        let key = |orgs: &[&str]| {
            let orgs: Vec<_> = orgs.iter().flat_map(|org| ["--org", *org]).collect();
            let made = bench.json(&[&["key", "create", "--scope", "read"][..], &orgs].concat());
            made["id"].as_str().unwrap().to_owned()
        };
        let (own, shared) = (key(&["42"]), key(&["42", "43"]));
        key(&["*"]);

        let expected = json!({
            "dry_run": true, "organization_id": "42", "files": 1, "bytes": 4, "bindings": 1,
            "keys_revoked": [own], "keys_narrowed": [shared],
        });
        assert_eq!(bench.json(&["organization", "erase", "--org", "42", "--dry-run"]), expected);
        let shown = bench.ok(&["organization", "erase", "42", "--dry-run"]);
        let counts = "would erase 42: 1 file (4 B), 1 binding, 1 key revoked, 1 key restricted\n";
        assert_eq!(shown, counts);
        assert_eq!(bench.count(), 1);
        let said = bench.fails(2, &["organization", "erase", "42"]);
        assert!(said.contains("--yes") && said.contains("--dry-run"), "{said}");
    }
}

#[test]
fn an_organization_is_an_argument_or_an_option_and_not_both() {
    let bench = Bench::new(Way::Direct);
    bench.upload("a.txt", "four", &[]);
    assert_eq!(bench.json(&["organization", "export", "--org", "42", "--to", "one"])["files"], 1);
    assert_eq!(bench.json(&["organization", "export", "42", "--to", "two"])["files"], 1);
    for wrong in [
        &["organization", "erase", "--yes"][..],
        &["organization", "export", "42", "--org", "42", "--to", "three"],
    ] {
        bench.fails(2, wrong);
    }
    assert_eq!(bench.json(&["organization", "erase", "--org", "42", "--yes"])["files"], 1);
}

#[test]
fn a_planned_prune_names_the_snapshots_and_keeps_them() {
    let bench = Bench::new(Way::Direct);
    let backup = bench.path("backup").display().to_string();
    let take = || {
        let made = bench.json(&["backup", "create", "--to", &backup]);
        made["snapshot"]["snapshot_id"].as_str().unwrap().to_owned()
    };
    bench.upload("a.txt", "a", &[]);
    let (first, second) = (take(), take());

    let prune = ["backup", "prune", "--from", &backup, "--keep", "1", "--dry-run"];
    assert_eq!(bench.ok(&prune), format!("would remove 1 snapshot, 1 kept\n  {first}\n"));
    let expected = json!({"dry_run": true, "removed": [first], "kept": [second]});
    assert_eq!(bench.json(&prune), expected);
    assert_eq!(bench.ok(&[&prune[..], &["--quiet"]].concat()).trim(), first);
    assert_eq!(bench.ok(&["backup", "list", "--from", &backup, "--quiet"]).lines().count(), 2);
}

#[test]
fn the_only_destination_need_not_be_named() {
    for way in WAYS {
        let one = "[[backup.destinations]]\nname = \"nightly\"\npath = ";
        let bench = Bench::with_file(way, |work| {
            std::fs::create_dir(work.join("kept")).unwrap();
            format!("{one}{:?}\n", work.join("kept"))
        });
        bench.upload("a.txt", "a", &[]);
        bench.ok(&["backup", "create", "--to", "nightly"]);
        let listed: Value = bench.json(&["backup", "list"]);
        assert_eq!(listed["files"], 1, "{way:?}");

        let prune = ["backup", "prune", "--from", "nightly", "--keep", "1", "--dry-run"];
        assert_eq!(bench.ok(&prune), "would remove 0 snapshots, 1 kept\n", "{way:?}");

        let none = Bench::new(way);
        none.upload("a.txt", "a", &[]);
        let said = none.fails(2, &["backup", "list"]);
        assert!(said.contains("no backup destination") && said.contains("--from"), "{said}");

        let two = "[[backup.destinations]]\nname = \"a\"\npath = \"/a\"\n\
                   [[backup.destinations]]\nname = \"b\"\npath = \"/b\"\n";
        let several = Bench::with_file(way, |_| two.to_owned());
        several.upload("a.txt", "a", &[]);
        let said = several.fails(2, &["backup", "list"]);
        assert!(said.contains("several") && said.contains("--from: a, b"), "{said}");
    }
}
