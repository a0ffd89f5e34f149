//! The output of a command: data on stdout, messages on stderr.

mod terminal;
mod table;
mod show;
mod sync_word;
mod meter;

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

use filestore_core::api::WorkFailure;
use indicatif::ProgressDrawTarget;
use serde::Serialize;
use serde_json::json;

use crate::args::GlobalArgs;
use crate::failure::{Exit, Failure, Result};
use show::is_command;

pub(crate) use meter::Meter;
pub(crate) use show::{FilePages, Organizations, age, counted, files, plain, record, size, when};
pub(crate) use table::{Align, Pages, Table};

/// The format of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Tables and sentences for people.
    People,
    /// JSON on stdout: one value, or one value per line.
    Json,
    /// Only the ids, one per line.
    Ids,
}

/// Prints the output of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    form: Form,
}

impl Output {
    /// Creates the output for the options.
    pub(crate) fn new(args: &GlobalArgs) -> Self {
        let form = match (args.json, args.quiet) {
            (true, _) => Form::Json,
            (false, true) => Form::Ids,
            (false, false) => Form::People,
        };
        Self { form }
    }

    /// Creates the output for `--json`, before the options are known.
    pub(crate) fn json() -> Self {
        Self { form: Form::Json }
    }

    /// Prints data in the requested format: one JSON value, one id per line, or text.
    pub(crate) fn data<T: Serialize>(
        self,
        value: &T,
        ids: impl FnOnce(&T) -> Vec<&str>,
        people: impl FnOnce(&T) -> String,
    ) -> Result<()> {
        match self.form {
            Form::Json => self.line(&to_json(value)),
            Form::People => self.line(people(value).trim_end_matches('\n')),
            Form::Ids => Self::ids(ids(value)),
        }
    }

    /// Prints a value that has no ids: JSON, or text for people. With `--quiet`, prints no output.
    pub(crate) fn report<T: Serialize>(
        self,
        value: &T,
        people: impl FnOnce(&T) -> String,
    ) -> Result<()> {
        self.data(value, |_| Vec::new(), people)
    }

    /// Prints an id for `--quiet`. Other formats show the id elsewhere.
    pub(crate) fn id(self, id: &str) -> Result<()> {
        match self.form {
            Form::Ids => Self::ids([id]),
            Form::People | Form::Json => Ok(()),
        }
    }

    /// Prints a text without an id, for example a URL. Prints the whole value for JSON.
    pub(crate) fn text<T: Serialize>(self, value: &T, text: &str) -> Result<()> {
        match self.form {
            Form::Json => self.line(&to_json(value)),
            Form::People | Form::Ids => self.line(&plain(text)),
        }
    }

    /// Prints several values: one JSON value per line, one id per line, or the caller's layout.
    pub(crate) fn each<T: Serialize>(
        self,
        values: &[T],
        id: impl Fn(&T) -> &str,
        people: impl FnOnce(&[T]) -> String,
    ) -> Result<()> {
        self.some_of_each(values, |value| Some(id(value)), people)
    }

    /// Prints several values like [`each`](Self::each). Values without an id are left out of the ids.
    pub(crate) fn some_of_each<T: Serialize>(
        self,
        values: &[T],
        id: impl Fn(&T) -> Option<&str>,
        people: impl FnOnce(&[T]) -> String,
    ) -> Result<()> {
        match self.form {
            Form::Json => Self::lines(values.iter().map(to_json)),
            Form::Ids => Self::ids(values.iter().filter_map(id)),
            Form::People => self.line(people(values).trim_end_matches('\n')),
        }
    }

    /// Writes raw text to stdout.
    pub(crate) fn raw(bytes: &[u8]) -> Result<()> {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
        written.map_err(|e| Failure::io("cannot write to stdout", &e))
    }

    /// Prints a note to stderr. JSON and quiet output have no notes.
    pub(crate) fn note(self, text: impl AsRef<str>) {
        if self.form == Form::People {
            say(&plain(text.as_ref()));
        }
    }

