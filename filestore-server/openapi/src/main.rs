//! Writes `docs/openapi.json`, the OpenAPI 3.1 document of the API, and `docs/api.html`, the page that
//! shows it. The server serves both as they are.
//!
//! ```console
//! $ cargo run --manifest-path filestore-server/openapi/Cargo.toml             # writes both
//! $ cargo run --manifest-path filestore-server/openapi/Cargo.toml -- --check  # fails if one is outdated
//! ```
//!
//! Schemas are derived from the wire types of `filestore_core::api`, codes of errors are read from the
//! table of the reference, and operations are written by hand in `operations/`. The server's tests hold
//! the operations to its table of routes: a route that is not described here fails them.

mod example;
mod operation;
mod operations;
mod page;
mod problems;
mod schemas;
mod shared;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use operation::Operation;
use schemas::Schemas;

/// The first paragraphs of the document.
const ABOUT: &str = include_str!("about.md");

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let document = document();
    let written = [
        (docs.join("openapi.json"), format!("{document:#}\n")),
        (docs.join("api.html"), page::of(&document)),
    ];

    if std::env::args().nth(1).as_deref() != Some("--check") {
        for (path, text) in written {
            fs::write(path, text)?;
        }
        return Ok(ExitCode::SUCCESS);
    }

    let outdated: Vec<PathBuf> = written
        .into_iter()
        .filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text))
        .map(|(path, _)| path)
        .collect();
    for path in &outdated {
        eprintln!("{} is outdated: run filestore-openapi without arguments", path.display());
    }
    Ok(if outdated.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the whole document.
fn document() -> Value {
    let mut schemas = Schemas::new();
    let (groups, mut paths) = (operations::all(), Map::new());

    let tags: Vec<Value> = groups
        .iter()
        .map(|group| json!({ "name": group.name, "description": group.description }))
        .collect();
    for group in groups {
        for operation in group.operations {
            add(&mut paths, &mut schemas, group.name, operation);
        }
    }

    let deliveries =
        operations::deliveries(&schemas::reply::<filestore_core::api::Event>(&mut schemas));
    let mut components = shared::components();
    components.insert("responses".to_owned(), problems::responses(&mut schemas));
    components.insert("schemas".to_owned(), schemas.into_components());

    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "filestore",
            "version": version(),
            "description": ABOUT.trim(),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": filestore_core::api::PREFIX }],
        "tags": tags,
        "paths": paths,
        "webhooks": deliveries,
        "components": components,
    })
}

fn add(paths: &mut Map<String, Value>, schemas: &mut Schemas, tag: &str, operation: Operation) {
    let (path, method) = (operation.path.to_owned(), operation.method);
    let methods = paths.entry(path).or_insert_with(|| json!({}));
    let described = operation.into_value(tag, schemas);

    let before = methods.as_object_mut().expect("an object").insert(method.to_owned(), described);
    assert!(before.is_none(), "{method} is described twice");
}

/// Returns the version of the workspace.
fn version() -> String {
    let manifest = include_str!("../../../Cargo.toml");
    let line = manifest.lines().find(|line| line.starts_with("version = ")).expect("a version");
    line.split('"').nth(1).expect("a quoted version").to_owned()
}
