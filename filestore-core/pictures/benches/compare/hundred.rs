//! A hundred JPEGs of one to fifty megapixels, as photographs of strangers come: qualities 60 to 98, three
//! samplings, baseline (with restart markers and without), optimised and progressive.

use std::path::{Path, PathBuf};

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use serde_json::json;

use super::peer::Sharp;
use super::{Outcome, report};

/// The megapixels of each ten of the hundred.
const MEGAPIXELS: [u32; 10] = [1, 2, 3, 5, 8, 12, 16, 20, 24, 50];
const SAMPLINGS: [(SamplingFactor, &str); 3] = [
    (SamplingFactor::R_4_4_4, "444"),
    (SamplingFactor::R_4_2_2, "422"),
    (SamplingFactor::R_4_2_0, "420"),
];

/// How the coefficients are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Baseline,
    Optimised,
    Progressive,
}

const CODINGS: [Coding; 3] = [Coding::Baseline, Coding::Optimised, Coding::Progressive];

/// Makes the hundred in the directory `out`, from at least ten photographs.
pub(crate) fn make(sharp: &mut Sharp, photos: &[PathBuf], out: &Path) -> Outcome {
    if photos.len() < 10 {
        return Err(format!("at least ten photographs are needed: {}", photos.len()).into());
    }
    std::fs::create_dir_all(out)?;
    for number in 0..100 {
        one(sharp, number, &photos[number % photos.len()], out)?;
    }
    Ok(())
}

fn one(sharp: &mut Sharp, number: usize, photo: &Path, out: &Path) -> Outcome {
    let megapixels = MEGAPIXELS[number / 10];
    let (sampling, sampling_name) = SAMPLINGS[number % 3];
    let coding = CODINGS[number / 3 % 3];
    // With other codings the encoder writes some of these markers at wrong places, and sharp refuses the file.
    let has_restarts = coding == Coding::Baseline && number / 9 % 2 == 1;
    let quality = u8::try_from(60 + number * 7 % 39)?;

    let raw = out.join("pixels.rgb");
    let size =
        sharp.ask(&json!({"op": "pixels", "path": photo, "out": raw, "megapixels": megapixels}))?;
    let side = |name: &str| size[name].as_u64().and_then(|side| u16::try_from(side).ok());
    let (width, height) = side("width").zip(side("height")).ok_or("a side that no JPEG has")?;
    let pixels = std::fs::read(&raw)?;
    std::fs::remove_file(&raw)?;

    let name = format!(
        "{number:02}-{}-{megapixels}mp-q{quality}-{sampling_name}-{coding:?}{}.jpg",
        report::name(photo),
        if has_restarts { "-restarts" } else { "" }
    );
    let mut encoder = Encoder::new_file(out.join(name), quality)?;
    encoder.set_sampling_factor(sampling);
    encoder.set_progressive(coding == Coding::Progressive);
    encoder.set_optimized_huffman_tables(coding != Coding::Baseline);
    if has_restarts {
        encoder.set_restart_interval(64);
    }
    Ok(encoder.encode(&pixels, width, height, ColorType::Rgb)?)
}
