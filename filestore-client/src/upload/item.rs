//! One file to send: the source of its bytes, and its name.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use filestore_core::api;
use futures_util::stream::{self, BoxStream, Stream, StreamExt, TryStreamExt};
use tokio::io::AsyncRead;
use tokio_util::io::StreamReader;

use crate::error::{Error, Result};
use crate::upload::description::{Description, description_setters};

/// Maximum number of characters in a name.
const NAME_LIMIT_CHARS: usize = 255;

/// One file to send: its bytes, and optionally its name, type and custom metadata.
///
/// The client streams the bytes and keeps only 256 KiB in memory. For example, send a file, bytes
/// in memory, and a socket:
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
    description: Description,
}

/// The source of the bytes.
pub(crate) enum Source {
    /// Opened for every attempt.
    Path(PathBuf),
    Bytes(Bytes),
    Reader(Box<dyn AsyncRead + Send + Unpin>, Option<u64>),
    Stream(Chunks, Option<u64>),
    /// A reader or stream that an attempt has used up.
    Spent,
}

/// Bytes that arrive in chunks, and are sent as they are.
pub(crate) type Chunks = BoxStream<'static, io::Result<Bytes>>;

/// Maximum number of bytes of a chunk that bytes in memory are sent in.
const CHUNK_BYTES: usize = 256 << 10;

/// An opened source.
pub(crate) enum Opened {
    /// Bytes to be read into a buffer.
    Reader(Box<dyn AsyncRead + Send + Unpin>),
    /// Bytes in buffers of their own.
    Chunks(Chunks),
}

impl Item {
    /// Sends the regular file at `path` with its own name. A name that is not UTF-8 is read as
    /// Windows-1252. If the name is neither, set another one, or the upload fails.
    ///
    /// Fails with [`ErrorKind::Io`] if the file does not exist. For a pipe or a device, use
    /// [`Item::from_reader`]. If the length of the file changes during the upload, the call fails
    /// and the server stores no file.
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

