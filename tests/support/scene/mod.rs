//! A photograph painted in code: a red house by a lake, pines, mountains and the sun above them.
//!
//! Everybody sees at a glance which way is up and what a crop has cut off, which a gradient cannot
//! show. The grain of a sensor lies over everything, so that JPEG and the variants have as much to
//! do as with a real photograph.
//!
//! The scene is laid out in a square of side 1 around its centre, `y` downwards, and goes on beyond
//! it on every side: whatever the format, the middle of the picture shows the house.

mod noise;
mod shape;
mod landscape;
mod house;

use image::{Rgb, RgbImage};

use crate::fixtures;
use landscape::Landscape;
use noise::grain;

/// Red, green and blue, from 0 to 1.
type Colour = [f32; 3];

/// A place in the scene.
type Place = [f32; 2];

/// The time of day, which colours everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Light {
    /// The sun is up and the sky is blue.
    Day,
    /// The sun is about to set, and the sky is orange.
    Evening,
    /// The sun has set, and the windows are lit.
    Dusk,
}

/// Paints a photograph of the house by the lake, `width` by `height` and upright.
///
/// Each `seed` has its own mountains, clouds and trees; an odd one is seen from the other side.
pub fn photograph(width: u32, height: u32, light: Light, seed: u32) -> RgbImage {
    let landscape = Landscape::new(light, seed);
    let side = number(width.min(height));

    RgbImage::from_fn(width, height, |column, row| {
        let x = (number(column) + 0.5 - number(width) / 2.0) / side;
        let y = (number(row) + 0.5 - number(height) / 2.0) / side;
        let x = if seed % 2 == 1 { -x } else { x };

        let colour = landscape.colour([x, y], 1.0 / side);
        let corner = 1.0 - 0.22 * (x * x + y * y);
        let grain = 0.035 * (grain(column, row, seed) - 0.5);
        Rgb(colour.map(|channel| byte(channel * corner + grain)))
    })
}

/// Encodes an upright picture as a telephone held upright stores it: a JPEG lying on its side, with Exif
/// orientation 6, "turn me clockwise to look at me".
pub fn stored_sideways(upright: &RgbImage) -> Vec<u8> {
    let sideways = image::imageops::rotate270(upright);
    fixtures::with_exif(&fixtures::photo_jpeg(&sideways), 6)
}

fn number(pixels: u32) -> f32 {
    f32::from(u16::try_from(pixels).expect("a painting has fewer than 65,536 pixels a side"))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast saturates, and that is what a camera does as well"
)]
fn byte(channel: f32) -> u8 {
    (channel * 255.0 + 0.5) as u8
}

/// Mixes two colours: `a` where `part` is 0, `b` where `part` is 1.
fn mix(a: Colour, b: Colour, part: f32) -> Colour {
    let part = part.clamp(0.0, 1.0);
    std::array::from_fn(|channel| a[channel] + (b[channel] - a[channel]) * part)
}

/// Makes a colour lighter or darker.
fn lit(colour: Colour, light: f32) -> Colour {
    colour.map(|channel| channel * light)
}

/// Steps smoothly from 0 below `from` to 1 above `to`.
fn step(from: f32, to: f32, value: f32) -> f32 {
    let part = ((value - from) / (to - from)).clamp(0.0, 1.0);
    part * part * (3.0 - 2.0 * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean colour of a row.
    fn row(image: &RgbImage, row: u32) -> [u32; 3] {
        let pixels = (0..image.width()).map(|column| image.get_pixel(column, row).0);
        let sums = pixels.fold([0; 3], |sums: [u32; 3], pixel| {
            std::array::from_fn(|channel| sums[channel] + u32::from(pixel[channel]))
        });
        sums.map(|sum| sum / image.width())
    }

    #[test]
    fn the_sky_is_above_the_meadow() {
        let image = photograph(100, 100, Light::Day, 2);
        let ([sky_red, _, sky_blue], [_, green, blue]) = (row(&image, 5), row(&image, 95));
        assert!(sky_blue > sky_red + 40 && green > blue + 40, "{:?}", [sky_blue, green]);
    }

    #[test]
    fn a_seed_paints_the_same_picture_again() {
        let (one, again) = (photograph(40, 30, Light::Dusk, 7), photograph(40, 30, Light::Dusk, 7));
        assert!(one == again);
    }
}
