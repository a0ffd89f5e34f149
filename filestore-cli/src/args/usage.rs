//! Errors of the command line itself: text as clap writes it, or JSON with `--json`.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Prints the help, the version or the error, and returns the exit status of the process.
pub(crate) fn report_usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && asks_for_json(std::env::args_os()) {
        Output::json().failure(&failure(error));
        return Exit::Failed.into();
    }
    // A closed stdout is not a failure.
    let _ = error.print();
    if error.use_stderr() { Exit::Failed.into() } else { Exit::Done.into() }
}

/// Returns true if `--json` is one of the options. clap could not parse them.
fn asks_for_json(args: impl IntoIterator<Item = OsString>) -> bool {
    let mut options = args.into_iter().take_while(|arg| arg != OsStr::new("--"));
    options.any(|arg| arg == OsStr::new("--json"))
}

/// Splits clap's error text into a message and a hint.
fn failure(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let mut parts = text.split("\n\n").map(in_one_line);

    let first = parts.next().unwrap_or_default();
    let Some(message) = first.strip_prefix("error: ") else {
        return Failure::failed("the command is missing").hint("see `filestore --help`");
    };
    let rest: Vec<_> = parts.filter(|part| !part.starts_with("For more information")).collect();
    let tip = rest.iter().find_map(|part| part.strip_prefix("tip: "));
    match tip.or(rest.first().map(String::as_str)) {
        Some(hint) => Failure::failed(message).hint(hint),
        None => Failure::failed(message).hint("see `filestore --help`"),
    }
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;

    fn said(args: &[&str]) -> String {
        let args = ["filestore"].iter().chain(args).map(OsString::from);
        failure(&Cli::parse_from_args(args).unwrap_err()).explain()
    }

    #[test]
    fn wrong_usage_is_a_message_and_a_hint() {
        for (args, message, hint) in [
            (&["list", "--orgg", "1"][..], "unexpected argument '--orgg' found", "'--org'"),
            (&["lst"], "unrecognized subcommand 'lst'", "'list'"),
            (&["variant", "x", "640"], "[possible values: 200, 250", "--help"),
            (&["upload", "a"], "not provided: --org <ID> --sub <NAME>", "Usage: filestore upload"),
            (
                &["webhook", "redeliver", "x"],
                "not provided: <--event <ID>|--after <ID>|--failed>",
                "Usage: filestore webhook redeliver",
            ),
            (&[], "the command is missing", "--help"),
        ] {
            let said = said(args);
            let (first, second) = said.split_once("\n  hint: ").unwrap();
            assert!(first.contains(message) && second.contains(hint), "{args:?}: {said}");
        }
    }

    #[test]
    fn json_is_an_option_only_before_two_dashes() {
        let asks = |args: &[&str]| asks_for_json(args.iter().map(OsString::from));
        assert!(asks(&["filestore", "get", "--json"]));
        assert!(!asks(&["filestore", "get", "--", "--json"]));
    }
}
