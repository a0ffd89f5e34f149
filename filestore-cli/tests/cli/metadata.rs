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
