//! The only place that calls fsync.

use std::fs::File;
use std::io;

use crate::tasks::step::{Call, attempt};

/// Makes a file or directory durable. A failure is final, because the kernel may have dropped the unwritten
/// pages.
pub(super) fn sync(file: &File) -> io::Result<()> {
    attempt(Call::Sync)?;
    #[cfg(feature = "sabotage")]
    if crate::tasks::sabotage::takes(crate::tasks::sabotage::Part::Fsync) {
        return Ok(());
    }

    file.sync_all()
}
