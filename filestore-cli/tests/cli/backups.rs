//! `backup` on a data directory, and against a server.

use crate::support::{Bench, Way};

#[test]
fn a_stopped_store_is_saved_into_a_directory_and_restored_from_it() {
    let bench = Bench::new(Way::Direct);
    let id = bench.upload("hello.txt", "hello", &[]);
    let backup = bench.path("backup").display().to_string();

    let made = bench.ok(&["backup", "create", "--to", &backup]);
    assert!(made.contains("1 file, 1 content (5 B), copied 1 (5 B), 0 already there"), "{made}");
    let again = bench.json(&["backup", "create", "--to", &backup]);
    assert_eq!((&again["copied"], &again["reused"]), (&0.into(), &1.into()));
    assert_eq!(bench.ok(&["backup", "list", "--from", &backup]).lines().count(), 3);

    let verified = bench.ok(&["backup", "verify", "--from", &backup]);
    assert!(verified.contains("0 missing, 0 wrong, the database copy is good"), "{verified}");

    let copy = Bench::new(Way::Direct);
    let restored = copy.ok(&["backup", "restore", "--all", "--from", &backup]);
    assert_eq!(restored, "restored 1 file (5 B), 0 failed\n");
    assert_eq!(copy.ok(&["get", &id, "-o", "-"]), "hello");
    let twice = copy.run(&["backup", "restore", "--all", "--from", &backup]);
    assert_eq!(twice.status.code(), Some(2), "it is not empty any more");

    bench.ok(&["delete", &id]);
    bench.ok(&["purge", "run", "--now"]);
    assert_eq!(bench.run(&["get", &id, "-o", "-"]).status.code(), Some(1));
    bench.ok(&["backup", "restore", "--file", &id, "--from", &backup]);
    assert_eq!(bench.ok(&["get", &id, "-o", "-"]), "hello");
    let unknown = "01JD8QZ4T6X3M2V9B7K5N1R0CE";
    let said = bench.fails(1, &["backup", "restore", "--file", unknown, "--from", &backup]);
    assert!(said.contains("the file is not in this snapshot"), "{said}");
    assert!(said.contains("--snapshot ID"), "{said}");

    let pruned = bench.ok(&["backup", "prune", "--from", &backup, "--keep", "1"]);
    assert_eq!(pruned, "removed 1 snapshot, 0 contents (0 B), 1 kept\n");
}

#[test]
fn a_restore_says_which_keys_it_makes_valid_again_and_a_copy_revokes_them() {
    let bench = Bench::new(Way::Direct);
    bench.upload("hello.txt", "hello", &[]);
    let create = ["key", "create", "--name", "leaked", "--org", "*", "--scope", "admin"];
    let id = bench.json(&create)["id"].as_str().unwrap().to_owned();
    let backup = bench.path("backup").display().to_string();
    bench.ok(&["backup", "create", "--to", &backup]);
    bench.ok(&["key", "revoke", &id]);

    let restore = ["backup", "restore", "--all", "--from", &backup];
    let original = Bench::new(Way::Direct);
    let said = original.ok(&[&restore[..], &["--replace"]].concat());
    assert!(said.contains("1 API key and 0 signing secrets are valid again as of"), "{said}");
    assert!(said.contains(&format!("key {id} leaked (admin)")), "{said}");
    assert!(original.json(&["key", "list"])[0]["revoked_at"].is_null());

    let copy = Bench::new(Way::Direct);
    let said = copy.ok(&restore);
    assert!(said.contains("revoked 1 API key and 0 signing secrets of the snapshot"), "{said}");
    assert!(copy.json(&["key", "list"])[0]["revoked_at"].is_string());

    let kept = Bench::new(Way::Direct);
    let report = kept.json(&[&restore[..], &["--keep-keys"]].concat());
    assert_eq!(
        (&report["keys"]["revoked"], &report["keys"]["keys"][0]["id"]),
        (&false.into(), &id.into())
    );
    let both = [&restore[..], &["--keep-keys", "--revoke-keys"]].concat();
    assert_eq!(Bench::new(Way::Direct).run(&both).status.code(), Some(2));
    for option in ["--revoke-keys", "--keep-keys", "--replace"] {
        let files = ["backup", "restore", "--org", "7", option, "--from", &backup];
        let refused = bench.fails(2, &files);
        assert!(refused.contains("cannot be used with"), "files bring no keys: {refused}");
    }
}

#[test]
fn a_snapshot_with_flipped_bytes_is_found_out() {
    let bench = Bench::new(Way::Direct);
    bench.upload("hello.txt", "hello", &[]);
    let backup = bench.path("backup").display().to_string();
    bench.ok(&["backup", "create", "--to", &backup]);

    let sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    bench.write(&format!("backup/blobs/2c/{sha256}"), "hellO");
    let verified = bench.run(&["backup", "verify", "--from", &backup]);
    assert_eq!(verified.status.code(), Some(1));
    let said = String::from_utf8(verified.stderr).unwrap();
    assert!(said.contains(&format!("{sha256}: its bytes are wrong")), "{said}");
}

#[test]
fn a_snapshot_of_a_store_that_has_lost_bytes_is_refused_by_create_and_verify() {
    let bench = Bench::new(Way::Direct);
    bench.upload("lost.txt", "lost", &[]);
    let blobs = bench.data_dir().join("blobs");
    std::fs::rename(find(&blobs, 4).expect("it is stored"), bench.path("away")).unwrap();

    let backup = bench.path("backup").display().to_string();
    for command in [["create", "--to"], ["verify", "--from"], ["verify", "--from"]] {
        let run = bench.run(&["backup", command[0], command[1], &backup]);
        assert_eq!(run.status.code(), Some(1), "{command:?}");
        let said = String::from_utf8(run.stdout).unwrap();
        assert!(said.contains("1 content damaged in the store"), "{said}");
    }
}

