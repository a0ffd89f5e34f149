//! The loop filter (RFC 6386, section 15), which smooths the edges between blocks.
//!
//! In a still picture, no sample is predicted from filtered samples. The decoder can therefore filter a whole
//! row of macroblocks after decoding it, or skip the filter.

use super::frame::{FilterHeader, SEGMENTS};
use super::output::Output;

/// The strength of the filter in a macroblock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Strength {
    /// The maximum difference across an inner edge that is smoothed. 0 means no filter.
    limit: i16,
    /// The maximum difference between neighbours on one side.
    inner_limit: i16,
    /// The minimum difference at an edge that counts as a real edge.
    real_edge: i16,
}

/// The strengths for all macroblocks, by segment and by prediction mode (whole or subblocks).
#[derive(Debug)]
pub(super) struct Strengths {
    pub(super) is_simple: bool,
    by_segment: [[Strength; 2]; SEGMENTS],
}

/// The filter step for one macroblock.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Step {
    pub(super) strength: Strength,
    /// True if the filter also smooths the edges between subblocks.
    pub(super) has_inner_edges: bool,
}

impl Strengths {
    pub(super) fn new(header: FilterHeader) -> Self {
        let by_segment = header.levels.map(|level| {
            [header.deltas[0], header.deltas[0] + header.deltas[1]]
                .map(|delta| Strength::new((level + delta).clamp(0, 63) as i16, header.sharpness))
        });
        Self { is_simple: header.is_simple, by_segment }
    }

    /// Returns the strength for a macroblock. `by_subblocks` is 1 if its subblocks are predicted separately.
    pub(super) fn of(&self, segment: usize, by_subblocks: usize) -> Strength {
        self.by_segment[segment % SEGMENTS][by_subblocks % 2]
    }
}

impl Strength {
    fn new(level: i16, sharpness: u8) -> Self {
        if level == 0 {
            return Self::default();
        }

        let mut inner_limit = match sharpness {
            0 => level,
            1..=4 => level >> 1,
            _ => level >> 2,
        };
        if sharpness > 0 {
            inner_limit = inner_limit.min(9 - i16::from(sharpness));
        }
        let inner_limit = inner_limit.max(1);
        let real_edge = match level {
            40.. => 2,
            15.. => 1,
            _ => 0,
        };
        Self { limit: 2 * level + inner_limit, inner_limit, real_edge }
    }
}

/// Filters the macroblocks of `row`, counted within the planes, with one step for each.
pub(super) fn filter_row(planes: &mut [Output; 3], row: usize, steps: &[Step], is_simple: bool) {
    let [y, cb, cr] = planes;
    for (column, step) in steps.iter().enumerate() {
        if step.strength.limit == 0 {
            continue;
        }

        let place = (row, column);
        if is_simple {
            filter_macroblock::<16>(y, place, *step, simple);
        } else {
            filter_macroblock::<16>(y, place, *step, normal);
            filter_macroblock::<8>(cb, place, *step, normal);
            filter_macroblock::<8>(cr, place, *step, normal);
        }
    }
}

/// Samples across an edge, for each of `L` positions along it: four before the edge, four behind it.
type Across<const L: usize> = [[i16; L]; 8];

/// The kind of an edge in the block structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    OfMacroblock,
    OfSubblock,
}

type Filter<const L: usize> = fn(&mut Across<L>, Strength, Edge);

#[inline(always)]
fn filter_macroblock<const L: usize>(
    plane: &mut Output,
    (row, column): (usize, usize),
    step: Step,
    filter: Filter<L>,
) {
    let (left, top) = (column * L, row * L);
    let inner = if step.has_inner_edges { L } else { 0 };

    if column > 0 {
        vertical_edge(plane, (left, top), step.strength, Edge::OfMacroblock, filter);
    }
    for offset in (4..inner).step_by(4) {
        vertical_edge(plane, (left + offset, top), step.strength, Edge::OfSubblock, filter);
    }
    if row > 0 {
        horizontal_edge(plane, (left, top), step.strength, Edge::OfMacroblock, filter);
    }
    for offset in (4..inner).step_by(4) {
        horizontal_edge(plane, (left, top + offset), step.strength, Edge::OfSubblock, filter);
    }
}

#[inline(always)]
fn vertical_edge<const L: usize>(
    plane: &mut Output,
    (x, y): (usize, usize),
    strength: Strength,
    edge: Edge,
    filter: Filter<L>,
) {
    let stride = plane.width;
    let Some(samples) = plane.samples.get_mut(y * stride + x - 4..) else { return };
    let mut across = [[0; L]; 8];
    for (place, line) in samples.chunks(stride).take(L).enumerate() {
        let Some(line) = line.first_chunk::<8>() else { return };
        for (across, sample) in across.iter_mut().zip(line) {
            across[place] = i16::from(*sample);
        }
    }

    filter(&mut across, strength, edge);
    for (place, line) in samples.chunks_mut(stride).take(L).enumerate() {
        let Some(line) = line.first_chunk_mut::<8>() else { return };
        for (across, sample) in across.iter().zip(line) {
            *sample = across[place] as u8;
        }
    }
}

