//! The binary: its output, its settings, its exit codes.

#[path = "support/hang.rs"]
mod hang;
#[path = "support/process.rs"]
mod process;
mod support;

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use filestore_core::FileStore;
use filestore_core::NewUpload;
use filestore_core::{Durability, StoreConfig};
use reqwest::multipart::{Form, Part};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use process::{command, start, stop, text};

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
        (
            &["--listen", "127.0.0.1:0", "--public-url", "https://files.example.org"],
            "--insecure-no-auth",
        ),
        (&["--unknown"], "--unknown"),
    ] {
        let output = command(&dir).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(why), "{args:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

/// Insists on files of mode 0600 in directories of mode 0700; counts the files. Sockets go by their directory.
fn private_files(directory: &Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let found = path.symlink_metadata().unwrap();
        let expected = if found.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(found.permissions().mode() & 0o777, expected, "{}", path.display());
        count += if found.is_dir() { private_files(&path) } else { 1 };
    }
    count
}

#[tokio::test]
async fn all_that_a_server_makes_is_for_its_account_alone_whatever_the_mask_was() {
    let dir = tempfile::tempdir().unwrap();
    for place in ["disk", "kept"] {
        std::fs::create_dir(dir.path().join(place)).unwrap();
    }
    let config = format!(
        "audit_log = \"audit.log\"\n[[providers]]\ncode = \"disk\"\nscheme = \"fs\"\noptions.root = \"{0}/disk\"\n\
         [[backup.destinations]]\nname = \"kept\"\npath = \"{0}/kept\"\n",
        dir.path().display()
    );
    std::fs::write(dir.path().join("c.toml"), config).unwrap();

    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "umask 022; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_filestore-server")]);
    shell.args(["--config", "c.toml", "--listen", "127.0.0.1:0"]);
    shell.current_dir(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (child, line) = start(&mut shell);
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let client = support::http_client().build().unwrap();

    let binding = serde_json::json!({
        "organizationId": 7, "organizationName": "seven", "storageProvider": "disk", "syncEnabled": false,
    });
    let bindings = format!("{url}/api/v1/organization-storage-bindings/create");
    let made = client.post(bindings).body(binding.to_string());
    let made = made.header("content-type", "application/json").send().await.unwrap();
    assert_eq!(made.status(), 201);
    for organization in ["7", "8"] {
        let form = Form::new()
            .text("organization_id", organization)
            .text("sub_system", "s")
            .part("file", Part::bytes(b"bytes".to_vec()));
        let sent = client.post(format!("{url}/api/v1/files/upload")).multipart(form).send().await;
        assert_eq!(sent.unwrap().status(), 201);
    }
    let backup =
        client.post(format!("{url}/api/v1/admin/backups/kept/create")).send().await.unwrap();
    let (status, said) = (backup.status(), backup.text().await.unwrap());
    assert!(status.is_success(), "{status}: {said}");

    let audit = std::fs::metadata(dir.path().join("audit.log")).unwrap();
    assert_eq!(audit.permissions().mode() & 0o777, 0o600);
    assert!(private_files(&dir.path().join("disk")) > 0);
    assert!(private_files(&dir.path().join("kept")) > 0);
    assert!(private_files(&dir.path().join("filestore-data")) > 0);
    stop(child, Signal::TERM);
}

#[test]
fn a_data_directory_that_others_may_write_to_is_refused_and_one_that_they_read_is_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("filestore-data");
    std::fs::create_dir(&data).unwrap();
    let set = |mode| std::fs::set_permissions(&data, Permissions::from_mode(mode)).unwrap();

    for mode in [0o777, 0o1777, 0o707] {
        set(mode);
        let output = command(&dir).args(["--listen", "127.0.0.1:0"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{mode:o}");
        let said = text(&output.stderr);
        assert!(said.contains("others may write") && said.contains("chmod 700"), "{said}");
        assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0);
    }
    set(0o755);
    let (child, _) = start(command(&dir).args(["--listen", "127.0.0.1:0"]));
    let said = text(&stop(child, Signal::TERM).stderr);
    assert!(said.contains("others may look into the data directory"), "{said}");
    set(0o700);
    let (child, _) = start(command(&dir).args(["--listen", "127.0.0.1:0"]));
    let said = text(&stop(child, Signal::TERM).stderr);
    assert!(!said.contains("others may"), "{said}");
}

