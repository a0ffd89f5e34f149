//! Reads JPEG headers (ITU-T T.81, annex B): all markers before the first scan.

use std::io::{self, Read, Seek};

use super::fields::{Fields, broken};
use super::ifd::exif_orientation;
use super::{Format, Header};
use crate::Dimensions;
use crate::jpeg::Sampling;
use crate::pipeline::orient::Orientation;
use crate::pixels::{InkModel, Model};

/// The maximum number of bytes between segments, in total.
const GARBAGE_BYTES: u32 = 64 * 1024;
/// The maximum number of segments before the picture's data. Some programs leave thousands of comments.
const MAX_SEGMENTS: usize = 1 << 16;
/// The payload sizes of a complete JFIF segment (ITU-T T.871, section 10.1) and a complete Adobe segment.
const JFIF_BYTES: u64 = 14;
const ADOBE_BYTES: u64 = 12;

/// The facts that decoding a JPEG needs in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JpegHeader {
    /// The meaning of the components. `None` for kinds of JPEG that neither this crate nor browsers decode:
    /// arithmetic coding, lossless, 12 bits, two components.
    pub(crate) model: Option<Model>,
    /// The number of colour components of the frame.
    pub(crate) components: u8,
    /// True if the decoder holds all coefficients until the last scan.
    pub(crate) holds_coefficients: bool,
    pub(crate) sampling: Sampling,
}

#[derive(Default)]
struct Seen {
    frame: Option<Frame>,
    orientation: Option<Orientation>,
    has_jfif: bool,
    /// The colour transform in Adobe's marker.
    adobe: Option<u8>,
}

struct Frame {
    /// The marker's code, which is the kind of frame.
    marker: u8,
    precision: u8,
    size: Dimensions,
    components: Vec<Component>,
}

#[derive(Clone, Copy)]
struct Component {
    id: u8,
    /// Sampling factors, horizontal and vertical.
    sampling: (u8, u8),
}

pub(super) fn parse<R: Read + Seek>(mut fields: Fields<R>) -> io::Result<Header> {
    let mut seen = Seen::default();
    let outcome = walk(&mut fields, &mut seen);

    // After the frame, the size is known. The decoder reports later damage.
    let Some(frame) = &seen.frame else {
        return Err(outcome.err().unwrap_or_else(|| broken("no frame")));
    };

    let model = model(&seen, frame);
    Ok(Header {
        format: Format::Jpeg(JpegHeader {
            model,
            components: u8::try_from(frame.components.len()).expect("at most four"),
            holds_coefficients: frame.marker == 0xC2,
            sampling: sampling(model, &frame.components),
        }),
        stored: frame.size,
        orientation: seen.orientation.unwrap_or_default(),
    })
}

/// Returns the meaning of the components, like `default_decompress_parms` of libjpeg: from JFIF, then from
/// Adobe's marker, then from the names of the components.
fn model(seen: &Seen, frame: &Frame) -> Option<Model> {
    if !matches!(frame.marker, 0xC0..=0xC2) || frame.precision != 8 {
        return None;
    }

    let ids: Vec<_> = frame.components.iter().map(|component| component.id).collect();
    match (ids.len(), seen.adobe) {
        (1, _) => Some(Model::Grey),
        (3, _) if seen.has_jfif => Some(Model::YCbCr),
        (3, Some(0)) => Some(Model::Rgb),
        (3, None) if ids == *b"RGB" => Some(Model::Rgb),
        (3, _) => Some(Model::YCbCr),
        (4, None | Some(0)) => Some(Model::Inks(InkModel::Cmyk)),
        (4, Some(_)) => Some(Model::Inks(InkModel::Ycck)),
        _ => None,
    }
}

fn sampling(model: Option<Model>, components: &[Component]) -> Sampling {
    let across = components.iter().map(|component| component.sampling.0).max();
    let down = components.iter().map(|component| component.sampling.1).max();

    let is_usual = components.iter().enumerate().all(|(index, component)| {
        model.is_some_and(|model| model.is_chrominance(index))
            || (Some(component.sampling.0), Some(component.sampling.1)) == (across, down)
    });
    if is_usual { Sampling::Usual } else { Sampling::Mixed }
}

fn walk<R: Read + Seek>(fields: &mut Fields<R>, seen: &mut Seen) -> io::Result<()> {
    fields.skip(2)?;
    let mut garbage = GARBAGE_BYTES;

    for _ in 0..MAX_SEGMENTS {
        let marker = next_marker(fields, &mut garbage)?;
        // Markers without a segment: TEM, RSTn, SOI.
        if matches!(marker, 0x01 | 0xD0..=0xD8) {
            continue;
        }
        if marker == 0xD9 || marker == 0xDA {
            return Ok(());
        }

        // A length below two is an empty segment, as in libjpeg.
        let length = u64::from(fields.be16()?).saturating_sub(2);
        let end = fields.position()? + length;
        segment(fields, seen, marker, length)?;

        let position = fields.position()?;
        fields.skip(end.checked_sub(position).ok_or_else(|| broken("a short segment"))?)?;
    }

    Err(broken("too many segments"))
}

/// Reads the useful part of a segment with a payload of `length` bytes.
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
        0xE0 if length >= JFIF_BYTES => seen.has_jfif |= &fields.bytes::<5>()? == b"JFIF\0",
        // Metadata can be in several segments, and some lack the orientation.
        0xE1 if seen.orientation.is_none() && length >= 6 => {
            let payload = fields.up_to(usize::try_from(length).expect("a length of 16 bits"))?;
            if payload.starts_with(b"Exif\0\0") {
                seen.orientation = exif_orientation(&payload);
            }
        }
        0xEE if length >= ADOBE_BYTES => {
            if let [b'A', b'd', b'o', b'b', b'e', .., transform] = fields.bytes::<12>()? {
                seen.adobe = Some(transform);
            }
        }
        _ => {}
    }
    Ok(())
}

fn frame<R: Read + Seek>(fields: &mut Fields<R>, marker: u8) -> io::Result<Frame> {
    let precision = fields.u8()?;
    let height = u32::from(fields.be16()?);
    let width = u32::from(fields.be16()?);
    let count = fields.u8()?;
    if !(1..=4).contains(&count) {
        return Err(broken("a number of components that is not 1 to 4"));
    }

    let mut components = Vec::new();
    for _ in 0..count {
        let [id, sampling, _table] = fields.bytes::<3>()?;
        components.push(Component { id, sampling: (sampling >> 4, sampling & 15) });
    }
    Ok(Frame { marker, precision, size: Dimensions { width, height }, components })
}

/// Finds the code after the next 0xFF that is neither fill nor stuffing. Accepts a little garbage between
/// segments, as decoders do.
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