#[inline(always)]
fn horizontal_edge<const L: usize>(
    plane: &mut Output,
    (x, y): (usize, usize),
    strength: Strength,
    edge: Edge,
    filter: Filter<L>,
) {
    let stride = plane.width;
    let Some(samples) = plane.samples.get_mut((y - 4) * stride + x..) else { return };
    let mut across = [[0; L]; 8];
    for (across, line) in across.iter_mut().zip(samples.chunks(stride)) {
        let Some(line) = line.first_chunk::<L>() else { return };
        for (across, sample) in across.iter_mut().zip(line) {
            *across = i16::from(*sample);
        }
    }

    filter(&mut across, strength, edge);
    for (across, line) in across.iter().zip(samples.chunks_mut(stride)) {
        let Some(line) = line.first_chunk_mut::<L>() else { return };
        for (across, sample) in across.iter().zip(line) {
            *sample = *across as u8;
        }
    }
}

/// Clamps to the range of a signed byte.
#[inline(always)]
fn clamp(value: i16) -> i16 {
    value.clamp(-128, 127)
}

/// Returns the limit for four times the difference at the edge plus the difference next to it.
#[inline(always)]
fn edge_limit(strength: Strength, edge: Edge) -> i16 {
    let limit = if edge == Edge::OfMacroblock { strength.limit + 4 } else { strength.limit };
    2 * limit + 1
}

#[inline(always)]
fn simple<const L: usize>(across: &mut Across<L>, strength: Strength, edge: Edge) {
    let [_, _, p1, p0, q0, q1, _, _] = across;
    let limit = edge_limit(strength, edge);
    for place in 0..L {
        let (b1, b0, a0, a1) = (p1[place], p0[place], q0[place], q1[place]);
        let is_filtered = -i16::from(4 * (b0 - a0).abs() + (b1 - a1).abs() <= limit);
        let a = clamp(clamp(b1 - a1) + 3 * (a0 - b0)) & is_filtered;
        p0[place] = (b0 + (clamp(a + 3) >> 3)).clamp(0, 255);
        q0[place] = (a0 - (clamp(a + 4) >> 3)).clamp(0, 255);
    }
}

#[inline(always)]
fn normal<const L: usize>(across: &mut Across<L>, strength: Strength, edge: Edge) {
    let [p3, p2, p1, p0, q0, q1, q2, q3] = across;
    let limit = edge_limit(strength, edge);
    let inner = strength.inner_limit;
    for place in 0..L {
        let (b3, b2, b1, b0) = (p3[place], p2[place], p1[place], p0[place]);
        let (a0, a1, a2, a3) = (q0[place], q1[place], q2[place], q3[place]);
        let most = (b3 - b2).abs().max((b2 - b1).abs()).max((a3 - a2).abs()).max((a2 - a1).abs());
        let near = (b1 - b0).abs().max((a1 - a0).abs());
        // Masks, all ones or none: without branches the loop becomes vector instructions.
        let is_filtered = -i16::from(4 * (b0 - a0).abs() + (b1 - a1).abs() <= limit)
            & -i16::from(most.max(near) <= inner);
        let is_real = -i16::from(near > strength.real_edge);
        let is_smooth = !is_real;

        let outer = clamp(b1 - a1);
        if edge == Edge::OfMacroblock {
            let a = clamp(outer + 3 * (a0 - b0)) & is_filtered;
            let real = a & is_real;
            let (behind, before) = (clamp(real + 4) >> 3, clamp(real + 3) >> 3);
            let smooth = a & is_smooth;
            let near = (27 * smooth + 63) >> 7;
            let middle = (18 * smooth + 63) >> 7;
            let far = (9 * smooth + 63) >> 7;
            p2[place] = (b2 + far).clamp(0, 255);
            p1[place] = (b1 + middle).clamp(0, 255);
            p0[place] = (b0 + near + before).clamp(0, 255);
            q0[place] = (a0 - near - behind).clamp(0, 255);
            q1[place] = (a1 - middle).clamp(0, 255);
            q2[place] = (a2 - far).clamp(0, 255);
        } else {
            let a = clamp((outer & is_real) + 3 * (a0 - b0)) & is_filtered;
            let (behind, before) = (clamp(a + 4) >> 3, clamp(a + 3) >> 3);
            let beside = ((behind + 1) >> 1) & is_smooth;
            p1[place] = (b1 + beside).clamp(0, 255);
            p0[place] = (b0 + before).clamp(0, 255);
            q0[place] = (a0 - behind).clamp(0, 255);
            q1[place] = (a1 - beside).clamp(0, 255);
        }
    }
}
