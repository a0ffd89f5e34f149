//! The frames of an animation, whatever its format.

use std::time::Duration;

use super::canvas::Canvas;
use super::{gif, png, webp};
use crate::domain::error::{Error, Result};
use crate::variant::pipeline::header::{Format, Header};
use crate::variant::pipeline::image_file::ImageFile;

/// Frames shown for this long or less are shown for [`SLOWED`], in all formats, as browsers do: Firefox in
/// `FrameTimeout.h`, Chromium in `deferred_image_decoder.cc`.
const TOO_FAST: Duration = Duration::from_millis(10);
const SLOWED: Duration = Duration::from_millis(100);

/// The frames of a file, in their order.
pub(super) trait Frames {
    /// Draws the next frame on the canvas; returns the time for which the file wants it shown, `None`
    /// after the last one. A frame that fails may have drawn a part.
    fn draw_next(&mut self, canvas: &mut Canvas) -> Result<Option<Duration>>;

    /// Returns the embedded ICC profile. Known once a frame was drawn.
    fn profile(&self) -> Option<&[u8]>;

    /// Returns true if the file stores shades of grey, which its profile means.
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
        _ => return Err(Error::internal("opening an animation", "its format has none")),
    })
}

/// Returns the time for which a frame is really shown: whole milliseconds, what is left of one cut off, as
/// browsers count.
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
