//! JPEG (ITU-T T.81, annex B): markers up to the first scan.

use std::io::{self, Read, Seek};

use super::fields::{Fields, broken};
use super::ifd::exif_orientation;
use super::{Format, Header, MAX_CHUNKS};
use crate::domain::record::Dimensions;
use crate::variant::pipeline::orient::Orientation;

/// The bytes between segments that are let through, all together.
const GARBAGE_BYTES: u32 = 64 * 1024;

/// The facts that decoding a JPEG needs in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JpegHeader {
    /// The number of colour components of the frame.
    pub(crate) components: u8,
    /// True if all coefficients are held until the last scan: progressive frames, and components
    /// that come in scans of their own.
    pub(crate) holds_coefficients: bool,
    /// True if Adobe's marker is there: four-component pictures with it are stored inverted.
    pub(crate) adobe: bool,
    /// True if the decoder that scales takes the picture: grey or YCbCr, 8 bits, Huffman coding,
    /// luminance sampled no more sparsely than chrominance.
    pub(crate) scales: bool,
}

#[derive(Default)]
struct Seen {
    frame: Option<Frame>,
    orientation: Option<Orientation>,
    adobe: bool,
    /// True if Adobe's marker says that the components are not transformed.
    adobe_untransformed: bool,
    scan_components: u8,
}

struct Frame {
    size: Dimensions,
    components: u8,
    progressive: bool,
    scales: bool,
}

pub(super) fn parse<R: Read + Seek>(mut fields: Fields<R>) -> io::Result<Header> {
    let mut seen = Seen::default();
    let outcome = walk(&mut fields, &mut seen);

    // Once the frame is known the picture has a size; damage after it is the decoder's to report.
    let Some(frame) = seen.frame else {
        return Err(outcome.err().unwrap_or_else(|| broken("no frame")));
    };

    let interleaved = seen.scan_components == frame.components;
    Ok(Header {
        format: Format::Jpeg(JpegHeader {
            components: frame.components,
            holds_coefficients: frame.progressive || !interleaved,
            adobe: seen.adobe,
            scales: frame.scales && !(frame.components == 3 && seen.adobe_untransformed),
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
        let end =
            fields.position()? + length.checked_sub(2).ok_or_else(|| broken("a short segment"))?;
        if marker == 0xDA {
            seen.scan_components = fields.u8()?;
            return Ok(());
        }
        segment(fields, seen, marker, length)?;

        let position = fields.position()?;
        fields.skip(end.checked_sub(position).ok_or_else(|| broken("a short segment"))?)?;
    }

    Err(broken("too many segments"))
}

/// Reads what is of use in a segment of `length` bytes; perhaps not all of it.
fn segment<R: Read + Seek>(
    fields: &mut Fields<R>,
    seen: &mut Seen,
    marker: u8,
    length: u64,
) -> io::Result<()> {
    match marker {
        0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
            if seen.frame.is_some() {
                return Err(broken("two frames"));
            }

            seen.frame = Some(frame(fields, marker)?);
        }
        0xE1 if seen.orientation.is_none() && length >= 8 => {
            let payload =
                fields.up_to(usize::try_from(length - 2).expect("a length of 16 bits"))?;
            if payload.starts_with(b"Exif\0\0") {
                seen.orientation = Some(exif_orientation(&payload));
            }
        }
        0xEE if length >= 14 => {
            let payload = fields.bytes::<12>()?;
            let adobe = payload.starts_with(b"Adobe");

            seen.adobe |= adobe;
            seen.adobe_untransformed |= adobe && payload[11] == 0;
        }
        _ => {}
    }
    Ok(())
}

fn frame<R: Read + Seek>(fields: &mut Fields<R>, marker: u8) -> io::Result<Frame> {
    let precision = fields.u8()?;
    let height = u32::from(fields.be16()?);
    let width = u32::from(fields.be16()?);
    let components = fields.u8()?;

    if !(1..=4).contains(&components) {
        return Err(broken("a number of components that is not 1 to 4"));
    }

    let progressive = matches!(marker, 0xC2 | 0xC6 | 0xCA | 0xCE);
    let scales =
        matches!(marker, 0xC0..=0xC2) && precision == 8 && is_grey_or_ycc(fields, components)?;
    Ok(Frame { size: Dimensions { width, height }, components, progressive, scales })
}

/// Returns true if the frame's components are grey or YCbCr with a sampling that decodes by planes.
fn is_grey_or_ycc<R: Read + Seek>(fields: &mut Fields<R>, components: u8) -> io::Result<bool> {
    let mut ids = [0; 3];
    let mut first = None;
    let mut regular = true;

    for index in 0..components {
        let [id, sampling, _table] = fields.bytes::<3>()?;
        let (h, v) = (sampling >> 4, sampling & 15);
        let (most_h, most_v) = *first.get_or_insert((h, v));
        regular &= (1..=most_h.min(4)).contains(&h) && (1..=most_v.min(4)).contains(&v);
        if let Some(slot) = ids.get_mut(usize::from(index)) {
            *slot = id;
        }
    }

    Ok(regular && (components == 1 || (components == 3 && ids != *b"RGB")))
}

/// Finds the code after the next 0xFF that is neither fill nor stuffing. A little garbage between
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
