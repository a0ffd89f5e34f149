//! The launcher's command line, which [`Sandbox`](crate::Sandbox) writes.

use std::ffi::OsString;
use std::path::PathBuf;

/// The launcher's arguments.
#[derive(Default)]
pub(super) struct Arguments {
    pub(super) work: PathBuf,
    pub(super) cpu_secs: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) file_bytes: Option<u64>,
    pub(super) open_files: Option<u64>,
    /// The files and directories that can be read, in addition to the system's and the program.
    pub(super) readable: Vec<PathBuf>,
    /// True if the end of stdin means the end of the caller.
    pub(super) is_tied: bool,
    /// Set for the second process, with the namespaces that the first process created.
    pub(super) inner: Option<Namespaces>,
    /// If true, starts no command, and writes the protections to stdout.
    pub(super) is_probe: bool,
    /// For tests: the protections to omit.
    pub(super) without: Vec<String>,
    pub(super) program: Vec<OsString>,
}

/// The namespaces of the second process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Namespaces {
    Own,
    OfTheCaller,
}

impl Arguments {
    pub(super) fn parse(all: Vec<OsString>) -> Option<Self> {
        let mut arguments = Self::default();
        let mut all = all.into_iter();
        while let Some(name) = all.next() {
            match name.to_str()? {
                "--inner" => arguments.inner = Some(Namespaces::OfTheCaller),
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

    /// Returns true unless a test omits this protection.
    pub(super) fn takes(&self, what: &str) -> bool {
        self.without.iter().all(|other| other != what)
    }
}

fn number(argument: Option<OsString>) -> Option<u64> {
    argument?.to_str()?.parse().ok()
}
