//! The launcher and its processes, for tests.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use filestore_sandbox::{LAUNCHER_ARGUMENT, Sandbox};

/// The end of a test that hangs. No machine is so slow that anything else takes as long.
const HANG: Duration = Duration::from_mins(10);

/// Returns the path of this program, which is its own launcher.
pub(crate) fn own_program() -> PathBuf {
    env::current_exe().unwrap()
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
    let until = Instant::now() + HANG;
    while processes_with(word) > 0 {
        assert!(Instant::now() < until, "processes of {after} are left");
        std::thread::yield_now();
    }
}

/// Waits until `count` processes have `word` among their arguments.
pub(crate) fn until_started(word: &str, count: usize) {
    let until = Instant::now() + HANG;
    while processes_with(word) < count {
        assert!(Instant::now() < until, "{} of {count} processes", processes_with(word));
        std::thread::yield_now();
    }
}

/// Prepares the launcher of `program` in the directory `work`.
pub(crate) fn launcher(work: &Path, without: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new(own_program());
    command.args([LAUNCHER_ARGUMENT, "--tied", "--work"]).arg(work);
    command.args(["--cpu", "5", "--memory", "1000000000", "--file", "1000000", "--open", "32"]);
    for what in without {
        command.args(["--without", what]);
    }
    command.arg("--").args(program).current_dir(work).stdin(Stdio::piped());
    command
}

/// Runs a script within the launcher, in a directory of its own.
pub(crate) fn launched(without: &[&str], script: &str) -> Output {
    launched_program(without, &["/bin/bash", "-c", script])
}

/// Runs a program within the launcher, in a directory of its own.
pub(crate) fn launched_program(without: &[&str], program: &[&str]) -> Output {
    let work = tempfile::tempdir().unwrap();
    let mut command = launcher(work.path(), without, program);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let tie = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(tie);
    output
}

pub(crate) fn said(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).trim().to_owned()
}

/// Returns the sandbox of these tests.
pub(crate) fn sandbox() -> Sandbox {
    Sandbox::new(own_program())
}

/// Returns the reason why commands cannot run here: the kernel has no Landlock, or Perl or bash is not installed.
pub(crate) fn out_of_reach() -> Option<&'static str> {
    let walls = sandbox().walls().unwrap();
    assert!(walls.seccomp, "{walls}");
    let is_absent = |program: &&str| !Path::new(program).exists();
    let missing = ["/usr/bin/perl", "/bin/bash"].into_iter().find(is_absent);
    missing.or_else(|| (!walls.are_enough()).then_some("Landlock"))
}
