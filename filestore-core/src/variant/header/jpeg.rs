//! JPEG (ITU-T T.81, annex B): markers up to the first scan.

use std::io::{self, Read, Seek};

use super::fields::{Fields, broken};
use super::ifd::exif_orientation;
use super::{Format, Header, MAX_CHUNKS};
use crate::domain::record::Dimensions;
use crate::variant::orient::Orientation;

/// How many bytes between segments are let through, all together.
const GARBAGE_BYTES: u32 = 64 * 1024;

/// What decoding a JPEG needs to know in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::variant) struct JpegHeader {
    /// Colour components of the frame.
    pub(in crate::variant) components: u8,
    /// Whether all coefficients are held until the last scan: progressive frames, and components
    /// that come in scans of their own.
    pub(in crate::variant) holds_coefficients: bool,
    /// Whether Adobe's marker is there: four-component pictures with it are stored inverted.
    pub(in crate::variant) adobe: bool,
}

#[derive(Default)]
struct Seen {
    frame: Option<Frame>,
    orientation: Option<Orientation>,
    adobe: bool,
    scan_components: u8,
}

struct Frame {
    size: Dimensions,
    components: u8,
    progressive: bool,
}

pub(super) fn parse<R: Read + Seek>(mut fields: Fields<R>) -> io::Result<Header> {
    let mut seen = Seen::default();
    let outcome = walk(&mut fields, &mut seen);
    // Once the frame is known the picture has a size; what is broken after it is the decoder's to say.
    let Some(frame) = seen.frame else {
        return Err(outcome.err().unwrap_or_else(|| broken("no frame")));
    };
    let interleaved = seen.scan_components == frame.components;
    Ok(Header {
        format: Format::Jpeg(JpegHeader {
            components: frame.components,
            holds_coefficients: frame.progressive || !interleaved,
            adobe: seen.adobe,
        }),
        stored: frame.size,
        orientation: seen.orientation.unwrap_or_default(),
    })
}

fn walk<R: Read + Seek>(fields: &mut Fields<R>, seen: &mut Seen) -> io::Result<()> {
    fields.skip(2)?;
    let mut garbage = GARBAGE_BYTES;
    for _ in 0..MAX_CHUNKS {
        let marker = next_marker(fields, &mut garbage)?;
        // Markers that stand alone: TEM, RSTn, SOI.
        if matches!(marker, 0x01 | 0xD0..=0xD8) {
            continue;
        }
        if marker == 0xD9 {
            return Ok(());
        }
        let length = u64::from(fields.be16()?);
        let end = fields.position()? + length.checked_sub(2).ok_or_else(|| broken("a short segment"))?;
        match marker {
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                if seen.frame.is_some() {
                    return Err(broken("two frames"));
                }
                seen.frame = Some(frame(fields, marker)?);
            }
            0xDA => {
                seen.scan_components = fields.u8()?;
                return Ok(());
            }
            0xE1 if seen.orientation.is_none() && length >= 8 => {
                let payload = fields.up_to(usize::try_from(length - 2).expect("a length of 16 bits"))?;
                if payload.starts_with(b"Exif\0\0") {
                    seen.orientation = Some(exif_orientation(&payload));
                }
            }
            0xEE if length >= 14 => seen.adobe |= &fields.bytes::<5>()? == b"Adobe",
            _ => {}
        }
        let position = fields.position()?;
        fields.skip(end.checked_sub(position).ok_or_else(|| broken("a short segment"))?)?;
    }
    Err(broken("too many segments"))
}

fn frame<R: Read + Seek>(fields: &mut Fields<R>, marker: u8) -> io::Result<Frame> {
    let _precision = fields.u8()?;
    let height = u32::from(fields.be16()?);
    let width = u32::from(fields.be16()?);
    let components = fields.u8()?;
    if !(1..=4).contains(&components) {
        return Err(broken("a number of components that is not 1 to 4"));
    }
    let progressive = matches!(marker, 0xC2 | 0xC6 | 0xCA | 0xCE);
    Ok(Frame { size: Dimensions { width, height }, components, progressive })
}

/// The code after the next 0xFF that is neither fill nor stuffing. A little garbage between
/// segments is let through, as decoders do.
fn next_marker<R: Read + Seek>(fields: &mut Fields<R>, garbage: &mut u32) -> io::Result<u8> {
    let mut previous = fields.u8()?;
    loop {
        let byte = fields.u8()?;
        if previous == 0xFF && byte != 0xFF && byte != 0 {
            return Ok(byte);
        }
        previous = byte;
        *garbage = garbage.checked_sub(1).ok_or_else(|| broken("no marker"))?;
    }
}
