//! Reads the header of a frame (RFC 6386, section 9), which applies to the whole picture.

use super::bools::Bools;
use super::tables::{
    AC_STEPS, BAND_OF, BANDS, CONTEXTS, DC_STEPS, DECISIONS, KINDS, TOKEN_PROBABILITIES,
    TokenProbabilities, UPDATE_PROBABILITIES,
};
use crate::Dimensions;

/// The bytes before the first partition: the frame's tag, its start code and its size.
const TAG_BYTES: usize = 10;
/// The maximum number of segments. Each macroblock belongs to a segment.
pub(super) const SEGMENTS: usize = 4;

/// A frame, as its header describes it.
pub(super) struct Frame<'a> {
    pub(super) size: Dimensions,
    /// The rest of the first partition: the modes of the macroblocks.
    pub(super) modes: Bools<'a>,
    /// The coefficient partitions: 1, 2, 4 or 8. The rows use them in turn.
    pub(super) tokens: Vec<Bools<'a>>,
    /// The probabilities of the segment tree, if macroblocks name their segment.
    pub(super) segment_tree: Option<[u8; 3]>,
    pub(super) quantizers: [Quantizer; SEGMENTS],
    pub(super) filter: FilterHeader,
    pub(super) probabilities: Box<PlacedProbabilities>,
    /// The probability that a macroblock has coefficients, if macroblocks contain this flag.
    pub(super) skip: Option<u8>,
}

/// The probabilities of coefficients by kind and place (instead of band). One more entry follows the block's
/// last place, because it is looked up but never used. Rows are padded to powers of two for fast look-ups.
pub(super) type PlacedProbabilities = [[OfPlace; BAND_OF.len()]; KINDS];

/// The probabilities of a coefficient's decisions, by context.
pub(super) type OfPlace = [[u8; 16]; 4];

/// The quantization steps of a segment: for the first coefficient of a block, and for the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Quantizer {
    /// Luminance.
    pub(super) y1: [i32; 2],
    /// The means of luminance.
    pub(super) y2: [i32; 2],
    /// Chrominance.
    pub(super) uv: [i32; 2],
}

/// The loop filter settings in the header.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilterHeader {
    pub(super) is_simple: bool,
    /// The level of each segment, before the adjustment for the mode.
    pub(super) levels: [i32; SEGMENTS],
    pub(super) sharpness: u8,
    /// The level adjustments: for all macroblocks, and for macroblocks that are predicted by subblocks.
    pub(super) deltas: [i32; 2],
}

struct Segmentation {
    is_absolute: bool,
    quantizers: [i32; SEGMENTS],
    filter_levels: [i32; SEGMENTS],
    tree: Option<[u8; 3]>,
}

impl<'a> Frame<'a> {
    /// Reads the header of the VP8 bitstream in `bytes`, which can be truncated.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let (tag, rest) = bytes.split_first_chunk().ok_or("the frame's header is cut")?;
        let (size, first_bytes) = read_tag(tag)?;
        let (first, rest) = rest.split_at_checked(first_bytes).unwrap_or((rest, &[]));
        let mut bools = Bools::new(first);
        // Colour space and clamping: the former has one value, and clamping always is right.
        bools.number(2);

        let segmentation = bools.flag().then(|| Segmentation::read(&mut bools));
        let filter = FilterHeader::read(&mut bools, segmentation.as_ref());
        let partitions = 1 << bools.number(2);
        let quantizers = read_quantizers(&mut bools, segmentation.as_ref());
        // Probabilities kept for later frames: there are none.
        bools.flag();
        let probabilities = read_probabilities(&mut bools);
        let skip = bools.flag().then(|| bools.number(8));

        if bools.is_overdrawn() {
            return Err("the frame's header is cut");
        }
        Ok(Self {
            size,
            modes: bools,
            tokens: split_partitions(rest, partitions),
            segment_tree: segmentation.and_then(|segmentation| segmentation.tree),
            quantizers,
            filter,
            probabilities,
            skip,
        })
    }
}

/// Reads the picture's size, and the size of the first partition in bytes.
fn read_tag(tag: &[u8; TAG_BYTES]) -> Result<(Dimensions, usize), &'static str> {
    let [t0, t1, t2, 0x9D, 0x01, 0x2A, w0, w1, h0, h1] = *tag else {
        return Err("no start code");
    };

    let bits = u32::from_le_bytes([t0, t1, t2, 0]);
    if bits & 1 != 0 {
        return Err("no key frame");
    }
    if bits >> 1 & 7 > 3 {
        return Err("a profile that does not exist");
    }

    let [width, height] =
        [[w0, w1], [h0, h1]].map(|side| u32::from(u16::from_le_bytes(side) & 0x3FFF));
    Ok((Dimensions { width, height }, (bits >> 5) as usize))
}

