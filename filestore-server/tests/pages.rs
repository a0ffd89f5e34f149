//! The pages of the documentation hold together: each relative link leads to a page and a heading, each page
//! is in `SUMMARY.md`, and a page answers one question in a length that one can read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folders below the repository that hold no pages of ours.
const NO_PAGES: [&str; 4] = ["target", "node_modules", ".git", "old_data"];

const MOST_LINES: usize = 250;

#[test]
fn every_relative_link_leads_to_a_page_and_a_heading() {
    let mut broken = Vec::new();

    for page in pages(&repository()) {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() {
                page.clone()
            } else {
                normal(&page.parent().unwrap().join(file))
            };

            if !target.exists() {
                broken.push(format!("{}: {link}: no such file", page.display()));
            } else if !heading.is_empty()
                && is_page(&target)
                && !headings(&target).contains(heading)
            {
                broken.push(format!("{}: {link}: no such heading", page.display()));
            }
        }
    }

    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_summary_and_is_short() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<PathBuf> = links(&summary).iter().map(|link| docs.join(link)).collect();
    let mut wrong = Vec::new();

    for page in pages(&docs) {
        let name = page.strip_prefix(&docs).unwrap().to_str().unwrap().to_owned();
        if name != "SUMMARY.md" && !listed.contains(&page) {
            wrong.push(format!("{name} is not in SUMMARY.md"));
        }
        let lines = fs::read_to_string(&page).unwrap().lines().count();
        if lines > MOST_LINES {
            wrong.push(format!("{name} has {lines} lines, limit: {MOST_LINES}"));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn repository() -> PathBuf {
    normal(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// Lists the Markdown files below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap_or_default();
        if path.is_dir() && !NO_PAGES.contains(&name) {
            found.extend(pages(&path));
        } else if is_page(&path) {
            found.push(path);
        }
    }
    found
}

/// Takes `.` and `..` out of a path.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// Returns the lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Lists the targets of a page's links to files: `[text](target)`.
fn links(text: &str) -> Vec<String> {
    let targets = prose(text).flat_map(|line| line.split("](").skip(1));
    let targets = targets.filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains(':') && !target.contains(' '))
        .map(str::to_owned)
        .collect()
}

/// Returns the anchors that GitHub and mdBook make of a page's headings.
fn headings(page: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(page).unwrap();
    let headings = prose(&text).filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

/// Makes the anchor of a heading: lower case, spaces as hyphens, without punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}
