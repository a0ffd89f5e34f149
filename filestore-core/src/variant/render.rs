//! From an open blob to its variants: the stages in their order, on one thread.

use std::cmp::Reverse;
use std::fs::File;
use std::ops::ControlFlow;

use super::Variant;
use super::budget::{check_size, memory_needed};
use super::header::{self, Header};
use super::plan::{Geometry, Plan, plan};
use super::source::{Deadline, Source};
use super::stock::Stock;
use crate::domain::config::VariantConfig;
use crate::domain::error::Result;
use crate::domain::variant::{Fit, VariantSize};

/// Makes several variants of the image in `file` at once, without any cache, on this thread: one
/// decode serves them all.
///
/// The results are in the order of `wanted`. A smaller one may be resized from a larger one's
/// pixels (never from its lossy file), where that is as good as from the decoded picture.
///
/// Of `config`, the limits, the quality and the deadline (for all together) matter here. The memory
/// limit applies to this call alone: several at once share nothing.
///
/// Errors: [`NotAnImage`](crate::ErrorKind::NotAnImage), [`CorruptImage`](crate::ErrorKind::CorruptImage),
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
    let work = assess(file, wanted, config)?;
    let mut variants = vec![work.pass_through(); wanted.len()];
    work.run(file, config.quality, deadline, |index, variant| {
        variants[index] = variant;
        ControlFlow::Continue(())
    })?;
    Ok(variants)
}

/// What there is to do for some variants of one file, known from its header alone; has passed the
/// limits.
#[derive(Debug)]
pub(super) struct Work {
    header: Header,
    /// What is rendered, in stored axes, each with its place among the wanted; the others pass
    /// through.
    rendered: Vec<(usize, Geometry)>,
    /// Bytes it will hold at its peak; 0 if nothing is decoded.
    pub(super) memory_bytes: u64,
}

/// Reads the header of `file`, plans, and checks the limits. Decodes nothing.
pub(super) fn assess(
    file: &File,
    wanted: &[(VariantSize, Fit)],
    config: &VariantConfig,
) -> Result<Work> {
    let source = Source::new(file, Deadline::NONE)?;
    let header = header::read(&source)?;
    let rendered = wanted
        .iter()
        .enumerate()
        .filter_map(|(index, (size, fit))| Some((index, geometry(&header, *size, *fit)?)));
    let mut work = Work { rendered: rendered.collect(), memory_bytes: 0, header };
    if !work.rendered.is_empty() {
        check_size(work.header.stored, config)?;
        work.memory_bytes = memory_needed(&work.header, &work.geometries(), source.len(), config)?;
    }
    Ok(work)
}

/// What of the stored picture becomes which size; `None` if it passes through.
pub(super) fn geometry(header: &Header, size: VariantSize, fit: Fit) -> Option<Geometry> {
    match plan(header.displayed(), size, fit) {
        Plan::PassThrough => None,
        Plan::Render(displayed) => Some(header.orientation.to_stored(displayed, header.stored)),
    }
}

impl Work {
    /// The places of what is to be rendered.
    pub(super) fn rendered(&self) -> impl Iterator<Item = usize> {
        self.rendered.iter().map(|(index, _)| *index)
    }

    /// Leaves out what is not to be rendered after all.
    pub(super) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        self.rendered.retain(|(index, _)| keep(*index));
    }

    /// What all others are answered with.
    pub(super) fn pass_through(&self) -> Variant {
        Variant::PassThrough { mime: self.header.format.mime() }
    }

    /// Makes the variants, the largest first, and gives each to `made` with its place among the
    /// wanted, until that breaks off. Takes as long as decoding takes, but not much longer than
    /// until `deadline`. Returns what more could be made of; `None` if nothing was decoded.
    pub(super) fn run(
        &self,
        file: &File,
        quality: f32,
        deadline: Deadline,
        mut made: impl FnMut(usize, Variant) -> ControlFlow<()>,
    ) -> Result<Option<Stock>> {
        if self.rendered.is_empty() {
            return Ok(None);
        }
        let source = Source::new(file, deadline)?;
        source.check()?;
        let mut stock = Stock::decode(&source, &self.header, &self.geometries())?;
        source.check()?;
        let mut left = &*self.largest_first();
        while let [(index, geometry), later @ ..] = left {
            left = later;
            let small = stock.make(*geometry, later)?;
            source.check()?;
            let variant = stock.finish(small, quality)?;
            source.check()?;
            if made(*index, variant).is_break() {
                break;
            }
        }
        Ok(Some(stock))
    }

    fn geometries(&self) -> Vec<Geometry> {
        self.rendered.iter().map(|(_, geometry)| *geometry).collect()
    }

    /// So that the small ones find the large ones made.
    fn largest_first(&self) -> Vec<(usize, Geometry)> {
        let mut ordered = self.rendered.clone();
        ordered.sort_by_key(|(_, geometry)| {
            Reverse(geometry.target.width.max(geometry.target.height))
        });
        ordered
    }
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
