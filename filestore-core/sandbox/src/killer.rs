//! The process group of a run, and its end.

use std::io;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// Ends a run from another thread, for example if its result is no longer wanted. Cheap to clone.
///
/// ```no_run
/// use std::thread;
///
/// use filestore_sandbox::{ErrorKind, Killer, Sandbox, Scratch};
///
/// # fn example(sandbox: &Sandbox, scratch: &Scratch) {
/// let killer = Killer::new();
/// let other = killer.clone();
/// thread::spawn(move || other.kill());
///
/// let error = sandbox.run_with_killer(scratch, ["sleep", "10"], &killer).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Killed);
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Killer(Arc<Mutex<Group>>);

#[derive(Debug, Default)]
struct Group {
    life: Life,
    is_killed: bool,
}

#[derive(Debug, Clone, Copy, Default)]
enum Life {
    #[default]
    NotStarted,
    /// The leader is not reaped, so no other process can have its id.
    Led(Pid),
    /// Killed before its start, or reaped.
    Over,
}

impl Group {
    /// Kills all processes of the group. If the command has not started yet, the command never starts.
    fn end(&mut self) {
        match self.life {
            Life::Led(leader) => {
                let _ = kill_process_group(leader, Signal::KILL);
            }
            Life::NotStarted => self.life = Life::Over,
            Life::Over => {}
        }
    }
}

impl Killer {
    /// Creates the killer of one run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Kills all processes of the run. If the run has not started yet, it never starts. A later call does
    /// nothing.
    pub fn kill(&self) {
        let mut group = self.0.lock();
        group.is_killed = true;
        group.end();
    }

    /// Returns true if a caller killed the run, and not a limit.
    pub(crate) fn is_killed(&self) -> bool {
        self.0.lock().is_killed
    }

    /// Kills the run because of a limit.
    pub(crate) fn end(&self) {
        self.0.lock().end();
    }

    /// Returns the first process, while its id is still valid.
    pub(crate) fn leader(&self) -> Option<Pid> {
        match self.0.lock().life {
            Life::Led(leader) => Some(leader),
            Life::NotStarted | Life::Over => None,
        }
    }

    /// Starts the leader, waits for its end, and kills its remaining processes. The leader dies with the
    /// thread that calls this.
    pub(crate) fn start_and_wait(&self, mut launch: Command) -> io::Result<ExitStatus> {
        let mut group = self.0.lock();
        if matches!(group.life, Life::Over) {
            return Err(io::Error::other("the killer has ended a run already"));
        }
        let mut child = launch.spawn()?;
        let leader = Pid::from_child(&child);
        group.life = Life::Led(leader);
        drop(group);

        // Held to the end: its end is the program's.
        let tie = child.stdin.take();
        let unreaped = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(leader), unreaped));

        let mut group = self.0.lock();
        group.end();
        group.life = Life::Over;
        drop(group);
        drop(tie);
        child.wait()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_given_up_before_its_start_starts_nothing() {
        let killer = Killer::new();
        killer.clone().kill();
        assert!(killer.start_and_wait(Command::new("/bin/true")).is_err());
        assert!(killer.is_killed());
    }

    #[test]
    fn a_killer_is_for_one_run() {
        let killer = Killer::new();
        assert!(killer.start_and_wait(Command::new("/bin/true")).unwrap().success());
        assert!(killer.start_and_wait(Command::new("/bin/true")).is_err());
        assert!(!killer.is_killed());
    }
}
