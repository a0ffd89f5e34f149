//! Writes a gallery page: every picture as a square variant in two sizes, in one HTML file that
//! needs nothing else.
//!
//! `cargo run --example gallery -- [gallery.html [photo.jpg ...]]`
//!
//! Without photos it paints some; without a path it only says what it would have written.

use std::fmt::Write as _;
use std::io::Cursor;
use std::path::PathBuf;

use filestore_client::{Client, Fit, Item, Upload};
use filestore_server::{Config, Server};
use image::{ImageFormat, Rgb, RgbImage};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let (output, photos) = arguments()?;
    let dir = tempfile::tempdir()?;
    let config = Config {
        listen: "127.0.0.1:0".parse()?,
        data_dir: dir.path().join("data"),
        ..Config::default()
    };
    let server = Server::start(config).await?;
    let client = Client::builder(server.url())?.build()?;

    let mut page = String::from(HEAD);
    for photo in photos {
        let record = client.upload(Upload::new(photo, "42", "gallery")).await?;
        // Small for the grid, larger for screens with more pixels. Each is made once, then cached.
        let small = client.variant(&record.file_id, 300, Fit::Cover).await?;
        let large = client.variant(&record.file_id, 700, Fit::Cover).await?;
        writeln!(
            page,
            "<img width=300 height=300 alt=\"{name}\" src=\"{small}\" srcset=\"{large} 2x\">",
            name = escaped(&record.original_name),
            small = data_url(&small.content_type, &small.bytes),
            large = data_url(&large.content_type, &large.bytes),
        )?;
        println!(
            "{}: {} × {}, {} bytes; as variants {} and {} bytes",
            record.original_name,
            record.width.unwrap_or_default(),
            record.height.unwrap_or_default(),
            record.file_size,
            small.bytes.len(),
            large.bytes.len(),
        );
    }
    match output {
        Some(path) => {
            std::fs::write(&path, page)?;
            println!("wrote {}", path.display());
        }
        None => println!("a page of {} bytes", page.len()),
    }

    server.stop().await;
    Ok(())
}

const HEAD: &str = "<!DOCTYPE html><meta charset=utf-8><title>Gallery</title>\
    <style>body{display:flex;flex-wrap:wrap;gap:8px}img{border-radius:8px}</style>\n";

/// Where the page goes, and the photos on it.
fn arguments() -> Result<(Option<PathBuf>, Vec<Item>)> {
    let mut arguments = std::env::args_os().skip(1);
    let output = arguments.next().map(PathBuf::from);
    let photos: Vec<Item> =
        arguments.map(Item::from_path).collect::<filestore_client::Result<_>>()?;
    if photos.is_empty() {
        return Ok((output, (1..=6).map(painting).collect::<Result<_>>()?));
    }
    Ok((output, photos))
}

/// A picture of waves, different for each number, wide or tall by turns.
fn painting(number: u32) -> Result<Item> {
    let (width, height) = if number.is_multiple_of(2) { (1200, 800) } else { (800, 1200) };
    let image = RgbImage::from_fn(width, height, |x, y| {
        let wave = |a: u32, b: u32| (x * a * number / 97 + y * b / 61 + (x * y) / 4096) % 512;
        let shade = |step: u32| u8::try_from(step.min(511 - step)).unwrap_or(u8::MAX);
        Rgb([shade(wave(1, 2)), shade(wave(2, 1)), shade(wave(3, 4))])
    });
    let mut jpeg = Cursor::new(Vec::new());
    image.write_to(&mut jpeg, ImageFormat::Jpeg)?;
    Ok(Item::from_bytes(jpeg.into_inner()).original_name(format!("painting {number}.jpg")))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// The bytes as a URL (RFC 2397). On a real page, `src` is the variant's own URL:
/// `/api/v1/files/<file id>/300/300`.
fn data_url(content_type: &str, bytes: &[u8]) -> String {
    let mut url = format!("data:{content_type},");
    for byte in bytes {
        write!(url, "%{byte:02X}").expect("a String takes everything");
    }
    url
}