#[test]
fn root_does_not_start_on_the_directory_of_another_account() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a directory to another account");
        return;
    }

    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("filestore-data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
    chown(&data, Some(54_321), None).unwrap();
    let output = command(&dir).args(["--listen", "127.0.0.1:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("account 54321") && said.contains("sudo -u '#54321'"), "{said}");
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0);
}

#[test]
fn a_configuration_that_others_may_write_to_is_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    std::fs::write(&file, "listen = \"127.0.0.1:0\"\n").unwrap();
    for (mode, is_warned) in [(0o666, true), (0o644, false)] {
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let checked =
            command(&dir).args(["--check-config", "--config", "c.toml"]).output().unwrap();
        assert_eq!(checked.status.code(), Some(0));
        let said = text(&checked.stderr);
        assert_eq!(said.contains("the configuration is trusted"), is_warned, "{mode:o}: {said}");
    }
}

#[test]
fn what_is_refused_is_refused_before_the_address_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();

    for (args, why) in [
        (&["--public-url", "https://files.example.org"][..], "--insecure-no-auth"),
        (&["--public-url", "ftp://x"], "public_url"),
    ] {
        let output = command(&dir).args(["--listen", &taken]).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(why), "{args:?}: {}", text(&output.stderr));
    }

    // Nothing else is wrong.
    let output = command(&dir).args(["--listen", &taken]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(&taken), "{}", text(&output.stderr));
}

#[test]
fn the_check_of_a_configuration_reads_allowed_headers() {
    let dir = tempfile::tempdir().unwrap();
    for (header, code) in [("X-Tenant", 0), ("X Tenant", 2), ("*", 2)] {
        let text_of_file = format!("[cors]\nallowed_headers = [\"{header}\"]\n");
        std::fs::write(dir.path().join("c.toml"), text_of_file).unwrap();
        let output = command(&dir).args(["--check-config", "--config", "c.toml"]).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{header}: {said}");
        assert_eq!(said.contains("cors.allowed_headers"), code == 2, "{header}: {said}");
    }
}

/// Sends SIGHUP and waits until the log says what came of it.
fn reload(child: &Child, log: &mut impl BufRead) -> String {
    kill_process(Pid::from_child(child), Signal::HUP).unwrap();
    let mut line = String::new();
    while !line.contains("SIGHUP") {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "the server ended");
    }
    line
}

#[tokio::test]
async fn a_hangup_takes_a_changed_configuration_into_use_and_a_bad_one_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let write = |text: &str| std::fs::write(dir.path().join("c.toml"), text).unwrap();
    write("listen = \"127.0.0.1:0\"\n");
    let (mut child, line) = start(command(&dir).args(["--config", "c.toml"]));
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let upload = || upload_of(url(&line), vec![0; 5]);
    let providers = format!("{}/api/v1/storage-providers", url(&line));
    assert_eq!(upload().await, 201);

    write(
        "listen = \"127.0.0.1:0\"\n[limits]\nmax_file_size = 4\n\
         [[providers]]\ncode = \"mem\"\nscheme = \"memory\"\n",
    );
    assert!(reload(&child, &mut log).contains("read again"));
    assert_eq!(upload().await, 413);
    let shown = client().get(&providers).send().await.unwrap().text().await.unwrap();
    assert!(shown.contains("\"mem\""), "{shown}");

    write("[limits]\nmax_file_siz = 9\n");
    assert!(reload(&child, &mut log).contains("stays as it was"));
    assert_eq!(upload().await, 413);
    let _ = stop(child, Signal::TERM);
}

