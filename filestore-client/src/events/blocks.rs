//! The blocks of an event stream (WHATWG HTML section 9.2.6).

use crate::error::{Error, Result};

/// Maximum length of a line, in bytes. An event has a few hundred.
const LINE_LIMIT_BYTES: usize = 1 << 20;

/// A block with an id or with data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// The last id so far, if the stream has one.
    pub(super) id: Option<String>,
    /// The lines of data. `None` for a block that only moves the id.
    pub(super) data: Option<String>,
}

/// Reads the bytes of a stream, however they are cut.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    line: Vec<u8>,
    /// True if the last byte was CR. A following LF belongs to the same end of line.
    after_cr: bool,
    id: Option<String>,
    data: Option<String>,
    is_empty: bool,
    retry_ms: Option<u64>,
}

impl Blocks {
    /// Starts at the beginning of a stream.
    pub(super) fn new() -> Self {
        Self { is_empty: true, ..Self::default() }
    }

    /// Returns the pause that the server wants before the client connects again, in milliseconds.
    pub(super) fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Reads more bytes. Returns the blocks that they complete.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<Vec<Block>> {
        let mut complete = Vec::new();
        for &byte in bytes {
            let was_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if was_cr => {}
                b'\n' | b'\r' => complete.extend(self.end_line()),
                _ if self.line.len() == LINE_LIMIT_BYTES => {
                    let limit = LINE_LIMIT_BYTES;
                    return Err(Error::protocol(format!(
                        "a line of the event stream is longer than allowed: {limit} bytes"
                    )));
                }
                _ => self.line.push(byte),
            }
        }
        Ok(complete)
    }

    /// Reads a complete line. An empty line completes a block.
    fn end_line(&mut self) -> Option<Block> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let was_empty = std::mem::replace(&mut self.is_empty, true);
            let data = self.data.take();
            return (!was_empty).then(|| Block { id: self.id.clone(), data });
        }

        let line = String::from_utf8_lossy(&line);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" if !value.contains('\0') => {
                self.id = Some(value.to_owned()).filter(|id| !id.is_empty());
                self.is_empty = false;
            }
            "data" => {
                match &mut self.data {
                    Some(data) => data.extend(["\n", value]),
                    none => *none = Some(value.to_owned()),
                }
                self.is_empty = false;
            }
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry_ms = value.parse().ok();
            }
            // A comment, the type (which is in the data as well), or a field of a later version.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "retry: 2000\n\n:\n\nid: a\nevent: file.ready\ndata: {\"x\":\ndata:1}\n\nid: b\n\n\
                          event: nothing\n\ndata: c\r\ndata: d\r\n\r\nid\ndata\r\rdata: unfinished\n";

    fn block(id: Option<&str>, data: Option<&str>) -> Block {
        Block { id: id.map(str::to_owned), data: data.map(str::to_owned) }
    }

    #[test]
    fn blocks_are_read_alike_however_the_stream_is_cut() {
        let expected = [
            block(Some("a"), Some("{\"x\":\n1}")),
            block(Some("b"), None),
            block(Some("b"), Some("c\nd")),
            block(None, Some("")),
        ];
        for size in 1..=STREAM.len() {
            let mut blocks = Blocks::new();
            let pieces = STREAM.as_bytes().chunks(size);
            let read: Vec<_> = pieces.flat_map(|piece| blocks.read(piece).unwrap()).collect();
            assert_eq!(read, expected, "pieces of {size}");
            assert_eq!(blocks.retry_ms(), Some(2000));
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut blocks = Blocks::new();
        assert!(blocks.read(&vec![b'x'; LINE_LIMIT_BYTES]).unwrap().is_empty());
        assert!(blocks.read(b"x").is_err());
    }
}
