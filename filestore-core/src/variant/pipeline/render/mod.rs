//! From an open blob to its variants: the stages in their order.

use std::cmp::Reverse;
use std::fs::File;
use std::ops::ControlFlow;

use super::super::Variant;
use super::aside::{NoSpare, Spare};
use super::budget::{check_size, memory_needed};
use super::header::{self, Header};
use super::image_file::{Deadline, ImageFile};
use super::plan::Plan;
pub(crate) use super::plan::Small;
use super::retained::Retained;
use crate::domain::config::VariantConfig;
use crate::domain::error::Result;
use crate::domain::variant::{Fit, VariantSize};
use crate::variant::geometry::Geometry;

/// Makes several variants of the image in `file` at once, without any cache, on this thread: one
/// decode serves them all.
///
/// The results are in the order of `wanted`. A smaller one may be resized from a larger one's
/// pixels (never from its lossy file), where that is as good as from the decoded picture.
///
/// Of `config`, the limits, the quality and the deadline (for all together) matter here. The memory
/// limit applies to this call alone: several at once share nothing.
///
/// Errors: [`NotAnImage`](crate::ErrorKind::NotAnImage),
/// [`CorruptImage`](crate::ErrorKind::CorruptImage),
/// [`ImageTooLarge`](crate::ErrorKind::ImageTooLarge) (also past the deadline), and
/// [`Internal`](crate::ErrorKind::Internal) for a fault of the disk.
///
/// ```
/// use std::fs::File;
/// use filestore_core::domain::config::VariantConfig;
/// use filestore_core::variant::{Fit, VariantSize, render};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let wanted = [
///     (VariantSize::try_from(200)?, Fit::Cover),
///     (VariantSize::try_from(1000)?, Fit::Inside),
/// ];
/// let variants = render(&File::open("photo.jpg")?, &wanted, &VariantConfig::default())?;
/// assert_eq!(variants.len(), 2);
/// # Ok(())
/// # }
/// ```
pub fn render(
    file: &File,
    wanted: &[(VariantSize, Fit)],
    config: &VariantConfig,
) -> Result<Vec<Variant>> {
    let deadline = Deadline::after(config.deadline);
    let rendering = assess(file, wanted, Small::PassesThrough, config)?;
    let mut variants = vec![rendering.pass_through(); wanted.len()];

    rendering.run(file, config.quality, deadline, &NoSpare, |index, variant| {
        variants[index] = variant;
        ControlFlow::Continue(())
    })?;
    Ok(variants)
}

/// The variants to make of one file, known from its header alone, which has passed the limits.
#[derive(Debug)]
pub(crate) struct Rendering {
    header: Header,
    /// The rendered variants, in stored axes, each with its place among the wanted; the others
    /// pass through.
    rendered: Vec<(usize, Geometry)>,
    /// The bytes held at the peak; 0 if nothing is decoded.
    pub(crate) memory_bytes: u64,
}

/// Reads the header of `file`, plans the `wanted` variants, and checks the limits. Decodes nothing.
pub(crate) fn assess(
    file: &File,
    wanted: &[(VariantSize, Fit)],
    small: Small,
    config: &VariantConfig,
) -> Result<Rendering> {
    let image = ImageFile::new(file, Deadline::NONE)?;
    let header = header::read(&image)?;

    let planned = wanted.iter().enumerate().filter_map(|(index, (size, fit))| {
        match small.planned(&header, *size, *fit) {
            Plan::PassThrough => None,
            Plan::Render(geometry) => Some((index, geometry)),
        }
    });
    let mut rendering = Rendering { rendered: planned.collect(), memory_bytes: 0, header };

    if !rendering.rendered.is_empty() {
        check_size(rendering.header.stored, config)?;
        let geometries = rendering.geometries();
        rendering.memory_bytes =
            memory_needed(&rendering.header, &geometries, image.len(), config)?;
    }
    Ok(rendering)
}

impl Rendering {
    /// Lists the places of the variants to render.
    pub(crate) fn rendered(&self) -> impl Iterator<Item = usize> {
        self.rendered.iter().map(|(index, _)| *index)
    }

    /// Leaves out the variants that are not to be rendered after all.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        self.rendered.retain(|(index, _)| keep(*index));
    }

    /// Returns the answer to all requests whose variant is not rendered.
    pub(crate) fn pass_through(&self) -> Variant {
        Variant::PassThrough { mime: self.header.format.mime() }
    }

    /// Makes the variants, the largest first, and gives each to `made` with its place among the
    /// wanted, until `made` breaks off. A thread that is `spare` may take a part in decoding.
    ///
    /// Takes as long as decoding takes, but not much longer than until `deadline`. Returns the
    /// pixels that further sizes can be made of; `None` if nothing was decoded.
    pub(crate) fn run(
        &self,
        file: &File,
        quality: f32,
        deadline: Deadline,
        spare: &dyn Spare,
        mut made: impl FnMut(usize, Variant) -> ControlFlow<()>,
    ) -> Result<Option<Retained>> {
        if self.rendered.is_empty() {
            return Ok(None);
        }

        let image = ImageFile::new(file, deadline)?;
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

    /// Orders the variants so that the small ones find the large ones made.
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