    /// Prints a failure. A closed stdout is not a failure.
    pub(crate) fn failure(self, failure: &Failure) {
        match self.form {
            _ if failure.exit() == Exit::Done => {}
            Form::Json => say(&to_json(&json!({ "error": failure.to_json() }))),
            Form::People | Form::Ids => say(&failure.explain()),
        }
    }

    /// Prints the failures of a report, which lists the first of `failed` files. Returns the exit
    /// status.
    pub(crate) fn failures(self, action: &str, failures: &[WorkFailure], failed: u64) -> Exit {
        for failure in failures {
            let doing = format!("cannot {action} {}", plain(&failure.file_id));
            self.failure(&Failure::refused(plain(&failure.error)).doing(doing));
        }
        if failures.is_empty() && failed == 0 { Exit::Done } else { Exit::Refused }
    }

    /// Creates a progress bar that counts bytes.
    pub(crate) fn bytes_meter(self, label: impl AsRef<str>, total: Option<u64>) -> Meter {
        Meter::bytes(self.draw_target(), label.as_ref(), total)
    }

    /// Creates a progress bar that counts files.
    pub(crate) fn count_meter(self, label: impl AsRef<str>) -> Meter {
        Meter::count(self.draw_target(), label.as_ref())
    }

    fn draw_target(self) -> ProgressDrawTarget {
        let wanted = self.form == Form::People && std::io::stderr().is_terminal();
        if wanted { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
    }

    /// Writes ids, one per line. Scripts pass them to other commands, so this refuses a text that
    /// could be an option, a path or several words.
    fn ids<'a>(ids: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let ids: Vec<_> = ids.into_iter().collect();
        match ids.iter().find(|id| !is_id(id)) {
            Some(bad) => Err(Failure::failed(format!("the server returned an invalid id: {bad}"))
                .hint("check that --server is the URL of a filestore server")),
            None => Self::lines(ids),
        }
    }

    /// Writes all lines with one write, because a write per line is slow.
    fn lines(lines: impl IntoIterator<Item = impl AsRef<str>>) -> Result<()> {
        let mut page = String::new();
        for line in lines {
            page.push_str(line.as_ref());
            page.push('\n');
        }
        Self::raw(page.as_bytes())
    }

    fn line(self, text: &str) -> Result<()> {
        if text.is_empty() && self.form != Form::Json {
            return Ok(());
        }
        Self::raw(format!("{text}\n").as_bytes())
    }
}

/// Returns true if a text can be the id of a file or a provider's code.
fn is_id(text: &str) -> bool {
    let has_only_its_characters =
        text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    !text.is_empty() && !text.starts_with('-') && has_only_its_characters
}

/// Writes a line to stderr. Ignores errors, because there is no other place to report them.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

fn to_json<T: Serialize>(value: &T) -> String {
    let json =
        serde_json::to_string(value).expect("the wire types have string keys and no failing parts");
    escaped(json)
}

/// Escapes characters that a terminal interprets and serde_json does not escape. These characters occur only
/// inside strings, where `\u` has the same meaning (RFC 8259 section 7).
fn escaped(json: String) -> String {
    if !json.chars().any(is_command) {
        return json;
    }

    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_command(c) {
            write!(escaped, "\\u{:04x}", u32::from(c)).expect("a string accepts everything");
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_means_the_same_and_commands_no_terminal() {
        let name = "a\u{1b}[2J\u{9b}31m\u{7f}\u{202E}gpj.exe é";
        let json = to_json(&name);
        assert!(!json.chars().any(is_command), "{json:?}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), name);
    }

    #[test]
    fn an_id_is_no_option_no_path_and_one_word() {
        for id in ["01JD8QZ4T6X3M2V9B7K5N1R0CE", "LOCAL", "s3-eu.1", "_x"] {
            assert!(is_id(id), "{id}");
        }
        for text in ["", "--data-dir", "-", "../x", "/etc", "a b", "a\n", "\u{1b}]0;x", "ü"] {
            assert!(!is_id(text), "{text:?}");
        }
    }
}
