//! `metadata copy`, and `backup` with PostgreSQL. What needs a PostgreSQL server runs beside one:
//! `tests/services/postgres/run`.

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
    assert!(said.contains("no target database is named"), "--data-dir is not needed: {said}");
    assert_eq!(bench.count(), 1);
}

/// Takes the password out of the address of the server for tests.
fn address() -> (String, String) {
    let address = std::env::var("FILESTORE_TEST_POSTGRES").unwrap();
    let (scheme, rest) = address.split_once("://").unwrap();
    let (user, host) = rest.split_once('@').unwrap();
    let (user, password) = user.split_once(':').unwrap();
    (format!("{scheme}://{user}@{host}"), password.to_owned())
}

#[test]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
fn a_store_goes_on_in_postgres() {
    let (address, password) = address();
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
fn files_below(directory: &std::path::Path) -> usize {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

#[test]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
fn a_copy_that_is_killed_while_files_move_goes_on_and_loses_none() {
    const FILES: usize = 60;

    let (address, password) = address();
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
        assert!(began.elapsed() < crate::support::HANG, "no files move");
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

#[test]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
fn a_damaged_record_is_named_by_a_copy_and_its_exit_status_says_so() {
    let (address, password) = address();
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

/// Runs commands on a directory of a bench, with a configuration.
struct OnPostgres<'b> {
    bench: &'b Bench,
    address: String,
    password: String,
}

impl OnPostgres<'_> {
    /// Writes a configuration with LOCAL files in `house`, and with records in `schema` if one is named.
    fn config(&self, schema: Option<&str>, house: &str) -> String {
        let metadata = schema.map_or_else(String::new, |schema| {
            format!(
                "metadata = \"{}\"\n[postgres]\nschema = \"{schema}\"\nserver_timeout_secs = 2\n\
                 password = \"${{FILESTORE_DATABASE_PASSWORD}}\"\n",
                self.address
            )
        });
        let root = self.bench.path(house);
        let toml = format!(
            "durability = \"process\"\n{metadata}[local]\nbackend = \"house\"\n[[providers]]\ncode = \"house\"\n\
             scheme = \"fs\"\noptions.root = \"{}\"\n",
            root.display()
        );
        let name = format!("{}-{house}.toml", schema.unwrap_or("sqlite"));
        self.bench.write(&name, toml).display().to_string()
    }

    fn run(&self, dir: &str, config: &str, args: &[&str]) -> std::process::Output {
        let dir = self.bench.path(dir).display().to_string();
        let mut command = filestore(&self.bench.path(""));
        command.args(["--data-dir", &dir, "--config", config]).args(args);
        command.env("FILESTORE_DATABASE_PASSWORD", &self.password).output().unwrap()
    }

    fn ok(&self, dir: &str, config: &str, args: &[&str]) -> String {
        let output = self.run(dir, config, args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }
}

#[test]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
fn a_snapshot_of_a_store_in_postgres_comes_back_into_another_schema_and_into_sqlite() {
    let (address, password) = address();
    let bench = Bench::new(Way::Direct);
    let on = OnPostgres { bench: &bench, address, password };
    let schemas = ["one", "two"].map(|name| format!("cli_{name}_{}", std::process::id()));
    let [one, two] = [on.config(Some(&schemas[0]), "house"), on.config(Some(&schemas[1]), "other")];

    let hello = bench.write("hello.txt", "hello").display().to_string();
    let id = on.ok("data", &one, &["upload", &hello, "--org", "42", "--sub", "docs", "--quiet"]);
    let (id, to) = (id.trim(), format!("{}/", bench.path("backup").display()));
    let made = on.ok("data", &one, &["backup", "create", "--to", &to]);
    assert!(made.contains("1 file"), "{made}");
    on.ok("data", &one, &["backup", "verify", "--from", &to]);
    assert_eq!(
        on.ok("data", &one, &["backup", "list", "--from", &to, "--quiet"]).lines().count(),
        1
    );

    let restore = ["backup", "restore", "--all", "--from", &to];
    let refused = on.run("copy", &one, &restore);
    let said = text(&refused.stderr);
    assert!(!refused.status.success() && said.contains("its table files is not empty"), "{said}");

    let said = on.ok("copy", &two, &restore);
    assert!(said.contains("restored 1 file") && said.contains("moved 1 file"), "{said}");
    // Records and files are elsewhere, so any directory reads them. The first upload makes a new one.
    on.ok("any other", &two, &["upload", &hello, "--org", "43", "--sub", "docs"]);
    assert_eq!(on.ok("any other", &two, &["get", id, "-o", "-"]), "hello");
    assert_eq!(files_below(&bench.path("copy/blobs")), 1, "the marker alone");

    let back = [&restore[..], &["--replace", "--sqlite"]].concat();
    let said = on.ok("back", &one, &back);
    assert!(said.contains("1 compared at their providers"), "{said}");
    let sqlite = on.config(None, "house");
    assert_eq!(on.ok("back", &sqlite, &["get", id, "-o", "-"]), "hello");
    on.ok("back", &sqlite, &["backup", "prune", "--from", &to, "--keep", "1"]);
}
