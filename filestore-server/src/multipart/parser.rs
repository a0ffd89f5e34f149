//! The format itself, without I/O: chunks in, events out.
//!
//! The delimiter is CRLF, two dashes and the boundary. A boundary cannot contain CR, so CR occurs in the
//! delimiter only at its start. This has two consequences. First, the end of a chunk can match the start of a
//! delimiter in only one way. The parser therefore remembers only the number of matched bytes. Second, if the
//! next chunk does not continue the match, these bytes are data, and no delimiter can start among them. These
//! bytes are passed on as a slice of the delimiter. No byte is copied or searched twice.

use bytes::{Buf, Bytes, BytesMut};
use filestore_core::{Error, ErrorKind, Result};
use memchr::memmem::Finder;

use super::{Boundary, PartHeader, header, malformed};

/// Limits for everything in a body except the data of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum bytes before the first boundary line, and of white space after any boundary.
    pub preamble_bytes: usize,
    /// The maximum bytes of a part's header block.
    pub header_bytes: usize,
    /// The maximum number of parts, with or without a file.
    pub parts: usize,
    /// The maximum bytes after the closing boundary.
    pub epilogue_bytes: usize,
}

impl Limits {
    /// Returns the limits of a form with at most `items` files: 4 parts for each and 16 more.
    pub const fn for_items(items: usize) -> Self {
        Self {
            preamble_bytes: 8192,
            header_bytes: 8192,
            parts: 4 * items + 16,
            epilogue_bytes: 8192,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::for_items(1)
    }
}

/// The next result of the parser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A part begins with this header block.
    PartStart(PartHeader),
    /// Bytes of the part, never empty.
    Data(Bytes),
    /// The part is complete.
    PartEnd,
    /// The closing boundary. The form is complete, and further bytes are ignored.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first boundary line.
    Preamble,
    /// In the line of a boundary.
    Line { at: Line, closes_part: bool },
    /// In the header block of a part.
    Header,
    /// In a part's body.
    Body,
    /// The closing boundary was read, [`Event::End`] is due.
    Closed,
    /// [`Event::End`] was returned.
    Epilogue,
    /// The body was refused.
    Failed,
}

/// The position in a boundary's line, from the boundary's last character on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Start,
    Dash,
    Padding,
    Cr,
}

/// A multipart/form-data parser. Alternate between [`feed`](Self::feed) and reading events until there are
/// none. Call [`finish`](Self::finish) at the end of the input.
#[derive(Debug)]
pub struct Parser {
    delimiter: Bytes,
    finder: Finder<'static>,
    limits: Limits,
    state: State,
    input: Bytes,
    /// The number of delimiter bytes at the end of the input so far.
    matched: usize,
    /// The number of matched bytes that stand for a missing line end. At the start of the body, and right
    /// after a header block, a delimiter needs no CRLF of its own.
    phantom: usize,
    /// The header block so far.
    header: BytesMut,
    parts: usize,
    /// Bytes skipped in the preamble, the padding or the epilogue.
    skipped: usize,
}

/// The refusal of a body that was made by hand, or by a library that forgets the CR.
const BARE_LF: &str = "a line of the form ends in LF alone: every line ends in CRLF (RFC 2046)";

enum Scan {
    Data(Bytes),
    Delimiter,
    NeedInput,
}

impl Parser {
    /// Creates a parser for one body.
    pub fn new(boundary: &Boundary, limits: Limits) -> Self {
        let delimiter = Bytes::from(format!("\r\n--{}", boundary.as_str()));
        Self {
            finder: Finder::new(&delimiter).into_owned(),
            delimiter,
            limits,
            state: State::Preamble,
            input: Bytes::new(),
            matched: 2,
            phantom: 2,
            header: BytesMut::new(),
            parts: 0,
            skipped: 0,
        }
    }

    /// Adds the next bytes of the body. Call this method when [`next_event`](Self::next_event) has returned
    /// `None`, because the rest of an earlier chunk is copied together with the new one.
    pub fn feed(&mut self, chunk: Bytes) {
        if self.input.is_empty() {
            self.input = chunk;
        } else {
            let mut both = BytesMut::from(std::mem::take(&mut self.input));
            both.extend_from_slice(&chunk);
            self.input = both.freeze();
        }
    }

