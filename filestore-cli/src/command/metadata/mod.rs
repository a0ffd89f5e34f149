//! `metadata`: moves a store to another database and to a backend.

pub(super) mod moved_files;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use filestore_core::StoreConfig;
use filestore_core::admin::{CopiedFiles, CopiedRecords, are_records_copied, copy_records};
use filestore_core::config::{MetadataPlace, PostgresConfig};
use serde_json::json;

use moved_files::has_backend;

use crate::args::{CopyArgs, MetadataCommand};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, counted, plain};

/// The prefix of a data directory.
const SQLITE: &str = "sqlite:";

/// The variable with the password of the database.
const PASSWORD: &str = "FILESTORE_DATABASE_PASSWORD";

/// Runs a command with the server's configuration file, if the user names one.
pub(super) async fn run(
    command: MetadataCommand,
    config: Option<PathBuf>,
    out: Output,
) -> Result<Exit> {
    let MetadataCommand::Copy(args) = command;
    let dir = source(&args)?;
    let config = destination(&args, config.as_deref())?;

    let moves_files = !args.leave_files && has_backend(&config);
    let records = if moves_files && is_second_part(dir, &config).await? {
        None
    } else {
        Some(records(dir, &config, out).await?)
    };
    let files = if moves_files { Some(files(dir, &config, out).await?) } else { None };
    show(records.as_ref(), files.as_ref(), out)
}

/// Returns true if an earlier run has already copied all records.
async fn is_second_part(dir: &Path, config: &StoreConfig) -> Result<bool> {
    let are_copied = are_records_copied(dir, config).await;
    are_copied.map_err(|e| Failure::from(e).doing("cannot copy the records"))
}

async fn records(dir: &Path, config: &StoreConfig, out: Output) -> Result<CopiedRecords> {
    let meter = out.count_meter("copying records");
    let copied = copy_records(dir, config, Arc::new(meter.clone())).await;
    drop(meter);
    copied.map_err(|e| Failure::from(e).doing("cannot copy the records"))
}

async fn files(dir: &Path, config: &StoreConfig, out: Output) -> Result<CopiedFiles> {
    let moved = moved_files::move_all(dir, config, out).await;
    moved.map_err(|failure| {
        failure.doing("copied the records, but some files are still in the data directory").hint(
            "run the command again. Until then, a server with postgres.only_server = true can serve the files",
        )
    })
}

fn source(args: &CopyArgs) -> Result<&Path> {
    let dir = args.from.strip_prefix(SQLITE).filter(|dir| !dir.is_empty());
    dir.map(Path::new).ok_or_else(|| {
        Failure::failed("--from must name a data directory").hint("use --from sqlite:DIRECTORY")
    })
}

/// Reads the configuration of the target. `--to` replaces its database.
fn destination(args: &CopyArgs, config: Option<&Path>) -> Result<StoreConfig> {
    let loaded = config.map_or_else(|| Ok(StoreConfig::default()), StoreConfig::load);
    let mut config = loaded.map_err(|e| Failure::failed(e.to_string()).hint("check --config"))?;
    if let Some(address) = &args.to {
        config.metadata = MetadataPlace::Postgres(place(address, args)?);
    }

    match config.metadata {
        MetadataPlace::Postgres(_) => Ok(config),
        _ => Err(Failure::failed("no target database is named").hint(
            "use --to postgres://USER@HOST/DATABASE, or --config with the configuration of the new server",
        )),
    }
}

fn place(address: &str, args: &CopyArgs) -> Result<PostgresConfig> {
    if has_password(address) {
        return Err(Failure::failed("everyone on this machine can see a password in an argument")
            .hint(format!(
                "put the password into the variable {PASSWORD}, or into a file for --password-file"
            )));
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

/// Returns true if an address has a password, after the user or as a parameter.
fn has_password(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (authority, _) = rest.split_once(['/', '?']).unwrap_or((rest, ""));
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    user.contains(':') || rest.split(['?', '&']).any(|part| part.starts_with("password="))
}

fn show(records: Option<&CopiedRecords>, files: Option<&CopiedFiles>, out: Output) -> Result<Exit> {
    let shown = json!({
        "files": records.map(|records| records.files),
        "rows": records.map(|records| records.rows),
        "former_database": records.map(former),
        "moved_files": files.map(|files| files.files),
        "moved_bytes": files.map(|files| files.bytes),
        "failed": files.map(|files| files.failed),
        "failures": files.map(moved_files::failures_of),
        "damaged": files.map(moved_files::damaged_of),
        "is_complete": files.map(|files| files.is_complete),
    });
    out.report(&shown, |_| text(records, files))?;

    let Some(files) = files else {
        out.note("start the server with metadata = \"postgres://…\" in its configuration");
        return Ok(Exit::Done);
    };
    Ok(moved_files::conclude(files, out))
}

fn former(copied: &CopiedRecords) -> String {
    plain(&copied.former_database.to_string_lossy())
}

fn text(records: Option<&CopiedRecords>, files: Option<&CopiedFiles>) -> String {
    let mut lines = Vec::new();
    if let Some(copied) = records {
        lines.push(format!(
            "copied and compared the records of {}, {} in total",
            counted(copied.files, "file"),
            counted(copied.rows, "row"),
        ));
        let former = former(copied);
        lines.push(format!("renamed the SQLite database to {former}: servers no longer open it"));
    }

    if let Some(moved) = files {
        lines.push(moved_files::text(moved));
    }

    lines.join("\n")
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
