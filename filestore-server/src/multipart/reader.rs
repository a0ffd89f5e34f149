//! Drives the parser from a body stream.

use bytes::{Buf, Bytes};
use filestore_core::{Error, ErrorKind};
use futures_util::Stream;

use super::charset::Charset;
use super::{Boundary, CHARSET_FIELD, Event, Limits, Parser, PartHeader, charset};
use crate::error::Result;
use crate::listen::body::{BodyReader, BoxError, Timeouts};

/// The parts of a multipart/form-data body, one after another.
///
/// Returns [`ErrorKind::MalformedBody`] for a body that is not such a form, is cut short or fails to arrive.
/// Returns [`ErrorKind::TooLarge`] over a limit, and [`RefusalKind::BodyTimeout`] if a client stops sending.
/// After an error, all calls return errors.
///
/// [`RefusalKind::BodyTimeout`]: crate::RefusalKind::BodyTimeout
pub struct MultipartReader<S> {
    body: BodyReader<S>,
    parser: Parser,
    progress: Progress,
    /// The encoding that the form names for text fields without one of their own.
    charset: Option<Charset>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// No part is open.
    Between,
    /// In an incomplete part.
    InPart,
    /// Read to the end of the body.
    Done,
}

impl<S, B, E> MultipartReader<S>
where
    S: Stream<Item = Result<B, E>>,
    B: Buf,
    E: Into<BoxError>,
{
    /// Creates a reader of `body`.
    pub fn new(body: S, boundary: &Boundary, limits: Limits, timeouts: Timeouts) -> Self {
        let parser = Parser::new(boundary, limits);
        let body = BodyReader::new(body, timeouts);
        Self { body, parser, progress: Progress::Between, charset: None }
    }

    /// Returns the next part, and skips the unread rest of the previous part. `None` when the closing
    /// boundary was read and the body has ended. Only then is the form complete.
    pub async fn next_part(&mut self) -> Result<Option<Part<'_, S>>> {
        loop {
            match self.next_event().await? {
                Some(Event::PartStart(header)) => {
                    self.progress = Progress::InPart;
                    return Ok(Some(Part { header, reader: self }));
                }
                Some(Event::Data(_)) => {}
                Some(Event::PartEnd | Event::End) => self.progress = Progress::Between,
                None => return Ok(None),
            }
        }
    }

    /// Returns the next event, or `None` at the end of a complete body.
    async fn next_event(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.parser.next_event()? {
                return Ok(Some(event));
            }
            if self.progress == Progress::Done {
                return Ok(None);
            }

            match self.body.chunk().await {
                Ok(Some(chunk)) => self.parser.feed(chunk),
                Ok(None) => {
                    self.parser.finish()?;
                    self.progress = Progress::Done;
                }
                Err(error) => {
                    self.parser.fail();
                    return Err(error);
                }
            }
        }
    }
}

/// One part of a body.
pub struct Part<'a, S> {
    header: PartHeader,
    reader: &'a mut MultipartReader<S>,
}

