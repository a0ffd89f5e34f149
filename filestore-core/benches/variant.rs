//! Gallery variants and sheets from the engine: made, and asked for again. `filestore-pictures` has the benches of
//! the pictures alone.
//!
//! Run with `cargo bench -p filestore-core --bench variant`.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use divan::Bencher;
use filestore_core::internals::domain::config::VariantConfig;
use filestore_core::internals::domain::file::sheet::SheetGrid;
use filestore_core::internals::domain::id::{FileId, Sha256};
use filestore_core::internals::domain::time::clock::Timestamp;
use filestore_core::internals::variant::{
    CellSource, Fit, Motion, SheetKey, Source, Variant, VariantEngine, VariantKey, VariantSize,
};
use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;

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
