//! The ideal of a variant: the whole picture, decoded at full size, resized by the plain definition of
//! Lanczos3 in 32-bit floats.
//!
//! The decoder is sharp's own (libjpeg-turbo, no reduced scales, LittleCMS for profiles) and the
//! resize is neither side's, so nothing of ours is measured by itself. The space is the same as
//! both sides resize in, sRGB as stored.
//!
//! Both are measured by a reference of their own geometry: sharp crops whole pixels of the *small*
//! picture, which may lie half a pixel beside ours, and neither is wrong. The rest of a shift
//! (sharp's reduced decoding moves some pictures by most of a pixel) is found by least squares and
//! the reference moved along, on both sides: nobody sees it, but DSSIM would count nothing else.

use std::f64::consts::PI;
use std::io::Cursor;
use std::path::Path;

use filestore_pictures::Fit;
use image::{ImageReader, RgbImage};
use serde_json::{Value, json};

use super::Outcome;
use super::peer::Sharp;

/// A whole picture: RGB, 8 bits, rows from the top.
pub(crate) struct Full {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Full {
    /// Decodes `photo` with sharp, upright and in sRGB; `scratch` is overwritten.
    pub(crate) fn decode(sharp: &mut Sharp, photo: &Path, scratch: &Path) -> Outcome<Self> {
        let answer = sharp.ask(&json!({"op": "pixels", "path": photo, "out": scratch}))?;
        let (width, height) = (side(&answer["width"])?, side(&answer["height"])?);
        let rgb = std::fs::read(scratch)?;
        assert_eq!(rgb.len(), width * height * 3, "three bytes a pixel");
        Ok(Self { width, height, rgb })
    }
}

/// The part of the whole picture that a variant shows, and its size in pixels.
pub(crate) struct Place {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Place {
    /// Finds the part as our plan puts it: a square of whole pixels of the original, or all of it.
    pub(crate) fn ours(full: &Full, webp: &[u8], fit: Fit) -> Outcome<Self> {
        let (columns, rows) = size_of(webp)?;
        let side = full.width.min(full.height);
        let (left, top, width, height) = match fit {
            Fit::Cover => ((full.width - side) / 2, (full.height - side) / 2, side, side),
            Fit::Inside => (0, 0, full.width, full.height),
        };
        let [left, top, width, height] = [left, top, width, height].map(float);
        Ok(Self { left, top, width, height, columns, rows })
    }

    /// Finds the part as sharp puts it: scaled by one factor about the centre to a whole number of pixels, then
    /// cut at whole pixels, the odd one on the left (`CalculateCrop` in its `common.cc`).
    pub(crate) fn of_sharp(full: &Full, webp: &[u8], side: u32, fit: Fit) -> Outcome<Self> {
        let (columns, rows) = size_of(webp)?;
        let (longest, shortest) = (full.width.max(full.height), full.width.min(full.height));
        let factor = match fit {
            Fit::Cover => float(shortest) / f64::from(side).min(float(shortest)),
            Fit::Inside => float(longest) / f64::from(side),
        };

        Ok(Self {
            left: start_in_sharp(full.width, columns, factor),
            top: start_in_sharp(full.height, rows, factor),
            width: float(columns) * factor,
            height: float(rows) * factor,
            columns,
            rows,
        })
    }

    /// Moves the part to the place where `seen` shows it.
    pub(crate) fn aligned(mut self, full: &Full, seen: &RgbImage) -> Self {
        for _ in 0..3 {
            let (dx, dy) = shift(&self.picture(full), seen);
            if dx.hypot(dy) < 0.04 {
                break;
            }
            self.left += dx * self.width / float(self.columns);
            self.top += dy * self.height / float(self.rows);
        }
        self
    }

