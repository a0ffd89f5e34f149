//! Downloads of files.

mod wanted;
mod transfer;
mod piece;
mod partial;

use std::fmt;
use std::io;
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use filestore_core::api::Disposition;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_util::io::StreamReader;

use partial::PartialFile;
use piece::Piece;
use transfer::Transfer;
use wanted::Wanted;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::progress::{OnProgress, Progress};
use crate::transport::retry::{Attempts, Retry};

/// A download before its start, returned by [`Client::download`].
///
/// If the connection breaks, the client resumes the download, unless the file has changed. At the
/// end of a whole file, the client checks the SHA-256. If the server redirects to a storage
/// provider, the client gets the bytes from there and does not send the API key.
///
/// For example, save a file, read its first bytes, and copy it to a socket:
///
/// ```no_run
/// use filestore_client::Disposition;
///
/// # async fn run(client: filestore_client::Client, mut socket: tokio::net::TcpStream) -> filestore_client::Result<()> {
/// let id = "01JD0000000000000000000000";
/// client.download(id).disposition(Disposition::Attachment).to_path("copy.jpg").await?;
/// let head = client.download(id).range(..16).bytes().await?;
/// let done = client.download(id).to_writer(&mut socket).await?;
/// eprintln!("{} of {} and {} bytes", done.content_type.unwrap_or_default(), done.len_bytes, head.len());
/// # Ok(())
/// # }
/// ```
#[must_use = "a download starts with to_path, to_writer, bytes, stream or reader"]
pub struct Download {
    pub(crate) client: Client,
    pub(crate) file_id: String,
    pub(crate) wanted: Wanted,
    pub(crate) disposition: Option<Disposition>,
    pub(crate) if_match: Option<String>,
    pub(crate) on_progress: Option<OnProgress>,
    /// The first reply, if it has already arrived.
    begun: Option<Piece>,
}

/// A finished download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downloaded {
    /// Number of delivered bytes.
    pub len_bytes: u64,
    /// Reply media type.
    pub content_type: Option<String>,
    /// The reply's ETag (after a redirect, the provider's ETag).
    pub etag: Option<String>,
    /// SHA-256 of the whole file in hex. The client checked it for a whole file, but not for a
    /// range.
    pub sha256: String,
}

impl Download {
    /// Requests only these bytes, counted from zero, for example `100..200`, `100..` or `..=99`.
    pub fn range(mut self, range: impl RangeBounds<u64>) -> Self {
        self.wanted = Wanted::from_bounds(&range);
        self
    }

    /// Requests only the last `len_bytes` bytes.
    pub fn suffix(mut self, len_bytes: u64) -> Self {
        self.wanted = Wanted::Suffix(len_bytes);
        self
    }

    /// Requests this disposition.
    pub fn disposition(mut self, disposition: Disposition) -> Self {
        self.disposition = Some(disposition);
        self
    }

