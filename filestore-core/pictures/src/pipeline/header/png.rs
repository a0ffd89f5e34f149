//! Reads PNG headers (W3C PNG third edition, section 11): all chunks before the picture's data.

use std::io::{self, Read, Seek};

use super::fields::{Fields, broken};
use super::ifd::exif_orientation;
use super::{Format, Header, MAX_CHUNKS};
use crate::Dimensions;
use crate::pipeline::orient::Orientation;

/// The bytes of metadata in which the parser searches for the orientation, which is in the first directory.
const EXIF_BYTES: u32 = 64 * 1024;

/// The facts that decoding a PNG needs in advance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PngHeader {
    /// Channels of the decoded picture, after palette and transparency are expanded.
    pub(crate) channels: u8,
    /// Size of the stored (deflated) colour profile, in bytes. 0 without a profile.
    pub(crate) profile_bytes: u32,
    /// True for an animation with a separate default picture.
    pub(crate) hides_default: bool,
    /// The positions of the checksums of chunks that the decoder must not see. Contains the first chunk of
    /// each kind.
    pub(crate) hidden: [Option<u64>; 3],
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
    // Compression, filter and interlace methods, then the checksum.
    fields.skip(3 + 4)?;

    let mut header = PngHeader { channels: opaque_channels, ..PngHeader::default() };
    let mut orientation = None;
    // The size is known. The decoder reports a chunk that is cut short.
    let _ = walk(&mut fields, &mut header, &mut orientation);
    Ok(Header { format: Format::Png(header), stored, orientation: orientation.unwrap_or_default() })
}

fn walk<R: Read + Seek>(
    fields: &mut Fields<R>,
    header: &mut PngHeader,
    orientation: &mut Option<Orientation>,
) -> io::Result<()> {
    let mut announced = false;
    for _ in 0..MAX_CHUNKS {
        let length = fields.be32()?;
        let kind = fields.bytes::<4>()?;
        let end = fields.position()? + u64::from(length);

        match &kind {
            b"IDAT" | b"IEND" => {
                header.hides_default &= !announced;
                return Ok(());
            }
            // Transparency adds a channel if there is no alpha channel.
            b"tRNS" if header.channels % 2 == 1 => header.channels += 1,
            b"iCCP" => header.profile_bytes = length,
            // The number of frames. If a frame control precedes the data, the default picture is a frame.
            b"acTL" => header.hides_default = fields.be32()? > 0,
            b"fcTL" => announced = true,
            b"cICP" if header.hidden[0].is_none() => {
                let payload = fields.up_to(length.min(4) as usize)?;
                let is_known = length < 4 || matches!(payload[..], [_, _, 0, 0 | 1]);
                header.hidden[0] = (length > 4 || !is_known).then_some(end);
            }
            b"mDCV" if header.hidden[1].is_none() => {
                header.hidden[1] = (length > 24).then_some(end);
            }
            b"cLLI" if header.hidden[2].is_none() => header.hidden[2] = (length > 8).then_some(end),
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
