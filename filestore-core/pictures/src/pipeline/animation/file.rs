//! Writes the WebP file of an animation (RFC 9649, section 2.7), frame by frame.
//!
//! The writer compares each picture with the previous picture, and writes only the smallest rectangle that
//! contains all changes. The new frame replaces these pixels without blending, so that decoders need no
//! arithmetic. If a picture changes no pixel, the previous frame lasts longer. No frame is disposed of. The
//! first frame covers the canvas, and clears the canvas on each repetition.

use std::time::Duration;

use bytes::Bytes;

use crate::Dimensions;
use crate::error::{Error, Result, encoder, too_large};
use crate::geometry::Rectangle;
use crate::pipeline::encode::encode;
use crate::pixels::{Layout, Pixels};

/// The maximum duration of a frame, in milliseconds: 24 bits.
const MOST_MILLIS: u32 = (1 << 24) - 1;
/// Flags of the file and its frames.
const HAS_ALPHA: u8 = 0x10;
const HAS_ANIMATION: u8 = 0x02;
const NOT_BLENDED: u8 = 0x02;
/// The position of the file's flags, behind the headers of RIFF and VP8X.
const FLAGS_AT: usize = 12 + 8;
/// The size of a chunk header and of the file header, in bytes.
const CHUNK_BYTES: usize = 8;
const RIFF_BYTES: usize = 12;

/// An animation file during its creation.
pub(super) struct AnimationFile {
    quality: f32,
    max_bytes: u64,
    bytes: Vec<u8>,
    has_alpha: bool,
    last: Option<Shown>,
    /// The exact duration of all frames, so that rounding errors do not add up.
    time: Duration,
}

/// The picture at the end of the current file.
struct Shown {
    pixels: Pixels,
    /// The position of its frame's duration in the file.
    duration_at: usize,
    millis: u32,
}

impl AnimationFile {
    /// Starts a file for pictures of `size`, with sides from 1 to 16383. The file has at most `max_bytes`
    /// bytes. `plays` is the number of repetitions. 0 means without end.
    pub(super) fn begin(size: Dimensions, plays: u16, quality: f32, max_bytes: u64) -> Self {
        let mut bytes = b"RIFF\0\0\0\0WEBP".to_vec();
        let canvas = [[0; 4].as_slice(), &side(size.width), &side(size.height)].concat();
        push_chunk(&mut bytes, *b"VP8X", &canvas);
        // A transparent background.
        push_chunk(&mut bytes, *b"ANIM", &[[0; 4].as_slice(), &plays.to_le_bytes()].concat());

        let time = Duration::ZERO;
        Self { quality, max_bytes, bytes, has_alpha: false, last: None, time }
    }

    /// Adds a picture that is shown for `time`. The picture must be [`Layout::Rgb`] or [`Layout::Rgba`], have
    /// the canvas's size, and have the same layout as the other pictures.
    pub(super) fn push(&mut self, pixels: Pixels, time: Duration) -> Result<()> {
        let whole = Rectangle { left: 0, top: 0, width: pixels.width, height: pixels.height };
        let millis = self.lasting(time);

        let changed = match &mut self.last {
            None => whole,
            Some(last) => match changed(&last.pixels, &pixels) {
                Some(changed) => changed,
                None if last.millis + millis <= MOST_MILLIS => {
                    last.millis += millis;
                    let duration = &mut self.bytes[last.duration_at..last.duration_at + 3];
                    duration.copy_from_slice(&last.millis.to_le_bytes()[..3]);
                    return Ok(());
                }
                // Nothing, for longer than a frame may last.
                None => Rectangle { width: 1, height: 1, ..whole },
            },
        };

        let duration_at = self.push_frame(&pixels, changed, millis)?;
        self.last = Some(Shown { pixels, duration_at, millis });
        Ok(())
    }

    /// Ends the file. `None` if the file has no picture.
    pub(super) fn finish(mut self) -> Option<Bytes> {
        self.last.take()?;
        self.bytes[FLAGS_AT] = HAS_ANIMATION | if self.has_alpha { HAS_ALPHA } else { 0 };
        let length = u32::try_from(self.bytes.len() - CHUNK_BYTES).ok()?;
        self.bytes[4..CHUNK_BYTES].copy_from_slice(&length.to_le_bytes());

        self.bytes.shrink_to_fit();
        Some(Bytes::from(self.bytes))
    }

    /// Returns the duration of the next frame in whole milliseconds, so that the sum stays as exact as
    /// possible.
    fn lasting(&mut self, time: Duration) -> u32 {
        let before = nearest_millis(self.time);
        let time = time.min(Duration::from_millis(MOST_MILLIS.into()));
        self.time = self.time.saturating_add(time);
        let millis = nearest_millis(self.time).saturating_sub(before);
        u32::try_from(millis).unwrap_or(MOST_MILLIS).min(MOST_MILLIS)
    }

