//! `metadata copy`. What needs a PostgreSQL server runs beside one: `tests/services/postgres/run`.

use crate::support::{Bench, Way, filestore, text};

#[test]
fn what_is_missing_or_unsafe_is_said_before_anything_is_touched() {
    let bench = Bench::new(Way::Direct);
    bench.upload("hello.txt", "hello", &[]);
    let from = format!("sqlite:{}", bench.data_dir().display());

    let said = bench.fails(2, &["metadata", "copy", "--from", &from]);
    assert!(said.contains("--to postgres://"), "{said}");
    let said = bench.fails(2, &["metadata", "copy", "--from", "dir", "--to", "postgres://u@h/d"]);
    assert!(said.contains("sqlite:DIRECTORY"), "{said}");
    let secret = "postgres://u:geheim@127.0.0.1/d";
    let said = bench.fails(2, &["metadata", "copy", "--from", &from, "--to", secret]);
    assert!(said.contains("--password-file") && !said.contains("geheim"), "{said}");
    let config = bench.write("filestore.toml", "").display().to_string();
    let alone = filestore(&bench.path(""))
        .args(["metadata", "copy", "--from", &from, "--config", &config])
        .output();
    let said = text(&alone.unwrap().stderr);
    assert!(said.contains("no database is named"), "--data-dir is not needed: {said}");
    assert_eq!(bench.count(), 1);
}

#[cfg(not(feature = "postgres"))]
#[test]
fn without_the_feature_the_refusal_names_it() {
    let bench = Bench::new(Way::Direct);
    let from = format!("sqlite:{}", bench.data_dir().display());
    let said = bench.fails(2, &["metadata", "copy", "--from", &from, "--to", "postgres://u@h/d"]);
    assert!(said.contains("without the feature postgres"), "{said}");
}

/// Takes the password out of the address of the server for tests.
#[cfg(feature = "postgres")]
fn address() -> Option<(String, String)> {
    let address = std::env::var("FILESTORE_TEST_POSTGRES").ok()?;
    let (scheme, rest) = address.split_once("://").unwrap();
    let (user, host) = rest.split_once('@').unwrap();
    let (user, password) = user.split_once(':').unwrap();
    Some((format!("{scheme}://{user}@{host}"), password.to_owned()))
}

#[cfg(feature = "postgres")]
#[test]
fn a_store_goes_on_in_postgres() {
    let Some((address, password)) = address() else { return };
    let bench = Bench::new(Way::Direct);
    let id = bench.upload("hello.txt", "hello", &[]);
    let schema = format!("cli_{}", std::process::id());
    let toml = format!(
        "durability = \"process\"\nmetadata = \"{address}\"\n[postgres]\nschema = \"{schema}\"\n\
         password = \"${{FILESTORE_DATABASE_PASSWORD}}\"\nonly_server = true\n"
    );
    let config = bench.write("filestore.toml", toml).display().to_string();
    let from = format!("sqlite:{}", bench.data_dir().display());
    let on_postgres = |args: &[&str]| {
        let mut command = bench.command(&[args, &["--config", &config]].concat());
        let output = command.env("FILESTORE_DATABASE_PASSWORD", &password).output().unwrap();
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|o| String::from_utf8(o).unwrap());
        assert!(output.status.success(), "{args:?}: {stderr}");
        stdout
    };

    let copied =
        on_postgres(&["metadata", "copy", "--from", &from, "--to", &address, "--schema", &schema]);
    assert!(copied.contains("the records of 1 file"), "{copied}");
    let said = bench.fails(2, &["get", &id, "-o", "-"]);
    assert!(said.contains("PostgreSQL"), "{said}");
    assert_eq!(on_postgres(&["get", &id, "-o", "-"]), "hello");
    on_postgres(&["key", "create", "--org", "*", "--scope", "admin", "--name", "first"]);
}

