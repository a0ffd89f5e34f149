//! The first page of help, which shows the commands in groups.

use std::fmt::Write as _;

use clap::CommandFactory;

use super::Cli;

/// The groups, and their commands in reading order.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Upload and download",
        &[
            "upload", "uploads", "batch", "replace", "get", "variant", "sheet", "info", "explain",
            "list", "events",
        ],
    ),
    ("Change", &["thumbnail", "ready", "edit", "delete", "restore"]),
    ("Share", &["sign", "sign-upload", "signing"]),
    ("Organizations and keys", &["organization", "usage", "key", "webhook", "whoami"]),
    ("Providers", &["provider", "binding", "sync", "migrate"]),
    ("Maintenance", &["status", "health", "purge", "fsck", "backup", "variants", "metadata"]),
    ("Shell", &["completions", "man", "help"]),
];

/// The heading of commands without a group.
const OTHERS: &str = "Other commands";

/// The description of the command that clap adds.
const HELP: &str = "Print this message or the help of the given subcommand(s)";

/// Returns the command line with the grouped first page of help.
pub(super) fn command() -> clap::Command {
    let command = Cli::command();
    let page = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{}\n{{options}}{{after-help}}",
        listed(&command),
        heading("Options"),
    );
    command.help_template(page)
}

/// Lists the commands of all groups, and the commands without a group.
fn listed(command: &clap::Command) -> String {
    let about = |name: &str| match command.find_subcommand(name) {
        Some(found) => found.get_about().map(ToString::to_string),
        None => (name == "help").then(|| HELP.to_owned()),
    };
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others = command.get_subcommands().map(clap::Command::get_name);
    let others: Vec<&str> = others.filter(|name| !is_grouped(name)).collect();

    let mut groups: Vec<(&str, &[&str])> = GROUPS.to_vec();
    groups.push((OTHERS, &others));

    let mut text = String::new();
    for (title, names) in groups {
        let rows = names.iter().filter_map(|name| Some((*name, about(name)?)));
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            continue;
        }
        writeln!(text, "{}", heading(title)).expect("a string accepts every write");
        for (name, about) in rows {
            writeln!(text, "  {name:<13} {about}").expect("a string accepts every write");
        }
        text.push('\n');
    }
    text
}

/// Formats a heading as clap does.
fn heading(title: &str) -> String {
    let style = clap::builder::Styles::styled();
    let style = style.get_header();
    format!("{style}{title}:{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_on_the_first_page_once() {
        let page = command().render_long_help().to_string();
        assert!(!page.contains(OTHERS), "put the new command into a group: {page}");
        for command in Cli::command().get_subcommands() {
            let line = format!("\n  {} ", command.get_name());
            assert_eq!(page.matches(&line).count(), 1, "{}", command.get_name());
        }
        for name in GROUPS.iter().flat_map(|(_, names)| names.iter().copied()) {
            let is_known = name == "help" || Cli::command().find_subcommand(name).is_some();
            assert!(is_known, "{name} is no command");
        }
    }
}
