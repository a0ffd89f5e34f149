//! Replaces `pictures` in a build without the feature `pictures`. All requests for pictures are refused.
//!
//! The cache and its upkeep stay. A store that was opened with pictures before can therefore still be checked
//! and purged. No value of these types is ever created, so the engine is the same in both builds.

use std::convert::Infallible;
use std::fs::File;
use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;

use super::Variant;
use crate::domain::config::VariantConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::record::{Dimensions, Thumbhash};
use crate::domain::file::sheet::{SheetGrid, SheetPlace};
use crate::domain::file::variant::{Fit, VariantSize};

fn not_built_in() -> Error {
    let message = "this build makes no pictures: filestore-core needs its feature `pictures`";
    Error::new(ErrorKind::NotAnImage, message)
}

pub(crate) fn too_slow() -> Error {
    Error::new(ErrorKind::ImageTooLarge, "the image takes too long")
}

pub(crate) fn corrupt(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::CorruptImage, "the image is corrupt").with_source(why)
}

pub(crate) fn sheet_too_slow() -> Error {
    Error::new(ErrorKind::Busy, "the sheet takes too long to put together").with_retry_after_secs(1)
}

/// Returns false, because another build can succeed.
pub(crate) const fn is_final(_error: &Error) -> bool {
    false
}

/// Returns `None` without reading a header.
#[expect(clippy::unnecessary_wraps, reason = "with the feature pictures it fails if a read fails")]
pub(crate) const fn probe(_file: &File) -> Result<Option<Dimensions>> {
    Ok(None)
}

/// A job that could run on another thread.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// A pool that may have an idle thread.
pub(crate) trait Spare {
    /// Starts `task` on another thread, or returns it.
    fn start(&self, task: Task) -> Result<(), Task>;
}

/// A [`Spare`] without threads: the caller's own thread does all work.
pub(crate) struct NoSpare;

impl Spare for NoSpare {
    fn start(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }
}

/// A deadline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline;

impl Deadline {
    pub(crate) const fn after(_time: Duration) -> Self {
        Self
    }
}

/// The treatment of a picture that is no larger than requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Small {
    PassesThrough,
    IsRendered,
}

/// A size to render.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Geometry {}

impl Geometry {
    pub(crate) const fn memory_bytes(self) -> u64 {
        match self {}
    }
}

/// The plan for one request.
#[derive(Debug)]
pub(crate) enum Plan {
    PassThrough,
    Render(Geometry),
}

/// The planned variants of one file.
#[derive(Debug)]
pub(crate) struct Rendering {
    never: Infallible,
    pub(crate) memory_bytes: u64,
}

pub(crate) fn assess(
    _file: &File,
    _asked: &[(VariantSize, Fit)],
    _small: Small,
    _config: &VariantConfig,
) -> Result<Rendering> {
    Err(not_built_in())
}

impl Rendering {
    pub(crate) fn rendered(&self) -> std::iter::Empty<usize> {
        match self.never {}
    }

    pub(crate) fn retain(&mut self, _keep: impl Fn(usize) -> bool) {
        match self.never {}
    }

    pub(crate) const fn pass_through(&self) -> Variant {
        match self.never {}
    }

    pub(crate) fn run(
        &self,
        _file: &File,
        _quality: f32,
        _deadline: Deadline,
        _spare: &dyn Spare,
        _made: impl FnMut(usize, Variant) -> ControlFlow<()>,
    ) -> Result<Option<Retained>> {
        match self.never {}
    }
}

/// The pixels for further sizes.
#[derive(Debug)]
pub(crate) struct Retained(Infallible);

impl Retained {
    pub(crate) const fn plan(&self, _size: VariantSize, _fit: Fit, _small: Small) -> Option<Plan> {
        match self.0 {}
    }

    pub(crate) const fn render(&self, _planned: Geometry, _quality: f32) -> Result<Variant> {
        match self.0 {}
    }

    pub(crate) const fn pass_through(&self) -> Variant {
        match self.0 {}
    }

    pub(crate) const fn plan_sketch(&self) -> Option<Geometry> {
        match self.0 {}
    }

    pub(crate) const fn sketch(&self, _planned: Geometry) -> Result<Thumbhash> {
        match self.0 {}
    }

    pub(crate) const fn reduce_to(self, _max_bytes: u64) -> Option<Self> {
        match self.0 {}
    }

    pub(crate) const fn bytes(&self) -> u64 {
        match self.0 {}
    }
}

/// A planned animated variant.
pub(crate) struct Animation {
    never: Infallible,
    pub(crate) memory_bytes: u64,
}

impl Animation {
    pub(crate) fn assess(
        _file: &File,
        _size: VariantSize,
        _fit: Fit,
        _config: &VariantConfig,
    ) -> Result<Option<Self>> {
        Err(not_built_in())
    }

    pub(crate) const fn run(
        &self,
        _file: &File,
        _config: &VariantConfig,
        _deadline: Deadline,
        _is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Bytes>> {
        match self.never {}
    }
}

/// A planned placeholder.
pub(crate) struct Sketch {
    never: Infallible,
    pub(crate) memory_bytes: u64,
}

impl Sketch {
    pub(crate) fn assess(_file: &File, _config: &VariantConfig) -> Result<Self> {
        Err(not_built_in())
    }

    pub(crate) const fn make(&self, _file: &File, _deadline: Deadline) -> Result<Thumbhash> {
        match self.never {}
    }
}

pub(crate) fn sheet_memory(_grid: SheetGrid, _budget: u64) -> Result<u64> {
    Err(not_built_in())
}

pub(crate) fn assemble_sheet(
    _grid: SheetGrid,
    _files: &[Option<Bytes>],
    _config: &VariantConfig,
) -> Result<(Bytes, Vec<Option<SheetPlace>>)> {
    Err(not_built_in())
}

pub(crate) fn blank_sheet(_grid: SheetGrid) -> Result<Bytes> {
    Err(not_built_in())
}
