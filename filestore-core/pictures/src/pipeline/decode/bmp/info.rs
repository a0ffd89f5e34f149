//! The headers of a BMP (`BITMAPINFOHEADER` and later, `BITMAPCOREHEADER`, `OS22XBITMAPHEADER`).

use super::super::MAX_PROFILE_BYTES;
use super::Masks;
use super::runs::Kind;
use crate::error::{Result, corrupt, unsupported};
use crate::pipeline::image_file::ImageFile;

/// The length of the file header, in bytes.
const FILE_BYTES: usize = 14;
/// The lengths of headers: the first of OS/2, then of Windows: without masks, with three masks, with four
/// masks, the last version.
const CORE: usize = 12;
const WINDOWS: usize = 40;
const WITH_MASKS: usize = 52;
const WITH_ALPHA: usize = 56;
const LAST: usize = 124;

/// The meaning of the field Compression.
const RLE_8: u32 = 1;
const RLE_4: u32 = 2;
const MASKS: u32 = 3;
/// For OS/2. For Windows, this value means JPEG.
const RLE_24: u32 = 4;
const ALPHA_MASKS: u32 = 6;
/// "MBED": an ICC profile in the file describes the colours.
const EMBEDDED: u32 = 0x4D42_4544;

/// The properties of a picture from its headers.
pub(super) struct Info {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) is_top_down: bool,
    pub(super) bits: usize,
    pub(super) stored: Stored,
    pub(super) pixels_at: u64,
    /// The position and the length of an ICC profile.
    profile: Option<(u64, u32)>,
}

/// The form of the pixels.
pub(super) enum Stored {
    /// Indexes of 1, 2, 4 or 8 bits.
    Palette(Vec<[u8; 3]>),
    /// 24 bits.
    Bgr,
    /// 16 or 32 bits.
    Masks(Masks),
    Runs(Kind),
}

/// The fields of the second header. A missing field is 0.
struct Fields {
    bytes: [u8; LAST],
    /// The length that the header claims.
    length: usize,
}

impl Fields {
    fn read(image: &ImageFile<'_>) -> Result<(Self, u64)> {
        let mut start = [0; FILE_BYTES + 4];
        if fill(image, 0, &mut start) < start.len() {
            return Err(corrupt("a header that is cut"));
        }
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| start[at + byte]));
        let length = usize::try_from(number(FILE_BYTES)).map_err(corrupt)?;

        let mut bytes = [0; LAST];
        let there = length.min(LAST);
        if fill(image, FILE_BYTES as u64, &mut bytes[..there]) < there {
            return Err(corrupt("a header that is cut"));
        }
        Ok((Self { bytes, length }, number(10).into()))
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes([0, 1, 2, 3].map(|byte| self.bytes[at + byte]))
    }

    /// Returns true for the lengths of Windows headers.
    fn is_of_windows(&self) -> bool {
        matches!(self.length, WINDOWS | WITH_MASKS | WITH_ALPHA | 108 | LAST)
    }
}

impl Info {
    pub(super) fn read(image: &ImageFile<'_>) -> Result<Self> {
        let (fields, claimed_at) = Fields::read(image)?;
        let is_core = fields.length == CORE;
        let (width, height, bits) = if is_core {
            (u32::from(fields.u16(4)), i32::from(fields.u16(6)), fields.u16(10))
        } else {
            (fields.u32(4), fields.u32(8).cast_signed(), fields.u16(14))
        };
        let compression = if is_core { 0 } else { fields.u32(16) };

        let headers = (FILE_BYTES + fields.length) as u64;
        let (masks, behind) = masks(image, &fields, (compression, bits), headers)?;
        let (stored, behind) = stored(image, &fields, (compression, bits), masks, behind)?;
        // The pixels never begin before the end of the header.
        let pixels_at = if claimed_at < headers { behind } else { claimed_at };
        let profile = (fields.length == LAST && fields.u32(56) == EMBEDDED)
            .then(|| (FILE_BYTES as u64 + u64::from(fields.u32(112)), fields.u32(116)));
        Ok(Self {
            width: usize::try_from(width).map_err(corrupt)?,
            height: usize::try_from(height.unsigned_abs()).map_err(corrupt)?,
            is_top_down: height < 0,
            bits: bits.into(),
            stored,
            pixels_at,
            profile,
        })
    }

    /// Reads the profile. Ignores a profile that is cut, or larger than the limit of all formats.
    pub(super) fn profile(&self, image: &ImageFile<'_>) -> Option<Vec<u8>> {
        let (at, bytes) = self.profile?;
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= MAX_PROFILE_BYTES)?;
        let mut profile = vec![0; bytes];
        (fill(image, at, &mut profile) == bytes).then_some(profile)
    }
}

