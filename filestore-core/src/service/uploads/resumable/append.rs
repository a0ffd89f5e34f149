//! Bytes for a resumable upload: who gets it, and what comes before and after the transfer.

use bytes::Bytes;
use futures_util::Stream;

use super::ResumableUploads;
use super::permit::ResumablePermit;
use super::request::{Append, Ends};
use super::terms;
use super::transfer::Transfer;
use super::turns::{Arrival, Turn, Wish};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::resumable::{ResumableUpload, UploadAddress, UploadStage};
use crate::domain::id::UploadId;
use crate::metadata::UploadRow;
use crate::service::FileStore;
use crate::tasks;

/// The most bytes of a request with a checksum: they count at its end only.
const CHECKED_BYTES: u64 = 256 << 20;

impl ResumableUploads<'_> {
    /// Appends `body` to an upload, and ends a running transfer of this upload. After the last byte, stores the file.
    ///
    /// If you drop the future, the received bytes are kept. If the body fails, the received bytes are kept too, and
    /// the next request starts after them.
    ///
    /// Errors, in addition to those of [`status`](Self::status):
    /// - `UploadOffsetMismatch` if the body does not start at the upload's offset. The details contain the offset.
    /// - `UploadLengthExceeded` if there are more bytes than the length
    /// - `UploadLengthInconsistent` if the request sets another length than before
    /// - `ChecksumMismatch` if the checksum is wrong
    /// - `UploadSuperseded` if a newer request ended this one
    /// - `UploadElsewhere` if another server has the bytes, and no backend has them
    /// - `Busy` if this server still reads the bytes that another server has received
    /// - the errors of an upload. If such an error is temporary, the upload stays open one byte before its end: send
    ///   the last byte again.
    pub async fn append<E>(
        self,
        address: &UploadAddress,
        append: Append,
        body: impl Stream<Item = Result<Bytes, E>> + Send + Unpin + 'static,
    ) -> Result<ResumableUpload>
    where
        E: Into<Error> + Send + 'static,
    {
        let arrived = self.arrival();
        let row = self.checked(address, &append.scope).await?;
        let id = row.upload_id;
        // No offset goes back, so this one stays wrong. A transfer goes on.
        if row.stage.is_live() && append.offset < row.offset {
            expect_offset(row.offset, append.offset)?;
        }
        let store = self.store.clone();
        // A caller that goes away must not take what has arrived with it.
        let appending = tasks::spawn_in_span(async move {
            let uploads = store.resumable();
            let scope = append.scope.clone();
            match uploads.append_here((id, arrived), append, body, &store).await {
                Err(error) if is_without_offset(&error) => {
                    let row = uploads.row(id, &scope).await?;
                    Err(error.with_offset(row.offset))
                }
                outcome => outcome,
            }
        });
        appending.await.map_err(|error| Error::internal("receiving an upload", error))?
    }

    async fn append_here<E: Into<Error>>(
        self,
        (id, arrived): (UploadId, Arrival),
        mut append: Append,
        body: impl Stream<Item = Result<Bytes, E>> + Send + Unpin,
        store: &FileStore,
    ) -> Result<ResumableUpload> {
        let (turn, row) = self.take(id, arrived, &append).await?;
        let terms = terms::shown(&row.terms);
        if terms.is_final() && !append.is_of_parts {
            let message = "a final upload takes its bytes from its parts";
            return Err(Error::new(ErrorKind::UploadFinal, message));
        }
        if terms.is_partial {
            append.ends = Ends::Later;
        }
        if row.stage == UploadStage::Finished {
            return self.repeat(row, &append).await;
        }
        let upload = self.view_live(row.clone()).await?;
        expect_offset(row.offset, append.offset)?;
        let permit = terms.permit()?;
        if let Some(permit) = &permit {
            self.recheck_permit(permit, &row.organization).await?;
        }
        let row = match self.bring_here(row, &turn).await {
            Err(_) if turn.is_superseded() => return Err(turn.defeat().await),
            outcome => outcome?,
        };
        let row = self.with_length(row, &append, permit.as_ref()).await?;

        let transfer = Transfer::begin(store, turn, row, &append, permit.as_ref()).await?;
        if let Some(completing) = transfer.receive(append, body).await? {
            return completing.finish().await;
        }
        let row = store.inner.metadata.upload(id).await?.ok_or_else(super::unknown)?;
        Ok(ResumableUpload::of(row, upload.address))
    }

    /// Takes the upload for a request, once no commit of it runs.
    async fn take(
        self,
        id: UploadId,
        arrived: Arrival,
        append: &Append,
    ) -> Result<(Turn, UploadRow)> {
        loop {
            let wish = Wish::From(append.offset);
            let turn = self.store.inner.uploads.resumable.enter_as(id, arrived, wish).await?;
            let row = self.row(id, &append.scope).await?;
            if row.stage != UploadStage::Completing {
                return Ok((turn, row));
            }
            drop(turn);
            self.until_finished(id).await?;
        }
    }

    /// Answers an empty request at the end of a finished upload as the last one was answered.
    async fn repeat(self, row: UploadRow, append: &Append) -> Result<ResumableUpload> {
        let upload = self.view_live(row).await?;
        expect_offset(upload.offset, append.offset)?;
        if append.content_length.is_some_and(|length| length > 0) {
            let message = "the upload is finished and takes no more bytes";
            return Err(
                Error::new(ErrorKind::UploadOffsetMismatch, message).with_offset(upload.offset)
            );
        }
        Ok(upload)
    }

    /// Notes the length that the request names, if it is the first to do so.
    async fn with_length(
        self,
        mut row: UploadRow,
        append: &Append,
        permit: Option<&ResumablePermit>,
    ) -> Result<UploadRow> {
        let max = self.store.inner.config().uploads.max_size;
        if let Some(length) = append.length {
            if row.length.is_some_and(|known| known != length) || length < row.offset {
                let message = "the upload has another length";
                let error = Error::new(ErrorKind::UploadLengthInconsistent, message);
                return Err(error.with_field("Upload-Length"));
            }
            if let Some(permit) = permit {
                permit.check_length(length)?;
            }
            terms::shown(&row.terms).policy().check_size(length)?;
            self.expect_room(length, max).await?;
            row.length = Some(length);
        }

        if let Some(sent) = append.content_length {
            let end = append.offset.saturating_add(sent);
            if let Some(length) = row.length.filter(|length| end > *length) {
                return Err(exceeded(length));
            }
            if append.check.is_some() && sent > CHECKED_BYTES {
                let message = format!("a request with a checksum is at most {CHECKED_BYTES} bytes");
                return Err(Error::new(ErrorKind::TooLarge, message).with_limit(CHECKED_BYTES));
            }
            if append.ends == Ends::WithThisRequest && row.length.is_some_and(|known| end != known)
            {
                let message = "the last request does not end at the length of the upload";
                return Err(Error::new(ErrorKind::UploadLengthInconsistent, message));
            }
        }
        Ok(row)
    }
}

fn is_without_offset(error: &Error) -> bool {
    error.kind() == ErrorKind::UploadOffsetMismatch && error.details().offset.is_none()
}

pub(super) fn expect_offset(known: u64, given: u64) -> Result<()> {
    if known == given {
        return Ok(());
    }
    let message = format!("the upload continues at another offset: {known}");
    Err(Error::new(ErrorKind::UploadOffsetMismatch, message)
        .with_field("Upload-Offset")
        .with_offset(known))
}

pub(super) fn exceeded(length: u64) -> Error {
    let message = format!("the upload has more bytes than its length: {length}");
    Error::new(ErrorKind::UploadLengthExceeded, message).with_limit(length)
}

/// The most bytes that a request may bring.
pub(super) fn most_bytes(append: &Append, max: u64, offset: u64) -> u64 {
    let checked = offset.saturating_add(CHECKED_BYTES);
    if append.check.is_some() { max.min(checked) } else { max }
}
