//! One run of a command: its process, its observation and its end.
//!
//! # Locking
//! The thread that runs a command starts the launcher and waits for it, because the launcher dies with that
//! thread. A second thread observes the run. They share the [`Killer`]. Its lock is held only for a system
//! call.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::error::{Error, ErrorKind, Result};
use crate::killer::Killer;
use crate::launch::{LAUNCHER_ARGUMENT, NOT_FOUND, NOT_ISOLATED, NOT_STARTED};
use crate::limits::Limits;
use crate::scratch::Scratch;
use crate::walls::Walls;
use crate::watch::{Processes, written};

/// The time between two inspections of the processes and their files.
const LOOKS_APART: Duration = Duration::from_millis(100);
/// The maximum address space of all processes of a run, in multiples of [`Limits::memory_bytes`]. While a
/// process starts another process, the process counts twice.
const ADDRESS_SPACES: u64 = 2;

/// A sandbox for commands, with its limits. Cheap to keep and to share between threads.
///
/// ```no_run
/// use std::io::{self, read_to_string};
/// use std::process::ExitCode;
///
/// use filestore_sandbox::{Limits, Sandbox, Scratch, launch};
///
/// fn main() -> ExitCode {
///     if let Some(code) = launch(std::env::args_os()) {
///         return code;
///     }
///     println!("{:?}", upper_case("hello"));
///     ExitCode::SUCCESS
/// }
///
/// fn upper_case(text: &str) -> io::Result<String> {
///     let mut limits = Limits::default();
///     limits.memory_bytes = 100_000_000;
///     let sandbox = Sandbox::new(std::env::current_exe()?).with_limits(limits);
///
///     let scratch = Scratch::new_in("/var/tmp/upper")?;
///     scratch.copy_in("input", &mut text.as_bytes())?;
///     sandbox.run(&scratch, ["/bin/sh", "-c", "tr a-z A-Z <input >output"])?;
///     read_to_string(scratch.open_output("output", 1_000_000)?)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    launcher: PathBuf,
    limits: Limits,
    readable: Vec<PathBuf>,
}

impl Sandbox {
    /// Creates a sandbox with the default limits. `launcher` is the absolute path of a program that calls
    /// [`launch`](crate::launch) first in `main`, for example your own
    /// ([`current_exe`](std::env::current_exe)).
    pub fn new(launcher: impl Into<PathBuf>) -> Self {
        Self { launcher: launcher.into(), limits: Limits::default(), readable: Vec::new() }
    }

    /// Sets each run's limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Lets commands read these files and directories too, for example `/opt/tool`. Commands can always read their
    /// program and the programs, libraries and fonts of the system (`/usr`, `/lib`).
    #[must_use]
    pub fn with_readable(self, paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self { readable: paths.into_iter().map(Into::into).collect(), ..self }
    }

    /// Returns the protections that this machine supports, as reported by the launcher. Blocks.
    pub fn walls(&self) -> Result<Walls> {
        let mut probe = Command::new(&self.launcher);
        let probe = probe.args([LAUNCHER_ARGUMENT, "--probe"]).stdin(Stdio::null());
        let output = probe.output().map_err(Error::launcher)?;
        let line = String::from_utf8_lossy(&output.stdout);
        Walls::parse(line.trim()).ok_or_else(|| {
            let message = format!("the launcher does not answer: {}", self.launcher.display());
            Error::new(ErrorKind::Launcher).with_message(message)
        })
    }