/// Reads the masks of red, green, blue and alpha. Returns the masks with the end of all headers. `None` for
/// pixels without masks.
fn masks(
    image: &ImageFile<'_>,
    fields: &Fields,
    (compression, bits): (u32, u16),
    headers: u64,
) -> Result<(Option<[u32; 4]>, u64)> {
    let usual = match bits {
        16 => [0x7C00, 0x3E0, 0x1F],
        32 => [0xFF_0000, 0xFF00, 0xFF],
        _ => return Ok((None, headers)),
    };
    let alpha =
        if fields.length >= WITH_ALPHA && fields.is_of_windows() { fields.u32(52) } else { 0 };
    if !matches!(compression, MASKS | ALPHA_MASKS) {
        return Ok((Some([usual[0], usual[1], usual[2], alpha]), headers));
    }
    if !fields.is_of_windows() {
        return Err(unsupported("BMP"));
    }

    if fields.length >= WITH_MASKS {
        return Ok((Some([fields.u32(40), fields.u32(44), fields.u32(48), alpha]), headers));
    }
    let count = if compression == ALPHA_MASKS { 4 } else { 3 };
    let mut stored = [0; 16];
    let bytes = 4 * count;
    if fill(image, headers, &mut stored[..bytes]) < bytes {
        return Err(corrupt("masks that are cut"));
    }
    let masks =
        [0, 1, 2, 3].map(|at| u32::from_le_bytes([0, 1, 2, 3].map(|byte| stored[4 * at + byte])));
    Ok((Some(masks), headers + bytes as u64))
}

/// Returns the form of the pixels, and the end of the palette.
fn stored(
    image: &ImageFile<'_>,
    fields: &Fields,
    (compression, bits): (u32, u16),
    masks: Option<[u32; 4]>,
    behind: u64,
) -> Result<(Stored, u64)> {
    let is_of_windows = fields.is_of_windows();
    match (compression, bits) {
        (0, 1 | 2 | 4 | 8) => {
            let (palette, behind) = palette(image, fields, bits, behind);
            Ok((Stored::Palette(palette), behind))
        }
        (RLE_8, 8) => {
            let (palette, behind) = palette(image, fields, bits, behind);
            Ok((Stored::Runs(Kind::Bytes(palette)), behind))
        }
        (RLE_4, 4) => {
            let (palette, behind) = palette(image, fields, bits, behind);
            Ok((Stored::Runs(Kind::Halves(palette)), behind))
        }
        (RLE_24, 24) if !is_of_windows => Ok((Stored::Runs(Kind::Colors), behind)),
        (0, 24) => Ok((Stored::Bgr, behind)),
        (0 | MASKS | ALPHA_MASKS, 16 | 32) => {
            let masks = masks.and_then(|masks| Masks::new(masks, bits));
            let masks = masks.ok_or_else(|| corrupt("masks that make no sense"))?;
            Ok((Stored::Masks(masks), behind))
        }
        _ => Err(unsupported("BMP")),
    }
}

/// Reads the palette, with three bytes for each colour in the first OS/2 header, otherwise four. As in
/// browsers, a palette has at most as many colours as a pixel can name.
fn palette(image: &ImageFile<'_>, fields: &Fields, bits: u16, at: u64) -> (Vec<[u8; 3]>, u64) {
    let most = 1u32 << bits;
    let is_core = fields.length == CORE;
    let count = match fields.u32(32) {
        _ if is_core => most,
        0 => most,
        count => count.min(most),
    };

    let each = if is_core { 3 } else { 4 };
    let mut stored = vec![0; each * count as usize];
    let arrived = fill(image, at, &mut stored);
    let colors = stored[..arrived].chunks_exact(each);
    let colors = colors.map(|color| [color[2], color[1], color[0]]).collect();
    (colors, at + stored.len() as u64)
}

/// Reads the bytes at a position. Returns the number of bytes that arrived.
pub(super) fn fill(image: &ImageFile<'_>, at: u64, to: &mut [u8]) -> usize {
    use std::io::{Read, Seek, SeekFrom};

    let mut reader = image.unbuffered();
    if reader.seek(SeekFrom::Start(at)).is_err() {
        return 0;
    }
    let mut filled = 0;
    while filled < to.len() {
        // A failed read counts as the end here. The caller that asks for the picture gets the error.
        match reader.read(&mut to[filled..]) {
            Ok(count @ 1..) => filled += count,
            _ => break,
        }
    }
    filled
}
