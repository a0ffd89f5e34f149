//! `uploads`: resumable uploads of other clients, seen and cancelled.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use serde_json::json;

use crate::support::{Bench, Way, filestore, text};

/// Creates an upload by tus with its first bytes, as a browser does. Returns its id.
fn begin(bench: &Bench, org: &str, name: &str, length: u64, bytes: &str) -> String {
    let url = bench.url();
    let host = url.trim_start_matches("http://");
    let mut line = TcpStream::connect(host).unwrap();
    let query = format!("organization_id={org}&sub_system=s&original_name={name}");
    write!(
        line,
        "POST /api/v1/uploads?{query} HTTP/1.1\r\nHost: {host}\r\nTus-Resumable: 1.0.0\r\n\
         Upload-Length: {length}\r\nContent-Type: application/offset+octet-stream\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{bytes}",
        bytes.len()
    )
    .unwrap();
    let mut reply = String::new();
    line.read_to_string(&mut reply).unwrap();
    line.shutdown(Shutdown::Both).ok();

    assert!(reply.starts_with("HTTP/1.1 201 "), "{reply}");
    let at = reply.find("/api/v1/uploads/").unwrap() + "/api/v1/uploads/".len();
    reply[at..].split('.').next().unwrap().to_owned()
}

#[test]
fn open_uploads_are_listed_shown_and_cancelled() {
    for way in [Way::Url, Way::Socket] {
        let bench = Bench::new(way);
        let film = begin(&bench, "42", "film.mp4", 3 << 20, "first bytes");
        let other = begin(&bench, "acme", "b.bin", 100, "");

        let all = bench.ok(&["uploads", "list"]);
        let heading = all.lines().next().unwrap();
        assert!(heading.contains("RECEIVED  CREATED (UTC)"), "{all}");
        assert!(all.contains("42    open   11 B of 3.0 MiB"), "{all}");
        assert!(all.contains(&film) && all.contains(&other), "{all}");
        let own = bench.ok(&["uploads", "list", "--org", "42", "--quiet"]);
        assert_eq!(own, format!("{film}\n"));
        let lines = bench.ok(&["uploads", "list", "--all", "--limit", "1", "--json"]);
        assert_eq!(lines.lines().count(), 2, "{lines}");

        let shown = bench.ok(&["uploads", "show", &film]);
        for line in
            ["received       11 B of 3.0 MiB", "name           film.mp4", "file           -"]
        {
            assert!(shown.contains(line), "{line} in {shown}");
        }
        let status = bench.ok(&["status"]);
        assert!(
            status.contains("uploads     0 unfinished (0 B), 2 resumable (3.0 MiB)"),
            "{status}"
        );

        let said = bench.ok(&["uploads", "cancel", &film]);
        assert_eq!(said, format!("cancelled upload {film} (11 B received)\n"));
        let gone = bench.fails(1, &["uploads", "show", &film]);
        assert!(gone.contains("filestore uploads list"), "{gone}");
        bench.fails(1, &["uploads", "cancel", &film]);
        assert_eq!(bench.ok(&["uploads", "list", "--quiet"]), format!("{other}\n"));
    }
}

#[test]
fn a_data_directory_without_its_server_shows_the_same_uploads() {
    let mut bench = Bench::new(Way::Url);
    let ids = [begin(&bench, "42", "a.bin", 10, "1234"), begin(&bench, "42", "b.bin", 10, "")];
    let remote = bench.json(&["uploads", "list"]);
    bench.stop();

    assert_eq!(bench.json(&["uploads", "list"]), remote);
    assert_eq!(
        bench.json(&["uploads", "list", "--org", "42", "--limit", "1"])["next_cursor"],
        ids[0]
    );
    assert_eq!(bench.json(&["uploads", "show", &ids[0]]), remote["items"][0]);
    let cancelled = bench.json(&["uploads", "cancel", &ids[0]]);
    assert_eq!((&cancelled["state"], &cancelled["offset"]), (&json!("open"), &json!(4)));
    assert_eq!(bench.ok(&["uploads", "list", "--quiet"]), format!("{}\n", ids[1]));
    bench.fails(1, &["uploads", "list", "--limit", "0"]);
    bench.fails(1, &["uploads", "show", "film.mp4"]);
}

#[test]
fn a_table_of_uploads_fits_the_terminal() {
    let bench = Bench::new(Way::Url);
    let id = begin(&bench, "42", &"long-name-".repeat(9), 10, "1");
    for columns in [80, 100] {
        let output = bench
            .command(&["uploads", "list"])
            .env("COLUMNS", columns.to_string())
            .output()
            .unwrap();
        let table = text(&output.stdout);
        assert!(table.contains(&id), "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= columns), "{table}");
    }
    assert!(bench.ok(&["uploads", "list"]).contains(&"long-name-".repeat(9)));
}

/// The reason for the name of the command: `upload list` would mean another thing than before.
#[test]
fn a_file_can_have_the_name_of_a_command_of_uploads() {
    let bench = Bench::new(Way::Direct);
    for name in ["list", "show", "cancel"] {
        bench.upload(name, name, &[]);
    }
    assert_eq!(bench.count(), 3);
    let usage = filestore(&bench.path("")).args(["uploads"]).output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
}
