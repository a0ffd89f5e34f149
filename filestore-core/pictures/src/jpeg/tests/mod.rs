//! The decoder against what the test encoder wrote, and against zune-jpeg.

use std::f64::consts::PI;

use proptest::prelude::*;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;

use self::encoder::{Coefficients, Quantization, Recipe, Written, progressive, sequential, write};
use super::Jpeg;
use super::decoder::Decoder;
use super::huffman::END;
use super::markers::{ZIGZAG, survey};
use super::scale::{LUMINANCE_TENTHS, Part, parts};
use crate::Dimensions;
use crate::geometry::{Geometry, Rectangle};
use crate::pixels::{InkModel, Model};

pub(crate) mod damage;
mod encoder;

/// Every sampling that cameras and programs write, by the names they have, and some they do not.
const SAMPLINGS: [(&str, &[(u32, u32)]); 15] = [
    ("grey", &[(1, 1)]),
    ("grey with sampling factors", &[(2, 2)]),
    ("4:4:4", &[(1, 1), (1, 1), (1, 1)]),
    ("4:2:2", &[(2, 1), (1, 1), (1, 1)]),
    ("4:2:0", &[(2, 2), (1, 1), (1, 1)]),
    ("4:4:0", &[(1, 2), (1, 1), (1, 1)]),
    ("4:1:1", &[(4, 1), (1, 1), (1, 1)]),
    ("4:1:0", &[(4, 2), (1, 1), (1, 1)]),
    ("by thirds", &[(3, 2), (2, 1), (1, 2)]),
    ("chrominance denser than luminance", &[(1, 1), (2, 2), (2, 2)]),
    ("one of chrominance denser", &[(1, 1), (2, 1), (1, 1)]),
    ("luminance denser across, chrominance down", &[(4, 1), (1, 4), (1, 1)]),
    ("four inks", &[(1, 1), (1, 1), (1, 1), (1, 1)]),
    ("four inks, two of them sparse", &[(2, 2), (1, 1), (1, 1), (2, 2)]),
    ("four inks, the last sparse", &[(2, 1), (2, 1), (2, 1), (1, 1)]),
];

/// The meaning of so many components.
fn model(components: usize) -> Model {
    match components {
        1 => Model::Grey,
        3 => Model::YCbCr,
        _ => Model::Inks(InkModel::Ycck),
    }
}

fn recipe(
    size: (u32, u32),
    sampling: &[(u32, u32)],
    is_progressive: bool,
    restart_interval: u32,
) -> Recipe {
    let scans = if is_progressive { progressive } else { sequential };
    Recipe {
        width: size.0,
        height: size.1,
        sampling: sampling.to_vec(),
        progressive: is_progressive,
        // Too coarse for a refinement to be left out.
        finest: 20,
        restart_interval,
        scans: scans(sampling.len()),
    }
}

fn geometry(left: u32, top: u32, size: (u32, u32), target: (u32, u32)) -> Geometry {
    Geometry {
        crop: Rectangle { left, top, width: size.0, height: size.1 },
        target: Dimensions { width: target.0, height: target.1 },
    }
}

/// The whole picture as large as luminance at `eighths`/8 is enough for.
fn whole(size: (u32, u32), eighths: u32) -> Geometry {
    let target = |side: u32| (side * eighths * 10 / (8 * LUMINANCE_TENTHS)).max(1);
    geometry(0, 0, size, (target(size.0), target(size.1)))
}

/// What is decoded of `file`, if anything is.
fn decode(file: &[u8], wanted: &[Geometry]) -> Option<(Vec<Part>, Vec<Vec<u8>>)> {
    let segments = survey(file).ok()?;
    let frame = segments.frame.as_ref()?;
    let model = model(frame.components.len());
    let parts = parts(frame, model, wanted);
    let samples = Decoder::new(frame, model, &parts, &segments, file).run(&|| false).ok()??;
    Some((parts, samples))
}

