#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod settings;
mod source;
mod wanted;
mod geometry;
mod pixels;
mod jpeg;
mod webp;
mod lzw;
mod png;
mod pipeline;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;

pub use error::{Error, ErrorKind, Result};
pub use geometry::Dimensions;
pub use pipeline::animation::animate;
pub use pipeline::placeholder::placeholder;
pub use pipeline::probe::{Info, probe};
pub use pipeline::render::{render, thumbnail};
pub use pipeline::sheet;
pub use settings::{AnimationLimits, Limits, Settings};
pub use source::Source;
pub use wanted::{Fit, Rendered, Wanted};

/// The work in steps, for a program that shares memory and threads among many pictures.
///
/// First, *assess* a picture: read its header, plan the results and learn how much memory the work needs.
/// Then *run* the work on any thread, under a [`Deadline`](steps::Deadline). You can keep the decoded pixels
/// ([`Retained`](steps::Retained)) and make further sizes from them.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use filestore_pictures::steps::{Deadline, NoSpare, Small, assess};
/// use filestore_pictures::{Limits, Wanted};
///
/// # fn example(photo: &[u8]) -> filestore_pictures::Result<()> {
/// let wanted = [Wanted::cover(200), Wanted::inside(1000)];
/// // A picture that is smaller than a wanted size is returned as it came.
/// let work = assess(&photo, &wanted, Small::PassesThrough, &Limits::default())?;
/// // Wait here until so much memory is free.
/// println!("{} bytes are needed", work.memory_bytes());
///
/// let deadline = Deadline::after(std::time::Duration::from_secs(15));
/// let retained = work.run(&photo, 80.0, deadline, &NoSpare, |index, made| {
///     println!("{:?} is {made:?}", wanted[index]);
///     ControlFlow::Continue(())
/// })?;
/// // Enough for every size up to 1000 pixels.
/// let kept = retained.and_then(|retained| retained.reduce_to(8 << 20));
/// # Ok(())
/// # }
/// ```
pub mod steps {
    pub use crate::geometry::Geometry;
    pub use crate::pipeline::animation::{Animation, assess as assess_animation};
    pub use crate::pipeline::image_file::Deadline;
    pub use crate::pipeline::placeholder::{PlannedPlaceholder, assess_placeholder};
    pub use crate::pipeline::plan::{Plan, Small};
    pub use crate::pipeline::render::{Rendering, assess};
    pub use crate::pipeline::retained::Retained;
    pub use crate::pipeline::spare::{NoSpare, Spare, Task};
}
