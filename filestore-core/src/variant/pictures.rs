//! The bridge between a store and `filestore-pictures`: configuration, sizes, results and errors.
//!
//! All conversions are in this module. The engine uses variants, the sizes of the API, and errors with the
//! API's codes. The other crate does not know them.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;

use bytes::Bytes;
use filestore_pictures::sheet::{self, Grid, Place};
use filestore_pictures::steps;
use filestore_pictures::{self as pictures, Limits, Rendered, Settings, Wanted};

use super::Variant;
use crate::domain::config::VariantConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::record::{Dimensions, Thumbhash};
use crate::domain::file::sheet::{SheetGrid, SheetPlace};
use crate::domain::file::variant::{Fit, VariantSize};

pub(crate) use filestore_pictures::steps::{Deadline, Geometry, NoSpare, Plan, Small, Spare, Task};

/// Converts an error of a picture to an error of the store, with the same message.
pub(crate) fn refused(error: pictures::Error) -> Error {
    use pictures::ErrorKind as Kind;

    let kind = match error.kind() {
        Kind::NotAnImage | Kind::Unsupported => ErrorKind::NotAnImage,
        Kind::Corrupt => ErrorKind::CorruptImage,
        Kind::TooLarge | Kind::TooSlow => ErrorKind::ImageTooLarge,
        Kind::Stopped => ErrorKind::Busy,
        Kind::Io => return unreadable(error),
        // What a store asks for, and what the other crate cannot do, is no fault of a client's.
        _ => ErrorKind::Internal,
    };
    let limit = error.limit();
    let turned = Error::new(kind, error.message());
    let turned = limit.into_iter().fold(turned, Error::with_limit);
    error.into_source().into_iter().fold(turned, Error::with_source)
}

/// Returns the error for a blob that cannot be read from the disk.
fn unreadable(error: pictures::Error) -> Error {
    const READING: &str = "reading an image";

    match error.into_source().map(<dyn std::error::Error + Send + Sync>::downcast::<io::Error>) {
        Some(Ok(source)) => Error::io(READING, *source),
        Some(Err(source)) => Error::internal(READING, source),
        None => Error::internal(READING, "there is no reason"),
    }
}

/// Returns the error for a picture that takes longer than allowed.
pub(crate) fn too_slow() -> Error {
    refused(pictures::Error::too_slow())
}

/// Returns the error for a picture that cannot be decoded.
pub(crate) fn corrupt(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    refused(pictures::Error::corrupt(why))
}

/// Returns the error for a sheet that exceeds its deadline. The files of such a sheet are not at fault,
/// because their variants exist.
pub(crate) fn sheet_too_slow() -> Error {
    Error::new(ErrorKind::Busy, "the sheet takes too long to put together").with_retry_after_secs(1)
}

/// Returns true if the picture itself causes `error`, so that a retry would fail in the same way. A timeout
/// is different, because the machine's load can be the reason.
pub(crate) fn is_final(error: &Error) -> bool {
    use ErrorKind::{CorruptImage, ImageTooLarge, NotAnImage};

    matches!(error.kind(), CorruptImage | ImageTooLarge | NotAnImage)
        && error.message() != pictures::Error::too_slow().message()
}

fn limits(config: &VariantConfig) -> Limits {
    let mut limits = Limits::default();
    limits.max_pixels = config.max_pixels;
    limits.max_side = config.max_side;
    limits.memory_bytes = config.decode_memory_bytes;
    limits.deadline = config.deadline;
    limits.animation.max_frames = config.animation.max_frames;
    limits.animation.max_pixels = config.animation.max_pixels;
    limits.animation.cpu = config.animation.cpu;
    limits.animation.max_bytes = config.animation.max_bytes;
    limits
}

fn settings(config: &VariantConfig) -> Settings {
    let mut settings = Settings::default();
    settings.quality = config.quality;
    settings.limits = limits(config);
    settings
}

fn wanted(size: VariantSize, fit: Fit) -> Wanted {
    let fit = match fit {
        Fit::Cover => pictures::Fit::Cover,
        Fit::Inside => pictures::Fit::Inside,
    };
    Wanted::new(size.pixels(), fit)
}

