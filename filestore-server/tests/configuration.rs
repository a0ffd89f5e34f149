//! The configuration of the program: checked, printed and told in the log.

#[path = "support/process.rs"]
mod process;

use std::fs;
use std::process::{Command, Stdio};

use filestore_core::FileStore;
use filestore_core::Scope;
use filestore_core::keys::{KeyScope, NewKey};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use process::{command, start, stop, text};

/// Runs the program to its end: exit code, stdout, stderr.
fn run(dir: &TempDir, args: &[&str]) -> (Option<i32>, String, String) {
    let output = command(dir).args(args).output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn write(dir: &TempDir, config: &str) {
    fs::write(dir.path().join("c.toml"), config).unwrap();
}

/// Makes a store in the default data directory, with a key.
async fn make_store_with_key(dir: &TempDir) {
    let store = FileStore::open(dir.path().join("filestore-data")).await.unwrap();
    store.keys().create(NewKey::new("k", Scope::All, [KeyScope::Admin])).await.unwrap();
    store.close().await;
}

#[test]
fn a_configuration_can_be_checked_without_a_start() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "listen = \"127.0.0.1:0\"\n");
    let (code, stdout, stderr) = run(&dir, &["--check-config", "--config", "c.toml"]);
    assert_eq!((code, &*stdout), (Some(0), "the configuration can be used\n"), "{stderr}");
    assert!(!dir.path().join("filestore-data").exists(), "a check makes nothing");
}

#[test]
fn a_check_refuses_what_a_start_refuses_with_the_same_words() {
    let postgres = |rest: &str| format!("metadata = \"postgres://u@127.0.0.1:1/d\"\n{rest}");
    let has_postgres = cfg!(feature = "postgres");
    for (config, why) in [
        ("[[providers]]\ncode = \"eu\"\nscheme = \"s4\"\n", "s4"),
        ("public_url = \"ftp://x\"\n", "public_url"),
        ("public_url = \"https://files.example.org\"\n", "--insecure-no-auth"),
        ("listen = \"0.0.0.0:0\"\n", "--insecure-no-auth"),
        ("cors.allowed_origins = [\"*\"]\n", "--insecure-no-auth"),
        ("first_key_hash_file = \"absent\"\n", "first_key_hash_file absent"),
        (
            "[[providers]]\ncode = \"disk\"\nscheme = \"fs\"\noptions.root = \"/dev/null/files\"\n",
            "the directory /dev/null/files cannot be used",
        ),
        ("listen = \"127.0.0.1:1\"\nmetrics_listen = \"127.0.0.1:1\"\n", "metrics_listen"),
        ("[tls]\ncert = \"absent\"\nkey = \"absent\"\n", "tls.cert"),
        (&postgres(""), if has_postgres { "private directory" } else { "feature postgres" }),
        (
            &postgres("[postgres]\nonly_server = true\nconnections = 1\n"),
            if has_postgres { "at least 2 connections" } else { "feature postgres" },
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        write(&dir, config);
        let check = run(&dir, &["--check-config", "--config", "c.toml"]);
        assert_eq!(check.0, Some(2), "{config}: {}", check.2);
        assert!(check.2.contains(why) && check.1.is_empty(), "{config}: {}", check.2);
        let reason = check.2.lines().last().unwrap_or_default();
        assert!(reason.starts_with("filestore-server: c.toml: "), "{config}: {reason}");
        assert_eq!(reason.matches("c.toml").count(), 1, "{config}: {reason}");
        assert!(!dir.path().join("filestore-data").exists(), "{config}");

        let started = run(&dir, &["--config", "c.toml"]);
        assert_eq!(started.0, Some(2), "{config}: {}", started.2);
        let last = |log: &str| log.lines().last().map(str::to_owned);
        assert_eq!(last(&started.2), last(&check.2), "{config}");
    }
}

#[test]
fn a_refusal_of_a_flag_does_not_name_the_file() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "listen = \"127.0.0.1:0\"\n");
    for flag in [["--listen", "0.0.0.0:0"], ["--public-url", "ftp://x"]] {
        let args = [&["--check-config", "--config", "c.toml"][..], &flag].concat();
        let (code, _, stderr) = run(&dir, &args);
        assert!(code == Some(2) && !stderr.contains("c.toml"), "{flag:?}: {stderr}");
    }
}

