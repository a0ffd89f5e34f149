//! One run of a converter: its directory, its process, its end.
//!
//! # Crash safety
//! The directory belongs to the run and goes with it; what a killed process leaves is removed at the next
//! opening. The picture is unlinked before anyone reads it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{self, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::LAUNCHER_ARGUMENT;
use super::watch::{Processes, remove_tree, written};
use crate::domain::config::{ConverterConfig, ConverterOutput};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::tasks;

/// The launcher's exit code where the kernel lacks what isolates, and where the program is missing.
pub(super) const NOT_ISOLATED: u8 = 125;
pub(super) const NOT_STARTED: u8 = 126;
pub(super) const NOT_FOUND: u8 = 127;

/// The time between two looks at how much was written.
const LOOKS_APART: Duration = Duration::from_millis(100);
/// The most of the converter's own words that are logged, in bytes.
const WORDS_BYTES: u64 = 2048;
/// The address space of all processes of a run, in multiples of what each may have: a process that starts
/// another one counts twice for a moment.
const ADDRESS_SPACES: u64 = 2;

/// A converter with its launcher.
pub(super) struct Command {
    pub(super) launcher: PathBuf,
    pub(super) config: ConverterConfig,
}

/// A run with its directory, which goes with it.
pub(super) struct Job {
    command: Command,
    directory: PathBuf,
}

/// The share that a killed run took too much of.
#[derive(Clone, Copy)]
enum Killed {
    Time,
    Output,
    Processes,
    Memory,
}

impl Killed {
    const fn message(self) -> &'static str {
        match self {
            Self::Time => "the conversion takes too long",
            Self::Output => "the conversion writes too much",
            Self::Processes => "the conversion starts too many processes",
            Self::Memory => "the conversion takes too much memory",
        }
    }
}

fn not_begun(error: io::Error) -> Error {
    Error::io("beginning a conversion", error)
}

impl Job {
    /// Makes the directory below `all`, and copies the source into it. Blocks.
    pub(super) fn begin(all: &Path, command: Command, mut source: File) -> Result<Self> {
        let size = source.metadata().map_err(not_begun)?.len();
        if size > command.config.max_input_bytes {
            let limit = command.config.max_input_bytes;
            let message = format!("the file is too large to be converted: {size} bytes");
            return Err(failed(message).with_limit(limit));
        }

        let directory = all.join(tasks::random_name());
        let job = Self { command, directory };
        fs::create_dir_all(job.work()).map_err(not_begun)?;
        source.seek(SeekFrom::Start(0)).map_err(not_begun)?;
        let mut copy = File::create_new(job.input()).map_err(not_begun)?;
        io::copy(&mut source, &mut copy).map_err(not_begun)?;
        Ok(job)
    }

    /// Runs the converter to its end, and opens what it made.
    pub(super) async fn run(self) -> Result<File> {
        let group = Group::default();
        let (launch, waited_for) = (self.launch()?, group.clone());
        // One thread starts the process and waits for it: the process dies with that thread.
        let mut ended = tasks::blocking(move || waited_for.start_and_wait(launch));
        // Also where nobody waits for the run any more.
        let _killed_at_the_end = KillOnDrop(group.clone());

        let until = Instant::now() + self.command.config.timeout;
        let mut looks = interval(LOOKS_APART);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut killed = None;

        let status = loop {
            tokio::select! {
                status = &mut ended => break status,
                _ = looks.tick() => {}
            }
            if killed.is_none() {
                killed = self.look(until, &group).await;
            }
            if killed.is_some() {
                group.kill();
            }
        };

        let status = status.map_err(|error| Error::internal("running a converter", error))?;
        tasks::blocking(move || self.finish(status, killed))
            .await
            .map_err(|error| Error::internal("reading a converted picture", error))?
    }