        let name = path.file_name().and_then(api::text_of_file_name);
        Ok(Self { file_name: name, ..Self::new(Source::Path(path)) })
    }

    /// Sends bytes in memory.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self::new(Source::Bytes(bytes.into()))
    }

    /// Sends the bytes from `reader` until its end. The client does not retry such an upload,
    /// because a reader can be read only once.
    ///
    /// If you know the length, set `len_bytes`. The reader must then return exactly this number of
    /// bytes, and the server can refuse a large file early.
    pub fn from_reader(
        reader: impl AsyncRead + Send + Unpin + 'static,
        len_bytes: Option<u64>,
    ) -> Self {
        Self::new(Source::Reader(Box::new(reader), len_bytes))
    }

    /// Sends the chunks of `stream` until its end, without copying them. For example, pass a request of your own server
    /// on. As for [`Item::from_reader`], the client does not retry such an upload. With
    /// [`Resumable::Always`](crate::Resumable::Always), the client copies and keeps up to 32 MiB in memory.
    ///
    /// If you know the length, set `len_bytes`. The stream must then return exactly this number of bytes.
    ///
    /// ```no_run
    /// use bytes::Bytes;
    /// use filestore_client::Item;
    /// use futures_util::stream;
    ///
    /// let chunks = stream::iter([Ok::<_, std::io::Error>(Bytes::from("hello, ")), Ok("world".into())]);
    /// let item = Item::from_stream(chunks, None).original_name("hello.txt");
    /// ```
    pub fn from_stream<E>(
        stream: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
        len_bytes: Option<u64>,
    ) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        Self::new(Source::Stream(stream.map_err(io::Error::other).boxed(), len_bytes))
    }

    description_setters! {
        name: "Sets the name to store, by default the name of the path. A name has up to 255 Unicode \
               characters without control characters.",
        mime_type: "Sets the media type to store, by default detected from the bytes and the name.",
        metadata: "Sets the custom metadata to store: the members of a JSON object of up to 4 KiB.",
    }

    pub(super) fn description_mut(&mut self) -> &mut Description {
        &mut self.description
    }

    fn new(source: Source) -> Self {
        Self { source, file_name: None, description: Description::default() }
    }

    /// Adds the description of a change. The new properties replace those of the item.
    pub(crate) fn with(mut self, description: Description) -> Self {
        let own = &mut self.description;
        own.original_name = description.original_name.or(own.original_name.take());
        own.mime_type = description.mime_type.or(own.mime_type.take());
        own.metadata = description.metadata.or(own.metadata.take());
        self
    }

    /// Returns the text fields that describe the item.
    ///
    /// If a field can contain the path's name, it is sent as a field. A multipart file name
    /// loses the text before a backslash, and its `%22` is ambiguous.
    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        let file_name = self.file_name.as_ref().filter(|name| fits_a_field(name));
        let mut description = self.description.clone();
        description.original_name = description.original_name.or(file_name.cloned());
        description.fields()
    }

    /// Returns the file name of the multipart part.
    pub(crate) fn file_name(&self) -> Option<&str> {
        self.description.original_name.as_deref().or(self.file_name.as_deref())
    }

    /// Returns true if the bytes can be read more than once.
    pub(crate) fn is_repeatable(&self) -> bool {
        matches!(self.source, Source::Path(_) | Source::Bytes(_))
    }

    /// Returns the number of bytes, if it is known. The future does not borrow the item, because a reader need
    /// not be `Sync`.
    pub(crate) fn len(&self) -> impl Future<Output = Result<Option<u64>>> + Send + use<> {
        let (path, known) = match &self.source {
            Source::Path(path) => (Some(path.clone()), None),
            Source::Bytes(bytes) => (None, Some(bytes.len() as u64)),
            Source::Reader(_, len) | Source::Stream(_, len) => (None, *len),
            Source::Spent => (None, None),
        };
        async move {
            let Some(path) = path else { return Ok(known) };
            let metadata = tokio::fs::metadata(&path).await;
            Ok(Some(metadata.map_err(|error| Error::io(&opening(&path), error))?.len()))
        }
    }

    /// Returns the source for one attempt, and its length if known.
    pub(crate) async fn source(&mut self) -> Result<(Source, Option<u64>)> {
        match &self.source {
            Source::Path(path) => {
                if self.file_name().is_none() {
                    let path = path.display();
                    return Err(Error::invalid(format!(
                        "the name of the file is neither UTF-8 nor Windows-1252, set original_name: {path}"
                    )));
                }
                let metadata = tokio::fs::metadata(path).await;
                let len = metadata.map_err(|error| Error::io(&opening(path), error))?.len();
                Ok((Source::Path(path.clone()), Some(len)))
            }
            Source::Bytes(bytes) => Ok((Source::Bytes(bytes.clone()), Some(bytes.len() as u64))),
            Source::Reader(_, len) | Source::Stream(_, len) => {
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
    pub(crate) async fn open(self) -> io::Result<Opened> {
        Ok(Opened::Reader(match self {
            Source::Path(path) => {
                let file = tokio::fs::File::open(&path).await;
                let file = file.map_err(|error| {
                    io::Error::new(error.kind(), format!("{error}: {}", path.display()))
                });
                Box::new(file?)
            }
            Source::Bytes(bytes) => return Ok(Opened::Chunks(chunks(bytes))),
            Source::Reader(reader, _) => reader,
            Source::Stream(chunks, _) => return Ok(Opened::Chunks(chunks)),
            Source::Spent => return Err(io::Error::other("the reader was used up")),
        }))
    }
}

/// Cuts bytes into chunks, so that progress is reported. No byte is copied.
fn chunks(bytes: Bytes) -> Chunks {
    let chunks = stream::unfold(bytes, |mut rest| async move {
        let chunk = rest.split_to(rest.len().min(CHUNK_BYTES));
        (!chunk.is_empty()).then_some((Ok(chunk), rest))
    });
    chunks.boxed()
}

/// Reads chunks as a reader.
pub(super) fn reader_of(chunks: Chunks) -> Box<dyn AsyncRead + Send + Unpin> {
    Box::new(StreamReader::new(chunks))
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &self.source {
            Source::Path(path) => path.display().to_string(),
            Source::Bytes(bytes) => format!("{} bytes", bytes.len()),
            Source::Reader(..) | Source::Spent => "reader".to_owned(),
            Source::Stream(..) => "stream".to_owned(),
        };
        f.debug_struct("Item")
            .field("source", &source)
            .field("original_name", &self.description.original_name)
            .field("mime_type", &self.description.mime_type)
            .finish_non_exhaustive()
    }
}

/// Returns true if the field `original_name` can contain the name.
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

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_name_that_is_not_utf8_is_mapped_or_refused() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        let dir = tempfile::tempdir().unwrap();
        let item = |name: &[u8]| {
            let path = dir.path().join(OsStr::from_bytes(name));
            std::fs::write(&path, b"").unwrap();
            Item::from_path(path).unwrap()
        };
        assert_eq!(item(b"gr\xF6\xDFe.txt").file_name(), Some("größe.txt"));

        let error = item(b"\x81.txt").source().await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Invalid);
        assert!(error.to_string().contains("neither UTF-8"), "{error}");
        item(b"\x81.txt").original_name("named.txt").source().await.unwrap();
    }

    #[tokio::test]
    async fn chunks_are_sent_as_they_are() {
        let whole = Bytes::from(vec![7; CHUNK_BYTES + 1]);
        let parts: Vec<_> = chunks(whole.clone()).try_collect().await.unwrap();
        assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [CHUNK_BYTES, 1]);
        assert_eq!(parts[0].as_ptr(), whole.as_ptr(), "no byte is copied");

        let given = whole.clone();
        let given = stream::once(async move { Ok::<_, io::Error>(given) });
        let mut item = Item::from_stream(given, None);
        assert!(!item.is_repeatable());
        let Opened::Chunks(mut sent) = item.source().await.unwrap().0.open().await.unwrap() else {
            panic!("a stream is no reader");
        };
        assert_eq!(sent.next().await.unwrap().unwrap().as_ptr(), whole.as_ptr());
        assert!(item.source().await.is_err(), "a stream is read once");
    }

    #[tokio::test]
    async fn a_reader_is_read_once() {
        let mut item = Item::from_reader(tokio::io::empty(), None);
        assert!(!item.is_repeatable());
        item.source().await.unwrap();
        assert!(item.source().await.is_err());
    }
}
