//! Reads WebP headers (RFC 9649): the canvas, and the size of the bitstream within it.
//!
//! The canvas alone is not enough. A bitstream can claim to be larger than its canvas, and a decoder
//! allocates memory for the bitstream before it compares the two.

use std::io::{self, Read, Seek};

use super::fields::{Fields, broken};
use super::ifd::exif_orientation;
use super::{Format, Header, MAX_CHUNKS};
use crate::Dimensions;
use crate::pipeline::orient::Orientation;

/// The bytes of metadata in which the parser searches for the orientation, which is in the first directory.
const EXIF_BYTES: u32 = 64 * 1024;
/// Flags of VP8X (RFC 9649, section 2.7.1).
const HAS_ALPHA: u8 = 0x10;
const HAS_EXIF: u8 = 0x08;
const HAS_ANIMATION: u8 = 0x02;

/// The facts that decoding a WebP needs in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WebPHeader {
    /// A still with a VP8 bitstream.
    Lossy { has_alpha: bool },
    /// A still with a VP8L bitstream.
    Lossless,
    /// An animation. Its frames are composed on a canvas.
    Animated,
}

pub(super) fn parse<R: Read + Seek>(mut fields: Fields<R>) -> io::Result<Header> {
    fields.skip(12)?;
    let chunk = Chunk::read(&mut fields)?;
    if &chunk.kind != b"VP8X" {
        let stored = chunk.bitstream_size(&mut fields)?.ok_or_else(|| broken("no bitstream"))?;
        let format = Format::WebP(chunk.still(false));
        return Ok(Header { format, stored, orientation: Orientation::default() });
    }

    let flags = fields.u8()?;
    fields.skip(3)?;
    let canvas = Dimensions { width: fields.le24()? + 1, height: fields.le24()? + 1 };
    fields.go_to(chunk.end())?;
    let (still, orientation) = walk(&mut fields, canvas, flags)?;
    let kind = if flags & HAS_ANIMATION != 0 { WebPHeader::Animated } else { still };
    Ok(Header { format: Format::WebP(kind), stored: canvas, orientation })
}

/// Checks the first picture against the canvas, returns its kind, and searches for the orientation, which
/// comes last.
fn walk<R: Read + Seek>(
    fields: &mut Fields<R>,
    canvas: Dimensions,
    flags: u8,
) -> io::Result<(WebPHeader, Orientation)> {
    let mut has_alpha = flags & HAS_ALPHA != 0;
    let mut kind = WebPHeader::Lossless;
    let mut picture_seen = false;

    for _ in 0..MAX_CHUNKS {
        let chunk = match Chunk::read(fields) {
            Ok(chunk) => chunk,
            // The canvas has a size. The decoder reports a missing picture.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        };

        if &chunk.kind == b"EXIF" {
            let payload = fields.up_to(chunk.length.min(EXIF_BYTES) as usize)?;
            return Ok((kind, exif_orientation(&payload).unwrap_or_default()));
        }
        if !picture_seen && let Some(size) = picture_size(fields, &chunk)? {
            if size.width > canvas.width || size.height > canvas.height {
                return Err(broken("a picture larger than its canvas"));
            }
            picture_seen = true;
            kind = chunk.still(has_alpha);
        }

        if picture_seen && flags & HAS_EXIF == 0 {
            break;
        }
        has_alpha |= &chunk.kind == b"ALPH";
        fields.go_to(chunk.end())?;
    }
    Ok((kind, Orientation::default()))
}

/// Reads the size of the bitstream in `chunk`, also if `chunk` is a frame.
fn picture_size<R: Read + Seek>(
    fields: &mut Fields<R>,
    chunk: &Chunk,
) -> io::Result<Option<Dimensions>> {
    if &chunk.kind != b"ANMF" {
        return chunk.bitstream_size(fields);
    }

    // Position, size, duration and flags of the frame. Then perhaps ALPH, then the bitstream.
    fields.skip(16)?;
    for _ in 0..MAX_CHUNKS {
        let inner = Chunk::read(fields)?;
        if let Some(size) = inner.bitstream_size(fields)? {
            return Ok(Some(size));
        }
        if inner.end() >= chunk.end() {
            break;
        }
        fields.go_to(inner.end())?;
    }
    Err(broken("a frame without a picture"))
}

struct Chunk {
    kind: [u8; 4],
    length: u32,
    start: u64,
}

impl Chunk {
    fn read<R: Read + Seek>(fields: &mut Fields<R>) -> io::Result<Self> {
        Ok(Self { kind: fields.bytes()?, length: fields.le32()?, start: fields.position()? })
    }

    /// Returns the kind of a still with this bitstream chunk.
    fn still(&self, has_alpha: bool) -> WebPHeader {
        if &self.kind == b"VP8 " { WebPHeader::Lossy { has_alpha } } else { WebPHeader::Lossless }
    }

    /// Returns the start of the next chunk. Chunks are padded to an even length.
    fn end(&self) -> u64 {
        self.start + u64::from(self.length) + u64::from(self.length % 2)
    }

    /// Reads width and height of a VP8 (RFC 6386, section 9.1) or VP8L (RFC 9649, section 3.4)
    /// chunk.
    fn bitstream_size<R: Read + Seek>(
        &self,
        fields: &mut Fields<R>,
    ) -> io::Result<Option<Dimensions>> {
        match &self.kind {
            b"VP8 " => {
                fields.skip(3)?;
                if fields.bytes()? != [0x9D, 0x01, 0x2A] {
                    return Err(broken("no VP8 key frame"));
                }

                let (width, height) = (fields.le16()? & 0x3FFF, fields.le16()? & 0x3FFF);
                Ok(Some(Dimensions { width: width.into(), height: height.into() }))
            }
            b"VP8L" => {
                if fields.u8()? != 0x2F {
                    return Err(broken("no VP8L signature"));
                }

                let bits = fields.le32()?;
                let (width, height) = ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1);
                Ok(Some(Dimensions { width, height }))
            }
            _ => Ok(None),
        }
    }
}
