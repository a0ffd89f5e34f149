//! Compares the decoder with itself: reduced, cropped, cut or damaged pictures with the whole picture.

use proptest::prelude::*;

use super::bools::Bools;
use super::decoder::{Decoded, Decoder};
use super::frame::Frame;
use super::output::Part;
use super::scale::{Parts, Wanted, most_samples, parts};
use super::tokens::Block;
use super::transform::{inverse, inverse_few, inverse_flat, inverse_means};
use super::{Dimensions, decode};
use crate::fixtures::photo;
use crate::geometry::{Geometry, Rectangle};
use crate::webp::Failure;
use crate::webp::tests::{lossy, lossy_chunk};

const SIZE: (u32, u32) = (150, 107);

fn size((width, height): (u32, u32)) -> Dimensions {
    Dimensions { width, height }
}

fn geometry(left: u32, top: u32, size: (u32, u32), target: (u32, u32)) -> Geometry {
    Geometry {
        crop: Rectangle { left, top, width: size.0, height: size.1 },
        target: Dimensions { width: target.0, height: target.1 },
    }
}

fn photograph() -> Vec<u8> {
    let file = lossy(SIZE, &photo(SIZE.0, SIZE.1), |config| config.quality = 70.0);
    lossy_chunk(&file).to_vec()
}

/// The samples of `parts`, without the loop filter.
fn unfiltered(bytes: &[u8], all: [Part; 3]) -> [Vec<u8>; 3] {
    let frame = Frame::read(bytes).unwrap();
    let parts = Parts { all, is_filtered: false };
    match Decoder::new(frame, &parts).run(&|| false) {
        Ok(Some(Decoded { samples, .. })) => samples,
        _ => panic!("late, or nothing came"),
    }
}

/// The parts of all macroblocks. Each macroblock is reduced to this number of samples on each side.
fn whole(reduction: usize) -> [Part; 3] {
    let (columns, rows) = (SIZE.0.div_ceil(16) as usize, SIZE.1.div_ceil(16) as usize);
    [16, 8, 8].map(|side| Part {
        side,
        reduction,
        columns: (0, columns),
        rows: (0, rows),
        width: columns * side / reduction,
        height: rows * side / reduction,
    })
}

#[test]
fn a_reduced_sample_is_the_mean_of_those_it_stands_for() {
    let bytes = photograph();
    let full = unfiltered(&bytes, whole(1));
    for reduction in [2, 4, 8] {
        let reduced = unfiltered(&bytes, whole(reduction));
        for ((full, reduced), part) in full.iter().zip(&reduced).zip(whole(reduction)) {
            let stride = part.width * reduction;
            for (at, sample) in reduced.iter().enumerate() {
                let (x, y) = (at % part.width * reduction, at / part.width * reduction);
                let square = (0..reduction * reduction)
                    .map(|at| full[(y + at / reduction) * stride + x + at % reduction]);
                let sum: usize = square.map(usize::from).sum();
                let area = reduction * reduction;
                assert_eq!(
                    usize::from(*sample),
                    (sum + area / 2) / area,
                    "{reduction} at {x}, {y}"
                );
            }
        }
    }
}

#[test]
fn a_part_has_the_samples_of_the_whole() {
    let bytes = photograph();
    let full = unfiltered(&bytes, whole(1));
    // Cut off at the right edge, and not at the bottom.
    let parts = [(16, 150), (8, 75), (8, 75)].map(|(side, last): (usize, usize)| Part {
        side,
        reduction: 1,
        columns: (3, 10),
        rows: (2, 5),
        width: last - 3 * side,
        height: 3 * side,
    });
    let samples = unfiltered(&bytes, parts);
    for (((samples, part), full), side) in samples.iter().zip(parts).zip(&full).zip([16, 8, 8]) {
        for (row, line) in samples.chunks(part.width).enumerate() {
            let start = (2 * side + row) * 10 * side + 3 * side;
            assert_eq!(line, &full[start..start + part.width], "row {row}");
        }
        assert_eq!(samples.len(), part.width * part.height);
    }
}

