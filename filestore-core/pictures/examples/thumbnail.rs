//! Makes a thumbnail: `thumbnail PICTURE OUTPUT [SIDE]`.

use std::error::Error;
use std::fs::{self, File};

use filestore_pictures::{Settings, Wanted, probe, thumbnail};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (picture, output, side) = match &args[..] {
        [picture, output] => (picture, output, 400),
        [picture, output, side] => (picture, output, side.parse()?),
        _ => return Err("usage: thumbnail PICTURE OUTPUT [SIDE]".into()),
    };

    // A file is read by position: a picture over a limit costs its header alone.
    let picture = File::open(picture)?;
    let info = probe(&picture)?;
    let small = thumbnail(&picture, Wanted::inside(side), &Settings::default())?;

    println!("{} of {}×{}: {} bytes", info.mime, info.size.width, info.size.height, small.len());
    fs::write(output, small)?;
    Ok(())
}
