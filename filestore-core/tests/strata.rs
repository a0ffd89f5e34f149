//! The strata of the core, kept apart: which folder of `src` may name which other one, and where a
//! library that belongs to one stratum may be named at all. ARCHITECTURE.md draws the same picture.
//!
//! Only code that ships is looked at. Tests may reach wherever they need to.

use std::fs;
use std::path::{Path, PathBuf};

/// Folder that all strata may name.
const GROUND: &str = "tasks";

/// Each folder of `src`, and the other strata it may name. A deeper folder has rules of its own.
const MAY_NAME: [(&str, &[&str]); 12] = [
    (GROUND, &[]),
    ("domain", &[]),
    ("api", &[]),
    ("api/convert", &["domain", "storage", "variant"]),
    ("metadata", &["domain"]),
    ("storage", &["domain"]),
    ("variant", &["domain"]),
    ("config_file", &["domain"]),
    ("service", &["domain", "metadata", "storage", "variant", "FileStore"]),
    // A delivery has the wire type of an event as its body.
    ("service/webhooks", &["api", "domain", "metadata", "storage", "FileStore"]),
    ("worker", &["domain", "metadata", "service", "storage", "variant", "FileStore"]),
    ("web", &["api", "domain", "service", "storage", "variant"]),
];

/// Libraries, and the folders that may name them.
const AT_HOME_IN: [(&str, &str); 12] = [
    ("getrandom", "tasks"),
    ("rusqlite", "metadata/sqlite"),
    ("r2d2", "metadata/sqlite"),
    ("tokio_postgres", "metadata/postgres"),
    ("tokio_postgres_rustls", "metadata/postgres"),
    ("deadpool_postgres", "metadata/postgres"),
    ("opendal", "storage/cloud"),
    ("reqwest", "storage/cloud"),
    ("reqwest", "service/webhooks"),
    ("url", "domain/webhook"),
    ("filestore_pictures", "variant"),
    ("filestore_sandbox", "variant/convert"),
];

