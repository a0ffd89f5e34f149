//! The server as a process of its own.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Lets replaced blobs go at once, so that a purge leaves only the blobs that records name.
const CONFIG: &str = "listen = \"127.0.0.1:0\"\n[lifetimes]\nblob_grace_secs = 0\n";

/// A running server, killed when the test fails.
pub(crate) struct Child {
    process: std::process::Child,
    /// The URL of the server; empty until the server prints its address.
    pub(crate) url: String,
    /// The data directory of the server.
    pub(crate) data_dir: PathBuf,
}

impl Child {
    /// Starts the server of `home` and waits until it accepts.
    pub(crate) fn start(home: &Path) -> Self {
        Self::start_with(home, &[])
    }

    /// Starts the server of `home` with these variables in its environment, and waits until it
    /// accepts.
    pub(crate) fn start_with(home: &Path, variables: &[(&str, &OsStr)]) -> Self {
        match Self::try_start(home, variables) {
            Ok(child) => child,
            Err(status) => panic!("the server printed no address: {status}"),
        }
    }

    /// Starts the server of `home` as [`start_with`](Self::start_with) does; an error tells how it
    /// ended instead.
    pub(crate) fn try_start(home: &Path, variables: &[(&str, &OsStr)]) -> Result<Self, ExitStatus> {
        let mut child = Self::spawn_with(home, variables);
        let mut line = String::new();
        let stdout = child.process.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut line).expect("stdout can be read");

        match line.split_whitespace().find(|word| word.starts_with("http://")) {
            Some(url) => {
                child.url.push_str(url);
                Ok(child)
            }
            None => Err(child.ended()),
        }
    }

    /// Starts the server of `home` and does not wait.
    pub(crate) fn spawn(home: &Path) -> Self {
        Self::spawn_with(home, &[])
    }

    fn spawn_with(home: &Path, variables: &[(&str, &OsStr)]) -> Self {
        let config = home.join("filestore.toml");
        std::fs::write(&config, CONFIG).expect("the configuration can be written");
        let data_dir = home.join("data");
        let process = Command::new(env!("CARGO_BIN_EXE_filestore-server"))
            .env_remove("FILESTORE_LISTEN")
            .env("FILESTORE_LOG", std::env::var("FILESTORE_LOG").unwrap_or_else(|_| "error".into()))
            .envs(variables.iter().copied())
            .arg("--config")
            .arg(&config)
            .arg("--data-dir")
            .arg(&data_dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        Self { process, url: String::new(), data_dir }
    }

    /// Kills the server at once, at whatever point it is.
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("a child can be killed");
        self.process.wait().expect("a child can be awaited");
    }

    /// Waits until the server ends by itself.
    pub(crate) fn ended(mut self) -> ExitStatus {
        self.process.wait().expect("a child can be awaited")
    }

    /// Stops the server gracefully.
    pub(crate) fn stop(mut self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM)
            .expect("a child can be signalled");
        let status = self.process.wait().expect("a child can be awaited");
        assert!(status.success(), "after SIGTERM: {status}");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Nobody is left to tell if it is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
