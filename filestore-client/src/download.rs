//! Downloading a file: what is wanted, and where it goes.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use filestore_core::api::Disposition;
use tokio::io::AsyncWrite;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::partial::PartialFile;
use crate::progress::{OnProgress, Progress};
use crate::transfer::Transfer;

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
#[must_use = "a download does nothing until it has somewhere to go: to_path, to_writer or bytes"]
pub struct Download {
    pub(crate) client: Client,
    pub(crate) file_id: String,
    pub(crate) wanted: Wanted,
    pub(crate) disposition: Option<Disposition>,
    pub(crate) on_progress: Option<OnProgress>,
}

/// Which bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Whole,
    /// From the first to before the second, or to the end.
    Range(u64, Option<u64>),
    /// The last so many.
    Suffix(u64),
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
    /// Only these bytes, counted from zero: `100..200`, `100..`, `..=99`.
    pub fn range(mut self, range: impl RangeBounds<u64>) -> Self {
        let first = match range.start_bound() {
            Bound::Included(first) => *first,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => Some(last.saturating_add(1)),
            Bound::Excluded(end) => Some(*end),
            Bound::Unbounded => None,
        };
        self.wanted =
            if (first, end) == (0, None) { Wanted::Whole } else { Wanted::Range(first, end) };
        self
    }

    /// Only the last `len_bytes`.
    pub fn suffix(mut self, len_bytes: u64) -> Self {
        self.wanted = Wanted::Suffix(len_bytes);
        self
    }

    /// Asks for this disposition.
    pub fn disposition(mut self, disposition: Disposition) -> Self {
        self.disposition = Some(disposition);
        self
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
        Transfer::new(&self)?.run(writer).await
    }

    /// Writes the bytes to a file. They go to a temporary file beside it, which is checked,
    /// flushed to the disk and renamed at the end, over whatever is there. On an error, or if the
    /// call is abandoned, `path` is as it was.
    pub async fn to_path(self, path: impl AsRef<Path>) -> Result<Downloaded> {
        let mut partial = PartialFile::create(path.as_ref()).await?;
        let done = self.to_writer(partial.writer()).await?;
        partial.publish().await?;
        Ok(done)
    }

    /// The bytes, all of them in memory.
    pub async fn bytes(self) -> Result<Bytes> {
        let mut bytes = Vec::new();
        self.to_writer(&mut bytes).await?;
        Ok(bytes.into())
    }
}

impl Client {
    /// Prepares the download of a file.
    pub fn download(&self, file_id: &str) -> Download {
        Download {
            client: self.clone(),
            file_id: file_id.to_owned(),
            wanted: Wanted::Whole,
            disposition: None,
            on_progress: None,
        }
    }
}

impl Wanted {
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Self::Range(first, Some(end)) if first >= end => {
                Err(Error::invalid(format!("the range holds no byte: {first}..{end}")))
            }
            Self::Suffix(0) => Err(Error::invalid("the range holds no byte: the last 0")),
            _ => Ok(()),
        }
    }

    /// The `Range` header for the first request.
    pub(crate) fn header(self) -> Option<String> {
        match self {
            Self::Whole => None,
            Self::Range(first, None) => Some(format!("bytes={first}-")),
            Self::Range(first, Some(end)) => Some(format!("bytes={first}-{}", end - 1)),
            Self::Suffix(len) => Some(format!("bytes=-{len}")),
        }
    }

    /// First byte, and the end where it is known, in a file of `total` bytes.
    pub(crate) fn window(self, total: Option<u64>) -> Option<(u64, Option<u64>)> {
        match self {
            Self::Whole => Some((0, total)),
            Self::Range(first, end) => Some((
                first,
                end.map_or(total, |end| Some(total.map_or(end, |total| end.min(total)))),
            )),
            Self::Suffix(len) => total.map(|total| (total.saturating_sub(len), Some(total))),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_name_the_last_byte_not_the_end() {
        assert_eq!(Wanted::Range(0, Some(1)).header().as_deref(), Some("bytes=0-0"));
        assert_eq!(Wanted::Range(5, None).header().as_deref(), Some("bytes=5-"));
        assert_eq!(Wanted::Suffix(3).header().as_deref(), Some("bytes=-3"));
    }

    #[test]
    fn windows_end_with_the_file() {
        assert_eq!(Wanted::Range(5, Some(50)).window(Some(10)), Some((5, Some(10))));
        assert_eq!(Wanted::Range(5, Some(50)).window(None), Some((5, Some(50))));
        assert_eq!(Wanted::Suffix(50).window(Some(10)), Some((0, Some(10))));
        assert_eq!(Wanted::Suffix(3).window(None), None);
        assert_eq!(Wanted::Whole.window(None), Some((0, None)));
    }

    #[test]
    fn an_empty_range_is_refused_before_anything_is_sent() {
        assert!(Wanted::Range(5, Some(5)).check().is_err());
        assert!(Wanted::Range(5, Some(6)).check().is_ok());
    }
}