#[test]
fn no_stratum_names_one_above_or_beside_it() {
    let mut wrong = Vec::new();

    for (path, code) in shipped_code() {
        let (stratum, may_name) = rule_for(&path);
        let own = stratum.split('/').next().expect("a folder");
        for named in named_strata(&code) {
            if named != own && named != GROUND && !may_name.contains(&named.as_str()) {
                wrong.push(format!("{path} names crate::{named}"));
            }
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_library_of_one_stratum_is_named_nowhere_else() {
    let mut wrong = Vec::new();

    for (path, code) in shipped_code() {
        for (library, home) in AT_HOME_IN {
            let homes = AT_HOME_IN.iter().filter(|(one, _)| *one == library);
            let is_at_home = homes.into_iter().any(|(_, home)| path.starts_with(home));
            if names_library(&code, library) && !is_at_home {
                wrong.push(format!("{path} names {library}, which belongs to {home}"));
            }
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn work_and_chance_go_through_the_one_module_that_a_simulation_holds() {
    let mut wrong = Vec::new();

    for (path, code) in shipped_code() {
        for call in
            ["tokio::spawn", "spawn_blocking", "Handle::spawn", "Ulid::generate", "Ulid::new"]
        {
            if code.contains(call) && !path.starts_with(GROUND) {
                wrong.push(format!("{path} calls {call}, which belongs to {GROUND}"));
            }
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An application has the front door alone, and so have the suites that stand for it. `provider.rs` tests one
/// provider without a store, which no application can do.
#[test]
fn the_suites_of_the_store_use_the_names_of_the_front_door_alone() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
    for suite in ["integration", "cloud"] {
        let code = code_below(&tests.join(suite));
        assert!(code.len() > 5, "{suite} is looked for in the wrong place");
        for (path, text) in code {
            let may = path == "provider.rs";
            assert!(may || !text.contains("filestore_core::internals"), "{suite}/{path}");
        }
    }
}

/// Changes of the disk, in the folders that make them: each function with such a call says which step
/// of the protocol it was, so that the crash harness kills there.
#[test]
fn every_change_of_the_disk_is_a_step_of_the_protocol() {
    const CHANGES: [&str; 7] = [
        "mkdirat(",
        "unlinkat(",
        "no_replace(",
        "OFlags::CREATE",
        ".write_all(",
        "fallocate(",
        "fs::rename(",
    ];
    /// Functions beneath those that note the step, and what no crash can leave in a way that matters.
    const BENEATH: [&str; 10] = [
        "fn make(",
        "fn no_replace",
        "fn unlink(",
        "fn drop(",
        "fn write(",
        "fn free_reserve",
        "fn refill_reserve",
        "fn write_zeros",
        "fn check(",
        "fn lock(",
    ];
    let mut wrong = Vec::new();

    for (path, code) in shipped_code() {
        // What a repair moves is no step of the protocol: it stays under one name or the other.
        let is_repair = path.ends_with("/quarantine.rs") || path.ends_with("/aside.rs");
        let is_storage = path.starts_with("storage/local") || path.starts_with("storage/data_dir");
        if is_repair || !is_storage {
            continue;
        }
        for function in functions(&code) {
            let changes = CHANGES.iter().find(|change| function.contains(*change));
            let first = function.lines().next().unwrap_or_default();
            let is_beneath = BENEATH.iter().any(|name| first.contains(name));
            if let Some(change) = changes
                && !is_beneath
                && !function.contains("reached(Step::")
            {
                wrong.push(format!("{path}: {first} calls {change} without a step"));
            }
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Cuts code into its functions, each with what stands before the next one.
fn functions(code: &str) -> Vec<String> {
    let mut functions = Vec::new();
    for line in code.lines() {
        let begins =
            line.trim_start().trim_start_matches("pub(super) ").trim_start_matches("pub(crate) ");
        let begins = begins.trim_start_matches("pub ").trim_start_matches("async ");
        if begins.starts_with("fn ") || functions.is_empty() {
            functions.push(String::new());
        }
        let function = functions.last_mut().expect("one was pushed");
        function.push_str(line);
        function.push('\n');
    }
    functions
}

#[test]
fn every_folder_has_a_rule_and_every_rule_a_folder() {
    for entry in fs::read_dir(sources()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            let name = entry.file_name().into_string().unwrap();
            assert!(MAY_NAME.iter().any(|(folder, _)| *folder == name), "no rule for {name}");
        }
    }
    for (folder, _) in MAY_NAME.iter().chain(&AT_HOME_IN.map(|(_, home)| (home, &[][..]))) {
        assert!(sources().join(folder).is_dir(), "no folder for the rule of {folder}");
    }
}

#[test]
fn a_name_out_of_place_is_found() {
    let code = "use crate::{domain::id::FileId, service::FileStore};\nuse crate::worker::purge;\n";

    assert_eq!(named_strata(code), ["domain", "service", "worker"]);
    assert!(names_library("let c = rusqlite::Connection::open(p);", "rusqlite"));
    assert!(!names_library("crate::domain::image::probe()", "image"));
}

/// Finds the rule of the deepest folder that holds `path`.
fn rule_for(path: &str) -> (&'static str, &'static [&'static str]) {
    let rules = MAY_NAME.into_iter().filter(|(folder, _)| Path::new(path).starts_with(folder));
    rules.max_by_key(|(folder, _)| folder.len()).unwrap_or_else(|| panic!("no rule for {path}"))
}

/// Lists the modules that `code` names right below `crate::`, braces included.
fn named_strata(code: &str) -> Vec<String> {
    let mut named = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => named.extend(top_level_names(list)),
            None => named.push(identifier(rest)),
        }
    }
    named
}

/// Lists the first segments of the paths of a `use` list, up to its closing brace.
fn top_level_names(list: &str) -> Vec<String> {
    let (mut depth, mut begins, mut names) = (0, true, Vec::new());
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            character if begins && !character.is_whitespace() => {
                names.push(identifier(&list[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Says whether `code` names `library` as a crate: a path that begins with it.
fn names_library(code: &str, library: &str) -> bool {
    let path = format!("{library}::");
    code.match_indices(&path).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':')
    })
}

/// Reads every source file below a stratum, without its comments and its inline tests.
fn shipped_code() -> Vec<(String, String)> {
    let mut code = code_below(&sources());
    // lib.rs joins the strata.
    code.retain(|(name, _)| name.contains('/') && !is_test(name));
    for (_, text) in &mut code {
        *text = without_tests(text);
    }
    assert!(code.len() > 100, "the sources are looked for in the wrong place");
    code
}

/// Returns the files below a folder with their paths, relative to the folder.
fn code_below(root: &Path) -> Vec<(String, String)> {
    let (mut code, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let name = path.strip_prefix(root).unwrap().display().to_string();
            code.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
    code
}

fn is_test(path: &str) -> bool {
    let test_folders = ["tests", "contract", "fixtures"];
    let is_test_part = |part: &str| test_folders.contains(&part.trim_end_matches(".rs"));
    path.split('/').any(is_test_part)
}

fn without_tests(source: &str) -> String {
    let shipped = source.split("#[cfg(test)]\nmod tests {").next().expect("a first part");
    let lines = shipped.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}
