//! Sabotage for tests: a kill at a step, calls that fail, and parts of the protocol taken away.
//!
//! # Purpose
//! A harness that finds nothing proves something only if it does find what is missing. So the fsyncs,
//! the staging, and the order of bytes and record can each be taken away at run time, and the
//! harness must fail then. The same seams end the process at a chosen step, and refuse a chosen
//! call.
//!
//! # Not in what ships
//! The feature `sabotage` is reached by the tests' dependencies alone.
//!
//! # Locking
//! A process is armed once, before its store is opened. The counts are atomic; the log is appended to
//! in single writes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

use super::step::{Call, Step};

/// A part of the protocol that can be taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Files, directories and commits are synced.
    Fsync,
    /// Bytes get their final name only when they are whole.
    Staging,
    /// Bytes are there before their record is committed.
    BytesFirst,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fsync" => Ok(Self::Fsync),
            "staging" => Ok(Self::Staging),
            "bytes-first" => Ok(Self::BytesFirst),
            _ => Err(format!("fsync, staging or bytes-first, not {text}")),
        }
    }
}

/// A call that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The kind of the calls.
    pub call: Call,
    /// The number of the first one that fails, from 1.
    pub from: u64,
    /// The number of calls that fail.
    pub count: u64,
    /// The error that they get.
    pub errno: i32,
}

/// The harm that is done to a process.
#[derive(Debug, Default)]
pub struct Plan {
    /// The step at which the process is killed, and how many times it is passed before.
    pub kill_at: Option<(Step, u64)>,
    /// The file to which the name of each step is appended, and [`REFUSED`].
    pub log: Option<PathBuf>,
    /// The calls that fail.
    pub failure: Option<Failure>,
    /// The part of the protocol that is missing.
    pub without: Option<Part>,
}

/// A plan in force.
struct Armed {
    plan: Plan,
    log: Option<File>,
    /// The passes of each step.
    steps: Mutex<Vec<u64>>,
    /// Wakes those who wait for a step.
    passed: Condvar,
    calls: AtomicU64,
    /// Bytes that wait for their record, where they do not come first.
    withheld: Mutex<HashMap<String, Vec<u8>>>,
}

impl Armed {
    fn note(&self, line: &str) {
        if let Some(mut log) = self.log.as_ref() {
            log.write_all(format!("{line}\n").as_bytes()).expect("the log can be written");
        }
    }
}

/// The line that the log has for each call that failed.
pub const REFUSED: &str = "refused";

static ARMED: OnceLock<Armed> = OnceLock::new();

/// Puts `plan` in force for the rest of the process.
///
/// # Panics
/// If one is in force already, or the log cannot be made.
pub fn arm(plan: Plan) {
    let log = plan.log.as_ref().map(|path| {
        fs::OpenOptions::new().append(true).create(true).open(path).expect("the log can be made")
    });
    let armed = Armed {
        plan,
        log,
        steps: Mutex::new(vec![0; Step::ALL.len()]),
        passed: Condvar::new(),
        calls: AtomicU64::new(0),
        withheld: Mutex::default(),
    };
    assert!(ARMED.set(armed).is_ok(), "a process is armed once");
}

/// Notes that a step is done, and ends the process if the plan wants that.
pub fn reached(step: Step) {
    let Some(armed) = ARMED.get() else { return };
    armed.note(step.name());
    let mut steps = armed.steps.lock();
    let passed = steps[step as usize];
    steps[step as usize] += 1;
    drop(steps);
    armed.passed.notify_all();
    if armed.plan.kill_at == Some((step, passed)) {
        kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
    }
}

/// Waits until the process has passed a step, no longer than `patience`; not at all if no plan is in
/// force. Blocks.
pub fn await_step(step: Step, patience: Duration) {
    let Some(armed) = ARMED.get() else { return };
    let mut steps = armed.steps.lock();
    let is_ahead = |steps: &mut Vec<u64>| steps[step as usize] == 0;
    armed.passed.wait_while_for(&mut steps, is_ahead, patience);
}

/// Fails if the plan wants this call to fail.
pub fn attempt(call: Call) -> Result<(), Errno> {
    let Some(armed) = ARMED.get() else { return Ok(()) };
    match armed.plan.failure {
        Some(failure) if failure.call == call => {
            let number = armed.calls.fetch_add(1, Ordering::SeqCst) + 1;
            let fails = number >= failure.from && number - failure.from < failure.count;
            if !fails {
                return Ok(());
            }
            armed.note(REFUSED);
            Err(Errno::from_raw_os_error(failure.errno))
        }
        _ => Ok(()),
    }
}

/// Tells whether the plan takes that part of the protocol away.
pub fn takes(part: Part) -> bool {
    ARMED.get().is_some_and(|armed| armed.plan.without == Some(part))
}

/// Takes the bytes of a staged file away until its record is committed, if the plan wants that.
pub fn withhold(staged: &str, directory: &File) {
    if !takes(Part::Staging) && !takes(Part::BytesFirst) {
        return;
    }

    let path = path_of(directory).join(staged);
    if let (Some(armed), Ok(bytes)) = (ARMED.get(), fs::read(&path)) {
        armed.withheld.lock().insert(staged.to_owned(), bytes);
        fs::remove_file(path).expect("a staged file can be unlinked");
    }
}

/// Writes bytes that were withheld: under their staged name, or straight under the final one.
pub fn hand_out(staged: &str, staging: &File, blobs: &File, key: &str) {
    let Some(armed) = ARMED.get() else { return };
    let Some(bytes) = armed.withheld.lock().remove(staged) else { return };
    let path =
        if takes(Part::Staging) { path_of(blobs).join(key) } else { path_of(staging).join(staged) };

    let mut file = File::create_new(path).expect("a key is used once");
    for piece in bytes.chunks(4096) {
        file.write_all(piece).expect("there is room");
        reached(Step::StagedBlockWritten);
    }
}

fn path_of(directory: &File) -> PathBuf {
    use std::os::fd::AsRawFd;

    let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
    fs::read_link(link).expect("an open directory has a path")
}
