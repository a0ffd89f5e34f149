//! Bytes to be sent, from a file of this machine or from stdin.

use std::fmt;
use std::path::{Path, PathBuf};

use filestore_core::api::Metadata;
use tokio::io::AsyncRead;

use crate::failure::{Failure, Result};

/// The place that bytes are read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// Standard input: read once, to its end.
    Stdin,
    /// A regular file of this many bytes.
    File(PathBuf, u64),
    /// A pipe or device: read once, to its end.
    Stream(PathBuf),
}

/// Bytes to be sent, with the name and type that the user gives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) input: Input,
    pub(crate) name: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) metadata: Option<Metadata>,
}

impl Item {
    /// Makes an item of which nothing but the input is known.
    pub(crate) fn new(input: Input) -> Self {
        Self { input, name: None, mime_type: None, metadata: None }
    }
}

impl Input {
    /// Finds out what `path` names; `-` is stdin. Refuses a directory and a path without a file.
    pub(crate) fn find(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdin);
        }
        let metadata = std::fs::metadata(path).map_err(|e| {
            let failure = Failure::io(format!("cannot read {}", path.display()), &e);
            match e.kind() {
                std::io::ErrorKind::NotFound => failure.hint("check the path; - is stdin"),
                _ => failure,
            }
        })?;

        if metadata.is_dir() {
            return Err(Failure::failed(format!(
                "cannot read {}: it is a directory",
                path.display()
            ))
            .hint("`filestore upload --recursive DIR` uploads the files in it"));
        }

        let path = path.to_owned();
        Ok(if metadata.is_file() { Self::File(path, metadata.len()) } else { Self::Stream(path) })
    }

    /// Returns the number of bytes, where it is known before reading.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        match self {
            Self::File(_, size) => Some(*size),
            Self::Stdin | Self::Stream(_) => None,
        }
    }

    /// Returns the name of the file, if the input is one.
    pub(crate) fn file_name(&self) -> Option<String> {
        match self {
            Self::File(path, _) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
            Self::Stdin | Self::Stream(_) => None,
        }
    }

    /// Opens the input for reading.
    pub(crate) async fn open(&self) -> Result<Box<dyn AsyncRead + Send + Unpin>> {
        match self {
            Self::Stdin => Ok(Box::new(tokio::io::stdin())),
            Self::File(path, _) | Self::Stream(path) => match tokio::fs::File::open(path).await {
                Ok(file) => Ok(Box::new(file)),
                Err(error) => Err(Failure::io(format!("cannot read {self}"), &error)),
            },
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("stdin"),
            Self::File(path, _) | Self::Stream(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_is_stdin_and_a_directory_is_nothing_to_send() {
        assert_eq!(Input::find(Path::new("-")).unwrap(), Input::Stdin);
        let failure = Input::find(Path::new(".")).unwrap_err();
        assert!(failure.explain().contains("--recursive"));
    }

    #[test]
    fn a_device_is_read_as_a_stream() {
        assert!(matches!(Input::find(Path::new("/dev/null")).unwrap(), Input::Stream(_)));
    }
}