fn variant(rendered: Rendered) -> Variant {
    match rendered {
        Rendered::PassThrough { mime } => Variant::PassThrough { mime },
        Rendered::WebP(bytes) => Variant::WebP(bytes),
    }
}

fn thumbhash(bytes: &[u8]) -> Result<Thumbhash> {
    Thumbhash::new(bytes)
        .ok_or_else(|| Error::internal("making a placeholder", "a hash of no known length"))
}

/// Reads the width and height, as displayed, of the raster image in `file`. `None` for other files and for
/// broken headers. Fails if a read fails, because the record would keep a missing size. The cursor of `file`
/// does not move.
pub(crate) fn probe(file: &File) -> Result<Option<Dimensions>> {
    match pictures::probe(file) {
        Ok(info) => Ok(Some(Dimensions { width: info.size.width, height: info.size.height })),
        Err(error) if error.kind() == pictures::ErrorKind::Io => Err(refused(error)),
        Err(_) => Ok(None),
    }
}

/// The planned variants of one file. Only the header was read, and the picture is within the limits.
#[derive(Debug)]
pub(crate) struct Rendering {
    rendering: steps::Rendering,
    /// An upper bound for the peak memory, in bytes. 0 if nothing is decoded.
    pub(crate) memory_bytes: u64,
}

/// Reads the header of `file`, plans the `asked` variants and checks the limits. Decodes nothing yet.
pub(crate) fn assess(
    file: &File,
    asked: &[(VariantSize, Fit)],
    small: Small,
    config: &VariantConfig,
) -> Result<Rendering> {
    let asked: Vec<Wanted> = asked.iter().map(|(size, fit)| wanted(*size, *fit)).collect();
    let rendering = steps::assess(file, &asked, small, &limits(config)).map_err(refused)?;
    Ok(Rendering { memory_bytes: rendering.memory_bytes(), rendering })
}

impl Rendering {
    /// Lists the indexes of the variants to render.
    pub(crate) fn rendered(&self) -> impl Iterator<Item = usize> {
        self.rendering.rendered()
    }

    /// Drops the variants for which `keep` returns false.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        self.rendering.retain(keep);
    }

    /// Returns the result for all requests that need no rendering.
    pub(crate) fn pass_through(&self) -> Variant {
        variant(self.rendering.pass_through())
    }

    /// Makes the variants, largest first, like [`steps::Rendering::run`].
    pub(crate) fn run(
        &self,
        file: &File,
        quality: f32,
        deadline: Deadline,
        spare: &dyn Spare,
        mut made: impl FnMut(usize, Variant) -> ControlFlow<()>,
    ) -> Result<Option<Retained>> {
        let made = |index, rendered| made(index, variant(rendered));
        let retained = self.rendering.run(file, quality, deadline, spare, made);
        Ok(retained.map_err(refused)?.map(Retained))
    }
}

/// The pixels for further sizes.
#[derive(Debug)]
pub(crate) struct Retained(steps::Retained);

impl Retained {
    /// Plans a variant from these pixels alone. `None` if the file must be decoded for it.
    pub(crate) fn plan(&self, size: VariantSize, fit: Fit, small: Small) -> Option<Plan> {
        self.0.plan(wanted(size, fit), small)
    }

    /// Renders the variant that [`plan`](Self::plan) planned.
    pub(crate) fn render(&self, planned: Geometry, quality: f32) -> Result<Variant> {
        self.0.render(planned, quality).map(variant).map_err(refused)
    }

    /// Returns the result for a request that the original answers.
    pub(crate) fn pass_through(&self) -> Variant {
        variant(self.0.pass_through())
    }

    /// Plans a placeholder from these pixels alone. `None` if the file must be decoded for it.
    pub(crate) fn plan_sketch(&self) -> Option<Geometry> {
        self.0.plan_placeholder()
    }

    /// Makes the placeholder that [`plan_sketch`](Self::plan_sketch) planned.
    pub(crate) fn sketch(&self, planned: Geometry) -> Result<Thumbhash> {
        thumbhash(&self.0.placeholder(planned).map_err(refused)?)
    }

