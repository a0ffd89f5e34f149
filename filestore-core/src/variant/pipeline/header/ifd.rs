//! The first image file directory of a TIFF structure (TIFF 6.0 section 2; BigTIFF), which is also
//! the form of EXIF metadata.

use std::io::{self, Cursor, Read, Seek};

use super::fields::{Fields, broken};
use crate::variant::pipeline::orient::Orientation;

/// The directory's facts about the picture. A tag that is absent or of another type is `None`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) width: Option<u64>,
    pub(super) height: Option<u64>,
    pub(super) bits_per_sample: Option<u64>,
    pub(super) samples_per_pixel: Option<u64>,
    pub(super) orientation: Option<u64>,
    pub(super) compression: Option<u64>,
    /// The meaning of the samples, and the place where it stands.
    pub(super) photometric: Option<(u64, Place)>,
    pub(super) planar_configuration: Option<u64>,
    pub(super) fill_order: Option<u64>,
    /// The meaning of the first sample that the colours do not need.
    pub(super) extra_samples: Option<u64>,
    pub(super) ink_set: Option<u64>,
    /// The place of the strips' bytes, the first of them.
    pub(super) strip_offset: Option<u64>,
    /// The place where the length of a single strip stands as 0.
    pub(super) no_length: Option<Blank>,
    /// The most values that a tag claims to have, of the tags that decoders read: those of TIFF 6.0
    /// and the colour profile. Others (layers, notes of a program) are left alone, however long.
    pub(super) most_values: u64,
}

/// The place of a tag's single value, which stands in the directory itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The position of the value's byte of least weight.
    pub(crate) lowest: u64,
}

/// The four bytes of a value that is not filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blank {
    at: u64,
    order: Order,
}

impl Blank {
    /// Returns the position of the bytes, and those of `value` in the file's order.
    pub(crate) fn filled(self, value: u32) -> (u64, [u8; 4]) {
        let bytes = match self.order {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        };
        (self.at, bytes)
    }
}

/// Reads the orientation from EXIF metadata; `None` if the metadata is broken or says nothing. A
/// leading `Exif\0\0`, as JPEG has it and some writers put into WebP, is let through.
pub(super) fn exif_orientation(exif: &[u8]) -> Option<Orientation> {
    let tiff = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    let mut directory = Directory::default();
    // Tags read before the metadata breaks off still count: the rest may lie beyond what was kept.
    let _ = read_first(&mut Fields::new(Cursor::new(tiff)), &mut directory);
    directory.orientation.map(Orientation::from_exif)
}

