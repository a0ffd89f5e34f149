//! Uploads that the user stops and continues.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use crate::support::{Bench, HANG, Way, filestore, noise, pause, text};

/// A line to a server that lets a number of bytes of its clients pass, and holds all others.
#[derive(Clone)]
struct Line {
    url: String,
    state: Arc<(Mutex<Passed>, Condvar)>,
}

struct Passed {
    bytes: u64,
    most: u64,
}

impl Line {
    fn to(server: String, most: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let line =
            Self { url, state: Arc::new((Mutex::new(Passed { bytes: 0, most }), Condvar::new())) };
        let accepting = line.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(server.trim_start_matches("http://")).unwrap();
                accepting.carry(client, server);
            }
        });
        line
    }

    fn carry(&self, client: TcpStream, server: TcpStream) {
        let (line, from, to) =
            (self.clone(), client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || line.pass(from, to));
        std::thread::spawn(move || {
            std::io::copy(&mut &server, &mut &client).ok();
            client.shutdown(Shutdown::Both).ok();
        });
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut block = vec![0; 64 << 10];
        loop {
            let read = from.read(&mut block).unwrap_or(0);
            let (passed, changed) = &*self.state;
            let may_pass = |passed: &mut Passed| passed.bytes + read as u64 > passed.most;
            let mut passed = changed.wait_while(passed.lock().unwrap(), may_pass).unwrap();
            passed.bytes += read as u64;
            drop(passed);
            if read == 0 || to.write_all(&block[..read]).is_err() {
                to.shutdown(Shutdown::Both).ok();
                return;
            }
        }
    }

    /// Lets all further bytes pass, and returns the number of bytes so far.
    fn open(&self) -> u64 {
        let (passed, changed) = &*self.state;
        let mut passed = passed.lock().unwrap();
        passed.most = u64::MAX;
        changed.notify_all();
        passed.bytes
    }

    fn bytes(&self) -> u64 {
        self.state.0.lock().unwrap().bytes
    }
}

#[test]
fn an_upload_that_the_user_stops_continues_with_the_same_command() {
    const MIB: u64 = 1 << 20;
    let bench = Bench::new(Way::Url);
    let bytes = noise(40 << 20);
    bench.write("big.bin", &bytes);
    // The first piece of 32 MiB passes, and a part of the second.
    let line = Line::to(bench.url(), 35 * MIB);
    let args = ["upload", "big.bin", "--org", "42", "--sub", "s", "--quiet", "--server", &line.url];
    let child = Command::new(assert_cmd::cargo::cargo_bin!("filestore"))
        .current_dir(bench.path(""))
        .env("XDG_STATE_HOME", bench.path(".state"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();

    let deadline = Instant::now() + HANG;
    while line.bytes() < 34 * MIB {
        assert!(Instant::now() < deadline, "the upload does not begin");
        pause();
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert_eq!(bench.count(), 0);
    let notes = || std::fs::read_dir(bench.path(".state/filestore")).unwrap().count();
    assert_eq!(notes(), 1);

    let before = line.open();
    let again = filestore(&bench.path("")).args(args).output().unwrap();
    assert!(again.status.success(), "{}", text(&again.stderr));
    let sent = line.bytes() - before;
    // Bytes of the first command that the line still held are among them.
    assert!(sent < 20 * MIB, "{sent} bytes were sent again");
    assert_eq!((bench.count(), notes()), (1, 0));

    let id = text(&again.stdout).trim().to_owned();
    bench.ok(&["get", &id, "-o", "copy.bin"]);
    assert!(bench.read("copy.bin") == bytes);

    // The upload has ended, so the same command stores a second file.
    let second = filestore(&bench.path("")).args(args).output().unwrap();
    assert!(second.status.success());
    assert_eq!(bench.count(), 2);
}

#[test]
fn a_stopped_upload_says_how_to_continue() {
    let bench = Bench::new(Way::Url);
    bench.write("big.bin", noise(17 << 20));
    let line = Line::to(bench.url(), 1 << 20);
    let args = ["upload", "big.bin", "--org", "42", "--sub", "s", "--server", &line.url];
    let child = Command::new(assert_cmd::cargo::cargo_bin!("filestore"))
        .current_dir(bench.path(""))
        .env("XDG_STATE_HOME", bench.path(".state"))
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + HANG;
    while line.bytes() < 1 << 19 {
        assert!(Instant::now() < deadline, "the upload does not begin");
        pause();
    }
    assert!(
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success()
    );
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("To continue, run the same command again"), "{said}");
}
