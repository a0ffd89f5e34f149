//! Renders pictures: all stages in order.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use bytes::Bytes;

use super::budget::{check_size, memory_needed};
use super::header::{self, Header};
use super::image_file::{Deadline, ImageFile};
use super::plan::{Plan, Small};
use super::retained::Retained;
use super::spare::{NoSpare, Spare};
use crate::error::{Result, internal};
use crate::geometry::Geometry;
use crate::settings::{Limits, Settings};
use crate::source::Source;
use crate::wanted::{Rendered, Wanted};

/// Makes a thumbnail of the image in `source`, on this thread. The result is always a WebP, upright, in sRGB,
/// without metadata.
///
/// A picture that is no larger than requested keeps its size. To get the original file in that case, or
/// several sizes at once, call [`render`]. Errors are the same as for [`render`].
///
/// ```
/// use filestore_pictures::{Settings, Wanted, thumbnail};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let photo = std::fs::read("photo.jpg")?;
/// let small = thumbnail(&photo, Wanted::inside(400), &Settings::default())?;
/// std::fs::write("thumbnail.webp", small)?;
/// # Ok(())
/// # }
/// ```
pub fn thumbnail(source: &dyn Source, wanted: Wanted, settings: &Settings) -> Result<Bytes> {
    match one(source, wanted, Small::IsRendered, settings)? {
        Rendered::WebP(bytes) => Ok(bytes),
        Rendered::PassThrough { .. } => Err(internal("making a variant", "there is no result")),
    }
}

/// Makes several pictures of the image in `source` on this thread, from a single decode.
///
/// The results have the order of `wanted`. A smaller result can be resized from a larger result's pixels if
/// the quality is the same, but never from its lossy file.
///
/// The deadline applies to all results together. The memory limit applies to this call alone, because several
/// calls share no memory.
///
/// Returns [`NotAnImage`](crate::ErrorKind::NotAnImage), [`Unsupported`](crate::ErrorKind::Unsupported),
/// [`Corrupt`](crate::ErrorKind::Corrupt), [`TooLarge`](crate::ErrorKind::TooLarge) or
/// [`TooSlow`](crate::ErrorKind::TooSlow) if the picture is at fault. Returns
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if a side is not 1 to 16383, and
/// [`Io`](crate::ErrorKind::Io) if a read fails.
///
/// ```
/// use std::fs::File;
/// use filestore_pictures::{Settings, Wanted, render};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let wanted = [Wanted::cover(200), Wanted::inside(1000)];
/// let made = render(&File::open("photo.jpg")?, &wanted, &Settings::default())?;
/// assert_eq!(made.len(), 2);
/// # Ok(())
/// # }
/// ```
pub fn render(
    source: &dyn Source,
    wanted: &[Wanted],
    settings: &Settings,
) -> Result<Vec<Rendered>> {
    all(source, wanted, Small::PassesThrough, settings)
}

/// Makes one picture.
pub(crate) fn one(
    source: &dyn Source,
    wanted: Wanted,
    small: Small,
    settings: &Settings,
) -> Result<Rendered> {
    let made = all(source, &[wanted], small, settings)?.pop();
    made.ok_or_else(|| internal("making a variant", "there is no result"))
}

fn all(
    source: &dyn Source,
    wanted: &[Wanted],
    small: Small,
    settings: &Settings,
) -> Result<Vec<Rendered>> {
    let deadline = Deadline::after(settings.limits.deadline);
    let rendering = assess(source, wanted, small, &settings.limits)?;
    let mut made = vec![rendering.pass_through(); wanted.len()];

    rendering.run(source, settings.quality, deadline, &NoSpare, |index, one| {
        made[index] = one;
        ControlFlow::Continue(())
    })?;
    Ok(made)
}

/// Planned pictures from one source. Only the header was read, and the picture is within the limits.
#[derive(Debug)]
pub struct Rendering {
    header: Header,
    /// The variants to render, in stored axes, with their index in the request. The others pass through.
    rendered: Vec<(usize, Geometry)>,
    memory_bytes: u64,
}

/// Reads the header of `source`, plans the `wanted` pictures and checks the limits, without decoding.
pub fn assess(
    source: &dyn Source,
    wanted: &[Wanted],
    small: Small,
    limits: &Limits,
) -> Result<Rendering> {
    wanted.iter().try_for_each(|one| one.check())?;
    let image = ImageFile::new(source, Deadline::NONE)?;
    let header = header::read(&image)?;

    let planned =
        wanted.iter().enumerate().filter_map(|(index, one)| match small.planned(&header, *one) {
            Plan::PassThrough => None,
            Plan::Render(geometry) => Some((index, geometry)),
        });
    let mut rendering = Rendering { rendered: planned.collect(), memory_bytes: 0, header };

    if !rendering.rendered.is_empty() {
        check_size(rendering.header.stored, limits)?;
        let geometries = rendering.geometries();
        rendering.memory_bytes =
            memory_needed(&rendering.header, &geometries, image.len(), limits)?;
    }
    Ok(rendering)
}

impl Rendering {
    /// Returns an upper bound for the peak memory, in bytes. Returns 0 if no picture needs decoding.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Lists the indexes of the pictures to render.
    pub fn rendered(&self) -> impl Iterator<Item = usize> {
        self.rendered.iter().map(|(index, _)| *index)
    }

    /// Drops the pictures for which `keep` returns false.
    pub fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        self.rendered.retain(|(index, _)| keep(*index));
    }

    /// Returns the result for all requests that need no rendering.
    pub fn pass_through(&self) -> Rendered {
        Rendered::PassThrough { mime: self.header.format.mime() }
    }

    /// Makes the pictures, largest first, and passes each with its index to `made`, until `made` breaks. If
    /// `spare` has an idle thread, that thread can share the decoding.
    ///
    /// The call ends soon after `deadline`. Returns the pixels from which further sizes can be made, or
    /// `None` if every picture came from the source file unchanged.
    pub fn run(
        &self,
        source: &dyn Source,
        quality: f32,
        deadline: Deadline,
        spare: &dyn Spare,
        mut made: impl FnMut(usize, Rendered) -> ControlFlow<()>,
    ) -> Result<Option<Retained>> {
        if self.rendered.is_empty() {
            return Ok(None);
        }

        let image = ImageFile::new(source, deadline)?;
        image.check()?;
        let mut retained = Retained::decode(&image, &self.header, &self.geometries(), spare)?;
        image.check()?;

        let mut left = &*self.largest_first();
        while let [(index, geometry), later @ ..] = left {
            left = later;
            let small = retained.make(*geometry, later)?;
            image.check()?;
            let variant = retained.finish(small, *geometry, quality)?;
            image.check()?;

            if made(*index, variant).is_break() {
                break;
            }
        }
        Ok(Some(retained))
    }

    fn geometries(&self) -> Vec<Geometry> {
        self.rendered.iter().map(|(_, geometry)| *geometry).collect()
    }

    /// Orders the variants from large to small, so that small variants can use the large ones.
    fn largest_first(&self) -> Vec<(usize, Geometry)> {
        let mut ordered = self.rendered.clone();
        ordered.sort_by_key(|(_, geometry)| {
            Reverse(geometry.target.width.max(geometry.target.height))
        });
        ordered
    }
}

#[cfg(test)]
mod tests;
