//! A TIFF of strips with 8 bits a sample: decoded strip by strip, and reduced as its rows come.

use std::io::{Read, Seek, SeekFrom};

use tiff::TiffResult;
use tiff::decoder::Decoder;
use tiff::tags::Tag;

use super::super::Decoded;
use super::super::rows::Rows;
use super::{Opened, open};
use crate::variant::geometry::Geometry;
use crate::variant::lzw::{self, Dialect, Strings};
use crate::variant::pipeline::header::{Header, TiffHeader};
use crate::variant::pipeline::image_file::ImageFile;

/// The bytes that a strip may have, whatever the picture's size; else at most a part of the picture.
const STRIP_BYTES: usize = 4 << 20;
const STRIP_SHARE: usize = 8;

/// "LZW" and "horizontal differencing" (TIFF 6.0, tags Compression and Predictor).
const LZW: u16 = 5;
const DIFFERENCES: u16 = 2;

/// Decodes the picture as [`decode`](super::super::decode) says; `None` for other kinds of TIFF, and for
/// those that did not come whole.
pub(super) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    tiff: TiffHeader,
    wanted: &[Geometry],
) -> Option<Decoded> {
    if tiff.is_copied || tiff.no_length.is_some() {
        return None;
    }
    let mut opened = open(image, header, tiff).ok()?;
    let mut strips = Strips::read(&mut opened.decoder, header, tiff)?;

    let mut rows: Option<Rows> = None;
    for strip in 0..strips.count {
        if image.is_late() {
            return None;
        }
        let samples = strips.samples(&mut opened.decoder, image, strip)?;
        let pixels = opened.pixels(header, tiff, samples);
        let rows = rows.get_or_insert_with(|| Rows::new(header.stored, pixels.layout, wanted));
        for row in pixels.data.chunks_exact(rows.row_bytes()) {
            rows.push(row);
        }
        if rows.is_complete() {
            break;
        }
    }

    let Opened { profile, .. } = opened;
    Decoded::of_rows(rows?, profile).ok()
}

/// The strips of a file.
struct Strips {
    count: u32,
    /// Bytes of a row, and rows of all strips but the last.
    row: usize,
    rows: u32,
    height: u32,
    samples: usize,
    /// The places of the strips, if our own decoder reads them.
    lzw: Option<Lzw>,
}

struct Lzw {
    offsets: Vec<u64>,
    lengths: Vec<u64>,
    has_differences: bool,
    strings: Strings,
}

impl Strips {
    /// Reads how the picture is cut; `None` if that is not into strips of a small size.
    fn read<R: Read + Seek>(
        decoder: &mut Decoder<R>,
        header: &Header,
        tiff: TiffHeader,
    ) -> Option<Self> {
        let formats = decoder.find_tag_unsigned_vec::<u16>(Tag::SampleFormat).ok()?;
        if formats.is_some_and(|formats| formats.iter().any(|format| *format != 1)) {
            return None;
        }
        let (height, rows) = (header.stored.height, decoder.chunk_dimensions().1.max(1));
        let rows = rows.min(height);
        let count = height.div_ceil(rows);
        if decoder.strip_count().ok()? != count {
            return None;
        }

        let row = header.stored.width as usize * tiff.samples;
        let strip = row.checked_mul(rows as usize)?;
        if strip > STRIP_BYTES.max(row * height as usize / STRIP_SHARE) {
            return None;
        }
        let lzw = Lzw::read(decoder, count).ok()?;
        Some(Self { count, row, rows, height, samples: tiff.samples, lzw })
    }

    /// Reads the samples of a strip; `None` if some are missing.
    fn samples<R: Read + Seek>(
        &mut self,
        decoder: &mut Decoder<R>,
        image: &ImageFile<'_>,
        strip: u32,
    ) -> Option<Vec<u8>> {
        let rows = self.rows.min(self.height - strip * self.rows);
        let bytes = self.row * rows as usize;
        if let Some(lzw) = &mut self.lzw {
            return lzw.samples(image, strip as usize, (bytes, self.row, self.samples));
        }

        let mut samples = vec![0; bytes];
        decoder.read_chunk_bytes(strip, &mut samples).ok()?;
        Some(samples)
    }
}

impl Lzw {
    /// Reads the places of the strips; `None` for another compression.
    fn read<R: Read + Seek>(decoder: &mut Decoder<R>, count: u32) -> TiffResult<Option<Self>> {
        let compression = decoder.find_tag_unsigned::<u16>(Tag::Compression)?;
        let order = decoder.find_tag_unsigned::<u16>(Tag::FillOrder)?.unwrap_or(1);
        let predictor = decoder.find_tag_unsigned::<u16>(Tag::Predictor)?.unwrap_or(1);
        if compression != Some(LZW) || order != 1 || !(1..=DIFFERENCES).contains(&predictor) {
            return Ok(None);
        }

        let offsets = decoder.get_tag_u64_vec(Tag::StripOffsets)?;
        let lengths = decoder.get_tag_u64_vec(Tag::StripByteCounts)?;
        let is_complete = [&offsets, &lengths].iter().all(|tag| tag.len() == count as usize);
        let has_differences = predictor == DIFFERENCES;
        let strings = Strings::new();
        Ok(is_complete.then_some(Self { offsets, lengths, has_differences, strings }))
    }

    fn samples(
        &mut self,
        image: &ImageFile<'_>,
        strip: usize,
        (bytes, row, samples): (usize, usize, usize),
    ) -> Option<Vec<u8>> {
        let (offset, length) = (self.offsets[strip], self.lengths[strip]);
        // Twelve bits for a byte at most, and a little for codes that clear the table.
        if length > 2 * bytes as u64 + 64 {
            return None;
        }
        let mut data = vec![0; usize::try_from(length).ok()?];
        let mut reader = image.header_reader();
        reader.seek(SeekFrom::Start(offset)).ok()?;
        reader.read_exact(&mut data).ok()?;
        // The form of old: codes begin in the lowest bit.
        if matches!(data[..], [0, second, ..] if second & 1 == 1) {
            return None;
        }

        let mut decoded = lzw::decode(&data, Dialect::Tiff, bytes, &mut self.strings);
        if decoded.len() < bytes {
            return None;
        }
        if self.has_differences {
            for row in decoded.chunks_exact_mut(row) {
                add_up(row, samples);
            }
        }
        Some(decoded)
    }
}

/// Undoes the differences between the samples of a row and those of the pixels before.
fn add_up(row: &mut [u8], samples: usize) {
    match samples {
        1 => add_up_of::<1>(row),
        3 => add_up_of::<3>(row),
        4 => add_up_of::<4>(row),
        _ => {
            for at in samples..row.len() {
                row[at] = row[at].wrapping_add(row[at - samples]);
            }
        }
    }
}

fn add_up_of<const SAMPLES: usize>(row: &mut [u8]) {
    let mut last = [0u8; SAMPLES];
    for pixel in row.as_chunks_mut::<SAMPLES>().0 {
        for (sample, before) in pixel.iter_mut().zip(&mut last) {
            *sample = sample.wrapping_add(*before);
            *before = *sample;
        }
    }
}
