//! The alpha plane of a lossy picture (RFC 9649, section 2.7.1.2).

use std::ops::ControlFlow;

use super::{Dimensions, lossless};

/// The storage methods of the plane.
const RAW: u8 = 0;
const LOSSLESS: u8 = 1;

/// Decodes the alpha plane for this picture `size`, row by row. Alpha is stored before the picture. A
/// truncated plane therefore means that the picture is missing, and returns an error.
pub(super) fn decode(chunk: &[u8], size: Dimensions) -> Result<Vec<u8>, &'static str> {
    let (header, data) = chunk.split_first().ok_or("alpha without a header")?;
    let (width, height) = (size.width as usize, size.height as usize);

    let mut plane = match header & 3 {
        RAW => data.get(..width * height).ok_or("alpha is cut")?.to_vec(),
        LOSSLESS => decode_lossless(data, size)?,
        _ => return Err("alpha in an unknown form"),
    };
    unfilter(&mut plane, width, header >> 2 & 3);
    Ok(plane)
}

/// Decodes a plane that is stored as the green channel of a lossless picture without a header.
fn decode_lossless(data: &[u8], size: Dimensions) -> Result<Vec<u8>, &'static str> {
    let mut plane = Vec::with_capacity(size.width as usize * size.height as usize);
    let rows = lossless::Stream::headless(data, size).rows(|row| {
        plane.extend(row.iter().map(|pixel| (pixel >> 8) as u8));
        ControlFlow::Continue(())
    })?;
    if rows == size.height { Ok(plane) } else { Err("alpha is cut") }
}

/// Turns differences into values, with the filter from the header: 0 none, 1 to the left, 2 above, 3 by the
/// slope.
fn unfilter(plane: &mut [u8], width: usize, filter: u8) {
    if filter == 0 || width == 0 {
        return;
    }

    let mut above: &mut [u8] = &mut [];
    for row in plane.chunks_exact_mut(width) {
        if above.is_empty() {
            add_left(row, 0);
        } else {
            match filter {
                1 => add_left(row, above[0]),
                2 => add_above(row, above),
                _ => add_slope(row, above),
            }
        }
        above = row;
    }
}

fn add_left(row: &mut [u8], before: u8) {
    let mut left = before;
    for value in row {
        *value = value.wrapping_add(left);
        left = *value;
    }
}

fn add_above(row: &mut [u8], above: &[u8]) {
    for (value, above) in row.iter_mut().zip(above) {
        *value = value.wrapping_add(*above);
    }
}

fn add_slope(row: &mut [u8], above: &[u8]) {
    let (mut left, mut corner) = (above[0], above[0]);
    for (value, above) in row.iter_mut().zip(above) {
        let predicted = i16::from(left) + i16::from(*above) - i16::from(corner);
        *value = value.wrapping_add(predicted.clamp(0, 255) as u8);
        (left, corner) = (*value, *above);
    }
}
