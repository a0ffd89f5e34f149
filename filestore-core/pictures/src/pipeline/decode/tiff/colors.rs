//! Converts 8-bit samples to pixels.

use super::samples::from_16_bits;
use crate::error::{Result, corrupt};
use crate::pipeline::header::{Fields, TiffAlpha, TiffHeader, TiffModel};
use crate::pipeline::image_file::ImageFile;
use crate::pixels::{InkModel, Inks, Layout, ycc_to_rgb};

/// The meaning of the samples.
pub(super) struct Colors {
    model: TiffModel,
    tiff: TiffHeader,
    width: usize,
    palette: Vec<[u8; 3]>,
}

impl Colors {
    /// Reads the colour information in the directory.
    pub(super) fn read(image: &ImageFile<'_>, tiff: TiffHeader, model: TiffModel) -> Result<Self> {
        let palette = if model == TiffModel::Palette { palette(image, tiff)? } else { Vec::new() };
        Ok(Self { model, tiff, width: tiff.width as usize, palette })
    }

    /// Returns a row's pixels.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    fn has_alpha(&self) -> bool {
        self.tiff.alpha != TiffAlpha::None
    }

    pub(super) fn layout(&self) -> Layout {
        match (self.model, self.has_alpha()) {
            (TiffModel::Grey | TiffModel::InvertedGrey, false) => Layout::Grey,
            (TiffModel::Grey | TiffModel::InvertedGrey, true) => Layout::GreyAlpha,
            (TiffModel::Rgb | TiffModel::YCbCr | TiffModel::Palette, false) => Layout::Rgb,
            (TiffModel::Rgb | TiffModel::YCbCr | TiffModel::Palette, true) => Layout::Rgba,
            (TiffModel::Cmyk, _) => Layout::Inks(Inks { model: InkModel::Cmyk, inverted: false }),
        }
    }

    /// Makes pixels of the samples of a row, and skips samples that the colours do not need.
    pub(super) fn row(&self, samples: &[u8], pixels: &mut Vec<u8>) {
        let kept = self.model.samples() + usize::from(self.has_alpha());
        pixels.clear();
        if self.model == TiffModel::Palette {
            self.look_up(samples, pixels);
        } else if kept == self.tiff.samples {
            pixels.extend_from_slice(samples);
        } else {
            let each = samples.chunks_exact(self.tiff.samples);
            each.for_each(|pixel| pixels.extend_from_slice(&pixel[..kept]));
        }

        let channels = self.layout().channels();
        match self.model {
            TiffModel::InvertedGrey => {
                pixels.chunks_exact_mut(channels).for_each(|pixel| pixel[0] = 255 - pixel[0]);
            }
            TiffModel::YCbCr => {
                for pixel in pixels.as_chunks_mut().0 {
                    let [y, cb, cr] = *pixel;
                    *pixel = ycc_to_rgb(y, cb, cr);
                }
            }
            _ => {}
        }
        if self.tiff.alpha == TiffAlpha::Associated {
            divide_alpha(pixels, channels);
        }
    }

    /// Looks up colours. If the table lacks a colour, it is black.
    fn look_up(&self, samples: &[u8], pixels: &mut Vec<u8>) {
        let alpha = self.has_alpha();
        for pixel in samples.chunks_exact(self.tiff.samples) {
            let color = self.palette.get(usize::from(pixel[0])).copied().unwrap_or_default();
            pixels.extend_from_slice(&color);
            if alpha {
                pixels.push(pixel[1]);
            }
        }
    }
}

/// Reverses the multiplication of the colours by the last channel.
fn divide_alpha(data: &mut [u8], channels: usize) {
    for pixel in data.chunks_exact_mut(channels) {
        let Some((alpha, colors)) = pixel.split_last_mut() else { continue };
        let alpha = u32::from(*alpha);
        for color in colors {
            let straight = (u32::from(*color) * 255 + alpha / 2).checked_div(alpha).unwrap_or(0);
            *color = u8::try_from(straight).unwrap_or(255);
        }
    }
}

/// Reads the palette: all red, then green, then blue. As in libtiff, there is one entry for each possible
/// sample. If there are fewer values, a third of them is red.
fn palette(image: &ImageFile<'_>, tiff: TiffHeader) -> Result<Vec<[u8; 3]>> {
    let values = tiff.palette.ok_or_else(|| corrupt("no palette"))?;
    let most = 3u64 << tiff.bits;
    let mut fields = Fields::new(image.header_reader());
    let values = values.numbers(&mut fields, most).map_err(|error| image.explain(error))?;
    let colors = values.len() / 3;

    // Some programs write 8 bits instead of 16.
    let is_narrow = values.iter().all(|value| *value < 256);
    let byte = |value: u64| match u8::try_from(value) {
        Ok(narrow) if is_narrow => narrow,
        _ => from_16_bits(u32::try_from(value).unwrap_or(u32::MAX >> 1)),
    };
    Ok((0..colors).map(|at| [0, 1, 2].map(|color| byte(values[color * colors + at]))).collect())
}
