//! `delete --dry-run`: shows the files that a deletion would hide.

use filestore_core::api::FileRecord;
use serde::Serialize;

use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, plain, size};
use crate::store::{IfMatch, Target};

/// A file that would be deleted, as `--json` prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Planned {
    file_id: String,
    dry_run: bool,
    /// Always false, like the field of a deletion that did not happen.
    deleted: bool,
    original_name: String,
    file_size: u64,
    /// True if an earlier command deleted the file.
    is_deleted_already: bool,
}

impl From<FileRecord> for Planned {
    fn from(file: FileRecord) -> Self {
        Self {
            file_id: file.file_id,
            dry_run: true,
            deleted: false,
            original_name: file.original_name,
            file_size: file.file_size,
            is_deleted_already: file.purge_status.is_some(),
        }
    }
}

/// Shows each file, and an error for each file that the deletion would refuse.
pub(super) async fn show(
    ids: &[String],
    if_match: Option<&IfMatch>,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let (mut planned, mut exit) = (Vec::new(), Exit::Done);
    for id in ids {
        match look_up(id, if_match, target).await {
            Ok(file) => planned.push(Planned::from(file)),
            Err(failure) => {
                let failure = failure.doing(format!("cannot delete {id}"));
                out.failure(&failure);
                exit = exit.max(failure.exit());
                if failure.hits_all() {
                    break;
                }
            }
        }
    }

    out.data(
        &planned,
        |all| all.iter().map(|file| file.file_id.as_str()).collect(),
        |all| all.iter().map(line).collect::<Vec<_>>().join("\n"),
    )?;
    Ok(exit)
}

async fn look_up(id: &str, if_match: Option<&IfMatch>, target: &dyn Target) -> Result<FileRecord> {
    let file = target.info(id).await?;
    match if_match {
        Some(IfMatch::Sha256(expected)) if *expected != file.sha256 => {
            let problem = format!("the content has another SHA-256: {}", plain(&file.sha256));
            Err(Failure::refused(problem))
        }
        _ => Ok(file),
    }
}

fn line(file: &Planned) -> String {
    let (id, name) = (plain(&file.file_id), plain(&file.original_name));
    if file.is_deleted_already {
        return format!("{id} is already deleted ({name})");
    }
    format!("would delete {id} ({name}, {})", size(file.file_size))
}