/// Finds a file of `size` bytes.
fn find(directory: &std::path::Path, size: u64) -> Option<std::path::PathBuf> {
    std::fs::read_dir(directory).unwrap().find_map(|entry| {
        let entry = entry.unwrap();
        let found = entry.metadata().unwrap();
        if found.is_dir() {
            find(&entry.path(), size)
        } else {
            (found.len() == size).then(|| entry.path())
        }
    })
}

#[test]
fn a_server_writes_only_where_its_configuration_says() {
    let bench = Bench::with(Way::Url, |config| {
        let path = config.data_dir.with_extension("backup");
        std::fs::create_dir(&path).unwrap();
        config.store.backup_destinations =
            vec![filestore_core::config::BackupDestination::new("nightly", path)];
    });
    bench.upload("hello.txt", "hello", &[]);
    bench.ok(&["backup", "create", "--to", "nightly"]);
    assert!(bench.ok(&["backup", "verify", "--from", "nightly"]).contains("0 missing, 0 wrong"));
    assert_eq!(bench.json(&["backup", "list", "--from", "nightly"])["files"], 1);
    let started = bench.ok(&["backup", "create", "--to", "nightly", "--detach"]);
    assert_eq!(
        started,
        "the server takes a snapshot: see `filestore backup list --from nightly`\n"
    );

    for (to, said) in
        [("/tmp/anywhere", "from its configuration"), ("weekly", "[[backup.destinations]]")]
    {
        let refused = bench.run(&["backup", "create", "--to", to]);
        assert_eq!(refused.status.code(), Some(1), "{to}");
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(text.contains(said), "{text}");
    }
    std::fs::remove_dir_all(bench.data_dir().with_extension("backup")).unwrap();
}

#[test]
fn a_disk_that_is_gone_is_forgotten_and_one_that_is_there_is_not() {
    let bench = Bench::new(Way::Direct);
    let id = bench.upload("hello.txt", "hello", &[]);
    let backup = bench.path("backup").display().to_string();
    bench.ok(&["backup", "create", "--to", &backup]);
    bench.ok(&["delete", &id]);
    bench.ok(&["purge", "run", "--now"]);

    let there = bench.run(&["backup", "forget", "--from", &backup]);
    assert_eq!(there.status.code(), Some(1));
    std::fs::remove_dir_all(bench.path("backup")).unwrap();
    let named = bench.ok(&["purge", "receipt", &id]);
    assert!(named.contains(", disk 01") && named.contains("could not be checked"), "{named}");

    assert_eq!(bench.ok(&["backup", "forget", "--from", &backup]), "forgot 1 disk\n");
    let gone = bench.ok(&["purge", "receipt", &id]);
    assert!(gone.contains("absent everywhere: yes"), "{gone}");
}

#[test]
fn a_provider_takes_snapshots_and_gives_them_back_where_there_is_no_store_any_more() {
    let bench = Bench::new(Way::Direct);
    let id = bench.upload("hello.txt", "hello", &[]);
    let config = bench.path("filestore.toml").display().to_string();
    let root = bench.path("bucket").display().to_string();
    bench.write(
        "filestore.toml",
        format!(
            "[[providers]]\ncode = \"bucket\"\nscheme = \"fs\"\noptions.root = {root:?}\n\
             [[backup.destinations]]\nname = \"offsite\"\nprovider = \"bucket\"\n"
        ),
    );

    let made = bench.ok(&["--config", &config, "backup", "create", "--to", "offsite"]);
    assert!(made.contains("copied 1 (5 B), 0 already there"), "{made}");
    let linked =
        bench.run(&["--config", &config, "backup", "create", "--to", "offsite", "--hard-links"]);
    let said = String::from_utf8(linked.stderr).unwrap();
    assert!(linked.status.code() == Some(1) && said.contains("cannot share files"), "{said}");

    // Another machine, which has the configuration.
    let copy = Bench::new(Way::Direct);
    let listed = copy.ok(&["--config", &config, "backup", "list", "--from", "offsite"]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let verified = copy.ok(&["--config", &config, "backup", "verify", "--from", "offsite"]);
    assert!(verified.contains("0 missing, 0 wrong"), "{verified}");
    let unknown = copy.run(&["--config", &config, "backup", "restore", "--all", "--from", "away"]);
    assert_eq!(unknown.status.code(), Some(1));
    let restored =
        copy.ok(&["--config", &config, "backup", "restore", "--all", "--from", "offsite"]);
    assert_eq!(restored, "restored 1 file (5 B), 0 failed\n");
    assert_eq!(copy.ok(&["get", &id, "-o", "-"]), "hello");

    bench.ok(&["--config", &config, "delete", &id]);
    bench.ok(&["--config", &config, "purge", "run", "--now"]);
    bench.ok(&["--config", &config, "backup", "restore", "--file", &id, "--from", "offsite"]);
    assert_eq!(bench.ok(&["get", &id, "-o", "-"]), "hello");
    let pruned =
        bench.ok(&["--config", &config, "backup", "prune", "--from", "offsite", "--keep", "1"]);
    assert_eq!(pruned, "removed 0 snapshots, 0 contents (0 B), 1 kept\n");
}
