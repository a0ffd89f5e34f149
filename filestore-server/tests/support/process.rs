//! The program `filestore-server`, run in a directory of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub(crate) fn command(dir: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_filestore-server"));
    for name in [
        "FILESTORE_LISTEN",
        "FILESTORE_DATA_DIR",
        "FILESTORE_CONFIG",
        "FILESTORE_FIRST_KEY_HASH",
        "FILESTORE_LOG",
        "RUST_LOG",
    ] {
        command.env_remove(name);
    }
    command.current_dir(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts the server and reads the line with its address.
pub(crate) fn start(command: &mut Command) -> (Child, String) {
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

pub(crate) fn stop(child: Child, signal: Signal) -> Output {
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait_with_output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
