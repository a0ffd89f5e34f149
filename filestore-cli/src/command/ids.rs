//! Ids from the command line or from stdin.

use tokio::io::AsyncReadExt as _;

use crate::failure::{Failure, Result};

/// The argument that stands for the ids on stdin.
const STDIN: &str = "-";

/// Replaces `-` by the ids on stdin, which spaces or line ends separate. Fails if stdin has no id.
pub(super) async fn read(arguments: Vec<String>) -> Result<Vec<String>> {
    let Some(at) = arguments.iter().position(|argument| argument == STDIN) else {
        return Ok(arguments);
    };

    let mut text = String::new();
    let read = tokio::io::stdin().read_to_string(&mut text).await;
    read.map_err(|e| Failure::io("cannot read ids from stdin", &e))?;

    let found: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if found.is_empty() {
        return Err(Failure::failed("stdin contains no ids")
            .hint("for example, `filestore list --all --quiet` prints ids"));
    }
    let mut ids = arguments;
    drop(ids.splice(at..=at, found));
    ids.retain(|id| id != STDIN);
    Ok(ids)
}
