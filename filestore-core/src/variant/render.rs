//! From an open blob to a variant: the stages in their order, on one thread.

use std::fs::File;

use super::Variant;
use super::budget::{check_size, memory_needed};
use super::color::to_srgb;
use super::decode::decode;
use super::encode::encode;
use super::header::{self, Header};
use super::plan::{Fit, Geometry, Plan, VariantSize, plan};
use super::resize::resize;
use super::source::{Deadline, Source};
use crate::domain::config::VariantConfig;
use crate::domain::error::Result;

/// What there is to do for a variant, known from the header alone.
#[derive(Debug)]
pub(super) enum Assessment {
    /// Nothing.
    Done(Variant),
    /// This.
    Work(Work),
}

/// A rendering that has passed the limits.
#[derive(Debug)]
pub(super) struct Work {
    header: Header,
    /// In stored axes.
    geometry: Geometry,
    /// Bytes it will hold at its peak.
    pub(super) memory_bytes: u64,
}

/// Reads the header of `file`, plans, and checks the limits. Decodes nothing.
pub(super) fn assess(file: &File, size: VariantSize, fit: Fit, config: &VariantConfig) -> Result<Assessment> {
    let source = Source::new(file, Deadline::NONE)?;
    let header = header::read(&source)?;
    let displayed = match plan(header.displayed(), size, fit) {
        Plan::PassThrough => {
            return Ok(Assessment::Done(Variant::PassThrough { mime: header.format.mime() }));
        }
        Plan::Render(geometry) => geometry,
    };
    check_size(header.stored, config)?;
    let geometry = header.orientation.to_stored(displayed, header.stored);
    let memory_bytes = memory_needed(&header, geometry, source.len(), config)?;
    Ok(Assessment::Work(Work { header, geometry, memory_bytes }))
}

/// Makes the variant. Takes as long as decoding takes, but not much longer than until `deadline`.
pub(super) fn render(file: &File, work: &Work, quality: f32, deadline: Deadline) -> Result<Variant> {
    let source = Source::new(file, deadline)?;
    source.check()?;
    let mut decoded = decode(&source, &work.header, &[work.geometry])?;
    source.check()?;
    let profile = decoded.profile.take();
    let small = resize(&decoded, work.geometry)?;
    source.check()?;
    let finished = work.header.orientation.apply(to_srgb(small, profile.as_deref()));
    encode(&finished, quality).map(Variant::WebP)
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
