//! Makes a reduced picture of each uploaded picture, in the background: a reader of the log of events.
//!
//! `cargo run --example resize`
//!
//! No event is lost: each one is part of the commit of its change. If the program stops, it goes on behind the id of
//! the last event that it handled. So store that id with your own data.

use std::io::Cursor;
use std::pin::pin;

use filestore_core::events::{After, Event, EventFilter, EventKind};
use filestore_core::variants::Variant;
use filestore_core::{FileStore, NewUpload, Scope};
use futures_util::StreamExt;
use image::{ImageFormat, Rgb, RgbImage};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The sub-system of reduced pictures. Their own uploads must not be reduced again.
const REDUCED: &str = "reduced";

#[tokio::main]
async fn main() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let store = FileStore::open(dir.path()).await?;

    let new = NewUpload::new("42".parse()?, "gallery".parse()?).with_name("red.png");
    let picture = store.upload(new, &painted()?[..]).await?;
    let new = NewUpload::new("42".parse()?, "gallery".parse()?).with_name("notes.txt");
    store.upload(new, &b"no picture"[..]).await?;

    // A program that runs for long has no `take`, and begins behind the id that it has stored.
    let uploads = EventFilter::new().kinds([EventKind::FileUploaded, EventKind::FileReplaced]);
    let mut events = pin!(store.events(&Scope::All).follow(uploads, After::Start).take(3));
    while let Some(event) = events.next().await {
        let event = event?;
        match reduce(&store, &event).await {
            Ok(Some(made)) => println!("{} made {made}", event.kind),
            Ok(None) => println!("{} of no picture", event.kind),
            Err(error) => println!("{}: {error}", event.id),
        }
        let last_handled = event.id;
        println!("  go on behind {last_handled}");
    }

    println!("the picture was {}", picture.file_id);
    store.close().await;
    Ok(())
}

/// Stores a picture of at most 200 pixels a side next to the uploaded one.
async fn reduce(store: &FileStore, event: &Event) -> Result<Option<String>> {
    let (Some(id), Some(organization)) = (event.file_id, event.organization_id.clone()) else {
        return Ok(None);
    };
    if event.sub_system.as_ref().is_some_and(|part| part.as_str() == REDUCED) {
        return Ok(None);
    }

    let scope = Scope::Organizations(vec![organization.clone()]);
    let reduced = match store.scoped(&scope).variant(id, 200).await {
        Ok((_, Variant::WebP(bytes))) => bytes,
        // The picture is small already.
        Ok((_, Variant::PassThrough { .. })) => return Ok(None),
        // An event says that something happened, not that the file is still there, or what it is.
        Err(error) if error.kind().http_status().is_client_error() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let new = NewUpload::new(organization, REDUCED.parse()?).with_name(format!("{id}.webp"));
    let record = store.upload(new, &reduced[..]).await?;
    Ok(Some(format!("{} of {} bytes", record.original_name, record.blob.size_bytes)))
}

/// Paints a red picture.
fn painted() -> Result<Vec<u8>> {
    let mut png = Cursor::new(Vec::new());
    RgbImage::from_pixel(640, 480, Rgb([200, 30, 30])).write_to(&mut png, ImageFormat::Png)?;
    Ok(png.into_inner())
}
