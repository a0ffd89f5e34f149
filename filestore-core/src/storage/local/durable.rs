//! The one place of the disk's fsyncs.

use std::fs::File;
use std::io;

use crate::tasks::step::{Call, attempt};

/// Makes a file or directory durable. A failure is final: the kernel may have dropped what it could
/// not write.
pub(super) fn sync(file: &File) -> io::Result<()> {
    attempt(Call::Sync)?;
    #[cfg(feature = "sabotage")]
    if crate::tasks::sabotage::takes(crate::tasks::sabotage::Part::Fsync) {
        return Ok(());
    }

    file.sync_all()
}