    /// Returns the next event, or `None` if more input is needed. After an error, all calls return errors.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        let found = self.advance();
        if found.is_err() {
            self.fail();
        }
        found
    }

    /// Checks that the form is complete. Call this method at the end of the input, when there are no more
    /// events. [`ErrorKind::MalformedBody`] if the closing boundary is missing.
    pub fn finish(&self) -> Result<()> {
        match self.state {
            State::Epilogue => Ok(()),
            _ => Err(malformed("the body ends before its closing boundary")),
        }
    }

    /// Refuses the body. All later calls return errors.
    pub(super) fn fail(&mut self) {
        self.state = State::Failed;
    }

    fn advance(&mut self) -> Result<Option<Event>> {
        loop {
            let event = match self.state {
                State::Preamble => match self.scan() {
                    Scan::Data(skipped) => self.skip(skipped.len(), self.limits.preamble_bytes)?,
                    Scan::Delimiter => self.enter_line(false),
                    Scan::NeedInput => return Ok(None),
                },
                State::Body => match self.scan() {
                    Scan::Data(data) => Some(Event::Data(data)),
                    Scan::Delimiter => self.enter_line(true),
                    Scan::NeedInput => return Ok(None),
                },
                State::Closed => {
                    self.state = State::Epilogue;
                    self.skipped = 0;
                    Some(Event::End)
                }
                State::Failed => return Err(malformed("the body was refused before")),
                _ if self.input.is_empty() => return Ok(None),
                State::Line { at, closes_part } => self.read_line(at, closes_part)?,
                State::Header => self.read_header()?,
                State::Epilogue => {
                    let rest = std::mem::take(&mut self.input);
                    self.skip(rest.len(), self.limits.epilogue_bytes)?
                }
            };

            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// Returns the data up to the next delimiter, or the delimiter.
    fn scan(&mut self) -> Scan {
        if self.input.is_empty() {
            return Scan::NeedInput;
        }

        if self.matched > 0 {
            let wanted = &self.delimiter[self.matched..];
            let same = wanted.iter().zip(&self.input).take_while(|(a, b)| a == b).count();
            if same == wanted.len() {
                self.input.advance(same);
                return Scan::Delimiter;
            }
            if same == self.input.len() {
                self.matched += same;
                self.input.clear();
                return Scan::NeedInput;
            }

            let carried = self.delimiter.slice(self.phantom..self.matched);
            (self.matched, self.phantom) = (0, 0);
            if !carried.is_empty() {
                return Scan::Data(carried);
            }
        }

        match self.finder.find(&self.input) {
            Some(0) => {
                self.input.advance(self.delimiter.len());
                Scan::Delimiter
            }
            Some(at) => Scan::Data(self.input.split_to(at)),
            None => {
                self.matched = self.partial_end();
                let data = self.input.split_to(self.input.len() - self.matched);
                self.input.clear();
                if data.is_empty() { Scan::NeedInput } else { Scan::Data(data) }
            }
        }
    }

    /// Counts the bytes at the end of the input that match the start of a delimiter.
    fn partial_end(&self) -> usize {
        let from = self.input.len().saturating_sub(self.delimiter.len() - 1);
        let end = &self.input[from..];
        match memchr::memrchr(b'\r', end) {
            Some(at) if self.delimiter.starts_with(&end[at..]) => end.len() - at,
            _ => 0,
        }
    }

    fn skip(&mut self, bytes: usize, limit: usize) -> Result<Option<Event>> {
        self.skipped += bytes;
        if self.skipped > limit {
            return Err(malformed(format!(
                "the body has text outside of its parts, over {limit} bytes"
            )));
        }
        Ok(None)
    }

    fn enter_line(&mut self, closes_part: bool) -> Option<Event> {
        (self.matched, self.phantom, self.skipped) = (0, 0, 0);
        self.state = State::Line { at: Line::Start, closes_part };
        None
    }

    /// Reads one byte of a boundary's line: `--`, or white space and CRLF.
    fn read_line(&mut self, at: Line, closes_part: bool) -> Result<Option<Event>> {
        let at = match (at, self.input.get_u8()) {
            (Line::Start, b'-') => Line::Dash,
            (Line::Start | Line::Padding, b' ' | b'\t') => Line::Padding,
            (Line::Start | Line::Padding, b'\r') => Line::Cr,
            (Line::Dash, b'-') => {
                self.state = State::Closed;
                return Ok(closes_part.then_some(Event::PartEnd));
            }
            (Line::Cr, b'\n') => {
                self.enter_header()?;
                return Ok(closes_part.then_some(Event::PartEnd));
            }
            (_, b'\n') => return Err(malformed(BARE_LF)),
            _ => return Err(malformed("a boundary is followed by other text on its line")),
        };

        self.state = State::Line { at, closes_part };
        self.skip(1, self.limits.preamble_bytes)
    }

    fn enter_header(&mut self) -> Result<()> {
        self.parts += 1;
        if self.parts > self.limits.parts {
            let limit = self.limits.parts;
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("the body has more parts than {limit}"),
            )
            .with_limit(limit as u64));
        }
        self.state = State::Header;
        Ok(())
    }

    /// Collects a header block up to its empty line. Reads each byte once, except up to three bytes of a line
    /// end that is cut between two chunks.
    fn read_header(&mut self) -> Result<Option<Event>> {
        let (known, limit) = (self.header.len(), self.limits.header_bytes);
        let room = (limit + 4 - known).min(self.input.len());
        self.header.extend_from_slice(&self.input[..room]);

        if self.header.len() >= 2 && self.header.starts_with(b"\r\n") {
            return Err(malformed("a part has no headers"));
        }

        let from = known.saturating_sub(3);
        let end = memchr::memmem::find(&self.header[from..], b"\r\n\r\n");
        // The bytes of the part may follow, in which an LF means nothing.
        let lines = end.map_or(&*self.header, |at| &self.header[..from + at]);
        refuse_bare_feeds(lines, from)?;

        let Some(at) = end else {
            self.input.advance(room);
            if self.header.len() >= limit + 4 {
                return Err(Error::new(
                    ErrorKind::TooLarge,
                    format!("a part's header has more bytes than {limit}"),
                )
                .with_limit(limit as u64));
            }
            return Ok(None);
        };

        let end = from + at + 4;
        self.input.advance(end - known);
        let parsed = header::parse(&self.header[..end - 2])?;
        self.header.clear();
        self.state = State::Body;
        (self.matched, self.phantom) = (2, 2);
        Ok(Some(Event::PartStart(parsed)))
    }
}

/// Refuses an LF without a CR before it, from a position on.
fn refuse_bare_feeds(lines: &[u8], from: usize) -> Result<()> {
    let mut feeds = memchr::memchr_iter(b'\n', &lines[from..]).map(|at| from + at);
    if feeds.any(|at| at == 0 || lines[at - 1] != b'\r') {
        return Err(malformed(BARE_LF));
    }
    Ok(())
}
