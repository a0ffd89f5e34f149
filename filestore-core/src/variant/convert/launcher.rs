//! The launcher of a converter: a short process that takes from itself what the converter does not need,
//! and becomes the converter.
//!
//! | step | takes | where the kernel lacks it |
//! |---|---|---|
//! | namespaces (user, PID, network, IPC, UTS) | the network, other processes; the end of the first process is the end of all | goes on without |
//! | limits | processor time, memory, sizes of files, open files, processes | refuses |
//! | Landlock | all files but the system's programs and the own directory | refuses |
//! | seccomp | sockets that lead anywhere, rights and times of files by their names, leaving the process group, tracing, mounting, new namespaces; signals to others, where nothing else keeps them | refuses |
//!
//! Without Landlock the converter is not started: it could read and write what the server can.
//!
//! The first process makes the namespaces; the second is the first in them, takes the rest, and becomes
//! the converter. Both are in one process group that nobody within can leave: a kill of the group ends all.
//! They end with the server as well. In namespaces each dies with the one that started it, and all others
//! with the second; without them the first process waits for the end of its stdin, which the server holds,
//! and kills the group.

use std::env;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use rustix::process::{
    Resource, Rlimit, Signal, getpid, kill_current_process_group, set_child_subreaper,
    set_parent_process_death_signal, setpgid, setrlimit,
};

use super::job::{NOT_FOUND, NOT_ISOLATED, NOT_STARTED};
use super::sandbox::{Held, Others};
use super::watch::PROCESSES;
use super::{LAUNCHER_ARGUMENT, sandbox};

/// The launcher's arguments.
#[derive(Default)]
struct Arguments {
    work: PathBuf,
    cpu_secs: Option<u64>,
    memory_bytes: Option<u64>,
    file_bytes: Option<u64>,
    open_files: Option<u64>,
    /// The files and directories that can be read besides the system's and the program.
    readable: Vec<PathBuf>,
    /// The end of stdin is the end of the server.
    is_tied: bool,
    /// The second process, with what the first one made.
    inner: Option<Namespaces>,
    /// Nothing is started: what was taken is written to stdout.
    is_probe: bool,
    /// For tests: what is not taken although the kernel has it.
    without: Vec<String>,
    program: Vec<OsString>,
}

/// The namespaces of the second process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Namespaces {
    Own,
    OfTheServer,
}

/// Runs the launcher with what follows [`LAUNCHER_ARGUMENT`].
pub(super) fn run(all: Vec<OsString>) -> ExitCode {
    let Some(arguments) = Arguments::parse(all.clone()) else {
        eprintln!("{LAUNCHER_ARGUMENT}: started by the server alone");
        return ExitCode::from(2);
    };
    if let Some(namespaces) = arguments.inner {
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        return become_converter(&arguments, namespaces);
    }

    // Leads its group already where the server started it.
    let _ = setpgid(None, None);
    if arguments.takes("namespaces") && sandbox::enter_namespaces() {
        // Dies with the thread of the server that waits for it.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        return start_inner("--inner-own", all);
    }

    // Processes whose parents have ended stay below this one, where the server finds them.
    let _ = set_child_subreaper(Some(getpid()));
    if arguments.is_tied {
        thread::spawn(end_with_the_server);
    }
    start_inner("--inner", all)
}

/// Waits for the end of stdin, and kills the group, this process included.
fn end_with_the_server() {
    while !matches!(io::stdin().read(&mut [0; 64]), Ok(0) | Err(_)) {}
    let _ = kill_current_process_group(Signal::KILL);
}

/// Starts the second process, and ends as it ends.
fn start_inner(kind: &str, all: Vec<OsString>) -> ExitCode {
    let Ok(own) = env::current_exe() else { return ExitCode::from(NOT_STARTED) };
    let mut inner = Command::new(own);
    inner.args([LAUNCHER_ARGUMENT, kind]).args(all).stdin(Stdio::null());

    let code = match inner.status() {
        Ok(status) => status.code().or_else(|| status.signal().map(|signal| 128 + signal)),
        Err(error) => {
            eprintln!("the second process does not start: {error}");
            return ExitCode::from(NOT_STARTED);
        }
    };
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_STARTED))
}

