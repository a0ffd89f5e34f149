//! A pen for the few words on the picture: no font needed, and none to be licensed.

use image::{Rgb, RgbImage};

/// The strokes of a character: places on a grid of 5 by 7, as `column` and `row` digits, with a
/// slash where the pen is lifted.
fn strokes(character: char) -> &'static str {
    match character {
        '0' => "10 30 41 45 36 16 05 01 10",
        '1' => "11 20 26/16 36",
        '2' => "01 10 30 41 42 06 46",
        '3' => "01 10 30 41 42 33 23/33 44 45 36 16 05",
        '4' => "36 30 04 44",
        '5' => "40 00 03 12 32 43 45 36 16 05",
        '6' => "30 20 02 05 16 36 45 44 33 13 04",
        '7' => "00 40 16",
        '8' => "13 02 01 10 30 41 42 33 13 04 05 16 36 45 44 33",
        '9' => "42 33 13 02 01 10 30 41 43 26 16",
        '×' => "03 36/33 06",
        ',' => "15 16 07",
        'a' => "03 12 32 43 46/44 14 05 16 36 45",
        'd' => "40 46/43 32 12 03 05 16 36 45",
        'e' => "04 44 43 32 12 03 05 16 36 45",
        'i' => "02 06/00 00",
        'n' => "02 06/03 12 32 43 46",
        'o' => "12 32 43 45 36 16 05 03 12",
        'r' => "02 06/04 22 32",
        's' => "43 32 12 03 14 34 45 36 16 05",
        't' => "10 15 26 36/02 32",
        _ => "",
    }
}

/// Writes `text` with its middle and its upper edge at a place; a mesh of the grid is `unit` wide.
pub(crate) fn centred(
    sheet: &mut RgbImage,
    text: &str,
    (middle, top): (u32, u32),
    unit: u32,
    ink: Rgb<u8>,
) {
    let total: u32 = text.chars().map(|character| width(character) * unit / 2).sum();
    let mut left = middle - total / 2;
    for character in text.chars() {
        for stroke in strokes(character).split('/') {
            let places: Vec<(u32, u32)> =
                stroke.split(' ').filter_map(|place| place_of(place, (left, top), unit)).collect();
            for pair in places.windows(2) {
                line(sheet, pair[0], pair[1], unit * 9 / 20, ink);
            }
        }
        left += width(character) * unit / 2;
    }
}

/// Draws an arrow to the right.
pub(crate) fn arrow(sheet: &mut RgbImage, at: (u32, u32), length: u32, ink: Rgb<u8>) {
    let tip = (at.0 + length, at.1);
    for from in [at, (tip.0 - 24, tip.1 - 24), (tip.0 - 24, tip.1 + 24)] {
        line(sheet, from, tip, 4, ink);
    }
}

/// The room that a character takes, in half meshes.
fn width(character: char) -> u32 {
    let widest = strokes(character).split([' ', '/']).filter_map(|place| place.get(..1)).max();
    match widest.and_then(|column| column.parse::<u32>().ok()) {
        Some(column) => 2 * column + 3,
        None => 6,
    }
}

fn place_of(place: &str, origin: (u32, u32), unit: u32) -> Option<(u32, u32)> {
    let column: u32 = place.get(..1)?.parse().ok()?;
    let row: u32 = place.get(1..)?.parse().ok()?;
    Some((origin.0 + column * unit, origin.1 + row * unit))
}

/// Draws a line with round ends.
fn line(sheet: &mut RgbImage, from: (u32, u32), to: (u32, u32), radius: u32, ink: Rgb<u8>) {
    let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
    for step in 0..=steps {
        let x = (from.0 * (steps - step) + to.0 * step) / steps;
        let y = (from.1 * (steps - step) + to.1 * step) / steps;
        dot(sheet, (x, y), radius, ink);
    }
}

fn dot(sheet: &mut RgbImage, centre: (u32, u32), radius: u32, ink: Rgb<u8>) {
    for y in centre.1 - radius..=centre.1 + radius {
        for x in centre.0 - radius..=centre.0 + radius {
            let (across, down) = (x.abs_diff(centre.0), y.abs_diff(centre.1));
            if across * across + down * down <= radius * radius {
                sheet.put_pixel(x, y, ink);
            }
        }
    }
}
