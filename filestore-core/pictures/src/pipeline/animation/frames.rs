//! The frames of an animation in any format.

use std::time::Duration;

use super::canvas::Canvas;
use super::{gif, png, webp};
use crate::error::{Result, internal};
use crate::pipeline::color::Profile;
use crate::pipeline::header::{Format, Header};
use crate::pipeline::image_file::ImageFile;
use crate::pixels::{Layout, Pixels};

/// The maximum duration of a frame that is slowed to [`SLOWED`], in all formats. Browsers do the same:
/// Firefox in `FrameTimeout.h`, Chromium in `deferred_image_decoder.cc`.
const TOO_FAST: Duration = Duration::from_millis(10);
const SLOWED: Duration = Duration::from_millis(100);

/// The frames of a file, in their order.
pub(super) trait Frames {
    /// Draws the next frame on the canvas. Returns its duration as stored in the file, or `None` after the
    /// last frame. A frame that fails can already be drawn partly.
    fn draw_next(&mut self, canvas: &mut Canvas) -> Result<Option<Duration>>;

    /// Returns the words of the file on its colours. Known once a frame was drawn.
    fn profile(&self) -> Option<Profile>;

    /// Returns true if the file stores shades of grey. The profile of such a file describes grey.
    fn is_grey(&self) -> bool {
        false
    }
}

/// Opens the frames of `image`.
pub(super) fn open<'a>(
    image: &'a ImageFile<'a>,
    header: &'a Header,
) -> Result<Box<dyn Frames + 'a>> {
    Ok(match &header.format {
        Format::Gif => Box::new(gif::open(image)?),
        Format::Png(kind) => Box::new(png::open(image, header, *kind)?),
        Format::WebP(_) => Box::new(webp::open(image, header)?),
        _ => return Err(internal("opening an animation", "its format has none")),
    })
}

/// Leaves one channel of three that are alike, with alpha: the profile of greys knows one.
pub(super) fn to_grey(mut pixels: Pixels) -> Pixels {
    let pairs = pixels.data.as_chunks().0.iter();
    pixels.data = pairs.flat_map(|[grey, _, _, alpha]| [*grey, *alpha]).collect();
    pixels.layout = Layout::GreyAlpha;
    pixels
}

/// Returns the time for which browsers show a frame: whole milliseconds, rounded down, and longer for a frame
/// that is too fast.
pub(super) fn shown_for(wanted: Duration) -> Duration {
    let millis = u64::try_from(wanted.as_millis()).unwrap_or(u64::MAX);
    let whole = Duration::from_millis(millis);
    if whole <= TOO_FAST { SLOWED } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_ten_milliseconds_and_a_bit_is_too_fast_as_well() {
        let shown = [0, 10_000, 10_417, 10_999, 11_000, 40_900]
            .map(|micros| shown_for(Duration::from_micros(micros)).as_millis());
        assert_eq!(shown, [100, 100, 100, 100, 11, 40]);
    }
}