impl Segmentation {
    fn read(bools: &mut Bools<'_>) -> Self {
        let has_map = bools.flag();
        let mut segmentation = Self {
            is_absolute: false,
            quantizers: [0; SEGMENTS],
            filter_levels: [0; SEGMENTS],
            tree: None,
        };

        if bools.flag() {
            segmentation.is_absolute = bools.flag();
            segmentation.quantizers = [(); SEGMENTS].map(|()| bools.optional(7));
            segmentation.filter_levels = [(); SEGMENTS].map(|()| bools.optional(6));
        }
        if has_map {
            let tree = [(); 3].map(|()| if bools.flag() { bools.number(8) } else { 255 });
            segmentation.tree = Some(tree);
        }
        segmentation
    }

    fn applied(&self, base: i32, of_segments: [i32; SEGMENTS]) -> [i32; SEGMENTS] {
        of_segments.map(|value| if self.is_absolute { value } else { base + value })
    }
}

impl FilterHeader {
    fn read(bools: &mut Bools<'_>, segmentation: Option<&Segmentation>) -> Self {
        let is_simple = bools.flag();
        let level = i32::from(bools.number(6));
        let sharpness = bools.number(3);

        let (mut of_frames, mut of_modes) = ([0; 4], [0; 4]);
        if bools.flag() && bools.flag() {
            of_frames = [(); 4].map(|()| bools.optional(6));
            of_modes = [(); 4].map(|()| bools.optional(6));
        }

        let levels =
            segmentation.map_or([level; SEGMENTS], |own| own.applied(level, own.filter_levels));
        // A level of 0 in the header turns the filter off, whatever the segments say.
        let levels = if level == 0 { [0; SEGMENTS] } else { levels };
        let deltas = if level == 0 { [0; 2] } else { [of_frames[0], of_modes[0]] };
        Self { is_simple, levels, sharpness, deltas }
    }
}

fn read_quantizers(
    bools: &mut Bools<'_>,
    segmentation: Option<&Segmentation>,
) -> [Quantizer; SEGMENTS] {
    let base = i32::from(bools.number(7));
    let [y1_dc, y2_dc, y2_ac, uv_dc, uv_ac] = [(); 5].map(|()| bools.optional(4));

    let indexes = segmentation.map_or([base; SEGMENTS], |own| own.applied(base, own.quantizers));
    indexes.map(|index| Quantizer {
        y1: [dc_step(index + y1_dc, 127), ac_step(index)],
        y2: [2 * dc_step(index + y2_dc, 127), (ac_step(index + y2_ac) * 155 / 100).max(8)],
        uv: [dc_step(index + uv_dc, 117), ac_step(index + uv_ac)],
    })
}

fn dc_step(index: i32, most: i32) -> i32 {
    DC_STEPS[index.clamp(0, most) as usize].into()
}

fn ac_step(index: i32) -> i32 {
    AC_STEPS[index.clamp(0, 127) as usize].into()
}

fn read_probabilities(bools: &mut Bools<'_>) -> Box<PlacedProbabilities> {
    let mut by_band: TokenProbabilities = TOKEN_PROBABILITIES;
    for kind in 0..KINDS {
        for band in 0..BANDS {
            for context in 0..CONTEXTS {
                for decision in 0..DECISIONS {
                    if bools.bool(UPDATE_PROBABILITIES[kind][band][context][decision]) {
                        by_band[kind][band][context][decision] = bools.number(8);
                    }
                }
            }
        }
    }

    let mut placed = Box::new([[[[0; 16]; 4]; BAND_OF.len()]; KINDS]);
    for (places, bands) in placed.iter_mut().zip(&by_band) {
        for (place, band) in places.iter_mut().zip(BAND_OF) {
            for (row, decisions) in place.iter_mut().zip(&bands[usize::from(band)]) {
                row[..DECISIONS].copy_from_slice(decisions);
            }
        }
    }
    placed
}

/// Splits the coefficient data into partitions. Missing partitions are empty.
fn split_partitions(bytes: &[u8], count: usize) -> Vec<Bools<'_>> {
    let (sizes, mut rest) = bytes.split_at_checked(3 * (count - 1)).unwrap_or((bytes, &[]));
    let mut partitions: Vec<_> = sizes
        .as_chunks()
        .0
        .iter()
        .map(|[low, middle, high]| {
            let size = u32::from_le_bytes([*low, *middle, *high, 0]) as usize;
            let (partition, later) = rest.split_at_checked(size).unwrap_or((rest, &[]));
            rest = later;
            Bools::new(partition)
        })
        .collect();

    partitions.push(Bools::new(rest));
    partitions.resize(count, Bools::new(&[]));
    partitions
}
