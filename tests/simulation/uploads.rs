//! Resumable uploads of a client: created, continued, asked for and cancelled, across all lives of the
//! process.
//!
//! The oracle: an offset that was told never decreases, only the commit tells the last byte, each upload
//! becomes one file with the right bytes, and none is over unless it was cancelled, has expired, was erased, or
//! its file is gone.

use bytes::Bytes;
use filestore_core::internals::tasks::simulation;
use filestore_core::uploads::{
    Append, Ends, IdempotencyKey, NewResumable, ResumableUpload, UploadAddress,
};
use filestore_core::{Error, ErrorKind, FileId, Result, Scope, Timestamp};
use futures_util::future::join;
use futures_util::{Stream, StreamExt, stream};

use super::client::{Client, named_upload, pause, pause_for, some_organization};
use super::content::Content;
use super::model::{Fate, File, Model, Moment, Origin};

/// The name of the files that resumable uploads become.
pub(crate) const NAME: &str = "resumable";

/// The number of uploads from which a client chooses.
const LATEST: usize = 5;

/// A resumable upload whose address a client knows.
#[derive(Clone)]
pub(crate) struct Resumable {
    pub(crate) address: UploadAddress,
    pub(crate) content: Content,
    origin: Origin,
    /// The greatest offset that was told.
    told: u64,
    /// The latest time that was told for its end.
    expires_at: Timestamp,
    /// True if the creation announced the length.
    is_announced: bool,
    /// True once a request was sent that may have brought the last byte.
    pub(crate) may_be_finished: bool,
    pub(crate) file: Option<FileId>,
    cancelled: Cancelled,
    /// True once the store said that the upload is over before it became a file.
    is_over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancelled {
    No,
    /// A request was sent.
    Perhaps,
    Yes,
}

impl Resumable {
    /// Tells if the upload may be unknown or over at `now`.
    fn may_be_over(&self, model: &Model, now: Timestamp) -> bool {
        let is_file_gone = self.file.is_some_and(|id| model.may_be_gone(&model.files[&id], now));
        let fate = model.fate(self.origin, Moment::MAX);
        self.cancelled != Cancelled::No
            || self.expires_at <= now
            || fate != Fate::Untouched
            || is_file_gone
    }

    fn describe(&self) -> String {
        let Self { address, told, file, cancelled, .. } = self;
        format!("the upload {address:?} (told {told}, file {file:?}, cancelled: {cancelled:?})")
    }
}

impl Client<'_> {
    /// Makes a request of a resumable upload.
    pub(super) async fn resume(&self) -> Result<()> {
        let Some(at) = self.some_upload() else { return self.create().await };
        match simulation::below(10) {
            0..2 => self.create().await,
            2..7 => self.append(at).await,
            7..9 => self.ask_for(at).await,
            _ => self.cancel(at).await,
        }
    }

    /// Asks for the uploads that go on, after a restart.
    pub(super) async fn ask_for_all(&self) {
        let count = self.own.uploads.borrow().len();
        for at in 0..count {
            let is_over = self.own.uploads.borrow()[at].is_over;
            if !is_over {
                // A refusal that must not come has failed the simulation already.
                self.ask_for(at).await.ok();
            }
        }
    }

    async fn create(&self) -> Result<()> {
        let organization = some_organization();
        let (content, origin) = self.model.borrow_mut().begin_upload(organization);
        let length = content.bytes().len() as u64;
        let is_announced = simulation::below(4) > 0;
        let has_key = simulation::below(2) == 0;
        let describe = || -> Result<NewResumable> {
            let mut new = NewResumable::new(named_upload(organization, NAME, content));
            if is_announced {
                new = new.with_length(length);
            }
            if has_key {
                let key = IdempotencyKey::new("", format!("create-{}", content.0))?;
                new = new.with_idempotency(key);
            }
            Ok(new)
        };

        let created = self.store.resumable().create(describe()?).await?;
        assert!(!created.is_replay && created.upload.offset == 0, "{created:?}");
        self.note("began the upload", created.upload.address.upload_id);
        self.own.uploads.borrow_mut().push(Resumable {
            address: created.upload.address,
            content,
            origin,
            told: 0,
            expires_at: created.upload.expires_at,
            is_announced,
            may_be_finished: false,
            file: None,
            cancelled: Cancelled::No,
            is_over: false,
        });

        if has_key && simulation::below(3) == 0 {
            let again = self.store.resumable().create(describe()?).await?;
            let uploads = self.own.uploads.borrow();
            let upload = uploads.last().expect("it was just added");
            let is_same = again.is_replay && again.upload.address == upload.address;
            let is_over = upload.may_be_over(&self.model.borrow(), self.clock.now());
            assert!(is_same || is_over, "{} was created twice", upload.describe());
        }
        Ok(())
    }

    /// Sends some of the missing bytes, or all, in pieces with pauses; at times cut in the middle, from a wrong
    /// offset, or next to a request that asks for the offset.
    async fn append(&self, at: usize) -> Result<()> {
        let (address, bytes, told, is_announced) = {
            let uploads = self.own.uploads.borrow();
            let upload = &uploads[at];
            let bytes = upload.content.bytes();
            (upload.address.clone(), bytes, upload.told, upload.is_announced)
        };
        let start = usize::try_from(told).unwrap();
        let rest = bytes.len() - start;
        let taken = match simulation::below(2) {
            0 => rest,
            _ => usize::try_from(simulation::below(rest as u64 + 1)).unwrap(),
        };
        let is_last = taken == rest;
        if is_last {
            self.own.uploads.borrow_mut()[at].may_be_finished = true;
        }

        let is_displaced = simulation::below(12) == 0;
        let mut append = Append::at(told + u64::from(is_displaced) * (1 + simulation::below(9)));
        if is_last && !is_announced {
            append = match simulation::below(2) {
                0 => append.with_length(bytes.len() as u64),
                _ => append.ending(Ends::WithThisRequest),
            };
        }
        let began = self.model.borrow_mut().next_moment();
        let body = body(&bytes.slice(start..start + taken));
        let appending = async {
            let appended = self.store.resumable().append(&address, append, body).await;
            self.hear(at, told, began, appended)
        };
        if simulation::below(4) > 0 {
            return appending.await;
        }

        let asking = async {
            pause(0, 4).await;
            let asked = self.store.resumable().status(&address, &Scope::All).await;
            self.hear(at, told, began, asked)
        };
        let (appended, asked) = join(appending, asking).await;
        appended.and(asked)
    }

