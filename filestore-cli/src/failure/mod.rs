//! The failure of a command: the action, the reason, a hint for the user, and an exit status for
//! scripts.

mod hint;

use std::error::Error as _;
use std::fmt;
use std::io;
use std::process::ExitCode;

use filestore_client as client;
use filestore_core as core;
use filestore_core::api::ErrorCode;
use serde_json::{Value, json};

use crate::output::plain;

/// The result of every command.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The result of a command, from best to worst. The worst of several results wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Success. This includes a closed stdout.
    Done,
    /// The target refused the request, or the object does not exist.
    Refused,
    /// Success with findings, for example of a check.
    Found,
    /// Wrong usage or a failure of the connection, the disk or the service.
    Failed,
    /// The user pressed Ctrl-C.
    Interrupted,
    /// Another process sent SIGTERM.
    Terminated,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Failed => 2,
            Exit::Found => 3,
            // The same values that a shell reports after SIGINT and SIGTERM.
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
        })
    }
}

/// The reason why a command failed. Boxed, to keep every `Result` small.
#[derive(Debug)]
pub(crate) struct Failure(Box<Inner>);

#[derive(Debug)]
struct Inner {
    exit: Exit,
    doing: Option<String>,
    message: String,
    code: Option<ErrorCode>,
    field: Option<String>,
    item: Option<usize>,
    request_id: Option<String>,
    hint: Option<String>,
    /// True if no server answered.
    unreachable: bool,
}

impl Failure {
    fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            exit,
            doing: None,
            message: message.into(),
            code: None,
            field: None,
            item: None,
            request_id: None,
            hint: None,
            unreachable: false,
        }))
    }

    /// Creates the failure for a command that the command line itself refuses.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, message)
    }

    /// Creates the failure for an error code of a target.
    pub(crate) fn told(code: ErrorCode, message: impl Into<String>) -> Self {
        let mut failure = Self::new(exit_of_code(&code), message);
        failure.0.hint = hint::of(&code, None, &[]);
        failure.0.code = Some(code);
        failure
    }

    /// Creates the failure for a technical problem or wrong usage.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Creates the failure for a local read or write. `doing` names the file. A closed pipe counts
    /// as success.
    pub(crate) fn io(doing: impl Into<String>, error: &io::Error) -> Self {
        let exit =
            if error.kind() == io::ErrorKind::BrokenPipe { Exit::Done } else { Exit::Failed };
        Self::new(exit, error.to_string()).doing(doing)
    }

    /// Adds the failed action, for example `cannot upload photo.jpg`. Keeps an existing
    /// description.
    #[must_use]
    pub(crate) fn doing(mut self, doing: impl Into<String>) -> Self {
        self.0.doing.get_or_insert_with(|| doing.into());
        self
    }

    /// Replaces the general hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Returns the exit status of the process.
    pub(crate) fn exit(&self) -> Exit {
        self.0.exit
    }

    /// Returns the service's stable code, such as `not_found`.
    pub(crate) fn code(&self) -> Option<&ErrorCode> {
        self.0.code.as_ref()
    }

    /// Returns the name of the invalid field.
    pub(crate) fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// Returns true if the file does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        self.0.code == Some(ErrorCode::NotFound)
    }

    /// Returns the index of the failed batch item.
    pub(crate) fn item(&self) -> Option<usize> {
        self.0.item
    }

    /// Returns true if the next file would fail for the same reason.
    pub(crate) fn hits_all(&self) -> bool {
        let by_code = matches!(
            self.0.code,
            Some(
                ErrorCode::Unauthorized
                    | ErrorCode::Forbidden
                    | ErrorCode::MisdirectedRequest
                    | ErrorCode::BindingRequired
                    | ErrorCode::StorageFull
                    | ErrorCode::DatabaseFull
                    | ErrorCode::Locked
                    | ErrorCode::Unusable
            )
        );

        let by_field = matches!(self.0.field.as_deref(), Some("organization_id" | "sub_system"));
        by_code || by_field || self.0.unreachable
    }

    /// Returns true if the same command can succeed later without a change.
    pub(crate) fn may_pass(&self) -> bool {
        match &self.0.code {
            None => self.0.exit == Exit::Failed,
            Some(code) => matches!(
                code,
                ErrorCode::Busy
                    | ErrorCode::UploadStalled
                    | ErrorCode::TooManyUploads
                    | ErrorCode::QuotaExceeded
                    | ErrorCode::StorageFull
                    | ErrorCode::DatabaseFull
                    | ErrorCode::ProviderUnavailable
                    | ErrorCode::BindingRequired
                    | ErrorCode::ProviderInactive
                    | ErrorCode::OutcomeUnknown
            ),
        }
    }

    /// Returns the `error` object of the JSON output.
    pub(crate) fn to_json(&self) -> Value {
        let inner = &self.0;
        json!({
            "message": self.to_string(),
            "code": inner.code,
            "field": inner.field,
            "request_id": inner.request_id,
            "hint": inner.hint,
        })
    }

    /// Returns the message for people. The message can contain file names and texts from a server, so the
    /// call replaces characters that a terminal interprets.
    pub(crate) fn explain(&self) -> String {
        let error = lines(&self.to_string());
        match &self.0.hint {
            Some(hint) => format!("error: {error}\n  hint: {}", lines(hint)),
            None => format!("error: {error}"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { doing, message, field, request_id, exit, .. } = &*self.0;
        if let Some(doing) = doing {
            write!(f, "{doing}: ")?;
        }
        if let Some(field) = field.as_deref().filter(|field| !message.contains(field)) {
            write!(f, "{field}: ")?;
        }
        f.write_str(message)?;

        // The operator finds the cause in the server's log with this id.
        match request_id {
            Some(id) if *exit == Exit::Failed => write!(f, " (request {id})"),
            _ => Ok(()),
        }
    }
}

impl From<core::Error> for Failure {
    fn from(error: core::Error) -> Self {
        let exit = exit_of(error.kind());
        // The user owns the data directory and needs the cause.
        let message = if exit == Exit::Failed { error.chain() } else { error.message().to_owned() };

        let mut failure = Self::new(exit, message);
        let details = error.details();
        let field = core::api::field_name(&error);
        let code = ErrorCode::from(error.kind());

        failure.0.hint = hint::of(&code, field.as_deref(), &details.allowed);
        failure.0.code = Some(code);
        failure.0.field = field;
        failure.0.item = details.item.and_then(|item| usize::try_from(item).ok());

        failure
    }
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Self {
        if is_broken_pipe(&error) {
            return Self::new(Exit::Done, "the output was closed");
        }
        let exit = match (error.status(), error.kind()) {
            (Some(400..=499), _) => Exit::Refused,
            (Some(_), _) => Exit::Failed,
            (None, kind) => exit_without_reply(kind),
        };

        let mut failure = Self::new(exit, error.message());
        failure.0.hint = hint::of_server(&error);
        failure.0.code = error.code().cloned();
        failure.0.field = error.field().map(str::to_owned);

        let item = error.problem().and_then(|problem| problem.item);
        failure.0.item = item.and_then(|item| usize::try_from(item).ok());
        failure.0.unreachable = error.kind() == client::ErrorKind::Connect;
        failure.0.request_id = error.request_id().map(str::to_owned);

        failure
    }
}

/// Indents all lines of a text but the first, so that no line looks like a separate message.
fn lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n    ")
}

