//! Reads the facts about an animation from its structure, without decoding.
//!
//! Only whole frames count, because a cut frame is not shown. Like a decoder, the walk ends at the first
//! invalid part.

use std::io::{self, Read, Seek};

use crate::Dimensions;
use crate::error::Result;
use crate::geometry::area;
use crate::pipeline::header::{Fields, Format, Header, WebPHeader};
use crate::pipeline::image_file::ImageFile;

/// The maximum bytes to read from a file. An animation within the limits is far smaller.
const MOST_BYTES: u64 = 256 << 20;

/// The maximum number of GIF blocks to skip. The limit is four times the number of 255-byte blocks in
/// [`MOST_BYTES`]. A file of one-byte blocks would otherwise take many seconds.
const MOST_BLOCKS: u32 = 4 << 20;

/// The structure of an animation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outline {
    /// The number of whole frames. Counting stops at one more than the requested maximum.
    pub(crate) frames: u32,
    /// The number of pixels to decode and resize. Each frame counts at least as a whole canvas.
    pub(crate) pixels: u64,
    /// The number of repetitions. 0 means without end.
    pub(crate) plays: u16,
    /// The stored size of the largest frame in bytes, for formats that are read frame by frame.
    pub(crate) frame_bytes: u64,
}

/// Reads the outline of the animation in `image`, up to one frame more than `max_frames`. `None` for a still
/// picture, which is a file with fewer than two whole frames.
pub(crate) fn read(
    image: &ImageFile<'_>,
    header: &Header,
    max_frames: u32,
) -> Result<Option<Outline>> {
    let outline = walk(image.reader(), image.len(), header, max_frames);
    // The end of a walk may be a fault of the disk.
    let outline = image.settle(Ok(outline))?;
    Ok(Some(outline).filter(|outline| outline.frames >= 2))
}

fn walk<R: Read + Seek>(reader: R, len: u64, header: &Header, max_frames: u32) -> Outline {
    let outline = Outline { frames: 0, pixels: 0, plays: 1, frame_bytes: 0 };
    let canvas = area(header.stored);
    let mut walk =
        Walk { fields: Fields::new(reader), len, canvas, max_frames, blocks: 0, outline };

    // An error is the end of what arrived.
    let _ = match &header.format {
        Format::Gif => walk.gif(),
        Format::Png(_) => walk.png(),
        Format::WebP(WebPHeader::Animated) => walk.webp(),
        _ => Ok(()),
    };
    walk.outline
}

/// A walk through the parts of a file, and the facts found so far.
struct Walk<R> {
    fields: Fields<R>,
    len: u64,
    canvas: u64,
    max_frames: u32,
    /// The number of GIF blocks that were skipped.
    blocks: u32,
    outline: Outline,
}

impl<R: Read + Seek> Walk<R> {
    fn add(&mut self, frame: Dimensions) {
        self.outline.frames += 1;
        self.outline.pixels = self.outline.pixels.saturating_add(area(frame).max(self.canvas));
    }

    /// Returns true while there are more parts to read.
    fn goes_on(&mut self) -> io::Result<bool> {
        Ok(self.outline.frames <= self.max_frames && self.fields.position()? < MOST_BYTES)
    }

    /// Walks through a GIF (GIF89a, appendix B). A frame is whole if its data has an end.
    fn gif(&mut self) -> io::Result<()> {
        self.fields.skip(6 + 4)?;
        let flags = self.fields.u8()?;
        self.fields.skip(2)?;
        self.skip_colors(flags)?;

        while self.goes_on()? {
            match self.fields.u8()? {
                0x2C => self.gif_frame()?,
                0x21 => self.gif_extension()?,
                _ => break,
            }
        }
        Ok(())
    }

    fn gif_extension(&mut self) -> io::Result<()> {
        match self.fields.u8()? {
            0xFF => self.gif_application(),
            _ => self.skip_blocks(),
        }
    }

    fn gif_frame(&mut self) -> io::Result<()> {
        self.fields.skip(4)?;
        let (width, height) = (self.fields.le16()?, self.fields.le16()?);
        let flags = self.fields.u8()?;
        self.skip_colors(flags)?;
        // The size of the first codes.
        self.fields.skip(1)?;
        self.skip_blocks()?;

        self.add(Dimensions { width: width.into(), height: height.into() });
        Ok(())
    }

