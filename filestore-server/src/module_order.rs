//! Checks the order of the modules: each uses only the modules above it in `lib.rs`. Tests can use every
//! module.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Lists the modules in the order in which `lib.rs` declares them.
fn order() -> Vec<String> {
    let lib = include_str!("lib.rs");
    let declared = lib.lines().filter_map(|line| {
        let name = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ")?;
        name.strip_suffix(';').map(str::to_owned)
    });
    declared.filter(|name| name != "module_order").collect()
}

/// Lists the source files beneath `folder`, without the folders of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_of_tests = path.ends_with("tests") || path.ends_with("tests.rs");
        if path.is_dir() && !is_of_tests {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_of_tests {
            found.push(path);
        }
    }
    found
}

/// Lists the modules that code names after `crate::`.
fn named(code: &str) -> BTreeSet<&str> {
    let after = code.split("crate::").skip(1);
    after
        .filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
            Some(&rest[..end])
        })
        .collect()
}

#[test]
fn a_module_names_only_those_above_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let order = order();
    let place = |module: &str| order.iter().position(|name| name == module);
    let mut wrong = Vec::new();

    for path in sources(&root) {
        let relative = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let own = relative.split('/').next().unwrap().trim_end_matches(".rs");
        let Some(own_place) = place(own) else { continue };
        let source = std::fs::read_to_string(&path).unwrap();
        let shipped = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let code: String =
            shipped.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for other in named(&code) {
            if place(other).is_some_and(|other_place| other_place > own_place) {
                wrong.push(format!("{relative} names crate::{other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
