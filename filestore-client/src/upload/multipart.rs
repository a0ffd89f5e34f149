//! `multipart/form-data` (RFC 7578), streamed.
//!
//! This crate does not use the multipart form of reqwest, which escapes file names with
//! backslashes, allows a line break of a name in a part's header, and reports no progress.
//! This module writes names like WHATWG (`%22 %0D %0A`), counts and hashes the sent bytes, detects
//! a source with the wrong length, and stops if the reply arrives early.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, TryStreamExt as _};
use reqwest::Body;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

use crate::error::Result;
use crate::progress::{OnProgress, Progress};
use crate::transport::random::random_u128;
use crate::upload::item::{Item, Opened, Source};
use crate::upload::sending::{Pace, Sending};

/// Number of file bytes in memory.
const CHUNK_BYTES: usize = 256 << 10;

/// A form to send. All text fields precede all files, so that the server can refuse early.
#[derive(Default)]
pub(crate) struct Form {
    texts: Vec<(String, String)>,
    files: Vec<(String, Item)>,
    on_progress: Option<OnProgress>,
}

impl Form {
    pub(crate) fn text(&mut self, name: &str, value: impl Into<String>) {
        self.texts.push((name.to_owned(), value.into()));
    }

    /// Adds the field `<prefix>file` and the text fields that describe it.
    pub(crate) fn item(&mut self, prefix: &str, item: Item) {
        for (name, value) in item.fields() {
            self.texts.push((format!("{prefix}{name}"), value));
        }
        self.files.push((format!("{prefix}file"), item));
    }

    pub(crate) fn on_progress(&mut self, callback: Option<OnProgress>) {
        self.on_progress = callback;
    }

    pub(crate) fn files(&self) -> usize {
        self.files.len()
    }

    /// Returns true if the form can be sent more than once.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.files.iter().all(|(_, item)| item.is_repeatable())
    }

    /// Prepares the body for one attempt.
    pub(crate) async fn encode(&mut self) -> Result<Encoded> {
        let boundary = format!("filestore-{:032x}", random_u128());
        let mut pieces = VecDeque::new();

        let mut texts = String::new();
        for (name, value) in &self.texts {
            texts.push_str(&part_header(&boundary, name, None, None));
            texts.push_str(value);
            texts.push_str("\r\n");
        }
        pieces.push_back(Piece::Text(texts.into()));

        let mut files_bytes = Some(0);
        for (name, item) in &mut self.files {
            let (source, len) = item.source().await?;
            let header =
                part_header(&boundary, name, item.file_name(), Some("application/octet-stream"));
            pieces.extend([
                Piece::Text(header.into()),
                Piece::File(source, len),
                Piece::Text("\r\n".into()),
            ]);
            files_bytes = files_bytes.zip(len).map(|(sum, len)| sum + len);
        }
        pieces.push_back(Piece::Text(format!("--{boundary}--\r\n").into()));

        let text_bytes: u64 = pieces.iter().map(Piece::text_bytes).sum();
        let sending = Arc::new(Sending::new());
        let encoder = Encoder {
            pieces,
            open: None,
            progress: Progress { done_bytes: 0, total_bytes: files_bytes },
            on_progress: self.on_progress.clone(),
            sending: Arc::clone(&sending),
        };

        Ok(Encoded {
            content_type: format!("multipart/form-data; boundary={boundary}"),
            content_length: files_bytes.map(|files| files + text_bytes),
            body: Body::wrap_stream(stream::try_unfold(encoder, Encoder::step)),
            sending,
        })
    }
}

/// Returns a body with the next `len` bytes of `reader`. `hasher` has seen the bytes before. Afterwards, `Sending`
/// contains the hasher that has seen these bytes too.
pub(super) fn encode_piece(
    reader: Box<dyn AsyncRead + Send + Unpin>,
    len: u64,
    hasher: Sha256,
) -> (Body, Arc<Sending>) {
    let sending = Arc::new(Sending::new());
    let encoder = Encoder {
        pieces: VecDeque::from([Piece::Part(reader, len, hasher)]),
        open: None,
        progress: Progress { done_bytes: 0, total_bytes: Some(len) },
        on_progress: None,
        sending: Arc::clone(&sending),
    };
    (Body::wrap_stream(stream::try_unfold(encoder, Encoder::step)), sending)
}