    /// Makes the reference picture of this part.
    pub(crate) fn picture(&self, full: &Full) -> RgbImage {
        let across = taps(self.left, self.width, self.columns, full.width);
        let down = taps(self.top, self.height, self.rows, full.height);

        let mut narrow = vec![0f32; full.height * self.columns * 3];
        let used = down[0].first..down.last().map_or(0, |tap| tap.first + tap.weights.len());
        for y in used {
            let row = &full.rgb[y * full.width * 3..][..full.width * 3];
            let out = &mut narrow[y * self.columns * 3..][..self.columns * 3];
            for (pixel, tap) in out.chunks_exact_mut(3).zip(&across) {
                for (source, weight) in row[tap.first * 3..].chunks_exact(3).zip(&tap.weights) {
                    for (sum, value) in pixel.iter_mut().zip(source) {
                        *sum += f32::from(*value) * weight;
                    }
                }
            }
        }

        let mut small = Vec::with_capacity(self.rows * self.columns * 3);
        for tap in &down {
            let mut row = vec![0f32; self.columns * 3];
            for (source, weight) in
                narrow[tap.first * self.columns * 3..].chunks(row.len()).zip(&tap.weights)
            {
                row.iter_mut().zip(source).for_each(|(sum, value)| *sum += value * weight);
            }
            small.extend(row.into_iter().map(to_byte));
        }

        let columns = u32::try_from(self.columns).expect("a variant's side");
        let rows = u32::try_from(self.rows).expect("a variant's side");
        RgbImage::from_raw(columns, rows, small).expect("all rows")
    }
}

fn side(answer: &Value) -> Outcome<usize> {
    Ok(answer.as_u64().and_then(|n| usize::try_from(n).ok()).ok_or("no size")?)
}

/// Returns the start of the part that sharp cuts along one side, in pixels of the whole picture.
fn start_in_sharp(side: usize, shown: usize, factor: f64) -> f64 {
    let scaled = (float(side) / factor).round();
    // Halves round up.
    let cut = ((scaled - float(shown)) / 2.0).round();
    float(side) / 2.0 + (cut - scaled / 2.0) * factor
}

/// Measures the pixels by which the content of `reference` lies further right and down than that of
/// `seen`: one step of Lucas and Kanade's method ("An iterative image registration technique", 1981) on
/// green, at most one pixel.
fn shift(reference: &RgbImage, seen: &RgbImage) -> (f64, f64) {
    let [mut xx, mut xy, mut yy, mut xd, mut yd] = [0.0; 5];
    for y in 1..reference.height().saturating_sub(1) {
        for x in 1..reference.width().saturating_sub(1) {
            let across = (green(reference, x + 1, y) - green(reference, x - 1, y)) / 2.0;
            let down = (green(reference, x, y + 1) - green(reference, x, y - 1)) / 2.0;
            let differs = green(seen, x, y) - green(reference, x, y);

            xx += across * across;
            xy += across * down;
            yy += down * down;
            xd += across * differs;
            yd += down * differs;
        }
    }

    let determinant = xx * yy - xy * xy;
    if determinant <= 1e-9 * xx * yy {
        return (0.0, 0.0);
    }
    let (right, below) = ((yy * xd - xy * yd) / determinant, (xx * yd - xy * xd) / determinant);
    (right.clamp(-1.0, 1.0), below.clamp(-1.0, 1.0))
}

fn green(picture: &RgbImage, x: u32, y: u32) -> f64 {
    f64::from(picture.get_pixel(x, y)[1])
}

/// The source pixels that make one target pixel.
struct Tap {
    first: usize,
    weights: Vec<f32>,
}

/// Weighs by Lanczos with three lobes, stretched by the scale, cut off and normalized at the
/// picture's edges.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positions within a picture, clamped to it"
)]
fn taps(start: f64, extent: f64, count: usize, len: usize) -> Vec<Tap> {
    let scale = extent / float(count);
    let reach = 3.0 * scale.max(1.0);

    let taps = (0..count).map(|index| {
        let center = start + (float(index) + 0.5) * scale;
        let first = (center - reach).floor().max(0.0) as usize;
        let end = ((center + reach).ceil() as usize).clamp(first + 1, len);
        let weights: Vec<_> =
            (first..end).map(|at| lanczos((float(at) + 0.5 - center) / scale.max(1.0))).collect();

        let sum: f64 = weights.iter().sum();
        Tap { first, weights: weights.iter().map(|weight| (weight / sum) as f32).collect() }
    });
    taps.collect()
}

fn lanczos(x: f64) -> f64 {
    if x.abs() < 1e-9 {
        1.0
    } else if x.abs() >= 3.0 {
        0.0
    } else {
        3.0 * (PI * x).sin() * (PI * x / 3.0).sin() / (PI * PI * x * x)
    }
}

fn size_of(webp: &[u8]) -> Outcome<(usize, usize)> {
    let (width, height) =
        ImageReader::new(Cursor::new(webp)).with_guessed_format()?.into_dimensions()?;
    Ok((usize::try_from(width)?, usize::try_from(height)?))
}

#[expect(clippy::cast_precision_loss, reason = "sides of a picture")]
fn float(n: usize) -> f64 {
    n as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a byte")]
fn to_byte(value: f32) -> u8 {
    value.round().clamp(0.0, 255.0) as u8
}