/// Reads the first directory of the TIFF structure that starts at position 0.
pub(super) fn read_first<R: Read + Seek>(
    fields: &mut Fields<R>,
    directory: &mut Directory,
) -> io::Result<()> {
    let order = match &fields.bytes()? {
        b"II" => Order::Little,
        b"MM" => Order::Big,
        _ => return Err(broken("no byte order mark")),
    };

    let mut reader = Ordered { fields, order };
    let width = match reader.u16()? {
        42 => Width::Classic,
        43 => {
            // BigTIFF: size of offsets (8) and a reserved 0.
            reader.fields.skip(4)?;
            Width::Big
        }
        _ => return Err(broken("no TIFF version")),
    };

    let offset = reader.offset(width)?;
    reader.fields.go_to(offset)?;
    let count = match width {
        Width::Classic => u64::from(reader.u16()?),
        Width::Big => reader.u64()?,
    };
    // A classic directory has no more; a larger one is no picture's.
    for _ in 0..count.min(u64::from(u16::MAX)) {
        reader.entry(width, directory)?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

#[derive(Clone, Copy)]
enum Width {
    Classic,
    Big,
}

struct Ordered<'a, R> {
    fields: &'a mut Fields<R>,
    order: Order,
}

impl<R: Read + Seek> Ordered<'_, R> {
    fn entry(&mut self, width: Width, directory: &mut Directory) -> io::Result<()> {
        let tag = self.u16()?;
        let kind = self.u16()?;
        let count = self.offset(width)?;
        let value_at = self.fields.position()?;
        let value_bytes = match width {
            Width::Classic => 4,
            Width::Big => 8,
        };

        if matches!(tag, 254..=559 | 34_675) {
            directory.most_values = directory.most_values.max(count);
        }

        if tag == 262 {
            let value = self.first_value(kind, count, value_bytes, width)?;
            let end = self.fields.position()?;
            let lowest = if matches!(self.order, Order::Little) { value_at } else { end - 1 };
            directory.photometric = value.map(|value| (value, Place { lowest }));
        }

        // One of type LONG, which stands in the directory itself.
        if (tag, kind, count) == (279, 4, 1) && matches!(width, Width::Classic) {
            let length = self.u32()?;
            directory.no_length =
                (length == 0).then_some(Blank { at: value_at, order: self.order });
        }

        let wanted = match tag {
            256 => Some(&mut directory.width),
            257 => Some(&mut directory.height),
            258 => Some(&mut directory.bits_per_sample),
            259 => Some(&mut directory.compression),
            266 => Some(&mut directory.fill_order),
            273 => Some(&mut directory.strip_offset),
            274 => Some(&mut directory.orientation),
            277 => Some(&mut directory.samples_per_pixel),
            284 => Some(&mut directory.planar_configuration),
            332 => Some(&mut directory.ink_set),
            338 => Some(&mut directory.extra_samples),
            _ => None,
        };
        if let Some(slot) = wanted {
            *slot = self.first_value(kind, count, value_bytes, width)?;
        }
        self.fields.go_to(value_at + value_bytes)
    }

    /// Reads the first of `count` values of TIFF type `kind`, in place if they fit, else at an
    /// offset.
    fn first_value(
        &mut self,
        kind: u16,
        count: u64,
        room: u64,
        width: Width,
    ) -> io::Result<Option<u64>> {
        let size = match kind {
            1 => 1,
            3 => 2,
            4 => 4,
            16 => 8,
            _ => return Ok(None),
        };
        if count == 0 {
            return Ok(None);
        }

        if count.saturating_mul(size) > room {
            let offset = self.offset(width)?;
            self.fields.go_to(offset)?;
        }

        Ok(Some(match size {
            1 => self.fields.u8()?.into(),
            2 => self.u16()?.into(),
            4 => self.u32()?.into(),
            _ => self.u64()?,
        }))
    }

    fn offset(&mut self, width: Width) -> io::Result<u64> {
        match width {
            Width::Classic => self.u32().map(u64::from),
            Width::Big => self.u64(),
        }
    }

    fn u16(&mut self) -> io::Result<u16> {
        self.fields.bytes().map(match self.order {
            Order::Little => u16::from_le_bytes,
            Order::Big => u16::from_be_bytes,
        })
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.fields.bytes().map(match self.order {
            Order::Little => u32::from_le_bytes,
            Order::Big => u32::from_be_bytes,
        })
    }

    fn u64(&mut self) -> io::Result<u64> {
        self.fields.bytes().map(match self.order {
            Order::Little => u64::from_le_bytes,
            Order::Big => u64::from_be_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::fixtures::exif;

    #[test]
    fn the_orientation_is_found_with_and_without_the_jpeg_prefix() {
        for value in 1..=8 {
            let payload = exif(value);
            let expected = Some(Orientation::from_exif(value.into()));
            assert_eq!(exif_orientation(&payload), expected);
            assert_eq!(exif_orientation(&payload[6..]), expected);
        }
    }

    #[test]
    fn both_byte_orders_and_big_offsets_are_read() {
        let big_endian = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        assert_eq!(exif_orientation(big_endian), Some(Orientation::from_exif(6)));
        let big_tiff = b"II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\
            \x12\x01\x03\0\x01\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0";
        assert_eq!(exif_orientation(big_tiff), Some(Orientation::from_exif(8)));
    }

    #[test]
    fn broken_metadata_says_nothing() {
        let good = exif(6);
        for end in 0..good.len() - 8 {
            assert_eq!(exif_orientation(&good[..end]), None, "cut at {end}");
        }
        assert_eq!(exif_orientation(b"MM\0*\xFF\xFF\xFF\xFF"), None);
    }
}
