//! Compares the decoder with the definitions of the standard, and with the png crate.

use std::io::Cursor;

use proptest::prelude::*;

use super::unfilter::undo_row;
use super::*;
use png::{ColorType, Decoder, Encoder, Filter, Transformations};

/// Bytes without any order, equal in each run.
fn noise(bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(11);
    std::iter::repeat_with(|| random.u8(..)).take(bytes).collect()
}

/// A picture with soft shades and some grain. Encoders choose filters of all kinds for it.
fn shades(shape: Shape) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(5);
    let samples = (0..shape.height).flat_map(|y| (0..shape.row_bytes()).map(move |x| (x, y)));
    let shade = |(x, y): (usize, usize)| u8::try_from((x + 3 * y) % 200).unwrap();
    samples.map(|at| shade(at) + random.u8(0..9)).collect()
}

fn encoded(shape: Shape, pixels: &[u8], filter: Filter) -> Vec<u8> {
    let mut file = Vec::new();
    let (width, height) = (shape.width.try_into().unwrap(), shape.height.try_into().unwrap());
    let mut encoder = Encoder::new(&mut file, width, height);
    encoder.set_color(
        [ColorType::Grayscale, ColorType::GrayscaleAlpha, ColorType::Rgb, ColorType::Rgba]
            [shape.channels - 1],
    );
    encoder.set_filter(filter);
    encoder.write_header().unwrap().write_image_data(pixels).unwrap();
    file
}

fn decoded(file: &[u8], shape: Shape) -> Result<Vec<u8>, Broken> {
    let mut pixels: Vec<u8> = Vec::new();
    let mut unfilter = Unfilter::new(shape);
    stored_rows(Cursor::new(file), shape, shape.height, |stored| {
        unfilter.undo(stored, |row| pixels.extend_from_slice(row))
    })?;
    Ok(pixels)
}

/// The name and data of each chunk in a file.
fn chunks(file: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut rest = &file[8..];
    let mut found = Vec::new();
    while let Some((length, later)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        found.push((&later[..4], &later[4..4 + length]));
        rest = &later[8 + length..];
    }
    found
}

/// The file with its data cut into chunks of this number of bytes, after an empty chunk.
fn in_chunks_of(file: &[u8], bytes: usize) -> Vec<u8> {
    let mut cut = file[..8].to_vec();
    let mut write = |name: &[u8], data: &[u8]| {
        let named = [name, data].concat();
        cut.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        cut.extend(&named);
        cut.extend(crc32fast::hash(&named).to_be_bytes());
    };
    for (name, data) in chunks(file) {
        if name == b"IDAT" {
            write(name, &[]);
            data.chunks(bytes).for_each(|part| write(name, part));
        } else {
            write(name, data);
        }
    }
    cut
}

proptest! {
    #[test]
    fn filters_are_undone_as_the_standard_says(
        width in 1usize..40, height in 1usize..14, channels in 1usize..=4,
        filters in prop::collection::vec(0u8..=4, 14), at_once in 1usize..4, seed: u64,
    ) {
        let shape = Shape { width, height, channels };
        let mut random = fastrand::Rng::with_seed(seed);
        let mut stored: Vec<u8> = Vec::new();
        let mut expected: Vec<u8> = Vec::new();
        let mut above = vec![0; shape.row_bytes()];
        for filter in &filters[..height] {
            let mut row: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(above.len()).collect();
            stored.push(*filter);
            stored.extend(&row);
            undo_row(*filter, channels, &above, &mut row);
            expected.extend(&row);
            above = row;
        }

        let mut unfilter = Unfilter::new(shape);
        let mut seen: Vec<u8> = Vec::new();
        // Groups of four rows come alone or several at once.
        for groups in stored.chunks(at_once * GROUP * (1 + shape.row_bytes())) {
            unfilter.undo(groups, |row| seen.extend_from_slice(row)).unwrap();
        }
        prop_assert_eq!(seen, expected);
    }
}

