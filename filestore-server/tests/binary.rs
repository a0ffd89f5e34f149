//! The binary: its output, its settings, its exit codes.

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Output, Stdio};

use filestore_core::FileStore;
use filestore_core::NewUpload;
use filestore_core::{Durability, StoreConfig};
use reqwest::multipart::{Form, Part};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

fn command(dir: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_filestore-server"));
    for name in
        ["FILESTORE_LISTEN", "FILESTORE_DATA_DIR", "FILESTORE_CONFIG", "FILESTORE_LOG", "RUST_LOG"]
    {
        command.env_remove(name);
    }
    command.current_dir(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts the server and reads the line with its address.
fn start(command: &mut Command) -> (Child, String) {
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

fn stop(child: Child, signal: Signal) -> Output {
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn it_says_where_it_listens_and_a_signal_ends_it_well() {
    let dir = tempfile::tempdir().unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let (child, line) = start(command(&dir).args(["--listen", "127.0.0.1:0"]));
        assert!(line.starts_with("filestore-server listening on http://127.0.0.1:"), "{line}");
        assert!(line.ends_with(" (data in ./filestore-data)\n"), "{line}");
        let output = stop(child, signal);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }

    assert!(dir.path().join("filestore-data").is_dir());
}

#[test]
fn flags_beat_the_environment_which_beats_the_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("c.toml"),
        "listen = \"127.0.0.1:1\"\ndata_dir = \"from-file\"\n",
    )
    .unwrap();

    let (child, line) = start(
        command(&dir)
            .args(["--config", "c.toml", "--listen", "127.0.0.1:0"])
            .env("FILESTORE_LISTEN", "127.0.0.2:0")
            .env("FILESTORE_DATA_DIR", "from-environment"),
    );
    assert!(
        line.contains("http://127.0.0.1:") && line.contains("(data in from-environment)"),
        "{line}"
    );

    stop(child, Signal::TERM);
    let (child, line) = start(
        command(&dir).env("FILESTORE_CONFIG", "c.toml").env("FILESTORE_LISTEN", "127.0.0.2:0"),
    );
    assert!(line.contains("http://127.0.0.2:") && line.contains("(data in from-file)"), "{line}");
    stop(child, Signal::TERM);
}

#[test]
fn what_cannot_be_used_is_exit_2_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("c.toml"), "lisen = \"127.0.0.1:0\"\n").unwrap();

    for (args, why) in [
        (&["--listen", "0.0.0.0:0"][..], "--insecure-no-auth"),
        (&["--listen", "nonsense"], "nonsense"),
        (&["--config", "c.toml"], "lisen"),
        (&["--config", "absent.toml"], "absent.toml"),
        (&["--public-url", "ftp://x"], "public_url"),
        (&["--unknown"], "--unknown"),
    ] {
        let output = command(&dir).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(why), "{args:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_directory_in_use_is_exit_1() {
    let dir = tempfile::tempdir().unwrap();
    let (child, _) = start(command(&dir).args(["--listen", "127.0.0.1:0"]));
    let second = command(&dir).args(["--listen", "127.0.0.1:0"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1), "{}", text(&second.stderr));
    stop(child, Signal::TERM);
}

/// Finds the address in the line that [`start`] read.
fn url(line: &str) -> &str {
    line.split_whitespace().find(|word| word.starts_with("http://")).unwrap()
}

fn client() -> reqwest::Client {
    support::http_client().build().unwrap()
}

#[tokio::test]
async fn an_upload_beyond_the_limit_of_file_sizes_is_507_and_the_server_lives() {
    let dir = tempfile::tempdir().unwrap();
    let mut limited = Command::new("sh");
    // 2 or 4 MiB: shells differ in their unit.
    limited.args(["-c", "ulimit -f 4096; exec \"$0\" --listen 127.0.0.1:0"]);
    limited.arg(env!("CARGO_BIN_EXE_filestore-server"));
    limited.current_dir(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (child, line) = start(&mut limited);
    let upload = async |bytes: usize| {
        let file = Part::bytes(vec![7; bytes]).file_name("a.bin");
        let form =
            Form::new().text("organization_id", "7").text("sub_system", "docs").part("file", file);
        client()
            .post(format!("{}/api/v1/files/upload", url(&line)))
            .multipart(form)
            .send()
            .await
            .unwrap()
    };
    assert_eq!(upload(6 << 20).await.status(), 507);
    assert_eq!(upload(1000).await.status(), 201);

    let output = stop(child, Signal::TERM);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));

    let staging = dir.path().join("filestore-data/staging");
    assert_eq!(
        std::fs::read_dir(staging).unwrap().count(),
        0,
        "nothing is left of the one that failed"
    );
}

#[tokio::test]
async fn a_broken_database_ends_the_process_with_exit_70() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("filestore-data");
    let mut config = StoreConfig::default();
    config.durability = Durability::Process;
    let store = FileStore::builder(&path).config(config).open().await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..500 {
        let new = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
        ids.push(store.upload(new, &b"x"[..]).await.unwrap().file_id);
    }
    let database = store.data_dir().database();
    store.close().await;
    drop(store);
    // All but the first pages, which hold the schema and the roots of the tables.
    let raw = std::fs::OpenOptions::new().write(true).open(database).unwrap();
    let pages = raw.metadata().unwrap().len() / 4096;
    assert!(pages > 60, "{pages}");
    for page in 40..pages {
        raw.write_all_at(&[0xA5; 4096], page * 4096).unwrap();
    }

    let (child, line) = start(command(&dir).args(["--listen", "127.0.0.1:0"]));
    for id in ids {
        // Internal errors until the process ends, then no answer.
        let _ = client().get(format!("{}/api/v1/files/{id}", url(&line))).send().await;
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(70), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("the database must be opened anew"));
}
