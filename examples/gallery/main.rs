//! Writes a gallery page: every photograph as a square variant in two sizes, and one of them in all
//! seven, in one HTML file that needs nothing else.
//!
//! `cargo run --example gallery -- [gallery.html] [--picture gallery.webp] [photo.jpg ...]`
//!
//! Without photographs the example paints some, each stored on its side as a telephone stores them.
//! `--picture` also makes the picture of the README: the first photograph as it was stored, beside
//! its seven squares. Without any path the example only says what it would have written.

mod page;
mod picture;
mod lettering;

use std::path::PathBuf;

use filestore_client::api::VARIANT_SIZES;
use filestore_client::{Client, FileRecord, Fit, Item, Place, Variant};
use filestore_server::{Config, Server};
use filestore_workspace::scene::{Light, photograph, stored_sideways};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse()?;
    let dir = tempfile::tempdir()?;
    let config = Config::new("127.0.0.1:0".parse()?, dir.path().join("data"));
    let server = Server::start(config).await?;
    let client = Client::builder(server.url())?.build()?;

    let gallery = client.organization("42")?.sub_system("gallery")?;
    let mut records = Vec::new();
    for photo in arguments.photos {
        records.push(gallery.upload(photo).await?);
    }

    let squares = squares_of(&client, &records[0]).await?;
    let page = page_of(&client, &records, &squares).await?;
    match arguments.page {
        Some(path) => {
            std::fs::write(&path, page)?;
            println!("wrote {}", path.display());
        }
        None => println!("a page of {} bytes", page.len()),
    }

    if let Some(path) = arguments.picture {
        let webp = picture_of(&client, &gallery, &records[0], &squares).await?;
        std::fs::write(&path, &webp.bytes)?;
        println!("wrote {}, {} bytes", path.display(), webp.bytes.len());
    }

    server.stop().await;
    Ok(())
}

/// Asks for a photograph in all its sizes. The service makes each of them once, when it is first
/// asked for, and takes it from its cache afterwards.
async fn squares_of(client: &Client, record: &FileRecord) -> Result<Vec<(u32, Variant)>> {
    let mut squares = Vec::new();
    for size in VARIANT_SIZES {
        squares.push((size, client.variant(&record.file_id, size).await?));
    }
    Ok(squares)
}

/// Makes the page: one photograph in all its sizes, then every photograph in two.
async fn page_of(
    client: &Client,
    records: &[FileRecord],
    squares: &[(u32, Variant)],
) -> Result<String> {
    let mut page = page::begin(squares);
    for record in records {
        let small = client.variant(&record.file_id, 300).await?;
        // For screens with more pixels.
        let large = client.variant(&record.file_id, 700).await?;
        page::add(&mut page, record, &small, &large);

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
    page::end(&mut page);
    Ok(page)
}

/// Makes the README's picture. The service scales and compresses it as well: `Inside` keeps all of a
/// picture.
async fn picture_of(
    client: &Client,
    gallery: &Place,
    record: &FileRecord,
    squares: &[(u32, Variant)],
) -> Result<Variant> {
    let stored = client.download(&record.file_id).bytes().await?;
    let png = picture::lay_out(&stored, squares)?;

    let item = Item::from_bytes(png).original_name("gallery.png");
    let record = gallery.upload(item).await?;
    Ok(client.variant(&record.file_id, 1000).fit(Fit::Inside).await?)
}

/// The arguments of the command line.
struct Arguments {
    page: Option<PathBuf>,
    picture: Option<PathBuf>,
    photos: Vec<Item>,
}

impl Arguments {
    fn parse() -> Result<Self> {
        let mut words = std::env::args_os().skip(1);
        let mut parsed = Self { page: None, picture: None, photos: Vec::new() };

        while let Some(word) = words.next() {
            if word == "--picture" {
                parsed.picture = Some(words.next().ok_or("--picture takes a path")?.into());
            } else if parsed.page.is_none() {
                parsed.page = Some(word.into());
            } else {
                parsed.photos.push(Item::from_path(word)?);
            }
        }

        if parsed.photos.is_empty() {
            parsed.photos = paintings();
        }
        Ok(parsed)
    }
}

/// Paints photographs of the same house, as if taken through the year with a telephone.
fn paintings() -> Vec<Item> {
    [
        ("after the storm", 1200, 1600, Light::Evening, 2),
        ("a day in May", 600, 450, Light::Day, 1),
        ("the first stars", 450, 600, Light::Dusk, 4),
        ("home", 450, 600, Light::Day, 6),
        ("from the other side", 600, 450, Light::Evening, 7),
        ("good night", 600, 450, Light::Dusk, 9),
    ]
    .into_iter()
    .map(|(name, width, height, light, seed)| {
        let jpeg = stored_sideways(&photograph(width, height, light, seed));
        Item::from_bytes(jpeg).original_name(format!("{name}.jpg"))
    })
    .collect()
}