/// A form as one attempt sends it.
pub(crate) struct Encoded {
    pub(crate) content_type: String,
    pub(crate) content_length: Option<u64>,
    pub(crate) body: Body,
    pub(crate) sending: Arc<Sending>,
}

fn part_header(
    boundary: &str,
    name: &str,
    file_name: Option<&str>,
    content_type: Option<&str>,
) -> String {
    let mut header =
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quoted(name));
    if let Some(file_name) = file_name {
        write!(header, "; filename=\"{}\"", quoted(file_name))
            .expect("a string accepts everything");
    }

    if let Some(content_type) = content_type {
        header.push_str("\r\nContent-Type: ");
        header.push_str(content_type);
    }
    header.push_str("\r\n\r\n");
    header
}

/// Formats a name like the multipart encoding of WHATWG. Other control characters become `_`.
fn quoted(name: &str) -> String {
    let mut quoted = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '"' => quoted.push_str("%22"),
            '\r' => quoted.push_str("%0D"),
            '\n' => quoted.push_str("%0A"),
            c if c.is_control() => quoted.push('_'),
            c => quoted.push(c),
        }
    }
    quoted
}

/// A part of the body.
enum Piece {
    /// Text fields and headers, ready to send.
    Text(Bytes),
    /// A file, and its announced length.
    File(Source, Option<u64>),
    /// Bytes of a file that continues in another body: a reader, the number of bytes, and the digest of the
    /// bytes before.
    Part(Box<dyn AsyncRead + Send + Unpin>, u64, Sha256),
}

impl Piece {
    fn text_bytes(&self) -> u64 {
        match self {
            Piece::Text(text) => text.len() as u64,
            Piece::File(..) | Piece::Part(..) => 0,
        }
    }
}

/// Returns the body piece by piece. Only one file is open.
struct Encoder {
    pieces: VecDeque<Piece>,
    open: Option<OpenFile>,
    progress: Progress,
    on_progress: Option<OnProgress>,
    sending: Arc<Sending>,
}

impl Encoder {
    async fn step(mut self) -> io::Result<Option<(Bytes, Self)>> {
        let sending = Arc::clone(&self.sending);
        sending.pace.send_replace(Pace::Reading);
        let next = tokio::select! {
            biased;
            () = sending.replied.cancelled() => {
                // A failure now would close the connection before the client reads the reply.
                sending.over.cancelled().await;
                return Err(io::Error::other("the reply arrived before the end"));
            }
            next = self.next() => next,
        };

        match next {
            Ok(bytes) => {
                // hyper does not poll after Content-Length bytes, so this is the only place to see
                // the end.
                let is_last = self.pieces.is_empty() && self.open.is_none();
                let now = Instant::now();
                sending.pace.send_replace(if is_last {
                    Pace::Sent(now)
                } else {
                    Pace::Sending(now)
                });
                Ok(bytes.map(|bytes| (bytes, self)))
            }
            Err(error) => {
                // reqwest consumes the error, so the original is kept for the caller.
                let copy = io::Error::new(error.kind(), error.to_string());
                sending.lock().failure = Some(error);
                Err(copy)
            }
        }
    }

    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(file) = &mut self.open {
                let Some(chunk) = file.read().await? else {
                    self.close_file();
                    continue;
                };
                // hyper asks for no more than the announced bytes, so the end of a part is here.
                if file.is_part && file.left == Some(0) {
                    self.close_file();
                }
                self.progress.done_bytes += chunk.len() as u64;
                if let Some(report) = &self.on_progress {
                    report(self.progress);
                }
                return Ok(Some(chunk));
            }

            match self.pieces.pop_front() {
                None => return Ok(None),
                Some(Piece::Text(text)) => return Ok(Some(text)),
                Some(Piece::File(source, left)) => {
                    let (source, hasher) = (source.open().await?, Sha256::new());
                    self.open = Some(OpenFile { source, left, hasher, is_part: false });
                }
                Some(Piece::Part(reader, len, hasher)) => {
                    // The reader goes on behind the part.
                    let source = Opened::Reader(Box::new(reader.take(len)));
                    self.open = Some(OpenFile { source, left: Some(len), hasher, is_part: true });
                }
            }
        }
    }

    /// Keeps the digest of the open file.
    fn close_file(&mut self) {
        if let Some(file) = self.open.take() {
            self.sending.lock().hashers.push(file.hasher);
        }
    }
}

