//! The launcher of a converter: a short process that takes from itself what the converter does not need,
//! and becomes the converter.
//!
//! | step | takes | where the kernel lacks it |
//! |---|---|---|
//! | namespaces (user, PID, network, IPC, UTS) | the network, other processes; the end of the first process is the end of all | goes on without |
//! | limits | processor time, memory, sizes of files, open files, processes | refuses |
//! | Landlock | all files but the system's programs and the own directory | goes on without |
//! | seccomp | sockets but local ones, leaving the process group, tracing, mounting, new namespaces | refuses |
//!
//! Without both namespaces and Landlock the converter is not started: it could read what the server can.
//!
//! The first process makes the namespaces; the second is the first in them, takes the rest, and becomes
//! the converter. Both are in one process group that nobody within can leave, and each dies with the one
//! that started it: a kill of the group ends all, with and without namespaces.

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

use super::job::{NOT_FOUND, NOT_ISOLATED, NOT_STARTED};
use super::{LAUNCHER_ARGUMENT, sandbox};

/// The processes and threads of a converter, where they can be counted apart from the server's.
const PROCESSES: u64 = 128;

/// The launcher's arguments.
#[derive(Default)]
struct Arguments {
    work: PathBuf,
    cpu_secs: Option<u64>,
    memory_bytes: Option<u64>,
    file_bytes: Option<u64>,
    open_files: Option<u64>,
    /// The second process, in the namespaces that the first one made.
    is_inner: bool,
    /// Nothing is started: what was taken is written to stdout.
    is_probe: bool,
    /// For tests: what is not taken although the kernel has it.
    without: Vec<String>,
    program: Vec<OsString>,
}

/// Runs the launcher with what follows [`LAUNCHER_ARGUMENT`].
pub(super) fn run(all: Vec<OsString>) -> ExitCode {
    let Some(arguments) = Arguments::parse(all.clone()) else {
        eprintln!("{LAUNCHER_ARGUMENT}: started by the server alone");
        return ExitCode::from(2);
    };
    // Dies with the thread of the server that waits for it.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));

    if arguments.is_inner {
        return become_converter(&arguments, true);
    }
    if arguments.without.iter().all(|what| what != "namespaces") && sandbox::enter_namespaces() {
        return start_inner(all);
    }
    become_converter(&arguments, false)
}

/// Starts the first process of the new namespaces, and ends as it ends.
fn start_inner(all: Vec<OsString>) -> ExitCode {
    let Ok(own) = env::current_exe() else { return ExitCode::from(NOT_STARTED) };
    let status = Command::new(own).args([LAUNCHER_ARGUMENT, "--inner"]).args(all).status();

    let code = match status {
        Ok(status) => status.code().or_else(|| status.signal().map(|signal| 128 + signal)),
        Err(error) => {
            eprintln!("the second process does not start: {error}");
            return ExitCode::from(NOT_STARTED);
        }
    };
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_STARTED))
}

/// Takes what is left to take, and becomes the program. Returns only if that fails.
fn become_converter(arguments: &Arguments, has_namespaces: bool) -> ExitCode {
    if let Err(error) = limit(arguments, has_namespaces) {
        eprintln!("a limit cannot be set: {error}");
        return ExitCode::from(NOT_ISOLATED);
    }

    let wants_landlock = arguments.without.iter().all(|what| what != "landlock");
    let landlock = if wants_landlock { arguments.restrict_files() } else { sandbox::Held::No };
    let seccomp = sandbox::restrict_calls();
    let is_isolated = has_namespaces || landlock != sandbox::Held::No;
    if arguments.is_probe {
        let yes = |holds| if holds { "yes" } else { "no" };
        println!(
            "namespaces: {}, Landlock: {}, seccomp: {}, limits: yes{}",
            yes(has_namespaces),
            landlock.word(),
            yes(seccomp.is_ok()),
            if is_isolated && seccomp.is_ok() {
                ""
            } else {
                " (not enough: converters do not run)"
            },
        );
        return ExitCode::SUCCESS;
    }
    if let Err(error) = seccomp {
        eprintln!("system calls cannot be restricted: {error}");
        return ExitCode::from(NOT_ISOLATED);
    }
    if !is_isolated {
        eprintln!("neither namespaces nor Landlock");
        return ExitCode::from(NOT_ISOLATED);
    }

    let Some((program, rest)) = arguments.program.split_first() else {
        return ExitCode::from(NOT_FOUND);
    };
    let error = Command::new(program).args(rest).exec();
    eprintln!("cannot start {}: {error}", program.display());
    ExitCode::from(if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED })
}

fn limit(arguments: &Arguments, has_namespaces: bool) -> rustix::io::Result<()> {
    let set = |resource, limit: Option<u64>| match limit {
        Some(_) => setrlimit(resource, Rlimit { current: limit, maximum: limit }),
        None => Ok(()),
    };
    set(Resource::Core, Some(0))?;
    // The soft limit ends the process with a signal of its own; the hard one, a second later, with KILL.
    if let Some(secs) = arguments.cpu_secs {
        setrlimit(Resource::Cpu, Rlimit { current: Some(secs), maximum: Some(secs + 1) })?;
    }
    set(Resource::As, arguments.memory_bytes)?;
    set(Resource::Fsize, arguments.file_bytes)?;
    set(Resource::Nofile, arguments.open_files)?;
    // Outside of a user namespace the server's own threads would count.
    set(Resource::Nproc, has_namespaces.then_some(PROCESSES))
}

impl Arguments {
    fn parse(all: Vec<OsString>) -> Option<Self> {
        let mut arguments = Self::default();
        let mut all = all.into_iter();
        while let Some(name) = all.next() {
            let mut number = || all.next()?.to_str()?.parse().ok();
            match name.to_str()? {
                "--inner" => arguments.is_inner = true,
                "--probe" => arguments.is_probe = true,
                "--cpu" => arguments.cpu_secs = Some(number()?),
                "--memory" => arguments.memory_bytes = Some(number()?),
                "--file" => arguments.file_bytes = Some(number()?),
                "--open" => arguments.open_files = Some(number()?),
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

    /// Leaves the system's programs and libraries to be read, and the own directory to be written.
    fn restrict_files(&self) -> sandbox::Held {
        let own = self.program.first().map(PathBuf::from).filter(|program| program.is_absolute());
        let own = own.as_deref().and_then(|program| program.parent()).map(PathBuf::from);
        sandbox::restrict_files(&self.work, own.as_deref())
    }
}
