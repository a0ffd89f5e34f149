//! Unfinished multipart uploads, and leftovers of killed writes.

pub(super) mod uploads;
#[cfg(feature = "s3")]
pub(super) mod s3_uploads;
pub(super) mod leftovers;
