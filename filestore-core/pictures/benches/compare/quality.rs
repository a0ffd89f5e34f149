//! The likeness of a variant to the reference: DSSIM (0 is equal), by Kornel Lesiński's program
//! `dssim`. The program is under the AGPL, so it is run beside this, never linked.

use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use image::{ImageFormat, ImageReader};

use super::Outcome;
use super::reference::{Full, Place};

/// The DSSIM of a WebP file to its reference; files in `work` are overwritten.
pub(crate) fn dssim(work: &Path, full: &Full, place: Place, webp: &[u8]) -> Outcome<f64> {
    let (reference, seen) = (work.join("reference.png"), work.join("seen.png"));
    let decoded =
        ImageReader::with_format(Cursor::new(webp), ImageFormat::WebP).decode()?.into_rgb8();
    place.aligned(full, &decoded).picture(full).save(&reference)?;
    decoded.save(&seen)?;

    let program = std::env::var_os("COMPARE_DSSIM").unwrap_or_else(|| "dssim".into());
    let out = Command::new(program).args([&reference, &seen]).output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    let value = said.split_whitespace().next().and_then(|word| word.parse().ok());
    Ok(value
        .ok_or_else(|| format!("dssim said: {said}{}", String::from_utf8_lossy(&out.stderr)))?)
}
