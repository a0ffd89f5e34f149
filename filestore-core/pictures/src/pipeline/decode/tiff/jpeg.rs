//! JPEGs as strips or tiles (TIFF Technical Note 2).
//!
//! A JPEG without tables uses the tables of the previous JPEG, as in libtiff, because older ImageMagick
//! writes Huffman tables only into the first strip.

use super::stored;
use crate::Dimensions;
use crate::error::{Result, corrupt, over_memory, unsupported};
use crate::geometry::{Geometry, Rectangle, area};
use crate::jpeg::{Failure, Jpeg, Tables};
use crate::pipeline::budget::tiff_jpeg_bytes;
use crate::pipeline::header::TiffHeader;
use crate::pipeline::image_file::ImageFile;
use crate::pipeline::resize::resize;
use crate::pixels::{InkModel, Model, Picture};

/// The maximum size of all tables that a file names, in bytes.
const MOST_TABLES_BYTES: usize = 64 << 10;
/// The minimum memory limit of a JPEG, because a tile of a few pixels has whole blocks.
const FEW_BYTES: u64 = 8 << 20;

/// The JPEGs of a file, read in their order.
pub(super) struct Jpegs<'a> {
    image: &'a ImageFile<'a>,
    tiff: TiffHeader,
    /// The memory limit of one JPEG, in addition to the rows and the stored bytes.
    most_bytes: u64,
    tables: Tables,
}

impl<'a> Jpegs<'a> {
    /// Begins with the tables that the directory names.
    pub(super) fn new(image: &'a ImageFile<'a>, tiff: TiffHeader) -> Self {
        let mut tables = Tables::default();
        let shared = tiff.jpeg_tables.map(|values| stored(image, values, MOST_TABLES_BYTES));
        // Invalid tables count as missing. A JPEG that needs them has no picture.
        if let Some(Ok(shared)) = shared.as_deref().map(Jpeg::survey) {
            tables.add(&shared);
        }
        let most_bytes = tiff_jpeg_bytes(tiff, image.len()).max(FEW_BYTES);
        Self { image, tiff, most_bytes, tables }
    }

    /// Decodes the JPEG of a strip or tile to rows of interleaved samples, without a colour conversion.
    /// Returns the number of bytes that arrived: 0 for a JPEG without a picture.
    pub(super) fn read(&mut self, data: &[u8], rows: &mut [u8]) -> Result<usize> {
        let mut file = b"\xFF\xD8".to_vec();
        self.tables.write(&mut file);
        file.extend_from_slice(data.strip_prefix(b"\xFF\xD8").unwrap_or(data));

        let Ok(jpeg) = Jpeg::survey(&file) else { return Ok(0) };
        self.tables.add(&jpeg);
        let Some(size) = jpeg.size() else { return Ok(0) };
        let chunk = self.tiff.chunks.size;
        if size.width > chunk.width || size.height > chunk.height {
            return Err(corrupt("a strip or tile larger than the picture"));
        }
        let model = model(self.tiff.samples_of_chunk());
        let model = model.filter(|model| jpeg.is_of(*model)).ok_or_else(|| unsupported("TIFF"))?;
        let samples = area(size) * self.tiff.samples_of_chunk() as u64;
        if jpeg.memory_needed().saturating_add(2 * samples) > self.most_bytes {
            return Err(over_memory());
        }

        let crop = Rectangle { left: 0, top: 0, width: size.width, height: size.height };
        let whole = Geometry { crop, target: size };
        let planes = match jpeg.decode(model, &[whole], &|| self.image.is_late()) {
            Ok(planes) => planes,
            Err(Failure::Corrupt(_)) => return Ok(0),
            Err(Failure::Late) => return Err(self.image.explain("deadline")),
        };
        let pixels = resize(&Picture::Planes(planes), whole)?;
        Ok(self.put(size, &pixels.data, rows))
    }

    /// Copies the rows of a JPEG of `size`. The JPEG can be narrower than its tile.
    fn put(&self, size: Dimensions, data: &[u8], rows: &mut [u8]) -> usize {
        let samples = self.tiff.samples_of_chunk();
        let (from, to) =
            (size.width as usize * samples, self.tiff.chunks.size.width as usize * samples);
        let mut arrived = 0;
        for (to, from) in rows.chunks_exact_mut(to.max(1)).zip(data.chunks_exact(from.max(1))) {
            to[..from.len()].copy_from_slice(from);
            to[from.len()..].fill(0);
            arrived += to.len();
        }
        arrived
    }
}

/// Returns a model that does not convert this many components. `None` if there is no such model.
fn model(components: usize) -> Option<Model> {
    Some(match components {
        1 => Model::Grey,
        3 => Model::Rgb,
        4 => Model::Inks(InkModel::Cmyk),
        _ => return None,
    })
}