#[test]
fn rows_below_the_wanted_part_are_not_read() {
    let bytes = photograph();
    let top = [geometry(0, 0, (150, 20), (75, 10))];
    let shown = decode(&bytes, Wanted::Serving(&top), &|| false).unwrap();
    let rows = std::cell::Cell::new(0);
    decode(&bytes, Wanted::Serving(&top), &|| {
        rows.set(rows.get() + 1);
        false
    })
    .unwrap();
    // 20 pixels and a margin of 6.
    assert_eq!(rows.get(), 2);
    assert_eq!((shown.planes[0].width, shown.planes[0].height), (150, 32));
}

#[test]
fn the_filter_is_used_where_the_picture_is_shown_large() {
    let is_filtered = |target: (u32, u32)| {
        let wanted = [geometry(0, 0, (3000, 2000), target)];
        parts(size((3000, 2000)), Wanted::Serving(&wanted)).is_filtered
    };
    assert!(is_filtered((3000, 2000)) && is_filtered((751, 500)));
    assert!(!is_filtered((750, 500)) && !is_filtered((200, 133)));
}

#[test]
fn one_decode_serves_the_largest_of_all_that_is_wanted() {
    let small = geometry(0, 0, (4000, 4000), (200, 200));
    let large = geometry(0, 0, (4000, 4000), (1000, 1000));
    let parts = |wanted: &[Geometry]| parts(size((4000, 4000)), Wanted::Serving(wanted));
    assert_eq!(parts(&[small, large]), parts(&[large]));
    assert_eq!(parts(&[small]).all.map(|part| part.reduction), [8, 8, 8]);
    assert_eq!(parts(&[large]).all.map(|part| part.reduction), [2, 2, 2]);
}

#[test]
fn what_came_of_a_cut_picture_is_named_and_the_rest_repeats_it() {
    let bytes = photograph();
    let full = decode(&bytes, Wanted::Whole, &|| false).unwrap();
    assert_eq!(full.arrived, None);

    let mut arrived_before = 0;
    for length in (0..bytes.len()).step_by(5) {
        let cut = match decode(&bytes[..length], Wanted::Whole, &|| false) {
            Ok(cut) => cut,
            Err(failure) => {
                assert!(matches!(failure, Failure::Corrupt(_)));
                assert_eq!(arrived_before, 0, "{length} bytes");
                continue;
            }
        };

        let arrived = cut.arrived.map_or(SIZE.1, |arrived| arrived.end) as usize;
        assert!(arrived >= 16 && arrived >= arrived_before, "{arrived} rows of {length} bytes");
        arrived_before = arrived;
        // The filter of the next row changes up to three rows of what arrived.
        let same = 150 * (arrived - 3);
        let (seen, expected) = (&cut.planes[0].samples, &full.planes[0].samples);
        assert_eq!(seen[..same], expected[..same], "{length} bytes");
        let last = &seen[150 * (arrived - 1)..150 * arrived];
        assert!(seen[150 * arrived..].chunks(150).all(|row| row == last), "{length} bytes");
    }
    assert!(arrived_before > 80, "{arrived_before}");
}

#[test]
fn time_that_is_over_ends_the_work() {
    let late = decode(&photograph(), Wanted::Whole, &|| true);
    assert_eq!(late.err(), Some(Failure::Late));
}

#[test]
fn damage_never_panics_and_keeps_the_size() {
    let bytes = photograph();
    let mut random = fastrand::Rng::with_seed(11);
    let wanted = [geometry(20, 10, (100, 80), (10, 8))];
    for round in 0..600 {
        let mut damaged = bytes.clone();
        // The header often, since most of it decides about everything.
        let within = if round % 2 == 0 { 40 } else { damaged.len() };
        for _ in 0..random.usize(1..4) {
            damaged[random.usize(10..within)] = random.u8(..);
        }
        for wanted in [Wanted::Whole, Wanted::Serving(&wanted)] {
            if let Ok(components) = decode(&damaged, wanted, &|| false) {
                for plane in components.planes {
                    assert_eq!(plane.samples.len(), plane.width * plane.height);
                }
            }
        }
    }
}

