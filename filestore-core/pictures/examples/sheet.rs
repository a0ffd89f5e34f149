//! Puts thumbnails of many pictures into one file: `sheet OUTPUT PICTURE...`.

use std::error::Error;
use std::fs::{self, File};

use filestore_pictures::sheet::{Grid, assemble};
use filestore_pictures::{Settings, Wanted, thumbnail};

const SIDE: u32 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let output = args.next().ok_or("usage: sheet OUTPUT PICTURE...")?;
    let pictures: Vec<String> = args.collect();

    let settings = Settings::default();
    let mut cells = Vec::new();
    for path in &pictures {
        let made = thumbnail(&File::open(path)?, Wanted::cover(SIDE), &settings);
        // A file that cannot be shown leaves its cell empty.
        cells.push(made.inspect_err(|error| eprintln!("{path}: {error}")).ok());
    }

    let sheet = assemble(Grid::new(cells.len(), SIDE)?, &cells, &settings)?;
    for (path, place) in pictures.iter().zip(sheet.places) {
        println!("{path}: {place:?}");
    }
    fs::write(output, sheet.webp)?;
    Ok(())
}
