//! From an open blob to its animated variant: the stages in their order, on one thread.

use std::fs::File;
use std::slice;

use bytes::Bytes;

use super::canvas::Canvas;
use super::clock::ProcessorTime;
use super::file::AnimationFile;
use super::frames::{self, Frames, shown_for};
use super::limits;
use super::outline::{self, Outline};
use crate::domain::config::VariantConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::variant::{Fit, VariantSize};
use crate::variant::Variant;
use crate::variant::geometry::Geometry;
use crate::variant::pipeline::color::ToSrgb;
use crate::variant::pipeline::guard::guarded;
use crate::variant::pipeline::header::{self, Header};
use crate::variant::pipeline::image_file::{Deadline, ImageFile};
use crate::variant::pipeline::plan::{Plan, plan_stored};
use crate::variant::pipeline::refusal::corrupt;
use crate::variant::pipeline::render::render;
use crate::variant::pipeline::resize::resize_whole;
use crate::variant::pixels::{Layout, Pixels};

/// Makes the animated variant of the image in `file`, without any cache, on this thread. Of a picture that
/// does not move, or of which fewer than two whole frames came, the variant is that of
/// [`render`].
///
/// Of `config`, the limits, the quality and the deadline matter here, not whether animated variants are
/// switched on. Errors as of [`render`]; [`ImageTooLarge`](crate::ErrorKind::ImageTooLarge) also for the
/// limits of animations.
pub fn animate(
    file: &File,
    size: VariantSize,
    fit: Fit,
    config: &VariantConfig,
) -> Result<Variant> {
    let moving = match assess(file, size, fit, config)? {
        Some(animation) => {
            animation.run(file, config, Deadline::after(config.deadline), &|| true)?
        }
        None => None,
    };
    if let Some(webp) = moving {
        return Ok(Variant::WebP(webp));
    }

    let still = render(file, slice::from_ref(&(size, fit)), config)?;
    still
        .into_iter()
        .next()
        .ok_or_else(|| Error::internal("making a variant", "there is no result"))
}

/// An animation to render, known from its structure alone, which has passed the limits.
#[derive(Debug)]
pub(crate) struct Animation {
    header: Header,
    outline: Outline,
    /// The wanted part and size of each frame, in stored axes.
    wanted: Geometry,
    /// The bytes held at the peak.
    pub(crate) memory_bytes: u64,
}

/// Reads the structure of `file`, plans the variant and checks the limits. Decodes nothing. `None` if the
/// still variant is the answer: of a picture that does not move, or that passes through.
pub(crate) fn assess(
    file: &File,
    size: VariantSize,
    fit: Fit,
    config: &VariantConfig,
) -> Result<Option<Animation>> {
    let image = ImageFile::new(file, Deadline::after(config.deadline))?;
    let header = header::read(&image)?;
    let Plan::Render(wanted) = plan_stored(&header, size, fit) else { return Ok(None) };
    let Some(outline) = outline::read(&image, &header, config.animation.max_frames)? else {
        return Ok(None);
    };

    limits::check(&header, &outline, config)?;
    let memory_bytes = limits::memory_needed(&header, &outline, wanted, config)?;
    Ok(Some(Animation { header, outline, wanted, memory_bytes }))
}

impl Animation {
    /// Makes the file. Between two frames, ends soon after `deadline`, after the processor time of
    /// `config`, and once `is_wanted` says no. `None` if the still variant is the answer after all: fewer
    /// than two frames can be decoded.
    pub(crate) fn run(
        &self,
        file: &File,
        config: &VariantConfig,
        deadline: Deadline,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Bytes>> {
        let time = ProcessorTime::begin(config.animation.cpu);
        let image = ImageFile::new(file, deadline)?;
        let opened = guarded(|| frames::open(&image, &self.header));
        let opened = opened.unwrap_or_else(|panic| Err(corrupt(panic)));
        let Some(mut frames) = ended(&image, opened.map(Some))? else { return Ok(None) };

        let mut canvas = Canvas::new(self.header.stored);
        let size = self.header.orientation.displayed(self.wanted.target);
        let (quality, most) = (config.quality, config.animation.max_bytes);
        let mut made = AnimationFile::begin(size, self.outline.plays, quality, most);
        let (mut count, mut colors) = (0, None);
        while count < self.outline.frames {
            image.check()?;
            time.check()?;
            if !is_wanted() {
                return Err(Error::new(ErrorKind::Busy, "nobody waits for the animation any more"));
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

    /// Makes the picture that the canvas shows: resized, sRGB, upright.
    fn shown(&self, canvas: &Canvas, colors: &Colors) -> Result<Pixels> {
        let small = resize_whole(canvas.pixels(), self.wanted)?;
        Ok(self.header.orientation.apply(colors.convert(small)))
    }
}

/// The way from the canvas's colours to sRGB, the same for all frames.
struct Colors {
    to_srgb: ToSrgb,
    is_grey: bool,
}

impl Colors {
    fn of(frames: &dyn Frames) -> Self {
        let is_grey = frames.is_grey();
        let layout = if is_grey { Layout::GreyAlpha } else { Layout::Rgba };
        Self { to_srgb: ToSrgb::new(layout, frames.profile()), is_grey }
    }

    fn convert(&self, mut pixels: Pixels) -> Pixels {
        // The profile of greys knows one channel, of which the canvas has three alike.
        if self.is_grey {
            let pairs = pixels.data.as_chunks().0.iter();
            pixels.data = pairs.flat_map(|[grey, _, _, alpha]| [*grey, *alpha]).collect();
            pixels.layout = Layout::GreyAlpha;
        }
        self.to_srgb.convert(pixels)
    }
}

/// Takes a fault of the picture for its end, as browsers do: what came before is shown. A fault of the disk
/// and a passed deadline are none of that.
fn ended<T>(image: &ImageFile<'_>, outcome: Result<Option<T>>) -> Result<Option<T>> {
    if let Some(failure) = image.outside_failure() {
        return Err(failure);
    }
    match outcome {
        Err(error) if error.kind() == ErrorKind::CorruptImage => Ok(None),
        outcome => outcome,
    }
}
