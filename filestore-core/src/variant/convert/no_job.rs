//! Replaces `job` in a build without the feature `converters`. A store with converters then does not open.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::domain::config::{ConverterConfig, VariantConfig};
use crate::domain::error::{Error, ErrorKind, Result};

const NOT_BUILT_IN: &str =
    "this build has no converters: filestore-core needs its feature `converters`";

/// Refuses a configuration with converters.
pub(super) fn launcher(config: &VariantConfig) -> Result<PathBuf> {
    if config.converters.is_empty() {
        return Ok(PathBuf::new());
    }
    Err(Error::new(ErrorKind::Unusable, NOT_BUILT_IN))
}

/// Removes the leftovers of another build.
pub(super) fn remove_tree(directory: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn walls(_launcher: &Path) -> String {
    NOT_BUILT_IN.to_owned()
}

/// A run, which cannot happen because [`launcher`] refused its converter.
pub(super) struct Job;

impl Job {
    pub(super) fn new(_launcher: &Path, _config: &ConverterConfig) -> Self {
        Self
    }

    #[expect(clippy::unused_async, reason = "as in a build with converters")]
    pub(super) async fn run(self, _directory: PathBuf, _source: File) -> Result<File> {
        Err(Error::new(ErrorKind::ConversionFailed, NOT_BUILT_IN))
    }
}