    /// Encodes the part of `pixels` within `changed` as a frame. Returns the position of its duration.
    fn push_frame(&mut self, pixels: &Pixels, changed: Rectangle, millis: u32) -> Result<usize> {
        let part = cut(pixels, changed);
        self.has_alpha |= part.layout == Layout::Rgba
            && part.data.as_chunks::<4>().0.iter().any(|pixel| pixel[3] != 255);
        let still = encode(&part, self.quality)?;

        let mut frame = Vec::with_capacity(16 + still.len());
        frame.extend_from_slice(&(changed.left / 2).to_le_bytes()[..3]);
        frame.extend_from_slice(&(changed.top / 2).to_le_bytes()[..3]);
        frame.extend_from_slice(&side(changed.width));
        frame.extend_from_slice(&side(changed.height));
        frame.extend_from_slice(&millis.to_le_bytes()[..3]);
        frame.push(NOT_BLENDED);
        push_picture(&mut frame, &still)?;

        self.make_room(CHUNK_BYTES + frame.len() + frame.len() % 2)?;
        let duration_at = self.bytes.len() + CHUNK_BYTES + 12;
        push_chunk(&mut self.bytes, *b"ANMF", &frame);
        Ok(duration_at)
    }

    /// Reserves `more` bytes. Refuses a file that exceeds its limit, so that the buffer never exceeds it.
    fn make_room(&mut self, more: usize) -> Result<()> {
        let needed = self.bytes.len() + more;
        let most = usize::try_from(self.max_bytes).unwrap_or(usize::MAX);
        if needed > most {
            let message = format!("the animated variant has more than {most} bytes");
            return Err(too_large(message).with_limit(self.max_bytes));
        }

        if needed > self.bytes.capacity() {
            let doubled = needed.max(2 * self.bytes.capacity()).min(most);
            self.bytes.reserve_exact(doubled - self.bytes.len());
        }
        Ok(())
    }
}

/// Finds the smallest rectangle that contains all differences between two pictures of one size. Left and top
/// are even, as frames require. `None` if the pictures are equal.
fn changed(before: &Pixels, after: &Pixels) -> Option<Rectangle> {
    let channels = after.layout.channels();
    let row = after.width as usize * channels;
    let rows = || before.data.chunks_exact(row).zip(after.data.chunks_exact(row)).enumerate();

    let (mut first, mut last) = (usize::MAX, 0);
    let (mut left, mut right) = (usize::MAX, 0);
    for (y, (was, is)) in rows().filter(|(_, (was, is))| was != is) {
        (first, last) = (first.min(y), y);
        let differs = |(was, is): (&u8, &u8)| was != is;
        let begin = was.iter().zip(is).position(differs).unwrap_or(0);
        let end = was.iter().zip(is).rposition(differs).unwrap_or(0);
        left = left.min(begin / channels);
        right = right.max(end / channels);
    }
    if first == usize::MAX {
        return None;
    }

    let (left, top) = (left & !1, first & !1);
    let narrow = |side: usize| u32::try_from(side).expect("within the picture");
    Some(Rectangle {
        left: narrow(left),
        top: narrow(top),
        width: narrow(right + 1 - left),
        height: narrow(last + 1 - top),
    })
}

/// Copies a part of a picture.
fn cut(pixels: &Pixels, part: Rectangle) -> Pixels {
    let channels = pixels.layout.channels();
    let row = pixels.width as usize * channels;
    let (left, width) = (part.left as usize * channels, part.width as usize * channels);

    let rows = pixels.data.chunks_exact(row).skip(part.top as usize).take(part.height as usize);
    let data = rows.flat_map(|row| &row[left..left + width]).copied().collect();
    Pixels { layout: pixels.layout, width: part.width, height: part.height, data }
}

/// Copies the picture chunks of a still file into a frame.
fn push_picture(frame: &mut Vec<u8>, still: &[u8]) -> Result<()> {
    let mut rest = still.get(RIFF_BYTES..).unwrap_or_default();
    while let Some((header, later)) = rest.split_first_chunk::<CHUNK_BYTES>() {
        let [k0, k1, k2, k3, length @ ..] = *header;
        let (kind, length) = ([k0, k1, k2, k3], u32::from_le_bytes(length) as usize);
        let payload = later.get(..length).ok_or_else(|| failed("a chunk is cut"))?;

        if matches!(&kind, b"ALPH" | b"VP8 " | b"VP8L") {
            push_chunk(frame, kind, payload);
        }
        rest = later.get(length + length % 2..).unwrap_or_default();
    }
    Ok(())
}

