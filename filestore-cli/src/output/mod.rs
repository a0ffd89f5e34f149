//! The output of a command: data on stdout, everything else on stderr.

mod table;
mod show;
mod meter;

use std::io::{IsTerminal, Write};

use indicatif::ProgressDrawTarget;
use serde::Serialize;
use serde_json::json;

use crate::args::GlobalArgs;
use crate::failure::{Exit, Failure, Result};

pub(crate) use meter::Meter;
pub(crate) use show::{age, counted, files, more_files, plain, record, size, when};
pub(crate) use table::{Align, Table};

/// The form in which data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Tables and sentences for people.
    People,
    /// JSON on stdout: one value, or one value on each line.
    Json,
    /// The ids alone, one per line.
    Ids,
}

/// The printer of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    form: Form,
}

impl Output {
    /// Makes a printer as the options ask.
    pub(crate) fn new(args: &GlobalArgs) -> Self {
        let form = match (args.json, args.quiet) {
            (true, _) => Form::Json,
            (false, true) => Form::Ids,
            (false, false) => Form::People,
        };
        Self { form }
    }

    /// Prints data in the form that was asked for: one JSON value, ids one per line, or text.
    pub(crate) fn data<T: Serialize>(
        self,
        value: &T,
        ids: impl FnOnce(&T) -> Vec<&str>,
        people: impl FnOnce(&T) -> String,
    ) -> Result<()> {
        match self.form {
            Form::Json => self.line(&to_json(value)),
            Form::People => self.line(people(value).trim_end_matches('\n')),
            Form::Ids => Self::lines(ids(value)),
        }
    }

    /// Prints one of many values: as [`Output::data`], but what is printed for people was laid out by
    /// the caller.
    pub(crate) fn each<T: Serialize>(
        self,
        values: &[T],
        id: impl Fn(&T) -> &str,
        people: impl FnOnce(&[T]) -> String,
    ) -> Result<()> {
        match self.form {
            Form::Json => Self::lines(values.iter().map(to_json)),
            Form::Ids => Self::lines(values.iter().map(id)),
            Form::People => self.line(people(values).trim_end_matches('\n')),
        }
    }

    /// Writes raw text to stdout.
    pub(crate) fn raw(bytes: &[u8]) -> Result<()> {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
        written.map_err(|e| Failure::io("cannot write to stdout", &e))
    }

    /// Prints a note that is not data; people alone see it.
    pub(crate) fn note(self, text: impl AsRef<str>) {
        if self.form == Form::People {
            say(text.as_ref());
        }
    }

    /// Prints a failure; a closed stdout is none.
    pub(crate) fn failure(self, failure: &Failure) {
        match self.form {
            _ if failure.exit() == Exit::Done => {}
            Form::Json => say(&json!({ "error": failure.to_json() }).to_string()),
            Form::People | Form::Ids => say(&failure.explain()),
        }
    }

    /// Makes a progress bar that counts bytes.
    pub(crate) fn bytes_meter(self, label: impl Into<String>, total: Option<u64>) -> Meter {
        Meter::bytes(self.draw_target(), label.into(), total)
    }

    /// Makes a progress bar that counts files.
    pub(crate) fn count_meter(self, label: impl Into<String>) -> Meter {
        Meter::count(self.draw_target(), label.into())
    }

    fn draw_target(self) -> ProgressDrawTarget {
        let wanted = self.form == Form::People && std::io::stderr().is_terminal();
        if wanted { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
    }

    /// Writes a page of lines at once: with one write for each, a long listing would be slow.
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

/// Writes a line to stderr. If nobody reads that either, there is nobody to tell.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("the wire types have string keys and no failing parts")
}
