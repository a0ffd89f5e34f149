//! PNG (W3C PNG third edition, section 11): chunks up to the first of the picture's data.

use std::io::{self, Read, Seek};

use super::fields::{Fields, broken};
use super::ifd::exif_orientation;
use super::{Format, Header, MAX_CHUNKS};
use crate::domain::record::Dimensions;
use crate::variant::pipeline::orient::Orientation;

/// The bytes of metadata that are searched for the orientation, which stands in the first directory.
const EXIF_BYTES: u32 = 64 * 1024;

/// The facts that decoding a PNG needs in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PngHeader {
    /// Channels of the decoded picture, palette and transparency expanded.
    pub(crate) channels: u8,
    /// Bytes of the colour profile as stored (deflated); 0 without one.
    pub(crate) profile_bytes: u32,
}

pub(super) fn parse<R: Read + Seek>(mut fields: Fields<R>) -> io::Result<Header> {
    fields.skip(8)?;
    if fields.be32()? != 13 || &fields.bytes::<4>()? != b"IHDR" {
        return Err(broken("no IHDR"));
    }

    let stored = Dimensions { width: fields.be32()?, height: fields.be32()? };
    let _bit_depth = fields.u8()?;
    let opaque_channels = match fields.u8()? {
        0 => 1,
        2 | 3 => 3,
        4 => 2,
        6 => 4,
        _ => return Err(broken("an unknown colour type")),
    };
    // Compression, filter and interlace methods; checksum.
    fields.skip(3 + 4)?;

    let mut header = PngHeader { channels: opaque_channels, profile_bytes: 0 };
    let mut orientation = None;
    // A chunk that is cut short is the decoder's to report: the size is known.
    let _ = walk(&mut fields, &mut header, &mut orientation);
    Ok(Header { format: Format::Png(header), stored, orientation: orientation.unwrap_or_default() })
}

fn walk<R: Read + Seek>(
    fields: &mut Fields<R>,
    header: &mut PngHeader,
    orientation: &mut Option<Orientation>,
) -> io::Result<()> {
    for _ in 0..MAX_CHUNKS {
        let length = fields.be32()?;
        let kind = fields.bytes::<4>()?;
        let end = fields.position()? + u64::from(length);

        match &kind {
            b"IDAT" | b"IEND" => return Ok(()),
            // Transparency adds a channel to what has none.
            b"tRNS" if header.channels % 2 == 1 => header.channels += 1,
            b"iCCP" => header.profile_bytes = length,
            b"eXIf" if orientation.is_none() => {
                let payload = fields.up_to(length.min(EXIF_BYTES) as usize)?;
                *orientation = exif_orientation(&payload);
            }
            _ => {}
        }

        let position = fields.position()?;
        // The rest of the data, and the checksum.
        fields.skip(end.saturating_sub(position) + 4)?;
    }
    Err(broken("too many chunks"))
}
