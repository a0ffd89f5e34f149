//! One file to be sent: the source of its bytes, and its name.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use filestore_core::api::Metadata;
use tokio::io::AsyncRead;

use crate::error::{Error, Result};

/// The most characters of a name that the service takes.
const NAME_LIMIT_CHARS: usize = 255;

/// One file to be sent: its bytes, and optionally its name and type. Bytes are streamed; only one
/// piece of 256 KiB is in memory at a time.
///
/// ```no_run
/// use filestore_client::Item;
///
/// # fn run(socket: tokio::net::TcpStream) -> filestore_client::Result<()> {
/// let photo = Item::from_path("photo.jpg")?;
/// let note = Item::from_bytes("hello").original_name("note.txt").mime_type("text/plain");
/// let input = Item::from_reader(socket, None).original_name("input.csv");
/// # let _ = (photo, note, input);
/// # Ok(())
/// # }
/// ```
pub struct Item {
    source: Source,
    file_name: Option<String>,
    said: Said,
}

/// The properties of a file that the application gives beside its bytes.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) original_name: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) metadata: Option<Metadata>,
}

impl Said {
    /// Returns the text fields of a form that carry the properties.
    pub(crate) fn fields(self) -> Vec<(&'static str, String)> {
        let mut fields = Vec::new();
        fields.extend(self.original_name.map(|name| ("original_name", name)));
        fields.extend(self.mime_type.map(|kind| ("mime_type", kind)));
        fields.extend(self.metadata.as_ref().map(|object| ("metadata", text_of(object))));
        fields
    }
}

/// The source of bytes.
pub(crate) enum Source {
    /// Opened when its turn comes, again for every attempt.
    Path(PathBuf),
    Bytes(Bytes),
    Reader(Box<dyn AsyncRead + Send + Unpin>, Option<u64>),
    /// A reader that an attempt has taken.
    Spent,
}

impl Item {
    /// Takes the regular file at `path`, under its own name. Fails with [`ErrorKind::Io`] if there is
    /// none; a pipe or device is sent with [`Item::from_reader`]. A file that changes its length
    /// while it is sent is an error too, and nothing is stored.
    ///
    /// [`ErrorKind::Io`]: crate::ErrorKind::Io
    pub fn from_path(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();

        let metadata =
            std::fs::metadata(&path).map_err(|error| Error::io(&opening(&path), error))?;
        if !metadata.is_file() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            return Err(Error::io(&opening(&path), error));
        }

        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self { file_name: name, ..Self::new(Source::Path(path)) })
    }

    /// Takes bytes in memory.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self::new(Source::Bytes(bytes.into()))
    }

    /// Takes the bytes that `reader` yields until its end: exactly `len_bytes` if that is given (so that the server
    /// can then refuse too large a file before it is sent). An upload of it is never repeated,
    /// because it can be read only once.
    pub fn from_reader(
        reader: impl AsyncRead + Send + Unpin + 'static,
        len_bytes: Option<u64>,
    ) -> Self {
        Self::new(Source::Reader(Box::new(reader), len_bytes))
    }

    /// Sets the name to store: any Unicode but control characters, at most 255 characters. Otherwise
    /// the name of the path.
    #[must_use]
    pub fn original_name(mut self, name: impl Into<String>) -> Self {
        self.said.original_name = Some(name.into());
        self
    }

    /// Sets the media type to store. Otherwise the server looks at the bytes and the name.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.said.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the custom metadata to store: an object of at most 4 KiB, given by its members.
    #[must_use]
    pub fn metadata<K, V>(mut self, members: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<serde_json::Value>,
    {
        self.said.metadata = Some(object(members));
        self
    }

    fn new(source: Source) -> Self {
        Self { source, file_name: None, said: Said::default() }
    }

    /// Adds what a change says of the file; it wins.
    pub(crate) fn with(mut self, said: Said) -> Self {
        let own = &mut self.said;
        own.original_name = said.original_name.or(own.original_name.take());
        own.mime_type = said.mime_type.or(own.mime_type.take());
        own.metadata = said.metadata.or(own.metadata.take());
        self
    }

    /// Returns the text fields that describe the item. The path's name goes as a field wherever a field may
    /// hold it, because a multipart file name loses what is before a backslash and cannot tell
    /// `%22` from a quote.
    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        let file_name = self.file_name.as_ref().filter(|name| fits_a_field(name));
        let said = Said {
            original_name: self.said.original_name.as_ref().or(file_name).cloned(),
            mime_type: self.said.mime_type.clone(),
            metadata: self.said.metadata.clone(),
        };
        said.fields()
    }

    /// Returns the file name of the multipart part.
    pub(crate) fn file_name(&self) -> Option<&str> {
        self.said.original_name.as_deref().or(self.file_name.as_deref())
    }

    /// Returns true if the bytes can be read more than once.
    pub(crate) fn is_repeatable(&self) -> bool {
        matches!(self.source, Source::Path(_) | Source::Bytes(_))
    }

    /// Returns the source for one attempt, and its length where known.
    pub(crate) async fn source(&mut self) -> Result<(Source, Option<u64>)> {
        match &self.source {
            Source::Path(path) => {
                let metadata = tokio::fs::metadata(path).await;
                let len = metadata.map_err(|error| Error::io(&opening(path), error))?.len();
                Ok((Source::Path(path.clone()), Some(len)))
            }
            Source::Bytes(bytes) => Ok((Source::Bytes(bytes.clone()), Some(bytes.len() as u64))),
            Source::Reader(_, len) => {
                let len = *len;
                Ok((std::mem::replace(&mut self.source, Source::Spent), len))
            }
            Source::Spent => {
                Err(Error::io("reading again", io::Error::other("the reader was used up")))
            }
        }
    }
}

