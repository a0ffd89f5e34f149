//! Files that move from a data directory to the backend, for `metadata copy` and `backup restore`.

use std::path::Path;
use std::sync::Arc;

use filestore_core::admin::{CopiedFiles, copy_files};
use filestore_core::api::WorkFailure;
use filestore_core::{Location, StoreConfig};
use serde_json::json;

use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, counted, plain, size};

/// Returns true if the configuration names a backend for LOCAL.
pub(in crate::command) fn has_backend(config: &StoreConfig) -> bool {
    config.providers.iter().any(|provider| provider.location == Location::Local)
}

/// Moves all files of the directory.
pub(in crate::command) async fn move_all(
    dir: &Path,
    config: &StoreConfig,
    out: Output,
) -> Result<CopiedFiles> {
    let meter = out.count_meter("moving files");
    let moved = copy_files(dir, config, Arc::new(meter.clone())).await;
    drop(meter);
    moved.map_err(Failure::from)
}

/// Counts the moved files in a line.
pub(in crate::command) fn text(moved: &CopiedFiles) -> String {
    format!(
        "moved {} ({}) to the backend, {} failed",
        counted(moved.files, "file"),
        size(moved.bytes),
        moved.failed
    )
}

/// Prints the next step and the files that did not move. Returns the exit status.
pub(in crate::command) fn conclude(moved: &CopiedFiles, out: Output) -> Exit {
    out.note(if moved.is_complete {
        "start the servers. Each server needs an empty data directory or this one"
    } else {
        "some files are still in the data directory. Repair them (`filestore fsck`) or delete them, then run \
         `filestore metadata copy` for this directory. Until then, a server needs postgres.only_server = true"
    });
    for row in &moved.damaged {
        let reason = Failure::refused(plain(&row.reason));
        out.failure(&reason.doing(format!("cannot move {}", plain(&row.row))));
    }
    let is_complete = if moved.is_complete { Exit::Done } else { Exit::Refused };
    is_complete.max(out.failures("move", &failures_of(moved), moved.failed))
}

/// Lists the files that did not move.
pub(in crate::command) fn failures_of(moved: &CopiedFiles) -> Vec<WorkFailure> {
    moved.failures.iter().cloned().map(WorkFailure::from).collect()
}

/// Lists the damaged records.
pub(in crate::command) fn damaged_of(moved: &CopiedFiles) -> Vec<serde_json::Value> {
    let shown = moved.damaged.iter().map(|row| json!({ "row": row.row, "reason": row.reason }));
    shown.collect()
}
