//! Servers and names that mean harm: what they say stays text.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use crate::support::{Bench, Way, filestore, text};

const ID: &str = "01JD8QZ4T6X3M2V9B7K5N1R0CE";

/// A server that answers each request with what `answer` makes of its first line, one per connection.
fn server(answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let line = read_head(&stream);
            let _ = (&stream).write_all(answer(&line).as_bytes());
        }
    });
    url
}

/// Reads a request without a body; returns its first line.
fn read_head(stream: &TcpStream) -> String {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    first
}

fn ok(headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

fn record(file_id: &str, original_name: &str) -> String {
    serde_json::json!({
        "file_id": file_id, "original_name": original_name, "mime_type": "text/plain",
        "file_size": 5, "ext": "txt", "file_path": "42/s/2026/11/21/x", "sync_status": "NONE",
        "updated_at": "2026-11-21T08:15:30.123Z", "status": "READY", "storage_location": "LOCAL",
        "storage_provider": "LOCAL", "organization_id": "42", "sub_system": "s",
        "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        "width": null, "height": null, "version": 1, "created_at": "2026-11-21T08:15:30.123Z",
        "expires_at": null, "purge_status": null,
    })
    .to_string()
}

/// Serves "hello" under a record of these names.
fn file_server(file_id: &str, original_name: &str) -> String {
    let record = record(file_id, original_name);
    server(move |line| {
        if line.contains("/info ") {
            return ok("Content-Type: application/json\r\n", &record);
        }
        let digest = "Repr-Digest: sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:\r\n";
        ok(digest, "hello")
    })
}

#[test]
fn a_download_goes_into_its_directory_whatever_the_server_calls_the_file() {
    let home = tempfile::tempdir().unwrap();
    let (work, outside) = (home.path().join("work"), home.path().join("victim"));
    std::fs::create_dir(&work).unwrap();

    for file_id in [outside.to_str().unwrap(), "../victim", "-o"] {
        for original_name in ["..", "", "a/.."] {
            let url = file_server(file_id, original_name);
            let output =
                filestore(&work).args(["get", ID, "--force", "--server", &url]).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
            assert!(!outside.exists(), "{file_id} {original_name}");
            assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0);
        }
    }

    let url = file_server(ID, "..");
    filestore(&work).args(["get", ID, "--server", &url]).assert().success();
    assert_eq!(
        std::fs::read(work.join(ID)).unwrap(),
        b"hello",
        "named by the id that was asked for"
    );
}

#[test]
fn a_servers_words_do_not_command_the_terminal() {
    let work = tempfile::tempdir().unwrap();
    let url = server(|_| {
        let problem = serde_json::json!({
            "type": "about:blank", "title": "t", "status": 404, "code": "invalid_field",
            "detail": "gone\u{1b}]0;owned\u{7}", "field": "a\u{9b}31m", "allowed": ["\u{1b}[2J"],
            "instance": "urn:request:R1", "request_id": "R1",
        })
        .to_string();
        let length = problem.len();
        format!(
            "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Type: application/problem+json\r\n\
             Content-Length: {length}\r\n\r\n{problem}"
        )
    });

    for form in [&[][..], &["--json"], &["--quiet"]] {
        let args = [&["info", ID, "--server", &url][..], form].concat();
        let output = filestore(work.path()).args(args).output().unwrap();
        let said = text(&output.stderr);
        assert!(said.contains("gone"), "{said}");
        assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{said:?}");
    }
}

#[test]
fn ids_that_would_be_options_of_the_next_command_are_not_listed() {
    let work = tempfile::tempdir().unwrap();
    let page = format!(
        r#"{{"items":[{},{}],"next_cursor":"\u001b]0;owned\u0007"}}"#,
        record(ID, "a.txt"),
        record("--data-dir /var/lib/filestore", "b.txt")
    );
    let url = server(move |_| ok("Content-Type: application/json\r\n", &page));

    let quiet =
        filestore(work.path()).args(["list", "--quiet", "--server", &url]).output().unwrap();
    assert_eq!((quiet.status.code(), text(&quiet.stdout).as_str()), (Some(2), ""));
    assert!(text(&quiet.stderr).contains("invalid id"), "{}", text(&quiet.stderr));

    let shown = filestore(work.path()).args(["list", "--server", &url]).output().unwrap();
    let said = text(&shown.stdout) + &text(&shown.stderr);
    assert!(said.contains("--cursor") && !said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn names_in_a_directory_do_not_command_the_terminal() {
    let bench = Bench::new(Way::Direct);
    std::fs::create_dir(bench.path("tree")).unwrap();
    std::os::unix::fs::symlink("x", bench.path("tree/a\u{1b}]0;owned\u{7}")).unwrap();
    bench.write("tree/b\u{1b}[2J", "b");

    let args = ["upload", "--recursive", "tree", "--org", "42", "--sub", "s", "--journal", "j"];
    let output = bench.run(&args);
    let said = text(&output.stderr) + &text(&output.stdout);
    assert!(said.contains("left out"), "{said}");
    assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{said:?}");

    let missing = bench.run(&["upload", "no\u{1b}[2J", "--org", "42", "--sub", "s"]);
    assert!(!text(&missing.stderr).contains('\u{1b}'));
}

#[test]
fn a_proxy_of_the_environment_is_not_asked_for_this_machine() {
    let bench = Bench::new(Way::Url);
    // Port 1 is tcpmux; nobody listens there.
    let output =
        bench.command(&["health"]).env("http_proxy", "http://127.0.0.1:1").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Sends the head of a download and one byte, and then nothing more.
fn stalled_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            read_head(&stream);
            let digest = "sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:";
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nRepr-Digest: {digest}\r\n\r\nh");
            let _ = stream.write_all(head.as_bytes());
            // Until the client goes.
            let _ = stream.read(&mut [0; 1]);
        }
    });
    url
}

#[test]
fn a_download_that_is_stopped_leaves_no_part_of_it() {
    for (signal, status) in [("INT", 130), ("TERM", 143)] {
        let work = tempfile::tempdir().unwrap();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("filestore"));
        command.args(["get", ID, "-o", "a.txt", "--server", &stalled_server()]);
        command.current_dir(work.path()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();

        let parts = || std::fs::read_dir(work.path()).unwrap().count();
        while parts() == 0 && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(status), "SIG{signal}");
        assert_eq!(parts(), 0, "SIG{signal}");
    }
}
