//! Converts stored bytes to 8-bit samples.

use crate::pipeline::header::{Order, Predictor, TiffHeader, TiffModel};

/// Decodes the differences in a stored row of a strip or tile.
pub(super) fn undo_predictor(row: &mut [u8], tiff: TiffHeader) {
    let samples = tiff.samples_of_chunk();
    match (tiff.predictor, tiff.bits) {
        (Predictor::None, _) => {}
        (Predictor::Differences, 16) => add_up_wide::<2>(row, samples, tiff.order),
        (Predictor::Differences, 32) => add_up_wide::<4>(row, samples, tiff.order),
        (Predictor::Differences, _) => add_up(row, samples),
        (Predictor::FloatDifferences, _) => {
            add_up(row, samples);
            join_floats(row, tiff.order);
        }
    }
}

/// Adds the sample of the previous pixel to each sample.
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

/// Adds up samples of `BYTES` bytes in the file's order.
fn add_up_wide<const BYTES: usize>(row: &mut [u8], samples: usize, order: Order) {
    let row = row.as_chunks_mut::<BYTES>().0;
    for at in samples..row.len() {
        let sum = number(row[at], order).wrapping_add(number(row[at - samples], order));
        let bytes = sum.to_le_bytes();
        for (index, byte) in row[at].iter_mut().enumerate() {
            *byte = bytes[if order == Order::Little { index } else { BYTES - 1 - index }];
        }
    }
}

fn number<const BYTES: usize>(bytes: [u8; BYTES], order: Order) -> u32 {
    let sum = |sum: u32, byte: &u8| sum << 8 | u32::from(*byte);
    match order {
        Order::Little => bytes.iter().rev().fold(0, sum),
        Order::Big => bytes.iter().fold(0, sum),
    }
}

/// Joins the bytes of numbers. The row contains the most significant bytes of all numbers first.
fn join_floats(row: &mut [u8], order: Order) {
    let apart = row.to_vec();
    let count = row.len() / 4;
    for (at, float) in row.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let bytes = [0, 1, 2, 3].map(|weight| apart[weight * count + at]);
        *float = if order == Order::Big { bytes } else { [bytes[3], bytes[2], bytes[1], bytes[0]] };
    }
}

/// Collects the samples of row `y` of a band: `width` pixels side by side, 8 bits for each sample.
pub(super) fn of_row(band: &[u8], tiff: TiffHeader, y: usize, width: usize, samples: &mut Vec<u8>) {
    let row_bytes = usize::try_from(tiff.row_bytes()).expect("within the band");
    let part = row_bytes * tiff.rows_at_once() as usize;
    let (columns, across) = (tiff.chunks.size.width as usize, tiff.chunks.number.width as usize);
    let planes = if tiff.is_planar { tiff.samples } else { 1 };
    // Without the spare bytes at the end.
    let parts = band.chunks_exact(part.max(1)).take(across * planes);
    let rows = parts.map(|part| &part[y * row_bytes..][..row_bytes]);

    samples.clear();
    samples.reserve_exact(width * tiff.samples);
    if !tiff.is_planar {
        for (column, row) in rows.enumerate() {
            let pixels = columns.min(width - column * columns);
            push(row, tiff, pixels * tiff.samples, samples);
        }
        return;
    }

    // Each plane has whole rows. Here, samples are side by side.
    let mut planes = Vec::with_capacity(width * tiff.samples);
    for (number, row) in rows.enumerate() {
        let pixels = columns.min(width - number % across * columns);
        push(row, tiff, pixels, &mut planes);
    }
    samples.resize(planes.len(), 0);
    for (index, plane) in planes.chunks_exact(width).enumerate() {
        for (pixel, sample) in samples.chunks_exact_mut(tiff.samples).zip(plane) {
            pixel[index] = *sample;
        }
    }
}

/// Adds `count` samples of a stored row.
fn push(row: &[u8], tiff: TiffHeader, count: usize, samples: &mut Vec<u8>) {
    match (tiff.bits, tiff.is_float) {
        (8, _) => samples.extend_from_slice(&row[..count]),
        (16, _) => {
            let wide = row.as_chunks::<2>().0[..count].iter();
            samples.extend(wide.map(|bytes| from_16_bits(number(*bytes, tiff.order))));
        }
        (32, true) => {
            let floats = row.as_chunks::<4>().0[..count].iter();
            samples
                .extend(floats.map(|bytes| from_float(f32::from_bits(number(*bytes, tiff.order)))));
        }
        (bits, _) => {
            let factor = if tiff.model == Some(TiffModel::Palette) { 1 } else { scale(bits) };
            unpack(row, usize::try_from(bits).expect("below 8"), factor, count, samples);
        }
    }
}

/// Rounds 16 bits to 8.
pub(super) fn from_16_bits(sample: u32) -> u8 {
    u8::try_from((sample + 128) / 257).unwrap_or(u8::MAX)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a byte")]
fn from_float(sample: f32) -> u8 {
    (sample.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Returns the factor that converts the largest value of this many bits to 255.
fn scale(bits: u64) -> u8 {
    match bits {
        1 => 255,
        2 => 85,
        _ => 17,
    }
}

/// Unpacks samples of 1, 2 or 4 `bits`, from the highest bits.
fn unpack(row: &[u8], bits: usize, factor: u8, count: usize, samples: &mut Vec<u8>) {
    let each = 8 / bits;
    let mask = (1u8 << bits) - 1;
    samples.extend((0..count).map(|at| {
        let value = row[at / each] >> (8 - bits * (at % each + 1)) & mask;
        value.wrapping_mul(factor)
    }));
}