/// Counts the files below a directory; none if it is not there.
#[cfg(feature = "postgres")]
fn files_below(directory: &std::path::Path) -> usize {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

#[cfg(feature = "postgres")]
#[test]
fn a_copy_that_is_killed_while_files_move_goes_on_and_loses_none() {
    const FILES: usize = 60;

    let Some((address, password)) = address() else { return };
    let bench = Bench::new(Way::Direct);
    let uploaded: Vec<_> = (0..FILES)
        .map(|number| bench.upload(&format!("{number}.txt"), format!("file {number}"), &[]))
        .collect();

    let (schema, house) = (format!("cli_killed_{}", std::process::id()), bench.path("house"));
    let toml = format!(
        "metadata = \"{address}\"\n[postgres]\nschema = \"{schema}\"\nserver_timeout_secs = 2\n\
         password = \"${{FILESTORE_DATABASE_PASSWORD}}\"\n[sync]\nconcurrency = 1\n[local]\nbackend = \"house\"\n\
         [[providers]]\ncode = \"house\"\nscheme = \"fs\"\noptions.root = \"{}\"\n",
        house.display()
    );
    let config = bench.write("filestore.toml", toml).display().to_string();
    let from = format!("sqlite:{}", bench.data_dir().display());
    // One that can be killed.
    let mut copy = std::process::Command::new(assert_cmd::cargo::cargo_bin!("filestore"));
    copy.args(["metadata", "copy", "--from", &from, "--config", &config]);
    copy.env("FILESTORE_DATABASE_PASSWORD", &password);

    let mut first = copy.stdout(std::process::Stdio::null()).spawn().unwrap();
    let began = std::time::Instant::now();
    while files_below(&house) < FILES / 5 {
        assert!(first.try_wait().unwrap().is_none(), "it ended before it could be killed");
        assert!(began.elapsed().as_secs() < 120, "no files move");
        std::thread::yield_now();
    }
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(files_below(&house) < FILES, "all had moved before it was killed");

    let output = copy.stdout(std::process::Stdio::piped()).output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains("to the backend, 0 failed"), "{said}");
    assert_eq!(files_below(&bench.data_dir().join("blobs")), 1, "the marker alone");

    // From the backend alone, as nothing is left in the directory.
    let data = bench.data_dir().display().to_string();
    for (number, id) in uploaded.iter().enumerate() {
        let output = filestore(&bench.path(""))
            .args(["--data-dir", &data, "--config", &config, "get", id, "-o", "-"])
            .env("FILESTORE_DATABASE_PASSWORD", &password)
            .output()
            .unwrap();
        assert_eq!(text(&output.stdout), format!("file {number}"), "{}", text(&output.stderr));
    }
}

#[cfg(feature = "postgres")]
#[test]
fn a_damaged_record_is_named_by_a_copy_and_its_exit_status_says_so() {
    let Some((address, password)) = address() else { return };
    let bench = Bench::new(Way::Direct);
    bench.upload("sound.txt", "sound", &[]);
    let id = bench.upload("damaged.txt", "damaged", &[]);

    let (schema, house) = (format!("cli_damaged_{}", std::process::id()), bench.path("house"));
    let toml = format!(
        "durability = \"process\"\nmetadata = \"{address}\"\n[postgres]\nschema = \"{schema}\"\n\
         password = \"${{FILESTORE_DATABASE_PASSWORD}}\"\n[local]\nbackend = \"house\"\n\
         [[providers]]\ncode = \"house\"\nscheme = \"fs\"\noptions.root = \"{}\"\n",
        house.display()
    );
    let config = bench.write("filestore.toml", toml).display().to_string();
    let from = format!("sqlite:{}", bench.data_dir().display());
    let copy = |more: &[&str]| {
        filestore(&bench.path(""))
            .args(["metadata", "copy", "--from", &from, "--config", &config])
            .args(more)
            .env("FILESTORE_DATABASE_PASSWORD", &password)
            .output()
            .unwrap()
    };
    let first = copy(&["--leave-files"]);
    assert!(first.status.success(), "{}", text(&first.stderr));

    let psql = std::env::var("FILESTORE_TEST_POSTGRES_PROGRAMS").unwrap() + "/psql";
    let harm = format!("UPDATE {schema}.files SET organization_id = 'a b' WHERE file_id = '{id}'");
    let server = std::env::var("FILESTORE_TEST_POSTGRES").unwrap();
    let harmed = std::process::Command::new(psql).args(["-X", "-q", "-c", &harm, &server]).output();
    assert_eq!(text(&harmed.unwrap().stderr), "");

    let output = copy(&["--json"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("cannot move file {id}")), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["moved_files"], &report["failed"]), (&1.into(), &1.into()), "{report}");
    assert_eq!(report["damaged"][0]["row"], format!("file {id}"), "{report}");

    let output = copy(&[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("1 failed"), "{}", text(&output.stdout));
}