    /// Runs a program with its arguments to its end. Blocks.
    ///
    /// The command works in [`Scratch::path`]. The command finds programs in `/usr/local/bin`, `/usr/bin` and
    /// `/bin`. The environment contains only `PATH`, `HOME`, `TMPDIR` and `LANG=C.UTF-8`. Stdin and stdout
    /// are empty. [`Scratch::stderr`] returns the beginning of its stderr. When the call returns, all
    /// processes of the command are killed.
    pub fn run(
        &self,
        scratch: &Scratch,
        command: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<()> {
        self.run_with_killer(scratch, command, &Killer::new())
    }

    /// Runs a program like [`run`](Self::run), until its end or until another thread calls [`Killer::kill`].
    /// Blocks.
    ///
    /// Pass a new [`Killer`] for each run. For a used one, the call returns [`ErrorKind::Launcher`].
    pub fn run_with_killer(
        &self,
        scratch: &Scratch,
        command: impl IntoIterator<Item = impl AsRef<OsStr>>,
        killer: &Killer,
    ) -> Result<()> {
        let command: Vec<_> = command.into_iter().map(|part| part.as_ref().to_owned()).collect();
        let launch = self.launcher_of(scratch, &command)?;
        let (ending, end) = channel();

        let (ended, excess) = thread::scope(|scope| -> Result<_> {
            let watch = move || self.watch(scratch.path(), killer, &end);
            let watch = thread::Builder::new().spawn_scoped(scope, watch).map_err(Error::io)?;
            let ended = killer.start_and_wait(launch);
            drop(ending);
            Ok((ended, watch.join().ok().flatten()))
        })?;

        if killer.is_killed() {
            return Err(Error::new(ErrorKind::Killed));
        }
        let status = ended.map_err(Error::launcher)?;
        excess.map_or_else(|| outcome(status, &command), |kind| Err(Error::new(kind)))
    }

    /// Prepares the launcher's process.
    fn launcher_of(&self, scratch: &Scratch, command: &[OsString]) -> Result<Command> {
        let Limits { cpu, memory_bytes, file_bytes, open_files, .. } = self.limits;
        let (work, stderr) = (scratch.path(), scratch.create_stderr().map_err(Error::io)?);

        let mut launch = Command::new(&self.launcher);
        launch.args([LAUNCHER_ARGUMENT, "--tied", "--work"]).arg(work);
        for readable in &self.readable {
            launch.arg("--readable").arg(readable);
        }
        for (name, limit) in [
            ("--cpu", cpu.as_secs().max(1)),
            ("--memory", memory_bytes),
            ("--file", file_bytes),
            ("--open", open_files),
        ] {
            launch.arg(name).arg(limit.to_string());
        }
        launch.arg("--").args(command);

        launch.current_dir(work).env_clear();
        launch.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LANG", "C.UTF-8");
        launch.env("HOME", work).env("TMPDIR", work);
        // The end of stdin tells the launcher that this program has ended.
        launch.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(stderr).process_group(0);
        Ok(launch)
    }

    /// Observes a run until `end` is dropped. Kills the run at its first violation of a limit, and returns
    /// the violation.
    fn watch(&self, work: &Path, killer: &Killer, end: &Receiver<()>) -> Option<ErrorKind> {
        let began = Instant::now();
        let mut excess = None;
        while end.recv_timeout(LOOKS_APART) == Err(RecvTimeoutError::Timeout) {
            if excess.is_none() {
                excess = self.excess(began, work, killer.leader());
            }
            if excess.is_some() {
                killer.end();
            }
        }
        excess
    }

    /// Returns the limit that a run exceeds.
    fn excess(&self, began: Instant, work: &Path, leader: Option<Pid>) -> Option<ErrorKind> {
        if began.elapsed() >= self.limits.time {
            return Some(ErrorKind::TooSlow);
        }

        let processes = Processes::below(leader?);
        if processes.are_too_many() {
            return Some(ErrorKind::TooManyProcesses);
        }
        if processes.address_bytes() > self.limits.memory_bytes.saturating_mul(ADDRESS_SPACES) {
            return Some(ErrorKind::TooMuchMemory);
        }
        let is_bounded =
            written(work, &processes).is_some_and(|all| all <= self.limits.scratch_bytes);
        (!is_bounded).then_some(ErrorKind::TooMuchOutput)
    }
}

/// Converts the launcher's exit status to the command's result.
fn outcome(status: ExitStatus, command: &[OsString]) -> Result<()> {
    // The launcher ends with 128 and the number of the signal that ended the command.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    match code.and_then(|code| u8::try_from(code).ok()) {
        Some(0) => Ok(()),
        Some(NOT_FOUND | NOT_STARTED) => {
            let program = command.first().map_or("".as_ref(), OsString::as_os_str);
            let message = format!("the program is not installed: {}", program.display());
            Err(Error::new(ErrorKind::NotFound).with_message(message))
        }
        Some(NOT_ISOLATED) => Err(Error::new(ErrorKind::NotIsolated)),
        Some(code) if is_limit(code) => Err(Error::new(ErrorKind::OverLimit)),
        _ => Err(Error::failed(code)),
    }
}

/// Returns true for the signals of the kernel's limits for processor time and file size.
fn is_limit(code: u8) -> bool {
    let signal = i32::from(code) - 128;
    [Signal::XCPU, Signal::XFSZ, Signal::KILL].iter().any(|limit| limit.as_raw() == signal)
}
