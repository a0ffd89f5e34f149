//! Names of blobs: publishing, day directories, walks, and quarantine.

pub(super) mod publish;
pub(super) mod rename;
pub(super) mod directories;
pub(super) mod walk;
pub(super) mod quarantine;
pub(super) mod aside;