impl Source {
    pub(crate) async fn open(self) -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
        match self {
            Source::Path(path) => {
                let file = tokio::fs::File::open(&path).await;
                let file = file.map_err(|error| {
                    io::Error::new(error.kind(), format!("{error}: {}", path.display()))
                });
                Ok(Box::new(file?))
            }
            Source::Bytes(bytes) => Ok(Box::new(io::Cursor::new(bytes))),
            Source::Reader(reader, _) => Ok(reader),
            Source::Spent => Err(io::Error::other("the reader was used up")),
        }
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &self.source {
            Source::Path(path) => path.display().to_string(),
            Source::Bytes(bytes) => format!("{} bytes", bytes.len()),
            Source::Reader(..) | Source::Spent => "reader".to_owned(),
        };
        f.debug_struct("Item")
            .field("source", &source)
            .field("original_name", &self.said.original_name)
            .field("mime_type", &self.said.mime_type)
            .finish_non_exhaustive()
    }
}

/// Makes an object of its members.
pub(crate) fn object<K: Into<String>, V: Into<serde_json::Value>>(
    members: impl IntoIterator<Item = (K, V)>,
) -> Metadata {
    members.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}

/// Writes custom metadata as a form carries it.
fn text_of(metadata: &Metadata) -> String {
    serde_json::to_string(metadata).expect("an object has string keys and plain values")
}

/// Returns true for a name that the field `original_name` may hold.
fn fits_a_field(name: &str) -> bool {
    name.chars().count() <= NAME_LIMIT_CHARS && !name.contains(char::is_control)
}

fn opening(path: &Path) -> String {
    format!("opening {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_no_item() {
        let error = Item::from_path(std::env::temp_dir()).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Io);
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }

    #[test]
    fn a_name_that_no_field_may_hold_stays_in_the_file_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("Icon\r");
        std::fs::write(&path, b"").unwrap();
        let item = Item::from_path(path).unwrap();
        assert_eq!(item.fields(), []);
        assert_eq!(item.file_name(), Some("Icon\r"));
    }

    #[tokio::test]
    async fn a_reader_is_read_once() {
        let mut item = Item::from_reader(tokio::io::empty(), None);
        assert!(!item.is_repeatable());
        item.source().await.unwrap();
        assert!(item.source().await.is_err());
    }
}