/// Appends a chunk, padded to an even length.
fn push_chunk(bytes: &mut Vec<u8>, kind: [u8; 4], payload: &[u8]) {
    bytes.extend(kind);
    let length =
        u32::try_from(payload.len()).expect("a frame of a picture of 16 megapixels at most");
    bytes.extend(length.to_le_bytes());
    bytes.extend_from_slice(payload);
    if payload.len() % 2 == 1 {
        bytes.push(0);
    }
}

/// Encodes a side of a picture: 24 bits, minus one.
fn side(pixels: u32) -> [u8; 3] {
    let [low, middle, high, _] = (pixels - 1).to_le_bytes();
    [low, middle, high]
}

fn nearest_millis(time: Duration) -> u128 {
    (time.as_micros() + 500) / 1000
}

fn failed(why: &'static str) -> Error {
    encoder("encoding an animated variant", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(light: u8) -> Pixels {
        Pixels { layout: Layout::Rgb, width: 6, height: 5, data: vec![light; 3 * 30] }
    }

    fn spot(x: usize, y: usize) -> Pixels {
        let mut pixels = grey(10);
        pixels.data[3 * (y * 6 + x) + 1] = 200;
        pixels
    }

    #[test]
    fn what_changed_is_found_to_the_pixel_from_an_even_corner() {
        let part = |left, top, width, height| Some(Rectangle { left, top, width, height });
        assert_eq!(changed(&grey(10), &grey(10)), None);
        assert_eq!(changed(&grey(10), &grey(11)), part(0, 0, 6, 5));
        assert_eq!(changed(&grey(10), &spot(5, 4)), part(4, 4, 2, 1));
        assert_eq!(changed(&grey(10), &spot(2, 3)), part(2, 2, 1, 2));
        assert_eq!(changed(&spot(1, 0), &spot(3, 1)), part(0, 0, 4, 2));
    }

    #[test]
    fn the_sum_of_rounded_times_stays_near() {
        let mut file = AnimationFile::begin(Dimensions { width: 6, height: 5 }, 0, 80.0, 1 << 20);
        let third = Duration::from_secs(1) / 60;
        let millis: Vec<_> = (0..60).map(|_| file.lasting(third)).collect();
        assert_eq!(millis.iter().sum::<u32>(), 1000, "{millis:?}");
        assert!(millis.iter().all(|millis| (16..=17).contains(millis)), "{millis:?}");
    }

    #[test]
    fn a_picture_that_stays_for_longer_than_a_frame_may_last_gets_another_frame() {
        let mut file = AnimationFile::begin(Dimensions { width: 6, height: 5 }, 0, 80.0, 1 << 20);
        let hours = Duration::from_hours(3);
        for light in [10, 10, 10, 200] {
            file.push(grey(light), hours).unwrap();
        }
        let bytes = file.finish().unwrap();
        let frames = bytes.windows(4).filter(|kind| kind == b"ANMF").count();
        assert_eq!(frames, 4);
    }

    #[test]
    fn equal_pictures_are_one_frame_with_their_times_together() {
        let mut file = AnimationFile::begin(Dimensions { width: 6, height: 5 }, 0, 80.0, 1 << 20);
        for light in [10, 10, 200, 200, 10] {
            file.push(grey(light), Duration::from_millis(40)).unwrap();
        }
        let bytes = file.finish().unwrap();
        let frames = bytes.windows(4).enumerate().filter(|(_, kind)| kind == b"ANMF");
        let millis: Vec<_> = frames.map(|(at, _)| bytes[at + 8 + 12]).collect();
        assert_eq!(millis, [80, 80, 40]);
    }

    #[test]
    fn a_file_over_its_bytes_is_refused_with_the_limit() {
        let mut file = AnimationFile::begin(Dimensions { width: 6, height: 5 }, 0, 80.0, 100);
        let error = (0..9).find_map(|at| file.push(spot(at % 6, 0), Duration::from_secs(1)).err());
        assert_eq!(error.unwrap().limit(), Some(100));
    }

    #[test]
    fn the_buffer_of_a_file_never_has_more_than_the_limit() {
        let most = 4000;
        let mut file = AnimationFile::begin(Dimensions { width: 6, height: 5 }, 0, 80.0, most);
        let mut frames = 0;
        while file.push(spot(frames % 6, frames % 5), Duration::from_secs(1)).is_ok() {
            frames += 1;
            assert!(file.bytes.capacity() as u64 <= most, "{frames}");
        }
        assert!(frames > 9 && 2 * file.bytes.len() as u64 > most, "{frames}");
    }

    #[test]
    fn a_file_without_pictures_is_none() {
        let file = AnimationFile::begin(Dimensions { width: 6, height: 5 }, 0, 80.0, 100);
        assert!(file.finish().is_none());
    }
}
