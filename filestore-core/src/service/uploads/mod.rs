//! New files: from the claims and the first byte to the commit and the final name.
//!
//! A file names only files below it:
//!
//! | file | holds |
//! |---|---|
//! | `upload` | uploads in one call, and the beginning of a session |
//! | `session` | [`UploadSession`](session::UploadSession), which every upload uses |
//! | `whole_files` | the files of a session that have arrived |
//! | `commit` | one transaction for all files of an upload |
//! | `claims` | the claims of an upload and their order |
//! | `idempotency`, `permits`, `quota` | the three claims |
//! | `new_files` | files on their way to becoming records |
//! | `arrived`, `placement`, `fingerprint`, `staged`, `uncommitted` | steps of the commit |
//! | `publish` | the final names, after the commit |
//! | `resumable` | uploads that outlive a request, a connection and the process |

pub(super) mod upload;
pub(super) mod session;
mod whole_files;
pub(super) mod commit;
pub(super) mod claims;
pub(super) mod idempotency;
pub(super) mod permits;
pub(super) mod quota;
mod new_files;
pub(super) mod arrived;
pub(super) mod placement;
mod fingerprint;
pub(super) mod staged;
pub(super) mod uncommitted;
pub(super) mod publish;
pub(super) mod resumable;
pub(super) mod state;
