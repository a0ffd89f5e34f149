//! The server as a process of its own.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::serve::Sabotage;

/// The directory of the provider, beside the data directory.
pub(crate) const ATTIC: &str = "attic";

/// The longest start or stop of a process, and the longest life of a scenario.
const LONGEST: Duration = Duration::from_mins(5);

/// How the server of a run is started, and with what beneath.
#[derive(Debug, Clone, Default)]
pub(crate) struct Start<'a> {
    /// Variables of its environment.
    pub(crate) variables: Vec<(&'a str, &'a OsStr)>,
    pub(crate) sabotage: Sabotage,
}

/// A running server, killed when the run fails.
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
        Self::start_with(home, &Start::default())
    }

    /// Starts the server of `home` as `start` says, and waits until it accepts.
    pub(crate) fn start_with(home: &Path, start: &Start<'_>) -> Self {
        match Self::try_start(home, start) {
            Ok(child) => child,
            Err(status) => panic!("the server printed no address: {status}"),
        }
    }

    /// Starts the server of `home` as [`start_with`](Self::start_with) does; an error tells how it
    /// ended instead.
    pub(crate) fn try_start(home: &Path, start: &Start<'_>) -> Result<Self, ExitStatus> {
        let mut child = Self::spawn_with(home, start);
        let _deadline = Deadline::of(&child.process);
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
    pub(crate) fn spawn_with(home: &Path, start: &Start<'_>) -> Self {
        let data_dir = home.join("data");
        let process = Command::new(std::env::current_exe().expect("a running program has a path"))
            .env("FILESTORE_LOG", std::env::var("FILESTORE_LOG").unwrap_or_else(|_| "error".into()))
            .envs(start.variables.iter().copied())
            .arg("serve")
            .arg("--config")
            .arg(configuration(home))
            .arg("--data-dir")
            .arg(&data_dir)
            .args(start.sabotage.arguments())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program runs");
        Self { process, url: String::new(), data_dir }
    }

    /// Kills the server at once, at whatever point it is.
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("a child can be killed");
        self.process.wait().expect("a child can be awaited");
    }

    /// Stops the server where it is, until it is killed.
    pub(crate) fn pause(&self) {
        kill_process(Pid::from_child(&self.process), Signal::STOP)
            .expect("a child can be signalled");
    }

    /// Waits until the server ends by itself.
    pub(crate) fn ended(mut self) -> ExitStatus {
        let _deadline = Deadline::of(&self.process);
        self.process.wait().expect("a child can be awaited")
    }

    /// Stops the server gracefully.
    pub(crate) fn stop(mut self) {
        let _deadline = Deadline::of(&self.process);
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

/// Kills a process that is not done in time, so that a run ends with what it waited for. Until it is
/// dropped, the process is not awaited anywhere else.
pub(crate) struct Deadline {
    _dropped: mpsc::Sender<()>,
}

impl Deadline {
    /// Sets a deadline for what `process` does now.
    pub(crate) fn of(process: &std::process::Child) -> Self {
        let pid = Pid::from_child(process);
        let (dropped, done) = mpsc::channel::<()>();
        thread::spawn(move || {
            if done.recv_timeout(LONGEST) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("process {pid:?} is not done after {LONGEST:?}, and is killed");
                // It may have ended just now.
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Self { _dropped: dropped }
    }
}

/// Writes the configuration of `home`, if it has none yet; returns its path. Replaced blobs go at once,
/// deleted files after a second: some can be restored.
pub(crate) fn configuration(home: &Path) -> PathBuf {
    let path = home.join("filestore.toml");
    if !path.exists() {
        fs::write(&path, text_for(home, "full")).expect("the configuration can be written");
    }
    path
}

/// Returns the text of the configuration of `home`.
pub(crate) fn text_for(home: &Path, durability: &str) -> String {
    let attic = home.join(ATTIC).display().to_string();
    format!(
        "listen = \"127.0.0.1:0\"\ndurability = \"{durability}\"\ncheck_providers = false\nreserve_bytes = 65536\n\
         [lifetimes]\nblob_grace_secs = 0\npurge_grace_secs = 1\n\
         [sync]\nfirst_pause_secs = 1\n\
         [uploads]\nlifetime_secs = 3600\n\
         [webhooks]\nallow_http = true\nallow = [\"127.0.0.1\"]\n\
         [[providers]]\ncode = \"attic\"\nname = \"The attic\"\nscheme = \"fs\"\n\
         [providers.options]\nroot = {attic:?}\n"
    )
}