#[tokio::test]
async fn a_check_knows_whether_there_are_keys_also_beside_the_server() {
    let dir = tempfile::tempdir().unwrap();
    make_store_with_key(&dir).await;
    let exposed = ["--check-config", "--listen", "0.0.0.0:0"];
    let (code, _, stderr) = run(&dir, &exposed);
    assert_eq!(code, Some(0), "{stderr}");
    write(&dir, "auth = \"none\"\n");
    let (code, _, stderr) = run(&dir, &["--check-config", "--config", "c.toml"]);
    assert!(code == Some(2) && stderr.contains("auth = \"none\""), "{code:?}: {stderr}");

    let (child, _) = start(command(&dir).args(["--listen", "127.0.0.1:0"]));
    let (code, _, stderr) = run(&dir, &exposed);
    assert_eq!(code, Some(0), "{stderr}");
    stop(child, Signal::TERM);
}

#[test]
fn a_hash_of_the_first_key_counts_as_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let mut checked = command(&dir);
    checked.args(["--check-config", "--listen", "0.0.0.0:0"]);
    checked.env("FILESTORE_FIRST_KEY_HASH", "ab".repeat(32));
    let output = checked.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_data_directory_that_a_start_refuses_is_refused_by_a_check_with_the_same_code() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("filestore-data"), "a file").unwrap();
    for data_dir in ["filestore-data", "filestore-data/below"] {
        for args in [&["--check-config"][..], &["--listen", "127.0.0.1:0"]] {
            let (code, _, stderr) = run(&dir, &[&["--data-dir", data_dir][..], args].concat());
            assert_eq!(code, Some(1), "{stderr}");
            assert!(stderr.contains("the data directory is not a directory"), "{stderr}");
        }
    }
}

#[test]
fn an_audit_log_that_a_start_refuses_is_refused_by_a_check_with_the_same_words() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    for path in ["absent/audit", "folder"] {
        write(&dir, &format!("listen = \"127.0.0.1:0\"\naudit_log = \"{path}\"\n"));
        let check = run(&dir, &["--check-config", "--config", "c.toml"]);
        let started = run(&dir, &["--config", "c.toml"]);
        assert_eq!((check.0, started.0), (Some(1), Some(1)), "{path}: {}", check.2);
        assert!(check.2.contains("cannot open the audit log") && check.1.is_empty(), "{}", check.2);
        let last = |log: &str| log.lines().last().map(str::to_owned);
        assert_eq!(last(&check.2), last(&started.2), "{path}");
    }

    write(&dir, "audit_log = \"audit\"\n");
    let (code, _, stderr) = run(&dir, &["--check-config", "--config", "c.toml"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!dir.path().join("audit").exists(), "a check makes nothing");
}

#[test]
fn a_check_and_a_start_warn_of_paths_and_programs_that_do_not_exist() {
    let dir = tempfile::tempdir().unwrap();
    let config = "listen = \"127.0.0.1:0\"\n[[backup.destinations]]\nname = \"a\"\n\
        path = \"/nowhere/backup\"\n[[variants.converters]]\ntypes = [\"application/pdf\"]\n\
        command = [\"no-such-program\", \"{input}\"]\n";
    write(&dir, config);
    let warns = |log: &str| {
        for (key, path) in [
            ("backup.destinations.path", "/nowhere/backup"),
            ("variants.converters.command", "no-such-program"),
        ] {
            let is_said = log
                .lines()
                .any(|line| line.contains("WARN") && line.contains(key) && line.contains(path));
            assert!(is_said, "{key} in {log}");
        }
    };

    let (code, _, stderr) = run(&dir, &["--check-config", "--config", "c.toml"]);
    assert_eq!(code, Some(0), "{stderr}");
    warns(&stderr);
    let (child, _) = start(command(&dir).args(["--config", "c.toml"]));
    warns(&text(&stop(child, Signal::TERM).stderr));
}

