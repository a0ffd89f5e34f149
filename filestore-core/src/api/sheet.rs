//! Contact sheets on the wire.

use serde::{Deserialize, Serialize};

use super::vocabulary::ErrorCode;

/// The map of a contact sheet: the place of each file's picture within it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SheetMap {
    /// Width of the sheet, in pixels.
    pub width: u32,
    /// Height of the sheet, in pixels.
    pub height: u32,
    /// Side of a cell, in pixels.
    pub size: u32,
    /// Cells side by side.
    pub columns: u32,
    /// Rows of cells.
    pub rows: u32,
    /// The cells, row by row, in the order of the ids.
    pub cells: Vec<SheetCell>,
}

impl SheetMap {
    /// Makes the map of a grid and its cells.
    pub fn new(size: u32, columns: u32, rows: u32, cells: Vec<SheetCell>) -> Self {
        Self { width: columns * size, height: rows * size, size, columns, rows, cells }
    }
}

/// A cell of a contact sheet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SheetCell {
    /// Id of the file.
    pub file_id: String,
    /// Distance of the picture from the sheet's left edge, in pixels; null if there is none.
    pub x: Option<u32>,
    /// Distance of the picture from the sheet's upper edge; null if there is none.
    pub y: Option<u32>,
    /// Width of the picture; null if there is none.
    pub width: Option<u32>,
    /// Height of the picture; null if there is none.
    pub height: Option<u32>,
    /// Reason why the cell is empty; null if it is not.
    pub error: Option<SheetCellError>,
}

impl SheetCell {
    /// Makes a cell that shows a picture.
    pub fn shown(file_id: impl Into<String>, x: u32, y: u32, width: u32, height: u32) -> Self {
        Self {
            file_id: file_id.into(),
            x: Some(x),
            y: Some(y),
            width: Some(width),
            height: Some(height),
            error: None,
        }
    }

    /// Makes an empty cell.
    pub fn empty(
        file_id: impl Into<String>,
        code: impl Into<ErrorCode>,
        detail: impl Into<String>,
    ) -> Self {
        let error = Some(SheetCellError { code: code.into(), detail: detail.into() });
        Self { file_id: file_id.into(), x: None, y: None, width: None, height: None, error }
    }
}

/// The reason why a cell of a contact sheet is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SheetCellError {
    /// Stable code to branch on, as in a problem document.
    pub code: ErrorCode,
    /// Explanation of what is wrong with this file.
    pub detail: String,
}
