//! Faults for tests: kills at a step, failing calls, and missing parts of the protocol.
//!
//! # Purpose
//! A harness is only useful if it finds real errors. So a test can remove the fsyncs, the staging,
//! or the order of bytes and record at run time, and then the harness must fail. The same code
//! kills the process at a step, and lets calls fail. For example, `Plan { kill_at:
//! Some((Step::Committed, 2)), .. }` kills the process at the third commit.
//!
//! # Not in releases
//! Only tests enable the feature `sabotage`.
//!
//! # Locking
//! Arm a process once, before its store is opened. The counts are atomic. Each log entry is a
//! single write.

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

/// A part of the protocol that a test can remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Files, directories and commits are synced.
    Fsync,
    /// Bytes get their final name only after they are complete.
    Staging,
    /// Bytes are stored before their record is committed.
    BytesFirst,
    /// A change writes its event.
    Events,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fsync" => Ok(Self::Fsync),
            "staging" => Ok(Self::Staging),
            "bytes-first" => Ok(Self::BytesFirst),
            "events" => Ok(Self::Events),
            _ => Err(format!("fsync, staging, bytes-first or events, not {text}")),
        }
    }
}

/// Calls that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Kind of call.
    pub call: Call,
    /// Number of the first failing call, starting at 1.
    pub from: u64,
    /// Failing call count.
    pub count: u64,
    /// Error code of these calls.
    pub errno: i32,
}

/// The faults for a process.
#[derive(Debug, Default)]
pub struct Plan {
    /// Step at which the process is killed, and the number of earlier passes.
    pub kill_at: Option<(Step, u64)>,
    /// Log file for each step's name, and for [`REFUSED`].
    pub log: Option<PathBuf>,
    /// Calls that fail.
    pub failure: Option<Failure>,
    /// The missing part of the protocol.
    pub without: Option<Part>,
}

/// An armed plan.
struct Armed {
    plan: Plan,
    log: Option<File>,
    /// Number of passes of each step.
    steps: Mutex<Vec<u64>>,
    /// Wakes the threads that wait for a step.
    passed: Condvar,
    calls: AtomicU64,
    /// Bytes that wait for their record, without `BytesFirst`.
    withheld: Mutex<HashMap<String, Vec<u8>>>,
}

impl Armed {
    fn note(&self, line: &str) {
        if let Some(mut log) = self.log.as_ref() {
            log.write_all(format!("{line}\n").as_bytes()).expect("the log can be written");
        }
    }
}

/// Log line for each failed call.
pub const REFUSED: &str = "refused";

static ARMED: OnceLock<Armed> = OnceLock::new();

/// Arms `plan` for the rest of the process.
///
/// # Panics
/// Panics if a plan is already armed, or if the log cannot be created.
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

/// Records that a step is done. Kills the process if the plan says so.
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

/// Waits until the process has passed a step, at most for `patience`. Returns at once if no plan is
/// armed. Blocks.
pub fn await_step(step: Step, patience: Duration) {
    let Some(armed) = ARMED.get() else { return };
    let mut steps = armed.steps.lock();
    let is_ahead = |steps: &mut Vec<u64>| steps[step as usize] == 0;
    armed.passed.wait_while_for(&mut steps, is_ahead, patience);
}

/// Fails if the plan lets this call fail.
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

/// Returns true if the plan removes this part of the protocol.
pub fn takes(part: Part) -> bool {
    ARMED.get().is_some_and(|armed| armed.plan.without == Some(part))
}

/// Keeps the bytes of a staged file until its record is committed, if the plan says so.
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

/// Writes the bytes that [`withhold`] kept, under their staged or final name.
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