/// Maps a kind to an exit status by its HTTP status: 4xx is a refusal, and 5xx is a failure.
fn exit_of(kind: core::ErrorKind) -> Exit {
    if kind.http_status().is_client_error() { Exit::Refused } else { Exit::Failed }
}

/// Maps a code to an exit status like [`exit_of`]. Unknown codes of a later server are refusals.
fn exit_of_code(code: &ErrorCode) -> Exit {
    match code {
        ErrorCode::ProviderUnavailable
        | ErrorCode::Busy
        | ErrorCode::UploadStalled
        | ErrorCode::UploadElsewhere
        | ErrorCode::TooManyUploads
        | ErrorCode::OutcomeUnknown
        | ErrorCode::StorageFull
        | ErrorCode::DatabaseFull
        | ErrorCode::Locked
        | ErrorCode::Unusable
        | ErrorCode::RecordDamaged
        | ErrorCode::Internal => Exit::Failed,
        _ => Exit::Refused,
    }
}

fn exit_without_reply(kind: client::ErrorKind) -> Exit {
    use client::ErrorKind as Kind;

    match kind {
        Kind::NotFound
        | Kind::Conflict
        | Kind::Invalid
        | Kind::TooLarge
        | Kind::Unauthorized
        | Kind::Forbidden
        | Kind::PreconditionFailed => Exit::Refused,
        // No reply, a server failure, or a kind of a later client.
        _ => Exit::Failed,
    }
}

fn is_broken_pipe(error: &client::Error) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    error.kind() == client::ErrorKind::Io
        && io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_file_the_field_and_the_next_step() {
        let error = "a b".parse::<core::OrganizationId>().unwrap_err();
        let failure = Failure::from(error).doing("cannot upload photo.jpg");
        let text = failure.explain();
        assert!(text.starts_with("error: cannot upload photo.jpg: "), "{text}");
        assert!(text.contains("organization_id"), "{text}");
        assert!(text.contains("\n  hint: "), "{text}");
        assert_eq!(failure.exit(), Exit::Refused);
    }

    #[test]
    fn neither_a_name_nor_a_servers_words_command_the_terminal() {
        let failure = Failure::refused("no\u{1b}]0;owned\u{7}\nerror: all is lost")
            .doing("cannot upload a\u{9b}31m")
            .hint("call\u{1b}[2J\u{202E}me");
        assert_eq!(
            failure.explain(),
            "error: cannot upload a\u{FFFD}31m: no\u{FFFD}]0;owned\u{FFFD}\n    error: all is lost\n  \
             hint: call\u{FFFD}[2J\u{FFFD}me"
        );
    }

    #[test]
    fn a_code_and_a_kind_end_a_command_alike() {
        for kind in core::ErrorKind::ALL {
            assert_eq!(exit_of_code(&ErrorCode::from(*kind)), exit_of(*kind), "{kind:?}");
        }
    }

    #[test]
    fn the_innermost_description_stays() {
        let failure = Failure::failed("no").doing("cannot read a.txt").doing("cannot upload a.txt");
        assert_eq!(failure.to_string(), "cannot read a.txt: no");
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let error = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::io("cannot write to stdout", &error).exit(), Exit::Done);
    }

    #[test]
    fn outcomes_fold_to_the_worst() {
        assert_eq!([Exit::Refused, Exit::Done, Exit::Failed].into_iter().max(), Some(Exit::Failed));
    }
}