    async fn ask_for(&self, at: usize) -> Result<()> {
        let (address, told) = {
            let uploads = self.own.uploads.borrow();
            (uploads[at].address.clone(), uploads[at].told)
        };
        let began = self.model.borrow_mut().next_moment();
        let status = self.store.resumable().status(&address, &Scope::All).await;
        self.hear(at, told, began, status)
    }

    async fn cancel(&self, at: usize) -> Result<()> {
        let address = {
            let mut uploads = self.own.uploads.borrow_mut();
            let upload = &mut uploads[at];
            if upload.cancelled == Cancelled::No {
                upload.cancelled = Cancelled::Perhaps;
            }
            upload.address.clone()
        };
        match self.store.resumable().cancel(&address, &Scope::All).await {
            Ok(()) => {
                self.note("cancelled", address.upload_id);
                self.own.uploads.borrow_mut()[at].cancelled = Cancelled::Yes;
                Ok(())
            }
            // Cancelled, expired or erased before.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Compares an answer with what was told before the call, which began at `began`.
    fn hear(
        &self,
        at: usize,
        told: u64,
        began: Moment,
        answer: Result<ResumableUpload>,
    ) -> Result<()> {
        match answer {
            Ok(shown) => {
                self.hear_offset(at, told, shown.offset);
                self.hear_state(at, began, &shown);
                Ok(())
            }
            Err(error) => {
                if let (ErrorKind::UploadOffsetMismatch, Some(offset)) =
                    (error.kind(), error.details().offset)
                {
                    self.hear_offset(at, told, offset);
                }
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UploadGone) {
                    let mut uploads = self.own.uploads.borrow_mut();
                    let upload = &mut uploads[at];
                    let may_be = upload.may_be_over(&self.model.borrow(), self.clock.now());
                    assert!(may_be, "{} is lost: {}", upload.describe(), error.chain());
                    // The end of a file is not the end of its upload: a file can be restored.
                    upload.is_over |= upload.file.is_none();
                }
                Err(error)
            }
        }
    }

    fn hear_offset(&self, at: usize, told: u64, offset: u64) {
        let mut uploads = self.own.uploads.borrow_mut();
        let upload = &mut uploads[at];
        assert!(offset >= told, "{} went back to {offset}", upload.describe());
        assert!(offset <= upload.content.bytes().len() as u64, "{offset}: {}", upload.describe());
        upload.told = upload.told.max(offset);
    }

    fn hear_state(&self, at: usize, began: Moment, shown: &ResumableUpload) {
        let (content, origin) = {
            let mut uploads = self.own.uploads.borrow_mut();
            let upload = &mut uploads[at];
            let fate = self.model.borrow().fate(upload.origin, began);
            let is_back = upload.cancelled == Cancelled::Yes || fate == Fate::Erased;
            assert!(!is_back && !upload.is_over, "{} is back: {shown:?}", upload.describe());
            let tells_last =
                shown.length.is_some_and(|length| length > 0 && shown.offset == length);
            let is_finished = shown.is_finished();
            assert!(!tells_last || is_finished, "the last byte is told too early: {shown:?}");
            assert_eq!(is_finished, shown.file_id.is_some(), "{shown:?}");

            upload.expires_at = upload.expires_at.max(shown.expires_at);
            let (Some(file), before) = (shown.file_id, upload.file) else { return };
            upload.file = Some(file);
            if let Some(before) = before {
                assert_eq!(before, file, "{} was finished twice", upload.describe());
                return;
            }
            (upload.content, upload.origin)
        };
        let file = shown.file_id.expect("checked above");
        self.note("finished the upload of", file);
        self.model.borrow_mut().resumed += 1;
        self.insert(file, File::new(content, origin, None));
    }

    fn some_upload(&self) -> Option<usize> {
        let count = self.own.uploads.borrow().len();
        let back = 1 + usize::try_from(simulation::below(LATEST as u64)).unwrap();
        count.checked_sub(back.min(count.max(1)))
    }
}

/// Cuts bytes into pieces with pauses between. One body of six fails after a piece.
fn body(bytes: &Bytes) -> impl Stream<Item = Result<Bytes>> + Send + Unpin + 'static {
    let length = bytes.len() / (1 + usize::try_from(simulation::below(4)).unwrap()) + 1;
    let mut pieces: Vec<_> = bytes.chunks(length).map(|piece| Ok(bytes.slice_ref(piece))).collect();
    if simulation::below(6) == 0 {
        let at = usize::try_from(simulation::below(pieces.len() as u64 + 1)).unwrap();
        pieces.truncate(at);
        pieces.push(Err(Error::new(ErrorKind::MalformedBody, "the connection ended")));
    }

    let most_millis = if simulation::below(4) == 0 { 20_000 } else { 50 };
    let pieces = stream::iter(pieces).then(move |piece| async move {
        pause_for(simulation::below(most_millis)).await;
        piece
    });
    pieces.boxed()
}
