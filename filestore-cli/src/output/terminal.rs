//! The width of the terminal.

use std::env;
use std::io::{IsTerminal as _, stdout};

/// Returns the width of the output in columns, or `None` if the output has no limit, for example in
/// a file. As for `ps`, the variable `COLUMNS` sets the width for every kind of output.
pub(super) fn width() -> Option<usize> {
    let columns = env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    columns.filter(|width| *width > 0).or_else(|| {
        let size = stdout().is_terminal().then(|| terminal_size::terminal_size_of(stdout()));
        size.flatten().map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0)
    })
}