#[test]
fn files_of_all_filters_and_channels_are_decoded_exactly() {
    let all =
        [Filter::NoFilter, Filter::Sub, Filter::Up, Filter::Avg, Filter::Paeth, Filter::Adaptive];
    for channels in 1..=4 {
        for (width, height) in [(1, 1), (2, 5), (97, 31), (300, 210)] {
            let shape = Shape { width, height, channels };
            for filter in all {
                for pixels in [shades(shape), noise(shape.row_bytes() * height)] {
                    let file = encoded(shape, &pixels, filter);
                    assert!(decoded(&file, shape).unwrap() == pixels, "{shape:?} {filter:?}");
                }
            }
        }
    }
}

#[test]
fn data_may_be_cut_into_chunks_anywhere() {
    let shape = Shape { width: 150, height: 90, channels: 3 };
    let pixels = shades(shape);
    let file = encoded(shape, &pixels, Filter::Adaptive);
    for bytes in [1, 7, 1000] {
        assert!(decoded(&in_chunks_of(&file, bytes), shape).unwrap() == pixels, "{bytes}");
    }
}

#[test]
fn rows_that_are_not_wanted_are_not_decoded() {
    let shape = Shape { width: 50, height: 600, channels: 4 };
    let file = encoded(shape, &shades(shape), Filter::Paeth);
    let mut seen = 0;
    // The second half is not there.
    let cut = &file[..file.len() / 2];
    let outcome = stored_rows(Cursor::new(cut), shape, 100, |rows| {
        seen += rows.len() / (1 + shape.row_bytes());
        Ok(())
    });
    assert!(outcome.is_ok());
    assert_eq!(seen, 100);
}

#[test]
fn a_damaged_file_is_told() {
    let shape = Shape { width: 120, height: 80, channels: 3 };
    let pixels = shades(shape);
    let file = encoded(shape, &pixels, Filter::Adaptive);
    assert!(decoded(&file, shape).is_ok());

    let data_at = file.windows(4).position(|name| name == b"IDAT").unwrap() + 4;
    // The data itself, and each byte of the checksum, which follows it and stands before IEND's twelve bytes.
    let last = file.len() - 12 - 4;
    for at in [data_at, data_at + 40, last - 1, last, last + 3] {
        let mut damaged = file.clone();
        damaged[at] ^= 1;
        assert!(decoded(&damaged, shape).is_err(), "byte {at}");
    }
    for length in [0, 20, data_at, data_at + 100, last + 2] {
        assert!(decoded(&file[..length], shape).is_err(), "cut at {length}");
    }
}

#[test]
fn an_unknown_filter_is_told() {
    let shape = Shape { width: 3, height: 1, channels: 1 };
    let outcome = Unfilter::new(shape).undo(&[5, 1, 2, 3], |_| panic!("a row"));
    assert!(outcome.is_err());
}

#[test]
fn samples_stand_for_the_colours_that_the_png_crate_finds() {
    let colors = noise(3 * 100);
    let alphas = noise(60);
    // Beyond the last colour, too.
    let samples: Vec<u8> = (0..=255).collect();
    for alpha in [None, Some(&alphas[..]), Some(&alphas[..1])] {
        let palette = Palette::new(&colors, alpha);
        let channels = if alpha.is_some() { 4 } else { 3 };
        for width in [1, 2, 3, 4, 5, 8, 97, 256] {
            let mut file = Vec::new();
            let mut encoder = Encoder::new(&mut file, width, 1);
            encoder.set_color(ColorType::Indexed);
            encoder.set_palette(&colors);
            if let Some(alpha) = alpha {
                encoder.set_trns(alpha);
            }
            let samples = &samples[256 - width as usize..];
            encoder.write_header().unwrap().write_image_data(samples).unwrap();
            let mut decoder = Decoder::new(Cursor::new(file));
            decoder.set_transformations(Transformations::normalize_to_color8());
            let mut expected = vec![0; width as usize * channels];
            decoder.read_info().unwrap().next_frame(&mut expected).unwrap();

            let mut pixels = vec![7; expected.len()];
            palette.expand(samples, &mut pixels);
            assert_eq!(pixels, expected, "{width} {alpha:?}");
        }
    }
}

#[test]
fn more_alpha_than_colours_counts_for_nothing() {
    let mut pixels = [7; 8];
    Palette::new(&[1, 2, 3], Some(&[9, 9])).expand(&[0, 1], &mut pixels);
    assert_eq!(pixels, [1, 2, 3, 255, 0, 0, 0, 255]);
}
