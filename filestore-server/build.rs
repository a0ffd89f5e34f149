//! Writes the table of the console's files, which `src/routes/console/dist.rs` includes.
//!
//! The files are in `console/dist`. They are committed, so a build needs no node. Without the feature
//! `console`, the table is empty.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The page, which every build with the console needs.
const PAGE: &str = "index.html";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let home = PathBuf::from(required("CARGO_MANIFEST_DIR"));
    let dist = home.join("console/dist");

    let mut names = Vec::new();
    if env::var_os("CARGO_FEATURE_CONSOLE").is_some() {
        println!("cargo::rerun-if-changed=console/dist");
        list(&dist, "", &mut names)?;
        names.sort();
        if !names.iter().any(|name| name == PAGE) {
            println!("cargo::error=the console has no page: {}", dist.join(PAGE).display());
        }
    }
    fs::write(Path::new(&required("OUT_DIR")).join("console.rs"), table(&dist, &names))
}

/// Returns a variable that cargo sets for each build script.
fn required(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

/// Adds the names of all files below `folder`, with slashes.
fn list(folder: &Path, prefix: &str, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{name}/"), names)?;
        } else {
            names.push(name);
        }
    }
    Ok(())
}

/// Writes a row for each file. `x.gz` and `x.br` belong to the row of `x`.
fn table(dist: &Path, names: &[String]) -> String {
    let bytes = |name: &str| format!("include_bytes!({:?})", dist.join(name).display().to_string());
    let coded = |name: String| {
        let found = names.contains(&name);
        if found { format!("Some({})", bytes(&name)) } else { "None".to_owned() }
    };
    let is_coded = |name: &str| {
        let plain = name.strip_suffix(".gz").or(name.strip_suffix(".br"));
        plain.is_some_and(|plain| names.iter().any(|name| name == plain))
    };

    let mut text = String::from("&[\n");
    for name in names.iter().filter(|name| !is_coded(name)) {
        writeln!(
            text,
            "    File {{ name: {name:?}, plain: {}, gzip: {}, brotli: {} }},",
            bytes(name),
            coded(format!("{name}.gz")),
            coded(format!("{name}.br")),
        )
        .expect("writing to memory cannot fail");
    }
    text + "]\n"
}
