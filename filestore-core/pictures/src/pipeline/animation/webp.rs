//! The frames of an animated WebP (RFC 9649, section 2.7.1.1). Each frame is a still picture, and the
//! decoders of stills read its bitstream.

use std::io::{self, Cursor, Read, Seek};
use std::time::Duration;

use image_webp::WebPDecoder;

use super::canvas::{Blend, Canvas, Disposal};
use super::frames::Frames;
use crate::Dimensions;
use crate::error::{Error, Result, corrupt};
use crate::geometry::Rectangle;
use crate::pipeline::color::Profile;
use crate::pipeline::decode::{MAX_PROFILE_BYTES, icc};
use crate::pipeline::header::{Fields, Header};
use crate::pipeline::image_file::ImageFile;
use crate::pixels::{Layout, Pixels};
use crate::webp::{Failure, WebP};

/// The bytes of a frame before its picture: position, size, duration and flags.
const FRAME_HEADER_BYTES: u32 = 16;
/// Flags of a frame.
const CLEARED_AFTERWARDS: u8 = 0x01;
const NOT_BLENDED: u8 = 0x02;

/// An animated WebP as a sequence of frames.
pub(super) struct WebPFrames<'a, R> {
    image: &'a ImageFile<'a>,
    canvas: Dimensions,
    fields: Fields<R>,
    profile: Option<Vec<u8>>,
}

/// The description of a frame, with its undecoded picture.
struct Frame {
    place: Rectangle,
    delay: Duration,
    disposal: Disposal,
    blend: Blend,
    /// The frame's picture as a separate file.
    file: Vec<u8>,
}

/// Opens the frames of `image`.
pub(super) fn open<'a>(
    image: &'a ImageFile<'a>,
    header: &Header,
) -> Result<WebPFrames<'a, impl Read + Seek + use<'a>>> {
    let mut fields = Fields::new(image.reader());
    fields.skip(12).map_err(corrupt)?;
    Ok(WebPFrames { image, canvas: header.stored, fields, profile: None })
}

impl<R: Read + Seek> WebPFrames<'_, R> {
    /// Reads the next frame. `None` at the end of the file, and if the rest of the file is not a whole frame.
    fn next(&mut self) -> io::Result<Option<Frame>> {
        while let Ok(kind) = self.fields.bytes::<4>() {
            let length = self.fields.le32()?;
            let end = self.fields.position()? + u64::from(length);
            if end > self.image.len() {
                break;
            }

            let frame = match &kind {
                b"ANMF" => Some(self.frame(length)?),
                b"ICCP" if length as usize <= MAX_PROFILE_BYTES && self.profile.is_none() => {
                    self.profile = Some(self.fields.up_to(length as usize)?);
                    None
                }
                _ => None,
            };
            let position = self.fields.position()?;
            self.fields.skip(end.saturating_sub(position) + u64::from(length % 2))?;
            if frame.is_some() {
                return Ok(frame);
            }
        }
        Ok(None)
    }

    /// Reads the frame in a chunk of `length` bytes. All bytes must be present.
    fn frame(&mut self, length: u32) -> io::Result<Frame> {
        let picture_bytes = length
            .checked_sub(FRAME_HEADER_BYTES)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        let place = Rectangle {
            left: 2 * self.fields.le24()?,
            top: 2 * self.fields.le24()?,
            width: self.fields.le24()? + 1,
            height: self.fields.le24()? + 1,
        };
        let delay = Duration::from_millis(self.fields.le24()?.into());
        let flags = self.fields.u8()?;

        let mut file = Vec::with_capacity(12 + picture_bytes as usize);
        file.extend(b"RIFF");
        file.extend((4 + picture_bytes).to_le_bytes());
        file.extend(b"WEBP");
        self.fields.append(picture_bytes.into(), &mut file)?;

        let is_cleared = flags & CLEARED_AFTERWARDS != 0;
        let is_blended = flags & NOT_BLENDED == 0;
        Ok(Frame {
            place,
            delay,
            disposal: if is_cleared { Disposal::Clear } else { Disposal::Keep },
            blend: if is_blended { Blend::Over } else { Blend::Replace },
            file,
        })
    }

    /// Decodes a frame as RGB or RGBA. The frame must lie within the canvas.
    fn decode(&self, place: Rectangle, file: Vec<u8>) -> Result<Pixels> {
        let Rectangle { left, top, width, height } = place;
        if left + width > self.canvas.width || top + height > self.canvas.height {
            return Err(corrupt("a frame outside the canvas"));
        }

        let size = Dimensions { width, height };
        let webp = WebP::survey(&file);
        if webp.is_lossy() {
            return webp.decode_rgba(size, &|| self.image.is_late()).map_err(
                |failure| match failure {
                    Failure::Late => self.image.explain("deadline"),
                    Failure::Corrupt(why) => corrupt(why),
                },
            );
        }
        decode_lossless(file, size)
    }
}

impl<R: Read + Seek> Frames for WebPFrames<'_, R> {
    fn draw_next(&mut self, canvas: &mut Canvas) -> Result<Option<Duration>> {
        let Some(frame) = self.next().map_err(corrupt)? else { return Ok(None) };
        let Frame { place, delay, disposal, blend, file } = frame;
        let Pixels { layout, data, .. } = self.decode(place, file)?;

        canvas.begin(place, disposal);
        let mut row = Vec::new();
        for (y, pixels) in
            (0..place.height).zip(data.chunks_exact(place.width as usize * layout.channels()))
        {
            if layout == Layout::Rgba {
                canvas.draw(y, pixels, blend);
                continue;
            }
            row.clear();
            row.extend(pixels.as_chunks().0.iter().flat_map(|[r, g, b]| [*r, *g, *b, 255]));
            canvas.draw(y, &row, blend);
        }
        Ok(Some(delay))
    }

    fn profile(&self) -> Option<Profile> {
        icc(self.profile.clone())
    }
}

/// Decodes a lossless picture of `size`.
fn decode_lossless(file: Vec<u8>, size: Dimensions) -> Result<Pixels> {
    let mut decoder = WebPDecoder::new(Cursor::new(file)).map_err(broken)?;
    if decoder.dimensions() != (size.width, size.height) {
        return Err(corrupt("a frame of another size than its picture"));
    }

    let layout = if decoder.has_alpha() { Layout::Rgba } else { Layout::Rgb };
    let pixels = size.width as usize * size.height as usize;
    let mut data = vec![0; pixels * layout.channels()];
    decoder.read_image(&mut data).map_err(broken)?;
    Ok(Pixels { layout, width: size.width, height: size.height, data })
}

fn broken(error: image_webp::DecodingError) -> Error {
    corrupt(error)
}