    /// Prepares the launcher's process.
    fn launch(&self) -> Result<process::Command> {
        let config = &self.command.config;
        let ConverterConfig { cpu, memory_bytes, max_output_bytes, open_files, .. } = *config;
        let work = self.work();
        let log = File::create_new(self.log())
            .map_err(|error| Error::io("beginning a conversion", error))?;

        let mut launch = process::Command::new(&self.command.launcher);
        launch.args([LAUNCHER_ARGUMENT, "--tied", "--work"]).arg(&work);
        for readable in &config.readable {
            launch.arg("--readable").arg(readable);
        }
        for (name, limit) in [
            ("--cpu", cpu.as_secs().max(1)),
            ("--memory", memory_bytes),
            ("--file", max_output_bytes),
            ("--open", open_files),
        ] {
            launch.arg(name).arg(limit.to_string());
        }
        launch.arg("--").args(self.arguments());

        launch.current_dir(&work).env_clear();
        launch.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LANG", "C.UTF-8");
        launch.env("HOME", &work).env("TMPDIR", &work);
        // The end of stdin tells the launcher that the server has ended.
        launch.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).process_group(0);
        Ok(launch)
    }

    /// Fills in the names of files. Nothing is ever read by a shell.
    fn arguments(&self) -> Vec<String> {
        let paths = [self.input(), self.output(), self.work().join("output")];
        let [input, output, stem] = paths.map(|path| path.display().to_string());

        let arguments = self.command.config.command.iter().map(|argument| {
            let filled = argument.replace("{input}", &input);
            filled.replace("{output}", &output).replace("{stem}", &stem)
        });
        arguments.collect()
    }

    /// Tells if the run must end.
    async fn look(&self, until: Instant, group: &Group) -> Option<Killed> {
        if Instant::now() >= until {
            return Some(Killed::Time);
        }

        let ConverterConfig { memory_bytes, max_input_bytes, max_output_bytes, .. } =
            self.command.config;
        let (work, leader) = (self.work(), group.leader());
        let look = tasks::blocking(move || {
            let processes = Processes::below(leader?);
            if processes.are_too_many() {
                return Some(Killed::Processes);
            }
            if processes.address_bytes() > memory_bytes.saturating_mul(ADDRESS_SPACES) {
                return Some(Killed::Memory);
            }
            let most = max_output_bytes.saturating_add(max_input_bytes);
            let is_bounded = written(&work, &processes).is_some_and(|bytes| bytes <= most);
            (!is_bounded).then_some(Killed::Output)
        });
        look.await.ok().flatten()
    }

    /// Opens the picture that was made. Blocks.
    fn finish(&self, status: io::Result<ExitStatus>, killed: Option<Killed>) -> Result<File> {
        let status = status
            .map_err(|error| Error::internal("starting the launcher of a converter", error))?;
        let program = self.command.config.program();
        if let Some(killed) = killed {
            return Err(self.refused(killed.message()));
        }

        match status.code().and_then(|code| u8::try_from(code).ok()) {
            Some(0) => self.open_output(),
            Some(NOT_FOUND | NOT_STARTED) => {
                Err(self.refused(&format!("the converter is not installed: {program}")))
            }
            Some(NOT_ISOLATED) => Err(self.refused("the converter cannot be isolated here")),
            _ if is_killed_by_limit(status) => {
                Err(self.refused("the conversion takes too much time or writes too much"))
            }
            _ => Err(self.refused("the converter could not read the file")),
        }
    }

    /// Opens the output as a plain file of bounded size, whatever the converter put there, and unlinks
    /// it.
    fn open_output(&self) -> Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = i32::try_from(flags.bits()).expect("flags of open are few");
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(self.output());
        let Ok(file) = opened else {
            return Err(self.refused("the converter made no picture"));
        };

        let metadata =
            file.metadata().map_err(|error| Error::io("opening a converted picture", error))?;
        if !metadata.is_file() || metadata.nlink() != 1 {
            return Err(self.refused("the converter made no picture"));
        }
        if metadata.len() > self.command.config.max_output_bytes {
            return Err(self.refused("the conversion writes too much"));
        }
        let _ = fs::remove_file(self.output());
        Ok(file)
    }

    /// Makes the error of this run, with what the converter said as its source.
    fn refused(&self, message: &str) -> Error {
        let mut words = Vec::new();
        if let Ok(log) = File::open(self.log()) {
            let _ = log.take(WORDS_BYTES).read_to_end(&mut words);
        }
        let words = String::from_utf8_lossy(&words);
        let said = format!("{} said: {}", self.command.config.program(), words.trim());
        failed(message).with_source(said)
    }

    fn work(&self) -> PathBuf {
        self.directory.join("work")
    }

    fn log(&self) -> PathBuf {
        self.directory.join("words")
    }

    fn input(&self) -> PathBuf {
        self.work().join("input")
    }

    fn output(&self) -> PathBuf {
        self.work().join(match self.command.config.output {
            ConverterOutput::Png => "output.png",
            ConverterOutput::Jpeg => "output.jpg",
        })
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.directory) {
            tracing::warn!(%error, "cannot remove the directory of a conversion");
        }
    }
}

/// The process group of a run.
#[derive(Clone, Default)]
struct Group(Arc<Mutex<Life>>);

#[derive(Clone, Copy, Default)]
enum Life {
    #[default]
    NotStarted,
    /// The leader is not reaped, so that its id cannot be another's yet.
    Led(Pid),
    /// Killed before its start, or reaped.
    Over,
}

impl Group {
    /// Returns the first process, while its id is its own.
    fn leader(&self) -> Option<Pid> {
        match *self.0.lock() {
            Life::Led(leader) => Some(leader),
            Life::NotStarted | Life::Over => None,
        }
    }

    /// Kills all processes of the group; one that is not started yet never is.
    fn kill(&self) {
        let mut life = self.0.lock();
        match *life {
            Life::Led(leader) => {
                let _ = kill_process_group(leader, Signal::KILL);
            }
            Life::NotStarted => *life = Life::Over,
            Life::Over => {}
        }
    }

    /// Starts the leader, waits for its end, and kills what it left behind.
    fn start_and_wait(&self, mut launch: process::Command) -> io::Result<ExitStatus> {
        let mut life = self.0.lock();
        if matches!(*life, Life::Over) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut child = launch.spawn()?;
        let leader = Pid::from_child(&child);
        *life = Life::Led(leader);
        drop(life);

        // Held to the end: its end is the server's.
        let tie = child.stdin.take();
        let unreaped = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(leader), unreaped));
        self.kill();
        *self.0.lock() = Life::Over;
        drop(tie);
        child.wait()
    }
}

/// Kills a group when nobody is left who could.
struct KillOnDrop(Group);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Tells if a limit of the launcher ended the process: of processor time, or of a file's size.
fn is_killed_by_limit(status: ExitStatus) -> bool {
    let signal = status.signal().or_else(|| status.code().map(|code| code - 128));
    [Signal::XCPU, Signal::XFSZ, Signal::KILL].map(|limit| Some(limit.as_raw())).contains(&signal)
}

fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::ConversionFailed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_given_up_before_its_start_starts_nothing() {
        let group = Group::default();
        drop(KillOnDrop(group.clone()));
        assert!(group.start_and_wait(process::Command::new("/bin/true")).is_err());
    }
}
