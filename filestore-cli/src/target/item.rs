//! Bytes to be sent: a file of this machine, or stdin.

use std::fmt;
use std::path::{Path, PathBuf};

use tokio::io::AsyncRead;

use crate::failure::{Failure, Result};

/// Where bytes come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Stdin,
    /// A regular file of this many bytes.
    File(PathBuf, u64),
    /// A pipe or device: read once, to its end.
    Stream(PathBuf),
}

/// Bytes to be sent, with what the user says of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) source: Source,
    pub(crate) name: Option<String>,
    pub(crate) mime_type: Option<String>,
}

impl Item {
    /// An item of which only the source is known.
    pub(crate) fn new(source: Source) -> Self {
        Self { source, name: None, mime_type: None }
    }
}

impl Source {
    /// What `path` names; `-` is stdin. Fails for what cannot be read as bytes.
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

    /// Bytes, where they can be known before reading.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        match self {
            Self::File(_, size) => Some(*size),
            Self::Stdin | Self::Stream(_) => None,
        }
    }

    /// The name of the file, if it is one.
    pub(crate) fn file_name(&self) -> Option<String> {
        match self {
            Self::File(path, _) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
            Self::Stdin | Self::Stream(_) => None,
        }
    }

    /// Opens it for reading.
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

impl fmt::Display for Source {
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
        assert_eq!(Source::find(Path::new("-")).unwrap(), Source::Stdin);
        let failure = Source::find(Path::new(".")).unwrap_err();
        assert!(failure.explain().contains("--recursive"));
    }

    #[test]
    fn a_device_is_read_as_a_stream() {
        assert!(matches!(Source::find(Path::new("/dev/null")).unwrap(), Source::Stream(_)));
    }
}
