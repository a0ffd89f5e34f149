//! The launcher of a command: a short process that gives up unneeded rights, and then becomes the command.
//! The *caller* is the program that called [`Sandbox::run`](crate::Sandbox::run).
//!
//! | step | removes | if the kernel lacks it |
//! |---|---|---|
//! | namespaces (user, PID, network, IPC, UTS) | the network, other processes. The end of the first process is the end of all | continues without |
//! | limits | processor time, memory, sizes of files, open files, processes | refuses |
//! | Landlock | all files except the system's programs and the scratch directory | refuses |
//! | seccomp | sockets that can send, permissions and times of files by name, leaving the process group, tracing, mounting, new namespaces. Signals to others, if nothing else denies them | refuses |
//!
//! Without Landlock, the command does not start, because it could read and write every file of the caller.
//!
//! The first process creates the namespaces. The second process starts within them, gives up the other
//! rights, and becomes the command. Both processes are in one process group that no process can leave.
//! Killing the group therefore ends all processes.
//!
//! All processes also end with the caller. In namespaces, each of the two processes dies with the process
//! that started it, and all others die with the second. Without namespaces, the first process waits for the
//! end of its stdin, which the caller holds open, and then kills the group.

mod arguments;
mod calls;
mod files;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use nix::sched::{CloneFlags, unshare};
use rustix::process::{
    Resource, Rlimit, Signal, getpid, kill_current_process_group, set_child_subreaper,
    set_parent_process_death_signal, setpgid, setrlimit,
};

use self::arguments::{Arguments, Namespaces};
use self::calls::restrict_calls;
use crate::launch::{LAUNCHER_ARGUMENT, NOT_FOUND, NOT_ISOLATED, NOT_STARTED};
use crate::walls::{Landlock, Walls};
use crate::watch::PROCESSES;

/// How the command can affect processes of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    /// A PID namespace hides them, or Landlock blocks signals to them.
    OutOfReach,
    /// Signals reach processes of the same user, for example the caller.
    InReach,
}

/// Runs the launcher with the arguments after [`LAUNCHER_ARGUMENT`].
pub(crate) fn run(all: Vec<OsString>) -> ExitCode {
    let Some(arguments) = Arguments::parse(all.clone()) else {
        eprintln!("{LAUNCHER_ARGUMENT}: only the sandbox starts this");
        return ExitCode::from(2);
    };
    if let Some(namespaces) = arguments.inner {
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        return become_command(&arguments, namespaces);
    }

    // Leads its group already if the caller started it.
    let _ = setpgid(None, None);
    if arguments.takes("namespaces") && enter_namespaces() {
        // Dies with the thread of the caller that waits for it.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        return start_inner("--inner-own", all);
    }

    // Processes whose parents have ended stay below this one, so that the watch finds them.
    let _ = set_child_subreaper(Some(getpid()));
    if arguments.is_tied {
        thread::spawn(end_with_the_caller);
    }
    start_inner("--inner", all)
}

/// Enters its own namespaces. The next process is the first in the PID namespace. Returns false if the kernel
/// or its administrator forbids this.
fn enter_namespaces() -> bool {
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let all = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    if unshare(all).is_err() {
        return false;
    }

    // Without a map the process is nobody within, and still itself to the file system.
    let _ = fs::write("/proc/self/setgroups", "deny");
    let _ = fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()));
    let _ = fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()));
    true
}

/// Waits for the end of stdin, and kills the group, including this process.
fn end_with_the_caller() {
    while !matches!(io::stdin().read(&mut [0; 64]), Ok(0) | Err(_)) {}
    let _ = kill_current_process_group(Signal::KILL);
}

/// Starts the second process, and ends with the same status.
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

/// Gives up the other rights, and becomes the program. Returns only if this fails.
fn become_command(arguments: &Arguments, namespaces: Namespaces) -> ExitCode {
    if let Err(error) = limit(arguments, namespaces) {
        eprintln!("a limit cannot be set: {error}");
        return ExitCode::from(NOT_ISOLATED);
    }

    let landlock = restrict_files(arguments);
    let scopes_signals = landlock == Landlock::Whole && arguments.takes("scopes");
    let others = if namespaces == Namespaces::Own || scopes_signals {
        Others::OutOfReach
    } else {
        Others::InReach
    };
    let seccomp = restrict_calls(others);
    if arguments.is_probe {
        let namespaces = namespaces == Namespaces::Own;
        println!("{}", Walls { namespaces, landlock, seccomp: seccomp.is_ok() });
        return ExitCode::SUCCESS;
    }
    if let Err(error) = seccomp {
        eprintln!("system calls cannot be restricted: {error}");
        return ExitCode::from(NOT_ISOLATED);
    }
    if landlock == Landlock::Missing {
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

/// Sets a limit, if given.
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
        setrlimit(
            Resource::Cpu,
            Rlimit { current: Some(secs), maximum: Some(secs.saturating_add(1)) },
        )?;
    }
    set(Resource::As, arguments.memory_bytes)?;
    set(Resource::Fsize, arguments.file_bytes)?;
    set(Resource::Nofile, arguments.open_files)?;
    // Outside of a user namespace the caller's own threads would count. The kernel does not limit root: the watch does.
    let has_own = namespaces == Namespaces::Own;
    set(Resource::Nproc, has_own.then_some(PROCESSES as u64))
}

/// Allows reading of the system's programs and libraries and of the program itself, and writing to the
/// scratch directory. Files next to the program might belong to the caller, and stay denied.
fn restrict_files(arguments: &Arguments) -> Landlock {
    if !arguments.takes("landlock") {
        return Landlock::Missing;
    }

    let program = arguments.program.first().map(PathBuf::from);
    let program = program.filter(|program| program.is_absolute());
    let readable: Vec<_> = arguments.readable.iter().cloned().chain(program).collect();
    let scopes = if arguments.takes("scopes") { Others::OutOfReach } else { Others::InReach };
    files::restrict(&arguments.work, &readable, scopes)
}