    /// Downloads the file only if it still has this ETag. Otherwise the download fails with
    /// [`ErrorKind::PreconditionFailed`](crate::ErrorKind::PreconditionFailed).
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.if_match = Some(etag.into());
        self
    }

    /// Connects, and returns the download if the file no longer has this ETag. Returns `None` if
    /// the file is unchanged.
    ///
    /// Use the ETag from [`Client::info`], which is `"<sha256>"` with quotes.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let (id, etag) = ("01JD0000000000000000000000", "\"9f86d081884c7d65…\"");
    /// match client.download(id).if_changed(etag).await? {
    ///     Some(download) => println!("{} bytes", download.to_path("copy.jpg").await?.len_bytes),
    ///     None => println!("the copy is up to date"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn if_changed(self, etag: &str) -> Result<Option<Self>> {
        let mut attempts = Attempts::new(self.client.settings().retry, Retry::Idempotent);
        let transfer = Transfer::new(self);

        loop {
            match transfer.connect_unless(Some(etag)).await {
                Ok(Some(piece)) => {
                    let begun = Some(piece);
                    return Ok(Some(Self { begun, ..transfer.into_download() }));
                }
                Ok(None) => return Ok(None),
                Err(error) => attempts.pause(error).await?,
            }
        }
    }

    /// Calls `callback` as bytes arrive.
    pub fn on_progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(callback));
        self
    }

    /// Writes the bytes to `writer` as they arrive, and flushes the writer.
    ///
    /// If the download fails, the writer contains a part of the file. After
    /// [`ErrorKind::Digest`](crate::ErrorKind::Digest), do not use the written bytes.
    pub async fn to_writer<W: AsyncWrite + Unpin + Send + ?Sized>(
        self,
        writer: &mut W,
    ) -> Result<Downloaded> {
        let mut transfer = Transfer::new(self);
        while let Some(chunk) = transfer.next().await? {
            let written = writer.write_all(&chunk).await;
            written.map_err(|error| Error::io("writing the download", error))?;
        }

        writer.flush().await.map_err(|error| Error::io("writing the download", error))?;
        transfer.conclude()
    }

    /// Returns the bytes as a stream. The download starts at the first poll.
    ///
    /// The stream resumes broken connections and checks the digest of a whole file at the end. If
    /// the stream ends without an error, you have the complete file. The stream ends after an
    /// error. After [`ErrorKind::Digest`](crate::ErrorKind::Digest), do not use the received bytes.
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let mut bytes = client.download("01JD0000000000000000000000").stream();
    /// while let Some(chunk) = bytes.try_next().await? {
    ///     println!("{} more bytes", chunk.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(self) -> impl Stream<Item = Result<Bytes>> + Send + Unpin + use<> {
        let start = Some(Transfer::new(self));
        let chunks = stream::try_unfold(start, |transfer| async move {
            let Some(mut transfer) = transfer else { return Ok(None) };

            if let Some(chunk) = transfer.next().await? {
                return Ok(Some((chunk, Some(transfer))));
            }
            transfer.conclude()?;
            Ok(None)
        });

        chunks.boxed()
    }

    /// Returns the bytes as an [`AsyncRead`]. The reader behaves like [`stream`](Self::stream).
    ///
    /// Read until the end, because the check of the digest is at the end. A failure is a
    /// [`std::io::Error`] with an [`Error`](crate::Error) as its source.
    ///
    /// ```no_run
    /// use tokio::io::AsyncReadExt;
    ///
    /// # async fn run(client: filestore_client::Client) -> std::io::Result<()> {
    /// let mut text = String::new();
    /// client.download("01JD0000000000000000000000").reader().read_to_string(&mut text).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn reader(self) -> impl AsyncRead + Send + Unpin + use<> {
        StreamReader::new(self.stream().map_err(io::Error::other))
    }

    /// Writes the bytes to the file at `path`, and replaces an existing file.
    ///
    /// The client writes to a temporary file in the same directory, checks the digest, flushes the
    /// file to the disk, and renames it. After an error, or if you drop the future, `path` is
    /// unchanged.
    pub async fn to_path(self, path: impl AsRef<Path>) -> Result<Downloaded> {
        let mut partial = PartialFile::create(path.as_ref()).await?;
        let done = self.to_writer(partial.writer()).await?;
        partial.publish().await?;
        Ok(done)
    }

    /// Returns the bytes in memory.
    pub async fn bytes(self) -> Result<Bytes> {
        let mut bytes = Vec::new();
        self.to_writer(&mut bytes).await?;
        Ok(bytes.into())
    }
}

impl Client {
    /// Prepares the download of a file. See [`Download`] for the ways to get the bytes.
    pub fn download(&self, file_id: impl AsRef<str>) -> Download {
        Download {
            client: self.clone(),
            file_id: file_id.as_ref().to_owned(),
            wanted: Wanted::Whole,
            disposition: None,
            if_match: None,
            on_progress: None,
            begun: None,
        }
    }
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("file_id", &self.file_id)
            .field("wanted", &self.wanted)
            .field("disposition", &self.disposition)
            .finish_non_exhaustive()
    }
}