/// The N×N samples of a block, by the definition of the transform.
fn samples_of(block: &[i32; END], quantization: &Quantization, n: usize) -> Vec<f64> {
    let basis = |at: usize, frequency: usize| {
        let weight = if frequency == 0 { 0.125f64.sqrt() } else { 0.5 };
        weight * ((2 * at + 1) as f64 * frequency as f64 * PI / (2 * n) as f64).cos()
    };
    let sample = |x: usize, y: usize| {
        let shown = (0..END).filter_map(|at| {
            let (u, v) = (usize::from(ZIGZAG[at] % 8), usize::from(ZIGZAG[at] / 8));
            let value = f64::from(block[at] * quantization[at]);
            (u < n && v < n && block[at] != 0).then(|| value * basis(x, u) * basis(y, v))
        });
        (128.0 + shown.sum::<f64>()).clamp(0.0, 255.0)
    };
    (0..n * n).map(|at| sample(at % n, at / n)).collect()
}

/// The furthest that `samples` are from what `component` shows in `part`.
fn furthest(
    component: &Coefficients,
    quantization: &Quantization,
    part: Part,
    samples: &[u8],
) -> f64 {
    let n = u32::from(part.n);
    assert_eq!(samples.len(), (part.width * part.height) as usize, "{part:?}");
    let mut furthest = 0.0f64;
    for y in part.rows.0..part.rows.1 {
        for x in part.columns.0..part.columns.1 {
            let block = &component.blocks[(y * component.blocks_across + x) as usize];
            for (at, expected) in (0..).zip(samples_of(block, quantization, n as usize)) {
                let (left, top) =
                    ((x - part.columns.0) * n + at % n, (y - part.rows.0) * n + at / n);
                if left < part.width && top < part.height {
                    let seen = f64::from(samples[(top * part.width + left) as usize]);
                    furthest = furthest.max((seen - expected).abs());
                }
            }
        }
    }
    furthest
}

fn check_all(written: &Written, wanted: &[Geometry], what: &str) {
    let (parts, samples) = decode(&written.bytes, wanted).unwrap();
    for ((component, part), samples) in written.components.iter().zip(parts).zip(samples) {
        let furthest = furthest(component, &written.quantization, part, &samples);
        // Rounding alone.
        assert!(furthest < 0.52, "{what}, {part:?}: {furthest}");
    }
}

#[test]
fn every_sampling_and_scale_shows_what_was_written() {
    for (name, sampling) in SAMPLINGS {
        for is_progressive in [false, true] {
            let size = (75, 53);
            let written = write(&recipe(size, sampling, is_progressive, 0));
            for eighths in 1..=8 {
                let what = format!("{name}, progressive: {is_progressive}, {eighths}/8");
                check_all(&written, &[whole(size, eighths)], &what);
            }
        }
    }
}

#[test]
fn rgb_and_inks_are_decoded_as_large_as_luminance() {
    let size = (75, 53);
    for (model, components) in [(Model::Rgb, 3), (Model::Inks(InkModel::Cmyk), 4)] {
        for is_progressive in [false, true] {
            let sampling = vec![(1, 1); components];
            let written = write(&recipe(size, &sampling, is_progressive, 0));
            let jpeg = Jpeg::survey(&written.bytes).unwrap();
            let planes = jpeg.decode(model, &[whole(size, 4)], &|| false).unwrap().planes;
            let part = parts(jpeg.segments.frame.as_ref().unwrap(), model, &[whole(size, 4)])[0];
            assert_eq!((part.n, planes.len()), (4, components));
            for (component, plane) in written.components.iter().zip(planes) {
                let off = furthest(component, &written.quantization, part, &plane.samples.data);
                assert!(off < 0.52, "{model:?}, progressive: {is_progressive}: {off}");
            }
        }
    }
}