/// Uploads bytes and returns the status.
async fn upload_of(url: &str, bytes: Vec<u8>) -> u16 {
    let form = Form::new()
        .text("organization_id", "42")
        .text("sub_system", "docs")
        .part("file", Part::bytes(bytes));
    let request = client().post(format!("{url}/api/v1/files/upload")).multipart(form);
    request.send().await.unwrap().status().as_u16()
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
    let (child, line) = start(command(&dir).args(["--listen", "127.0.0.1:0"]));

    // All but the first pages, which hold the schema and the roots of the tables.
    let raw = std::fs::OpenOptions::new().write(true).open(database).unwrap();
    let pages = raw.metadata().unwrap().len() / 4096;
    assert!(pages > 60, "{pages}");
    for page in 40..pages {
        raw.write_all_at(&[0xA5; 4096], page * 4096).unwrap();
    }

    for id in ids {
        // Internal errors until the process ends, then no answer.
        let _ = client().get(format!("{}/api/v1/files/{id}", url(&line))).send().await;
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(70), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("the database must be opened again"));
}

/// Stops a server, which ends whatever hangs.
fn ends(child: Child) -> Output {
    let (done, over) = std::sync::mpsc::channel();
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::TERM).unwrap();
    std::thread::spawn(move || done.send(child.wait_with_output().unwrap()));
    over.recv_timeout(hang::HANG).unwrap_or_else(|_| {
        kill_process(pid, Signal::KILL).unwrap();
        panic!("it still runs {:?} after SIGTERM", hang::HANG);
    })
}

/// Uploads a file of organization 7, and returns its record.
async fn upload_to(url: &str) -> serde_json::Value {
    let file = Part::bytes(b"bytes".to_vec()).file_name("a.bin");
    let form =
        Form::new().text("organization_id", "7").text("sub_system", "docs").part("file", file);
    let reply = client().post(format!("{url}/api/v1/files/upload")).multipart(form).send();
    let reply = reply.await.unwrap();
    let (status, text) = (reply.status(), reply.text().await.unwrap());
    assert_eq!(status, 201, "{text}");
    serde_json::from_str(&text).unwrap()
}

async fn bind_to(url: &str, provider: &str) {
    let binding = format!(
        r#"{{"organizationId":7,"organizationName":"Acme","storageProvider":"{provider}","syncEnabled":false}}"#
    );
    let path = "/api/v1/organization-storage-bindings/create";
    let request = client().post(format!("{url}{path}")).header("content-type", "application/json");
    assert_eq!(request.body(binding).send().await.unwrap().status(), 201);
}

/// Starts a server whose provider `disk` keeps its objects in `dir/disk`.
fn start_with_a_disk(dir: &TempDir) -> (Child, String) {
    let root = dir.path().join("disk");
    std::fs::create_dir_all(&root).unwrap();
    let config = format!(
        "check_providers = false\n[http]\nstop_secs = 1\n[[providers]]\ncode = \"disk\"\n\
         scheme = \"fs\"\noptions.root = \"{}\"\n[lifetimes]\npurge_grace_secs = 0\n",
        root.display()
    );
    std::fs::write(dir.path().join("c.toml"), config).unwrap();
    start(command(dir).args(["--config", "c.toml", "--listen", "127.0.0.1:0"]))
}

/// Puts a pipe that nobody writes to in the place of an object: to open it hangs for ever, as a file
/// of a dead NFS server does.
fn hang(object: &std::path::Path) {
    std::fs::remove_file(object).unwrap();
    assert!(Command::new("mkfifo").arg(object).status().unwrap().success());
}

#[tokio::test]
async fn a_provider_that_hangs_does_not_keep_the_process_from_ending() {
    let dir = tempfile::tempdir().unwrap();
    let (child, line) = start_with_a_disk(&dir);
    bind_to(url(&line), "disk").await;
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let record = upload_to(url(&line)).await;
        assert_eq!(record["storage_provider"], "disk");
        hang(&dir.path().join("disk").join(record["file_path"].as_str().unwrap()));
        let content =
            format!("{}/api/v1/files/{}", url(&line), record["file_id"].as_str().unwrap());
        readers.spawn(client().get(content).send());
    }
    // A deleted file as well: its removal is the purge worker's to wait for.
    let doomed = upload_to(url(&line)).await;
    let id = doomed["file_id"].as_str().unwrap();
    hang(&dir.path().join("disk").join(doomed["file_path"].as_str().unwrap()));
    let deleted = client().delete(format!("{}/api/v1/files/{id}", url(&line))).send().await;
    assert_eq!(deleted.unwrap().status(), 200);
    // LOCAL is served meanwhile, after the readers hang.
    let ready = client().get(format!("{}/api/v1/health-checks/ready", url(&line))).send().await;
    assert_eq!(ready.unwrap().status(), 200);

    let output = ends(child);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[tokio::test]
