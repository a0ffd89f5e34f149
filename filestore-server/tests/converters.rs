//! Converters: commands that make pictures of what is no picture, in the sandbox that the binary itself
//! is the launcher of. The commands are small scripts that the tests write.

#![cfg(target_os = "linux")]

mod support;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use filestore_core::api::{FileRecord, Problem, VariantCacheReport};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, Response};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_filestore-server");

/// Bytes that show no type, so that the type which the upload gives them counts.
const NO_TYPE: &[u8] = b"\x01\x02\x00 no picture \xFF\xFE";

/// A number of seconds that only the sleeps of these tests have.
const LONG: &str = "98765";

/// Paints a PNG of grey pixels.
fn picture(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    let data: Vec<u8> =
        (0..height).flat_map(|y| (0..width).map(move |x| ((x ^ y) & 0xFF) as u8)).collect();
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&data).unwrap();
    writer.finish().unwrap();
    bytes
}

/// A server with converters, each a script for a media type of its own: `application/x-NAME`.
struct Bench {
    server: Child,
    url: String,
    client: Client,
    directory: TempDir,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Bench {
    fn start(scripts: &[(&str, &str)], settings: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let programs = directory.path().join("programs");
        fs::create_dir(&programs).unwrap();
        fs::write(programs.join("picture.png"), picture(300, 200)).unwrap();
        fs::write(programs.join("small.png"), picture(40, 30)).unwrap();

        let mut config = String::from("[variants]\neager = [\"250\"]\n");
        for (name, script) in scripts {
            let program = programs.join(name);
            if !script.is_empty() {
                let script = format!("#!/bin/sh\nown=$(dirname \"$0\")\n{script}\n");
                fs::write(&program, script).unwrap();
                fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            }
            writeln!(
                config,
                "[[variants.converters]]\ntypes = [\"application/x-{name}\"]\n\
                 command = [\"{}\", \"{{input}}\", \"{{output}}\"]\n{settings}",
                program.display()
            )
            .unwrap();
        }
        fs::write(directory.path().join("filestore.toml"), config).unwrap();

        let mut command = Command::new(BINARY);
        command.args(["--listen", "127.0.0.1:0", "--config", "filestore.toml"]);
        command.current_dir(directory.path()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http://"));
        let url = url.expect("an address").to_owned();
        Self { server, url, client: support::http_client().build().unwrap(), directory }
    }

    async fn upload(&self, name: &str, bytes: &[u8]) -> String {
        let form = Form::new()
            .text("organization_id", "7")
            .text("sub_system", "s")
            .text("mime_type", format!("application/x-{name}"))
            .part("file", Part::bytes(bytes.to_vec()).file_name("file"));
        let request = self.client.post(format!("{}/api/v1/files/upload", self.url)).multipart(form);
        let reply = request.send().await.unwrap().error_for_status().unwrap();
        reply.json::<FileRecord>().await.unwrap().file_id
    }

    async fn variant(&self, id: &str, size: u32) -> Response {
        let url = format!("{}/api/v1/files/{id}/{size}/{size}", self.url);
        self.client.get(url).send().await.unwrap()
    }

    /// Uploads a file for the converter `name`, and returns what its variant is refused with.
    async fn refusal(&self, name: &str) -> Problem {
        let id = self.upload(name, NO_TYPE).await;
        let reply = self.variant(&id, 200).await;
        assert_eq!(reply.status(), 422, "{name}");
        reply.json().await.unwrap()
    }
}

/// Decodes a WebP's size from its header.
fn size_of(webp: &[u8]) -> (u32, u32) {
    let decoder = image_webp::WebPDecoder::new(std::io::Cursor::new(webp)).expect("a WebP");
    decoder.dimensions()
}

/// Counts the processes that have `word` among their arguments.
fn processes_with(word: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let arguments = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let has_word =
        |line: &Vec<u8>| line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes());
    arguments.filter(has_word).count()
}

/// Waits until no process has `word` among its arguments: killed ones take a moment to end.
fn none_is_left(word: &str, after: &str) {
    let until = Instant::now() + Duration::from_secs(5);
    while processes_with(word) > 0 {
        assert!(Instant::now() < until, "processes of {after} are left");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn a_file_of_another_kind_has_variants_through_its_converter() {
    let scripts = [
        ("large", "cp \"$own/picture.png\" \"$2\""),
        ("small", "cp \"$own/small.png\" \"$2\""),
        ("once", "cp \"$own/picture.png\" \"$2\"; test -s \"$1\" || exit 1"),
    ];
    let bench = Bench::start(&scripts, "");

    let id = bench.upload("large", NO_TYPE).await;
    let reply = bench.variant(&id, 200).await;
    assert_eq!(
        (reply.status().as_u16(), &reply.headers()["content-type"]),
        (200, &"image/webp".parse().unwrap())
    );
    let tag = reply.headers()["etag"].clone();
    assert_eq!(size_of(&reply.bytes().await.unwrap()), (200, 200));
    let url = format!("{}/api/v1/files/{id}/200/200", bench.url);
    let again = bench.client.get(url).header("if-none-match", tag).send().await.unwrap();
    assert_eq!(again.status(), 304);

    // The file itself is no picture: nothing passes through.
    for name in ["small", "once"] {
        let id = bench.upload(name, NO_TYPE).await;
        let reply = bench.variant(&id, 700).await;
        assert_eq!(reply.headers()["content-type"], "image/webp", "{name}");
        let expected = if name == "small" { (40, 30) } else { (300, 200) };
        assert_eq!(size_of(&reply.bytes().await.unwrap()), expected);
    }

    // In advance, without a request.
    let url = format!("{}/api/v1/admin/variants/status", bench.url);
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let report = bench.client.get(&url).send().await.unwrap();
        let report: VariantCacheReport = report.json().await.unwrap();
        if report.eager_made >= 3 {
            break;
        }
        assert!(Instant::now() < until, "{report:?}");
        tokio::task::yield_now().await;
    }
    let left = fs::read_dir(bench.directory.path().join("filestore-data/converters"));
    assert_eq!(left.unwrap().count(), 0, "directories of runs go with them");
}

#[tokio::test]
async fn whatever_goes_wrong_in_a_converter_is_one_refusal_and_no_neighbours_trouble() {
    let sleeps =
        format!("sleep {LONG} & (setsid sleep {LONG} &) ; setsid sleep {LONG} ; sleep {LONG}");
    let scripts = [
        ("absent", ""),
        ("fails", "exit 3"),
        ("crashes", "sh -c 'kill -SEGV $$'; exit $?"),
        ("silent", "true"),
        ("flood", "head -c 2147483648 /dev/zero > \"$2\""),
        ("floods", "n=0; while :; do n=$((n+1)); head -c 500000 /dev/zero > \"file$n\"; done"),
        ("loops", "while :; do :; done"),
        ("sleeps", sleeps.as_str()),
        ("link", "ln -s \"$own/picture.png\" \"$2\""),
        ("pipe", "mkfifo \"$2\""),
        ("lies", "echo no picture > \"$2\""),
        ("good", "cp \"$own/picture.png\" \"$2\""),
    ];
    let limits =
        "timeout_secs = 3\ncpu_secs = 1\nmax_output_bytes = 1000000\nmax_input_bytes = 1000";
    let bench = Bench::start(&scripts, limits);
    let neighbour = bench.upload("neighbour", &picture(400, 300)).await;

    for (name, detail) in [
        ("absent", "not installed"),
        ("fails", "could not read"),
        ("crashes", "could not read"),
        ("silent", "no picture"),
        ("flood", ""),
        ("floods", "too"),
        ("loops", "too"),
        ("sleeps", "too long"),
        ("link", "no picture"),
        ("pipe", "no picture"),
    ] {
        let problem = bench.refusal(name).await;
        assert_eq!(problem.code.as_str(), "conversion_failed", "{name}");
        let said = problem.detail.clone();
        assert!(said.contains(detail), "{name}: {said}");
        none_is_left(LONG, name);
        assert_eq!(bench.variant(&neighbour, 250).await.status(), 200, "beside {name}");
    }
    assert_eq!(bench.refusal("lies").await.code.as_str(), "not_an_image");

    let large = bench.upload("good", &[1; 1001]).await;
    let problem: Problem = bench.variant(&large, 200).await.json().await.unwrap();
    assert_eq!(problem.limit, Some(1000), "{problem:?}");
    let id = bench.upload("good", NO_TYPE).await;
    assert_eq!(bench.variant(&id, 200).await.status(), 200);
}

/// Runs a script within the launcher, in a directory of its own.
fn launched(without: &[&str], script: &str) -> Output {
    let work = tempfile::tempdir().unwrap();
    let mut command = Command::new(BINARY);
    command.arg("sandbox-exec").arg("--work").arg(work.path());
    command.args(["--cpu", "5", "--memory", "1000000000", "--file", "1000000", "--open", "32"]);
    for what in without {
        command.args(["--without", what]);
    }
    command.args(["--", "/bin/bash", "-c", script]).current_dir(work.path());
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).trim().to_owned()
}

/// Tells if this machine lets the launcher have `what`.
fn has(what: &str) -> bool {
    let probe = Command::new(BINARY).args(["sandbox-exec", "--probe"]).output().unwrap();
    let probe = said(&probe);
    assert!(probe.contains("seccomp: yes"), "{probe}");
    probe.contains(&format!("{what}: yes"))
}

#[test]
fn a_converter_cannot_leave_its_sandbox_with_or_without_each_of_its_walls() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reach = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached");
    let outside = Command::new("/bin/bash").args(["-c", &reach]).output().unwrap();
    assert_eq!(said(&outside), "reached", "the network is there for others");

