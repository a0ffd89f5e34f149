//! The failure of a command: what failed, why, what to do next, and the exit status that tells scripts
//! which kind of failure it was.

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

/// The end of a command, from good to bad. Several outcomes are folded to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// All of it was done; also if the reader of our output had enough.
    Done,
    /// The target refused, or has no such thing.
    Refused,
    /// Success that found what should not be there: a check of the store, say.
    Found,
    /// Wrong usage, or something broke: no connection, disk, fault of the service.
    Failed,
    /// The user pressed Ctrl-C.
    Interrupted,
    /// Another process asked for the end.
    Terminated,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Failed => 2,
            Exit::Found => 3,
            // What a shell reports of a command that SIGINT or SIGTERM ended.
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
        })
    }
}

/// The reason why a command failed. Boxed, as it travels through every `Result` here.
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

    /// Makes the failure of a command that was refused on this side.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, message)
    }

    /// Makes the failure that a target told with a stable code.
    pub(crate) fn told(code: ErrorCode, message: impl Into<String>) -> Self {
        let mut failure = Self::new(exit_of_code(&code), message);
        failure.0.hint = hint::of(&code, None, &[]);
        failure.0.code = Some(code);
        failure
    }

    /// Makes the failure of something that broke, or was asked for in a way that cannot work.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Makes the failure of a read or write on this side; `doing` names the file. A closed pipe is no
    /// failure: the reader had enough.
    pub(crate) fn io(doing: impl Into<String>, error: &io::Error) -> Self {
        let exit =
            if error.kind() == io::ErrorKind::BrokenPipe { Exit::Done } else { Exit::Failed };
        Self::new(exit, error.to_string()).doing(doing)
    }

    /// Adds what was being done, such as `cannot upload photo.jpg`. The innermost description stays.
    #[must_use]
    pub(crate) fn doing(mut self, doing: impl Into<String>) -> Self {
        self.0.doing.get_or_insert_with(|| doing.into());
        self
    }

    /// Sets what to do next, in place of the general advice.
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

    /// Tells whether there is no such file, or not any more.
    pub(crate) fn is_missing(&self) -> bool {
        self.0.code == Some(ErrorCode::NotFound)
    }

    /// Returns the batch item at fault, counted from zero.
    pub(crate) fn item(&self) -> Option<usize> {
        self.0.item
    }

    /// Tells whether the next file would fail for the same reason.
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

    /// Returns the lines that people read. Names of files and a server's words are in them, so nothing
    /// is left that a terminal would obey.
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

        // Whoever runs the server finds the cause in its log under this id.
        match request_id {
            Some(id) if *exit == Exit::Failed => write!(f, " (request {id})"),
            _ => Ok(()),
        }
    }
}

impl From<core::Error> for Failure {
    fn from(error: core::Error) -> Self {
        let exit = exit_of(error.kind());
        // The user of a data directory owns it and needs the cause.
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
        let allowed = error.problem().map(|problem| problem.allowed.as_slice()).unwrap_or_default();
        failure.0.hint = match error.code() {
            Some(code) => hint::of(code, error.field(), allowed),
            None => hint::without_reply(error.kind()),
        };
        failure.0.code = error.code().cloned();
        failure.0.field = error.field().map(str::to_owned);

        let item = error.problem().and_then(|problem| problem.item);
        failure.0.item = item.and_then(|item| usize::try_from(item).ok());
        failure.0.unreachable = error.kind() == client::ErrorKind::Connect;
        failure.0.request_id = error.request_id().map(str::to_owned);

        failure
    }
}

/// Keeps the lines of a text, and indents all but the first: none of them passes for a line of ours.
fn lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n    ")
}

/// Sorts kinds as the HTTP status classes do: a kind that would be 4xx is refused, one of 5xx failed.
fn exit_of(kind: core::ErrorKind) -> Exit {
    use core::ErrorKind as Kind;

    match kind {
        Kind::InvalidField
        | Kind::MissingField
        | Kind::UnknownField
        | Kind::RepeatedField
        | Kind::MalformedBody
        | Kind::Unauthorized
        | Kind::Forbidden
        | Kind::SignatureInvalid
        | Kind::SignatureExpired
        | Kind::SignatureUsed
        | Kind::NotFound
        | Kind::InvalidTransition
        | Kind::Conflict
        | Kind::AlreadyPurging
        | Kind::BindingRequired
        | Kind::BindingAlreadyActive
        | Kind::NoActiveBinding
        | Kind::UnknownProvider
        | Kind::ProviderInactive
        | Kind::PreconditionFailed
        | Kind::IdempotencyMismatch
        | Kind::IdempotencyInProgress
        | Kind::DigestMismatch
        | Kind::TooLarge
        | Kind::TooManyItems
        | Kind::QuotaExceeded
        | Kind::NotAnImage
        | Kind::ConversionFailed
        | Kind::CorruptImage
        | Kind::ImageTooLarge
        | Kind::BodyTimeout => Exit::Refused,

        Kind::ProviderUnavailable
        | Kind::Busy
        | Kind::OutcomeUnknown
        | Kind::StorageFull
        | Kind::DatabaseFull
        | Kind::Locked
        | Kind::Unusable
        | Kind::RecordDamaged
        | Kind::Internal => Exit::Failed,
    }
}

/// Sorts codes as [`exit_of`] sorts the kinds; a code of a later server counts as a refusal.
fn exit_of_code(code: &ErrorCode) -> Exit {
    match code {
        ErrorCode::ProviderUnavailable
        | ErrorCode::Busy
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
        // No reply, a failing server, or a kind of a later client.
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