#[test]
fn the_largest_coefficients_wrap_instead_of_panicking() {
    for value in [i16::MIN, i16::MAX] {
        inverse(&[value; 16]);
        inverse_few(&[value; 16]);
        inverse_flat(value);
        inverse_means(&[value; 16], &mut [[0; 16]; 24]);
    }
}

#[test]
fn a_sign_is_a_decision_of_one_half() {
    let mut random = fastrand::Rng::with_seed(5);
    let bytes: Vec<u8> = (0..4000).map(|_| random.u8(..)).collect();
    let (mut plain, mut quick) = (Bools::new(&bytes), Bools::new(&bytes));
    assert_eq!(plain.bool(90), quick.bool(90));
    for at in 1..8000 {
        plain.refill();
        quick.refill();
        let expected = if plain.next(128) { -at } else { at };
        assert_eq!(quick.signed(at), expected);
        let probability = random.u8(1..);
        assert_eq!(plain.next(probability), quick.next(probability), "decision {at}");
    }
    assert!(!plain.is_overdrawn());
}

#[test]
fn a_partition_is_overdrawn_once_more_was_taken_than_it_has() {
    let mut bools = Bools::new(&[0; 20]);
    let mut flags = 0;
    while !bools.is_overdrawn() {
        bools.flag();
        flags += 1;
    }
    // A flag takes one bit.
    assert!((160..=168).contains(&flags), "{flags}");
}

proptest! {
    #[test]
    fn the_quick_transforms_are_the_full_one(
        dc in -2000i16..2000,
        across in -2000i16..2000,
        down in -2000i16..2000,
    ) {
        let mut block: Block = [0; 16];
        block[0] = dc;
        prop_assert_eq!(inverse(&block), [[inverse_flat(dc); 4]; 4]);
        (block[1], block[4]) = (across, down);
        prop_assert_eq!(inverse(&block), inverse_few(&block));
    }

    #[test]
    fn parts_are_large_enough_and_memory_is_as_foretold(
        stored in (1u32..9000, 1u32..9000),
        target in 1u32..=1000,
        is_whole: bool,
    ) {
        let side = stored.0.min(stored.1);
        let crop = if is_whole { stored } else { (side, side) };
        let longest = crop.0.max(crop.1);
        let target = target.min(longest);
        let scaled = |side: u32| (side * target / longest).max(1);
        let (left, top) = ((stored.0 - crop.0) / 2, (stored.1 - crop.1) / 2);
        let wanted = [geometry(left, top, crop, (scaled(crop.0), scaled(crop.1)))];
        let wish = Wanted::Serving(&wanted);
        let Parts { all, is_filtered } = parts(size(stored), wish);

        for (part, pixels) in all.iter().zip([1, 2, 2]) {
            let step = part.reduction * pixels;
            let least = usize::from(!is_filtered && part.reduction > 1);
            let target = wanted[0].target.width as usize;
            prop_assert!(crop.0 as usize >= least * step * target / pixels);
            prop_assert!(part.columns.0 * 16 <= left as usize && part.rows.0 * 16 <= top as usize);
            let shown = |first: usize, samples: usize| first * 16 + samples * step;
            prop_assert!(shown(part.columns.0, part.width) >= (left + crop.0) as usize);
            prop_assert!(shown(part.rows.0, part.height) >= (top + crop.1) as usize);
        }
        let samples: usize = all.iter().map(|part| part.width * part.height).sum();
        prop_assert!(samples as u64 <= most_samples(size(stored), wish));
    }
}