#[test]
fn the_encoder_of_these_tests_writes_what_another_decoder_reads() {
    for is_progressive in [false, true] {
        for restart_interval in [0, 3] {
            let size = (75, 53);
            let sampling = [(1, 1); 3];
            let written = write(&recipe(size, &sampling, is_progressive, restart_interval));
            let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::YCbCr);
            let cursor = ZCursor::new(&written.bytes);
            let seen = zune_jpeg::JpegDecoder::new_with_options(cursor, options).decode().unwrap();
            // Luminance alone: chrominance is decoded at half the size.
            let (_, samples) = decode(&written.bytes, &[whole(size, 8)]).unwrap();
            let furthest =
                seen.chunks(3).zip(&samples[0]).map(|(pixel, y)| pixel[0].abs_diff(*y)).max();
            assert!(furthest <= Some(2), "progressive: {is_progressive}: {furthest:?}");
        }
    }
}

#[test]
fn refinements_below_a_level_are_left_out_and_hardly_missed() {
    let size = (75, 53);
    let mut written = write(&Recipe { finest: 1, ..recipe(size, &[(1, 1); 3], true, 0) });
    let (parts, samples) = decode(&written.bytes, &[whole(size, 2)]).unwrap();
    for ((component, part), samples) in written.components.iter().zip(&parts).zip(&samples) {
        let furthest = furthest(component, &written.quantization, *part, samples);
        assert!(furthest < 2.5, "{part:?}: {furthest}");
    }
    let good = decode(&written.bytes, &[whole(size, 8)]).unwrap().1;
    // Nonsense in the data of a refinement changes nothing: it is not read.
    let segments = survey(&written.bytes).unwrap();
    let refinements: Vec<_> = segments
        .scans()
        .filter(|scan| scan.high > 0 && scan.band.start > 0)
        .map(|scan| scan.data.clone())
        .collect();
    assert_eq!(refinements.len(), 4);
    for range in refinements {
        written.bytes[range].fill(0xFE);
    }
    assert_eq!(decode(&written.bytes, &[whole(size, 2)]).unwrap().1, samples);
    assert_ne!(decode(&written.bytes, &[whole(size, 8)]).unwrap().1, good, "read at full size");
}

#[test]
fn components_in_scans_of_their_own_show_the_same() {
    let mut recipe = recipe((75, 53), &[(2, 2), (1, 1), (1, 1)], false, 0);
    recipe.scans = vec![(vec![0], 0, 63, 0, 0), (vec![2], 0, 63, 0, 0), (vec![1], 0, 63, 0, 0)];
    for restart_interval in [0, 4] {
        recipe.restart_interval = restart_interval;
        check_all(&write(&recipe), &[whole((75, 53), 3)], "one scan each");
    }
}

