//! The compressions of strips and tiles. Each decompresses into memory, up to the end of the data or to
//! damage.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read};

use fax::decoder::{DecodeError, DecodeStatus, Group4Decoder};
use fdeflate::Decompressor;

use super::chunks::{Place, Source};
use super::jpeg::Jpegs;
use crate::error::{Result, over_memory, unsupported};
use crate::lzw::{self, Dialect, ROOM_BYTES, Strings};
use crate::pipeline::header::{Compression, TiffHeader};
use crate::pipeline::image_file::ImageFile;

/// The size of one read of compressed bytes.
const PIECE_BYTES: usize = 16 << 10;

/// The reader of the strips or tiles of a file.
pub(super) struct Codec<'a> {
    source: Source<'a>,
    tiff: TiffHeader,
    file_bytes: u64,
    strings: Option<Strings>,
    jpegs: Option<Jpegs<'a>>,
}

impl<'a> Codec<'a> {
    /// Prepares to read.
    pub(super) fn open(image: &'a ImageFile<'a>, tiff: TiffHeader) -> Self {
        let is_jpeg = tiff.compression == Compression::Jpeg;
        let is_lzw = tiff.compression == Compression::Lzw;
        Self {
            source: Source::open(image, tiff.is_reversed && !is_jpeg),
            tiff,
            file_bytes: image.len(),
            strings: is_lzw.then(Strings::new),
            jpegs: is_jpeg.then(|| Jpegs::new(image, tiff)),
        }
    }

    /// Reads the rows of a strip or tile, from row `first`. `first` is 0 if the rows are compressed. After
    /// the `rows`, there are [`ROOM_BYTES`] without meaning. Returns the number of bytes that arrived. Fails
    /// for unsupported kinds.
    pub(super) fn read(&mut self, place: Place, first: u32, roomy: &mut [u8]) -> Result<usize> {
        let bytes = roomy.len().saturating_sub(ROOM_BYTES);
        let rows = &mut roomy[..bytes];
        match self.tiff.compression {
            Compression::None => {
                let skipped = self.tiff.row_bytes().saturating_mul(first.into());
                Ok(self.source.fill(place.at.saturating_add(skipped), rows))
            }
            Compression::Deflate => Ok(self.pieces(place).map_or(0, |data| inflate(data, rows))),
            Compression::PackBits => Ok(self.pieces(place).map_or(0, |data| unpack(data, rows))),
            Compression::Lzw => self.lzw(place, roomy),
            Compression::Fax4 => self.fax(place, rows),
            Compression::Jpeg => {
                let data = self.whole(place)?;
                let jpegs = self.jpegs.as_mut().expect("made for this compression");
                jpegs.read(&data, rows)
            }
        }
    }

    /// Opens the stored bytes for reads in pieces. `None` for an impossible position.
    fn pieces(&mut self, Place { at, length }: Place) -> Option<impl BufRead> {
        self.source.go_to(at).ok()?;
        let data = Read::by_ref(&mut self.source).take(length);
        Some(BufReader::with_capacity(PIECE_BYTES, data))
    }

    /// Reads all stored bytes that arrived.
    fn whole(&mut self, Place { at, length }: Place) -> Result<Vec<u8>> {
        let there = self.file_bytes.saturating_sub(at).min(length);
        let mut data = vec![0; usize::try_from(there).map_err(|_| over_memory())?];
        let arrived = self.source.fill(at, &mut data);
        data.truncate(arrived);
        Ok(data)
    }

    fn lzw(&mut self, place: Place, roomy: &mut [u8]) -> Result<usize> {
        // At most twelve bits for each byte, and a little for codes that clear the table.
        let most = 2 * roomy.len() as u64 + 64;
        let data = self.whole(Place { length: place.length.min(most), ..place })?;
        // The old form: codes begin in the lowest bit.
        if matches!(data[..], [0, second, ..] if second & 1 == 1) {
            return Err(unsupported("TIFF"));
        }

        let strings = self.strings.as_mut().expect("made for this compression");
        Ok(lzw::decode_to(&data, Dialect::Tiff, roomy, strings))
    }

    fn fax(&mut self, place: Place, rows: &mut [u8]) -> Result<usize> {
        let width = u16::try_from(self.tiff.chunks.size.width).map_err(|_| unsupported("TIFF"))?;
        let row_bytes = usize::from(width).div_ceil(8);
        // Two bytes for each pixel, more than any run needs. The memory of the decoder for a row depends on
        // the bytes of the row.
        let most = 16 * row_bytes + 64;
        let left = Cell::new(most);
        let length = place.length.min(16 * rows.len() as u64 + 64);
        let Some(data) = self.pieces(Place { length, ..place }) else { return Ok(0) };
        let mut data = data.bytes();
        let bytes = std::iter::from_fn(|| {
            left.set(left.get().checked_sub(1)?);
            data.next()
        });
        let Ok(mut decoder) = Group4Decoder::new(bytes, width) else { return Ok(0) };

        let mut arrived = 0;
        for row in rows.chunks_exact_mut(row_bytes.max(1)) {
            row.fill(0);
            left.set(most);
            match decoder.advance() {
                Ok(DecodeStatus::Incomplete) => blacken(row, decoder.transition(), width),
                // White rows can be missing at the end.
                Ok(DecodeStatus::End) => {}
                Err(DecodeError::Unsupported) => return Err(unsupported("TIFF")),
                Err(_) => break,
            }
            arrived += row_bytes;
        }
        Ok(arrived)
    }
}

/// Sets the bits of the black runs in a white row. The colour changes at each of these positions.
fn blacken(row: &mut [u8], changes: &[u16], width: u16) {
    for run in changes.chunks(2) {
        let end = run.get(1).copied().unwrap_or(width);
        for at in usize::from(run[0])..usize::from(end.min(width)) {
            row[at / 8] |= 0x80 >> (at % 8);
        }
    }
}

/// Inflates zlib data (RFC 1950).
fn inflate(mut data: impl BufRead, rows: &mut [u8]) -> usize {
    let mut inflate = Decompressor::new();
    // libtiff does not compare the checksum either if the rows have arrived.
    inflate.ignore_adler32();
    let mut made = 0;
    while made < rows.len() && !inflate.is_done() {
        let Ok(piece) = data.fill_buf() else { break };
        let is_end = piece.is_empty();
        let Ok((used, more)) = inflate.read(piece, rows, made, is_end) else { break };
        data.consume(used);
        made += more;
        if used == 0 && more == 0 {
            break;
        }
    }
    made
}

/// Unpacks runs of bytes (TIFF 6.0, section 9).
fn unpack(mut data: impl BufRead, rows: &mut [u8]) -> usize {
    let mut made = 0;
    let mut byte = || {
        let mut one = [0];
        data.read_exact(&mut one).ok().map(|()| one[0])
    };
    while made < rows.len()
        && let Some(count) = byte()
    {
        let count = count.cast_signed();
        let length = usize::from(count.unsigned_abs()) + 1;
        let to = &mut rows[made..];
        let length = length.min(to.len());
        match count {
            0.. => {
                for to in &mut to[..length] {
                    let Some(literal) = byte() else { return made };
                    *to = literal;
                    made += 1;
                }
            }
            -128 => {}
            _ => {
                let Some(repeated) = byte() else { return made };
                to[..length].fill(repeated);
                made += length;
            }
        }
    }
    made
}
