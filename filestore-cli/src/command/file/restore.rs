//! `restore`.

use filestore_core::api::{MAX_RESTORED_AT_ONCE, RestoreFileResult, RestoreReply};

use crate::command::ids;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, plain, record};
use crate::store::Target;

/// `restore`: restores deleted files, and prints an error for each file that stays deleted.
pub(in crate::command) async fn run(
    ids: Vec<String>,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let ids = ids::read(ids).await?;
    if let [id] = ids.as_slice() {
        return one(id, target, out).await;
    }

    let (mut restored, mut exit) = (Vec::new(), Exit::Done);
    for outcome in outcomes(&ids, target).await {
        match outcome {
            Ok(result) => restored.push(result),
            Err(failure) => {
                out.failure(&failure);
                exit = exit.max(failure.exit());
            }
        }
    }

    out.data(
        &restored,
        |all| all.iter().map(|result| result.id.as_str()).collect(),
        |all| {
            let lines: Vec<_> =
                all.iter().map(|result| format!("{} is restored", plain(&result.id))).collect();
            lines.join("\n")
        },
    )?;
    Ok(exit)
}

/// Restores one file and shows its record.
async fn one(id: &str, target: &dyn Target, out: Output) -> Result<Exit> {
    let restored = target.restore(id).await.map_err(|e| e.doing(format!("cannot restore {id}")))?;
    out.data(&restored, |reply| vec![reply.file_id()], restored_text)?;
    Ok(Exit::Done)
}

/// Shows the record, or the id if the key must not read the record.
fn restored_text(reply: &RestoreReply) -> String {
    reply.record().map_or_else(|| format!("restored {}", plain(reply.file_id())), record)
}

/// Restores the files, up to 1000 with one request. Returns the result for each file.
async fn outcomes(ids: &[String], target: &dyn Target) -> Vec<Result<RestoreFileResult>> {
    let mut outcomes = Vec::with_capacity(ids.len());
    for ids in ids.chunks(MAX_RESTORED_AT_ONCE) {
        match target.restore_many(ids).await {
            Ok(results) => outcomes.extend(results.into_iter().map(outcome_of)),
            Err(failure) => {
                let doing = format!("cannot restore {} and the files after it", ids[0]);
                outcomes.push(Err(failure.doing(doing)));
                break;
            }
        }
    }
    outcomes
}

fn outcome_of(mut result: RestoreFileResult) -> Result<RestoreFileResult> {
    match result.error.take() {
        None => Ok(result),
        Some(error) => {
            let failure = Failure::told(error.code, error.detail);
            Err(failure.doing(format!("cannot restore {}", result.id)))
        }
    }
}