/// Lists the files and directories in `dir`, with their sizes and times.
fn listing(dir: &TempDir) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![dir.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            let size = if about.is_file() { about.len() } else { 0 };
            found.push(format!("{} {size} {:?}", path.display(), about.modified().unwrap()));
            if about.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_check_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let hash = "ab".repeat(32);
    fs::write(dir.path().join("hash"), &hash).unwrap();
    let backup = dir.path().join("backup").display().to_string();
    let config = format!(
        "listen = \"127.0.0.1:0\"\naudit_log = \"audit\"\nfirst_key_hash_file = \"hash\"\n\
         [[providers]]\ncode = \"disk\"\nscheme = \"fs\"\noptions.root = \"disk/files\"\n\
         [[providers]]\ncode = \"backend\"\nscheme = \"fs\"\n\
         options.root = \"backend\"\noptions.atomic_write_dir = \"writing\"\n\
         [[backup.destinations]]\nname = \"a\"\npath = \"{backup}\"\n[local]\nbackend = \"backend\"\n"
    );
    write(&dir, &config);
    let check = || {
        let before = listing(&dir);
        let (code, _, stderr) = run(&dir, &["--check-config", "--config", "c.toml"]);
        assert_eq!(code, Some(0), "{stderr}");
        assert_eq!(listing(&dir), before);
        stderr
    };

    let warned = check();
    for root in ["disk/files", "backend"] {
        let warning = warned
            .lines()
            .find(|line| line.contains("providers.options.root") && line.contains(root));
        assert!(
            warning.is_some_and(|line| line.contains("a start creates it")),
            "{root}: {warned}"
        );
    }
    assert!(!dir.path().join("filestore-data").exists());

    make_store_with_key(&dir).await;
    check();
    let (child, _) = start(command(&dir).args(["--config", "c.toml"]));
    stop(child, Signal::TERM);
    let warned = check();
    assert!(!warned.contains("providers.options.root"), "{warned}");
}

#[test]
fn a_check_warns_of_a_certificate_that_ends_soon() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n");
    for (year, said) in [(2000, "has expired"), (4000, "")] {
        let mut wanted = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        wanted.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = wanted.self_signed(&key).unwrap().pem();
        fs::write(dir.path().join("cert.pem"), certificate).unwrap();
        fs::write(dir.path().join("key.pem"), key.serialize_pem()).unwrap();

        let (code, _, stderr) = run(&dir, &["--check-config", "--config", "c.toml"]);
        assert_eq!(code, Some(0), "{stderr}");
        assert_eq!(stderr.contains("tls.cert"), !said.is_empty(), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
}

#[test]
fn the_merged_configuration_is_printed_without_secrets_and_can_be_used() {
    let dir = tempfile::tempdir().unwrap();
    write(
        &dir,
        "data_dir = \"from-file\"\nquota_files = 7\n[[providers]]\ncode = \"eu\"\nscheme = \"s3\"\n\
         options.bucket = \"files\"\noptions.secret_access_key = \"${SECRET}\"\n",
    );
    let mut printing = command(&dir);
    printing.args(["--print-config", "--config", "c.toml", "--listen", "127.0.0.1:7"]);
    printing.env("SECRET", "hush").env("FILESTORE_DATA_DIR", "from-environment");
    let output = printing.output().unwrap();
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!printed.contains("hush"), "{printed}");
    for line in [
        "listen = \"127.0.0.1:7\"",
        "data_dir = \"from-environment\"",
        "quota_files = 7",
        "secret_access_key = \"***\"",
        "bucket = \"files\"",
        "max_file_size = 1073741824",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line} in {printed}");
    }
    assert!(!dir.path().join("from-environment").exists());

    write(&dir, &printed);
    let (code, again, stderr) = run(&dir, &["--print-config", "--config", "c.toml"]);
    assert_eq!((code, again), (Some(0), printed), "{stderr}");
}

#[test]
fn the_log_says_what_was_started() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "listen = \"127.0.0.1:0\"\n");
    let (child, line) = start(command(&dir).args(["--config", "c.toml", "--log-format", "json"]));
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let log = text(&stop(child, Signal::TERM).stderr);

    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said = lines.map(|line| line["fields"].clone());
    let fields = said.into_iter().find(|fields| fields["message"] == "the server started");
    let fields = fields.unwrap_or_else(|| panic!("{log}"));
    assert_eq!(fields["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(fields["config"], "c.toml");
    assert_eq!(fields["listen"], url);
    assert!(fields["schema"].as_str().unwrap().starts_with("SQLite "), "{fields}");
}

#[test]
fn a_limit_of_open_files_is_a_warning_only_if_few_connections_are_left() {
    for (limit, level) in [(512, "WARN"), (4096, "INFO")] {
        let dir = tempfile::tempdir().unwrap();
        let mut limited = Command::new("sh");
        let script = format!("ulimit -n {limit}; exec \"$0\" --listen 127.0.0.1:0");
        limited.args(["-c", &script, env!("CARGO_BIN_EXE_filestore-server")]);
        limited.current_dir(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (child, _) = start(&mut limited);
        let log = text(&stop(child, Signal::TERM).stderr);
        let line = log.lines().find(|line| line.contains("limit of open files"));
        assert!(line.is_some_and(|line| line.contains(level)), "{limit}: {log}");
    }
}
