//! Downloading a file: the bytes that are wanted, and the place they go to.

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
use crate::transport::retry::{Attempts, Repeat};

/// A download that has not started yet; [`Client::download`] makes one.
///
/// A connection that breaks is taken up again where it broke, as long as the file is still the
/// same. The SHA-256 of a whole file is checked at its end. Where the server redirects to the
/// storage provider, the bytes come from there, over a request that carries no key.
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
#[must_use = "a download does nothing until it has somewhere to go: to_path, to_writer, bytes, stream or reader"]
pub struct Download {
    pub(crate) client: Client,
    pub(crate) file_id: String,
    pub(crate) wanted: Wanted,
    pub(crate) disposition: Option<Disposition>,
    pub(crate) if_match: Option<String>,
    pub(crate) on_progress: Option<OnProgress>,
    /// The first reply, if it is there already.
    begun: Option<Piece>,
}

/// A finished download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downloaded {
    /// Bytes delivered.
    pub len_bytes: u64,
    /// The media type the bytes came with.
    pub content_type: Option<String>,
    /// The ETag the bytes came with (the provider's, behind a redirect).
    pub etag: Option<String>,
    /// The whole file's SHA-256 in hex. Of a whole download it was checked; a range cannot be.
    pub sha256: String,
}

impl Download {
    /// Asks for these bytes only, counted from zero: `100..200`, `100..`, `..=99`.
    pub fn range(mut self, range: impl RangeBounds<u64>) -> Self {
        self.wanted = Wanted::from_bounds(&range);
        self
    }

    /// Asks for the last `len_bytes` only.
    pub fn suffix(mut self, len_bytes: u64) -> Self {
        self.wanted = Wanted::Suffix(len_bytes);
        self
    }

    /// Asks for this disposition.
    pub fn disposition(mut self, disposition: Disposition) -> Self {
        self.disposition = Some(disposition);
        self
    }

    /// Downloads the file only if it still has this ETag, else
    /// [`ErrorKind::PreconditionFailed`](crate::ErrorKind::PreconditionFailed).
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.if_match = Some(etag.into());
        self
    }

    /// Connects, and returns the download if the file has changed since it had this ETag, the one of
    /// [`Client::info`]: `"<sha256>"` with the quotes, wherever the bytes are. `None` if it is the same.
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
        let mut attempts = Attempts::new(self.client.settings().retry, Repeat::Always);
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

    /// Calls back as bytes are delivered.
    pub fn on_progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(callback));
        self
    }

    /// Writes the bytes to `writer` as they come, and flushes it. On an error, what was written so
    /// far stays written: after [`ErrorKind::Digest`](crate::ErrorKind::Digest) it must not be used.
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

    /// Yields the bytes as a stream, which starts when it is polled first.
    ///
    /// A broken connection is resumed within the stream. The digest of a whole file is checked at
    /// the end: a stream that ends without an error has yielded the whole file. After an error the
    /// stream ends; after [`ErrorKind::Digest`](crate::ErrorKind::Digest) nothing that it yielded
    /// may be used.
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

    /// Reads the bytes through [`AsyncRead`], with everything that [`stream`](Self::stream) says.
    ///
    /// Failures are [`std::io::Error`]s whose source is an [`Error`](crate::Error). A reader that
    /// comes to its end has read the whole file, so read until then.
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

    /// Writes the bytes to a file. They go to a temporary file beside it, which is checked,
    /// flushed to the disk and renamed at the end, over whatever is there. On an error, or if the
    /// future is dropped, `path` is as it was.
    pub async fn to_path(self, path: impl AsRef<Path>) -> Result<Downloaded> {
        let mut partial = PartialFile::create(path.as_ref()).await?;
        let done = self.to_writer(partial.writer()).await?;
        partial.publish().await?;
        Ok(done)
    }

    /// Collects the bytes in memory.
    pub async fn bytes(self) -> Result<Bytes> {
        let mut bytes = Vec::new();
        self.to_writer(&mut bytes).await?;
        Ok(bytes.into())
    }
}

impl Client {
    /// Prepares the download of a file.
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
