//! Bytes to send, from a file on this machine or from stdin.

use std::fmt;
use std::path::{Path, PathBuf};

use filestore_core::api::{Metadata, text_of_file_name};
use tokio::io::AsyncRead;

use crate::failure::{Failure, Result};

/// The source of the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// Standard input, which can be read once.
    Stdin,
    /// A regular file of this many bytes.
    File(PathBuf, u64),
    /// A pipe or device, which can be read once.
    Stream(PathBuf),
}

/// Bytes to send, with the name and type that the user chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) input: Input,
    pub(crate) name: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) metadata: Option<Metadata>,
}

impl Item {
    /// Creates an item without a name, type or custom metadata.
    pub(crate) fn new(input: Input) -> Self {
        Self { input, name: None, mime_type: None, metadata: None }
    }
}

impl Input {
    /// Finds the kind of input at `path`. `-` is stdin. Fails for a directory and for a missing
    /// file.
    pub(crate) fn find(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdin);
        }
        let metadata = std::fs::metadata(path).map_err(|e| {
            let failure = Failure::io(format!("cannot read {}", path.display()), &e);
            match e.kind() {
                std::io::ErrorKind::NotFound => failure.hint("check the path (- is stdin)"),
                _ => failure,
            }
        })?;

        if metadata.is_dir() {
            return Err(Failure::failed(format!(
                "cannot read {}: this is a directory",
                path.display()
            ))
            .hint("to upload its files, use `filestore upload --recursive DIR`"));
        }

        let path = path.to_owned();
        Ok(if metadata.is_file() { Self::File(path, metadata.len()) } else { Self::Stream(path) })
    }

    /// Returns the number of bytes, if it is known before reading.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        match self {
            Self::File(_, size) => Some(*size),
            Self::Stdin | Self::Stream(_) => None,
        }
    }

    /// Returns the file's name, if the input is a file. Fails if the name is no text.
    pub(crate) fn file_name(&self) -> Result<Option<String>> {
        let name = match self {
            Self::File(path, _) => path.file_name(),
            Self::Stdin | Self::Stream(_) => None,
        };
        let Some(name) = name else { return Ok(None) };
        text_of_file_name(name).map(Some).ok_or_else(|| {
            Failure::failed("the name of the file is neither UTF-8 nor Windows-1252")
                .hint("give the file another name with --name")
        })
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
