//! A store to try commands on: a data directory, with or without a server on it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use assert_cmd::Command;
use filestore_core::StoreConfig;
use filestore_server::{Config, Server};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The end of a test that hangs. No machine is so slow that anything else takes as long.
pub(crate) const HANG: Duration = Duration::from_mins(10);

/// The way by which commands reach the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// `--data-dir`, and nobody else uses it.
    Direct,
    /// Through `--server`.
    Url,
    /// `--data-dir`, and a server holds it.
    Socket,
}

/// A store, and a directory to work in.
pub(crate) struct Bench {
    work: TempDir,
    data: TempDir,
    pub(crate) way: Way,
    /// For commands that open the directory themselves.
    config: Option<PathBuf>,
    server: Option<(Runtime, Option<Server>)>,
}

impl Bench {
    pub(crate) fn new(way: Way) -> Self {
        Self::with(way, |_| {})
    }

    /// With a server configured otherwise.
    pub(crate) fn with(way: Way, configure: impl FnOnce(&mut Config)) -> Self {
        let (work, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server = (way != Way::Direct).then(|| start(data.path(), configure));
        Self { work, data, way, config: None, server }
    }

    /// With a provider `disk`, whose files are in the working directory under `disk`.
    pub(crate) fn with_disk(way: Way) -> Self {
        Self::with_file(way, |work| {
            let root = work.join("disk");
            std::fs::create_dir(&root).unwrap();
            format!(
                "[[providers]]\ncode = \"disk\"\nscheme = \"fs\"\noptions.root = \"{}\"\n",
                root.display()
            )
        })
    }

    /// With a configuration file, which the server reads too; the working directory is known to its text.
    pub(crate) fn with_file(way: Way, text: impl FnOnce(&Path) -> String) -> Self {
        let (work, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let config = work.path().join("filestore.toml");
        std::fs::write(&config, text(work.path())).unwrap();
        let store = StoreConfig::load(&config).unwrap();
        let server = (way != Way::Direct).then(|| {
            start(data.path(), |config| {
                let purge_grace = config.store.purge_grace;
                config.store = store;
                config.store.purge_grace = purge_grace;
            })
        });

        Self { work, data, way, config: Some(config), server }
    }

    /// Returns the URL of the server.
    pub(crate) fn url(&self) -> String {
        let (_, server) = self.server.as_ref().expect("this bench has a server");
        server.as_ref().expect("it runs until the end").url()
    }

    /// Stops the server. Later commands open the directory themselves.
    pub(crate) fn stop(&mut self) {
        if let Some((runtime, Some(server))) = self.server.take() {
            runtime.block_on(server.stop());
        }
        self.way = Way::Direct;
    }

    pub(crate) fn data_dir(&self) -> &Path {
        self.data.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// Writes a file into the working directory.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// A command in the working directory, on this store.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = filestore(self.work.path());
        command.args(args).args(self.target());
        command
    }

    /// The options that name this store.
    pub(crate) fn target(&self) -> Vec<OsString> {
        let mut options = match self.way {
            Way::Url => vec!["--server".into(), self.url().into()],
            Way::Direct | Way::Socket => vec!["--data-dir".into(), self.data.path().into()],
        };
        if let Some(config) = self.config.as_ref().filter(|_| self.way == Way::Direct) {
            options.extend(["--config".into(), config.into()]);
        }
        options
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that succeeds, and returns its output.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?} failed: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs a command that succeeds with `--json`, and returns its output.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let stdout = self.ok(&[args, &["--json"]].concat());
        serde_json::from_str(&stdout)
            .unwrap_or_else(|e| panic!("{args:?} printed no JSON ({e}): {stdout}"))
    }

    /// Runs a command that ends with this status, and returns what it says on stderr.
    pub(crate) fn fails(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        stderr
    }

    /// Uploads a file and returns its id.
    pub(crate) fn upload(&self, name: &str, bytes: impl AsRef<[u8]>, more: &[&str]) -> String {
        self.write(name, bytes);
        let args = [&["upload", name, "--org", "42", "--sub", "gallery", "--quiet"], more].concat();
        self.ok(&args).trim().to_owned()
    }

    /// Counts the files in the store.
    pub(crate) fn count(&self) -> usize {
        self.ok(&["list", "--all", "--quiet"]).lines().count()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some((runtime, server)) = &mut self.server
            && let Some(server) = server.take()
        {
            runtime.block_on(server.stop());
        }
    }
}

fn start(data: &Path, configure: impl FnOnce(&mut Config)) -> (Runtime, Option<Server>) {
    let runtime = Runtime::new().unwrap();
    let mut config = Config::new("127.0.0.1:0".parse().unwrap(), data);
    // Deleted files stay restorable as long as a test runs.
    config.store.purge_grace = Duration::from_hours(1);
    configure(&mut config);
    let server = runtime.block_on(Server::start(config)).unwrap();
    (runtime, Some(server))
}

/// The binary, in `work`, with nothing of the environment of whoever runs the tests.
pub(crate) fn filestore(work: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("filestore"));
    command.current_dir(work).env("XDG_STATE_HOME", work.join(".state"));
    for name in [
        "FILESTORE_URL",
        "FILESTORE_KEY",
        "FILESTORE_KEY_FILE",
        "FILESTORE_CA_CERT",
        "FILESTORE_DATA_DIR",
        "FILESTORE_ORG",
        "FILESTORE_SUB",
        "FILESTORE_LOG",
        "FILESTORE_CONFIG",
        "COLUMNS",
        "NO_COLOR",
    ] {
        command.env_remove(name);
    }
    command
}

/// Leaves the processor to the command that is watched.
#[expect(clippy::disallowed_methods, reason = "a file that appears in a directory wakes nobody")]
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Bytes that do not repeat soon.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// An uncompressed 24-bit BMP of one colour.
pub(crate) fn picture(width: u32, height: u32) -> Vec<u8> {
    let row = (width * 3).next_multiple_of(4);
    let pixels = row * height;

    let mut bmp = Vec::new();
    bmp.extend(b"BM");
    for value in [54 + pixels, 0, 54, 40, width, height] {
        bmp.extend(value.to_le_bytes());
    }
    bmp.extend([1, 0, 24, 0]);
    for value in [0, pixels, 2835, 2835, 0, 0] {
        bmp.extend(value.to_le_bytes());
    }
    bmp.resize(bmp.len() + pixels as usize, 0x7F);

    bmp
}
