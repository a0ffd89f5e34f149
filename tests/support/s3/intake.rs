//! The body of a PUT on its way to the disk.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::Stream;
use s3s::StdError;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{Checksum, StreamingBlob};
use s3s::stream::ByteStream;

/// The promises of the client about the bytes it sends.
#[derive(Debug, Default)]
pub(super) struct Promised {
    /// The checksums of the `x-amz-checksum-*` headers.
    pub(super) checksum: Checksum,
    /// The `Content-MD5` header, in base64.
    pub(super) md5: Option<String>,
}

/// A body that fails at its end instead of ending if it is not what was promised.
///
/// `s3s-fs` renames a file into place once its body has ended, and then compares: a corrupt object
/// would stay. A body that never ends well is never renamed.
pub(super) struct Intake {
    body: StreamingBlob,
    promised: Promised,
    hasher: ChecksumHasher,
    md5: Option<Md5>,
    /// The number of bytes still to pass on; the others are read and dropped.
    keep: u64,
    verdict: Verdict,
}

/// The verdict on a body, known once the body was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Verdict(Arc<AtomicBool>);

impl Verdict {
    pub(super) fn is_broken_promise(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Intake {
    /// Checks `body` against `promised`.
    pub(super) fn checked(body: StreamingBlob, promised: Promised) -> (StreamingBlob, Verdict) {
        let verdict = Verdict::default();
        let hasher = ChecksumHasher {
            crc32: promised.checksum.checksum_crc32.as_ref().map(|_| <_>::default()),
            crc32c: promised.checksum.checksum_crc32c.as_ref().map(|_| <_>::default()),
            sha1: promised.checksum.checksum_sha1.as_ref().map(|_| <_>::default()),
            sha256: promised.checksum.checksum_sha256.as_ref().map(|_| <_>::default()),
            crc64nvme: promised.checksum.checksum_crc64nvme.as_ref().map(|_| <_>::default()),
        };

        let md5 = promised.md5.as_ref().map(|_| Md5::new());
        let intake = Self { body, promised, hasher, md5, keep: u64::MAX, verdict: verdict.clone() };
        (StreamingBlob::new(intake), verdict)
    }

    /// Passes the first `keep` bytes on and checks nothing.
    pub(super) fn shortened(body: StreamingBlob, keep: u64) -> (StreamingBlob, Verdict) {
        let verdict = Verdict::default();
        let intake = Self {
            body,
            promised: Promised::default(),
            hasher: ChecksumHasher::default(),
            md5: None,
            keep,
            verdict: verdict.clone(),
        };
        (StreamingBlob::new(intake), verdict)
    }

    fn take_in(&mut self, mut bytes: Bytes) -> Bytes {
        self.hasher.update(&bytes);
        if let Some(md5) = &mut self.md5 {
            md5.update(&bytes);
        }
        bytes.truncate(usize::try_from(self.keep).unwrap_or(usize::MAX));
        self.keep -= bytes.len() as u64;
        bytes
    }

    fn is_as_promised(&mut self) -> bool {
        let found = std::mem::take(&mut self.hasher).finalize();
        let md5 = self.md5.take().map(|md5| STANDARD.encode(md5.finalize()));
        found == self.promised.checksum && md5 == self.promised.md5
    }
}

impl Stream for Intake {
    type Item = Result<Bytes, StdError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match ready!(Pin::new(&mut self.body).poll_next(cx)) {
            Some(Ok(bytes)) => Poll::Ready(Some(Ok(self.take_in(bytes)))),
            Some(Err(err)) => Poll::Ready(Some(Err(err))),
            None if self.is_as_promised() => Poll::Ready(None),
            None => {
                self.verdict.0.store(true, Ordering::SeqCst);
                Poll::Ready(Some(Err("the body is not what its checksum says".into())))
            }
        }
    }
}

impl ByteStream for Intake {}
