//! The eight orientations of EXIF (tag 0x0112, TIFF 6.0 page 36), which lead from the stored picture to the
//! displayed picture.

use crate::Dimensions;
use crate::geometry::{Geometry, Rectangle};
use crate::pixels::Pixels;

/// The number of columns that become rows in one step.
const COLUMNS: usize = 16;

/// The turn from the stored to the displayed picture: whether to swap the axes, and which stored axes to
/// mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Orientation {
    axes: Axes,
    mirror_x: bool,
    mirror_y: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Axes {
    #[default]
    Kept,
    Swapped,
}

impl Orientation {
    /// Reads the tag's value. Like browsers, treats all values except 1 to 8 as 1.
    pub(crate) fn from_exif(value: u64) -> Self {
        let (axes, mirror_x, mirror_y) = match value {
            2 => (Axes::Kept, true, false),
            3 => (Axes::Kept, true, true),
            4 => (Axes::Kept, false, true),
            5 => (Axes::Swapped, false, false),
            6 => (Axes::Swapped, false, true),
            7 => (Axes::Swapped, true, true),
            8 => (Axes::Swapped, true, false),
            _ => (Axes::Kept, false, false),
        };
        Self { axes, mirror_x, mirror_y }
    }

    /// Returns the displayed size of a picture stored as `stored`.
    pub(crate) fn displayed(self, stored: Dimensions) -> Dimensions {
        match self.axes {
            Axes::Kept => stored,
            Axes::Swapped => Dimensions { width: stored.height, height: stored.width },
        }
    }

    /// Turns a geometry from displayed axes into the axes of a picture stored as `stored`.
    pub(crate) fn to_stored(self, displayed: Geometry, stored: Dimensions) -> Geometry {
        let Geometry { crop, target } = displayed;
        let mut crop = match self.axes {
            Axes::Kept => crop,
            Axes::Swapped => {
                Rectangle { left: crop.top, top: crop.left, width: crop.height, height: crop.width }
            }
        };
        if self.mirror_x {
            crop.left = stored.width - crop.left - crop.width;
        }
        if self.mirror_y {
            crop.top = stored.height - crop.top - crop.height;
        }
        // Swapping is its own inverse, for sizes too.
        Geometry { crop, target: self.displayed(target) }
    }

    /// Returns whether each stored axis, across and down, is displayed in reverse.
    pub(crate) fn mirrors(self) -> (bool, bool) {
        (self.mirror_x, self.mirror_y)
    }

    /// Turns stored pixels upright.
    pub(crate) fn apply(self, stored: Pixels) -> Pixels {
        if self == Self::default() {
            return stored;
        }
        match stored.layout.channels() {
            1 => self.turn::<1>(&stored),
            2 => self.turn::<2>(&stored),
            3 => self.turn::<3>(&stored),
            _ => self.turn::<4>(&stored),
        }
    }

    fn turn<const CHANNELS: usize>(self, stored: &Pixels) -> Pixels {
        let size = self.displayed(Dimensions { width: stored.width, height: stored.height });
        let (width, height) = (size.width as usize, size.height as usize);
        let from = stored.data.as_chunks::<CHANNELS>().0;
        let mut data = vec![0; stored.data.len()];
        let to = data.as_chunks_mut::<CHANNELS>().0;

        let rows = from.chunks_exact((stored.width as usize).max(1));
        match self.axes {
            Axes::Kept => {
                for (at, row) in rows.enumerate() {
                    let at = if self.mirror_y { height - 1 - at } else { at };
                    let to = &mut to[at * width..][..width];
                    to.copy_from_slice(row);
                    if self.mirror_x {
                        to.reverse();
                    }
                }
            }
            Axes::Swapped => {
                // Some columns at once, so that what is written stays in the first cache.
                for first in (0..height).step_by(COLUMNS) {
                    let columns = first..(first + COLUMNS).min(height);
                    for (at, row) in rows.clone().enumerate() {
                        let at = if self.mirror_y { width - 1 - at } else { at };
                        for column in columns.clone() {
                            let from = if self.mirror_x { height - 1 - column } else { column };
                            to[column * width + at] = row[from];
                        }
                    }
                }
            }
        }
        Pixels { layout: stored.layout, width: size.width, height: size.height, data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pixels::Layout;

    /// `abc` over `def`, as displayed, stored the way each value says (the eight letters F of the
    /// EXIF literature, with six pixels).
    const STORED: [(u64, u32, &[u8; 6]); 8] = [
        (1, 3, b"abcdef"),
        (2, 3, b"cbafed"),
        (3, 3, b"fedcba"),
        (4, 3, b"defabc"),
        (5, 2, b"adbecf"),
        (6, 2, b"cfbead"),
        (7, 2, b"fcebda"),
        (8, 2, b"daebfc"),
    ];

    #[test]
    fn every_orientation_is_turned_upright() {
        for (value, width, stored) in STORED {
            let pixels =
                Pixels { layout: Layout::Grey, width, height: 6 / width, data: stored.to_vec() };
            let upright = Orientation::from_exif(value).apply(pixels);
            assert_eq!((upright.width, upright.height), (3, 2), "orientation {value}");
            assert_eq!(upright.data, b"abcdef", "orientation {value}");
        }
    }

    #[test]
    fn large_pictures_of_all_channels_are_turned_pixel_by_pixel() {
        for layout in [Layout::Grey, Layout::GreyAlpha, Layout::Rgb, Layout::Rgba] {
            let channels = layout.channels();
            for value in 1..=8 {
                let orientation = Orientation::from_exif(value);
                let (width, height) = (37u32, 21u32);
                let data: Vec<u8> = (0..width * height)
                    .flat_map(|at| [at.to_le_bytes()[0], at.to_le_bytes()[1], 7, 9])
                    .collect();
                let data = data.chunks(4).flat_map(|pixel| &pixel[..channels]).copied().collect();
                let stored = Pixels { layout, width, height, data };
                let upright = orientation.apply(stored.clone());
                let size = orientation.displayed(Dimensions { width, height });
                assert_eq!((upright.width, upright.height), (size.width, size.height));
                let displayed = (0..size.height).flat_map(|y| (0..size.width).map(move |x| (x, y)));
                for ((x, y), pixel) in displayed.zip(upright.data.chunks(channels)) {
                    // As a crop of that one pixel is found in the file.
                    let crop = Rectangle { left: x, top: y, width: 1, height: 1 };
                    let target = Dimensions { width: 1, height: 1 };
                    let found = orientation
                        .to_stored(Geometry { crop, target }, Dimensions { width, height });
                    let at = (found.crop.top * width + found.crop.left) as usize * channels;
                    assert_eq!(
                        pixel,
                        &stored.data[at..at + channels],
                        "{layout:?} {value} {x} {y}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_crop_finds_the_same_pixel_in_every_orientation() {
        // One pixel, `b`: the second of the first displayed row.
        let crop = Rectangle { left: 1, top: 0, width: 1, height: 1 };
        let target = Dimensions { width: 1, height: 1 };
        for (value, width, stored) in STORED {
            let size = Dimensions { width, height: 6 / width };
            let crop =
                Orientation::from_exif(value).to_stored(Geometry { crop, target }, size).crop;
            let index = (crop.top * width + crop.left) as usize;
            assert_eq!(stored[index], b'b', "orientation {value}");
        }
    }

    #[test]
    fn an_unknown_value_is_upright() {
        for value in [0, 9, 300] {
            assert_eq!(Orientation::from_exif(value), Orientation::default());
        }
    }
}