    let (namespaces, landlock) = (has("namespaces"), has("Landlock"));
    for without in [&[][..], &["namespaces"], &["landlock"]] {
        let has_namespaces = namespaces && !without.contains(&"namespaces");
        let has_landlock = landlock && !without.contains(&"landlock");
        if !has_namespaces && !has_landlock {
            assert_eq!(launched(without, "true").status.code(), Some(125), "{without:?}");
            continue;
        }

        assert!(!said(&launched(without, &reach)).contains("reached"), "{without:?}");
        let own_session = launched(without, "(setsid true) && echo left");
        assert!(!said(&own_session).contains("left"), "{without:?}: {}", said(&own_session));
        assert_eq!(said(&launched(without, "ulimit -n; ulimit -t; ulimit -c")), "32\n5\n0");
        let pid = said(&launched(without, "echo $$"));
        assert_eq!(pid == "1", has_namespaces, "{without:?}: {pid}");
        let read = said(&launched(without, "read -r line < /etc/passwd && echo \"$line\""));
        assert_eq!(read.contains("denied"), has_landlock, "{without:?}: {read}");
        assert_eq!(said(&launched(without, "echo x > own && cat own")), "x");
    }
    let bare = launched(&["namespaces", "landlock"], "echo ran");
    assert_eq!((bare.status.code(), said(&bare).contains("ran")), (Some(125), false));
}

#[test]
fn the_launcher_ends_as_its_program_does() {
    for (script, code) in
        [("exit 0", 0), ("exit 7", 7), ("head -c 2000000 /dev/zero > f; exit $?", 153)]
    {
        let ended = launched(&[], script);
        let code_of_shell = ended.status.code();
        assert_eq!(code_of_shell, Some(code), "{script}: {}", said(&ended));
    }
    let missing = Command::new(BINARY)
        .args(["sandbox-exec", "--work", "/tmp", "--", "no-such-program-anywhere"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(127), "{}", said(&missing));
}
