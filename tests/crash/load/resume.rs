//! The resumable uploads of the load. Each offset that was told goes to the log.

use reqwest::{Method, RequestBuilder, Response};

use super::{Done, Gone, ORGANIZATIONS, Worker};
use crate::content::{self, Tag};
use crate::oracle::Entry;
use crate::tus;

/// An upload whose last bytes were not sent yet.
pub(super) struct Unfinished {
    upload: String,
    tag: Tag,
    offset: u64,
}

impl Worker<'_> {
    /// Begins a resumable upload, goes on with one, or cancels one.
    pub(super) async fn resume(&mut self) -> Done {
        let Some(unfinished) = self.unfinished.pop() else { return self.begin().await };
        match self.random.u8(0..8) {
            0 => self.cancel(&unfinished).await,
            1..3 => {
                self.unfinished.push(unfinished);
                self.begin().await
            }
            _ => self.go_on(unfinished).await,
        }
    }

    async fn begin(&mut self) -> Done {
        let tag = self.oracle.tags(1);
        let length = content::of(tag).len();
        let organization = *self.random.choice(ORGANIZATIONS).as_ref().expect("there are some");
        let request = tus::create(&self.http, self.server(), organization, length);
        let reply = self.send_raw(request).await?;
        let upload = tus::upload_of(&reply);
        self.oracle.log(&Entry::Told(upload.clone(), 0));
        self.unfinished.insert(0, Unfinished { upload, tag, offset: 0 });
        Ok(())
    }

    async fn go_on(&mut self, unfinished: Unfinished) -> Done {
        let Unfinished { upload, tag, offset } = unfinished;
        let bytes = content::of(tag);
        let start = usize::try_from(offset).expect("a small number");
        let end =
            if self.random.bool() { bytes.len() } else { self.random.usize(start..bytes.len()) };
        let request = tus::append(&self.http, self.server(), &upload, offset, &bytes[start..end]);
        let reply = self.send_raw(request).await?;

        let offset = tus::offset_of(&reply).expect("an append tells the offset");
        assert_eq!(offset, end as u64, "of {upload}");
        self.oracle.log(&Entry::Told(upload.clone(), offset));
        if end < bytes.len() {
            self.unfinished.push(Unfinished { upload, tag, offset });
            return Ok(());
        }
        let id = tus::file_of(&reply).expect("a whole upload is a file");
        self.oracle.log(&Entry::Finished(upload));
        self.oracle.log(&Entry::Uploaded(tag, id.clone()));
        if content::is_picture(tag) {
            self.pictures.push(id.clone());
        }
        self.own.push(id);
        Ok(())
    }

    async fn cancel(&mut self, unfinished: &Unfinished) -> Done {
        let upload = &unfinished.upload;
        self.oracle.log(&Entry::CancelBegun(upload.clone()));
        let request = tus::about(&self.http, self.server(), upload, Method::DELETE);
        self.send_raw(request).await?;
        self.oracle.log(&Entry::Cancelled(upload.clone()));
        Ok(())
    }

    /// The server's address, without a path.
    fn server(&self) -> &str {
        self.url.strip_suffix("/api/v1").expect("the load uses the API")
    }

    /// Sends a request that must succeed, and returns the reply without its body.
    async fn send_raw(&self, request: RequestBuilder) -> Result<Response, Gone> {
        let reply = request.send().await.map_err(|error| self.lost(&error))?;
        let status = reply.status();
        if status.is_success() {
            return Ok(reply);
        }
        let body = reply.bytes().await.map_err(|error| self.lost(&error))?;
        self.check(false, status, &body)?;
        Err(Gone)
    }
}