#[test]
fn a_progressive_picture_without_refinements_shows_the_same() {
    let mut recipe = recipe((75, 53), &[(2, 1), (1, 1), (1, 1)], true, 0);
    recipe.scans = vec![(vec![0, 1, 2], 0, 0, 0, 0)];
    recipe
        .scans
        .extend((0..3).flat_map(|one| [(vec![one], 1, 9, 0, 0), (vec![one], 10, 63, 0, 0)]));
    let written = write(&recipe);
    for eighths in 1..=8 {
        check_all(&written, &[whole((75, 53), eighths)], &format!("{eighths}/8"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_part_of_any_picture_shows_what_was_written(
        size in (1u32..120, 1u32..90),
        sampling in 0..SAMPLINGS.len(),
        is_progressive: bool,
        restart_interval in 0u32..9,
        crops in prop::collection::vec(((0.0..1.0, 0.0..1.0), (0.0..1.0, 0.0..1.0), 1u32..=8), 1..3),
    ) {
        let (name, sampling) = SAMPLINGS[sampling];
        let written = write(&recipe(size, sampling, is_progressive, restart_interval));
        let within = |at: f64, length: u32| ((at * f64::from(length)) as u32).min(length - 1);
        let wanted: Vec<_> = crops
            .into_iter()
            .map(|((left, top), (width, height), eighths)| {
                let (left, top) = (within(left, size.0), within(top, size.1));
                let crop = (within(width, size.0 - left) + 1, within(height, size.1 - top) + 1);
                let target = ((crop.0 * eighths / 8).max(1), (crop.1 * eighths / 8).max(1));
                geometry(left, top, crop, target)
            })
            .collect();
        check_all(&written, &wanted, &format!("{name} {size:?} {wanted:?}"));
    }

    #[test]
    fn a_damaged_file_never_panics(
        sampling in 0..SAMPLINGS.len(),
        is_progressive: bool,
        restart_interval in 0u32..5,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        eighths in 1u32..=8,
    ) {
        let size = (61, 47);
        let mut written = write(&recipe(size, SAMPLINGS[sampling].1, is_progressive, restart_interval));
        for (at, value) in damage {
            let at = at.index(written.bytes.len());
            written.bytes[at] = value;
        }
        // The frame's size may have changed, as it may not between a file's header and its decoding.
        if survey(&written.bytes).is_ok_and(|segments| {
            segments.frame.is_some_and(|frame| {
                (frame.width, frame.height) == size
                    && matches!(frame.components.len(), 1 | 3 | 4)
                    && frame.is_regular(model(frame.components.len()))
            })
        }) {
            decode(&written.bytes, &[whole(size, eighths)]);
        }
    }
}

#[test]
fn a_file_cut_at_any_byte_shows_what_is_there() {
    for (is_progressive, restart_interval) in [(false, 0), (false, 2), (true, 0), (true, 3)] {
        let size = (48, 40);
        let written =
            write(&recipe(size, &[(2, 2), (1, 1), (1, 1)], is_progressive, restart_interval));
        let (_, good) = decode(&written.bytes, &[whole(size, 4)]).unwrap();
        let mut same_before = 0;
        for cut in 0..written.bytes.len() {
            let Some((_, seen)) = decode(&written.bytes[..cut], &[whole(size, 4)]) else {
                continue;
            };
            let same = seen[0].iter().zip(&good[0]).filter(|(seen, good)| seen == good).count();
            if !is_progressive {
                assert!(same + 16 >= same_before, "less to see with {cut} bytes");
            }
            same_before = same;
        }
        assert!(same_before > good[0].len() / 2);
    }
}

#[test]
fn a_broken_interval_costs_only_itself() {
    let size = (128, 64);
    let written = write(&recipe(size, &[(1, 1)], false, 16));
    let (_, good) = decode(&written.bytes, &[whole(size, 8)]).unwrap();
    let mut bytes = written.bytes.clone();
    // The second row of blocks: between the first two markers.
    let markers: Vec<_> = (0..bytes.len() - 1)
        .filter(|at| bytes[*at] == 0xFF && (0xD0..0xD8).contains(&bytes[at + 1]))
        .collect();
    for byte in &mut bytes[markers[0] + 2..markers[1]] {
        *byte = 0xFE;
    }
    let (_, seen) = decode(&bytes, &[whole(size, 8)]).unwrap();
    let row = 128 * 8;
    assert_eq!(seen[0][..row], good[0][..row]);
    assert_ne!(seen[0][row..2 * row], good[0][row..2 * row]);
    assert_eq!(seen[0][2 * row..], good[0][2 * row..]);
}

#[test]
fn nothing_is_read_once_time_is_over() {
    let written = write(&recipe((64, 64), &[(1, 1)], true, 0));
    let segments = survey(&written.bytes).unwrap();
    let frame = segments.frame.as_ref().unwrap();
    let parts = parts(frame, Model::Grey, &[whole((64, 64), 8)]);
    let decoder = Decoder::new(frame, Model::Grey, &parts, &segments, &written.bytes);
    assert!(decoder.run(&|| true).is_err());
}
