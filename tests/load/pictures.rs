//! The memory of the server while it makes variants of many large pictures at once.

use std::io::Cursor;
use std::path::Path;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder as _};

use super::server::{Connection, Outcome, Server};

const MIB: u64 = 1 << 20;
/// 50 megapixels, at 3:2.
const WIDTH: u32 = 8660;
const HEIGHT: u32 = 5773;
const AT_ONCE: usize = 64;
const BUDGET_MIB: u64 = 512;
/// The memory that the rest of the server may take besides the budget.
const BESIDES_MIB: u64 = 64;

pub(crate) fn run() -> Outcome {
    let mut pictures = vec![
        ("baseline JPEG".to_owned(), jpeg()?),
        ("PNG, RGB".to_owned(), png(ExtendedColorType::Rgb8)?),
        ("PNG, RGBA".to_owned(), png(ExtendedColorType::Rgba8)?),
    ];

    // Nothing here writes progressive JPEG: whoever has such a picture names it.
    if let Some(path) = std::env::var_os("FILESTORE_LOAD_PICTURE") {
        pictures.push((Path::new(&path).display().to_string(), std::fs::read(&path)?));
    }

    let mut worst = 0;
    for (name, picture) in &pictures {
        for threads in [2, 16] {
            worst = worst.max(many_at_once(name, picture, threads)?);
        }
    }

    if worst > BUDGET_MIB + BESIDES_MIB {
        return Err(format!(
            "memory grew by {worst} MiB, more than the budget + {BESIDES_MIB} MiB"
        )
        .into());
    }

    Ok(())
}

/// Returns by how many MiB the peak grew.
fn many_at_once(name: &str, picture: &[u8], threads: usize) -> Outcome<u64> {
    let server = Server::start(&format!(
        "[variants]\nthreads = {threads}\nqueue = {AT_ONCE}\ndecode_memory_bytes = {}\ndeadline_secs = 600\n",
        BUDGET_MIB * MIB
    ))?;

    let mut connection = Connection::open(&server.address)?;
    let upload = |connection: &mut Connection| {
        connection.upload(picture.len() as u64, |at, out| {
            let at = usize::try_from(at).expect("a picture fits in memory");
            out.copy_from_slice(&picture[at..at + out.len()]);
        })
    };

    let locations: Vec<String> =
        (0..AT_ONCE).map(|_| Ok(upload(&mut connection)?.location)).collect::<Outcome<_>>()?;
    let (before, _) = server.memory_kib()?;
    let statuses = std::thread::scope(|scope| -> Outcome<Vec<u16>> {
        let ask = |location: &str| -> Outcome<u16> {
            Ok(Connection::open(&server.address)?.get(&format!("{location}/400/400"))?.status)
        };
        let threads: Vec<_> = locations.iter().map(|at| scope.spawn(move || ask(at))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no load thread panics")).collect()
    })?;

    let (after, peak) = server.memory_kib()?;
    let grown = peak.saturating_sub(before) / 1024;

    let made = statuses.iter().filter(|status| **status == 200).count();
    println!(
        "{AT_ONCE} × 50 MP, {name} of {} MiB, {threads} threads: peak memory grew by {grown} MiB \
         (from {} MiB, {} MiB afterwards; budget {BUDGET_MIB} MiB); {made} answered with 200",
        picture.len() as u64 / MIB,
        before / 1024,
        after / 1024,
    );

    // A picture too large for the whole budget is refused at once, which is an answer as well.
    let refused = statuses.iter().filter(|status| **status == 422).count();
    if made + refused == AT_ONCE {
        Ok(grown)
    } else {
        Err(format!("unexpected: {statuses:?}").into())
    }
}

/// A picture with shapes and grain, row by row.
fn pixels(channels: usize) -> Vec<u8> {
    let mut grain = 0x2545_F491_u32;
    let mut data = Vec::with_capacity(WIDTH as usize * HEIGHT as usize * channels);
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            grain ^= grain << 13;
            grain ^= grain >> 17;
            grain ^= grain << 5;
            let [noise, ..] = grain.to_le_bytes();
            let value = |step: u32| {
                u8::try_from((x / step + y / (step + 2)) % 200).unwrap_or(0) + noise % 8
            };
            data.extend_from_slice(&[value(31), value(17), value(9), 255 - noise % 16][..channels]);
        }
    }

    data
}

fn jpeg() -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, 85).encode(
        &pixels(3),
        WIDTH,
        HEIGHT,
        ExtendedColorType::Rgb8,
    )?;
    Ok(bytes)
}

fn png(color: ExtendedColorType) -> Outcome<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    let data = pixels(usize::from(color.channel_count()));
    PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, FilterType::Sub)
        .write_image(&data, WIDTH, HEIGHT, color)?;
    Ok(bytes.into_inner())
}
