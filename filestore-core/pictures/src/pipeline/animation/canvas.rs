//! The canvas of an animation. Frames draw on it, and are kept, cleared or undone before the next frame.

use std::mem;

use crate::Dimensions;
use crate::geometry::{Rectangle, area};
use crate::pixels::{Layout, Pixels};

/// Bytes of a pixel.
const CHANNELS: usize = 4;

/// The treatment of a frame's rectangle when the frame ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disposal {
    /// Keeps the frame.
    Keep,
    /// Clears the rectangle to transparent.
    Clear,
    /// Restores the rectangle from before the frame.
    Restore,
}

/// How a frame's pixels combine with the canvas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blend {
    /// Replaces the pixels of the canvas, including transparency.
    Replace,
    /// Blends the pixels over the canvas.
    Over,
}

/// A canvas of RGBA pixels, transparent at first.
pub(super) struct Canvas {
    pixels: Pixels,
    /// The rectangle of the current frame. Parts of it can be outside the canvas.
    frame: Rectangle,
    ending: Option<Ending>,
}

/// The pending work for the end of the current frame.
enum Ending {
    Clear(Part),
    Restore(Part, Vec<u8>),
}

/// The part of a frame inside the canvas, in pixels.
#[derive(Debug, Clone, Copy)]
struct Part {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Canvas {
    pub(super) fn new(size: Dimensions) -> Self {
        let bytes = CHANNELS * usize::try_from(area(size)).expect("the size has passed the limits");
        let Dimensions { width, height } = size;
        let pixels = Pixels { layout: Layout::Rgba, width, height, data: vec![0; bytes] };
        let frame = Rectangle { left: 0, top: 0, width, height };
        Self { pixels, frame, ending: None }
    }

    /// Returns the pixels that a viewer shows now.
    pub(super) fn pixels(&self) -> &Pixels {
        &self.pixels
    }

    /// Returns the visible pixels.
    pub(super) fn into_pixels(self) -> Pixels {
        self.pixels
    }

    /// Ends the previous frame, and begins a frame that covers `frame`. Parts outside the canvas are not
    /// drawn.
    pub(super) fn begin(&mut self, frame: Rectangle, disposal: Disposal) {
        match self.ending.take() {
            Some(Ending::Clear(part)) => self.clear(part),
            Some(Ending::Restore(part, before)) => self.restore(part, &before),
            None => {}
        }

        self.frame = frame;
        let part = self.part();
        self.ending = match disposal {
            Disposal::Keep => None,
            Disposal::Clear => Some(Ending::Clear(part)),
            Disposal::Restore => Some(Ending::Restore(part, self.copy(part))),
        };
    }

    /// Draws row `y` of the frame. `row` contains RGBA pixels from the frame's left side.
    pub(super) fn draw(&mut self, y: u32, row: &[u8], blend: Blend) {
        let part = self.part();
        if y as usize >= part.height {
            return;
        }

        let to = self.line(part, y as usize);
        let to = self.pixels.data[to].as_chunks_mut::<CHANNELS>().0;
        let from = row.as_chunks::<CHANNELS>().0;
        match blend {
            Blend::Replace => {
                for (under, over) in to.iter_mut().zip(from) {
                    *under = *over;
                }
            }
            Blend::Over => {
                for (under, over) in to.iter_mut().zip(from) {
                    *under = lay_over(*under, *over);
                }
            }
        }
    }

    /// Cuts the frame to the canvas. A frame begins at its left and top, so its first pixels stay.
    fn part(&self) -> Part {
        let Rectangle { left, top, width, height } = self.frame;
        let within_x = self.pixels.width.saturating_sub(left);
        let within_y = self.pixels.height.saturating_sub(top);
        Part {
            left: left.min(self.pixels.width) as usize,
            top: top.min(self.pixels.height) as usize,
            width: width.min(within_x) as usize,
            height: height.min(within_y) as usize,
        }
    }

    /// Returns the bytes in row `y` of a part.
    fn line(&self, part: Part, y: usize) -> std::ops::Range<usize> {
        let first = (part.top + y) * self.pixels.width as usize + part.left;
        CHANNELS * first..CHANNELS * (first + part.width)
    }

    fn clear(&mut self, part: Part) {
        for y in 0..part.height {
            let line = self.line(part, y);
            self.pixels.data[line].fill(0);
        }
    }

    fn copy(&self, part: Part) -> Vec<u8> {
        let mut before = Vec::with_capacity(CHANNELS * part.width * part.height);
        for y in 0..part.height {
            before.extend_from_slice(&self.pixels.data[self.line(part, y)]);
        }
        before
    }

    fn restore(&mut self, part: Part, before: &[u8]) {
        let mut data = mem::take(&mut self.pixels.data);
        let rows = before.chunks_exact((CHANNELS * part.width).max(1));
        for (y, row) in rows.enumerate() {
            data[self.line(part, y)].copy_from_slice(row);
        }
        self.pixels.data = data;
    }
}

/// Blends a pixel over another, both with straight alpha (W3C PNG third edition, section 13.16). Rounds to
/// the nearest value.
fn lay_over(under: [u8; CHANNELS], over: [u8; CHANNELS]) -> [u8; CHANNELS] {
    let (alpha, below) = (u32::from(over[3]), u32::from(under[3]));
    if alpha == 255 || below == 0 {
        return over;
    }
    if alpha == 0 {
        return under;
    }

    // Shares of both, 255² times as large.
    let (own, other) = (255 * alpha, below * (255 - alpha));
    let sum = own + other;
    let mut mixed = [0; CHANNELS];
    for (mixed, (over, under)) in mixed.iter_mut().zip(over.into_iter().zip(under)) {
        *mixed = nearest(own * u32::from(over) + other * u32::from(under), sum);
    }
    mixed[3] = nearest(sum, 255);
    mixed
}

fn nearest(dividend: u32, divisor: u32) -> u8 {
    u8::try_from((dividend + divisor / 2) / divisor).expect("a mean of bytes is a byte")
}
