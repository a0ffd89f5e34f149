//! A server with converters.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use filestore_core::api::{FileRecord, Problem};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, Response};
use tempfile::TempDir;

use crate::support;

const BINARY: &str = env!("CARGO_BIN_EXE_filestore-server");

/// Bytes that show no type, so that the type which the upload gives them counts.
pub(crate) const NO_TYPE: &[u8] = b"\x01\x02\x00 no picture \xFF\xFE";

/// A number of seconds that only the sleeps of these tests have.
pub(crate) const LONG: &str = "98765";

/// Paints a PNG of grey pixels.
pub(crate) fn picture(width: u32, height: u32) -> Vec<u8> {
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
pub(crate) struct Bench {
    pub(crate) server: Child,
    pub(crate) url: String,
    pub(crate) client: Client,
    pub(crate) directory: TempDir,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Bench {
    /// Starts a server with a converter for each script, all with the same settings.
    pub(crate) fn start(scripts: &[(&str, &str)], settings: &str) -> Self {
        Self::start_with(scripts, |_| settings.to_owned())
    }

    /// Starts a server with a converter for each script. `settings` names those of a script's converter.
    pub(crate) fn start_with(scripts: &[(&str, &str)], settings: impl Fn(&str) -> String) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let programs = directory.path().join("programs");
        fs::create_dir(&programs).unwrap();
        fs::write(programs.join("secret"), "beside the programs").unwrap();
        let pictures = directory.path().join("pictures");
        fs::create_dir(&pictures).unwrap();
        fs::write(pictures.join("picture.png"), picture(300, 200)).unwrap();
        fs::write(pictures.join("small.png"), picture(40, 30)).unwrap();

        let mut config = String::from("[variants]\neager = [\"250\"]\n");
        for (name, script) in scripts {
            let program = programs.join(name);
            if !script.is_empty() {
                let script = format!("#!/bin/sh\nown='{}'\n{script}\n", pictures.display());
                fs::write(&program, script).unwrap();
                fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            }
            writeln!(
                config,
                "[[variants.converters]]\ntypes = [\"application/x-{name}\"]\n\
                 command = [\"{}\", \"{{input}}\", \"{{output}}\"]\n\
                 readable = [\"{}\"]\n{}",
                program.display(),
                pictures.display(),
                settings(name)
            )
            .unwrap();
        }
        fs::write(directory.path().join("filestore.toml"), config).unwrap();

        let (server, url) = serve(directory.path());
        Self { server, url, client: support::http_client().build().unwrap(), directory }
    }

    /// Kills the server, and starts it where it was.
    pub(crate) fn restart(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        (self.server, self.url) = serve(self.directory.path());
    }

    pub(crate) async fn upload(&self, name: &str, bytes: &[u8]) -> String {
        self.upload_of("7", name, bytes).await
    }

    pub(crate) async fn upload_of(&self, organization: &str, name: &str, bytes: &[u8]) -> String {
        let form = Form::new()
            .text("organization_id", organization.to_owned())
            .text("sub_system", "s")
            .text("mime_type", format!("application/x-{name}"))
            .part("file", Part::bytes(bytes.to_vec()).file_name("file"));
        let request = self.client.post(format!("{}/api/v1/files/upload", self.url)).multipart(form);
        let reply = request.send().await.unwrap().error_for_status().unwrap();
        reply.json::<FileRecord>().await.unwrap().file_id
    }

    pub(crate) async fn variant(&self, id: &str, size: u32) -> Response {
        let url = format!("{}/api/v1/files/{id}/{size}/{size}", self.url);
        self.client.get(url).send().await.unwrap()
    }

    /// Uploads a file for the converter `name`, and returns what its variant is refused with.
    pub(crate) async fn refusal(&self, name: &str) -> Problem {
        let id = self.upload(name, NO_TYPE).await;
        let reply = self.variant(&id, 200).await;
        assert_eq!(reply.status(), 422, "{name}");
        reply.json().await.unwrap()
    }
}

/// Waits until `count` processes have `word` among their arguments.
pub(crate) async fn until_started(word: &'static str, count: usize) {
    let until = Instant::now() + crate::hang::HANG;
    while processes_with(word) < count {
        assert!(Instant::now() < until, "{} of {count} processes", processes_with(word));
        tokio::task::yield_now().await;
    }
}

fn serve(directory: &Path) -> (Child, String) {
    let mut command = Command::new(BINARY);
    command.args(["--listen", "127.0.0.1:0", "--config", "filestore.toml"]);
    command.current_dir(directory).stdout(Stdio::piped()).stderr(Stdio::null());
    command.env("SECRET_OF_THE_SERVER", "x");
    let mut server = command.spawn().unwrap();

    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.split_whitespace().find(|word| word.starts_with("http://"));
    (server, url.expect("an address").to_owned())
}

/// Decodes a WebP's size from its header.
pub(crate) fn size_of(webp: &[u8]) -> (u32, u32) {
    let decoder = image_webp::WebPDecoder::new(std::io::Cursor::new(webp)).expect("a WebP");
    decoder.dimensions()
}

/// Counts the processes that have `word` among their arguments.
pub(crate) fn processes_with(word: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let arguments = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let has_word =
        |line: &Vec<u8>| line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes());
    arguments.filter(has_word).count()
}

/// Waits until no process has `word` among its arguments: killed ones take a moment to end.
pub(crate) fn none_is_left(word: &str, after: &str) {
    let until = Instant::now() + crate::hang::HANG;
    while processes_with(word) > 0 {
        assert!(Instant::now() < until, "processes of {after} are left");
        std::thread::yield_now();
    }
}

pub(crate) fn said(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).trim().to_owned()
}

/// Tells, and says, that converters cannot be tried out here: the kernel has no Landlock, or Perl or bash is
/// not installed.
pub(crate) fn is_out_of_reach() -> bool {
    let is_absent = |program: &&str| !std::path::Path::new(program).exists();
    let missing = ["/usr/bin/perl", "/bin/bash"].into_iter().find(is_absent);
    let missing = missing.or_else(|| (!has("Landlock")).then_some("Landlock"));
    if let Some(missing) = missing {
        eprintln!("NOT TESTED: converters, as there is no {missing} here");
    }
    missing.is_some()
}

/// Tells if this machine lets the launcher have `what`.
fn has(what: &str) -> bool {
    let probe = Command::new(BINARY).args(["sandbox-exec", "--probe"]).output().unwrap();
    let probe = said(&probe);
    assert!(probe.contains("seccomp: yes"), "{probe}");
    probe.contains(&format!("{what}: yes"))
}
