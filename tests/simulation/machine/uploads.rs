//! Resumable uploads of the machine. One request comes after the other, so the model knows each offset.

use bytes::Bytes;
use filestore_core::uploads::{Append, NewResumable, UploadAddress};
use filestore_core::{Error, ErrorKind, FileId, Scope};
use futures_util::stream;

use super::{Content, Machine, ORGANIZATIONS, State};

/// A resumable upload, and what the model knows of it.
pub(super) struct Resumed {
    address: UploadAddress,
    content: Content,
    organization: String,
    offset: usize,
    /// The file, once all bytes are there.
    file: Option<FileId>,
    /// True once it was cancelled or erased.
    is_over: bool,
}

impl Machine {
    pub(super) async fn begin_upload(&mut self) {
        let (content, new) = (self.fresh(), self.new_upload());
        let organization = new.organization_id.as_str().to_owned();
        let new = NewResumable::new(new).with_length(content.bytes().len() as u64);
        let created = self.store().resumable().create(new).await;
        let Some(created) = self.unless_full(created) else { return };
        let address = created.upload.address;
        let upload =
            Resumed { address, content, organization, offset: 0, file: None, is_over: false };
        self.uploads.push(upload);
    }

    /// Sends some of the missing bytes. With the last one, the upload becomes a file.
    pub(super) async fn go_on(&mut self, at: u8, part: u8) {
        let Some(at) = self.index(at) else { return };
        let Resumed { ref address, content, offset, file, is_over, .. } = self.uploads[at];
        let bytes = content.bytes();
        let end = offset + (bytes.len() - offset) * usize::from(part) / 255;
        let body = stream::iter([Ok::<Bytes, Error>(bytes.slice(offset..end))]);
        let append = Append::at(offset as u64);
        let appended = self.store().resumable().append(address, append, body).await;
        if is_over || file.is_some() {
            return self.expect_end(at, appended.map(|shown| shown.offset));
        }

        let Some(shown) = self.unless_full(appended) else { return };
        assert_eq!(shown.offset, end as u64, "of {}", bytes.len());
        assert_eq!(shown.is_finished(), end == bytes.len(), "{shown:?}");
        self.uploads[at].offset = end;
        if let Some(file) = shown.file_id {
            self.uploads[at].file = Some(file);
            self.insert(file, State::Live(content, None)).await;
        }
    }

    pub(super) async fn ask(&mut self, at: u8) {
        let Some(at) = self.index(at) else { return };
        let Resumed { ref address, offset, file, is_over, .. } = self.uploads[at];
        let shown = self.store().resumable().status(address, &Scope::All).await;
        if is_over || file.is_some() {
            return self.expect_end(at, shown.map(|shown| shown.offset));
        }
        assert_eq!(shown.unwrap().offset, offset as u64);
    }

    /// Cancels an upload. A file that it has become stays.
    pub(super) async fn cancel(&mut self, at: u8) {
        let Some(at) = self.index(at) else { return };
        let Resumed { ref address, is_over, .. } = self.uploads[at];
        let cancelled = self.store().resumable().cancel(address, &Scope::All).await;
        match cancelled {
            Ok(()) => assert!(!is_over, "it was over"),
            Err(error) => assert!(is_over && error.kind() == ErrorKind::NotFound, "{error}"),
        }
        self.uploads[at].is_over = true;
    }

    /// Ends the uploads of the erased organization.
    pub(super) fn end_uploads(&mut self) {
        let erased = |upload: &&mut Resumed| upload.organization == ORGANIZATIONS[0];
        for upload in self.uploads.iter_mut().filter(erased) {
            upload.is_over = true;
        }
    }

    /// Expects the answer of an upload that is over or a file: nothing, or all bytes if the file is there.
    fn expect_end(&self, at: usize, offset: Result<u64, Error>) {
        let Resumed { ref content, file, is_over, .. } = self.uploads[at];
        let is_there = file.is_some_and(|id| matches!(self.files[&id], State::Live(..)));
        match offset {
            Ok(offset) => {
                assert!(is_there && !is_over, "an upload is back");
                assert_eq!(offset, content.bytes().len() as u64);
            }
            Err(error) => {
                let is_gone = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UploadGone);
                assert!(is_gone && (is_over || !is_there), "{}", error.chain());
            }
        }
    }

    fn index(&self, at: u8) -> Option<usize> {
        usize::from(at).checked_rem(self.uploads.len())
    }
}
