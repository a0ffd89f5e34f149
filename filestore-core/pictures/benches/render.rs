//! A gallery picture from a photograph, and the plain way beside it (`image` decodes, `image` resizes with
//! Lanczos3, libwebp encodes at its default method); and a sheet of a hundred.
//!
//! Run with `cargo bench -p filestore-pictures --bench render`.

use std::io::Cursor;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use divan::{Bencher, black_box};
use filestore_pictures::sheet::{Grid, assemble};
use filestore_pictures::{Settings, Wanted, placeholder, thumbnail};
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{ExtendedColorType, ImageReader};

const WIDTH: u32 = 2725;
const HEIGHT: u32 = 2225;

fn main() {
    divan::main();
}

/// A JPEG with the statistics of a photograph: smooth shapes, edges, and grain.
static PHOTO: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut random = fastrand::Rng::with_seed(7);
    let mut rgb = Vec::with_capacity((WIDTH * HEIGHT * 3) as usize);
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            let (fx, fy) = (f64::from(x), f64::from(y));
            let hill =
                (fx / 310.0).sin() + (fy / 270.0).cos() + ((fx + 2.0 * fy) / 97.0).sin() * 0.4;
            let edge = if (fx * 0.8 - fy).sin() > 0.995 || (x / 180 + y / 220) % 5 == 0 {
                30.0
            } else {
                0.0
            };
            for tint in [1.0, 0.9, 0.7] {
                let value = 110.0 + 38.0 * hill * tint + edge + f64::from(random.u8(0..14));
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "clamped to a byte"
                )]
                rgb.push(value.clamp(0.0, 255.0) as u8);
            }
        }
    }

    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut bytes, 88);
    encoder.encode(&rgb, WIDTH, HEIGHT, ExtendedColorType::Rgb8).expect("encoding into memory");
    bytes
});

/// A JPEG of 15 megapixels whose shades change slowly.
static SMOOTH: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let (width, height) = (5000, 3000);
    let shade = |at: u32, whole: u32, most: u32| {
        u8::try_from(20 + at * most / whole).expect("at most 20 and `most`")
    };
    let points = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let rgb: Vec<u8> = points
        .flat_map(|(x, y)| [shade(x, width, 90), shade(y, height, 60), shade(x + y, 8000, 50)])
        .collect();

    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut bytes, 90);
    encoder.encode(&rgb, width, height, ExtendedColorType::Rgb8).expect("encoding into memory");
    bytes
});

/// Sizes in their order of use: list, card, full view.
const SIZES: [u32; 3] = [200, 400, 1000];

#[expect(clippy::ptr_arg, reason = "a source has a size of its own")]
fn make(photo: &Vec<u8>, wanted: Wanted) -> Bytes {
    thumbnail(photo, wanted, &Settings::default()).expect("a picture")
}

#[divan::bench(args = SIZES, max_time = Duration::from_secs(6))]
fn ours(bencher: Bencher, side: u32) {
    bencher.bench(|| make(&PHOTO, Wanted::cover(side)));
}

#[divan::bench(args = SIZES, max_time = Duration::from_secs(6))]
fn plain(bencher: Bencher, side: u32) {
    bencher.bench(|| {
        let reader =
            ImageReader::new(Cursor::new(&PHOTO[..])).with_guessed_format().expect("in memory");
        let small =
            reader.decode().expect("a photograph").resize_to_fill(side, side, FilterType::Lanczos3);
        let small = small.into_rgb8();
        black_box(webp::Encoder::from_rgb(&small, side, side).encode(80.0).to_vec())
    });
}

/// Smooth pictures of 1000 pixels and more, flat enough for a lossless file to be thought of, and far
/// smaller as lossy ones: the look at a sample is all that it may cost.
#[divan::bench(args = [400, 1000], max_time = Duration::from_secs(6))]
fn smooth(bencher: Bencher, side: u32) {
    bencher.bench(|| make(&SMOOTH, Wanted::cover(side)));
}

#[divan::bench(max_time = Duration::from_secs(6))]
fn placeholder_of_a_photograph(bencher: Bencher) {
    bencher.bench(|| placeholder(&*PHOTO, &Settings::default()).expect("a placeholder"));
}

/// The cells of the sheet that is measured.
const CELLS: usize = 100;

/// Makes a sheet of a hundred equal pictures.
fn page(cells: &[Option<Bytes>]) -> Bytes {
    let grid = Grid::new(CELLS, 200).expect("a grid");
    assemble(grid, cells, &Settings::default()).expect("a sheet").webp
}

#[divan::bench(max_time = Duration::from_secs(10))]
fn sheet(bencher: Bencher) {
    let cells = vec![Some(make(&PHOTO, Wanted::cover(200))); CELLS];
    bencher.bench(|| page(&cells));
}

/// The same sheet's pixels, encoded alone with the same settings.
#[divan::bench(max_time = Duration::from_secs(10))]
fn sheet_encoded_alone(bencher: Bencher) {
    let cells = vec![Some(make(&PHOTO, Wanted::cover(200))); CELLS];
    let pixels = image::load_from_memory(&page(&cells)).expect("a WebP").into_rgb8();

    let mut config = webp::WebPConfig::new().expect("this version of libwebp");
    (config.quality, config.method) = (80.0, 2);
    (config.sns_strength, config.filter_strength) = (60, 90);
    bencher.bench(|| {
        let encoder = webp::Encoder::from_rgb(&pixels, pixels.width(), pixels.height());
        black_box(encoder.encode_advanced(&config).expect("a WebP").to_vec())
    });
}