async fn a_reader_that_takes_nothing_does_not_keep_the_process_from_ending() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("c.toml"), "[http]\nstop_secs = 1\n").unwrap();
    let (child, line) =
        start(command(&dir).args(["--config", "c.toml", "--listen", "127.0.0.1:0"]));
    let file = Part::bytes(vec![7; 32 << 20]).file_name("a.bin");
    let form =
        Form::new().text("organization_id", "7").text("sub_system", "docs").part("file", file);
    let upload = client().post(format!("{}/api/v1/files/upload", url(&line))).multipart(form);
    let record: serde_json::Value =
        serde_json::from_str(&upload.send().await.unwrap().text().await.unwrap()).unwrap();

    // The head of the reply arrives, and none of its body is taken.
    let content = format!("{}/api/v1/files/{}", url(&line), record["file_id"].as_str().unwrap());
    let held = client().get(content).send().await.unwrap();
    assert_eq!(held.status(), 200);

    let output = ends(child);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    drop(held);
}

#[tokio::test]
async fn what_is_shipped_is_closed_from_its_first_start_and_names_the_command_that_opens_it() {
    let dir = tempfile::tempdir().unwrap();
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/filestore.toml");
    let mut packaged = command(&dir);
    packaged.args(["--config", shipped, "--listen", "127.0.0.1:0", "--data-dir", "data"]);
    let (child, line) = start(&mut packaged);

    let files = client().get(format!("{}/api/v1/files", url(&line))).send().await.unwrap();
    assert_eq!(files.status(), 401);
    let healthy = client().get(format!("{}/api/v1/health-checks", url(&line))).send().await;
    assert_eq!(healthy.unwrap().status(), 200);
    let log = text(&stop(child, Signal::TERM).stderr);
    assert!(log.contains("filestore --data-dir data key create --org '*' --scope admin"), "{log}");
}

#[tokio::test]
async fn the_log_shows_what_turns_or_breaks_text() {
    for (format, shown) in [("text", "\\u{202e}\\u{2028}x"), ("json", "\\u202e\\u2028x")] {
        let dir = tempfile::tempdir().unwrap();
        let mut logging = command(&dir);
        logging.args(["--listen", "127.0.0.1:0", "--log-format", format]);
        logging.env("FILESTORE_LOG", "filestore_server::access=debug");
        let (child, line) = start(&mut logging);

        let address = url(&line).strip_prefix("http://").unwrap().to_owned();
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let hostile = "GET /\u{9b}31m\u{202e}\u{2028}x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        socket.write_all(hostile.as_bytes()).await.unwrap();
        socket.read_to_end(&mut Vec::new()).await.unwrap();

        let log = text(&stop(child, Signal::TERM).stderr);
        assert!(log.contains(shown), "{format}: {log}");
        assert!(!log.contains(['\u{9b}', '\u{202e}', '\u{2028}']), "{format}: {log}");
    }
}

#[tokio::test]
async fn log_lines_about_a_request_name_its_trace_and_no_query() {
    let dir = tempfile::tempdir().unwrap();
    let mut logging = command(&dir);
    logging.args(["--listen", "127.0.0.1:0", "--log-format", "json"]);
    logging.env("FILESTORE_LOG", "filestore_server::access=debug");
    let (child, line) = start(&mut logging);

    let asked = client().get(format!("{}/api/v1/health-checks?sig=s3cret", url(&line)));
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let reply = asked.header("traceparent", trace).send().await.unwrap();
    let request_id = reply.headers()["x-request-id"].to_str().unwrap().to_owned();

    let log = text(&stop(child, Signal::TERM).stderr);
    assert!(!log.contains("s3cret"), "{log}");
    let entry = log.lines().find(|line| line.contains(&request_id)).unwrap();
    let fields = &serde_json::from_str::<serde_json::Value>(entry).unwrap()["fields"];
    assert_eq!(fields["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(fields["parent_id"], "00f067aa0ba902b7");
    assert_eq!((&fields["route"], &fields["status"]), (&"/health-checks".into(), &200.into()));
}
