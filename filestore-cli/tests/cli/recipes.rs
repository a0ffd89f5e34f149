//! How-to pages whose commands run: each page is one shell script against a server, and each output is compared.
//!
//! A page can use the files that [`prepare`] writes, `$URL` (the files of the server) and the command `filestore`. In an
//! output, `...` stands for any text, and alone in a line for any lines. `<!-- not run: why -->` before a block leaves
//! it out, and so does `#` as the prompt. The pages need `sh` and `jq`, some also `curl`: without them, nothing runs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Bench, Way, picture};

const PAGES: [&str; 8] = [
    "avoid-lost-updates",
    "custom-metadata",
    "export-customer",
    "gallery",
    "import-directory",
    "prove-deletion",
    "quotas",
    "retry-safely",
];

/// A line that no command prints.
const MARK: &str = "-- next command --";

/// A command of a page, with the output that the page shows.
#[derive(Debug, Default)]
struct Step {
    command: String,
    shown: Vec<String>,
}

/// Lists the commands of the blocks that run.
fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut is_block, mut is_left_out) = (Vec::<Step>::new(), false, false);
    for line in page.lines() {
        if let Some(fence) = line.strip_prefix("```") {
            is_block = fence == "console" && !is_left_out;
            // The mark is for the next block.
            is_left_out &= !fence.is_empty();
            continue;
        }
        is_left_out |= line.starts_with("<!-- not run");
        if !is_block {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), shown: Vec::new() });
        } else if let (Some(more), Some(step)) = (line.strip_prefix("> "), steps.last_mut()) {
            step.command.push('\n');
            step.command.push_str(more);
        } else if let Some(step) = steps.last_mut().filter(|_| !line.starts_with("# ")) {
            step.shown.push(line.to_owned());
        }
    }
    steps
}

/// Writes the files that the pages use.
fn prepare(bench: &Bench) {
    bench.write("work/report.pdf", "%PDF-1.7\n%a report\n");
    bench.write("work/draft.txt", "a draft\n");
    bench.write("work/red.png", picture(640, 480));
    for name in ["a.txt", "b/c.txt", "b/d.txt"] {
        bench.write(&format!("work/tree/{name}"), name);
    }
}

/// Returns true if `text` is `pattern`, in which `...` stands for any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once("...") else { return pattern == text };
    let Some(mut left) = text.strip_prefix(start) else { return false };
    loop {
        if is_like(rest, left) {
            return true;
        }
        let mut letters = left.chars();
        if letters.next().is_none() {
            return false;
        }
        left = letters.as_str();
    }
}

/// Returns true if an output is the one that a page shows.
fn is_shown(shown: &[String], output: &[&str]) -> bool {
    match shown.split_first() {
        None => output.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=output.len()).any(|skipped| is_shown(rest, &output[skipped..]))
        }
        Some((first, rest)) => {
            let is_first = output.first().is_some_and(|line| is_like(first, line));
            is_first && is_shown(rest, &output[1..])
        }
    }
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|found| found.status.success())
}

fn run(name: &str) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../filestore-server/docs/how-to");
    let page = std::fs::read_to_string(docs.join(name).with_extension("md")).unwrap();
    let steps = steps(&page);
    assert!(!steps.is_empty(), "{name} has no command");

    let bench = Bench::new(Way::Url);
    prepare(&bench);
    let mut script = String::from("set -e\n");
    for step in &steps {
        writeln!(script, "{}\necho '{MARK}'", step.command).unwrap();
    }
    let program = PathBuf::from(env!("CARGO_BIN_EXE_filestore"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let done = Command::new("sh")
        .args(["-c", &script])
        .current_dir(bench.path("work"))
        .env("PATH", path)
        .env("FILESTORE_URL", bench.url())
        .env("URL", format!("{}/api/v1/files", bench.url()))
        .env("XDG_STATE_HOME", bench.path("state"))
        .stdin(Stdio::null())
        .output()
        .unwrap();

    let output = String::from_utf8(done.stdout).unwrap();
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{name}: {output}\n{told}");
    let parts: Vec<&str> = output.split_inclusive(MARK).collect();
    for (step, part) in steps.iter().zip(parts) {
        let part = part.trim_end_matches(MARK);
        let lines: Vec<&str> = part.lines().filter(|line| !line.is_empty()).collect();
        // What a page does not show is not part of it.
        let is_silent = step.shown.is_empty();
        assert!(is_silent || is_shown(&step.shown, &lines), "{name}: {step:?} printed {lines:#?}");
    }
}

#[test]
fn the_recipes_do_what_they_say() {
    if !["sh", "jq", "curl"].into_iter().all(is_installed) {
        eprintln!("the recipes did not run: they need sh, jq and curl");
        return;
    }
    for page in PAGES {
        run(page);
    }
}

#[test]
fn an_output_with_other_lines_is_noticed() {
    let shown = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert!(is_shown(&shown(&["a ... c", "..."]), &["a b c", "d", "e"]));
    assert!(is_shown(&shown(&["..."]), &[]));
    for (lines, output) in [
        (&["a"][..], &["b"][..]),
        (&["a"], &["a", "b"]),
        (&["a", "b"], &["a"]),
        (&["a ... c"], &["a b d"]),
    ] {
        assert!(!is_shown(&shown(lines), output), "{lines:?} {output:?}");
    }
    let page = "```console\n$ a \\\n> b\nout\n# root\n```\n<!-- not run: x -->\n```console\n$ c\n```\n```console\n$ d\n```\n";
    let steps = steps(page);
    let commands: Vec<&str> = steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(commands, ["a \\\nb", "d"]);
    assert_eq!(steps[0].shown, ["out"]);
}
