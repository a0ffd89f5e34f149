//! The grid of a contact sheet.

use super::variant::VariantSize;
use crate::domain::error::{Error, Result};

/// Maximum number of files on a sheet.
pub const MAX_SHEET_FILES: usize = 100;
/// Maximum number of pixels of a sheet: a hundred variants of 400 pixels, or sixteen of 1000.
pub const MAX_SHEET_PIXELS: u64 = 16_000_000;

/// The grid of a sheet: square cells in rows, with about as many rows as columns. Filled row by
/// row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SheetGrid {
    size: VariantSize,
    columns: u32,
    rows: u32,
}

impl SheetGrid {
    /// Creates a grid with a cell of `size` for each file. `InvalidField` with the limit if there
    /// is no file, more than [`MAX_SHEET_FILES`] files, or more than [`MAX_SHEET_PIXELS`] pixels.
    pub fn new(files: usize, size: VariantSize) -> Result<Self> {
        let count = u32::try_from(files).unwrap_or(u32::MAX);
        if count == 0 || files > MAX_SHEET_FILES {
            let message = format!("ids are those of 1 to {MAX_SHEET_FILES} files");
            return Err(Error::invalid("ids", message).with_limit(MAX_SHEET_FILES as u64));
        }

        let columns = (1..=count).find(|side| side * side >= count).expect("a hundred has a root");
        let grid = Self { size, columns, rows: count.div_ceil(columns) };
        let pixels = u64::from(grid.width()) * u64::from(grid.height());
        if pixels > MAX_SHEET_PIXELS {
            let message = format!("a sheet has at most {MAX_SHEET_PIXELS} pixels, not {pixels}");
            return Err(Error::invalid("size", message).with_limit(MAX_SHEET_PIXELS));
        }
        Ok(grid)
    }

    /// Returns the size of the variants.
    pub const fn size(self) -> VariantSize {
        self.size
    }

    /// Returns the cell side, in pixels.
    pub const fn cell(self) -> u32 {
        self.size.pixels()
    }

    /// Returns the number of columns.
    pub const fn columns(self) -> u32 {
        self.columns
    }

    /// Returns the number of rows.
    pub const fn rows(self) -> u32 {
        self.rows
    }

    /// Returns the sheet width, in pixels.
    pub const fn width(self) -> u32 {
        self.columns * self.size.pixels()
    }

    /// Returns the sheet height, in pixels.
    pub const fn height(self) -> u32 {
        self.rows * self.size.pixels()
    }
}

/// The position of a picture on a sheet, in pixels. The picture is in the middle of its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SheetPlace {
    /// Distance from the left edge.
    pub x: u32,
    /// Distance from the upper edge.
    pub y: u32,
    /// Picture width.
    pub width: u32,
    /// Picture height.
    pub height: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::error::ErrorKind;

    fn grid(files: usize, size: u32) -> Result<SheetGrid> {
        SheetGrid::new(files, VariantSize::try_from(size).unwrap())
    }

    #[test]
    fn cells_stand_in_rows_as_nearly_square_as_they_can() {
        for (files, columns, rows) in
            [(1, 1, 1), (2, 2, 1), (3, 2, 2), (5, 3, 2), (10, 4, 3), (99, 10, 10), (100, 10, 10)]
        {
            let grid = grid(files, 200).unwrap();
            assert_eq!((grid.columns(), grid.rows()), (columns, rows), "{files} files");
            assert_eq!((grid.width(), grid.height()), (200 * columns, 200 * rows));
        }
    }

    #[test]
    fn the_limits_are_a_hundred_files_and_sixteen_megapixels() {
        for (files, size) in [(100, 400), (16, 1000), (100, 200), (32, 700)] {
            assert!(grid(files, size).is_ok() == (files != 32 || size != 700), "{files} {size}");
        }
        for (files, size, field, limit) in [
            (0, 200, "ids", 100),
            (101, 200, "ids", 100),
            (101, 1000, "ids", 100),
            (17, 1000, "size", MAX_SHEET_PIXELS),
            (100, 500, "size", MAX_SHEET_PIXELS),
        ] {
            let error = grid(files, size).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidField);
            assert_eq!(error.details().field.as_deref(), Some(field));
            assert_eq!(error.details().limit, Some(limit), "{files} {size}");
        }
    }
}
