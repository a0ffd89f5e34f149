//! A gallery variant from a photograph: the engine's way, and the plain way beside it (`image`
//! decodes, `image` resizes with Lanczos3, libwebp encodes at its default method).
//!
//! Run with `cargo bench -p filestore-core --bench variant`.

use std::fs::File;
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use divan::{Bencher, black_box};
use filestore_core::domain::clock::Timestamp;
use filestore_core::domain::config::VariantConfig;
use filestore_core::domain::id::{FileId, Sha256};
use filestore_core::domain::sheet::SheetGrid;
use filestore_core::variant::{
    CellSource, Fit, Motion, SheetKey, Source, Variant, VariantEngine, VariantKey, VariantSize,
    render,
};
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

/// Sizes in the contract's order of use: list, card, full view.
const SIZES: [&str; 3] = ["200", "400", "1000"];

#[divan::bench(args = SIZES, max_time = Duration::from_secs(6))]
fn engine(bencher: Bencher, size: &str) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let directory = tempfile::tempdir().expect("a directory");
    let photo = directory.path().join("photo.jpg");
    File::create(&photo)
        .and_then(|mut file| file.write_all(&PHOTO))
        .expect("writing the photograph");

    let mut config = VariantConfig::default();
    config.memory_cache_bytes = 0;
    let engine = VariantEngine::open(&directory.path().join("cache"), config).expect("an engine");
    bencher
        .with_inputs(|| new_key(size))
        .bench_values(|key| runtime.block_on(make(&engine, key, &photo)));
}

/// Makes a key that nobody asked for before, so that its variant is always made anew.
fn new_key(size: &str) -> VariantKey {
    VariantKey {
        organization_id: "1".parse().expect("an organization"),
        file_id: FileId::generate(Timestamp::now()),
        sha256: Sha256([0; 32]),
        size: VariantSize::from_path(size, size).expect("an allowed size"),
        fit: Fit::Cover,
        motion: Motion::Still,
    }
}

async fn make(engine: &VariantEngine, key: VariantKey, photo: &Path) -> Variant {
    let photo = photo.to_owned();
    let open = move || std::future::ready(Ok(File::open(&photo).expect("the photograph")));
    let source = Source::new(open, || std::future::ready(true));
    engine.get(key, source).await.expect("a variant")
}

/// Smooth pictures of 1000 pixels and more, flat enough for a lossless file to be thought of, and far
/// smaller as lossy ones: the look at a sample is all that it may cost.
#[divan::bench(args = ["400", "1000"], max_time = Duration::from_secs(6))]
fn smooth(bencher: Bencher, size: &str) {
    let size = VariantSize::from_path(size, size).expect("an allowed size");
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&SMOOTH).expect("writing the picture");

    let config = VariantConfig::default();
    bencher.bench(|| render(&file, &[(size, Fit::Cover)], &config).expect("a variant"));
}

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

/// The cells of the sheet that is measured.
const CELLS: usize = 100;

/// A sheet of a hundred variants that are in memory, made anew each time.
#[divan::bench(max_time = Duration::from_secs(10))]
fn sheet(bencher: Bencher) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, key, cells) = page(directory.path());
    runtime.block_on(engine.sheet(key.clone(), cells.clone())).expect("a sheet");

    bencher.bench(|| runtime.block_on(engine.sheet(key.clone(), cells.clone())).expect("a sheet"));
}

/// The same sheet's pixels, encoded alone with the settings of variants.
#[divan::bench(max_time = Duration::from_secs(10))]
fn sheet_encoded_alone(bencher: Bencher) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, key, cells) = page(directory.path());
    let sheet = runtime.block_on(engine.sheet(key, cells)).expect("a sheet");
    let pixels = image::load_from_memory(&sheet.webp).expect("a WebP").into_rgb8();

    let mut config = webp::WebPConfig::new().expect("this version of libwebp");
    (config.quality, config.method) = (80.0, 2);
    (config.sns_strength, config.filter_strength) = (60, 90);
    bencher.bench(|| {
        let encoder = webp::Encoder::from_rgb(&pixels, pixels.width(), pixels.height());
        black_box(encoder.encode_advanced(&config).expect("a WebP").to_vec())
    });
}

/// The same sheet, asked for again.
#[divan::bench]
fn sheet_again(bencher: Bencher) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, key, cells) = page_in(directory.path(), VariantConfig::default());
    runtime.block_on(engine.sheet(key.clone(), cells.clone())).expect("a sheet");

    bencher
        .with_inputs(|| (key.clone(), cells.clone()))
        .bench_values(|(key, cells)| runtime.block_on(engine.sheet(key, cells)).expect("a sheet"));
}

/// One of its variants, asked for again.
#[divan::bench]
fn variant_again(bencher: Bencher) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _, cells) = page_in(directory.path(), VariantConfig::default());
    let (key, source) = cells[0].clone().expect("a cell");
    runtime.block_on(engine.get(key.clone(), source.clone())).expect("a variant");

    bencher.with_inputs(|| (key.clone(), source.clone())).bench_values(|(key, source)| {
        runtime.block_on(engine.get(key, source)).expect("a variant")
    });
}

/// Prepares an engine that keeps no sheet, and the cells of one.
fn page(directory: &Path) -> (VariantEngine, SheetKey, Vec<CellSource>) {
    let mut config = VariantConfig::default();
    config.sheet_cache_bytes = 0;
    page_in(directory, config)
}

fn page_in(directory: &Path, config: VariantConfig) -> (VariantEngine, SheetKey, Vec<CellSource>) {
    let photo = directory.join("photo.jpg");
    std::fs::write(&photo, &*PHOTO).expect("writing the photograph");
    let engine = VariantEngine::open(&directory.join("cache"), config).expect("an engine");

    let cells: Vec<CellSource> = (0..CELLS)
        .map(|_| {
            let photo = photo.clone();
            let open = move || std::future::ready(Ok(File::open(&photo).expect("the photograph")));
            Ok((new_key("200"), Source::new(open, || std::future::ready(true))))
        })
        .collect();
    let grid = SheetGrid::new(CELLS, VariantSize::try_from(200).expect("a size")).expect("a grid");
    let files = cells.iter().flatten().map(|(key, _)| (key.file_id, Some(key.sha256))).collect();
    (engine, SheetKey { grid, fit: Fit::Cover, files }, cells)
}

#[divan::bench(args = SIZES, max_time = Duration::from_secs(6))]
fn plain(bencher: Bencher, size: &str) {
    let side: u32 = size.parse().expect("a number");
    bencher.bench(|| {
        let reader =
            ImageReader::new(Cursor::new(&PHOTO[..])).with_guessed_format().expect("in memory");
        let small =
            reader.decode().expect("a photograph").resize_to_fill(side, side, FilterType::Lanczos3);
        let small = small.into_rgb8();
        black_box(webp::Encoder::from_rgb(&small, side, side).encode(80.0).to_vec())
    });
}