    /// Reduces the picture to the pixels that are worth retaining, at most `max_bytes`. `None` if none are.
    pub(crate) fn reduce_to(self, max_bytes: u64) -> Option<Self> {
        self.0.reduce_to(max_bytes).map(Self)
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}

/// A planned animated variant. Only its structure was read, and it is within the limits.
pub(crate) struct Animation {
    animation: steps::Animation,
    /// An upper bound for the peak memory, in bytes.
    pub(crate) memory_bytes: u64,
}

impl Animation {
    /// Reads the structure of `file`, plans the variant and checks the limits. `None` if the still variant is
    /// the answer.
    pub(crate) fn assess(
        file: &File,
        size: VariantSize,
        fit: Fit,
        config: &VariantConfig,
    ) -> Result<Option<Self>> {
        let animation = steps::assess_animation(file, wanted(size, fit), &limits(config));
        let assessed = animation.map_err(refused)?;
        Ok(assessed.map(|animation| Self { memory_bytes: animation.memory_bytes(), animation }))
    }

    /// Makes the file like [`steps::Animation::run`].
    pub(crate) fn run(
        &self,
        file: &File,
        config: &VariantConfig,
        deadline: Deadline,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Bytes>> {
        self.animation.run(file, &settings(config), deadline, is_wanted).map_err(refused)
    }
}

/// A planned placeholder. Only the header was read, and the picture is within the limits.
pub(crate) struct Sketch {
    planned: steps::PlannedPlaceholder,
    /// An upper bound for the peak memory, in bytes.
    pub(crate) memory_bytes: u64,
}

impl Sketch {
    /// Reads the header of `file`, and checks the limits.
    pub(crate) fn assess(file: &File, config: &VariantConfig) -> Result<Self> {
        let planned = steps::assess_placeholder(file, &limits(config)).map_err(refused)?;
        Ok(Self { memory_bytes: planned.memory_bytes(), planned })
    }

    /// Decodes the picture as far as the placeholder needs, and makes the placeholder.
    pub(crate) fn make(&self, file: &File, deadline: Deadline) -> Result<Thumbhash> {
        thumbhash(&self.planned.make(file, deadline).map_err(refused)?)
    }
}

fn grid_of(grid: SheetGrid) -> Result<Grid> {
    let cells = grid.columns() as usize * grid.rows() as usize;
    Grid::with_columns(cells, grid.columns() as usize, grid.cell()).map_err(refused)
}

/// Returns an upper bound for a sheet's memory, in bytes. `InvalidField` if it exceeds `budget`, because
/// such a sheet could never be made.
pub(crate) fn sheet_memory(grid: SheetGrid, budget: u64) -> Result<u64> {
    let needed = grid_of(grid)?.memory_bytes();
    if needed <= budget {
        return Ok(needed);
    }
    let message = format!(
        "the sheet needs too much memory, {needed} bytes: ask for fewer ids or a smaller size"
    );
    Err(Error::invalid("ids", message).with_limit(budget))
}

/// Puts the variants in `files` side by side, and returns the position of each. `None` leaves its cell empty.
/// Empty parts are transparent.
pub(crate) fn assemble_sheet(
    grid: SheetGrid,
    files: &[Option<Bytes>],
    config: &VariantConfig,
) -> Result<(Bytes, Vec<Option<SheetPlace>>)> {
    let made = sheet::assemble(grid_of(grid)?, files, &settings(config));
    let made = made.map_err(|error| match error.kind() {
        pictures::ErrorKind::TooSlow => sheet_too_slow(),
        // Each of them was made here.
        pictures::ErrorKind::InvalidArgument => {
            Error::internal("reading a variant for a sheet", error)
        }
        _ => refused(error),
    })?;
    let placed = |Place { x, y, width, height }| SheetPlace { x, y, width, height };
    Ok((made.webp, made.places.into_iter().map(|place| place.map(placed)).collect()))
}

/// Returns an empty sheet without processing a pixel, because ids without a file cost their sender nothing.
pub(crate) fn blank_sheet(grid: SheetGrid) -> Result<Bytes> {
    grid_of(grid).map(sheet::blank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::file::variant::VARIANT_SIZES;
    use crate::variant::fixtures::{file, jpeg, size};

    #[test]
    fn only_what_the_load_cannot_change_is_final() {
        assert!(!is_final(&too_slow()) && is_final(&corrupt("nonsense")));
        assert!(!is_final(&sheet_too_slow()));
    }

    #[test]
    fn an_error_of_a_picture_keeps_its_words_its_limit_and_its_cause() {
        let error = corrupt("a marker is missing");
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::CorruptImage, "the image is corrupt")
        );
        assert_eq!(error.chain(), "the image is corrupt: a marker is missing");

        let config = VariantConfig { max_side: 300, ..VariantConfig::default() };
        let picture = file(&jpeg(420, 300));
        let asked = [(size("200"), Fit::Cover)];
        let error = assess(&picture, &asked, Small::PassesThrough, &config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ImageTooLarge);
        assert_eq!(error.message(), "the image is over 300 pixels a side: 420");
        assert_eq!(error.details().limit, Some(300));
    }

