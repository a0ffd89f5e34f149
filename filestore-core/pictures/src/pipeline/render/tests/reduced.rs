//! Tests pictures that are reduced during decoding. They must show the same as the whole picture.

use super::*;
use crate::fixtures::{Step, moving_gif};

const WIDTH: u32 = 1000;
const HEIGHT: u32 = 820;

/// A slope with steps in each colour, with few enough colours for a GIF, and a frame that would reveal a
/// shift.
fn picture() -> Vec<u8> {
    let points = (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y)));
    let color = |(x, y): (u32, u32)| {
        let edge = x < 20 || y < 20 || x >= WIDTH - 20 || y >= HEIGHT - 20;
        let step = |at: u32, of: u32| u8::try_from(40 + at * 6 / of * 30).unwrap();
        if edge { [250, 20, 30] } else { [step(x, WIDTH), step(y, HEIGHT), 90] }
    };
    points.flat_map(color).collect()
}

fn rgba(rgb: &[u8]) -> Vec<u8> {
    rgb.as_chunks().0.iter().flat_map(|[red, green, blue]| [*red, *green, *blue, 255]).collect()
}

/// A TIFF with strips of 100 rows, packed by another encoder.
fn lzw_tiff(rgb: &[u8]) -> Vec<u8> {
    use tiff::encoder::{Compression, Predictor, TiffEncoder, colortype::RGB8};
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut bytes)
        .unwrap()
        .with_compression(Compression::Lzw)
        .with_predictor(Predictor::Horizontal);
    let mut image = encoder.new_image::<RGB8>(WIDTH, HEIGHT).unwrap();
    image.rows_per_strip(100).unwrap();
    image.write_data(rgb).unwrap();
    bytes.into_inner()
}

fn gif(interlaced: bool, rgb: &[u8]) -> Vec<u8> {
    let whole = Step::flat(0, 0, WIDTH, HEIGHT, [0; 4]);
    let step = Step { rgba: rgba(rgb), interlaced, ..whole };
    let [width, height] = [WIDTH, HEIGHT].map(|side| u16::try_from(side).unwrap());
    moving_gif(width, height, &[step], None)
}

/// The mean difference of two variants, in hundredths.
fn difference(one: &[u8], other: &[u8], fit: Fit) -> u64 {
    let [one, other] = [one, other]
        .map(|bytes| image::load_from_memory(&webp_of(bytes, 200, fit)).unwrap().into_rgb8());
    assert_eq!(one.dimensions(), other.dimensions());
    let sum: u64 = one.iter().zip(other.iter()).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    100 * sum / one.len() as u64
}

#[test]
fn a_reduced_picture_shows_what_the_whole_one_shows() {
    let rgb = picture();
    // Always decoded whole.
    let whole = encoded(WIDTH, HEIGHT, &rgb, ImageFormat::Bmp);
    for (what, bytes) in [
        ("PNG", encoded(WIDTH, HEIGHT, &rgb, ImageFormat::Png)),
        ("TIFF", encoded(WIDTH, HEIGHT, &rgb, ImageFormat::Tiff)),
        ("packed TIFF", lzw_tiff(&rgb)),
        ("GIF", gif(false, &rgb)),
        ("interlaced GIF", gif(true, &rgb)),
    ] {
        for fit in [Fit::Cover, Fit::Inside] {
            let difference = difference(&bytes, &whole, fit);
            assert!(difference < 150, "{what}, {fit:?}: {difference}");
        }
    }
}

#[test]
fn a_frame_that_covers_a_part_of_the_screen_is_reduced_in_its_place() {
    // To the end of the screen, which a larger frame would enlarge.
    let step = Step::flat(500, 410, WIDTH - 500, HEIGHT - 410, [30, 190, 30, 255]);
    let [width, height] = [WIDTH, HEIGHT].map(|side| u16::try_from(side).unwrap());
    let webp = webp_of(&moving_gif(width, height, &[step], None), 200, Fit::Inside);
    let seen = image::load_from_memory(&webp).unwrap().into_rgba8();
    assert_eq!(seen.dimensions(), (200, 164));
    for (x, y, alpha) in [(95, 120, 0), (150, 77, 0), (105, 87, 255), (198, 160, 255)] {
        assert_eq!(seen[(x, y)].0[3], alpha, "{x} {y}");
    }
    assert!(
        seen[(150, 120)].0[..3].iter().zip([30, 190, 30]).all(|(is, was)| is.abs_diff(was) < 9)
    );
}