    /// Reads an extension that can contain the number of further repetitions. 0 means without end.
    fn gif_application(&mut self) -> io::Result<()> {
        let Some(name) = self.block()? else { return Ok(()) };
        if !matches!(&name[..], b"NETSCAPE2.0" | b"ANIMEXTS1.0") {
            return self.skip_blocks();
        }

        let Some(block) = self.block()? else { return Ok(()) };
        if let [1, low, high, ..] = block[..] {
            self.outline.plays = match u16::from_le_bytes([low, high]) {
                0 => 0,
                more => more.saturating_add(1),
            };
        }
        self.skip_blocks()
    }

    /// Reads a block. `None` for the empty block, which ends an extension.
    fn block(&mut self) -> io::Result<Option<Vec<u8>>> {
        let length = self.fields.u8()?;
        if length == 0 { Ok(None) } else { self.fields.up_to(length.into()).map(Some) }
    }

    /// Skips the colour table that `flags` announce.
    fn skip_colors(&mut self, flags: u8) -> io::Result<()> {
        if flags & 0x80 == 0 { Ok(()) } else { self.fields.skip(3 << ((flags & 7) + 1)) }
    }

    fn skip_blocks(&mut self) -> io::Result<()> {
        loop {
            match self.fields.u8()? {
                0 => return Ok(()),
                _ if self.blocks >= MOST_BLOCKS || self.fields.position()? >= MOST_BYTES => {
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
                length => self.fields.skip(length.into())?,
            }
            self.blocks += 1;
        }
    }

    /// Walks through a PNG (W3C PNG third edition, section 11.3.4.3). The picture is animated if the file
    /// says so before the default picture. The default picture is a frame if a frame control precedes it.
    fn png(&mut self) -> io::Result<()> {
        self.fields.skip(8)?;
        let mut said = None;
        let mut announced: Option<Announced> = None;

        while self.goes_on()? {
            let Ok(chunk) = self.png_chunk() else { break };
            let is_whole = chunk.end <= self.len;
            let is_data = matches!(&chunk.kind, b"IDAT" | b"fdAT");
            if is_data {
                if said.is_none() {
                    break;
                }
                if let Some(frame) = &mut announced {
                    frame.data = Some(is_whole);
                }
            } else if let Some(Announced { size, data: Some(true) }) = announced {
                self.add(size);
                announced = None;
            }

            match &chunk.kind {
                b"acTL" if said.is_none() => {
                    said = Some(self.fields.be32()?);
                    let plays = self.fields.be32()?;
                    self.outline.plays = u16::try_from(plays).unwrap_or(u16::MAX);
                }
                b"fcTL" => {
                    self.fields.skip(4)?;
                    let size =
                        Dimensions { width: self.fields.be32()?, height: self.fields.be32()? };
                    announced = Some(Announced { size, data: None });
                }
                b"IEND" => break,
                _ => {}
            }
            self.skip_to(chunk.end)?;
        }

        // The file may end with the last of its data.
        if let Some(Announced { size, data: Some(true) }) = announced {
            self.add(size);
        }
        self.outline.frames = self.outline.frames.min(said.unwrap_or(0));
        Ok(())
    }

    fn png_chunk(&mut self) -> io::Result<PngChunk> {
        let length = self.fields.be32()?;
        let kind = self.fields.bytes()?;
        // The payload, and the checksum.
        let end = self.fields.position()? + u64::from(length) + 4;
        Ok(PngChunk { kind, end })
    }

    /// Walks through a WebP (RFC 9649, section 2.7.1.1).
    fn webp(&mut self) -> io::Result<()> {
        self.fields.skip(12)?;
        while self.goes_on()? {
            let kind = self.fields.bytes::<4>()?;
            let length = u64::from(self.fields.le32()?);
            let end = self.fields.position()? + length;

            match &kind {
                b"ANIM" => {
                    self.fields.skip(4)?;
                    self.outline.plays = self.fields.le16()?;
                }
                b"ANMF" if end <= self.len => {
                    self.fields.skip(6)?;
                    let size = Dimensions {
                        width: self.fields.le24()? + 1,
                        height: self.fields.le24()? + 1,
                    };
                    self.add(size);
                    self.outline.frame_bytes = self.outline.frame_bytes.max(length);
                }
                _ => {}
            }
            self.skip_to(end + length % 2)?;
        }
        Ok(())
    }

    fn skip_to(&mut self, position: u64) -> io::Result<()> {
        let here = self.fields.position()?;
        self.fields.skip(position.saturating_sub(here))
    }
}

/// A PNG frame that was announced before its data.
#[derive(Clone, Copy)]
struct Announced {
    size: Dimensions,
    /// `Some(true)` if all data seen so far is complete.
    data: Option<bool>,
}

struct PngChunk {
    kind: [u8; 4],
    end: u64,
}
