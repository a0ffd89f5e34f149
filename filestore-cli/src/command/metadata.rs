//! `metadata`: moving records to another database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use filestore_core::StoreConfig;
use filestore_core::admin::{CopiedRecords, copy_records};
use filestore_core::config::{MetadataPlace, PostgresConfig};
use serde_json::json;

use crate::args::{CopyArgs, MetadataCommand};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, counted, plain};

/// The scheme of a data directory.
const SQLITE: &str = "sqlite:";

/// The variable that has the password of the database.
const PASSWORD: &str = "FILESTORE_DATABASE_PASSWORD";

/// Carries out a command, by the server's configuration file if there is one.
pub(super) async fn run(
    command: MetadataCommand,
    config: Option<PathBuf>,
    out: Output,
) -> Result<Exit> {
    let MetadataCommand::Copy(args) = command;
    let dir = source(&args)?;
    let config = destination(&args, config.as_deref())?;

    let meter = out.count_meter("copying");
    let copied = copy_records(dir, &config, Arc::new(meter.clone())).await;
    drop(meter);
    let copied = copied.map_err(|e| Failure::from(e).doing("cannot copy the records"))?;
    show(&copied, out)
}

fn source(args: &CopyArgs) -> Result<&Path> {
    let dir = args.from.strip_prefix(SQLITE).filter(|dir| !dir.is_empty());
    dir.map(Path::new).ok_or_else(|| {
        Failure::failed("--from names no data directory").hint("write --from sqlite:DIRECTORY")
    })
}

/// Reads where the records go. What the configuration file says beside that holds as well.
fn destination(args: &CopyArgs, config: Option<&Path>) -> Result<StoreConfig> {
    let loaded = config.map_or_else(|| Ok(StoreConfig::default()), StoreConfig::load);
    let mut config = loaded.map_err(|e| Failure::failed(e.to_string()).hint("see --config"))?;
    if let Some(address) = &args.to {
        config.metadata = MetadataPlace::Postgres(place(address, args)?);
    }

    match config.metadata {
        MetadataPlace::Postgres(_) => Ok(config),
        _ => Err(Failure::failed("no database is named to which the records go").hint(
            "give --to postgres://USER@HOST/DATABASE, or --config with the file of the server to be",
        )),
    }
}

fn place(address: &str, args: &CopyArgs) -> Result<PostgresConfig> {
    if has_password(address) {
        return Err(Failure::failed(
            "a password in an argument is seen by everybody on this machine",
        )
        .hint(format!("put it into the variable {PASSWORD}, or into a file for --password-file")));
    }

    let mut place = PostgresConfig::new(address);
    if let Some(schema) = &args.schema {
        place.schema.clone_from(schema);
    }
    place.password = match &args.password_file {
        Some(path) => {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|e| {
                Failure::io(format!("cannot read {}", plain(&path.to_string_lossy())), &e)
            })?;
            Some(text.trim_end_matches(['\r', '\n']).to_owned())
        }
        None => std::env::var(PASSWORD).ok().filter(|password| !password.is_empty()),
    };
    Ok(place)
}

/// Tells whether an address has a password: behind the user, or as a parameter.
fn has_password(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (authority, _) = rest.split_once(['/', '?']).unwrap_or((rest, ""));
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    user.contains(':') || rest.split(['?', '&']).any(|part| part.starts_with("password="))
}

fn show(copied: &CopiedRecords, out: Output) -> Result<Exit> {
    let former = plain(&copied.former_database.to_string_lossy());
    let shown = json!({
        "files": copied.files,
        "rows": copied.rows,
        "former_database": former,
    });
    out.data(&shown, |_| Vec::new(), |_| {
        format!(
            "copied and compared the records of {}, {} in all\nthe SQLite database is {former} now, and no server opens it",
            counted(copied.files, "file"),
            counted(copied.rows, "row"),
        )
    })?;
    out.note("start the server with metadata = \"postgres://…\" in its configuration");
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_addresses_are_seen() {
        for address in [
            "postgres://u:secret@h/d",
            "postgresql://u:s@ecret@h:5432/d",
            "postgres://u@h/d?password=secret",
            "postgres://u@h/d?sslmode=require&password=secret",
        ] {
            assert!(has_password(address), "{address}");
        }
        for address in [
            "postgres://u@h:5432/d",
            "postgres://h:5432/d?sslmode=require",
            "postgres://u@h/d?a=b:c@d",
        ] {
            assert!(!has_password(address), "{address}");
        }
    }
}