impl<S, B, E> Part<'_, S>
where
    S: Stream<Item = Result<B, E>>,
    B: Buf,
    E: Into<BoxError>,
{
    /// Returns the part's header block.
    pub fn header(&self) -> &PartHeader {
        &self.header
    }

    /// Returns the form field's name.
    pub fn name(&self) -> &str {
        &self.header.name
    }

    /// Returns the next bytes of the part, never empty. `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        if self.reader.progress != Progress::InPart {
            return Ok(None);
        }
        if let Some(Event::Data(data)) = self.reader.next_event().await? {
            return Ok(Some(data));
        }
        self.reader.progress = Progress::Between;
        Ok(None)
    }

    /// Reads the rest of the part as text. [`ErrorKind::TooLarge`] over `limit_bytes`, and
    /// [`ErrorKind::InvalidField`] if it is not UTF-8. Both errors name the field.
    pub async fn text(&mut self, limit_bytes: usize) -> Result<String> {
        let mut text = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if text.len() + chunk.len() > limit_bytes {
                let message = format!("a text field has more bytes than {limit_bytes}");
                return Err(Error::new(ErrorKind::TooLarge, message)
                    .with_field(self.name())
                    .with_limit(limit_bytes as u64)
                    .into());
            }
            text.extend_from_slice(&chunk);
        }

        let named = self.header.charset().or(self.reader.charset);
        let text = charset::decode(text, named).ok_or_else(|| {
            let message =
                "a text field is neither UTF-8 nor labelled as ISO-8859-1 or Windows-1252";
            Error::invalid(self.name(), message)
        })?;
        if self.name() == CHARSET_FIELD {
            self.reader.charset = Charset::of(text.as_bytes());
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use filestore_core::api::ErrorCode;

    use super::*;
    use futures_util::{StreamExt, stream};
    use std::time::Duration;
    use tokio::time::Instant;

    const FORM: &str = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\none\r\n\
                        --b\r\nContent-Disposition: form-data; name=f; filename=x\r\n\r\ntwo\r\n--b--\r\n";

    type Chunk = Result<Bytes, std::io::Error>;

    fn reader_of<S: Stream<Item = Chunk>>(body: S) -> MultipartReader<S> {
        let boundary = Boundary::new("b").unwrap();
        MultipartReader::new(body, &boundary, Limits::default(), Timeouts::default())
    }

    fn reader(body: &str) -> MultipartReader<impl Stream<Item = Chunk> + use<>> {
        reader_of(stream::iter([Ok(Bytes::copy_from_slice(body.as_bytes()))]))
    }

    #[tokio::test]
    async fn parts_are_read_in_order_and_unread_ones_are_skipped() {
        let mut form = reader(FORM);
        let mut part = form.next_part().await.unwrap().unwrap();
        assert_eq!(part.name(), "a");
        assert_eq!(part.text(8192).await.unwrap(), "one");
        assert_eq!(part.chunk().await.unwrap(), None);

        let part = form.next_part().await.unwrap().unwrap();
        assert_eq!(part.header().file_name.as_deref(), Some("x"));
        assert!(form.next_part().await.unwrap().is_none());
        assert!(form.next_part().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_text_over_its_limit_or_not_utf8_names_its_field() {
        let error = reader(FORM).next_part().await.unwrap().unwrap().text(2).await.unwrap_err();
        assert_eq!((error.code(), error.details().limit), (ErrorCode::TooLarge, Some(2)));
        assert_eq!(error.details().field.as_deref(), Some("a"));

        let body = [FORM.split("one").next().unwrap().as_bytes(), b"\xFF\r\n--b--"].concat();
        let mut form = reader_of(stream::iter([Ok(Bytes::from(body))]));
        let error = form.next_part().await.unwrap().unwrap().text(2).await.unwrap_err();
        assert_eq!(
            (error.code(), error.details().field.as_deref()),
            (ErrorCode::InvalidField, Some("a"))
        );
    }

    async fn text_of(head: &str, bytes: &[u8]) -> Result<String> {
        let body = [
            b"--b\r\nContent-Disposition: form-data; name=a",
            head.as_bytes(),
            b"\r\n\r\n",
            bytes,
            b"\r\n--b--",
        ];
        let mut form = reader_of(stream::iter([Ok(Bytes::from(body.concat()))]));
        form.next_part().await.unwrap().unwrap().text(100).await
    }

    #[tokio::test]
    async fn a_text_field_is_in_the_encoding_that_it_names() {
        let latin = "\r\nContent-Type: text/plain; charset=ISO-8859-1";
        assert_eq!(text_of(latin, b"gr\xF6\xDFe").await.unwrap(), "größe");
        assert_eq!(text_of(latin, "größe".as_bytes()).await.unwrap(), "größe");
        for label in ["", "\r\nContent-Type: text/plain; charset=utf-8", "\r\nContent-Type: x;y"] {
            let error = text_of(label, b"gr\xF6\xDFe").await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidField, "{label}");
            assert_eq!(error.details().field.as_deref(), Some("a"));
        }
    }

    #[tokio::test]
    async fn the_charset_field_names_the_encoding_of_the_fields_behind_it() {
        let body = b"--b\r\nContent-Disposition: form-data; name=_charset_\r\n\r\nwindows-1252\r\n\
            --b\r\nContent-Disposition: form-data; name=a\r\n\r\ngr\xF6\xDFe\r\n--b--";
        let mut form = reader_of(stream::iter([Ok(Bytes::from_static(body))]));
        form.next_part().await.unwrap().unwrap().text(100).await.unwrap();
        assert_eq!(form.next_part().await.unwrap().unwrap().text(100).await.unwrap(), "größe");
    }

    #[tokio::test]
    async fn a_body_cut_short_or_failing_is_malformed_and_stays_so() {
        let cut = &FORM[..FORM.len() - 9];
        let failing = stream::iter([
            Ok(Bytes::copy_from_slice(cut.as_bytes())),
            Err(std::io::Error::other("reset")),
            Ok(Bytes::copy_from_slice(&FORM.as_bytes()[cut.len()..])),
        ]);

        let whole = stream::iter([Ok(Bytes::copy_from_slice(cut.as_bytes()))]);

        for mut form in [reader_of(whole.boxed()), reader_of(failing.boxed())] {
            while let Ok(Some(_)) = form.next_part().await {}
            let error = form.next_part().await.map(|_| ()).unwrap_err();
            assert_eq!(error.code(), ErrorCode::MalformedBody);
        }
    }

    #[tokio::test]
    async fn text_after_the_closing_boundary_is_read_to_the_end_but_bounded() {
        let mut form = reader(&format!("{FORM}epilogue"));
        while form.next_part().await.unwrap().is_some() {}
        let mut form = reader(&format!("{FORM}{}", "x".repeat(9000)));
        while let Ok(Some(_)) = form.next_part().await {}
        let error = form.next_part().await.map(|_| ()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::MalformedBody);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_given_up_after_the_idle_time() {
        let start = stream::iter([Ok(Bytes::from_static(FORM.as_bytes()).slice(..49))]);
        let mut form = reader_of(start.chain(stream::pending()));
        let began = Instant::now();
        let mut part = form.next_part().await.unwrap().unwrap();
        assert_eq!(part.text(8192).await.unwrap_err().code(), ErrorCode::BodyTimeout);
        assert_eq!(began.elapsed().as_secs(), 30);
        assert!(form.next_part().await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_nobody_reads_is_not_idle() {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        let body = stream::unfold(receiver, |mut receiver| async {
            Some((receiver.recv().await?, receiver))
        });
        let mut form = reader_of(body);
        let (head, tail) = FORM.split_at(49);
        let send =
            |text: &'static str| sender.send(Ok(Bytes::from_static(text.as_bytes()))).unwrap();
        let later = async {
            tokio::time::sleep(Duration::from_secs(29)).await;
            send(head);
            tokio::time::sleep(Duration::from_mins(1)).await;
            send(tail);
        };

        let read = async {
            let part = form.next_part().await.unwrap().map(|part| part.name().to_owned());
            tokio::time::sleep(Duration::from_secs(59)).await;
            (part, form.next_part().await.unwrap().is_some())
        };

        let (found, ()) = tokio::join!(read, later);
        assert_eq!(found, (Some("a".to_owned()), true));
    }
}