/// Takes what is left to take, and becomes the program. Returns only if that fails.
fn become_converter(arguments: &Arguments, namespaces: Namespaces) -> ExitCode {
    if let Err(error) = limit(arguments, namespaces) {
        eprintln!("a limit cannot be set: {error}");
        return ExitCode::from(NOT_ISOLATED);
    }

    let landlock = arguments.restrict_files();
    let scopes_signals = landlock == Held::Whole && arguments.takes("scopes");
    let others = if namespaces == Namespaces::Own || scopes_signals {
        Others::OutOfReach
    } else {
        Others::InReach
    };
    let seccomp = sandbox::restrict_calls(others);
    if arguments.is_probe {
        return say(namespaces, landlock, seccomp.is_ok());
    }
    if let Err(error) = seccomp {
        eprintln!("system calls cannot be restricted: {error}");
        return ExitCode::from(NOT_ISOLATED);
    }
    if landlock == Held::No {
        eprintln!("the kernel has no Landlock");
        return ExitCode::from(NOT_ISOLATED);
    }

    let Some((program, rest)) = arguments.program.split_first() else {
        return ExitCode::from(NOT_FOUND);
    };
    let error = Command::new(program).args(rest).exec();
    eprintln!("cannot start {}: {error}", program.display());
    ExitCode::from(if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED })
}

/// Writes to stdout what was taken.
fn say(namespaces: Namespaces, landlock: Held, has_seccomp: bool) -> ExitCode {
    let is_enough = landlock != Held::No && has_seccomp;
    println!(
        "namespaces: {}, Landlock: {}, seccomp: {}, limits: yes{}",
        yes_or_no(namespaces == Namespaces::Own),
        landlock.word(),
        yes_or_no(has_seccomp),
        if is_enough { "" } else { " (not enough: converters do not run)" },
    );
    ExitCode::SUCCESS
}

const fn yes_or_no(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}

/// Sets a limit, if there is one.
fn set(resource: Resource, limit: Option<u64>) -> rustix::io::Result<()> {
    match limit {
        Some(_) => setrlimit(resource, Rlimit { current: limit, maximum: limit }),
        None => Ok(()),
    }
}

fn limit(arguments: &Arguments, namespaces: Namespaces) -> rustix::io::Result<()> {
    set(Resource::Core, Some(0))?;
    // The soft limit ends the process with a signal of its own; the hard one, a second later, with KILL.
    if let Some(secs) = arguments.cpu_secs {
        setrlimit(Resource::Cpu, Rlimit { current: Some(secs), maximum: Some(secs + 1) })?;
    }
    set(Resource::As, arguments.memory_bytes)?;
    set(Resource::Fsize, arguments.file_bytes)?;
    set(Resource::Nofile, arguments.open_files)?;
    // Outside of a user namespace the server's own threads would count. Root is never held: the server counts.
    let has_own = namespaces == Namespaces::Own;
    set(Resource::Nproc, has_own.then_some(PROCESSES as u64))
}

fn number(argument: Option<OsString>) -> Option<u64> {
    argument?.to_str()?.parse().ok()
}

impl Arguments {
    fn parse(all: Vec<OsString>) -> Option<Self> {
        let mut arguments = Self::default();
        let mut all = all.into_iter();
        while let Some(name) = all.next() {
            match name.to_str()? {
                "--inner" => arguments.inner = Some(Namespaces::OfTheServer),
                "--inner-own" => arguments.inner = Some(Namespaces::Own),
                "--tied" => arguments.is_tied = true,
                "--readable" => arguments.readable.push(all.next()?.into()),
                "--probe" => arguments.is_probe = true,
                "--cpu" => arguments.cpu_secs = Some(number(all.next())?),
                "--memory" => arguments.memory_bytes = Some(number(all.next())?),
                "--file" => arguments.file_bytes = Some(number(all.next())?),
                "--open" => arguments.open_files = Some(number(all.next())?),
                "--work" => arguments.work = all.next()?.into(),
                "--without" => arguments.without.push(all.next()?.into_string().ok()?),
                "--" => {
                    arguments.program = all.collect();
                    return Some(arguments);
                }
                _ => return None,
            }
        }
        arguments.is_probe.then_some(arguments)
    }

    /// Returns true unless a test says otherwise.
    fn takes(&self, what: &str) -> bool {
        self.without.iter().all(|other| other != what)
    }

    /// Leaves the system's programs and libraries and the own program to be read, and the own directory to
    /// be written. What lies beside the program may be the server's.
    fn restrict_files(&self) -> Held {
        if !self.takes("landlock") {
            return Held::No;
        }

        let program = self.program.first().map(PathBuf::from);
        let program = program.filter(|program| program.is_absolute());
        let readable: Vec<_> = self.readable.iter().cloned().chain(program).collect();
        let scopes = if self.takes("scopes") { Others::OutOfReach } else { Others::InReach };
        sandbox::restrict_files(&self.work, &readable, scopes)
    }
}
