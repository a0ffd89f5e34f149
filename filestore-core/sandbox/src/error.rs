//! The public error type: why a run has no result.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::{fmt, io};

/// The result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The failure kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The run took longer than [`Limits::time`](crate::Limits::time).
    TooSlow,
    /// The command wrote more bytes or files than allowed, or an output is too large.
    TooMuchOutput,
    /// The command started too many processes.
    TooManyProcesses,
    /// All processes together used too much memory.
    TooMuchMemory,
    /// The kernel ended the command at its processor time limit or file size limit.
    OverLimit,
    /// The command ended with an exit code other than 0. [`Error::exit_code`] returns the code.
    Failed,
    /// The command wrote no output, or an output that is not a plain file.
    NoOutput,
    /// The program is not installed, or the kernel cannot start it.
    NotFound,
    /// The kernel lacks a protection, so the command was not started.
    NotIsolated,
    /// A [`Killer`](crate::Killer) ended the run.
    Killed,
    /// The launcher does not start, or the program does not call [`launch`](crate::launch).
    Launcher,
    /// A file operation failed. The source is the [`io::Error`].
    Io,
}

impl ErrorKind {
    const fn message(self) -> &'static str {
        match self {
            Self::TooSlow => "the command takes too long",
            Self::TooMuchOutput => "the command writes too much",
            Self::TooManyProcesses => "the command starts too many processes",
            Self::TooMuchMemory => "the command takes too much memory",
            Self::OverLimit => "the command takes too much time or writes too much",
            Self::Failed => "the command failed",
            Self::NoOutput => "the command wrote no plain file as its output",
            Self::NotFound => "the program is not installed",
            Self::NotIsolated => "the command cannot be isolated here",
            Self::Killed => "the run was killed",
            Self::Launcher => "the launcher does not start",
            Self::Io => "a file operation of the sandbox failed",
        }
    }
}

/// A failure, with its cause for logs.
///
/// ```no_run
/// use filestore_sandbox::{ErrorKind, Sandbox, Scratch};
///
/// # fn example(sandbox: &Sandbox, scratch: &Scratch) {
/// if let Err(error) = sandbox.run(scratch, ["grep", "-q", "word", "input"]) {
///     match error.kind() {
///         ErrorKind::Failed if error.exit_code() == Some(1) => println!("the word is not there"),
///         ErrorKind::TooSlow => println!("the file is too large"),
///         _ => println!("{error}: {}", scratch.stderr()),
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: Cow<'static, str>,
    exit_code: Option<i32>,
    source: Option<io::Error>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self { kind, message: kind.message().into(), exit_code: None, source: None }
    }

    /// Returns the error for a launcher that does not start or does not answer.
    pub(crate) fn launcher(source: io::Error) -> Self {
        Self { source: Some(source), ..Self::new(ErrorKind::Launcher) }
    }

    /// Returns the error for a failed file operation.
    pub(crate) fn io(source: io::Error) -> Self {
        Self { source: Some(source), ..Self::new(ErrorKind::Io) }
    }

    /// Returns the error for a command that ended with an exit code other than 0.
    pub(crate) fn failed(exit_code: Option<i32>) -> Self {
        let error = Self { exit_code, ..Self::new(ErrorKind::Failed) };
        match exit_code {
            Some(code) => error.with_message(format!("the command failed with exit code {code}")),
            None => error,
        }
    }

    pub(crate) fn with_message(self, message: String) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Returns the failure kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the exit code of a command that [failed](ErrorKind::Failed). For a signal, it is 128 plus its
    /// number.
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<Error> for io::Error {
    /// Returns the error of the file operation, or an error that wraps this one.
    fn from(error: Error) -> Self {
        match error {
            Error { kind: ErrorKind::Io, source: Some(source), .. } => source,
            error => Self::other(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_is_wrong_and_keeps_its_cause_for_logs() {
        let error = Error::launcher(io::Error::from_raw_os_error(2));
        assert_eq!(error.to_string(), "the launcher does not start");
        assert!(error.source().unwrap().to_string().contains("No such file"));

        let error = Error::failed(Some(7));
        assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Failed, Some(7)));
        assert_eq!(error.to_string(), "the command failed with exit code 7");
    }

    #[test]
    fn a_fault_of_the_disk_keeps_the_error_of_the_system() {
        assert_eq!(
            io::Error::from(Error::io(io::Error::from_raw_os_error(5))).raw_os_error(),
            Some(5)
        );
        let other = io::Error::from(Error::new(ErrorKind::TooSlow));
        assert_eq!(other.to_string(), "the command takes too long");
    }
}
