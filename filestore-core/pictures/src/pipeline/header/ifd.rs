//! Reads the first image file directory of a TIFF structure (TIFF 6.0 section 2, BigTIFF). EXIF uses the same
//! structure.

use std::io::{self, Cursor, Read, Seek};

use super::fields::{Fields, broken};
use crate::pipeline::orient::Orientation;

/// The tag of the orientation, in TIFF and in EXIF metadata.
const ORIENTATION: u16 = 274;

/// The positions of the values of the requested tags.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Directory(Vec<(u16, Values)>);

impl Directory {
    /// Returns the values of a tag. `None` without the tag.
    pub(super) fn get(&self, tag: u16) -> Option<Values> {
        self.0.iter().find(|(known, _)| *known == tag).map(|(_, values)| *values)
    }
}

/// The position of a tag's values. The file claims the number of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Values {
    kind: u16,
    count: u64,
    at: u64,
    order: Order,
}

impl Values {
    /// Returns the position of the first value's first byte.
    pub(crate) fn at(self) -> u64 {
        self.at
    }

    /// Returns the size of all values, in bytes. `None` if it is not a number.
    pub(crate) fn bytes(self) -> Option<u64> {
        self.count.checked_mul(size(self.kind)?)
    }

    /// Reads whole numbers, at most `most`. Reads fewer if the file ends before the last number, and fails if
    /// it ends before the first. Reads no values of other kinds.
    pub(crate) fn numbers<R: Read + Seek>(
        self,
        fields: &mut Fields<R>,
        most: u64,
    ) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        if !is_whole(self.kind) {
            return Ok(numbers);
        }

        fields.go_to(self.at)?;
        let mut reader = Ordered { fields, order: self.order };
        for _ in 0..self.count.min(most) {
            match reader.number(self.kind) {
                Ok(number) => numbers.push(number),
                Err(_) if !numbers.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(numbers)
    }

    /// Reads the first number. `None` for other kinds of values.
    pub(super) fn first<R: Read + Seek>(self, fields: &mut Fields<R>) -> io::Result<Option<u64>> {
        Ok(self.numbers(fields, 1)?.first().copied())
    }
}

/// Returns the size of a value of TIFF type `kind`, in bytes.
fn size(kind: u16) -> Option<u64> {
    Some(match kind {
        1 | 2 | 6 | 7 => 1,
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        5 | 10 | 12 | 16 | 17 | 18 => 8,
        _ => return None,
    })
}

/// Returns true for whole numbers. Signed numbers count as unsigned, because no value should be negative.
fn is_whole(kind: u16) -> bool {
    matches!(kind, 1 | 3 | 4 | 6 | 8 | 9 | 13 | 16 | 17 | 18)
}

/// Reads the orientation from EXIF metadata. `None` if the metadata is broken or has no orientation. Skips a
/// leading `Exif\0\0`, which JPEG files and some WebP files contain.
pub(super) fn exif_orientation(exif: &[u8]) -> Option<Orientation> {
    let tiff = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    let mut fields = Fields::new(Cursor::new(tiff));
    let mut directory = Directory::default();
    // If the metadata ends early, the tags before the end count. The rest can be after the part that was
    // kept.
    let _ = read_first(&mut fields, &[ORIENTATION], &mut directory);
    let value = directory.get(ORIENTATION)?.first(&mut fields).ok()??;
    Some(Orientation::from_exif(value))
}

/// Finds the `wanted` tags in the first directory of the TIFF structure that starts at position 0.
pub(super) fn read_first<R: Read + Seek>(
    fields: &mut Fields<R>,
    wanted: &[u16],
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
            // BigTIFF: the size of offsets (8), and a reserved 0.
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
    // The maximum of a classic directory. A picture has no larger directory.
    for _ in 0..count.min(u64::from(u16::MAX)) {
        let (tag, values) = reader.entry(width)?;
        // The first entry of a tag counts.
        if wanted.contains(&tag) && directory.get(tag).is_none() {
            directory.0.push((tag, values));
        }
    }
    Ok(())
}

/// A byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

/// Returns the byte order of a TIFF structure.
pub(super) fn order<R: Read + Seek>(fields: &mut Fields<R>) -> io::Result<Order> {
    fields.go_to(0)?;
    Ok(if &fields.bytes()? == b"MM" { Order::Big } else { Order::Little })
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
    /// Reads an entry: its tag, and the position of its values. Small values are in the entry itself.
    fn entry(&mut self, width: Width) -> io::Result<(u16, Values)> {
        let tag = self.u16()?;
        let kind = self.u16()?;
        let count = self.offset(width)?;
        let here = self.fields.position()?;
        let room = match width {
            Width::Classic => 4,
            Width::Big => 8,
        };

        let bytes = size(kind).map(|size| count.saturating_mul(size));
        let far = self.offset(width)?;
        let at = if bytes.is_none_or(|bytes| bytes <= room) { here } else { far };
        Ok((tag, Values { kind, count, at, order: self.order }))
    }

    /// Reads a whole number of TIFF type `kind`.
    fn number(&mut self, kind: u16) -> io::Result<u64> {
        match size(kind) {
            Some(1) => self.fields.u8().map(u64::from),
            Some(2) => self.u16().map(u64::from),
            Some(4) => self.u32().map(u64::from),
            _ => self.u64(),
        }
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
    use crate::fixtures::exif;

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
