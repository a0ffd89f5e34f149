//! Renders an animation: all stages in order, on one thread.

use bytes::Bytes;

use super::canvas::Canvas;
use super::clock::ProcessorTime;
use super::file::AnimationFile;
use super::frames::{self, Frames, shown_for, to_grey};
use super::limits::{check, memory_needed};
use super::outline::{self, Outline};
use crate::error::{Error, ErrorKind, Result, corrupt};
use crate::geometry::Geometry;
use crate::pipeline::color::ToSrgb;
use crate::pipeline::guard::guarded;
use crate::pipeline::header::{self, Header};
use crate::pipeline::image_file::{Deadline, ImageFile};
use crate::pipeline::plan::{Plan, Small, plan_stored};
use crate::pipeline::render::one;
use crate::pipeline::resize::resize_whole;
use crate::pixels::{Layout, Pixels};
use crate::settings::{Limits, Settings};
use crate::source::Source;
use crate::{Rendered, Wanted};

/// Makes an animated WebP from the image in `source`, with all frames, on this thread. If the picture is not
/// animated, or has fewer than two whole frames, the result is the same as from [`render`](crate::render).
///
/// Errors are the same as for [`render`](crate::render). [`TooLarge`](crate::ErrorKind::TooLarge) also covers
/// the limits of animations.
///
/// ```
/// use filestore_pictures::{Rendered, Settings, Wanted, animate};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let dance = std::fs::read("dance.gif")?;
/// if let Rendered::WebP(small) = animate(&dance, Wanted::inside(200), &Settings::default())? {
///     std::fs::write("dance.webp", small)?;
/// }
/// # Ok(())
/// # }
/// ```
pub fn animate(source: &dyn Source, wanted: Wanted, settings: &Settings) -> Result<Rendered> {
    let limits = &settings.limits;
    let moving = match assess(source, wanted, limits)? {
        Some(animation) => {
            let deadline = Deadline::after(limits.deadline);
            animation.run(source, settings, deadline, &|| true)?
        }
        None => None,
    };
    match moving {
        Some(webp) => Ok(Rendered::WebP(webp)),
        None => one(source, wanted, Small::PassesThrough, settings),
    }
}

/// A planned animation. Only its structure was read, and it is within the limits.
#[derive(Debug)]
pub struct Animation {
    header: Header,
    outline: Outline,
    /// The part and size of each frame, in stored axes.
    wanted: Geometry,
    memory_bytes: u64,
}

/// Reads the structure of `source`, plans the animation and checks the limits, without decoding. `None` if
/// the still picture is the answer: the picture is not animated, or passes through.
pub fn assess(source: &dyn Source, wanted: Wanted, limits: &Limits) -> Result<Option<Animation>> {
    wanted.check()?;
    let image = ImageFile::new(source, Deadline::after(limits.deadline))?;
    let header = header::read(&image)?;
    let Plan::Render(wanted) = plan_stored(&header, wanted) else { return Ok(None) };
    let Some(outline) = outline::read(&image, &header, limits.animation.max_frames)? else {
        return Ok(None);
    };

    check(&header, &outline, limits)?;
    let memory_bytes = memory_needed(&header, &outline, wanted, limits)?;
    Ok(Some(Animation { header, outline, wanted, memory_bytes }))
}

impl Animation {
    /// Returns an upper bound for the peak memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Makes the file. The call checks after each frame if it must stop: at `deadline`, when the processor
    /// time in `settings` is used up, or when `is_wanted` returns false. `None` if fewer than two frames can
    /// be decoded. The still picture is then the answer.
    pub fn run(
        &self,
        source: &dyn Source,
        settings: &Settings,
        deadline: Deadline,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Bytes>> {
        let time = ProcessorTime::begin(settings.limits.animation.cpu);
        let image = ImageFile::new(source, deadline)?;
        let opened = guarded(|| frames::open(&image, &self.header));
        let opened = opened.unwrap_or_else(|panic| Err(corrupt(panic)));
        let Some(mut frames) = ended(&image, opened.map(Some))? else { return Ok(None) };

        let mut canvas = Canvas::new(self.header.stored);
        let size = self.header.orientation.displayed(self.wanted.target);
        let (quality, most) = (settings.quality, settings.limits.animation.max_bytes);
        let mut made = AnimationFile::begin(size, self.outline.plays, quality, most);
        let (mut count, mut colors) = (0, None);
        while count < self.outline.frames {
            image.check()?;
            time.check()?;
            if !is_wanted() {
                return Err(Error::new(ErrorKind::Stopped, "the caller stopped the animation"));
            }

            let drawn = guarded(|| frames.draw_next(&mut canvas));
            let drawn = drawn.unwrap_or_else(|panic| Err(corrupt(panic)));
            let Some(wanted) = ended(&image, drawn)? else { break };
            let colors = colors.get_or_insert_with(|| Colors::of(&*frames));
            made.push(self.shown(&canvas, colors)?, shown_for(wanted))?;
            count += 1;
        }

        time.check()?;
        Ok(if count < 2 { None } else { made.finish() })
    }

    /// Makes the picture that the canvas shows: resized, in sRGB, upright.
    fn shown(&self, canvas: &Canvas, colors: &Colors) -> Result<Pixels> {
        let small = resize_whole(canvas.pixels(), self.wanted)?;
        Ok(self.header.orientation.apply(colors.convert(small)))
    }
}

/// The conversion from the canvas's colours to sRGB, the same for all frames.
struct Colors {
    to_srgb: ToSrgb,
    is_grey: bool,
}

impl Colors {
    fn of(frames: &dyn Frames) -> Self {
        let is_grey = frames.is_grey();
        let layout = if is_grey { Layout::GreyAlpha } else { Layout::Rgba };
        Self { to_srgb: ToSrgb::new(layout, frames.profile().as_ref()), is_grey }
    }

    fn convert(&self, mut pixels: Pixels) -> Pixels {
        if self.is_grey {
            pixels = to_grey(pixels);
        }
        self.to_srgb.convert(pixels)
    }
}

/// Treats a fault of the picture as its end, like a browser, so that the earlier frames are shown. A disk
/// fault and a passed deadline remain errors.
fn ended<T>(image: &ImageFile<'_>, outcome: Result<Option<T>>) -> Result<Option<T>> {
    match image.settle(outcome) {
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
        outcome => outcome,
    }
}