/// A file that is being sent.
struct OpenFile {
    source: Opened,
    /// Remaining bytes, if the length was announced.
    left: Option<u64>,
    hasher: Sha256,
    /// True if the file continues in another body.
    is_part: bool,
}

impl OpenFile {
    async fn read(&mut self) -> io::Result<Option<Bytes>> {
        let chunk = self.source.next().await?;
        let read = chunk.len() as u64;

        if let Some(left) = &mut self.left {
            if read > *left {
                return Err(io::Error::other(
                    "the source is longer than announced, or grew during the upload",
                ));
            }
            if read == 0 && *left > 0 {
                let message = "the source is shorter than announced, or shrank during the upload";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
            }
            *left -= read;
        }

        if read == 0 {
            return Ok(None);
        }
        self.hasher.update(&chunk);
        Ok(Some(chunk))
    }
}

impl Opened {
    /// Returns the next bytes. No bytes mean the end.
    async fn next(&mut self) -> io::Result<Bytes> {
        match self {
            Self::Reader(reader) => {
                let mut chunk = BytesMut::with_capacity(CHUNK_BYTES);
                reader.read_buf(&mut chunk).await?;
                Ok(chunk.freeze())
            }
            Self::Chunks(chunks) => loop {
                match chunks.try_next().await? {
                    Some(chunk) if chunk.is_empty() => {}
                    chunk => return Ok(chunk.unwrap_or_default()),
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn written(mut form: Form) -> (String, Option<u64>) {
        let encoded = form.encode().await.unwrap();
        let mut body = Vec::new();
        let mut stream = std::pin::pin!(http_body_util::BodyStream::new(encoded.body));
        while let Some(frame) = stream.try_next().await.unwrap() {
            body.extend_from_slice(&frame.into_data().unwrap());
        }
        let boundary = encoded.content_type.split_once("boundary=").unwrap().1;
        let text = String::from_utf8(body).unwrap();
        assert_eq!(encoded.content_length.unwrap_or(text.len() as u64), text.len() as u64);
        (text.replace(boundary, "B"), encoded.content_length)
    }

    #[tokio::test]
    async fn text_fields_come_before_files_and_the_length_is_exact() {
        let mut form = Form::default();
        form.item("items[0].", Item::from_bytes("abc").original_name("a \"b\".txt"));
        form.text("organization_id", "42");
        let (text, length) = written(form).await;
        assert!(length.is_some());
        assert_eq!(
            text,
            "--B\r\nContent-Disposition: form-data; name=\"items[0].original_name\"\r\n\r\na \"b\".txt\r\n\
             --B\r\nContent-Disposition: form-data; name=\"organization_id\"\r\n\r\n42\r\n\
             --B\r\nContent-Disposition: form-data; name=\"items[0].file\"; filename=\"a %22b%22.txt\"\r\n\
             Content-Type: application/octet-stream\r\n\r\nabc\r\n--B--\r\n"
        );
    }

    #[tokio::test]
    async fn a_reader_of_unknown_length_has_no_content_length() {
        let mut form = Form::default();
        form.item("", Item::from_reader(&b"abc"[..], None));
        let (text, length) = written(form).await;
        assert!(text.contains("\r\n\r\nabc\r\n"));
        assert_eq!(length, None);
    }

    #[tokio::test]
    async fn an_empty_chunk_is_no_end() {
        let chunks = ["ab", "", "c"].map(|chunk| Ok::<_, io::Error>(Bytes::from(chunk)));
        let mut form = Form::default();
        form.item("", Item::from_stream(stream::iter(chunks), Some(3)));
        let (text, length) = written(form).await;
        assert!(text.contains("\r\n\r\nabc\r\n"));
        assert!(length.is_some());
    }

    #[test]
    fn a_line_break_in_a_name_cannot_start_a_header() {
        assert_eq!(quoted("a\r\nX: y\u{1}ü\\"), "a%0D%0AX: y_ü\\");
    }
}