    #[test]
    fn what_is_no_picture_and_what_is_not_decoded_have_one_code() {
        let refused = |bytes: &[u8]| {
            let asked = [(size("200"), Fit::Cover)];
            let config = VariantConfig::default();
            assess(&file(bytes), &asked, Small::PassesThrough, &config).unwrap_err()
        };
        for bytes in [&b"plain text"[..], b"\0\0\0\x18ftypavif\0\0\0\0avifmif1"] {
            assert_eq!(refused(bytes).kind(), ErrorKind::NotAnImage);
        }
    }

    #[test]
    fn a_fault_of_the_disk_is_the_stores() {
        let directory = tempfile::tempdir().unwrap();
        let asked = [(size("200"), Fit::Cover)];
        let config = VariantConfig::default();
        let directory = File::open(directory.path()).unwrap();
        let error = assess(&directory, &asked, Small::PassesThrough, &config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(error.message(), "internal error while reading an image");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_one_without_a_size() {
        let directory = tempfile::tempdir().unwrap();
        let error = probe(&File::open(directory.path()).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);

        let size = Dimensions { width: 42, height: 30 };
        assert_eq!(probe(&file(&jpeg(42, 30))).unwrap(), Some(size));
        for bytes in [&b"plain text"[..], b"", &jpeg(42, 30)[..20]] {
            assert_eq!(probe(&file(bytes)).unwrap(), None);
        }
    }

    #[test]
    fn the_defaults_of_both_are_the_same() {
        assert_eq!(settings(&VariantConfig::default()), Settings::default());
    }

    #[test]
    fn a_sheet_has_its_pictures_where_its_grid_says() {
        let config = VariantConfig::default();
        for side in VARIANT_SIZES {
            let grid = SheetGrid::new(3, VariantSize::try_from(side).unwrap()).unwrap();
            let asked = Wanted::inside(side - 31);
            let webp = pictures::thumbnail(&jpeg(1400, 1000), asked, &settings(&config)).unwrap();
            let files = [None, Some(webp.clone()), Some(webp)];

            let (_, places) = assemble_sheet(grid, &files, &config).unwrap();
            let placed = places[2].unwrap();
            let before = |length| (side - length) / 4 * 2;
            let corner = (before(placed.width), side + before(placed.height));
            assert_eq!((placed.x, placed.y), corner, "{side}");
            assert_eq!((places[0], placed.width), (None, side - 31));
        }
    }

    #[test]
    fn a_damaged_variant_is_the_stores_fault_and_a_slow_sheet_is_nobodys() {
        let grid = SheetGrid::new(1, size("200")).unwrap();
        let config = VariantConfig::default();
        let damaged = [Some(Bytes::from_static(b"RIFF"))];
        let error = assemble_sheet(grid, &damaged, &config).unwrap_err();
        assert_eq!(error.message(), "internal error while reading a variant for a sheet");

        let deadline = std::time::Duration::ZERO;
        let config = VariantConfig { deadline, ..config };
        let asked = Wanted::cover(200);
        let shown = pictures::thumbnail(&jpeg(420, 300), asked, &Settings::default()).unwrap();
        let error = assemble_sheet(grid, &[Some(shown)], &config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
    }
}
